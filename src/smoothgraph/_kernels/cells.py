"""Cells of samples: the nearest members of the cells that a sample looks into, votes for more cells, neighbours of neighbours.

Nodes have the numbers of the order of cells: cell c has the nodes ptr[c] to ptr[c + 1] − 1, and node i is row row_of[i] of X. A
list of candidates is kept as ascending *keys* of 64 bits: the bits of a distance in float32, which for positive numbers are
ordered as the numbers are, above the number of a node. Of equal distances the smaller number counts, in whatever order they
come. Loops over a range `first` to `last` of nodes write to the rows of these nodes.
"""

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  np.dot calls this BLAS, which must be loaded before its threads are limited

from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.lists import contains

CHUNK = 64  # distances that are compared with the largest key together, by a vectorised loop
TILE_ROWS, TILE_COLUMNS = 256, 512  # of a matrix product: a tile, 512 kB in float32, stays in the cache
FEWEST_ROWS = 3  # fewer rows are not worth a matrix product
NO_KEY = np.int64(0x7F800000) << 32  # the least key at distance inf: no such key is let in
NUMBER = np.int64(0x7FFFFFFF)  # the bits of a key that are the number
SLOTS = 1024  # of the table of nodes met; a power of two
MOST_UNTIL = 127  # what int8 holds
MOST_FOUND, LONGEST = 448, 64  # neighbours of neighbours that are looked at, and neighbours of one node


@compiled
def insert_key(keys, key):
    """Put a key into an ascending array; the largest drops out. There are no branches: it is a handful of instructions."""
    before = np.int64(-1)
    for s in range(keys.size):
        here = keys[s]
        keys[s] = min(here, max(before, key))
        before = here


@compiled
def offer(values, norms, shift, unit, number, own, keys, limits, last, rough, bits, hits):
    """Offer unit·max(0, values[c] + norms[c] + shift), node number + c, to ascending keys; `own` is left out.

    There are whole chunks of values, filled up by norms of inf, since loops of a fixed length are vectorised to their end. A
    chunk that has nothing nearer than keys[last] is passed over. `limits` are the keys as pairs of float32; `rough` and `bits`,
    of one element, are the same memory.
    """
    one, zero = norms.dtype.type(1.0), norms.dtype.type(0.0)
    limit = norms.dtype.type(limits[2 * last + 1]) / unit - shift
    for chunk in range(values.size // CHUNK):  # the compiler vectorises chunk * CHUNK + c, but no steps of CHUNK
        near = zero
        for c in range(CHUNK):
            near += one if values[chunk * CHUNK + c] + norms[chunk * CHUNK + c] <= limit else zero
        if near == zero:
            continue
        count = 0
        for c in range(CHUNK):
            hits[count] = chunk * CHUNK + c
            count += values[chunk * CHUNK + c] + norms[chunk * CHUNK + c] <= limit
        for h in range(count):
            c = hits[h]
            rough[0] = max(zero, (values[c] + norms[c] + shift) * unit)
            key = (np.int64(bits[0]) << 32) | (number + c)
            if key < keys[last] and number + c != own:
                insert_key(keys, key)
        limit = norms.dtype.type(limits[2 * last + 1]) / unit - shift


@compiled
def smallest_columns(tile, norms, out):
    """out[r]: the columns c of the smallest tile[r, c] + norms[c], the smallest first."""
    count = out.shape[1]
    best = np.empty(count, tile.dtype)
    for r in range(len(tile)):
        best[:] = np.inf
        out[r, :] = -1
        for c in range(tile.shape[1]):
            value = tile[r, c] + norms[c]
            if not value < best[count - 1]:
                continue
            s = count - 1
            while s > 0 and best[s - 1] > value:
                best[s], out[r, s] = best[s - 1], out[r, s - 1]
                s -= 1
            best[s], out[r, s] = value, c


@compiled
def cells_of_task(probed, cells):
    """(cells, ptr, rows): rows[ptr[t]:ptr[t + 1]] are those of `probed` that name the cell cells[t]; −1 names none."""
    rows, width = probed.shape
    place, which = np.full(cells, -1, np.int32), np.empty(min(cells, rows * width), np.int32)
    ptr = np.zeros(which.size + 2, np.int64)
    found = 0
    for p in range(width):  # the nearest cells of all rows come first: later ones then have little to add
        for r in range(rows):
            c = probed[r, p]
            if c >= 0:
                if place[c] < 0:
                    place[c] = found
                    which[found] = c
                    found += 1
                ptr[place[c] + 2] += 1
    for t in range(found):
        ptr[t + 2] += ptr[t + 1]
    members = np.empty(rows * width, np.int32)
    for p in range(width):
        for r in range(rows):
            if probed[r, p] >= 0:
                t = place[probed[r, p]]
                members[ptr[t + 1]] = r
                ptr[t + 1] += 1
    return which[:found], ptr[: found + 1], members


@compiled
def first_keys(lists, z, home, probed, unit, width):
    """Keys of the entries that lists have already, and room for others.

    Refinement finds nodes in cells that were not looked into. Those in cells that are looked into now would be met again there,
    at a distance that is rounded otherwise, and be in the list twice: they are left out.
    """
    keys = np.full((len(lists), width), NO_KEY, np.int64)
    rough = np.empty(1, np.float32)
    bits = rough.view(np.int32)
    for r in range(len(lists)):
        for s in range(lists.shape[1]):
            if lists[r, s] >= 0 and not contains(probed[r], 0, probed.shape[1], home[lists[r, s]]):
                rough[0] = z[r, s] * unit
                key, t = (np.int64(bits[0]) << 32) | lists[r, s], s
                while t > 0 and keys[r, t - 1] > key:  # entries whose distances differ by less than float32 can tell
                    keys[r, t] = keys[r, t - 1]
                    t -= 1
                keys[r, t] = key
    return keys


@compiled
def gather(X, row_of, origin, first, out, norms):
    """Rows of the nodes from `first` on, counted from `origin`, and their squared norms."""
    for r in range(len(out)):
        row = row_of[first + r]
        total = X.dtype.type(0.0)
        for c in range(X.shape[1]):
            value = X[row, c] - origin[c]
            out[r, c] = value
            total += value * value
        norms[r] = total


@compiled
def filled_up(norms, width):
    """The width up to the end of a chunk; norms of inf say that there is nothing in the last columns."""
    end = -(-width // CHUNK) * CHUNK
    for c in range(width, end):
        norms[c] = np.inf
    return end


@compiled
def look_into_cells(first, origin, X, row_of, ptr, probed, keys, unit):
    """Let the keys of node first + r have the nearest members of the cells probed[r].

    Distances are computed from products of rows counted from `origin`: the nearer that is to them, the less is rounded.
    """
    rows, d = len(probed), X.shape[1]
    own, shift = np.empty((rows, d), X.dtype), np.empty(rows, X.dtype)
    gather(X, row_of, origin, first, own, shift)
    which, begins, members = cells_of_task(probed, ptr.size - 1)
    Q, tiles = np.empty((TILE_ROWS, d), X.dtype), np.empty(TILE_ROWS * TILE_COLUMNS, X.dtype)
    M, norms = np.zeros((TILE_COLUMNS, d), X.dtype), np.empty(TILE_COLUMNS, X.dtype)
    rough, hits = np.empty(1, np.float32), np.empty(CHUNK + 1, np.int32)
    bits, limits, last = rough.view(np.int32), keys.view(np.float32), keys.shape[1] - 1
    for t in range(which.size):
        cell = which[t]
        for column in range(ptr[cell], ptr[cell + 1], TILE_COLUMNS):
            width = min(TILE_COLUMNS, ptr[cell + 1] - column)
            gather(X, row_of, origin, column, M[:width], norms)
            width = filled_up(norms, width)
            for begin in range(begins[t], begins[t + 1], TILE_ROWS):
                size = min(TILE_ROWS, begins[t + 1] - begin)
                for r in range(size):
                    for c in range(d):
                        Q[r, c] = X.dtype.type(-2.0) * own[members[begin + r], c]
                tile = tiles[: size * width].reshape(size, width)
                if size < FEWEST_ROWS:
                    for r in range(size):
                        for c in range(width):
                            total = X.dtype.type(0.0)
                            for f in range(d):
                                total += Q[r, f] * M[c, f]
                            tile[r, c] = total
                else:
                    np.dot(Q[:size], M[:width].T, tile)
                for r in range(size):
                    i = members[begin + r]
                    offer(tile[r], norms, shift[i], unit, column, first + i, keys[i], limits[i], last, rough, bits, hits)


@compiled
def measure_keys(first, X, row_of, keys, lists, z):
    """The nearest of the keys of node first + r as row r of the lists, by exact distances, ascending by (distance, number)."""
    width = lists.shape[1]
    for r in range(len(lists)):
        row, kept = row_of[first + r], 0
        for s in range(keys.shape[1]):
            if keys[r, s] >= NO_KEY:
                break
            j = np.int32(keys[r, s] & NUMBER)
            value = z.dtype.type(squared_distance(X, row, row_of[j]))
            if kept == width and (value > z[r, width - 1] or (value == z[r, width - 1] and j > lists[r, width - 1])):
                continue
            t = min(kept, width - 1)
            while t > 0 and (z[r, t - 1] > value or (z[r, t - 1] == value and lists[r, t - 1] > j)):
                z[r, t], lists[r, t] = z[r, t - 1], lists[r, t - 1]
                t -= 1
            z[r, t], lists[r, t] = value, j
            kept = min(kept + 1, width)
        for t in range(kept, width):
            z[r, t], lists[r, t] = np.inf, -1


@compiled
def numbers_of_keys(keys):
    """The numbers in the keys, −1 where there is none."""
    out = np.empty(keys.shape, np.int32)
    for r in range(len(out)):
        for s in range(out.shape[1]):
            out[r, s] = keys[r, s] & NUMBER if keys[r, s] < NO_KEY else -1
    return out


@compiled
def vote_for_cells(first, last, cells, home, looked_into, lists, followed, fewest, out):
    """out[i]: the cells, not looked into yet, that most of the neighbours of i's nearest neighbours are in; −1 for no more.

    A cell needs `fewest` votes. Of cells with as many votes that which was met first comes first.
    """
    votes = np.zeros(cells, np.int32)
    met, tallies = np.empty(followed * followed, np.int32), np.empty(out.shape[1], np.int32)
    for i in range(first, last):
        count, kept = 0, 0
        for s in range(followed):
            j = lists[i, s]
            if j < 0:
                break
            for t in range(followed):
                if lists[j, t] < 0:
                    break
                cell = home[lists[j, t]]
                if votes[cell] == 0:
                    met[count] = cell
                    count += 1
                votes[cell] += 1
        for p in range(looked_into.shape[1]):
            if looked_into[i, p] >= 0:
                votes[looked_into[i, p]] = 0
        for m in range(count):
            cell = met[m]
            tally = votes[cell]
            votes[cell] = 0
            if tally < fewest:
                continue
            s = kept
            while s > 0 and tallies[s - 1] < tally:
                s -= 1
            if s == out.shape[1]:
                continue
            for u in range(min(kept, out.shape[1] - 1), s, -1):
                out[i, u], tallies[u] = out[i, u - 1], tallies[u - 1]
            out[i, s], tallies[s] = cell, tally
            kept = min(kept + 1, out.shape[1])
        for s in range(kept, out.shape[1]):
            out[i, s] = -1


@compiled
def room_for_two_hops(cells):
    """What `new_two_hops` works in: a mark for each cell, a table of nodes met with its slots in use, and what was found."""
    longest = MOST_FOUND + LONGEST
    mark, table = np.full(cells, -1, np.int32), np.full(SLOTS, -1, np.int32)
    return mark, table, np.empty(longest, np.int32), np.empty(longest, np.int32)


@compiled
def sort_by_cell(first, last, home, indptr, indices, is_new, until):
    """Sort rows by number, which is by cell; until[e] entries from e on are in one cell (or more, if that is MOST_UNTIL)."""
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        for e in range(begin + 1, end):
            j, new, t = indices[e], is_new[e], e
            while t > begin and indices[t - 1] > j:
                indices[t], is_new[t] = indices[t - 1], is_new[t - 1]
                t -= 1
            indices[t], is_new[t] = j, new
        for e in range(end - 1, begin - 1, -1):
            goes_on = e + 1 < end and home[indices[e + 1]] == home[indices[e]]
            until[e] = min(until[e + 1] + 1, MOST_UNTIL) if goes_on else 1


@compiled
def new_two_hops(i, looked_into, home, indptr, indices, is_new, until, at_new, room):
    """How many nodes, now the first of the last array of `room`, paths of two edges from i, one of them new, lead to.

    Nodes in cells that i has looked into are left out: they are most of all, and are passed over together.
    """
    mark, table, slots, found = room
    for p in range(looked_into.shape[1]):
        if looked_into[i, p] >= 0:
            mark[looked_into[i, p]] = i
    count = 0
    for e in range(indptr[i], indptr[i + 1]):
        j = indices[e]
        if not (is_new[e] or at_new[j]):
            continue
        f, end = indptr[j], min(indptr[j + 1], indptr[j] + LONGEST)
        while f < end:
            other, here = indices[f], f
            if mark[home[other]] == i:
                f += until[f]
                continue
            f += 1
            if not (is_new[e] or is_new[here]) or other == i:
                continue
            slot = (other * 40503) & (SLOTS - 1)
            while table[slot] >= 0 and table[slot] != other:
                slot = (slot + 1) & (SLOTS - 1)
            if table[slot] < 0:
                table[slot] = other
                slots[count] = slot
                found[count] = other
                count += 1
        if count >= MOST_FOUND:
            break
    for s in range(count):
        table[slots[s]] = -1
    return count


@compiled
def squared_distance(X, i, j):
    """Σ(xᵢ − xⱼ)² in float64."""
    total = 0.0
    for c in range(X.shape[1]):
        difference = np.float64(X[i, c]) - np.float64(X[j, c])
        total += difference * difference
    return total


@compiled
def is_within(X, i, j, limit):
    """Whether Σ(xᵢ − xⱼ)², in the precision of X, is at most the limit; giving long sums up early would take longer."""
    x, y, total = X[i], X[j], X.dtype.type(0.0)
    for c in range(x.size):
        difference = x[c] - y[c]
        total += difference * difference
    return total <= limit


@compiled
def insert_neighbor(row, z, j, value):
    """Put node j at a squared distance into a list ascending by (distance, number), unless it is there or too far away."""
    last = row.size - 1
    if value > z[last] or (value == z[last] and j > row[last]):
        return
    for s in range(row.size):
        if row[s] == j:
            return
    s = last
    while s > 0 and (z[s - 1] > value or (z[s - 1] == value and row[s - 1] > j)):
        z[s], row[s] = z[s - 1], row[s - 1]
        s -= 1
    z[s], row[s] = value, j


@compiled
def insert_pairs(i, j, z_ij, lists, z):
    """Put node j[e], at the squared distance z_ij[e], into the list of row i[e], if it is near enough."""
    for e in range(i.size):
        insert_neighbor(lists[i[e]], z[i[e]], j[e], z_ij[e])


@compiled
def follow_new(first, last, X, row_of, cells, home, looked_into, indptr, indices, is_new, until, at_new, lists, z):
    """Offer nodes the neighbours of their neighbours that a new edge leads to, except in cells that they have looked into."""
    margin = 1.0 + (X.shape[1] + 8) * np.finfo(X.dtype).eps
    room = room_for_two_hops(cells)
    found = room[3]
    for i in range(first, last):
        count = new_two_hops(i, looked_into, home, indptr, indices, is_new, until, at_new, room)
        limit, near = X.dtype.type(margin * z[i, -1]), 0
        for s in range(count):  # those that are near enough in the precision of X come to the front
            found[near] = found[s]
            near += is_within(X, row_of[i], row_of[found[s]], limit)
        for s in range(near):
            value = z.dtype.type(squared_distance(X, row_of[i], row_of[found[s]]))
            insert_neighbor(lists[i], z[i], found[s], value)
