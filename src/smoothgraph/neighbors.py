"""X → neighbour lists.

In: samples, and how to search them. Out: `NeighborLists`: for every sample its K nearest others with squared distances,
ascending, the sample itself left out, −1 at distance inf where a row is shorter. Whatever a backend returns (distances
squared or not, itself first, somewhere or missing, −1, repeats) is put into this form by `_finish`, which trusts only the
indices and measures the distances anew.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from smoothgraph import _kernels, cells
from smoothgraph.samples import ROWS, DistanceMatrix, blocks, over_blocks

# Exact search costs n²·d multiplications, approximate search a few thousand times n·d. Below about this value of n²·(d + 60),
# seconds on 2 cores, the lists might as well be exact; benchmarks/neighbors.py measures both.
EXACT_WORK = 5e11

SAMPLED = 500  # rows from which the recall is estimated
WORTH_REFINING, WIDENINGS = 0.95, 4  # below this recall a sample looks into twice as many cells, so many times


class Backend(Protocol):
    """Anything that finds neighbours: returns (n, K or more) indices, nearest first if it can, with or without self."""

    name: str
    exact: bool

    def __call__(self, samples: Any, k: int, sampled: "Sampled | None") -> np.ndarray:
        """`sampled` is the truth about a few rows, for a search that goes by its recall; an exact one gets None."""
        ...


@dataclass(frozen=True)
class NeighborLists:
    """K nearest others of every sample: `indices` int32 and `distances` squared, both (n, K), ascending.

    With an `order`, samples go by other numbers than their rows: node i is sample order[i].
    """

    indices: np.ndarray
    distances: np.ndarray
    backend: str
    exact: bool
    recall: float  # the share of true neighbours, estimated from a sample of the rows unless the lists are exact
    order: np.ndarray | None = None

    @property
    def reach(self) -> np.ndarray:
        return reach(self.indices, self.distances, self.indices.shape[0])

    def first(self, width: int) -> "NeighborLists":
        """The lists cut to their `width` nearest."""
        return replace(self, indices=self.indices[:, :width].copy(), distances=self.distances[:, :width].copy())

    def stretched(self, stretch: np.ndarray) -> np.ndarray:
        """The distances stretchᵢ·stretchⱼ times as long, ascending again."""
        z = np.empty_like(self.distances)
        for rows in blocks(len(z), 64 * ROWS):
            factor = stretch[rows, None] * stretch[self.indices[rows]]  # an entry of −1 is at inf, whatever the factor
            z[rows] = np.sort(self.distances[rows] * factor, axis=1)
        return z

    def by_rows(self) -> "NeighborLists":
        """The same lists, samples going by their rows."""
        if self.order is None:
            return self
        indices, distances = np.empty_like(self.indices), np.empty_like(self.distances)
        numbers = np.append(self.order, -1).astype(np.int32)
        for rows in blocks(len(indices), 64 * ROWS):
            indices[self.order[rows]], distances[self.order[rows]] = numbers[self.indices[rows]], self.distances[rows]
        return replace(self, indices=indices, distances=distances, order=None)


def reach(indices, distances, n: int) -> np.ndarray:
    """The squared distance below which each list has every neighbour: its last; inf if the list has all the others."""
    counts = np.count_nonzero(indices >= 0, axis=1)
    farthest = distances[np.arange(len(counts)), counts - 1].astype(np.float64)
    return np.where(counts == n - 1, np.inf, farthest)


class ExactBackend:
    """Brute force, a tile at a time, and the proof of it.

    Tiles hold lower bounds of the distances. Whoever is not among the `spare` smallest bounds of a row is at least as far as
    the largest of them: if the k-th measured distance is no larger, the row is right. Rows for which rounding leaves that
    open are searched again in float64, and if it must be (samples that differ in the last digits only) without products.
    """

    name = "exact"
    exact = True

    def __call__(self, samples, k, sampled=None):
        nodes = np.arange(samples.n, dtype=np.int32)
        indices, cuts = _smallest(samples, samples.own, nodes, k)
        open_rows = _unproven(samples, nodes, indices, cuts, k)
        if open_rows.size and samples.dtype != np.float64:
            indices[open_rows], cuts[open_rows] = _smallest(samples, samples.own, open_rows, k, precise=True)
            open_rows = _unproven(samples, open_rows, indices[open_rows], cuts[open_rows], k)
        everybody = np.arange(samples.n, dtype=np.int32)[None, :]
        for row in range(open_rows.size):
            indices[open_rows[row], :k] = _finish(samples, open_rows[row : row + 1], everybody, k)[0]
        return indices


class ApproximateBackend:
    """Cells of samples, more of them while a sample of the lists is far from right."""

    name = "approximate"
    exact = False

    def __init__(self, random_state=None):
        self.random_state = random_state
        self.order: np.ndarray | None = None  # the samples, those of a cell together, once they were searched

    def __call__(self, samples, k, sampled=None):
        search = cells.Search(samples, k, self.random_state)
        for _ in range(WIDENINGS):
            search.widen()
            recall = sampled.recall(_finish(samples, sampled.nodes, search.lists[sampled.nodes], k)[1])
            if recall >= WORTH_REFINING or search.saw_all:
                break
        self.order = search.cells.members
        return search.lists


class GivenBackend:
    """The user's own: a k-neighbours transformer, or a pair (indices, distances)."""

    exact = False

    def __init__(self, given):
        self.given = given
        self.name = "given lists" if isinstance(given, tuple) else type(given).__name__

    def __call__(self, samples, k, sampled=None):
        if isinstance(self.given, tuple):
            return _checked_indices(self.given, samples.n)
        matrix = sp.csr_matrix(self.given.fit_transform(samples.X))
        if matrix.shape != (samples.n, samples.n):
            raise ValueError(
                f"neighbors={self.name} returned a matrix of shape {matrix.shape}; a k-neighbours transformer of "
                f"{samples.n} samples returns ({samples.n}, {samples.n})."
            )
        return _rows_as_lists(matrix)


def choose_backend(neighbors, samples, random_state=None) -> Backend:
    """The backend for the learner's `neighbors` parameter; "auto" goes by the measured break-even point."""
    if isinstance(neighbors, str):
        approximate = ApproximateBackend(random_state)
        if isinstance(samples, DistanceMatrix) or neighbors == "exact":
            return ExactBackend()
        if neighbors == "approximate":
            return approximate
        if neighbors == "auto":
            work = float(samples.n) ** 2 * (samples.n_features + 60)
            return ExactBackend() if work <= EXACT_WORK else approximate
    elif isinstance(neighbors, tuple | list) or hasattr(neighbors, "fit_transform"):
        return GivenBackend(tuple(neighbors) if isinstance(neighbors, list) else neighbors)
    raise ValueError(
        f"neighbors={neighbors!r} is not understood: use 'auto', 'exact', 'approximate', 'all', a k-neighbours "
        "transformer, or a pair (indices, distances)."
    )


def find_neighbors(samples, k: int, backend: Backend) -> NeighborLists:
    """The k nearest others of every sample (all of them where there are fewer)."""
    return ordered_neighbors(samples, k, backend).by_rows()


def ordered_neighbors(samples, k: int, backend: Backend) -> NeighborLists:
    """The same, in the order in which the search had the samples, if it had one: near samples have near numbers."""
    k = min(k, samples.n - 1)
    sampled = None if backend.exact else Sampled(samples, k)
    indices = backend(samples, k, sampled)
    order = backend.order if isinstance(backend, ApproximateBackend) else None
    lists, distances = _finish_all(samples, indices, indices.shape[1] if isinstance(backend, GivenBackend) else k, order)
    del indices
    counts = np.count_nonzero(lists >= 0, axis=1)
    if not counts.all():
        row = int(samples.numbered(order).rows(np.argmin(counts)))
        raise ValueError(
            f"Sample {row} has no neighbour in the lists of {backend.name}: every sample needs one at least. Ask for more "
            "neighbours, or use neighbors='exact'."
        )
    if order is not None:
        cells.refine(samples.numbered(order), lists, distances)
    if sampled is None:
        recall = 1.0
    else:
        recall = sampled.recall(distances[sampled.nodes if order is None else _inverse(order)[sampled.nodes]])
    return NeighborLists(lists, distances, backend.name, backend.exact, recall, order)


def _inverse(order):
    """The number of each row, and −1 last, where −1 looks."""
    numbers = np.full(len(order) + 1, -1, np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers


class Sampled:
    """The true distances to the k nearest of a few samples."""

    def __init__(self, samples, k):
        count = min(samples.n, SAMPLED)
        self.nodes = np.sort(np.random.default_rng(0).choice(samples.n, count, replace=False)).astype(np.int32)
        self.k = min(k, samples.n - 1)
        indices, _ = _smallest(samples, samples.own, self.nodes, self.k)
        self.true = _finish(samples, self.nodes, indices, self.k)[1]

    def recall(self, distances) -> float:
        """The share of their k nearest that their lists, of ascending `distances`, have; of equal distances any will do."""
        return float(np.count_nonzero(distances[:, : self.k] <= self.true[:, -1:]) / self.true.size)


def nearest_to_new(samples, Q, k: int, offset=None, stretch=None):
    """The k samples of smallest (squared distance − offset) for each new sample: (indices, squared distances, cut).

    Whoever is not in a row has squared distance − offset of at least its cut. `stretch` is a pair of arrays, for the new
    samples and the others: distances then count as many times.
    """
    nobody = np.full(Q.shape[0], -1, np.int32)
    lists, cuts = _smallest(samples, lambda rows: Q[rows], nobody, k, offset=offset, stretch=stretch)
    return lists, samples.distances(Q, lists), cuts


def nearest_outside(samples, nodes, labels, offset, stretch=None):
    """For each of `nodes` the sample with another label whose (stretched squared distance − offset) is smallest.

    Returns their numbers and squared distances.
    """

    def block(rows):
        part = nodes[rows]
        best, place = np.full(len(part), np.inf), np.zeros(len(part), np.int32)
        for first, tile in samples.bound_tiles(samples.own(part)):
            columns = slice(first, first + tile.shape[1])
            if stretch is not None:
                tile = tile * stretch[columns] * stretch[part][:, None]
            tile = np.where(labels[columns] == labels[part][:, None], np.inf, tile - offset[columns])
            at = np.argmin(tile, axis=1)
            value = tile[np.arange(len(part)), at]
            place = np.where(value < best, (first + at).astype(np.int32), place)
            best = np.minimum(best, value)
        return place

    others = np.concatenate(over_blocks(block, len(nodes), 64))
    return others, samples.distances(samples.own(nodes), others[:, None])[:, 0]


def pairs_nearer_than(samples, nodes, limits, stretch, most: int, among=None):
    """All pairs (a node of `nodes`, another sample) with z·stretchᵢ·stretchⱼ < limitᵢ + limitⱼ, by brute force.

    `limits` and `stretch` have one number per sample; `among` restricts the others. Returns arrays (i, j, squared distance),
    or None if there are more than `most` pairs.
    """
    among = samples.by_row() if among is None else among
    found = [np.empty((2, 0), np.int32)]
    for rows in blocks(len(nodes), ROWS):  # the others are shared among the threads: often they are many and the nodes few
        some = partial(_near_pairs, samples, nodes[rows], among, limits=limits, stretch=stretch, most=most)
        found += over_blocks(some, among.size, among.size)
        if sum(pairs.shape[1] for pairs in found) >= most:
            return None
    i, j = np.concatenate(found, axis=1)
    z = [samples.distances(samples.own(i[rows]), j[rows, None])[:, 0] for rows in blocks(i.size, 64 * ROWS)]
    return i, j, np.concatenate([np.empty(0, samples.dtype), *z])


def _smallest(samples, queries, own, k, precise=False, offset=None, stretch=None):
    """Indices (rows, a few more than k) of the smallest lower bounds, in any order, and the largest bound among them.

    `queries(ids)` gives the queries; `own` holds their own numbers among the samples, −1 for new ones. Bounds are multiplied
    by `stretch`, a pair of arrays for rows and samples, and are less by `offset`.
    """
    spare = min(samples.n, k + max(8, k // 8))

    def block(rows):
        part = own[rows]
        lists = np.full((len(part), spare), -1, np.int32)
        best = np.full((len(part), spare), np.inf)
        for first, tile in samples.bound_tiles(queries(part if part[0] >= 0 else rows), precise):
            if stretch is not None:
                tile *= stretch[1][first : first + tile.shape[1]].astype(tile.dtype)
                tile *= stretch[0][rows, None].astype(tile.dtype)
            if offset is not None:
                tile -= offset[first : first + tile.shape[1]].astype(tile.dtype)
            _kernels.keep_smallest(tile, first, part, lists, best)
        return lists, best[:, 0]

    found = over_blocks(block, len(own))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _unproven(samples, nodes, indices, cuts, k):
    """The nodes whose k-th measured distance is beyond what the search proves."""
    kth = np.concatenate(
        [_finish(samples, nodes[rows], indices[rows], k)[1][:, -1] for rows in blocks(len(nodes), 64 * ROWS)]
        or [np.empty(0, samples.dtype)]
    )
    return nodes[kth > cuts]


def _near_pairs(samples, nodes, among, part, limits, stretch, most):
    """The pairs of `nodes` with a part of `among`; not all of them if there are more than `most`."""
    others, found = among[part], [np.empty((2, 0), np.int32)]
    for first, tile in samples.bound_tiles(samples.own(nodes), among=others):
        row, column = _kernels.near_pairs(tile, others[first : first + tile.shape[1]], nodes, limits, stretch)
        found.append(np.stack([nodes[row], column]))
        most -= row.size
        if most <= 0:
            break
    return np.concatenate(found, axis=1)


def _finish_all(samples, indices, width, order):
    """`_finish` for all samples, in the order given, a part at a time: nothing of the size of the lists is held twice."""
    lists, distances = np.empty((samples.n, width), np.int32), np.empty((samples.n, width), samples.dtype)
    samples, nodes = samples.numbered(order), np.arange(samples.n, dtype=np.int32)
    numbers = np.empty(0, np.int32) if order is None else _inverse(order)
    for rows in blocks(samples.n, 8 * ROWS):
        found = indices[rows] if order is None else numbers[indices[order[rows]]]
        lists[rows], distances[rows] = _finish(samples, nodes[rows], found, width)
    return lists, distances


def _finish(samples, nodes, indices, width):
    """A backend's rows for `nodes` as clean lists: distances measured anew, self and gaps out, sorted, cut to `width`."""
    lists = np.array(indices, dtype=np.int32, order="C")
    distances = samples.distances(samples.own(nodes), lists)
    if not np.isfinite(distances[lists >= 0]).all():
        raise ValueError(f"Squared distances overflow {samples.dtype}: rescale the features.")
    _kernels.tidy_lists(nodes, lists, distances, width)
    return lists[:, :width], distances[:, :width]


def _rows_as_lists(matrix):
    """The stored columns of each CSR row as a rectangle, −1 where a row has fewer."""
    counts = np.diff(matrix.indptr)
    lists = np.full((matrix.shape[0], counts.max(initial=1)), -1, np.int32)
    lists[np.arange(lists.shape[1]) < counts[:, None]] = matrix.indices
    return lists


def _checked_indices(pair, n):
    if len(pair) != 2:
        raise ValueError(f"neighbors has {len(pair)} parts: a pair (indices, distances) is needed.")
    indices = np.asarray(pair[0])
    if indices.ndim != 2 or indices.shape[0] != n or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"neighbors has indices of shape {indices.shape} and type {indices.dtype}: integers of shape ({n}, K) are needed."
        )
    if indices.size and not -1 <= indices.min() <= indices.max() < n:
        raise ValueError(
            f"neighbors has indices from {indices.min()} to {indices.max()}: 0 to {n - 1} are samples, −1 is a missing entry."
        )
    return indices
