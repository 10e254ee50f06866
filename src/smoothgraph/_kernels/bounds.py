"""Pairs of near samples, found by bounds that hold for certain: what a bound rules out is never measured.

Samples are in the order of cells: cell c has the *places* ptr[c] to ptr[c + 1] − 1, and place i is row row_of[i] of X. Row i of
`columns` begins with the p coordinates of a *short row*, counted from the centre of its cell; distances of short rows are lower
bounds of those of samples. neighbors/bounds.py has the mathematics, and what rounding takes from the bounds.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  np.dot calls this BLAS, which must be loaded before its threads are limited

from smoothgraph._kernels.cells import is_within, squared_distance
from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.lists import CHUNK, with_twice_the_room

ONE, NORM, INVERSE, PARTNER = range(4)  # what the last four entries of a row of `columns` are, behind the p coordinates
TILE_COLUMNS = 512  # of a matrix product: with 256 rows it is 512 kB in float32, and stays in the cache


@compiled
def toward_centres(rows, centres, cell, along, apart):
    """along[c, r]: how far rows[r], counted from the centre of `cell`, goes toward centre c, which is apart[c] away."""
    p, kind = centres.shape[1], centres.dtype.type
    ways = np.empty(centres.shape, centres.dtype)
    for c in range(len(centres)):
        total = kind(0.0)
        for f in range(p):
            ways[c, f] = centres[c, f] - centres[cell, f]
            total += ways[c, f] * ways[c, f]
        apart[c] = np.sqrt(total)
        unit = kind(1.0) / apart[c] if apart[c] > 0.0 else kind(0.0)
        for f in range(p):
            ways[c, f] *= unit
    np.dot(ways, rows.T, along)


@compiled
def first_coordinates(columns, begin, end, p):
    """The short rows of the places from `begin` to `end`."""
    rows = np.empty((end - begin, p), columns.dtype)
    for r in range(end - begin):
        for f in range(p):
            rows[r, f] = columns[begin + r, f]
    return rows


@compiled
def farthest_toward(columns, begin, end, centres, cell, farthest):
    """farthest[c]: how far any of the places, which are in `cell`, goes from its centre toward centre c."""
    along, apart = np.empty((len(centres), end - begin), columns.dtype), np.empty(len(centres), columns.dtype)
    toward_centres(first_coordinates(columns, begin, end, centres.shape[1]), centres, cell, along, apart)
    for c in range(len(centres)):
        for r in range(end - begin):
            farthest[c] = max(farthest[c], along[c, r])


@compiled
def rows_left(along, gap, own, scales, inverse_scale, scaled_limit, out):
    """How many rows may have a partner in a cell; they are now the first of `out`.

    A partner of row r is at least gap − along[r] away, and counts if its distance is below (own[r]·inverse_scale +
    scaled_limit)/scales[r], the largest limit of any pair of r and a member of the cell.
    """
    count = 0
    for r in range(along.size):
        away = max(0.0, gap - along[r])
        out[count] = r
        count += not away * away * scales[r] > own[r] * inverse_scale + scaled_limit
    return count


@compiled
def turned_rows(rows, chosen, count, shift, keep, extra, own, scales, out):
    """Rows (−2sx, s·‖x‖², s, −l, −1), x counted from another centre: their products with `columns` are negative for near pairs.

    x is rows[chosen[q]] + shift, s and l are its scale and its limit.
    """
    p, kind = rows.shape[1], rows.dtype.type
    for q in range(count):
        r = chosen[q]
        scale, total = kind(scales[r]), kind(0.0)
        for f in range(p):
            value = rows[r, f] + shift[f]
            total += value * value
            out[q, f] = kind(-2.0) * scale * value
        out[q, p + ONE] = scale * (keep * total - extra)
        out[q, p + NORM] = scale
        out[q, p + INVERSE] = kind(-own[r])
        out[q, p + PARTNER] = kind(-1.0)


@compiled
def not_positive(values, hits):
    """How many values are not above 0; their places are now the first of `hits`."""
    one, zero = values.dtype.type(1.0), values.dtype.type(0.0)
    count, whole = 0, values.size // CHUNK
    for chunk in range(-(-values.size // CHUNK)):
        if chunk < whole:
            near = zero
            for c in range(CHUNK):
                near += zero if values[chunk * CHUNK + c] > zero else one
            if near == zero:
                continue
        for c in range(chunk * CHUNK, min((chunk + 1) * CHUNK, values.size)):
            hits[count] = c
            count += not values[c] > zero
    return count


class Places(NamedTuple):
    """Short rows in cells. `slack` and `extra` are what rounding takes from distances and squared distances of members of each
    cell, `keep` and `up` what squared lengths and limits are multiplied by for it."""

    columns: np.ndarray
    centres: np.ndarray
    ptr: np.ndarray
    slack: np.ndarray
    extra: np.ndarray
    keep: float
    up: float


class PlaceLimits(NamedTuple):
    """A pair of places counts if distance·scaleᵢ·scaleⱼ < ownᵢ + partnerⱼ, and if place i is `wanted`.

    In the bounds, limits are `unit` times and scales `scale_unit` times as large. `cells` has the largest 1/scale and the
    largest partner/scale of the members of each cell, in these units.
    """

    own: np.ndarray
    partner: np.ndarray
    scales: np.ndarray
    wanted: np.ndarray
    cells: np.ndarray
    unit: float
    scale_unit: float


@compiled
def near_pairs_of_run(begin, end, cell, half, places, farthest, limits, X, row_of):
    """All pairs (i, j, squared distance) that count, of a place i from `begin` to `end`, in `cell`, and any place j.

    If `half` is true, j > i. `farthest[c]` is how far members of cell c go toward `cell`.
    """
    columns, centres, ptr, slack, extra, keep, up = places
    own_limits, partner_limits, scales, wanted, cells, unit, scale_unit = limits
    p, size = centres.shape[1], end - begin
    rows = first_coordinates(columns, begin, end, p)
    along, apart = np.empty((len(centres), size), columns.dtype), np.empty(len(centres), columns.dtype)
    toward_centres(rows, centres, cell, along, apart)
    asked, asking_scales = np.empty(size, np.float64), np.empty(size, np.float64)
    for r in range(size):
        asked[r] = up * unit * own_limits[begin + r] if wanted[begin + r] else -np.inf
        asking_scales[r] = scale_unit * scales[begin + r]
    Q, shift = np.empty((size, p + 4), columns.dtype), np.empty(p, columns.dtype)
    tiles, chosen, hits = (
        np.empty(size * TILE_COLUMNS, columns.dtype),
        np.empty(size + 1, np.int32),
        np.empty(TILE_COLUMNS + 1, np.int32),
    )
    left, right, z = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.float64)
    margin, largest, count = 1.0 + (X.shape[1] + 8) * np.finfo(X.dtype).eps, np.finfo(X.dtype).max, 0
    for c in range(cell if half else 0, len(centres)):
        gap = keep * apart[c] - farthest[c] - slack[cell] - slack[c]
        many = rows_left(along[c], gap, asked, asking_scales, cells[c, 0], cells[c, 1], chosen)
        if many == 0:
            continue
        for f in range(p):
            shift[f] = centres[cell, f] - centres[c, f]
        turned_rows(rows, chosen, many, shift, keep, extra[cell], asked, asking_scales, Q)
        for column in range(ptr[c], ptr[c + 1], TILE_COLUMNS):
            width = min(TILE_COLUMNS, ptr[c + 1] - column)
            tile = tiles[: many * width].reshape(many, width)
            np.dot(Q[:many], columns[column : column + width].T, tile)
            for q in range(many):
                i = begin + chosen[q]
                for h in range(not_positive(tile[q], hits)):
                    j = column + hits[h]
                    if j == i or (half and j < i):
                        continue
                    limit, scale = own_limits[i] + partner_limits[j], scales[i] * scales[j]
                    if not is_within(X, row_of[i], row_of[j], X.dtype.type(min(margin * limit / scale, largest))):
                        continue
                    value = np.float64(X.dtype.type(squared_distance(X, row_of[i], row_of[j])))
                    if value * scale < limit:
                        if count == left.size:
                            left, right = with_twice_the_room(left, count), with_twice_the_room(right, count)
                            z = with_twice_the_room(z, count)
                        left[count], right[count], z[count] = i, j, value
                        count += 1
    return left[:count].copy(), right[:count].copy(), z[:count].copy()
