"""The models of Daitch, Kelner and Spielman.

In one thread: most of the work, going from weight to weight, cannot be shared, and small problems would wait for threads. Edges
come once each, as arrays i, j; `indptr, indices, edge` are the same edges in rows, with the place of each in i, j."""

import numpy as np

from smoothgraph._kernels.decorators import compiled


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
