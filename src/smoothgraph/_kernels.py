"""Every compiled loop of smoothgraph: free functions on arrays.

The graph of allowed edges comes as `indptr, indices, z`: each edge is stored at both of its ends, so that everything a node
needs stands in its row. `z` is a squared distance and may be float32; all arithmetic is float64. `upper` is the largest weight
an edge may take (inf for none). The dual comes as `lam`, which is λ − base: `base` is 0 but for far outliers, and z is less by
what it adds, so that (λᵢ+λⱼ)/2 − θz is the same and no digits are lost in it. `given` is weight that a node has besides, from
edges that are not in question. A loop that runs in several threads writes each
result in one place and sums in a fixed order: the bits do not depend on the number of threads.
"""

import numpy as np
from numba import njit, prange

SUM_FREELY = {"reassoc", "contract", "nsz"}  # what SIMD sums need; infinities and NaN keep their meaning
compiled = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, nogil=True)
threaded = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, parallel=True)

SIMD = 8  # rows are padded to whole steps of the vectorised loop: the remainder loop costs more than all the rest
NEVER = 1e300  # what rows are padded with; finite, since 0·inf is NaN


# --- one node -------------------------------------------------------------------------------------------------------------


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

    Returns s, and the sum at the guess.

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
    return s, degree


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
    return s, degree


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


# --- the dual sweep -------------------------------------------------------------------------------------------------------


@compiled
def _total(values):
    """The sum in a fixed order, which sums inside a threaded loop have not."""
    total = 0.0
    for value in values:
        total += value
    return total


@threaded
def sweep(
    begin, end, indices, z, theta, upper, base, given, limit, lam, fresh, todo, waiting, restless, woken, quiet, relax,
    bounds, lanes, longest_row,
):  # fmt: skip
    """One round of updates of the nodes marked `todo`, in place; returns their shares of the gap before, summed.

    Row i is begin[i] to end[i]. The nodes are cut into blocks at `bounds`, of which `lanes` run side by side. A node with a
    neighbour in a block that runs beside its own, and comes before it, is marked `waiting` instead, for a round in one
    block. So no node is read while it changes, each sees the newest λ of its neighbours, and the result is the same whatever
    the number of threads. Nodes whose share of the gap was at most `quiet` lose the mark `restless`, the others get it and
    give it to their neighbours; a negative `quiet` leaves the marks alone. An update goes `relax` times the way to the node's
    optimum, but not beyond its `limit`, up to which the rows are complete. `fresh` and `woken` are scratch.
    """
    shares = np.zeros(bounds.size - 1)
    woken[:] = False
    for wave in range((bounds.size - 1) // lanes):
        beside = bounds[wave * lanes]
        for lane in prange(lanes):
            first, last = bounds[wave * lanes + lane], bounds[wave * lanes + lane + 1]
            before, size = np.uint32(first - beside), np.uint32(last - first)
            a = np.empty(longest_row + SIMD)
            total = 0.0
            for i in range(first, last):
                fresh[i] = lam[i]
            for i in range(first, last):
                if not todo[i]:
                    continue
                row, count = begin[i], end[i] - begin[i]
                waits = False
                for s in range(count):
                    j = indices[row + s]
                    waits |= np.uint32(j - beside) < before
                    lam_j = fresh[j] if np.uint32(j - first) < size else lam[j]
                    a[s] = 2.0 * theta * z[row + s] - lam_j
                if waits:
                    waiting[i] = True
                    continue
                if count == 0:
                    fresh[i], restless[i] = limit[i], False
                    continue
                best, degree = node_dual(a, _pad(a, count), lam[i], upper, base[i], given[i])
                goal = max(lam[i] + relax * (best - lam[i]), 0.5 * (best - base[i]))  # λ at least halves
                fresh[i] = min(goal, limit[i])
                x = degree * (base[i] + lam[i])
                share = (x - 1.0) * (x - 1.0) / (x + 1.0)  # x − 1 − log x, near 1
                if fresh[i] == lam[i]:  # at its limit
                    restless[i] = False
                    continue
                total += share
                if quiet >= 0.0:
                    restless[i] = share > quiet
                    if share > quiet:
                        top = max(goal, lam[i])
                        for s in range(count):
                            if a[s] < top:
                                woken[indices[row + s]] = True  # several threads may write it: all write the same
            shares[wave * lanes + lane] = total
        lam[beside : bounds[wave * lanes + lanes]] = fresh[beside : bounds[wave * lanes + lanes]]
    for i in prange(lam.size):
        restless[i] |= woken[i]
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


@threaded
def evaluate(indptr, indices, z, theta, upper, given, lam):
    """At w(λ): every node's degree, number of edges, and its half of Σₑ 2θzw + w²."""
    n = lam.size
    degree, active, energy = np.empty(n), np.empty(n, np.int32), np.empty(n)
    for i in prange(n):
        d, m, total = given[i], 0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            cost = theta * z[e]
            w = min(max(0.5 * (lam[i] + lam[indices[e]]) - cost, 0.0), upper)
            d += w
            m += w > 0.0
            total += 0.5 * w * (2.0 * cost + w)
        degree[i], active[i], energy[i] = d, m, total
    return degree, active, energy


@threaded
def weight_is_new(before, indptr, indices, z, theta, upper, lam):
    """Which nodes have weight at an edge that came in since the rows were those of `before`: new entries stand last."""
    new = np.zeros(lam.size, np.bool_)
    for i in prange(lam.size):
        for e in range(indptr[i] + before[i + 1] - before[i], indptr[i + 1]):
            new[i] |= 0.5 * (lam[i] + lam[indices[e]]) > theta * z[e]
    return new


@threaded
def positive_edges(indptr, indices, z, theta, upper, lam, active):
    """The edges of positive weight as CSR arrays (indptr, indices, w); `active` holds their number per node."""
    n = lam.size
    out = np.zeros(n + 1, np.int64)
    out[1:] = np.cumsum(active)
    columns, weights = np.empty(out[n], np.int32), np.empty(out[n])
    for i in prange(n):
        s = out[i]
        for e in range(indptr[i], indptr[i + 1]):
            w = min(max(0.5 * (lam[i] + lam[indices[e]]) - theta * z[e], 0.0), upper)
            if w > 0.0:
                columns[s], weights[s] = indices[e], w
                s += 1
    return out, columns, weights


# --- lists to allowed edges -----------------------------------------------------------------------------------------------


@compiled
def _contains(values, begin, end, wanted):
    for s in range(begin, end):
        if values[s] == wanted:
            return True
    return False


@threaded
def mark_new_edges(nodes, lists, place, indptr, indices):
    """Which entries of `lists` (row r belongs to nodes[r], −1 is no entry) are edges not yet in the CSR, each edge once.

    `place[j]` is the row of node j in `lists`, or −1. Of a pair that lists each other the smaller node speaks.
    """
    rows, width = lists.shape
    new = np.zeros((rows, width), np.bool_)
    for r in prange(rows):
        i = nodes[r]
        for s in range(width):
            j = lists[r, s]
            if j < 0 or _contains(indices, indptr[i], indptr[i + 1], j):
                continue
            new[r, s] = not (j < i and place[j] >= 0 and _contains(lists[place[j]], 0, width, i))
    return new


@threaded
def rows_with(nodes, lists, new, indptr, shares):
    """The indptr of the CSR with the edges marked `new` added at both of their ends.

    The rows are cut into `shares`, each counted by one thread that reads all of the lists.
    """
    n = indptr.size - 1
    out = np.zeros(n + 1, np.int64)
    for share in prange(shares):
        begin, end = share * n // shares, (share + 1) * n // shares
        for i in range(begin, end):
            out[i + 1] = indptr[i + 1] - indptr[i]
        for r in range(lists.shape[0]):
            for s in range(lists.shape[1]):
                if new[r, s]:
                    i, j = nodes[r], lists[r, s]
                    if begin <= i < end:
                        out[i + 1] += 1
                    if begin <= j < end:
                        out[j + 1] += 1
    for i in range(n):
        out[i + 1] += out[i]
    return out


@compiled
def move_rows(indptr, values, out, larger):
    """Rows of `values` to where `out` has them, no earlier, the last one first: `larger` may begin with the same memory."""
    for i in range(indptr.size - 2, -1, -1):
        shift = out[i] - indptr[i]
        for e in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
            larger[e + shift] = values[e]


@threaded
def fill_rows(nodes, lists, distances, new, indptr, out, columns, values, shares):
    """The edges marked `new` into the rows `out`, behind the entries that the rows `indptr` had.

    Shares as in `rows_with`: a row is filled in the order of the lists, whatever their number.
    """
    n = indptr.size - 1
    cursor = np.empty(n, np.int64)
    for share in prange(shares):
        begin, end = share * n // shares, (share + 1) * n // shares
        for i in range(begin, end):
            cursor[i] = out[i] + indptr[i + 1] - indptr[i]
        for r in range(lists.shape[0]):
            for s in range(lists.shape[1]):
                if new[r, s]:
                    i, j = nodes[r], lists[r, s]
                    if begin <= i < end:
                        columns[cursor[i]], values[cursor[i]] = j, distances[r, s]
                        cursor[i] += 1
                    if begin <= j < end:
                        columns[cursor[j]], values[cursor[j]] = i, distances[r, s]
                        cursor[j] += 1


@threaded
def smallest_of_rows(indptr, z, width):
    """The `width` smallest of each row, ascending; inf where it has fewer."""
    n = indptr.size - 1
    out = np.full((n, width), np.inf, z.dtype)
    for i in prange(n):
        for e in range(indptr[i], indptr[i + 1]):
            t = width - 1
            if z[e] < out[i, t]:
                while t > 0 and out[i, t - 1] > z[e]:
                    out[i, t] = out[i, t - 1]
                    t -= 1
                out[i, t] = z[e]
    return out


@threaded
def stretch_edges(indptr, indices, z, stretch):
    """z·stretchᵢ·stretchⱼ of every entry."""
    out = np.empty_like(z)
    for i in prange(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = z[e] * stretch[i] * stretch[indices[e]]
    return out


# --- distances and exact search -------------------------------------------------------------------------------------------


@threaded
def list_distances(Q, X, lists):
    """‖qᵣ − xⱼ‖² for the entries j of row r, summed as Σ(q−x)² so that duplicates give exactly 0; inf where j is −1."""
    rows, width = lists.shape
    out = np.empty((rows, width), X.dtype)
    for r in prange(rows):
        for s in range(width):
            j = lists[r, s]
            if j < 0:
                out[r, s] = np.inf
                continue
            total = 0.0
            for c in range(X.shape[1]):
                difference = np.float64(Q[r, c]) - np.float64(X[j, c])
                total += difference * difference
            out[r, s] = total
    return out


@compiled
def keep_smallest(tile, first_column, own, lists, best):
    """Merge a tile (row r, sample first_column + c) into the `best` smallest of each row, a max-heap; own[r] is left out."""
    rows, width = best.shape
    for r in range(rows):
        for c in range(tile.shape[1]):
            value = tile[r, c]
            if value < best[r, 0] and first_column + c != own[r]:
                hole = 0
                while True:
                    child = 2 * hole + 1
                    if child >= width:
                        break
                    if child + 1 < width and best[r, child + 1] > best[r, child]:
                        child += 1
                    if best[r, child] <= value:
                        break
                    best[r, hole], lists[r, hole] = best[r, child], lists[r, child]
                    hole = child
                best[r, hole], lists[r, hole] = value, first_column + c


@threaded
def sparse_list_distances(q_ptr, q_cols, q_data, x_ptr, x_cols, x_data, lists):
    """`list_distances` for CSR rows with sorted columns."""
    rows, width = lists.shape
    out = np.empty((rows, width), x_data.dtype)
    for r in prange(rows):
        for s in range(width):
            j = lists[r, s]
            if j < 0:
                out[r, s] = np.inf
                continue
            total = 0.0
            a, b = q_ptr[r], x_ptr[j]
            while a < q_ptr[r + 1] or b < x_ptr[j + 1]:
                if b == x_ptr[j + 1] or (a < q_ptr[r + 1] and q_cols[a] < x_cols[b]):
                    difference = np.float64(q_data[a])
                    a += 1
                elif a == q_ptr[r + 1] or x_cols[b] < q_cols[a]:
                    difference = np.float64(x_data[b])
                    b += 1
                else:
                    difference = np.float64(q_data[a]) - np.float64(x_data[b])
                    a += 1
                    b += 1
                total += difference * difference
            out[r, s] = total
    return out


@threaded
def tidy_lists(own, lists, distances, width):
    """Bring the `width` nearest of each row to its front, sorted by (distance, index), −1 at inf where there are fewer.

    Row r belongs to node own[r] (−1 for a new sample). The node itself, −1 and repeats are no neighbours. Works in place.
    """
    for r in prange(lists.shape[0]):
        kept = 0
        for s in range(lists.shape[1]):
            j, z = lists[r, s], distances[r, s]
            if j < 0 or j == own[r] or not z < np.inf or (kept == width and z > distances[r, width - 1]):
                continue
            if _contains(lists[r], 0, kept, j):
                continue
            t = kept if kept < width else width - 1
            if kept == width and z == distances[r, t] and j > lists[r, t]:
                continue
            while t > 0 and (distances[r, t - 1] > z or (distances[r, t - 1] == z and lists[r, t - 1] > j)):
                lists[r, t], distances[r, t] = lists[r, t - 1], distances[r, t - 1]
                t -= 1
            lists[r, t], distances[r, t] = j, z
            kept = min(kept + 1, width)
        lists[r, kept:] = -1
        distances[r, kept:] = np.inf


@compiled
def near_pairs(tile, samples, nodes, limits, stretch):
    """The (row, sample) of every entry, stretched by both ends, below the sum of both limits.

    Row r is nodes[r], column c is samples[c].
    """
    rows, columns = tile.shape
    row, column = np.empty(columns, np.int32), np.empty(columns, np.int32)
    column_limits, column_stretch = limits[samples], stretch[samples]
    count = 0
    for r in range(rows):
        if count + columns > row.size:
            row, column = np.append(row, np.empty_like(row)), np.append(column, np.empty_like(column))
        limit, own_stretch = limits[nodes[r]], stretch[nodes[r]]
        for c in range(columns):
            if tile[r, c] * own_stretch * column_stretch[c] < limit + column_limits[c] and samples[c] != nodes[r]:
                row[count], column[count] = r, samples[c]
                count += 1
    return row[:count].copy(), column[:count].copy()


# --- the Newton step ------------------------------------------------------------------------------------------------------


@threaded
def free_edges(indptr, indices, z, theta, upper, lam):
    """The edges whose weight is strictly between 0 and `upper`, as CSR arrays (indptr, indices)."""
    n = lam.size
    out = np.zeros(n + 1, np.int64)
    for i in prange(n):
        for e in range(indptr[i], indptr[i + 1]):
            w = 0.5 * (lam[i] + lam[indices[e]]) - theta * z[e]
            out[i + 1] += 0.0 < w < upper
    for i in range(n):
        out[i + 1] += out[i]
    columns = np.empty(out[n], np.int32)
    for i in prange(n):
        s = out[i]
        for e in range(indptr[i], indptr[i + 1]):
            w = 0.5 * (lam[i] + lam[indices[e]]) - theta * z[e]
            if 0.0 < w < upper:
                columns[s] = indices[e]
                s += 1
    return out, columns


@threaded
def conjugate_gradients(indptr, indices, diagonal, right, rounds, tol, shares):
    """Solve (diag + ½A)x = right, A the 0/1 adjacency matrix, until the residual is `tol` of what it was.

    Sums run over `shares` of the nodes, so that their order is fixed.
    """
    n = right.size
    x, residual, p, Hp = np.zeros(n), right.copy(), right / diagonal, np.empty(n)
    partial = np.empty(shares)
    rz = _total(right * p)
    stop = tol * tol * rz
    for _ in range(rounds):
        for share in prange(shares):
            total = 0.0
            for i in range(share * n // shares, (share + 1) * n // shares):
                neighbours = 0.0
                for e in range(indptr[i], indptr[i + 1]):
                    neighbours += p[indices[e]]
                Hp[i] = diagonal[i] * p[i] + 0.5 * neighbours
                total += p[i] * Hp[i]
            partial[share] = total
        step = rz / _total(partial)
        for share in prange(shares):
            total = 0.0
            for i in range(share * n // shares, (share + 1) * n // shares):
                x[i] += step * p[i]
                residual[i] -= step * Hp[i]
                total += residual[i] * residual[i] / diagonal[i]
            partial[share] = total
        last, rz = rz, _total(partial)
        if rz <= stop:
            break
        for i in prange(n):
            p[i] = residual[i] / diagonal[i] + (rz / last) * p[i]
    return x


# --- a penalty of the user's own ------------------------------------------------------------------------------------------


@njit(error_model="numpy", fastmath=SUM_FREELY, nogil=True)  # not cached: compiled for the function given
def penalty_sweep(indptr, indices, z, theta, lam, degree):
    """One round of exact updates in place: each node's λ solves Σⱼ max(0, (λ − aⱼ)/2) = degree(λ), aⱼ = 2θz − λⱼ."""
    for i in range(lam.size):
        begin, end = indptr[i], indptr[i + 1]
        a = np.empty(end - begin)
        for e in range(begin, end):
            a[e - begin] = 2.0 * theta * z[e] - lam[indices[e]]
        step, low, high = 1.0, lam[i], lam[i]
        while 0.5 * np.maximum(low - a, 0.0).sum() > degree(low):
            low -= step
            step *= 2.0
        step = 1.0
        while 0.5 * np.maximum(high - a, 0.0).sum() < degree(high):
            high += step
            step *= 2.0
        for _ in range(200):
            middle = 0.5 * (low + high)
            if middle <= low or middle >= high:
                break
            if 0.5 * np.maximum(middle - a, 0.0).sum() < degree(middle):
                low = middle
            else:
                high = middle
        lam[i] = high


@njit(error_model="numpy", nogil=True)
def penalties(d, lam, phi, degree):
    """φ(dᵢ) of every node, and min over d of φ(d) + λᵢd, which is where d = degree(λᵢ)."""
    value, least = np.empty(d.size), np.empty(d.size)
    for i in range(d.size):
        value[i] = phi(d[i])
        best = max(degree(lam[i]), 0.0)
        least[i] = phi(best) + lam[i] * best
    return value, least


# --- the paper's primal-dual scheme ---------------------------------------------------------------------------------------


@threaded
def primal_dual_step(indptr, indices, z, theta, upper, gamma, w, v, p, v_bar, v_next):
    """One forward-backward-forward iteration on (w, v): w in place, v into v_next; p and v_bar hold the proximal points.

    Both copies of an edge are kept and stay equal, so that neither S nor its transpose needs a scatter.
    """
    n = v.size
    for i in prange(n):
        s_w, s_p = 0.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            forward = w[e] - gamma * (2.0 * w[e] + v[i] + v[indices[e]])
            p[e] = min(max(forward - 2.0 * gamma * theta * z[e], 0.0), upper)
            s_w += w[e]
            s_p += p[e]
        forward_v = v[i] + gamma * s_w
        v_bar[i] = 0.5 * (forward_v - np.sqrt(forward_v * forward_v + 4.0 * gamma))
        v_next[i] = v_bar[i] + gamma * (s_p - s_w)
    for i in prange(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            change = 2.0 * (w[e] - p[e]) + (v[i] - v_bar[i]) + (v[j] - v_bar[j])
            w[e] = p[e] + gamma * change


@threaded
def primal_dual_values(indptr, indices, z, theta, upper, w, lam):
    """For any w and λ: every node's degree, its half of Σₑ 2θzw + w², and its half of the dual's Σₑ 2tu − u²."""
    n = lam.size
    degree, energy, conjugate = np.empty(n), np.empty(n), np.empty(n)
    for i in prange(n):
        d, total, dual = 0.0, 0.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            cost = theta * z[e]
            d += w[e]
            total += 0.5 * w[e] * (2.0 * cost + w[e])
            t = 0.5 * (lam[i] + lam[indices[e]]) - cost
            u = min(max(t, 0.0), upper)
            dual += 0.5 * u * (2.0 * t - u)
        degree[i], energy[i], conjugate[i] = d, total, dual
    return degree, energy, conjugate


# --- certifying and growing the support, new samples ----------------------------------------------------------------------


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
def came_in(lists, before):
    """1 for entries that the row did not have `before`, else 0."""
    new = np.zeros(lists.shape, np.int8)
    for r in prange(lists.shape[0]):
        for s in range(lists.shape[1]):
            new[r, s] = not _contains(before[r], 0, before.shape[1], lists[r, s])
    return new


@threaded
def near_new(indptr, indices, new):
    """Which nodes have a new edge, or a neighbour that has one."""
    n = indptr.size - 1
    at, near = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for i in prange(n):
        at[i] = new[indptr[i] : indptr[i + 1]].any()
    for i in prange(n):
        near[i] = at[i] or at[indices[indptr[i] : indptr[i + 1]]].any()
    return near


@threaded
def two_hops(nodes, indptr, indices, new, most):
    """For each of `nodes` its neighbours and theirs, each once, at most `most` (a power of two) of them; −1 fills the row.

    Of paths, only those with a `new` edge count, unless `new` is empty.
    """
    found = np.full((nodes.size, most), -1, np.int32)
    for r in prange(nodes.size):
        i = nodes[r]
        table = np.full(2 * most, -1, np.int32)  # open addressing: who was found already
        count = 0
        for hop in range(2):
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                begin, end = (indptr[j], indptr[j + 1]) if hop == 1 else (e, e + 1)
                for f in range(begin, end):
                    if new.size and not (new[e] or new[f]):
                        continue
                    other = indices[f]
                    slot = (other * 40503) & (2 * most - 1)
                    while table[slot] >= 0 and table[slot] != other:
                        slot = (slot + 1) & (2 * most - 1)
                    if table[slot] < 0 and other != i and count < most:
                        table[slot] = other
                        found[r, count] = other
                        count += 1
    return found


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


# --- the models of Daitch, Kelner and Spielman ----------------------------------------------------------------------------
# In one thread: most of the work, going from weight to weight, cannot be shared, and small problems would wait for threads.
# Edges come once each, as arrays i, j; `indptr, indices, edge` are the same edges in rows, with the place of each in i, j.


@compiled
def edge_rows(i, j, n):
    """The CSR rows (indptr, indices, edge) of edges given once each."""
    indptr = np.zeros(n + 1, np.int64)
    for e in range(i.size):
        indptr[i[e] + 1] += 1
        indptr[j[e] + 1] += 1
    for node in range(n):
        indptr[node + 1] += indptr[node]
    cursor = indptr[:-1].copy()
    indices, edge = np.empty(2 * i.size, np.int32), np.empty(2 * i.size, np.int32)
    for e in range(i.size):
        for node, other in ((i[e], j[e]), (j[e], i[e])):
            indices[cursor[node]], edge[cursor[node]] = other, e
            cursor[node] += 1
    return indptr, indices, edge


@compiled
def laplacian_product(indptr, indices, edge, w, X):
    """Y = LX, row i being Σⱼ wᵢⱼ(xᵢ − xⱼ): differences, so that nothing is lost where X is far from 0."""
    n, d = X.shape
    Y = np.zeros((n, d))
    for i in range(n):
        for s in range(indptr[i], indptr[i + 1]):
            weight, j = w[edge[s]], indices[s]
            if weight != 0.0:
                for c in range(d):
                    Y[i, c] += weight * (X[i, c] - X[j, c])
    return Y


@compiled
def edge_slopes(i, j, X, Y):
    """2(xᵢ − xⱼ)·(yᵢ − yⱼ) for every edge: the gradient of ‖LX‖² at Y = LX, and 2z at Y = X."""
    slopes = np.empty(i.size)
    for e in range(i.size):
        a, b, total = i[e], j[e], 0.0
        for c in range(X.shape[1]):
            total += (X[a, c] - X[b, c]) * (Y[a, c] - Y[b, c])
        slopes[e] = 2.0 * total
    return slopes


@compiled
def row_sums(indptr, edge, w):
    """Sw: the degrees."""
    d = np.empty(indptr.size - 1)
    for i in range(d.size):
        total = 0.0
        for s in range(indptr[i], indptr[i + 1]):
            total += w[edge[s]]
        d[i] = total
    return d


@compiled
def end_sums(i, j, y):
    """Sᵀy: yᵢ + yⱼ for every edge."""
    sums = np.empty(i.size)
    for e in range(i.size):
        sums[e] = y[i[e]] + y[j[e]]
    return sums


@compiled
def _fall(slope, curvature, spare_a, spare_b, stiff_a, stiff_b):
    """How far to go down a slope whose curvature grows by stiffₐ after spareₐ, by stiff_b after spare_b."""
    gone = 0.0
    if spare_b < spare_a:
        spare_a, spare_b, stiff_a, stiff_b = spare_b, spare_a, stiff_b, stiff_a
    for spare, stiff in ((spare_a, stiff_a), (spare_b, stiff_b)):
        if slope <= curvature * (spare - gone):
            break
        slope -= curvature * (spare - gone)
        gone = spare
        curvature += stiff
    return gone + slope / curvature


@compiled
def descend_edges(chosen, i, j, z, X, r, t, w, Y, d, sweeps):
    """Lower ‖LX‖² + Σᵢ rᵢ max(tᵢ − dᵢ, 0)² in place, one weight of the `chosen` edges at a time, there and back by turns.

    Y = LX and d = Sw go along with w. A rising weight may end the shortfall of a node, and then goes less far than it could; a
    falling one goes to its minimum, though its nodes may come to fall short on the way.
    """
    features = X.shape[1]
    for sweep in range(sweeps):
        for k in range(chosen.size):
            e = chosen[k] if sweep % 2 == 0 else chosen[chosen.size - 1 - k]
            a, b, slope = i[e], j[e], 0.0
            for c in range(features):
                slope += (X[a, c] - X[b, c]) * (Y[a, c] - Y[b, c])
            short_a, short_b = max(t[a] - d[a], 0.0), max(t[b] - d[b], 0.0)
            slope = 2.0 * (slope - r[a] * short_a - r[b] * short_b)
            if slope == 0.0 or (slope > 0.0 and w[e] == 0.0):
                continue
            if slope < 0.0:
                curvature = 4.0 * z[e] + 2.0 * (r[a] * (short_a > 0.0) + r[b] * (short_b > 0.0))
                step = -slope / curvature
            else:
                spare_a, spare_b = max(d[a] - t[a], 0.0), max(d[b] - t[b], 0.0)
                step = -min(w[e], _fall(slope, 4.0 * z[e], spare_a, spare_b, 2.0 * r[a], 2.0 * r[b]))
            w[e] += step
            d[a] += step
            d[b] += step
            for c in range(features):
                flow = step * (X[a, c] - X[b, c])
                Y[a, c] += flow
                Y[b, c] -= flow


@compiled
def feasible_shares(indptr, indices, edge, slopes, lam):
    """How much of λᵢ may stay: the least slopeₑ/(λᵢ + λⱼ) of its edges, at most 1. Negative where a slope is."""
    shares = np.ones(lam.size)
    for i in range(lam.size):
        for s in range(indptr[i], indptr[i + 1]):
            slope, ends = slopes[edge[s]], lam[i] + lam[indices[s]]
            if slope < shares[i] * ends:
                shares[i] = slope / ends if ends > 0.0 else -1.0
    return shares


# --- linear systems of a graph: (diag(d) − W)x = right, W symmetric, d at least its row sums -------------------------------


@compiled
def incomplete_cholesky(indptr, indices, w, d):
    """diag(d) − W ≈ CCᵀ, C on the pattern of W below the diagonal, which is what comes in; returns (C there, 1/its diagonal).

    The matrix is diagonally dominant with no positive entry beside the diagonal, so pivots stay positive (Meijerink & van der
    Vorst 1977); where rounding eats one it is put back to a small share of d.
    """
    n = d.size
    factor, inverse, row = np.empty(w.size), np.empty(n), np.zeros(n)
    for i in range(n):
        pivot = d[i]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            value = -w[e]
            for f in range(indptr[j], indptr[j + 1]):
                value -= factor[f] * row[indices[f]]
            value *= inverse[j]
            row[j] = factor[e] = value
            pivot -= value * value
        for e in range(indptr[i], indptr[i + 1]):
            row[indices[e]] = 0.0
        inverse[i] = 1.0 / np.sqrt(max(pivot, 1e-12 * d[i]))
    return factor, inverse


@compiled
def aggregate(indptr, indices, w, largest):
    """Group nodes with the neighbour they hang on most; returns the group of each node, numbered by their first nodes.

    A node joins its strongest neighbour's group while that has fewer than `largest` nodes, or else the strongest one's that has
    room; with none it starts its own.
    """
    n = indptr.size - 1
    group, size = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    count = 0
    for i in range(n):
        if group[i] >= 0:
            continue
        best, strength = -1, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if w[e] > strength and (group[j] < 0 or size[group[j]] < largest):
                best, strength = j, w[e]
        if best < 0 or group[best] < 0:
            group[i] = count
            size[count] = 1
            if best >= 0:
                group[best] = count
                size[count] = 2
            count += 1
        else:
            group[i] = group[best]
            size[group[best]] += 1
    return group


@compiled
def cholesky_solve(indptr, indices, factor, inverse, x):
    """Solve CCᵀx = x in place, for every column of x (n, columns)."""
    n, columns = x.shape
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(columns):
                x[i, k] -= factor[e] * x[indices[e], k]
        for k in range(columns):
            x[i, k] *= inverse[i]
    for i in range(n - 1, -1, -1):
        for k in range(columns):
            x[i, k] *= inverse[i]
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(columns):
                x[indices[e], k] -= factor[e] * x[i, k]


@compiled
def multilevel_solve(indptr, indices, factor, inverse, parent, n, x):
    """In place x[:n] = B x[:n], B ≈ the inverse: the sum over levels of what the level's CCᵀ makes of x summed over groups.

    The levels stand one after the other in the factor and in x, the nodes first; `parent` is the place of a node's group on the
    next level, −1 on the last.
    """
    total, columns = x.shape
    x[n:] = 0.0
    for i in range(total):
        if parent[i] >= 0:
            for k in range(columns):
                x[parent[i], k] += x[i, k]
    cholesky_solve(indptr, indices, factor, inverse, x)
    for i in range(total - 1, -1, -1):
        if parent[i] >= 0:
            for k in range(columns):
                x[i, k] += x[parent[i], k]


@compiled
def _laplacian_product(indptr, indices, w, d, p, product, inner):
    """product = (diag(d) − W)p; inner[k] = Σᵢ p[i, k]·product[i, k]."""
    n, columns = p.shape
    inner[:] = 0.0
    for i in range(n):
        for k in range(columns):
            product[i, k] = d[i] * p[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            for k in range(columns):
                product[i, k] -= w[e] * p[indices[e], k]
        for k in range(columns):
            inner[k] += p[i, k] * product[i, k]


@compiled
def _solve_columns(indptr, indices, w, d, low_ptr, low, factor, inverse, parent, right, x, rounds, tol):
    """Conjugate gradients from x, all columns at once, all levels preconditioning; returns (rounds, largest |residual|/d)."""
    n, columns = x.shape
    product, rz, curvature = np.empty((n, columns)), np.zeros(columns), np.empty(columns)
    _laplacian_product(indptr, indices, w, d, x, product, curvature)
    residual = right - product
    largest = 0.0
    for i in range(n):
        for k in range(columns):
            largest = max(largest, abs(residual[i, k]) / d[i])
    z, p = np.empty((parent.size, columns)), np.zeros((n, columns))
    made = 0
    while made < rounds and largest > tol:
        z[:n] = residual
        multilevel_solve(low_ptr, low, factor, inverse, parent, n, z)
        last = rz.copy()
        rz[:] = 0.0
        for i in range(n):
            for k in range(columns):
                rz[k] += residual[i, k] * z[i, k]
        turn = np.where(last > 0.0, rz / np.where(last > 0.0, last, 1.0), 0.0)
        for i in range(n):
            for k in range(columns):
                p[i, k] = z[i, k] + turn[k] * p[i, k]
        _laplacian_product(indptr, indices, w, d, p, product, curvature)
        step = np.where(curvature > 0.0, rz / np.where(curvature > 0.0, curvature, 1.0), 0.0)
        largest = 0.0
        for i in range(n):
            for k in range(columns):
                x[i, k] += step[k] * p[i, k]
                residual[i, k] -= step[k] * product[i, k]
                largest = max(largest, abs(residual[i, k]) / d[i])
        made += 1
    return made, largest


@threaded
def solve_laplacian(indptr, indices, w, d, low_ptr, low, factor, inverse, parent, right, x, cuts, rounds, tol):
    """`_solve_columns` for groups of columns, cuts[g] to cuts[g + 1], one thread each; x (n, columns) is start and result.

    Returns the rounds made and the largest |residual|/d of each group.
    """
    groups = cuts.size - 1
    made, largest = np.zeros(groups, np.int64), np.zeros(groups)
    for g in prange(groups):
        block = x[:, cuts[g] : cuts[g + 1]].copy()
        wanted = right[:, cuts[g] : cuts[g + 1]].copy()
        made[g], largest[g] = _solve_columns(
            indptr, indices, w, d, low_ptr, low, factor, inverse, parent, wanted, block, rounds, tol
        )
        x[:, cuts[g] : cuts[g + 1]] = block
    return made, largest


# --- along a graph --------------------------------------------------------------------------------------------------------


@compiled
def _root_of(above, i):
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@compiled
def parts(indptr, indices, i, j):
    """The number of each node's connected part, by the edges of a symmetric CSR and the pairs (i, j) besides."""
    n = indptr.size - 1
    above = np.arange(n).astype(np.int32)  # trees, each with the first node of its part on top
    for node in range(n):
        for e in range(indptr[node], indptr[node + 1]):
            if indices[e] < node:
                a, b = _root_of(above, node), _root_of(above, indices[e])
                above[max(a, b)] = min(a, b)
    for e in range(i.size):
        a, b = _root_of(above, i[e]), _root_of(above, j[e])
        above[max(a, b)] = min(a, b)
    count = 0
    for node in range(n):  # whoever is above has come before
        if above[node] == node:
            above[node] = count
            count += 1
        else:
            above[node] = above[above[node]]
    return above


@compiled
def hop_counts(indptr, indices, start, most):
    """Edges on the shortest path from `start` to each node; −1 where it takes more than `most` (−1: no limit), or is none."""
    n = indptr.size - 1
    count, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    count[start] = 0
    queue[0] = start
    begin, end = 0, 1
    while begin < end:
        i = queue[begin]
        begin += 1
        if count[i] == most:
            break
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if count[j] < 0:
                count[j] = count[i] + 1
                queue[end] = j
                end += 1
    return count
