"""Approximate neighbour lists, from cells of samples.

In: distances in which a mean of rows is a centre, the length of the lists. Out: `NeighborLists`, numbered so that the members
of a cell follow each other, with an estimate of their recall.

k-means on a part of the samples makes cells of about a thousand. Every sample is compared with the samples of the few cells
with the nearest centres, by matrix products, which is what processors do best; as long as a sample of the lists is far from
right, with those of twice as many cells. Lists that are nearly right then become better by a look at the neighbours of
neighbours. Nothing is compiled anew in a process, and nothing is built that outlives the search. Where there are thousands of
centres, a sample is compared only with those around the landmark that it is nearest to, so that the work grows as n does.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from smoothgraph._kernels import lists as kernels
from smoothgraph.distances import Distances, squared_norms
from smoothgraph.edges import rows_of_lists
from smoothgraph.neighbors.lists import (
    NeighborLists,
    RecallSample,
    clean_all,
    clean_lists,
    keep_nearest,
    neighbors_of_neighbors,
)
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import ROWS, Threads, blocks, least_rows

NAME = "approximate"
GOOD_RECALL = 0.95  # from this recall on, looking at neighbours of neighbours is cheaper than looking into more cells
MAX_WIDENINGS = 4  # times that a sample is compared with the members of more cells at most, the first time included
KMEANS_SAMPLES = 64  # samples per cell that k-means sees: enough for centres, which need not be the best
KMEANS_ROUNDS = 6  # of Lloyd's algorithm: cells need not be the best ones either
REFINED_NEIGHBORS = 16  # nearest neighbours of a sample that refinement follows, and from each of these as many again
MAX_TWO_HOPS = 256  # neighbours of neighbours of a sample that a round of refinement measures at most; a power of two
SHORT_TWO_HOPS = 32  # rows with at most so many are measured apart: they are many in later rounds, and short rows are quick
LEAST_CHANGE = 0.001  # refinement stops when a smaller share of the followed neighbours is new
MAX_REFINEMENTS = 6  # rounds of refinement at most; a million molecules take four


@dataclass(frozen=True)
class CellSizes:
    """How samples are sorted into cells, and how many of the cells are looked into."""

    mean: int = 1000  # samples of a cell on average
    largest: int = 8000  # samples of a cell at most: otherwise many equal samples would all fall into one
    probes: int = 5  # cells whose members a sample is compared with at first
    centres_per_landmark: int = 50  # one centre in so many is a landmark
    around: int = 1000  # centres around a landmark that its samples are compared with; up to twice as many need no landmarks


CELL_SIZES = CellSizes()


def search_approximate(
    distances: Distances, k: int, random_state=None, *, sizes: CellSizes | None = None, threads: Threads
) -> NeighborLists:
    """About the k nearest others of every sample. `sizes` are CELL_SIZES unless they are given."""
    sample = RecallSample(distances, k, threads=threads)
    found, cells = _probed(distances, k, random_state, sizes or CELL_SIZES, sample, threads)
    numbering = Numbering.of(cells.members)
    lists, z = clean_all(distances, found, k, NAME, numbering, threads=threads)
    del found
    _refine(distances.numbered(numbering), lists, z, threads)
    recall = sample.recall(z[numbering.nodes(distances.n)[sample.nodes]])
    return NeighborLists(lists, z, NAME, exact=False, recall=recall, numbering=numbering)


def _probed(distances, k, random_state, sizes, sample, threads):
    """Lists (n, k) of rows that were found in cells, in any order, −1 where there are fewer; and the cells."""
    lists = np.full((distances.n, k), -1, np.int32)
    bounds = np.full((distances.n, k), np.inf, distances.dtype)  # lower bounds of the distances in `lists`
    centres = _centres(distances, check_random_state(random_state).randint(2**31), sizes, threads)
    cells, probed = None, 0
    for _ in range(MAX_WIDENINGS):
        already, probed = probed, min(2 * probed or sizes.probes, len(centres))
        nearest = _nearest_centres(distances, np.arange(distances.n), centres, probed, sizes, threads)
        if cells is None:
            cells = Cells.of(nearest[:, 0], sizes.largest)
            nearest[:, 0] = cells.home
        for probe in range(already, probed):
            _look_into(distances, cells, nearest[:, probe], lists, bounds, threads)
        clean = clean_lists(distances, sample.nodes, lists[sample.nodes], k, threads=threads)
        if sample.recall(clean[1]) >= GOOD_RECALL or probed == len(centres):
            break
    return lists, cells


class Cells(NamedTuple):
    """`members[ptr[c]:ptr[c+1]]` belong to cell c, which is their `home`."""

    members: np.ndarray
    ptr: np.ndarray
    home: np.ndarray

    @classmethod
    def of(cls, home: np.ndarray, largest: int) -> "Cells":
        """Cells from the number of each sample's cell.

        The samples of a cell beyond the first `largest` become cells of their own. These have no centre: only their members
        are compared with them.
        """
        order = np.argsort(home, kind="stable").astype(np.int32)
        place = np.arange(home.size) - np.searchsorted(home[order], home[order])
        part = np.empty(home.size, np.int64)
        part[order] = place // largest
        count, home = home.max() + 1, home.astype(np.int64)
        beyond = part > 0
        if beyond.any():
            _, number = np.unique(home[beyond] * home.size + part[beyond], return_inverse=True)
            home[beyond] = count + number
            order = np.argsort(home, kind="stable").astype(np.int32)
        return cls(order, np.searchsorted(home[order], np.arange(home.max() + 2)), home.astype(np.int32))


def _centres(distances, seed, sizes, threads):
    """Lloyd's algorithm on a part of the samples."""
    rng, count = np.random.default_rng(seed), max(1, distances.n // sizes.mean)
    part = np.sort(rng.choice(distances.n, min(distances.n, KMEANS_SAMPLES * count), replace=False))
    X = distances.own(part)
    centres = _dense(X[np.sort(rng.choice(part.size, count, replace=False))])
    for _ in range(KMEANS_ROUNDS if count > 1 else 0):
        nearest = _nearest_centres(distances, part, centres, 1, sizes, threads)[:, 0]
        members = np.bincount(nearest, minlength=count)
        belongs = sp.csr_matrix((np.ones(part.size, X.dtype), (nearest, np.arange(part.size))), shape=(count, part.size))
        filled = members > 0
        centres[filled] = (_dense(belongs @ X) / np.maximum(members, 1)[:, None].astype(X.dtype))[filled]
        centres[~filled] = _dense(X[rng.choice(part.size, np.count_nonzero(~filled))])
    return centres


def _dense(X):
    return X.toarray() if sp.issparse(X) else np.array(X)


def _nearest_centres(distances, nodes, centres, count, sizes, threads):
    """The numbers of the `count` centres nearest to each of `nodes`, nearest first.

    If there are many centres, only those around the landmark nearest to a sample are looked at.
    """
    if len(centres) <= max(2 * sizes.around, count):
        return np.concatenate(threads.map(lambda rows: _nearest_of(distances.own(nodes[rows]), centres, count), len(nodes)))
    landmarks = centres[:: sizes.centres_per_landmark]
    groups = _Groups.of(_nearest_centres(distances, nodes, landmarks, 1, sizes, threads)[:, 0], len(landmarks))
    near = threads.map(lambda one: _nearest_of(landmarks[one], centres, max(sizes.around, count))[0], len(landmarks), 1)
    nearest = np.empty((len(nodes), count), np.int32)

    def one(landmark, part):
        around = near[landmark]
        nearest[part] = around[_nearest_of(distances.own(nodes[part]), centres[around], count)]

    groups.each(one, threads)
    return nearest


def _nearest_of(Q, centres, count):
    """The same by comparing each of Q with all centres."""
    tile = np.asarray(squared_norms(centres) - 2.0 * (Q @ centres.T), order="C")
    if count == 1:
        return tile.argmin(axis=1)[:, None].astype(np.int32)
    nearest, best = np.full((len(tile), count), -1, np.int32), np.full((len(tile), count), np.inf, tile.dtype)
    kernels.keep_smallest(tile, 0, np.full(len(tile), -1, np.int32), nearest, best)
    return np.take_along_axis(nearest, np.argsort(best, axis=1, kind="stable"), axis=1)


class _Groups(NamedTuple):
    """Places `order[ptr[g]:ptr[g+1]]` are those of group g."""

    order: np.ndarray
    ptr: np.ndarray

    @classmethod
    def of(cls, group, count):
        order = np.argsort(group, kind="stable").astype(np.int32)
        return cls(order, np.searchsorted(group, np.arange(count + 1), sorter=order))

    def each(self, work, threads):
        """work(group, some of its places) for all of them, in threads. Each place is in one task only."""
        ptr = self.ptr.tolist()
        tasks = [
            (group, begin, min(begin + ROWS, end))
            for group, end in enumerate(ptr[1:])
            for begin in range(ptr[group], end, ROWS)
        ]

        def one(rows):
            group, begin, end = tasks[rows.start]
            work(group, self.order[begin:end])

        threads.map(one, len(tasks), 1)


def _look_into(distances, cells, probed, lists, bounds, threads):
    """Compare every sample i with the members of cell probed[i], itself left out, and let its list have the nearest."""

    def one(cell, nodes):
        members = cells.members[cells.ptr[cell] : cells.ptr[cell + 1]]
        if not members.size:
            return
        # A member is written as its place among the members, from 0 on. A sample found before is written as a number below −1.
        found, best = -2 - lists[nodes], bounds[nodes]
        place = np.searchsorted(members, nodes)
        own = np.where(members[np.minimum(place, members.size - 1)] == nodes, place, -1).astype(np.int32)
        for first, tile in distances.bound_tiles(distances.own(nodes), among=members):
            kernels.keep_smallest(tile, first, own, found, best)
        lists[nodes] = np.where(found >= 0, members[np.maximum(found, 0)], -2 - found)
        bounds[nodes] = best

    _Groups.of(probed, cells.ptr.size - 1).each(one, threads)


def _refine(distances, lists, z, threads):
    """Look at the neighbours of the nearest neighbours, and let the lists (ascending) have the nearer ones; works in place.

    This goes on as long as it changes the lists. Samples near each other should have near numbers: what one looks at is then in
    the cache for the next.
    """
    before = np.full((distances.n, 1), -1, np.int32)
    for _ in range(MAX_REFINEMENTS):
        nearest = lists[:, :REFINED_NEIGHBORS].copy()
        is_new = np.empty(nearest.shape, np.int8)
        least = least_rows(REFINED_NEIGHBORS)
        threads.rows(kernels.mark_new_entries, distances.n, nearest, before, is_new, least=least)
        if is_new.mean() < LEAST_CHANGE:
            break
        _follow(distances, lists, z, rows_of_lists(nearest, is_new, threads=threads), threads)
        before = nearest


def _follow(distances, lists, z, graph, threads):
    """Merge into the list of each node the neighbours of its neighbours that a path with a new edge leads to.

    `graph` is a tuple of CSR arrays (indptr, indices, is_new).
    """
    indptr, indices, is_new = graph
    active = _near_new(indptr, indices, is_new, threads)
    for rows in blocks(active.size, distances.at_once(8 * ROWS)):
        found = neighbors_of_neighbors(active[rows], indptr, indices, MAX_TWO_HOPS, is_new, threads=threads)
        counts = np.count_nonzero(found >= 0, axis=1)
        for least, most in ((1, SHORT_TWO_HOPS), (SHORT_TWO_HOPS + 1, MAX_TWO_HOPS)):
            part = (counts >= least) & (counts <= most)
            _merge_found(distances, active[rows][part], found[part, :most], lists, z, threads)


def _near_new(indptr, indices, is_new, threads):
    """The nodes that have a new edge, or a neighbour that has one."""
    n = indptr.size - 1
    at_new, near_new = np.empty(n, np.bool_), np.empty(n, np.bool_)
    threads.rows(kernels.mark_at_new, n, indptr, is_new, at_new)
    threads.rows(kernels.mark_near_new, n, indptr, indices, at_new, near_new)
    return np.flatnonzero(near_new).astype(np.int32)


def _merge_found(distances, nodes, found, lists, z, threads):
    """Let the lists of `nodes` have those of the `found` that are nearer than what they have."""
    measured = distances.to_lists(distances.own(nodes), found, z[nodes, -1], threads=threads)
    found, measured = np.concatenate([lists[nodes], found], axis=1), np.concatenate([z[nodes], measured], axis=1)
    lists[nodes], z[nodes] = keep_nearest(nodes, found, measured, lists.shape[1], threads=threads)
