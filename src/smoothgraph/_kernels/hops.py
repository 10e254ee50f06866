"""Hops: how many edges the shortest path between two nodes has. In: a symmetric CSR pattern. Out: a count for each node."""

import numpy as np

from smoothgraph._kernels.decorators import compiled


@compiled
def hop_counts(indptr, indices, start, max_hops):
    """Edges on the shortest path from `start` to each node; −1 where there is no path, or none of at most `max_hops`.

    max_hops = −1 sets no limit.
    """
    n = indptr.size - 1
    count, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    count[start] = 0
    queue[0] = start
    begin, end = 0, 1
    while begin < end:
        i = queue[begin]
        begin += 1
        if count[i] == max_hops:
            break
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if count[j] < 0:
                count[j] = count[i] + 1
                queue[end] = j
                end += 1
    return count
