"""Other ways to solve it: the paper's primal-dual scheme, and node by node with a penalty of the user's own."""

import numpy as np
from numba import njit, prange

from smoothgraph._kernels.decorators import SUM_FREELY, threaded


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
