"""The dual of the log model: one node, a sweep over all, what the weights are, the Newton step."""

import numpy as np
from numba import prange

from smoothgraph._kernels.decorators import compiled, exact, threaded

SIMD = 8  # rows are padded to whole steps of the vectorised loop: the remainder loop costs more than all the rest
NEVER = 1e300  # what rows are padded with; finite, since 0·inf is NaN


@compiled
def _root(m, b, base):
    """The root s > −base of (m·s − b)(base + s) = 2, without cancellation."""
    p = m * base - b
    root = np.sqrt((m * base + b) ** 2 + 8.0 * m)
    return 2.0 * (b * base + 2.0) / (p + root) if p > 0.0 else (root - p) / (2.0 * m)


@compiled
def _pad(a, count):
    """Fill a[count:] up to a whole number of SIMD steps with what is never an edge; returns the padded count."""
    padded = (count + SIMD - 1) // SIMD * SIMD
    for s in range(count, padded):
        a[s] = NEVER
    return padded


@compiled
def _free(a, count, s):
    """How many of a[:count] are below s, and their sum."""
    m, total = 0, 0.0
    for j in range(count):
        below = a[j] < s
        m += below
        total += below * a[j]
    return m, total


@compiled
def _piece(a, count, s, upper):
    """The linear piece of Σⱼ clip((s − aⱼ)/2, 0, upper) at s: how many terms are free, their Σaⱼ, and the sum of the full."""
    m, total = _free(a, count, s)
    full = 0
    if upper < np.inf:
        for j in range(count):
            if s - a[j] >= 2.0 * upper:
                m -= 1
                total -= a[j]
                full += 1
    return m, total, full * upper if full > 0 else 0.0


@compiled
def node_dual(a, count, s, upper, base, given):
    """Solve (base + s)·(given + Σⱼ clip((s − aⱼ)/2, 0, upper)) = 1 over a[:count], padded, from the guess s.

    Returns s, the sum at the guess, and how many of its terms are free at s.

    Newton's method that keeps 1/(base + s) as it is: on each linear piece of the sum the root is that of a quadratic
    (Theorem 1), and the pieces are nested in s, so equal counts mean the same piece and an exact root. The iterates decrease
    after the first step.
    """
    if upper < np.inf:
        return _bounded_node_dual(a, count, s, upper, base, given)
    m, total = _free(a, count, s)
    degree = 0.5 * (m * s - total) + given
    for _ in range(100):  # far more than it takes; rounding may swap two pieces for ever
        last = m
        if m > 0:
            s = _root(m, total - 2.0 * given, base)
        else:  # below every term: what is given alone, or the first term
            s = 1.0 / given - base if given > 0.0 else _root(1, a[:count].min(), base)
        m, total = _free(a, count, s)
        if m == last:
            break
    return s, degree, m


@compiled
def _bounded_node_dual(a, count, s, upper, base, given):
    """`node_dual` with an upper bound: the sum is no longer convex, so a bracket guards the iterates."""
    m, total, full = _piece(a, count, s, upper)
    degree = 0.5 * (m * s - total) + full + given
    lo, hi = -base, np.inf
    for _ in range(200):
        value = 0.5 * (m * s - total) + full + given
        if value < 1.0 / (base + s):
            lo = max(lo, s)
        else:
            hi = min(hi, s)
        if value == 0.0:  # below every term: go to where the first alone would do
            a_min = a[:count].min()
            s = _root(1, a_min, base)
            s = s if s - a_min <= 2.0 * upper else max(a_min + 2.0 * upper, 1.0 / upper - base)
        else:
            s = _root(m, total - 2.0 * (full + given), base) if m > 0 else 1.0 / (full + given) - base
        if not lo < s < hi:
            s = 0.5 * (lo + hi) if hi < np.inf else 2.0 * (base + lo) - base
            m = -1  # not a root of this piece
        last_m, last_full = m, full
        m, total, full = _piece(a, count, s, upper)
        if m == last_m and full == last_full:
            break
    return s, degree, m


@threaded
def start_dual(indptr, z, theta, base):
    """λ − base of every node alone, all its neighbours taken to be like itself (the paper's one-node problem)."""
    n = indptr.size - 1
    lam = np.zeros(n)
    for i in prange(n):
        if base[i] > 0.0:
            continue
        begin, count = indptr[i], indptr[i + 1] - indptr[i]
        a = np.empty(count + SIMD)
        for s in range(count):
            a[s] = np.sqrt(2.0) * theta * z[begin + s]  # λ·Σ(λ−θz)₊ = 1 is node_dual's equation in √2·λ
        lam[i] = node_dual(a, _pad(a, count), 0.0, np.inf, 0.0, 0.0)[0] / np.sqrt(2.0)
    return lam


@compiled
def _total(values):
    """The sum in a fixed order, which sums inside a threaded loop have not."""
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def _beside(block, own, waves):
    """Whether a block runs at the same time as another: every `waves`-th does, and `waves` is a power of two."""
    apart = np.uint32(block) ^ np.uint32(own)
    return (apart != 0) & (apart & np.uint32(waves - 1) == 0)


@threaded
def mixed_rows(indptr, indices, waves, shift):
    """Which nodes have a neighbour in a block that runs beside their own."""
    n = indptr.size - 1
    mixed = np.empty(n, np.bool_)
    for i in prange(n):
        beside = False
        for e in range(indptr[i], indptr[i + 1]):
            beside |= _beside(indices[e] >> shift, i >> shift, waves)
        mixed[i] = beside
    return mixed


@threaded
def sweep(
    nodes, bounds, waves, shift, mixed, begin, end, indices, z, theta, upper, base, given, limit, lam, before, restless, quiet,
    relax, longest_row,
):  # fmt: skip
    """One round of updates of `nodes`, ascending, in place; returns their shares of the gap before, summed.

    Row i is begin[i] to end[i]. Node i is in block i >> shift; block b is those of `nodes` at the places bounds[b] to
    bounds[b + 1]. Every `waves`-th block runs at the same time. Each node sees the newest λ of its neighbours, but for those
    in a block beside its own, whose λ from `before` it sees: so the result is the same whatever the number of threads. Only
    nodes that are `mixed` have such neighbours. `before` is the same as `lam` when a round begins, and when it ends. Nodes
    whose share of the gap was more than `quiet` are marked `restless`, with their neighbours. An update goes `relax` times
    the way to the node's optimum, but not beyond its `limit`, up to which the rows are complete.
    """
    lanes = (bounds.size - 1) // waves
    shares = np.zeros(bounds.size - 1)
    for wave in range(waves):
        for lane in prange(lanes):
            own = lane * waves + wave
            a = np.empty(longest_row + SIMD)
            total = 0.0
            for i in nodes[bounds[own] : bounds[own + 1]]:
                row, count, was = begin[i], end[i] - begin[i], lam[i]
                if count == 0:  # up to its limit no edge has weight
                    lam[i] = min(limit[i], 1.0 / given[i] - base[i] if given[i] > 0.0 else np.inf)
                    continue
                if mixed[i]:
                    for s in range(count):
                        j = indices[row + s]
                        lam_j = before[j] if _beside(j >> shift, own, waves) else lam[j]
                        a[s] = 2.0 * theta * z[row + s] - lam_j
                else:
                    for s in range(count):
                        a[s] = 2.0 * theta * z[row + s] - lam[indices[row + s]]
                best, degree, m = node_dual(a, _pad(a, count), was, upper, base[i], given[i])
                stride = relax
                if mixed[i]:  # nodes that move at the same time rock each other, if each goes all the way
                    beside = 0
                    for s in range(count):
                        beside += (a[s] < best) & _beside(indices[row + s] >> shift, own, waves)
                    stride /= 1.0 + beside / (2.0 / (base[i] + best) ** 2 + m)
                goal = max(was + stride * (best - was), 0.5 * (best - base[i]))  # λ at least halves
                lam[i] = min(goal, limit[i])
                if lam[i] == was:  # at its limit
                    continue
                x = degree * (base[i] + was)
                share = (x - 1.0) * (x - 1.0) / (x + 1.0)  # x − 1 − log x, near 1
                total += share
                if share > quiet:
                    restless[i] = True
                    top = max(goal, was)
                    for s in range(count):
                        if a[s] < top:
                            restless[indices[row + s]] = True  # several threads may write it: all write the same
            shares[own] = total
    for place in prange(nodes.size):
        before[nodes[place]] = lam[nodes[place]]
    return _total(shares)


@threaded
def live_edges(indptr, indices, z, theta, limit, blocks, begin, end, columns, values):
    """The edges that can have weight as long as no λ is beyond its limit, into CSR rows begin[i] to end[i].

    The rows stand close together within each of `blocks`.
    """
    n = limit.size
    for block in prange(blocks):
        free = indptr[block * n // blocks]
        for i in range(block * n // blocks, (block + 1) * n // blocks):
            begin[i] = free
            for e in range(indptr[i], indptr[i + 1]):
                columns[free], values[free] = indices[e], z[e]
                free += 2.0 * theta * z[e] < limit[i] + limit[indices[e]]
            end[i] = free


@exact
def weight(lam_i, lam_j, cost, upper):
    """w at an edge. Who counts the edges with weight and who lists them must agree, also where it is a rounding error."""
    return min(max(0.5 * (lam_i + lam_j) - cost, 0.0), upper)


@compiled
def _at_node(i, begin, end, indices, z, theta, upper, given, lam):
    """Of node i at w(λ): its degree, number of edges, and its half of Σₑ 2θzw + w²."""
    d, m, total = given[i], 0, 0.0
    for e in range(begin[i], end[i]):
        cost = theta * z[e]
        w = weight(lam[i], lam[indices[e]], cost, upper)
        d += w
        m += w > 0.0
        total += 0.5 * w * (2.0 * cost + w)
    return d, m, total


@threaded
def evaluate(begin, end, indices, z, theta, upper, given, lam):
    """At w(λ), row i being begin[i] to end[i]: every node's degree, number of edges, and its half of Σₑ 2θzw + w²."""
    n = lam.size
    degree, active, energy = np.empty(n), np.empty(n, np.int32), np.empty(n)
    for i in prange(n):
        degree[i], active[i], energy[i] = _at_node(i, begin, end, indices, z, theta, upper, given, lam)
    return degree, active, energy


@threaded
def evaluate_again(nodes, begin, end, indices, z, theta, upper, given, lam, degree, active, energy):
    """What `evaluate` gives for these nodes, in place."""
    for place in prange(nodes.size):
        i = nodes[place]
        degree[i], active[i], energy[i] = _at_node(i, begin, end, indices, z, theta, upper, given, lam)


@threaded
def mean_psi(degree, lam, base, shares):
    """Mean of x − 1 − log x, x = dλ: the duality gap per node. A degree of 0 (a start far off) makes it inf."""
    n = lam.size
    sums = np.zeros(shares)
    for share in prange(shares):
        for i in range(share * n // shares, (share + 1) * n // shares):
            x = degree[i] * (lam[i] + base[i])
            sums[share] += x - 1.0 - np.log(x)
    return _total(sums) / n


@compiled
def mark_touched(nodes, begin, end, indices, z, theta, upper, before, lam, marks):
    """Mark these nodes, and the other ends of their edges that had weight at λ `before` or have some now."""
    for i in nodes:
        marks[i] = True
        for e in range(begin[i], end[i]):
            j, cost = indices[e], theta * z[e]
            if weight(lam[i], lam[j], cost, upper) > 0.0 or weight(before[i], before[j], cost, upper) > 0.0:
                marks[j] = True


@threaded
def pair_weights(i, j, indptr, indices, z, theta, upper, lam):
    """w of the pairs (i, j), 0 where they are no edges."""
    w = np.zeros(i.size)
    for pair in prange(i.size):
        for e in range(indptr[i[pair]], indptr[i[pair] + 1]):
            if indices[e] == j[pair]:
                w[pair] = weight(lam[i[pair]], lam[j[pair]], theta * z[e], upper)
    return w


@threaded
def lost_weight(nodes, begin, end, indices, z, theta, upper, before, lam):
    """Which nodes have an edge that had weight at λ `before` and has none now: those of `nodes`, and the other ends."""
    lost = np.zeros(lam.size, np.bool_)
    for place in prange(nodes.size):
        i = nodes[place]
        for e in range(begin[i], end[i]):
            j, cost = indices[e], theta * z[e]
            if weight(before[i], before[j], cost, upper) > 0.0 and not weight(lam[i], lam[j], cost, upper) > 0.0:
                lost[i] = lost[j] = True
    return lost


@threaded
def weight_is_new(before, indptr, indices, z, theta, upper, lam):
    """Which nodes have weight at an edge that came in since the rows were those of `before`: new entries stand last."""
    new = np.zeros(lam.size, np.bool_)
    for i in prange(lam.size):
        for e in range(indptr[i] + before[i + 1] - before[i], indptr[i + 1]):
            new[i] |= weight(lam[i], lam[indices[e]], theta * z[e], upper) > 0.0
    return new


@threaded
def weighted_edges(begin, end, indices, z, theta, upper, lam, below):
    """The edges whose weight is positive and less than `below` as CSR arrays (indptr, indices, w)."""
    n = lam.size
    out = np.zeros(n + 1, np.int64)
    for i in prange(n):
        for e in range(begin[i], end[i]):
            out[i + 1] += 0.0 < weight(lam[i], lam[indices[e]], theta * z[e], upper) < below
    for i in range(n):
        out[i + 1] += out[i]
    columns, weights = np.empty(out[n], np.int32), np.empty(out[n])
    for i in prange(n):
        s = out[i]
        for e in range(begin[i], end[i]):
            w = weight(lam[i], lam[indices[e]], theta * z[e], upper)
            if 0.0 < w < below:
                columns[s], weights[s] = indices[e], w
                s += 1
    return out, columns, weights


@threaded
def conjugate_gradients(begin, end, indices, diagonal, right, less, rounds, tol, shares):
    """Solve (diag + ½A − less·11ᵀ/n)x = right, A the 0/1 adjacency matrix, until the residual is `tol` of what it was.

    Row i of A has its entries from begin[i] to end[i]. Sums run over `shares` of the nodes, so that their order is fixed.
    """
    n = right.size
    x, residual, p, Hp = np.zeros(n), right.copy(), right / diagonal, np.empty(n)
    partial, sums = np.empty(shares), np.empty(shares)
    rz = _total(right * p)
    stop = tol * tol * rz
    for _ in range(rounds):
        for share in prange(shares):
            total, plain = 0.0, 0.0
            for i in range(share * n // shares, (share + 1) * n // shares):
                neighbours = 0.0
                for e in range(begin[i], end[i]):
                    neighbours += p[indices[e]]
                Hp[i] = diagonal[i] * p[i] + 0.5 * neighbours
                total += p[i] * Hp[i]
                plain += p[i]
            partial[share], sums[share] = total, plain
        plain = _total(sums)
        step, offset = rz / (_total(partial) - less * plain * plain / n), less * plain / n
        for share in prange(shares):
            total = 0.0
            for i in range(share * n // shares, (share + 1) * n // shares):
                x[i] += step * p[i]
                residual[i] -= step * (Hp[i] - offset)
                total += residual[i] * residual[i] / diagonal[i]
            partial[share] = total
        last, rz = rz, _total(partial)
        if rz <= stop:
            break
        for i in prange(n):
            p[i] = residual[i] / diagonal[i] + (rz / last) * p[i]
    return x


@compiled
def largest_partners(order, stretch, lam):
    """For each node i of `order`: the largest (λᵢ + λⱼ)/stretchⱼ over the nodes j that come no later in it.

    These are lines in λᵢ, of slope 1/stretchⱼ: kept are those that are largest somewhere, by ascending slope, which are few.
    """
    n = order.size
    slope, height, from_x = np.empty(n), np.empty(n), np.empty(n)  # line s is the largest from from_x[s] on
    count = 0
    out = np.empty(n)
    for i in order:
        m, h = 1.0 / stretch[i], lam[i] / stretch[i]
        at = np.searchsorted(slope[:count], m)
        below = at < count and slope[at] == m and height[at] >= h
        if not below and 0 < at < count:  # where its neighbours meet it must be above them
            x = from_x[at]
            below = m * x + h <= slope[at] * x + height[at]
        if not below:
            left, right = at, at
            while right < count and (
                slope[right] == m
                or (right + 1 < count and m * from_x[right + 1] + h >= slope[right] * from_x[right + 1] + height[right])
            ):
                right += 1
            while left > 1 and m * from_x[left - 1] + h >= slope[left - 1] * from_x[left - 1] + height[left - 1]:
                left -= 1
            slope[left + 1 : left + 1 + count - right] = slope[right:count].copy()
            height[left + 1 : left + 1 + count - right] = height[right:count].copy()
            count += left + 1 - right
            slope[left], height[left] = m, h
            from_x[0] = -np.inf
            for s in range(max(left, 1), count):
                from_x[s] = (height[s - 1] - height[s]) / (slope[s] - slope[s - 1])
        s = np.searchsorted(from_x[:count], lam[i], side="right") - 1
        out[i] = slope[s] * lam[i] + height[s]
    return out


@threaded
def new_rows(a, upper):
    """λ and the weights clip((λ − a)/2, 0, upper) of new nodes whose neighbours stay as they are; row r has costs a[r]."""
    rows, width = a.shape
    lam, w = np.empty(rows), np.empty((rows, width))
    for r in prange(rows):
        base = max(a[r].min(), 0.0)  # of a far sample all costs are large and the weights small: count from the smallest
        costs = np.empty(width + SIMD)
        costs[:width] = a[r] - base
        s = node_dual(costs, _pad(costs, width), 0.0, upper, base, 0.0)[0]
        lam[r] = base + s
        for c in range(width):
            w[r, c] = min(max(0.5 * (s - costs[c]), 0.0), upper)
    return lam, w
