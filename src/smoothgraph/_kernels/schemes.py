"""Other ways to solve it: the paper's primal-dual scheme, and node by node with a penalty of the user's own."""

import numpy as np
from numba import njit

from smoothgraph._kernels.decorators import SUM_FREELY, compiled


@compiled
def _clipped(value, upper):
    if upper is None:
        return max(value, 0.0)
    return min(max(value, 0.0), upper)


@compiled
def proximal_step(first, last, form, gamma, w, v, p, v_bar, v_next):
    """The first half of a forward-backward-forward iteration on (w, v): the proximal points p and v_bar, and v_next.

    Both copies of an edge are kept and stay equal, so that neither S nor its transpose needs a scatter.
    """
    for i in range(first, last):
        s_w, s_p = 0.0, 0.0
        for e in range(form.begin[i], form.end[i]):
            forward = w[e] - gamma * (2.0 * w[e] + v[i] + v[form.indices[e]])
            p[e] = _clipped(forward - 2.0 * gamma * form.theta * form.z[e], form.upper)
            s_w += w[e]
            s_p += p[e]
        forward_v = v[i] + gamma * s_w
        v_bar[i] = 0.5 * (forward_v - np.sqrt(forward_v * forward_v + 4.0 * gamma))
        v_next[i] = v_bar[i] + gamma * (s_p - s_w)


@compiled
def forward_step(first, last, form, gamma, w, v, p, v_bar):
    """The second half of the iteration: w, in place."""
    for i in range(first, last):
        for e in range(form.begin[i], form.end[i]):
            j = form.indices[e]
            change = 2.0 * (w[e] - p[e]) + (v[i] - v_bar[i]) + (v[j] - v_bar[j])
            w[e] = p[e] + gamma * change


@compiled
def primal_dual_values(first, last, form, w, lam, degree, energy, conjugate):
    """For any w and λ: every node's degree, its half of Σₑ 2θzw + w², and its half of the dual's Σₑ 2tu − u²."""
    for i in range(first, last):
        d, total, dual = 0.0, 0.0, 0.0
        for e in range(form.begin[i], form.end[i]):
            cost = form.theta * form.z[e]
            d += w[e]
            total += 0.5 * w[e] * (2.0 * cost + w[e])
            t = 0.5 * (lam[i] + lam[form.indices[e]]) - cost
            u = _clipped(t, form.upper)
            dual += 0.5 * u * (2.0 * t - u)
        degree[i], energy[i], conjugate[i] = d, total, dual


@njit(error_model="numpy", fastmath=SUM_FREELY, nogil=True)  # not cached: it is compiled for the function given
def _penalty_node(a, s, offset, given, degree):
    """The s that solves given + Σⱼ max(0, (s − aⱼ)/2) = degree(offset + s), from the guess `s`, by bisection."""
    step, low, high = 1.0, s, s
    while given + 0.5 * np.maximum(low - a, 0.0).sum() > degree(offset + low):
        low -= step
        step *= 2.0
    step = 1.0
    while given + 0.5 * np.maximum(high - a, 0.0).sum() < degree(offset + high):
        high += step
        step *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if given + 0.5 * np.maximum(middle - a, 0.0).sum() < degree(offset + middle):
            low = middle
        else:
            high = middle
    return high


@njit(error_model="numpy", fastmath=SUM_FREELY, nogil=True)  # not cached, for the same reason
def penalty_sweep(form, given, lam, degree):
    """One round of exact updates in place, with costs aⱼ = 2θz − λⱼ."""
    for i in range(lam.size):
        begin, end = form.begin[i], form.end[i]
        a = np.empty(end - begin)
        for e in range(begin, end):
            a[e - begin] = 2.0 * form.theta * form.z[e] - lam[form.indices[e]]
        lam[i] = _penalty_node(a, lam[i], 0.0, given[i], degree)


@njit(error_model="numpy", fastmath=SUM_FREELY, nogil=True)  # not cached, for the same reason
def penalty_rows(a, degree):
    """λ and the weights max(0, (λ − a)/2) of new nodes; row r has costs a[r]."""
    lam, w = np.empty(a.shape[0]), np.empty(a.shape)
    for r in range(a.shape[0]):
        offset = max(a[r].min(), 0.0)  # of a far sample all costs are large and weights small: count from the least
        costs = a[r] - offset
        s = _penalty_node(costs, 0.0, offset, 0.0, degree)
        lam[r] = offset + s
        w[r] = np.maximum(0.5 * (s - costs), 0.0)
    return lam, w


@njit(error_model="numpy", nogil=True)  # not cached, for the same reason
def penalties(d, lam, phi, degree):
    """φ(dᵢ) of every node, and min over d of φ(d) + λᵢd, which is where d = degree(λᵢ)."""
    value, least = np.empty(d.size), np.empty(d.size)
    for i in range(d.size):
        value[i] = phi(d[i])
        best = max(degree(lam[i]), 0.0)
        least[i] = phi(best) + lam[i] * best
    return value, least


@njit(error_model="numpy", nogil=True)  # not cached, for the same reason
def wrong_degree(lam, phi, degree):
    """The first node whose d = degree(λ) is not where φ(d) + λd is smallest, as values at d(1 ± 1e-4) show; −1 if none."""
    for i in range(lam.size):
        d = degree(lam[i])
        if not 0.0 < d < np.inf:
            continue
        value = phi(d) + lam[i] * d
        rounding = 1e-10 * (abs(phi(d)) + abs(lam[i]) * d)
        for beside in (0.9999 * d, 1.0001 * d):
            if phi(beside) + lam[i] * beside < value - rounding:
                return i
    return -1
