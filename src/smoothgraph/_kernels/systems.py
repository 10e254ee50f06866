"""Linear systems of a graph, (diag(d) − W)x = right.

In: W, symmetric CSR with an empty diagonal, and d, at least its row sums. Out: x (n, columns), one column for each right-hand
side.

Conjugate gradients are preconditioned on several levels: the nodes, groups of nodes, groups of groups. Each level has its own
incomplete Cholesky factor CCᵀ of its own system. The arrays of all levels stand one after the other, the nodes first:

- `low_ptr, low, factor`: C below the diagonal, as CSR. `inverse`: 1/(the diagonal of C).
- `parent`: for each node or group, the place of the group that it is in; −1 on the last level.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled

MAX_STALLED_ROUNDS = 500  # rounds without the residual being halved, after which rounding errors allow no further progress
SMALLEST_PIVOT = 1e-12  # share of d: what a pivot is set to where rounding has made it smaller, or negative


@compiled
def incomplete_cholesky(indptr, indices, w, d):
    """diag(d) − W ≈ CCᵀ, with entries of C only where W has them. In: W below the diagonal. Out: (C there, 1/diagonal of C).

    The matrix is diagonally dominant and has no positive entry off the diagonal, so pivots are positive (Meijerink & van der
    Vorst 1977) up to rounding.
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
        inverse[i] = 1.0 / np.sqrt(max(pivot, SMALLEST_PIVOT * d[i]))
    return factor, inverse


@compiled
def aggregate(indptr, indices, w, max_size):
    """Put nodes into groups with strong neighbours; returns the group of each node. Groups are numbered by their first nodes.

    Of a node's neighbours that have no group, or one of fewer than `max_size` nodes, the node joins the one with the largest
    weight. A node without such a neighbour is a group of its own.
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
            if w[e] > strength and (group[j] < 0 or size[group[j]] < max_size):
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
    """Solve CCᵀy = x for every column of x (n, columns); y replaces x."""
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
    """Replace x[:n] by an approximate solution for it: the sum over the levels of the solutions with their factors.

    A level gets the sums of x over its groups, and each node gets the values of the groups that it is in. The rows of x after
    the first n are working space for the groups.
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
def _solve_columns(indptr, indices, w, d, low_ptr, low, factor, inverse, parent, right, x, max_rounds, tol):
    """Conjugate gradients from x on, for all columns at once; returns (rounds made, largest |residual|/d)."""
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
    while made < max_rounds and largest > tol and stalled < MAX_STALLED_ROUNDS:
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


@compiled
def solve_laplacian(
    first, last, indptr, indices, w, d, low_ptr, low, factor, inverse, parent, right, x, cuts, max_rounds, tol, made, largest
):
    """Conjugate gradients for the groups `first` to `last` of columns; group g has the columns cuts[g] to cuts[g + 1].

    x (n, columns) is where to begin, and is replaced by the result. made[g] and largest[g] become the rounds and the largest
    |residual|/d of group g.
    """
    for g in range(first, last):
        block = x[:, cuts[g] : cuts[g + 1]].copy()
        wanted = right[:, cuts[g] : cuts[g + 1]].copy()
        made[g], largest[g] = _solve_columns(
            indptr, indices, w, d, low_ptr, low, factor, inverse, parent, wanted, block, max_rounds, tol
        )
        x[:, cuts[g] : cuts[g + 1]] = block
