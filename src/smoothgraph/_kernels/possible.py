"""Possible pairs: pairs outside the lists of both of their ends that may have weight for all that is known of the ends.

What is known of node i is row i of `ends`: its limit, local scale, reach and ratio; fit/possible_pairs.py has the mathematics,
and says what levels are.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.lists import CHUNK, contains, end_followed, with_twice_the_room

LIMIT, SCALE, REACH, RATIO = range(4)  # columns of `ends`
ROUNDED_UP = 1.0 + 1e-9  # room for rounding


@compiled
def harmless_levels(ends, i):
    """From which level to which other nodes of at least the ratio of node i make no possible pair with it.

    None do if this is (inf, 0).
    """
    ratio = ends[i, RATIO]
    if not ratio >= 1.0:
        return np.inf, 0.0
    level, spread = ends[i, SCALE] ** 2 * ends[i, REACH], (ratio + np.sqrt(ratio * ratio - 1.0)) ** 2
    return level / spread * ROUNDED_UP, level * spread / ROUNDED_UP


@compiled
def level_ranges(first, last, indptr, indices, levels, lowest, highest):
    """The lowest and the highest level of each node's neighbours."""
    for m in range(first, last):
        lowest[m], highest[m] = np.inf, 0.0
        for e in range(indptr[m], end_followed(indptr, m)):
            level = levels[indices[e]]
            lowest[m], highest[m] = min(lowest[m], level), max(highest[m], level)


@compiled
def possible_two_hops(nodes, indptr, indices, ends, lowest, highest, seen):
    """The possible pairs (i, j) of i in `nodes` and j a neighbour of a neighbour, of at least the ratio of i, but no edge of i.

    `lowest` and `highest` are the level ranges: most neighbours have no other neighbours than harmless ones. `seen` has the
    node that each node was last seen from; no node of `nodes` is in it yet.
    """
    left, right = np.empty(1024, np.int32), np.empty(1024, np.int32)
    count = 0
    for i in nodes:
        if ends[i, REACH] == np.inf:  # every pair is an edge
            continue
        low, high = harmless_levels(ends, i)
        for e in range(indptr[i], indptr[i + 1]):
            m = indices[e]
            if lowest[m] >= low and highest[m] <= high:
                continue
            if seen[i] != i:
                seen[i] = i
                for f in range(indptr[i], indptr[i + 1]):
                    seen[indices[f]] = i
            end = end_followed(indptr, m)
            while count + end - indptr[m] > left.size:
                left, right = with_twice_the_room(left, count), with_twice_the_room(right, count)
            for f in range(indptr[m], end):
                j = indices[f]
                together = ends[i, LIMIT] + ends[j, LIMIT]
                if together <= ends[i, SCALE] * ends[j, SCALE] * max(ends[i, REACH], ends[j, REACH]):
                    continue
                if ends[j, RATIO] >= ends[i, RATIO] and seen[j] != i:
                    seen[j] = i
                    left[count], right[count] = i, j
                    count += 1
    return left[:count].copy(), right[:count].copy()


@compiled
def possible_anywhere(nodes, indptr, indices, ends, order, levels, limits, scales, reaches):
    """The same with j any node. `order` sorts the nodes by level; `levels` and columns of `ends` are in this order."""
    n = order.size
    left, right = np.empty(n, np.int32), np.empty(n, np.int32)
    count = 0
    for i in nodes:
        if ends[i, REACH] == np.inf:
            continue
        low, high = harmless_levels(ends, i)
        if count + n > left.size:
            left, right = with_twice_the_room(left, count), with_twice_the_room(right, count)
        below, above = (np.searchsorted(levels, low), np.searchsorted(levels, high, side="right")) if high > 0.0 else (0, 0)
        for begin, end in ((0, below), (above, n)):
            whole = (end - begin) // CHUNK
            for chunk in range(-(-(end - begin) // CHUNK)):
                first = begin + chunk * CHUNK
                if chunk < whole:
                    possible = 0
                    for c in range(CHUNK):
                        nearest = ends[i, SCALE] * scales[first + c] * max(ends[i, REACH], reaches[first + c])
                        possible += ends[i, LIMIT] + limits[first + c] > nearest
                    if possible == 0:
                        continue
                for p in range(first, min(first + CHUNK, end)):
                    nearest = ends[i, SCALE] * scales[p] * max(ends[i, REACH], reaches[p])
                    j = order[p]
                    if not ends[i, LIMIT] + limits[p] > nearest or ends[j, RATIO] < ends[i, RATIO] or j == i:
                        continue
                    if not contains(indices, indptr[i], indptr[i + 1], j):
                        left[count], right[count] = i, j
                        count += 1
    return left[:count].copy(), right[:count].copy()
