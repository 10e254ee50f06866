"""Neighbour lists: distances, the smallest of many, neighbours of neighbours.

A list is a row of sample numbers, with −1 where there is no entry. Loops over many rows take the range `first` to `last` of
rows that they work on, and write to the same rows of their results.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled

# Entries of a tile that are looked at together: few hold any that count, and counting is a vectorised loop. The compiler
# vectorises it where its length is CHUNK and places are chunk * CHUNK + c. From first to last it takes 4 to 9 times as long.
CHUNK = 64
MOST_FOLLOWED = 1000  # edges of a node that paths of two edges go along; nodes of a million molecules have 548 at most


@compiled
def list_distances(first, last, Q, X, row_of, lists, within, out):
    """‖qᵣ − xⱼ‖² for the entries j of row r, summed as Σ(q−x)² so that duplicates give exactly 0; inf where j is −1.

    Sample j is row row_of[j] of X, or row j if `row_of` is empty. Beyond within[r] distances are inf; a sum in the precision
    of X, which errs by less than the margin, rules most of these out.
    """
    margin = 1.0 + (X.shape[1] + 8) * np.finfo(X.dtype).eps
    for r in range(first, last):
        for s in range(lists.shape[1]):
            out[r, s] = np.inf
            j = lists[r, s]
            if j < 0:
                continue
            if row_of.size:
                j = row_of[j]
            if within[r] < np.inf:
                rough = X.dtype.type(0.0)
                for c in range(X.shape[1]):
                    rough_difference = Q[r, c] - X[j, c]
                    rough += rough_difference * rough_difference
                if rough > margin * within[r]:
                    continue
            total = 0.0
            for c in range(X.shape[1]):
                difference = np.float64(Q[r, c]) - np.float64(X[j, c])
                total += difference * difference
            out[r, s] = total
            if out[r, s] > within[r]:
                out[r, s] = np.inf


@compiled
def sparse_distance(q_ptr, q_cols, q_data, q, x_ptr, x_cols, x_data, x):
    """The squared distance of two CSR rows with sorted columns."""
    total = 0.0
    a, b, q_end, x_end = q_ptr[q], x_ptr[x], q_ptr[q + 1], x_ptr[x + 1]
    while a < q_end and b < x_end:  # without branches: which column comes next cannot be predicted
        q_col, x_col = q_cols[a], x_cols[b]
        has_q, has_x = np.int64(q_col <= x_col), np.int64(x_col <= q_col)
        difference = np.float64(q_data[a]) * has_q - np.float64(x_data[b]) * has_x
        total += difference * difference
        a += has_q
        b += has_x
    for rest in range(a, q_end):
        total += np.float64(q_data[rest]) * np.float64(q_data[rest])
    for rest in range(b, x_end):
        total += np.float64(x_data[rest]) * np.float64(x_data[rest])
    return total


@compiled
def sparse_list_distances(first, last, q_ptr, q_cols, q_data, x_ptr, x_cols, x_data, row_of, lists, within, out):
    """`list_distances` for CSR rows with sorted columns."""
    for r in range(first, last):
        for s in range(lists.shape[1]):
            out[r, s] = np.inf
            j = lists[r, s]
            if j < 0:
                continue
            if row_of.size:
                j = row_of[j]
            out[r, s] = sparse_distance(q_ptr, q_cols, q_data, r, x_ptr, x_cols, x_data, j)
            if out[r, s] > within[r]:
                out[r, s] = np.inf


@compiled
def replace_largest(best, numbers, value, number):
    """Put a value and its number into a max-heap in place of the largest."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= best.size:
            break
        if child + 1 < best.size and best[child + 1] > best[child]:
            child += 1
        if best[child] <= value:
            break
        best[hole], numbers[hole] = best[child], numbers[child]
        hole = child
    best[hole], numbers[hole] = value, number


@compiled
def keep_smallest(tile, first_column, own, lists, best):
    """Merge a tile (row r, sample first_column + c) into the `best` smallest of each row, a max-heap; own[r] is left out."""
    kind, columns, whole = tile.dtype.type, tile.shape[1], tile.shape[1] // CHUNK
    one, zero = kind(1.0), kind(0.0)
    for r in range(len(best)):
        values = tile[r]
        for chunk in range(-(-columns // CHUNK)):
            if chunk < whole:  # a part that is no whole chunk is looked at without this test
                limit, smaller = kind(best[r, 0]), zero
                for c in range(CHUNK):
                    smaller += one if values[chunk * CHUNK + c] < limit else zero
                if smaller == zero:
                    continue
            for c in range(chunk * CHUNK, min((chunk + 1) * CHUNK, columns)):
                if values[c] < best[r, 0] and first_column + c != own[r]:
                    replace_largest(best[r], lists[r], values[c], first_column + c)


@compiled
def with_twice_the_room(values, count):
    """The first `count` values in an array twice as long; written out, since a copy of slices takes two seconds to compile."""
    larger = np.empty(2 * values.size, values.dtype)
    for s in range(count):
        larger[s] = values[s]
    return larger


@compiled
def near_pairs(tile, samples, nodes, limits, local_scale):
    """The (row, sample) of every entry that, times the local scales of both ends, is below the sum of their limits.

    Row r is nodes[r], column c is samples[c].
    """
    columns, whole = tile.shape[1], tile.shape[1] // CHUNK
    row, column = np.empty(columns, np.int32), np.empty(columns, np.int32)
    column_limits, column_scale = limits[samples], local_scale[samples]
    count = 0
    for r in range(len(tile)):
        if count + columns > row.size:
            row, column = with_twice_the_room(row, count), with_twice_the_room(column, count)
        limit, row_scale, values = limits[nodes[r]], local_scale[nodes[r]], tile[r]
        for chunk in range(-(-columns // CHUNK)):
            if chunk < whole:
                near = 0
                for c in range(CHUNK):
                    at = chunk * CHUNK + c
                    near += values[at] * row_scale * column_scale[at] < limit + column_limits[at]
                if near == 0:
                    continue
            for c in range(chunk * CHUNK, min((chunk + 1) * CHUNK, columns)):
                if values[c] * row_scale * column_scale[c] < limit + column_limits[c] and samples[c] != nodes[r]:
                    row[count], column[count] = r, samples[c]
                    count += 1
    return row[:count].copy(), column[:count].copy()


@compiled
def keep_nearest_outside(tile, first_column, nodes, labels, offset, local_scale, best, nearest):
    """Merge a tile (row r is nodes[r], column c node first_column + c) into the `nearest` node of another label of each row.

    That is where the entry, times the local scales of both ends, is least after the offset of the column is taken off.
    """
    columns, whole = tile.shape[1], tile.shape[1] // CHUNK
    end = first_column + columns
    labels_of, offsets, scales = labels[first_column:end], offset[first_column:end], local_scale[first_column:end]
    for r in range(len(tile)):
        own, row_scale, values = labels[nodes[r]], local_scale[nodes[r]], tile[r]
        for chunk in range(-(-columns // CHUNK)):
            if chunk < whole:
                limit, near = best[r], 0
                for c in range(CHUNK):
                    at = chunk * CHUNK + c
                    near += (values[at] * row_scale * scales[at] - offsets[at] < limit) & (labels_of[at] != own)
                if near == 0:
                    continue
            for c in range(chunk * CHUNK, min((chunk + 1) * CHUNK, columns)):
                value = values[c] * row_scale * scales[c] - offsets[c]
                if value < best[r] and labels_of[c] != own:
                    best[r], nearest[r] = value, first_column + c


@compiled
def contains(values, begin, end, wanted):
    for s in range(begin, end):
        if values[s] == wanted:
            return True
    return False


@compiled
def tidy_lists(first, last, own, lists, distances, width):
    """Bring the `width` nearest of each row to its front, sorted by (distance, index), −1 at inf where there are fewer.

    Row r belongs to node own[r] (−1 for a new sample). The node itself, −1 and repeats are no neighbours. Works in place.
    """
    for r in range(first, last):
        kept = 0
        for s in range(lists.shape[1]):
            j, z = lists[r, s], distances[r, s]
            if j < 0 or j == own[r] or not z < np.inf or (kept == width and z > distances[r, width - 1]):
                continue
            if contains(lists[r], 0, kept, j):
                continue
            t = kept if kept < width else width - 1
            if kept == width and z == distances[r, t] and j > lists[r, t]:
                continue
            while t > 0 and (distances[r, t - 1] > z or (distances[r, t - 1] == z and lists[r, t - 1] > j)):
                lists[r, t], distances[r, t] = lists[r, t - 1], distances[r, t - 1]
                t -= 1
            lists[r, t], distances[r, t] = j, z
            kept = min(kept + 1, width)
        for s in range(kept, lists.shape[1]):
            lists[r, s], distances[r, s] = -1, np.inf


@compiled
def mark_new_entries(first, last, lists, before, is_new):
    """1 for entries that the row did not have `before`, else 0."""
    for r in range(first, last):
        for s in range(lists.shape[1]):
            is_new[r, s] = not contains(before[r], 0, before.shape[1], lists[r, s])


@compiled
def mark_at_new(first, last, indptr, is_new, at_new):
    """Which nodes have a new edge."""
    for i in range(first, last):
        at_new[i] = is_new[indptr[i] : indptr[i + 1]].any()


@compiled
def end_followed(indptr, j):
    """Where the edges of node j end that paths of two edges go along. Two nodes that have a hub in common need not be near."""
    return min(indptr[j + 1], indptr[j] + MOST_FOLLOWED)


@compiled
def two_hops(first, last, nodes, indptr, indices, found):
    """For each of `nodes` its neighbours and theirs, each once, as many as a row of `found` holds; −1 fills the row.

    The length of a row is a power of two.
    """
    most = found.shape[1]
    table = np.empty(2 * most, np.int32)  # those that were found already, by open addressing
    for r in range(first, last):
        i = nodes[r]
        for s in range(most):
            found[r, s] = table[s] = table[most + s] = -1
        count = 0
        for hop in range(2):
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                begin, end = (indptr[j], end_followed(indptr, j)) if hop == 1 else (e, e + 1)
                for f in range(begin, end):
                    if count == most:
                        break
                    other = indices[f]
                    slot = (other * 40503) & (2 * most - 1)
                    while table[slot] >= 0 and table[slot] != other:
                        slot = (slot + 1) & (2 * most - 1)
                    if table[slot] < 0 and other != i:
                        table[slot] = other
                        found[r, count] = other
                        count += 1
