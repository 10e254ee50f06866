"""The models of Daitch, Kelner and Spielman.

In one thread: most of the work, going from weight to weight, cannot be shared, and small problems would wait for threads. Edges
come once each, as arrays i, j; `indptr, indices, edge` are the same edges in rows, with the place of each in i, j."""

import numpy as np

from smoothgraph._kernels.decorators import compiled

UNIT = 2.0**-53  # the relative rounding error of an operation in float64


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
def _least_slope(i, j, X, Y):
    """(a, b, z): 2(xᵢ − xⱼ)·(yᵢ − yⱼ) + 2ε‖xᵢ − xⱼ‖² ≥ a + εb for any ε ≥ 0 however the sums round, z = ‖xᵢ − xⱼ‖².

    A product of two differences is off by 3u of its size, u = 2⁻⁵³, a sum of d of them by (d − 1)u more of all sizes together;
    5u are for the sum of the sizes, for taking off, and for whoever adds a and εb.
    """
    total, size, z = 0.0, 0.0, 0.0
    for c in range(X.shape[1]):
        x = X[i, c] - X[j, c]
        product = x * (Y[i, c] - Y[j, c])
        total += product
        size += abs(product)
        z += x * x
    off = (X.shape[1] + 8) * UNIT
    return 2.0 * (total - off * size), 2.0 * (1.0 - off) * z, z


@compiled
def _lower_shares(i, j, X, Y, lam, shifts, shares):
    """`shares[i]`, one for each of the rising `shifts`, lowered to what the pair i, j allows."""
    least, rise, _ = _least_slope(i, j, X, Y)
    ends = lam[i] + lam[j]
    for s in range(shifts.size):
        slope = least + shifts[s] * rise
        if slope >= ends:  # as it is for all larger shifts
            break
        if slope < shares[i, s] * ends:
            shares[i, s] = slope / ends if ends > 0.0 else -1.0


@compiled
def feasible_shares(first, last, indptr, indices, X, Y, lam, shifts, shares):
    """How much of λᵢ may stay at Y + εX, for each of the rising `shifts` ε: the least slope/(λᵢ + λⱼ) of its edges, at most 1.

    It is negative where no λ ≥ 0 is feasible. What rounding may have added to a slope is taken off.
    """
    for i in range(first, last):
        shares[i] = 1.0
        for s in range(indptr[i], indptr[i + 1]):
            _lower_shares(i, indices[s], X, Y, lam, shifts, shares)


@compiled
def feasible_shares_of_all(first, last, X, Y, lam, shifts, shares):
    """`feasible_shares` where all pairs are edges."""
    for i in range(first, last):
        shares[i] = 1.0
        for j in range(lam.size):
            if j != i:
                _lower_shares(i, j, X, Y, lam, shifts, shares)


@compiled
def violations(first, last, X, Y, lam, excess, scale):
    """λᵢ + λⱼ less the least slope that rounding leaves possible, and 4z + λᵢ + λⱼ, of rows `first` to `last` and all nodes.

    Row i is row i − first of the results; a node with itself has −inf.
    """
    for i in range(first, last):
        for j in range(lam.size):
            least, _, z = _least_slope(i, j, X, Y)
            ends = lam[i] + lam[j]
            excess[i - first, j] = ends - least if j != i else -np.inf
            scale[i - first, j] = 4.0 * z + ends
