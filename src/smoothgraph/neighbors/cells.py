"""Cells: samples sorted by the centre that they are nearest to.

In: distances in which a mean of rows is a centre. Out: `Centres`, which say which cells a sample is nearest to, and `Cells`,
the samples of each cell. Centres of consecutive numbers are near each other, and so are the cells.

k-means in two levels on a part of the samples makes the centres: about √C landmarks, then the centres around each. Where there
are many centres, a sample is compared only with those around the landmark that it is nearest to, a multiple of √C.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph._kernels import cells as kernels
from smoothgraph.distances import Points, squared_norms
from smoothgraph.parallel import ROWS, Threads, blocks

KMEANS_SAMPLES = 32  # samples per centre that k-means sees: enough for centres, which need not be the best
LANDMARK_SAMPLES = 256  # samples per landmark that it sees for the first level
KMEANS_ROUNDS = 5  # of Lloyd's algorithm: cells need not be the best ones either
AT_ONCE = 4 * ROWS  # samples that are compared with centres in a task


@dataclass(frozen=True)
class CellSizes:
    """How samples are sorted into cells, and how many of the cells are looked into."""

    mean: int = 250  # samples of a cell on average
    largest: int = 4000  # samples of a cell at most: otherwise many equal samples would all fall into one
    probes: int = 8  # cells with the nearest centres, whose members a sample is compared with at first
    votes: int = 6  # further cells, in which many of the neighbours of its neighbours are
    # Landmarks with whose centres, about, a sample is compared. Those at the edge of what is around one landmark have nearer
    # centres around others: with 2.5 landmarks, ten million samples missed 5 % of their neighbours, with 10 only 1 %.
    around: int = 16


class Cells(NamedTuple):
    """`members[ptr[c]:ptr[c+1]]` belong to cell c, which is their `home`."""

    members: np.ndarray
    ptr: np.ndarray
    home: np.ndarray

    @classmethod
    def of(cls, home: np.ndarray, largest: int) -> "Cells":
        """Cells from the number of each sample's cell.

        The samples of a cell beyond the first `largest` become cells of their own. These have no centre: only their members,
        and samples whose neighbours vote for them, are compared with them.
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


class Centres:
    """The centres of cells, counted from the middle of the samples, where rounding is small."""

    def __init__(self, distances: Points, seed: int, sizes: CellSizes, *, threads: Threads):
        self.distances, self.threads = distances, threads
        rng, count = np.random.default_rng(seed), max(1, distances.n // sizes.mean)
        part = np.sort(rng.choice(distances.n, min(distances.n, KMEANS_SAMPLES * count), replace=False))
        self.landmarks = self._landmarks(rng, part, round(count**0.5))
        self.around = sizes.around * len(self.landmarks)  # a landmark has about as many centres as there are landmarks
        self.places = self.landmarks if count == 1 else self._around_landmarks(rng, part, count)

    @property
    def count(self) -> int:
        return len(self.places)

    def _rows(self, samples):
        return self.distances.from_middle(self.distances.own(samples))

    def _compared(self, samples, centres, count):
        """The `count` of these centres that are nearest to each of the samples; all are looked at."""
        together = self.distances.at_once(AT_ONCE)
        parts = self.threads.map(lambda some: _nearest_of(self._rows(samples[some]), centres, count), len(samples), together)
        return np.concatenate(parts)

    def _landmarks(self, rng, part, count):
        some = self._rows(np.sort(rng.choice(part, min(part.size, LANDMARK_SAMPLES * count), replace=False)))
        first = _dense(some[np.sort(rng.choice(some.shape[0], count, replace=False))])
        return _in_a_chain(_lloyd(some, first))

    def _around_landmarks(self, rng, part, count):
        """Centres of all samples: each landmark has as many as its share of the samples."""
        home = self._compared(part, self.landmarks, 1)[:, 0]
        groups = [part[home == g] for g in range(len(self.landmarks))]
        shares = [min(group.size, max(1, round(count * group.size / part.size))) if group.size else 0 for group in groups]
        firsts = [np.sort(rng.choice(group.size, share, replace=False)) for group, share in zip(groups, shares, strict=True)]
        filled = np.flatnonzero(shares)

        def one(at):
            X = self._rows(groups[filled[at.start]])
            return _in_a_chain(_lloyd(X, _dense(X[firsts[filled[at.start]]])))

        return np.concatenate(self.threads.map(one, filled.size, 1))

    def nearest(self, count: int) -> np.ndarray:
        """The numbers (n, count) of the centres nearest to each sample, nearest first; few centres need no landmarks."""
        everything = np.arange(self.distances.n, dtype=np.int32)
        if len(self.places) <= max(2 * self.around, count):
            return self._compared(everything, self.places, count)
        home = self._compared(everything, self.landmarks, 1)[:, 0]
        around = _nearest_of(self.landmarks, self.places, max(self.around, count))
        order, together = np.argsort(home, kind="stable").astype(np.int32), self.distances.at_once(AT_ONCE)
        ptr = np.searchsorted(home[order], np.arange(len(self.landmarks) + 1))
        tasks = [(g, rows) for g in range(len(self.landmarks)) for rows in blocks(ptr[g + 1] - ptr[g], together)]
        nearest = np.empty((everything.size, count), np.int32)

        def one(at):
            g, rows = tasks[at.start]
            samples = order[ptr[g] + rows.start : ptr[g] + rows.stop]
            nearest[samples] = around[g][_nearest_of(self._rows(samples), self.places[around[g]], count)]

        self.threads.map(one, len(tasks), 1)
        return nearest


def _nearest_of(Q, centres, count):
    """The numbers of the `count` centres nearest to each of the rows Q, nearest first."""
    count, norms, scaled = min(count, len(centres)), squared_norms(centres), (-2.0 * centres).T
    out = np.empty((Q.shape[0], count), np.int32)
    for rows in blocks(Q.shape[0], ROWS):
        tile = np.asarray(Q[rows] @ scaled, order="C")
        if count == 1:
            out[rows, 0] = (tile + norms).argmin(axis=1)
        else:
            kernels.smallest_columns(tile, norms, out[rows])
    return out


def _lloyd(X, centres):
    """k-means of the rows X from these centres on. A centre without rows stays where it is."""
    for _ in range(KMEANS_ROUNDS):
        nearest = _nearest_of(X, centres, 1)[:, 0]
        counts = np.bincount(nearest, minlength=len(centres))
        ones = np.ones(nearest.size, X.dtype)
        belongs = sp.csr_matrix((ones, (nearest, np.arange(nearest.size))), shape=(len(centres), nearest.size))
        means = _dense(belongs @ X) / np.maximum(counts, 1)[:, None].astype(X.dtype)
        centres = np.where(counts[:, None] > 0, means, centres)
    return centres


def _dense(X):
    return X.toarray() if sp.issparse(X) else np.array(X)


def _in_a_chain(centres):
    """The centres in another order: from each to the nearest of those that are left."""
    order, left = [0], np.ones(len(centres), bool)
    z = squared_norms(centres)[:, None] - 2.0 * centres @ centres.T + squared_norms(centres)
    for _ in range(len(centres) - 1):
        left[order[-1]] = False
        order.append(int(np.argmin(np.where(left, z[order[-1]], np.inf))))
    return centres[order]
