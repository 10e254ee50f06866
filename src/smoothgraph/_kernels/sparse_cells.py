"""Cells of sparse samples, CSR rows with sorted columns: what cells.py has for dense samples."""

import numpy as np

from smoothgraph._kernels.cells import (
    CHUNK,
    cells_of_task,
    filled_up,
    insert_neighbor,
    new_two_hops,
    offer,
    room_for_two_hops,
)
from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.lists import sparse_distance

FREQUENT = 16  # one node in so many has a column that is frequent in a cell: sums over all nodes are vectorised, and faster
SPARSE_MARGIN = 1e-6  # relative, for what rounding to float32 and sums of float64 do to distances: more than enough


@compiled
def columns_of(x_ptr, x_cols, x_data, row_of, first, last, norms, begins, entries, values):
    """The rows of the nodes `first` to `last` by columns, and their squared norms.

    Column c is in the nodes first + entries[begins[c]:begins[c + 1]], with these `values`.
    """
    begins[:] = 0
    for i in range(first, last):
        total = x_data.dtype.type(0.0)
        for e in range(x_ptr[row_of[i]], x_ptr[row_of[i] + 1]):
            begins[x_cols[e] + 1] += 1
            total += x_data[e] * x_data[e]
        norms[i - first] = total
    for c in range(begins.size - 1):
        begins[c + 1] += begins[c]
    for i in range(last - 1, first - 1, -1):  # each end moves down to where its column begins
        for e in range(x_ptr[row_of[i]], x_ptr[row_of[i] + 1]):
            at = begins[x_cols[e] + 1] - 1
            begins[x_cols[e] + 1] = at
            entries[at], values[at] = i - first, x_data[e]
    for c in range(begins.size - 1):
        begins[c] = begins[c + 1]


@compiled
def frequent_columns(begins, entries, values, width, place):
    """Columns that many of the `width` nodes of a cell have, written out: column c is row place[c], or none if that is −1."""
    count = 0
    for c in range(place.size):
        is_frequent = FREQUENT * (begins[c + 1] - begins[c]) > width
        place[c] = count if is_frequent else -1
        count += is_frequent
    frequent = np.zeros((count, width), values.dtype)
    for c in range(place.size):
        if place[c] >= 0:
            for e in range(begins[c], begins[c + 1]):
                frequent[place[c], entries[e]] = values[e]
    return frequent


@compiled
def most_entries(x_ptr, row_of, ptr):
    """The most members of a cell, and the most stored entries of their rows."""
    members, entries = 0, 0
    for cell in range(ptr.size - 1):
        stored = 0
        for i in range(ptr[cell], ptr[cell + 1]):
            stored += x_ptr[row_of[i] + 1] - x_ptr[row_of[i]]
        members, entries = max(members, ptr[cell + 1] - ptr[cell]), max(entries, stored)
    return members, entries


@compiled
def look_into_cells_sparse(first, x_ptr, x_cols, x_data, d, row_of, ptr, probed, keys, unit, room):
    """`look_into_cells` for CSR rows of d features; `room` is what `most_entries` returns."""
    which, begins, members = cells_of_task(probed, ptr.size - 1)
    begin_of, entries = np.empty(d + 2, np.int64), np.empty(room[1], np.int32)
    values, norms = np.empty(room[1], x_data.dtype), np.empty(room[0] + CHUNK, x_data.dtype)
    tile, place = np.empty(norms.size, x_data.dtype), np.empty(d, np.int32)
    rough, hits = np.empty(1, np.float32), np.empty(CHUNK + 1, np.int32)
    bits, limits, last = rough.view(np.int32), keys.view(np.float32), keys.shape[1] - 1
    for t in range(which.size):
        begin, end = ptr[which[t]], ptr[which[t] + 1]
        columns_of(x_ptr, x_cols, x_data, row_of, begin, end, norms, begin_of, entries, values)
        width = filled_up(norms, end - begin)
        frequent = frequent_columns(begin_of, entries, values, width, place)
        for m in range(begins[t], begins[t + 1]):
            r = members[m]
            row, shift = row_of[first + r], x_data.dtype.type(0.0)
            tile[:width] = 0
            for e in range(x_ptr[row], x_ptr[row + 1]):
                shift += x_data[e] * x_data[e]
                factor, column = x_data.dtype.type(-2.0) * x_data[e], x_cols[e]
                if place[column] >= 0:
                    written = frequent[place[column]]
                    for c in range(width):
                        tile[c] += factor * written[c]
                else:
                    for f in range(begin_of[column], begin_of[column + 1]):
                        tile[entries[f]] += factor * values[f]
            offer(tile[:width], norms, shift, unit, begin, first + r, keys[r], limits[r], last, rough, bits, hits)


@compiled
def follow_new_sparse(
    first, last, x_ptr, x_cols, x_data, d, row_of, cells, home, looked_into, indptr, indices, is_new, until, at_new, lists, z
):
    """`follow_new` for CSR rows of d features, with sorted columns. Products with a row that is written out rule most out."""
    room = room_for_two_hops(cells)
    found, dense = room[3], np.zeros(d, np.float64)
    for i in range(first, last):
        count = new_two_hops(i, looked_into, home, indptr, indices, is_new, until, at_new, room)
        if count == 0:
            continue
        row, norm, near = row_of[i], 0.0, 0
        for e in range(x_ptr[row], x_ptr[row + 1]):
            dense[x_cols[e]] = x_data[e]
            norm += np.float64(x_data[e]) * np.float64(x_data[e])
        for s in range(count):
            other, total, largest = row_of[found[s]], norm, norm
            for e in range(x_ptr[other], x_ptr[other + 1]):
                value = np.float64(x_data[e])
                total += value * (value - 2.0 * dense[x_cols[e]])
                largest += value * value
            found[near] = found[s]
            near += total <= z[i, -1] + SPARSE_MARGIN * (largest + z[i, -1])
        for e in range(x_ptr[row], x_ptr[row + 1]):
            dense[x_cols[e]] = 0.0
        for s in range(near):
            total = sparse_distance(x_ptr, x_cols, x_data, row, x_ptr, x_cols, x_data, row_of[found[s]])
            insert_neighbor(lists[i], z[i], found[s], z.dtype.type(total))
