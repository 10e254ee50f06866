"""Approximate neighbour lists, from cells of samples.

In: samples, the length of the lists. Out: `Search.lists`, lists of sample numbers, −1 where there are fewer, in any order; and
`refine`, which makes clean lists better.

k-means on a part of the samples makes cells of about a thousand. Every sample is held against the samples of the few cells
whose centres are nearest to it, by matrix products, which is what processors do best; a list that is nearly right then
becomes better by looking at the neighbours of one's neighbours. Nothing is compiled in the process, and nothing is built
that outlives it. Where there are thousands of centres, a sample meets only those around the landmark it is nearest to, so that
the work grows as n does.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from smoothgraph import _kernels
from smoothgraph.samples import ROWS, blocks, over_blocks, squared_norms

SIZE, LARGEST = 1000, 8000  # samples of a cell on average, and at most: many equal samples would all fall into one
PROBES = 5  # cells that a sample is held against at first
SAMPLES_PER_CELL, ROUNDS = 64, 6  # of k-means
LANDMARKS, AROUND = 50, 1000  # one centre in so many is a landmark, with so many centres around it
FIRST = 16  # nearest neighbours whose neighbours are looked at
MOST_TWO_HOPS, FEW = 256, 32
LITTLE, REFINEMENTS = 0.001, 6  # refining stops when it has changed a smaller share of the nearest, or after so many rounds


class Search:
    """Lists of about k nearest others (n, k) in `lists`, better with every call of `widen`."""

    def __init__(self, samples, k: int, random_state=None):
        self.samples = samples
        self.lists = np.full((samples.n, k), -1, np.int32)
        self.bounds = np.full((samples.n, k), np.inf, samples.dtype)  # of the distances in `lists`
        self.centres = _centres(samples, check_random_state(random_state).randint(2**31))
        self.cells: Any = None  # `Cells`, from the first call of `widen` on
        self.probes = 0

    @property
    def saw_all(self) -> bool:
        return self.probes == len(self.centres)

    def widen(self):
        """Hold every sample against the members of as many cells again, the nearest that it was not held against yet."""
        seen, self.probes = self.probes, min(2 * self.probes or PROBES, len(self.centres))
        nearest = _nearest_centres(self.samples, np.arange(self.samples.n), self.centres, self.probes)
        if self.cells is None:
            self.cells = Cells.of(nearest[:, 0])
            nearest[:, 0] = self.cells.home
        for probe in range(seen, self.probes):
            _look_into(self.samples, self.cells, nearest[:, probe], self.lists, self.bounds)


class Cells(NamedTuple):
    """`members[ptr[c]:ptr[c+1]]` belong to cell c, which is their `home`."""

    members: np.ndarray
    ptr: np.ndarray
    home: np.ndarray

    @classmethod
    def of(cls, home):
        """Cells from the number of each sample's cell. What is beyond the LARGEST becomes cells that only its members know."""
        order = np.argsort(home, kind="stable").astype(np.int32)
        place = np.arange(home.size) - np.searchsorted(home[order], home[order])
        part = np.empty(home.size, np.int64)
        part[order] = place // LARGEST
        count, home = home.max() + 1, home.astype(np.int64)
        beyond = part > 0
        if beyond.any():
            _, number = np.unique(home[beyond] * home.size + part[beyond], return_inverse=True)
            home[beyond] = count + number
            order = np.argsort(home, kind="stable").astype(np.int32)
        return cls(order, np.searchsorted(home[order], np.arange(home.max() + 2)), home.astype(np.int32))


def _centres(samples, seed):
    """Lloyd's algorithm on a part of the samples."""
    rng, count = np.random.default_rng(seed), max(1, samples.n // SIZE)
    part = np.sort(rng.choice(samples.n, min(samples.n, SAMPLES_PER_CELL * count), replace=False))
    X = samples.own(part)
    centres = _dense(X[np.sort(rng.choice(part.size, count, replace=False))])
    for _ in range(ROUNDS if count > 1 else 0):
        nearest = _nearest_centres(samples, part, centres, 1)[:, 0]
        sizes = np.bincount(nearest, minlength=count)
        belongs = sp.csr_matrix((np.ones(part.size, X.dtype), (nearest, np.arange(part.size))), shape=(count, part.size))
        filled = sizes > 0
        centres[filled] = (_dense(belongs @ X) / np.maximum(sizes, 1)[:, None].astype(X.dtype))[filled]
        centres[~filled] = _dense(X[rng.choice(part.size, np.count_nonzero(~filled))])
    return centres


def _dense(X):
    return X.toarray() if sp.issparse(X) else np.array(X)


def _nearest_centres(samples, nodes, centres, count):
    """The numbers of the `count` centres nearest to each of `nodes`, nearest first.

    Of many centres only those AROUND the landmark nearest to a sample are looked at.
    """
    if len(centres) <= max(2 * AROUND, count):
        part = over_blocks(lambda rows: _nearest_of(samples.own(nodes[rows]), centres, count), len(nodes))
        return np.concatenate(part)
    landmarks = centres[::LANDMARKS]
    groups = _Groups.of(_nearest_centres(samples, nodes, landmarks, 1)[:, 0], len(landmarks))
    near = [_nearest_of(landmark[None], centres, max(AROUND, count))[0] for landmark in landmarks]
    nearest = np.empty((len(nodes), count), np.int32)

    def one(landmark, part):
        around = near[landmark]
        nearest[part] = around[_nearest_of(samples.own(nodes[part]), centres[around], count)]

    groups.each(one)
    return nearest


def _nearest_of(Q, centres, count):
    """The same by comparing each of Q with all centres."""
    tile = np.asarray(squared_norms(centres) - 2.0 * (Q @ centres.T), order="C")
    if count == 1:
        return tile.argmin(axis=1)[:, None].astype(np.int32)
    nearest, best = np.full((len(tile), count), -1, np.int32), np.full((len(tile), count), np.inf, tile.dtype)
    _kernels.keep_smallest(tile, 0, np.full(len(tile), -1, np.int32), nearest, best)
    return np.take_along_axis(nearest, np.argsort(best, axis=1, kind="stable"), axis=1)


class _Groups(NamedTuple):
    """Places `order[ptr[g]:ptr[g+1]]` are those of group g."""

    order: np.ndarray
    ptr: np.ndarray

    @classmethod
    def of(cls, group, count):
        order = np.argsort(group, kind="stable").astype(np.int32)
        return cls(order, np.searchsorted(group, np.arange(count + 1), sorter=order))

    def each(self, work):
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

        over_blocks(one, len(tasks), 1)


def _look_into(samples, cells, probed, lists, bounds):
    """Hold every sample i against the members of cell probed[i], itself left out."""

    def one(cell, nodes):
        members = cells.members[cells.ptr[cell] : cells.ptr[cell + 1]]
        if not members.size:
            return
        # Places among the members are numbers from 0 on; who was found before is written as a number below −1.
        found, best = -2 - lists[nodes], bounds[nodes]
        place = np.searchsorted(members, nodes)
        own = np.where(members[np.minimum(place, members.size - 1)] == nodes, place, -1).astype(np.int32)
        for first, tile in samples.bound_tiles(samples.own(nodes), among=members):
            _kernels.keep_smallest(tile, first, own, found, best)
        lists[nodes] = np.where(found >= 0, members[np.maximum(found, 0)], -2 - found)
        bounds[nodes] = best

    _Groups.of(probed, cells.ptr.size - 1).each(one)


def refine(samples, lists: np.ndarray, distances: np.ndarray):
    """Look at the neighbours of the nearest neighbours, and let the lists (ascending) have the nearer ones; works in place.

    As long as that changes the lists. Samples near each other should have near numbers: what one looks at is then in the cache
    for the next.
    """
    seen = np.full((samples.n, 1), -1, np.int32)
    for _ in range(REFINEMENTS):
        nearest = lists[:, :FIRST].copy()
        new = _kernels.came_in(nearest, seen)
        if new.mean() < LITTLE:
            break
        _follow(samples, lists, distances, *_graph_of(nearest, new))
        seen = nearest


def _follow(samples, lists, distances, indptr, indices, new):
    """Offer to everybody the neighbours of their neighbours in this graph that a path with a new edge leads to."""
    active = np.flatnonzero(_kernels.near_new(indptr, indices, new)).astype(np.int32)
    for rows in blocks(active.size, 8 * ROWS):
        found = _kernels.two_hops(active[rows], indptr, indices, new, MOST_TWO_HOPS)
        counts = np.count_nonzero(found >= 0, axis=1)
        for least, most in ((1, FEW), (FEW + 1, MOST_TWO_HOPS)):  # later rounds find few: short rows are quick
            part = (counts >= least) & (counts <= most)
            _offer(samples, active[rows][part], found[part, :most], lists, distances)


def _offer(samples, nodes, found, lists, distances):
    """Let the lists of `nodes` have those of the `found` that are nearer than who they have."""
    k = lists.shape[1]
    measured = samples.distances(samples.own(nodes), found, distances[nodes, -1])
    found, measured = np.concatenate([lists[nodes], found], axis=1), np.concatenate([distances[nodes], measured], axis=1)
    _kernels.tidy_lists(nodes, found, measured, k)
    lists[nodes], distances[nodes] = found[:, :k], measured[:, :k]


def _graph_of(lists, values):
    """The edges from each sample to those it lists, at both ends: CSR arrays (indptr, indices, values)."""
    n, shares = len(lists), numba.get_num_threads()
    everybody, no_rows = np.arange(n, dtype=np.int32), np.zeros(n + 1, np.int64)
    first = _kernels.mark_new_edges(everybody, lists, everybody, no_rows, np.empty(0, np.int32))
    indptr = _kernels.rows_with(everybody, lists, first, no_rows, shares)
    indices, edge_values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], values.dtype)
    _kernels.fill_rows(everybody, lists, values, first, no_rows, indptr, indices, edge_values, shares)
    return indptr, indices, edge_values
