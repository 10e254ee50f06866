"""Lists to allowed edges, at both of their ends."""

import numpy as np
from numba import prange

from smoothgraph._kernels.decorators import compiled, threaded
from smoothgraph._kernels.lists import contains


@threaded
def mark_new_edges(nodes, lists, place, indptr, indices):
    """Which entries of `lists` (row r belongs to nodes[r], −1 is no entry) are edges not yet in the CSR, each edge once.

    `place[j]` is the row of node j in `lists`, or −1. Of a pair that lists each other the smaller node speaks.
    """
    rows, width = lists.shape
    new = np.zeros((rows, width), np.bool_)
    for r in prange(rows):
        i = nodes[r]
        for s in range(width):
            j = lists[r, s]
            if j < 0 or contains(indices, indptr[i], indptr[i + 1], j):
                continue
            new[r, s] = not (j < i and place[j] >= 0 and contains(lists[place[j]], 0, width, i))
    return new


@threaded
def rows_with(nodes, lists, new, indptr, shares):
    """The indptr of the CSR with the edges marked `new` added at both of their ends.

    The rows are cut into `shares`, each counted by one thread that reads all of the lists.
    """
    n = indptr.size - 1
    out = np.zeros(n + 1, np.int64)
    for share in prange(shares):
        begin, end = share * n // shares, (share + 1) * n // shares
        for i in range(begin, end):
            out[i + 1] = indptr[i + 1] - indptr[i]
        for r in range(lists.shape[0]):
            for s in range(lists.shape[1]):
                if new[r, s]:
                    i, j = nodes[r], lists[r, s]
                    if begin <= i < end:
                        out[i + 1] += 1
                    if begin <= j < end:
                        out[j + 1] += 1
    for i in range(n):
        out[i + 1] += out[i]
    return out


@compiled
def move_rows(indptr, values, out, larger):
    """Rows of `values` to where `out` has them, no earlier, the last one first: `larger` may begin with the same memory."""
    for i in range(indptr.size - 2, -1, -1):
        shift = out[i] - indptr[i]
        for e in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
            larger[e + shift] = values[e]


@threaded
def fill_rows(nodes, lists, distances, new, indptr, out, columns, values, shares):
    """The edges marked `new` into the rows `out`, behind the entries that the rows `indptr` had.

    Shares as in `rows_with`: a row is filled in the order of the lists, whatever their number.
    """
    n = indptr.size - 1
    cursor = np.empty(n, np.int64)
    for share in prange(shares):
        begin, end = share * n // shares, (share + 1) * n // shares
        for i in range(begin, end):
            cursor[i] = out[i] + indptr[i + 1] - indptr[i]
        for r in range(lists.shape[0]):
            for s in range(lists.shape[1]):
                if new[r, s]:
                    i, j = nodes[r], lists[r, s]
                    if begin <= i < end:
                        columns[cursor[i]], values[cursor[i]] = j, distances[r, s]
                        cursor[i] += 1
                    if begin <= j < end:
                        columns[cursor[j]], values[cursor[j]] = i, distances[r, s]
                        cursor[j] += 1


@threaded
def rows_without(indptr, indices, z, out_ptr, out_indices):
    """The CSR (indptr, indices, z) without the edges of another CSR, both symmetric; all of which it has."""
    n = indptr.size - 1
    rows = indptr - out_ptr
    columns, values = np.empty(rows[n], indices.dtype), np.empty(rows[n], z.dtype)
    for i in prange(n):
        s = rows[i]
        for e in range(indptr[i], indptr[i + 1]):
            if not contains(out_indices, out_ptr[i], out_ptr[i + 1], indices[e]):
                columns[s], values[s] = indices[e], z[e]
                s += 1
    return rows, columns, values


@threaded
def edges_between(indptr, indices, z, labels):
    """Arrays (i, j, z) of the edges between nodes of different labels, each once, from the smaller label."""
    n = labels.size
    place = np.zeros(n + 1, np.int64)
    for node in prange(n):
        for e in range(indptr[node], indptr[node + 1]):
            place[node + 1] += labels[node] < labels[indices[e]]
    for node in range(n):
        place[node + 1] += place[node]
    i, j, distances = np.empty(place[n], np.int32), np.empty(place[n], np.int32), np.empty(place[n], z.dtype)
    for node in prange(n):
        s = place[node]
        for e in range(indptr[node], indptr[node + 1]):
            if labels[node] < labels[indices[e]]:
                i[s], j[s], distances[s] = node, indices[e], z[e]
                s += 1
    return i, j, distances


@threaded
def smallest_of_rows(indptr, z, width):
    """The `width` smallest of each row, ascending; inf where it has fewer."""
    n = indptr.size - 1
    out = np.full((n, width), np.inf, z.dtype)
    for i in prange(n):
        for e in range(indptr[i], indptr[i + 1]):
            t = width - 1
            if z[e] < out[i, t]:
                while t > 0 and out[i, t - 1] > z[e]:
                    out[i, t] = out[i, t - 1]
                    t -= 1
                out[i, t] = z[e]
    return out


@threaded
def stretch_edges(indptr, indices, z, stretch):
    """z·stretchᵢ·stretchⱼ of every entry."""
    out = np.empty_like(z)
    for i in prange(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = z[e] * stretch[i] * stretch[indices[e]]
    return out
