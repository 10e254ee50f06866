"""Lists to allowed edges, at both of their ends.

Loops over many rows or nodes take the range `first` to `last` that they work on, and write to these places of their results.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled, exact
from smoothgraph._kernels.lists import contains


@compiled
def mark_new_edges(first, last, nodes, lists, place, indptr, indices, is_new):
    """Which entries of `lists` (row r belongs to nodes[r], −1 is no entry) are edges not yet in the CSR, each edge once.

    `place[j]` is the row of node j in `lists`, or −1. Of two nodes that list each other, the list of the smaller has the mark.
    """
    width = lists.shape[1]
    for r in range(first, last):
        i = nodes[r]
        for s in range(width):
            is_new[r, s] = False
            j = lists[r, s]
            if j < 0 or contains(indices, indptr[i], indptr[i + 1], j):
                continue
            is_new[r, s] = not (j < i and place[j] >= 0 and contains(lists[place[j]], 0, width, i))


@compiled
def count_entries(first, last, nodes, lists, is_new, indptr, counts):
    """How many entries the nodes `first` to `last` have in the CSR and in new edges together.

    All of the lists are read: a node is in the lists of others.
    """
    for i in range(first, last):
        counts[i] = indptr[i + 1] - indptr[i]
    for r in range(lists.shape[0]):
        for s in range(lists.shape[1]):
            if is_new[r, s]:
                i, j = nodes[r], lists[r, s]
                if first <= i < last:
                    counts[i] += 1
                if first <= j < last:
                    counts[j] += 1


@compiled
def move_rows(indptr, values, out, larger):
    """Rows of `values` to where `out` has them, no earlier, the last one first: `larger` may begin with the same memory."""
    for i in range(indptr.size - 2, -1, -1):
        shift = out[i] - indptr[i]
        for e in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
            larger[e + shift] = values[e]


@compiled
def fill_rows(first, last, nodes, lists, distances, is_new, indptr, out, columns, values):
    """The new edges of the nodes `first` to `last` into the rows `out`, behind the entries that the rows `indptr` had.

    All of the lists are read, as in `count_entries`; a row is filled in their order.
    """
    cursor = np.empty(last - first, np.int64)
    for i in range(first, last):
        cursor[i - first] = out[i] + indptr[i + 1] - indptr[i]
    for r in range(lists.shape[0]):
        for s in range(lists.shape[1]):
            if is_new[r, s]:
                i, j = nodes[r], lists[r, s]
                if first <= i < last:
                    columns[cursor[i - first]], values[cursor[i - first]] = j, distances[r, s]
                    cursor[i - first] += 1
                if first <= j < last:
                    columns[cursor[j - first]], values[cursor[j - first]] = i, distances[r, s]
                    cursor[j - first] += 1


@compiled
def smallest_of_rows(first, last, indptr, z, out):
    """The smallest of each row, ascending, as many as a row of `out` holds; inf where there are fewer."""
    width = out.shape[1]
    for i in range(first, last):
        out[i] = np.inf
        for e in range(indptr[i], indptr[i + 1]):
            t = width - 1
            if z[e] < out[i, t]:
                while t > 0 and out[i, t - 1] > z[e]:
                    out[i, t] = out[i, t - 1]
                    t -= 1
                out[i, t] = z[e]


@exact
def scale_edges(first, last, indptr, indices, z, local_scale, out):
    """z·local_scaleᵢ·local_scaleⱼ of every entry, with the same bits at both of its ends."""
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = z[e] * (local_scale[i] * local_scale[indices[e]])
