"""Along a graph: its parts, hops, and linear systems (diag(d) − W)x = right, W symmetric, d at least its row sums."""

import numpy as np
from numba import prange

from smoothgraph._kernels.decorators import compiled, threaded
from smoothgraph._kernels.dual import weight

STALLED = 500  # rounds of conjugate gradients in which the residual is not even halved: rounding leaves no more


@compiled
def _root_of(above, i):
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@compiled
def _unite(above, i, j):
    a, b = _root_of(above, i), _root_of(above, j)
    above[max(a, b)] = min(a, b)


@compiled
def _numbered(above):
    """Parts by number, from trees with the first node of each part on top; in place."""
    count = 0
    for node in range(above.size):  # whoever is above has come before
        if above[node] == node:
            above[node] = count
            count += 1
        else:
            above[node] = above[above[node]]
    return above


@compiled
def parts(indptr, indices):
    """The number of each node's connected part, by the edges of a symmetric CSR."""
    above = np.arange(indptr.size - 1).astype(np.int32)
    for i in range(above.size):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] < i:
                _unite(above, i, indices[e])
    return _numbered(above)


@compiled
def weighted_parts(begin, end, indices, z, theta, upper, lam, joint_i, joint_j):
    """`parts` by the edges that have weight at λ, row i being begin[i] to end[i], and by the joints."""
    above = np.arange(lam.size).astype(np.int32)
    for i in range(lam.size):
        for e in range(begin[i], end[i]):
            if indices[e] < i and weight(lam[i], lam[indices[e]], theta * z[e], upper) > 0.0:
                _unite(above, i, indices[e])
    for e in range(joint_i.size):
        _unite(above, joint_i[e], joint_j[e])
    return _numbered(above)


@compiled
def spanning_forest(order, i, j, n):
    """Kruskal's algorithm: the places of the pairs (i, j) of n nodes, taken in this order, that join two trees."""
    above, chosen = np.arange(n).astype(np.int32), np.empty(n, np.int64)
    count = 0
    for place in order:
        if _root_of(above, i[place]) != _root_of(above, j[place]):
            _unite(above, i[place], j[place])
            chosen[count] = place
            count += 1
    return chosen[:count].copy()


@compiled
def small_parts(starts, begin, end, indices, z, theta, upper, lam, joint_ptr, joints, most):
    """The parts of at most `most` nodes that the nodes `starts` are in, by number; everybody else has 0, if there is anybody.

    Edges are those of `weighted_parts`, the joints given as CSR rows. A search ends where it meets one that grew too large.
    """
    label, queue, large = np.zeros(lam.size, np.int32), np.empty(most, np.int32), -1
    count = 0
    for start in starts:
        if label[start] != 0:
            continue
        count += 1
        label[start], queue[0] = count, start
        size, done, closed = 1, 0, True
        while closed and done < size:
            i = queue[done]
            done += 1
            own = end[i] - begin[i]
            for s in range(own + joint_ptr[i + 1] - joint_ptr[i]):
                e = begin[i] + s
                j = indices[e] if s < own else joints[joint_ptr[i] + s - own]
                if label[j] == count or (s < own and not weight(lam[i], lam[j], theta * z[e], upper) > 0.0):
                    continue
                closed = size < most and label[j] != large
                if not closed:
                    break
                label[j], queue[size] = count, j
                size += 1
        if not closed:
            label[queue[:size]] = large
            count -= 1
    label = np.maximum(label, 0)
    return label - label.min()


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
    made, best, stalled = 0, largest, 0
    while made < rounds and largest > tol and stalled < STALLED:
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
        made, stalled = made + 1, stalled + 1
        if largest < 0.5 * best:
            best, stalled = largest, 0
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
