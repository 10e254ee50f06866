"""The dual of the log model over distinct samples, each of which stands for a group of equal rows.

All rows of a group have the same λ. A row of group g has the weight clip((λ_g + λ_h)/2 − θz, 0, upper) to each of the sizes[h]
rows of a group h, and the weight min(λ_g, upper) to each of the other rows of its own. `upper` may be inf. A group of several
rows has no offset: its nearest rows are its own, so that its λ is not large.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.dual import root, weight


@compiled
def _piece(a, masses, count, own, s, upper):
    """The linear piece at s of own·min(s, upper) + Σⱼ massⱼ·clip((s − aⱼ)/2, 0, upper): its slope, and its value at 0."""
    slope, rest = 0.0, 0.0
    for j in range(count):
        if s - a[j] >= 2.0 * upper:
            rest += masses[j] * upper
        elif s > a[j]:
            slope += 0.5 * masses[j]
            rest -= 0.5 * masses[j] * a[j]
    if own > 0.0 and s < upper:
        slope += own
    elif own > 0.0:
        rest += own * upper
    return slope, rest


@compiled
def _first_guess(a, masses, count, own, upper, offset):
    """An s above which some term is positive, near the root of the first term alone."""
    if own > 0.0:
        return max(1.0 / np.sqrt(own), 1.0 / (own * upper))
    j = np.argmin(a[:count])
    s = root(masses[j], masses[j] * a[j], offset)
    return s if s - a[j] <= 2.0 * upper else max(a[j] + 2.0 * upper, 1.0 / (masses[j] * upper) - offset)


@compiled
def group_dual(a, masses, count, own, s, upper, offset, given):
    """Solve (offset + s)·(given + own·min(s, upper) + Σⱼ massⱼ·clip((s − aⱼ)/2, 0, upper)) = 1 over a[:count], from a guess s.

    Returns s, and the sum at the guess. As in `dual.node_dual` a step goes to the root of the quadratic that holds on the
    linear piece at s, and is exact when the piece is the same as before; a bracket guards the steps.
    """
    slope, rest = _piece(a, masses, count, own, s, upper)
    degree = slope * s + rest + given
    lo, hi = -offset, np.inf
    for _ in range(200):  # far more than it takes
        value = slope * s + rest + given
        if value * (offset + s) < 1.0:
            lo = max(lo, s)
        else:
            hi = min(hi, s)
        if value <= 0.0:
            s = _first_guess(a, masses, count, own, upper, offset)
        elif slope > 0.0:
            s = root(2.0 * slope, -2.0 * (rest + given), offset)
        else:
            s = 1.0 / (rest + given) - offset
        last_slope, last_rest = slope, rest
        slope, rest = _piece(a, masses, count, own, s, upper)
        if value > 0.0 and slope == last_slope and rest == last_rest:  # a guess at the root itself ends here too
            break
        if not lo < s < hi:
            s = 0.5 * (lo + hi) if hi < np.inf else 2.0 * (offset + lo) - offset
            slope, rest = _piece(a, masses, count, own, s, upper)
    return s, degree


@compiled
def start(first, last, form, sizes, offset, longest_row, lam):
    """λ of every group alone, all its neighbours taken to be like itself; 0 with an offset."""
    a, masses = np.empty(longest_row), np.empty(longest_row)
    for i in range(first, last):
        begin, count = form.begin[i], form.end[i] - form.begin[i]
        for s in range(count):
            a[s], masses[s] = form.theta * form.z[begin + s], 2.0 * sizes[form.indices[begin + s]]
        lam[i] = 0.0
        if offset[i] == 0.0:
            lam[i] = group_dual(a, masses, count, sizes[i] - 1.0, 0.0, np.inf, 0.0, 0.0)[0]


@compiled
def sweep(form, sizes, upper, offset, given, relax, longest_row, lam):
    """Every group goes `relax` times the way to the optimum of its own λ, one after the other, in place.

    Returns the sum of the rows' shares of the gap, each before its update.
    """
    a, masses, total = np.empty(longest_row), np.empty(longest_row), 0.0
    for i in range(form.begin.size):
        begin, count, was = form.begin[i], form.end[i] - form.begin[i], lam[i]
        for s in range(count):
            j = form.indices[begin + s]
            a[s], masses[s] = 2.0 * form.theta * form.z[begin + s] - lam[j], sizes[j]
        best, degree = group_dual(a, masses, count, sizes[i] - 1.0, was, upper, offset[i], given[i])
        lam[i] = max(was + relax * (best - was), 0.5 * (best - offset[i]))  # λ at least halves
        x = degree * (offset[i] + was)
        total += sizes[i] * (x - 1.0) * (x - 1.0) / (x + 1.0)  # x − 1 − log x, near 1
    return total


@compiled
def evaluate(first, last, form, sizes, upper, given, lam, degree, n_neighbors, energy):
    """Of a row of every group at w(λ): its degree, number of neighbours, and half of Σₑ 2θzw + w²."""
    for i in range(first, last):
        own, others = min(lam[i], upper) if sizes[i] > 1.0 else 0.0, sizes[i] - 1.0
        d, m, e_sum = given[i] + others * own, others, 0.5 * others * own * own
        for e in range(form.begin[i], form.end[i]):
            j, cost = form.indices[e], form.theta * form.z[e]
            w = weight(lam[i], lam[j], cost, upper)
            d += sizes[j] * w
            m += sizes[j] * (w > 0.0)
            e_sum += 0.5 * sizes[j] * w * (2.0 * cost + w)
        degree[i], n_neighbors[i], energy[i] = d, m, e_sum


@compiled
def new_rows(first, last, a, masses, upper, lam, w):
    """λ and the weights clip((λ − a)/2, 0, upper) of new rows; the entry c of row r stands for masses[r, c] equal samples."""
    for r in range(first, last):
        offset = max(a[r].min(), 0.0)  # of a far sample all costs are large and weights small: count from the least
        costs = a[r] - offset
        s = group_dual(costs, masses[r], a.shape[1], 0.0, 0.0, upper, offset, 0.0)[0]
        lam[r] = offset + s
        for c in range(a.shape[1]):
            w[r, c] = min(max(0.5 * (s - costs[c]), 0.0), upper)
