"""Along a graph: its parts."""

import numpy as np

from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.dual import weight


@compiled
def _root_of(above, i):
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@compiled
def _unite(above, i, j):
    a, b = _root_of(above, i), _root_of(above, j)
    above[max(a, b)] = min(a, b)


@compiled
def _numbered(above):
    """Parts by number, from trees with the first node of each part on top; in place."""
    count = 0
    for node in range(above.size):  # whoever is above has come before
        if above[node] == node:
            above[node] = count
            count += 1
        else:
            above[node] = above[above[node]]
    return above


@compiled
def parts(indptr, indices):
    """The number of each node's connected part, by the edges of a symmetric CSR."""
    above = np.arange(indptr.size - 1).astype(np.int32)
    for i in range(above.size):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] < i:
                _unite(above, i, indices[e])
    return _numbered(above)


@compiled
def weighted_parts(begin, end, indices, z, theta, upper, lam, joint_i, joint_j):
    """`parts` by the edges that have weight at λ, row i being begin[i] to end[i], and by the joints."""
    above = np.arange(lam.size).astype(np.int32)
    for i in range(lam.size):
        for e in range(begin[i], end[i]):
            if indices[e] < i and weight(lam[i], lam[indices[e]], theta * z[e], upper) > 0.0:
                _unite(above, i, indices[e])
    for e in range(joint_i.size):
        _unite(above, joint_i[e], joint_j[e])
    return _numbered(above)


@compiled
def spanning_forest(order, i, j, n):
    """Kruskal's algorithm: the places of the pairs (i, j) of n nodes, taken in this order, that join two trees."""
    above, chosen = np.arange(n).astype(np.int32), np.empty(n, np.int64)
    count = 0
    for place in order:
        if _root_of(above, i[place]) != _root_of(above, j[place]):
            _unite(above, i[place], j[place])
            chosen[count] = place
            count += 1
    return chosen[:count].copy()


@compiled
def small_parts(starts, begin, end, indices, z, theta, upper, lam, joint_ptr, joints, most):
    """The parts of at most `most` nodes that the nodes `starts` are in, by number; everybody else has 0, if there is anybody.

    Edges are those of `weighted_parts`, the joints given as CSR rows. A search ends where it meets one that grew too large.
    """
    label, queue, large = np.zeros(lam.size, np.int32), np.empty(most, np.int32), -1
    count = 0
    for start in starts:
        if label[start] != 0:
            continue
        count += 1
        label[start], queue[0] = count, start
        size, done, closed = 1, 0, True
        while closed and done < size:
            i = queue[done]
            done += 1
            own = end[i] - begin[i]
            for s in range(own + joint_ptr[i + 1] - joint_ptr[i]):
                e = begin[i] + s
                j = indices[e] if s < own else joints[joint_ptr[i] + s - own]
                if label[j] == count or (s < own and not weight(lam[i], lam[j], theta * z[e], upper) > 0.0):
                    continue
                closed = size < most and label[j] != large
                if not closed:
                    break
                label[j], queue[size] = count, j
                size += 1
        if not closed:
            label[queue[:size]] = large
            count -= 1
    label = np.maximum(label, 0)
    return label - label.min()
