"""Every compiled loop of smoothgraph: free functions on arrays.

The graph of allowed edges comes as `indptr, indices, z`: each edge is stored at both of its ends, so that everything a node
needs stands in its row. `z` is a squared distance and may be float32; all arithmetic is float64. `upper` is the largest weight
an edge may take (inf for none). The dual comes as `lam`, which is λ − base: `base` is 0 but for far outliers, and z is less by
what it adds, so that (λᵢ+λⱼ)/2 − θz is the same and no digits are lost in it. A loop that runs in several threads writes each
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
def node_dual(a, count, s, upper, base):
    """Solve (base + s)·Σⱼ clip((s − aⱼ)/2, 0, upper) = 1 over a[:count], padded, from the guess s; returns (s, sum there).

    Newton's method that keeps 1/(base + s) as it is: on each linear piece of the sum the root is that of a quadratic
    (Theorem 1), and the pieces are nested in s, so equal counts mean the same piece and an exact root. The iterates decrease
    after the first step.
    """
    if upper < np.inf:
        return _bounded_node_dual(a, count, s, upper, base)
    m, total = _free(a, count, s)
    degree = 0.5 * (m * s - total)
    for _ in range(100):  # far more than it takes; rounding may swap two pieces for ever
        last = m
        s = _root(m, total, base) if m > 0 else _root(1, a[:count].min(), base)  # below every term: the first alone
        m, total = _free(a, count, s)
        if m == last:
            break
    return s, degree


@compiled
def _bounded_node_dual(a, count, s, upper, base):
    """`node_dual` with an upper bound: the sum is no longer convex, so a bracket guards the iterates."""
    m, total, full = _piece(a, count, s, upper)
    degree = 0.5 * (m * s - total) + full
    lo, hi = -base, np.inf
    for _ in range(200):
        value = 0.5 * (m * s - total) + full
        if value < 1.0 / (base + s):
            lo = max(lo, s)
        else:
            hi = min(hi, s)
        if value == 0.0:  # below every term: go to where the first alone would do
            a_min = a[:count].min()
            s = _root(1, a_min, base)
            s = s if s - a_min <= 2.0 * upper else max(a_min + 2.0 * upper, 1.0 / upper - base)
        else:
            s = _root(m, total - 2.0 * full, base) if m > 0 else 1.0 / full - base
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
        lam[i] = node_dual(a, _pad(a, count), 0.0, np.inf, 0.0)[0] / np.sqrt(2.0)
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
    begin, end, indices, z, theta, upper, base, limit, lam, fresh, todo, waiting, restless, woken, quiet, relax,
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
                best, degree = node_dual(a, _pad(a, count), lam[i], upper, base[i])
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
def evaluate(indptr, indices, z, theta, upper, lam):
    """At w(λ): every node's degree, number of edges, and its half of Σₑ 2θzw + w²."""
    n = lam.size
    degree, active, energy = np.empty(n), np.empty(n, np.int32), np.empty(n)
    for i in prange(n):
        d, m, total = 0.0, 0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            cost = theta * z[e]
            w = min(max(0.5 * (lam[i] + lam[indices[e]]) - cost, 0.0), upper)
            d += w
            m += w > 0.0
            total += 0.5 * w * (2.0 * cost + w)
        degree[i], active[i], energy[i] = d, m, total
    return degree, active, energy


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
def near_pairs(tile, samples, nodes, limits):
    """The (row, sample) of every entry below the sum of both limits; row r is nodes[r], column c is samples[c]."""
    rows, columns = tile.shape
    row, column = np.empty(columns, np.int32), np.empty(columns, np.int32)
    column_limits = limits[samples]
    count = 0
    for r in range(rows):
        if count + columns > row.size:
            row, column = np.append(row, np.empty_like(row)), np.append(column, np.empty_like(column))
        limit = limits[nodes[r]]
        for c in range(columns):
            if tile[r, c] < limit + column_limits[c] and samples[c] != nodes[r]:
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


# --- growing the support, new samples -------------------------------------------------------------------------------------


@threaded
def two_hops(nodes, indptr, indices, most):
    """For each of `nodes` its neighbours and theirs, each once, at most `most` (a power of two) of them; −1 fills the row."""
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
        s = node_dual(costs, _pad(costs, width), 0.0, upper, base)[0]
        lam[r] = base + s
        for c in range(width):
            w[r, c] = min(max(0.5 * (s - costs[c]), 0.0), upper)
    return lam, w
