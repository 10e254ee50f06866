"""The dual of the ℓ2 model: where its Newton steps begin, what the weights are at λ, and P and D there.

The nodes are cut into groups, and a kernel does a range of groups: the sums of a group have a fixed order. `given` is weight
that a node has besides, from bridges.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.dual import SIMD, below, pad


@compiled
def _node(a, count, s, level, slope):
    """Solve s + slope·Σⱼ max(0, s − aⱼ) = level over a[:count], padded, from the guess s; also the number of terms.

    Newton's method: the left side is convex, so that the iterates decrease after the first step.
    """
    m, total = below(a, count, s)
    for _ in range(100):  # far more than it takes; rounding may swap two pieces for ever
        last = m
        s = (level + slope * total) / (1.0 + slope * m)
        m, total = below(a, count, s)
        if m == last:
            break
    return s, m


@compiled
def start_l2(first, last, form, given, level, longest_row, lam, n_neighbors):
    """λ of nodes alone, all their neighbours taken to be like themselves: λ + given + Σⱼ max(0, λ − θz) = level.

    Also the number of their neighbours with weight.
    """
    a = np.empty(longest_row + SIMD)
    for i in range(first, last):
        row, count = form.begin[i], form.end[i] - form.begin[i]
        for s in range(count):
            a[s] = form.theta * form.z[row + s]
        lam[i], n_neighbors[i] = _node(a, pad(a, count), level - 1.0, level - given[i], 1.0)


@compiled
def sweep_l2(first, last, form, given, level, relax, longest_row, lam, moved):
    """λ `moved`: every node goes `relax` of the way to its optimum, the others being as they were.

    The optimum is where λᵢ + given + Σⱼ max(0, (λᵢ + λⱼ)/2 − θz) = level.
    """
    a = np.empty(longest_row + SIMD)
    for i in range(first, last):
        row, count = form.begin[i], form.end[i] - form.begin[i]
        for s in range(count):
            a[s] = 2.0 * form.theta * form.z[row + s] - lam[form.indices[row + s]]
        best, _ = _node(a, pad(a, count), lam[i], level - given[i], 0.5)
        moved[i] = lam[i] + relax * (best - lam[i])


@compiled
def evaluate_l2(first, last, form, given, lam, n_groups, degree, energy, begin, end, columns):
    """At w(λ): every node's degree, and its half of Σₑ 2θzw + w².

    Its edges with weight go into columns[begin[i]] to columns[end[i]], close together, so that little memory is touched.
    """
    n = lam.size
    for group in range(first, last):
        free = form.begin[group * n // n_groups] if group * n // n_groups < n else 0
        for i in range(group * n // n_groups, (group + 1) * n // n_groups):
            begin[i], d, total = free, given[i], 0.0
            for e in range(form.begin[i], form.end[i]):
                cost = form.theta * form.z[e]
                w = max(0.5 * (lam[i] + lam[form.indices[e]]) - cost, 0.0)
                columns[free] = form.indices[e]
                free += w > 0.0
                d += w
                total += 0.5 * w * (2.0 * cost + w)
            degree[i], energy[i], end[i] = d, total, free


@compiled
def sums_l2(first, last, lam, degree, energy, given, sums):
    """Of each group, into the five rows of `sums`: Σ of w², of 2θzw, of the degrees without `given`, of `given`, of λ."""
    n, groups = lam.size, sums.shape[1]
    for group in range(first, last):
        squares, linear, own, fixed, level = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(group * n // groups, (group + 1) * n // groups):
            d = degree[i] - given[i]
            w2 = lam[i] * d - energy[i]  # of both halves together Σₑ w², since Σₑ 2θzw + w² = Σᵢ λᵢd − Σₑ w²
            squares += w2
            linear += energy[i] - w2
            own += d
            fixed += given[i]
            level += lam[i]
        sums[0, group], sums[1, group], sums[2, group], sums[3, group], sums[4, group] = squares, linear, own, fixed, level


@compiled
def values_l2(first, last, lam, degree, given, ratio, mean, sums):
    """Of each group, into two rows of `sums`: Σd² at weights `ratio` times as large, and Σ 1 + 2λ(1 − given) − (λ − mean)²."""
    n, groups = lam.size, sums.shape[1]
    for group in range(first, last):
        primal, dual = 0.0, 0.0
        for i in range(group * n // groups, (group + 1) * n // groups):
            scaled, off = given[i] + ratio * (degree[i] - given[i]), lam[i] - mean
            primal += scaled * scaled
            dual += 1.0 + 2.0 * lam[i] * (1.0 - given[i]) - off * off
        sums[0, group], sums[1, group] = primal, dual
