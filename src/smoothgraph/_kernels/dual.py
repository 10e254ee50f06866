"""The dual of the log model: one node, a sweep over all nodes, what the weights are."""

from typing import NamedTuple

import numpy as np

from smoothgraph._kernels.decorators import compiled, exact

SIMD = 8  # rows are padded to whole steps of the vectorised loop: the remainder loop costs more than all the rest
NEVER = 1e300  # what rows are padded with, an edge that never has weight; finite, since 0·inf is NaN


class Blocks(NamedTuple):
    """How a sweep is cut into blocks, so that its result does not depend on the number of threads.

    Node i is in block i >> shift; block b is the nodes at the places bounds[b] to bounds[b + 1]. The blocks b with the same
    b mod `waves` run at the same time. `mixed` marks the nodes that have a neighbour in another block of their own wave.
    """

    bounds: np.ndarray
    waves: int
    shift: int
    mixed: np.ndarray


@compiled
def root(m, b, offset):
    """The root s > −offset of (m·s − b)(offset + s) = 2, without cancellation."""
    p = m * offset - b
    square_root = np.sqrt((m * offset + b) ** 2 + 8.0 * m)
    return 2.0 * (b * offset + 2.0) / (p + square_root) if p > 0.0 else (square_root - p) / (2.0 * m)


@compiled
def pad(a, count):
    """Fill a[count:] up to a whole number of SIMD steps with what is never an edge; returns the padded count."""
    padded = (count + SIMD - 1) // SIMD * SIMD
    for s in range(count, padded):
        a[s] = NEVER
    return padded


@compiled
def smallest(a, count):
    """The smallest of a[:count]."""
    least = a[0]
    for s in range(1, count):
        least = min(least, a[s])
    return least


@compiled
def below(a, count, s):
    """How many of a[:count] are below s, and their sum."""
    m, total = 0, 0.0
    for j in range(count):
        is_below = a[j] < s
        m += is_below
        total += is_below * a[j]
    return m, total


@compiled
def _bounded_piece(a, count, s, upper):
    """The linear piece of Σⱼ clip((s − aⱼ)/2, 0, upper) at s: how many terms are free, their Σaⱼ, and the sum of the full."""
    m, total = below(a, count, s)
    full = 0
    for j in range(count):
        if s - a[j] >= 2.0 * upper:
            m -= 1
            total -= a[j]
            full += 1
    return m, total, full * upper if full > 0 else 0.0


@compiled
def node_dual(a, count, s, upper, offset, given):
    """Solve (offset + s)·(given + Σⱼ clip((s − aⱼ)/2, 0, upper)) = 1 over a[:count], padded, from the guess s.

    Returns s, the sum at the guess, and how many of its terms are free at s.

    Newton's method that keeps 1/(offset + s) as it is: on each linear piece of the sum the root is that of a quadratic
    (Theorem 1), and the pieces are nested in s, so equal counts mean the same piece and an exact root. The iterates decrease
    after the first step.
    """
    if upper is not None:
        return _bounded_node_dual(a, count, s, upper, offset, given)
    m, total = below(a, count, s)
    degree = 0.5 * (m * s - total) + given
    for _ in range(100):  # far more than it takes; rounding may swap two pieces for ever
        last = m
        if m > 0:
            s = root(m, total - 2.0 * given, offset)
        else:  # s is below every term: what is given alone decides, or the first term
            s = 1.0 / given - offset if given > 0.0 else root(m + 1, smallest(a, count), offset)
        m, total = below(a, count, s)
        if m == last:
            break
    return s, degree, m


@compiled
def _bounded_node_dual(a, count, s, upper, offset, given):
    """`node_dual` with an upper bound: the sum is no longer convex, so a bracket guards the iterates."""
    m, total, full = _bounded_piece(a, count, s, upper)
    degree = 0.5 * (m * s - total) + full + given
    lo, hi = -offset, np.inf
    for _ in range(200):
        value = 0.5 * (m * s - total) + full + given
        if value < 1.0 / (offset + s):
            lo = max(lo, s)
        else:
            hi = min(hi, s)
        if value == 0.0:  # s is below every term: go to where the first term alone would do
            least = smallest(a, count)
            s = root(1, least, offset)
            s = s if s - least <= 2.0 * upper else max(least + 2.0 * upper, 1.0 / upper - offset)
        else:
            s = root(m, total - 2.0 * (full + given), offset) if m > 0 else 1.0 / (full + given) - offset
        if not lo < s < hi:
            s = 0.5 * (lo + hi) if hi < np.inf else 2.0 * (offset + lo) - offset
            m = -1  # not a root of this piece
        last_m, last_full = m, full
        m, total, full = _bounded_piece(a, count, s, upper)
        if m == last_m and full == last_full:
            break
    return s, degree, m


@compiled
def start_dual(first, last, form, offset, lam):
    """λ of every node alone, all its neighbours taken to be like itself (the paper's one-node problem); 0 with an offset."""
    for i in range(first, last):
        lam[i] = 0.0
        if offset[i] > 0.0:
            continue
        begin, count = form.begin[i], form.end[i] - form.begin[i]
        a = np.empty(count + SIMD)
        for s in range(count):
            a[s] = np.sqrt(2.0) * form.theta * form.z[begin + s]  # λ·Σ(λ−θz)₊ = 1 is node_dual's equation in √2·λ
        lam[i] = node_dual(a, pad(a, count), 0.0, None, 0.0, 0.0)[0] / np.sqrt(2.0)


@compiled
def total(values):
    """The sum in a fixed order."""
    result = 0.0
    for value in values:
        result += value
    return result


@compiled
def _beside(block, own, waves):
    """Whether a block runs at the same time as the block `own` and is another; `waves` is a power of two."""
    apart = np.uint32(block) ^ np.uint32(own)
    return (apart != 0) & (apart & np.uint32(waves - 1) == 0)


@compiled
def mixed_rows(first, last, form, waves, shift, mixed):
    """Mark the nodes that have a neighbour in a block that runs beside their own."""
    for i in range(first, last):
        beside = False
        for e in range(form.begin[i], form.end[i]):
            beside |= _beside(form.indices[e] >> shift, i >> shift, waves)
        mixed[i] = beside


@compiled
def sweep(
    first_wave, last_wave, first_lane, last_lane, nodes, blocks, form, offset, given, limit, lam, before, pending, quiet, relax,
    longest_row, gap_shares,
):  # fmt: skip
    """Update `nodes`, which ascend, in place: the blocks of some waves, and of each wave the lanes given.

    gap_shares[b] becomes the sum of the nodes' shares of the gap, before the update, over block b. A node sees the newest λ of
    its neighbours, but of those in a block beside its own it sees λ `before` the round; so the result is the same for any
    number of threads. Nodes with a share of more than `quiet` are marked `pending`, with their neighbours. An update goes
    `relax` times the way to the node's optimum, but not beyond its `limit`, up to which the rows are complete.
    """
    waves, shift = blocks.waves, blocks.shift
    a = np.empty(longest_row + SIMD)
    for wave in range(first_wave, last_wave):
        for lane in range(first_lane, last_lane):
            own = lane * waves + wave
            total_share = 0.0
            for i in nodes[blocks.bounds[own] : blocks.bounds[own + 1]]:
                row, count, was = form.begin[i], form.end[i] - form.begin[i], lam[i]
                if count == 0:  # up to its limit no edge has weight
                    lam[i] = min(limit[i], 1.0 / given[i] - offset[i] if given[i] > 0.0 else np.inf)
                    continue
                mixed = blocks.mixed[i]
                if mixed:
                    for s in range(count):
                        j = form.indices[row + s]
                        lam_j = before[j] if _beside(j >> shift, own, waves) else lam[j]
                        a[s] = 2.0 * form.theta * form.z[row + s] - lam_j
                else:
                    for s in range(count):
                        a[s] = 2.0 * form.theta * form.z[row + s] - lam[form.indices[row + s]]
                best, degree, m = node_dual(a, pad(a, count), was, form.upper, offset[i], given[i])
                stride = relax
                if mixed:  # nodes that move at the same time would rock each other if each went all the way
                    beside = 0
                    for s in range(count):
                        beside += (a[s] < best) & _beside(form.indices[row + s] >> shift, own, waves)
                    stride /= 1.0 + beside / (2.0 / (offset[i] + best) ** 2 + m)
                goal = max(was + stride * (best - was), 0.5 * (best - offset[i]))  # λ at least halves
                lam[i] = min(goal, limit[i])
                if lam[i] == was:  # at its limit
                    continue
                x = degree * (offset[i] + was)
                share = (x - 1.0) * (x - 1.0) / (x + 1.0)  # x − 1 − log x, near 1
                total_share += share
                if share > quiet:
                    pending[i] = True
                    top = max(goal, was)
                    for s in range(count):
                        if a[s] < top:
                            pending[form.indices[row + s]] = True  # several threads may write it: all write the same
            gap_shares[own] = total_share


@compiled
def copy_at(first, last, nodes, source, target):
    """target[i] = source[i] for the nodes at the places first to last."""
    for place in range(first, last):
        target[nodes[place]] = source[nodes[place]]


@compiled
def live_edges(first, last, form, limit, n_groups, begin, end, columns, values):
    """The edges that can have weight as long as no λ is beyond its limit, into CSR rows begin[i] to end[i].

    The nodes are cut into `n_groups` groups, of which those from `first` to `last` are done; the rows of a group stand close
    together.
    """
    n = limit.size
    for group in range(first, last):
        free = form.begin[group * n // n_groups] if group * n // n_groups < n else 0
        for i in range(group * n // n_groups, (group + 1) * n // n_groups):
            begin[i] = free
            for e in range(form.begin[i], form.end[i]):
                columns[free], values[free] = form.indices[e], form.z[e]
                free += 2.0 * form.theta * form.z[e] < limit[i] + limit[form.indices[e]]
            end[i] = free


@exact
def weight(lam_i, lam_j, cost, upper):
    """w at an edge. What counts the edges with weight and what lists them must agree, also where w is a rounding error."""
    if upper is None:
        return max(0.5 * (lam_i + lam_j) - cost, 0.0)
    return min(max(0.5 * (lam_i + lam_j) - cost, 0.0), upper)


@compiled
def _at_node(i, form, given, lam):
    """Of node i at w(λ): its degree, number of neighbours, and its half of Σₑ 2θzw + w²."""
    d, m, energy = given[i], 0, 0.0
    for e in range(form.begin[i], form.end[i]):
        cost = form.theta * form.z[e]
        w = weight(lam[i], lam[form.indices[e]], cost, form.upper)
        d += w
        m += w > 0.0
        energy += 0.5 * w * (2.0 * cost + w)
    return d, m, energy


@compiled
def evaluate(first, last, form, given, lam, degree, n_neighbors, energy):
    """At w(λ): every node's degree, number of neighbours, and its half of Σₑ 2θzw + w²."""
    for i in range(first, last):
        degree[i], n_neighbors[i], energy[i] = _at_node(i, form, given, lam)


@compiled
def evaluate_at(first, last, nodes, form, given, lam, degree, n_neighbors, energy):
    """The same for the nodes at the places first to last."""
    for place in range(first, last):
        i = nodes[place]
        degree[i], n_neighbors[i], energy[i] = _at_node(i, form, given, lam)


@compiled
def psi_sums(first, last, degree, lam, offset, sums):
    """Sums of x − 1 − log x, x = dλ, over each of sums.size groups of nodes: n times the duality gap per node in all.

    A degree of 0 (a start far off) makes a sum inf.
    """
    n, groups = lam.size, sums.size
    for group in range(first, last):
        psi = 0.0
        for i in range(group * n // groups, (group + 1) * n // groups):
            x = degree[i] * (lam[i] + offset[i])
            psi += x - 1.0 - np.log(x)
        sums[group] = psi


@compiled
def mark_touched(nodes, form, before, lam, marks):
    """Mark these nodes, and the other ends of their edges that had weight at λ `before` or have some now."""
    for i in nodes:
        marks[i] = True
        for e in range(form.begin[i], form.end[i]):
            j, cost = form.indices[e], form.theta * form.z[e]
            if weight(lam[i], lam[j], cost, form.upper) > 0.0 or weight(before[i], before[j], cost, form.upper) > 0.0:
                marks[j] = True


@compiled
def pair_weights(first, last, i, j, form, lam, w):
    """w of the pairs (i, j), 0 where they are no edges."""
    for pair in range(first, last):
        w[pair] = 0.0
        for e in range(form.begin[i[pair]], form.end[i[pair]]):
            if form.indices[e] == j[pair]:
                w[pair] = weight(lam[i[pair]], lam[j[pair]], form.theta * form.z[e], form.upper)


@compiled
def mark_lost_weight(first, last, nodes, form, before, lam, lost):
    """Mark the ends of edges of `nodes` that had weight at λ `before` and have none now."""
    for place in range(first, last):
        i = nodes[place]
        for e in range(form.begin[i], form.end[i]):
            j, cost = form.indices[e], form.theta * form.z[e]
            if weight(before[i], before[j], cost, form.upper) > 0.0 and not weight(lam[i], lam[j], cost, form.upper) > 0.0:
                lost[i] = lost[j] = True


@compiled
def mark_new_weight(first, last, before, form, lam, is_new):
    """Mark the nodes that have weight at an edge added since the rows were those of the indptr `before`: it stands last."""
    for i in range(first, last):
        is_new[i] = False
        for e in range(form.begin[i] + before[i + 1] - before[i], form.end[i]):
            is_new[i] |= weight(lam[i], lam[form.indices[e]], form.theta * form.z[e], form.upper) > 0.0


@compiled
def count_weighted(first, last, form, lam, less_than, counts):
    """How many edges of each node have a weight that is positive and less than `less_than`."""
    for i in range(first, last):
        count = 0
        for e in range(form.begin[i], form.end[i]):
            count += 0.0 < weight(lam[i], lam[form.indices[e]], form.theta * form.z[e], form.upper) < less_than
        counts[i] = count


@compiled
def fill_weighted(first, last, form, lam, less_than, indptr, columns, weights):
    """These edges into the CSR rows `indptr`."""
    for i in range(first, last):
        s = indptr[i]
        for e in range(form.begin[i], form.end[i]):
            w = weight(lam[i], lam[form.indices[e]], form.theta * form.z[e], form.upper)
            if 0.0 < w < less_than:
                columns[s], weights[s] = form.indices[e], w
                s += 1


@compiled
def new_rows(first, last, a, upper, lam, w):
    """λ and the weights clip((λ − a)/2, 0, upper) of new nodes whose neighbours stay as they are; row r has costs a[r]."""
    width = a.shape[1]
    costs = np.empty(width + SIMD)
    for r in range(first, last):
        offset = max(smallest(a[r], width), 0.0)  # of a far sample all costs are large and weights small: count from the least
        costs[:width] = a[r] - offset
        s = node_dual(costs, pad(costs, width), 0.0, upper, offset, 0.0)[0]
        lam[r] = offset + s
        for c in range(width):
            value = max(0.5 * (s - costs[c]), 0.0)
            w[r, c] = value if upper is None else min(value, upper)
