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


@compiled
def _leads_out(i, labels, largest, begin, end, indices, z, theta, lam, found, costs):
    """The edges of node i with nodes of other labels, of those with the largest part only the cheapest: places and costs.

    What they cost is θz − (λᵢ+λⱼ)/2. Returns their number; `found` and `costs` may be empty, to count alone.
    """
    count, least, cheapest = 0, np.inf, -1
    for e in range(begin, end):
        label = labels[indices[e]]
        if label == labels[i]:
            continue
        cost = theta * z[e] - 0.5 * (lam[i] + lam[indices[e]])
        if label == largest:
            if cheapest < 0 or cost < least:
                least, cheapest = cost, e
            continue
        if found.size:
            found[count], costs[count] = e, cost
        count += 1
    if cheapest >= 0:
        if found.size:
            found[count], costs[count] = cheapest, least
        count += 1
    return count


@threaded
def edges_between(nodes, labels, largest, indptr, indices, z, theta, lam):
    """Edges that lead from `nodes`, none of them in the `largest` part, to other parts: arrays (i, place in the CSR, cost).

    Of a node's edges with the largest part only the cheapest is among them.
    """
    place = np.zeros(nodes.size + 1, np.int64)
    no_places, no_costs = np.empty(0, np.int64), np.empty(0)
    for r in prange(nodes.size):
        i = nodes[r]
        ends = indptr[i], indptr[i + 1]
        place[r + 1] = _leads_out(i, labels, largest, *ends, indices, z, theta, lam, no_places, no_costs)
    for r in range(nodes.size):
        place[r + 1] += place[r]
    owner, found, costs = np.empty(place[-1], np.int32), np.empty(place[-1], np.int64), np.empty(place[-1])
    for r in prange(nodes.size):
        i, first, last = nodes[r], place[r], place[r + 1]
        ends = indptr[i], indptr[i + 1]
        if first < last:
            owner[first:last] = i
            _leads_out(i, labels, largest, *ends, indices, z, theta, lam, found[first:last], costs[first:last])
    return owner, found, costs


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
