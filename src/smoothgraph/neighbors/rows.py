"""Neighbours among all rows of a table, copies included: exactly as many for each row as are wanted.

In: distances between the distinct samples, and which rows are copies (`Copies`). Out: numbers of rows and squared distances,
both (queries, width), ascending; a row that is searched for itself comes first in its own list. The rows of one sample are at
the same distance of everything, so that only samples are searched.
"""

import numpy as np

from smoothgraph.copies import Copies
from smoothgraph.distances import Distances
from smoothgraph.neighbors import find_neighbors
from smoothgraph.neighbors.lists import clean_lists, keep_nearest
from smoothgraph.neighbors.queries import smallest_bounds
from smoothgraph.parallel import Threads


def nearest_rows(distances: Distances, copies: Copies, width: int, neighbors="auto", *, random_state=None, threads: Threads):
    """(rows, squared distances, `Neighborhoods`) of every row: itself, and its width − 1 nearest others."""
    samples, z = np.arange(distances.n, dtype=np.int32)[:, None], np.zeros((distances.n, 1), distances.dtype)
    k, found = min(width, distances.n) - 1, None
    if k > 0:
        found = find_neighbors(distances, k, neighbors, random_state=random_state, threads=threads).by_rows()
        lists, z_lists = _without_gaps(distances, found, threads)
        samples, z = np.concatenate([samples, lists], axis=1), np.concatenate([z, z_lists], axis=1)
    if not copies.any:
        return samples, z, found
    rows, z = _spread(copies, samples, z, width)
    return *_itself_first(rows[copies.sample_of], z[copies.sample_of]), found


def rows_near_new(distances: Distances, copies: Copies, Q, width: int, *, threads: Threads):
    """(rows, squared distances) of the `width` rows nearest to each of the queries Q, proven."""
    own, k = np.full(Q.shape[0], -1, np.int32), min(width, distances.n)
    samples, z = np.empty((Q.shape[0], k), np.int32), np.empty((Q.shape[0], k), distances.dtype)
    open_rows = np.arange(Q.shape[0])
    for precise in (False, True):  # rows for which rounding leaves the proof open are searched again with more digits
        searched = open_rows
        found, cuts = smallest_bounds(
            distances, lambda rows, of=searched: Q[of[rows]], own[searched], k, precise=precise, threads=threads
        )
        z_found = distances.to_lists(Q[searched], found, threads=threads)
        samples[searched], z[searched] = keep_nearest(own[searched], found, z_found, k, threads=threads)
        open_rows = searched[(z[searched, -1] > cuts) & (found.shape[1] < distances.n)]
        if open_rows.size == 0:
            break
    for row in open_rows:  # and those that are still open, samples that differ in the last digits only, without bounds
        everything = np.arange(distances.n, dtype=np.int32)[None, :]
        z_row = distances.to_lists(Q[row : row + 1], everything, threads=threads)
        samples[row], z[row] = (part[0] for part in keep_nearest(own[:1], everything, z_row, k, threads=threads))
    if (samples < 0).any():
        raise ValueError(f"Squared distances to the new samples overflow {distances.dtype}: rescale the features.")
    return _spread(copies, samples, z, width) if copies.any else (samples, z)


def _without_gaps(distances, found, threads):
    """Lists and squared distances; a row that an approximate search left short is compared with every sample."""
    lists, z = found.indices, found.distances
    everything = np.arange(distances.n, dtype=np.int32)[None, :]
    for row in np.flatnonzero(lists[:, -1] < 0).astype(np.int32):
        whole = clean_lists(distances, np.array([row]), everything, lists.shape[1], threads=threads)
        lists[row], z[row] = (part[0] for part in whole)
    return lists, z


def _spread(copies, samples, z, width):
    """Lists of samples → the first `width` rows of these samples, and their squared distances."""
    members, sizes = np.argsort(copies.sample_of, kind="stable"), copies.sizes
    begin = np.cumsum(sizes) - sizes
    rows, z_rows = np.empty((len(samples), width), np.int32), np.empty((len(samples), width), z.dtype)
    every, place, taken = np.arange(len(samples)), np.zeros(len(samples), np.int64), np.zeros(len(samples), np.int64)
    for slot in range(width):  # each list is at a place, and has taken some rows of the sample there
        sample = samples[every, place]
        rows[:, slot], z_rows[:, slot] = members[begin[sample] + taken], z[every, place]
        taken += 1
        is_used = taken == sizes[sample]
        place[is_used] += 1
        taken[is_used] = 0
    return rows, z_rows


def _itself_first(rows, z):
    """Lists of all rows in which the row itself comes first: it is moved there, or takes the place of a copy of it."""
    own = np.arange(len(rows), dtype=rows.dtype)
    is_own = rows == own[:, None]
    left_out = np.where(is_own.any(axis=1), is_own.argmax(axis=1), rows.shape[1] - 1)
    kept = np.arange(rows.shape[1]) != left_out[:, None]
    others = rows[kept].reshape(len(rows), -1)
    z_others = z[kept].reshape(len(rows), -1)
    return np.concatenate([own[:, None], others], axis=1), np.concatenate([np.zeros_like(z[:, :1]), z_others], axis=1)
