"""The dual of the ℓ2 model: where its Newton steps begin, what the weights are at λ, and P and D there."""

import numpy as np
from numba import prange

from smoothgraph._kernels.decorators import compiled, threaded
from smoothgraph._kernels.dual import SIMD, _free, _pad, _total

BLOCKS = 64  # of nodes that a thread takes at once


@compiled
def _node(a, count, s, level, slope):
    """Solve s + slope·Σⱼ max(0, s − aⱼ) = level over a[:count], padded, from the guess s; also the number of terms.

    Newton's method: the left side is convex, so that the iterates decrease after the first step.
    """
    m, total = _free(a, count, s)
    for _ in range(100):  # far more than it takes; rounding may swap two pieces for ever
        last = m
        s = (level + slope * total) / (1.0 + slope * m)
        m, total = _free(a, count, s)
        if m == last:
            break
    return s, m


@threaded
def start_l2(begin, end, z, theta, given, level, longest_row):
    """λ of nodes alone, all their neighbours taken to be like themselves: λ + given + Σⱼ max(0, λ − θz) = level.

    Also the number of their neighbours with weight. Row i is begin[i] to end[i].
    """
    n = begin.size
    lam, active = np.empty(n), np.empty(n)
    for block in prange(BLOCKS):
        a = np.empty(longest_row + SIMD)
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            row, count = begin[i], end[i] - begin[i]
            for s in range(count):
                a[s] = theta * z[row + s]
            lam[i], active[i] = _node(a, _pad(a, count), level - 1.0, level - given[i], 1.0)
    return lam, active


@threaded
def sweep_l2(indptr, indices, z, theta, given, level, relax, lam, longest_row):
    """λ after every node went `relax` of the way to its optimum, the others being as they were.

    Which is where λᵢ + given + Σⱼ max(0, (λᵢ + λⱼ)/2 − θz) = level.
    """
    n = lam.size
    out = np.empty(n)
    for block in prange(BLOCKS):
        a = np.empty(longest_row + SIMD)
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            row, count = indptr[i], indptr[i + 1] - indptr[i]
            for s in range(count):
                a[s] = 2.0 * theta * z[row + s] - lam[indices[row + s]]
            best, _ = _node(a, _pad(a, count), lam[i], level - given[i], 0.5)
            out[i] = lam[i] + relax * (best - lam[i])
    return out


@threaded
def evaluate_l2(indptr, indices, z, theta, given, lam, begin, end, columns):
    """At w(λ): every node's degree, and its half of Σₑ 2θzw + w².

    Its edges with weight go into columns[begin[i]] to columns[end[i]], close together, so that little memory is touched.
    """
    n = lam.size
    degree, energy = np.empty(n), np.empty(n)
    for block in prange(BLOCKS):
        free = indptr[block * n // BLOCKS]
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            begin[i], d, total = free, given[i], 0.0
            for e in range(indptr[i], indptr[i + 1]):
                cost = theta * z[e]
                w = max(0.5 * (lam[i] + lam[indices[e]]) - cost, 0.0)
                columns[free] = indices[e]
                free += w > 0.0
                d += w
                total += 0.5 * w * (2.0 * cost + w)
            degree[i], energy[i], end[i] = d, total, free
    return degree, energy


@threaded
def values_l2(lam, degree, energy, given):
    """P/α at the weights, times the ratio that makes all add up to n; D/α; and that ratio."""
    n = lam.size
    squares, linear, level = np.zeros(BLOCKS), np.zeros(BLOCKS), np.zeros(BLOCKS)
    own, fixed = np.zeros(BLOCKS), np.zeros(BLOCKS)
    for block in prange(BLOCKS):
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            d = degree[i] - given[i]
            w2 = lam[i] * d - energy[i]  # of both halves together Σₑ w², since Σₑ 2θzw + w² = Σᵢ λᵢd − Σₑ w²
            squares[block] += w2
            linear[block] += energy[i] - w2
            own[block] += d
            fixed[block] += given[i]
            level[block] += lam[i]
    ratio, mean = (n - _total(fixed)) / _total(own), _total(level) / n
    primal, dual = np.zeros(BLOCKS), np.zeros(BLOCKS)
    for block in prange(BLOCKS):
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            scaled, off = given[i] + ratio * (degree[i] - given[i]), lam[i] - mean
            primal[block] += scaled * scaled
            dual[block] += 1.0 + 2.0 * lam[i] * (1.0 - given[i]) - off * off
    squared = _total(squares)
    return _total(primal) + 2.0 * (ratio * _total(linear) + ratio * ratio * squared), _total(dual) - 2.0 * squared, ratio
