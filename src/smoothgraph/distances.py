"""The samples and the squared distances between them.

In: X (n, d), dense float32 or float64 (a memory map too), or scipy CSR; or a matrix of distances. Out: an object that has the
squared distances of chosen pairs, and tiles of lower bounds of all of them to search in. Distances are summed as
Σ(x−y)², so that duplicates are at exactly 0. X is read as it is, a block at a time, and nothing of its size is stored with it.

METRICS is the table of what a distance may be. A new metric is a row of it, and a kernel that measures lists. The words in
MATRICES say that X is a matrix of distances, as in scikit-learn, or of squared distances.

Nodes have other numbers than their rows of X where a search has numbered them (see numbering.py); methods take and return
nodes.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from smoothgraph._kernels import lists as kernels
from smoothgraph.float_range import LARGEST_EXPONENT, exponent_near, is_safe, rescaled, without_negatives
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import ROWS, Threads, blocks, least_rows

COLUMNS = 4096  # samples of a tile of lower bounds: with ROWS queries it is 16 MB in float32
MATRICES = "precomputed", "precomputed_squared"  # metrics of a matrix: it holds distances, or squared distances
BYTES_AT_ONCE = 1 << 24  # of rows that are copied together, in each thread: rows of a wide table are many bytes
PAIRS = 16 * ROWS  # pairs that are measured together: the samples at one end of them are copied


class Distances(Protocol):
    """What the rest of the package needs of samples. A node is a sample; queries are samples, new or own."""

    n: int
    n_features: int
    dtype: Any
    X: Any  # the rows as they are measured, or the dense matrix of squared distances
    z_unit: float  # squared distances are in this unit: 1 unless the numbers given were so large or small that they had to be
    numbering: Numbering

    @property
    def can_search(self) -> bool:
        """Whether every pair can be measured. False only for a sparse matrix, which holds the allowed edges and no others."""
        ...

    @property
    def has_centres(self) -> bool:
        """Whether a mean of rows is a centre of them, so that cells around centres can be searched."""
        ...

    @property
    def has_bounds(self) -> bool:
        """Whether short rows bound the distances, as neighbors/bounds.py has it: the samples are dense rows."""
        ...

    def take_edges(self) -> sp.csr_matrix:
        """The sparse matrix of allowed edges, where `can_search` is False. It is handed over: a second call raises."""
        ...

    def numbered(self, numbering: Numbering) -> "Distances":
        """The same samples under other node numbers."""
        ...

    def queries(self, X_new) -> Any:
        """New samples, dense or sparse, in the form that the other methods take; row i of `X_new` is row i of them."""
        ...

    def own(self, nodes) -> Any:
        """The queries that are the nodes themselves."""
        ...

    def nodes_in_row_order(self) -> np.ndarray:
        """All nodes in the order of their rows: in this order X is read from front to back."""
        ...

    def at_once(self, most: int) -> int:
        """How many nodes to take as queries together: as many as asked for, or fewer if their rows are long."""
        ...

    def bound_tiles(self, Q, precise: bool = False, among=None) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first column, tile): lower bounds of the squared distances of queries Q to some thousand nodes at a time.

        The columns are all nodes, or those listed in `among`. `precise` asks for bounds in float64. A tile may be written to.
        """
        ...

    def to_lists(self, Q, lists, within=None, *, threads: Threads) -> np.ndarray:
        """Squared distances (r, K) of query r to the nodes in its list; inf where the list has −1, or beyond within[r]."""
        ...

    def of_pairs(self, i, j, *, threads: Threads) -> np.ndarray:
        """Squared distances of the pairs of nodes i[e] and j[e]."""
        ...


@dataclass(frozen=True)
class Metric:
    """What a squared distance is."""

    name: str
    prepare: Callable[[Any], Any]  # X → the rows that are measured
    measure: Callable[..., None]  # a kernel: (first, last, Q, X, row_of, lists, within, out), as `list_distances`
    measure_sparse: Callable[..., None] | None  # the same for CSR rows, or None if X must be dense
    tiles: Callable[..., Iterator[tuple[int, np.ndarray]]]  # (points, Q, precise, among) → what `bound_tiles` yields
    has_centres: bool  # whether the mean of some rows is a centre of them


def distances_of(X, metric: str = "euclidean") -> Distances:
    """The distances of X: samples, or a matrix of distances if the metric is one of MATRICES. Such a matrix is taken over."""
    return DistanceMatrix(X, metric) if metric in MATRICES else Points(X, metric)


class Points:
    """Distances of points."""

    def __init__(self, X, metric: str = "euclidean"):
        if metric not in METRICS:
            raise ValueError(f"metric={metric!r} is not known: use one of {metric_names()}.")
        self.metric, self.is_sparse = METRICS[metric], sp.issparse(X)
        if self.is_sparse and self.metric.measure_sparse is None:
            raise ValueError(f"metric={metric!r} takes dense samples only: use X.toarray(), or metric='euclidean'.")
        self.n, self.n_features = X.shape
        self.numbering, self.exponent = Numbering(), 0
        self.X = self._prepared(X)
        if not self._center():
            largest = max(float(abs(self.from_middle(self.X[rows])).max()) for rows in blocks(self.n, self.at_once(COLUMNS)))
            self.exponent = exponent_near(largest, "X, less the median of its rows,")
            self.X = self._prepared(X)
            self._center()

    def _center(self) -> bool:
        """Take up the middle of the rows. False if squared distances would leave the range of the type.

        Counted from the middle, products are small, and so is what rounding takes from the distances.
        """
        self.dtype, self.z_unit = self.X.dtype, 4.0**self.exponent
        with np.errstate(over="ignore", invalid="ignore"):
            self.middle: Any = None if self.is_sparse else self._median()
            parts = (self.from_middle(self.X[rows]) for rows in blocks(self.n, self.at_once(COLUMNS)))
            self.largest_square = max(float(squared_norms(part).max()) for part in parts)
        return is_safe(self.largest_square, self.dtype)

    def _median(self):
        """The median of a thousand rows, or fewer wide ones: it is in the middle of most rows, even if a few are far away."""
        return np.median(self.X[:: 1 + self.n // self.at_once(1000)], axis=0).astype(self.dtype)

    can_search = True

    @property
    def has_centres(self) -> bool:
        return self.metric.has_centres

    @property
    def has_bounds(self) -> bool:
        return self.metric.has_centres and not self.is_sparse

    def take_edges(self) -> sp.csr_matrix:
        raise RuntimeError("There are no allowed edges to take: these are points, and every pair of them can be measured.")

    def from_middle(self, X):
        return X if self.middle is None else X - self.middle

    def numbered(self, numbering: Numbering) -> "Points":
        other = copy.copy(self)
        other.numbering = numbering
        return other

    def queries(self, X_new):
        if sp.issparse(X_new) != self.is_sparse:
            X_new = sp.csr_matrix(X_new) if self.is_sparse else X_new.toarray()
        Q = self._prepared(X_new)
        if not np.isfinite(squared_norms(self.from_middle(Q))).all():
            raise ValueError(
                f"New samples hold values up to {float(abs(X_new).max()):.3g}: squared distances to the fitted samples are "
                f"beyond what {self.dtype} holds. Remove or clip them."
            )
        return Q

    def _prepared(self, X):
        """The rows as they are measured."""
        if self.is_sparse and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return self.metric.prepare(rescaled(X, self.exponent))

    def own(self, nodes):
        return self.X[self.numbering.rows(nodes)]

    def nodes_in_row_order(self) -> np.ndarray:
        return self.numbering.nodes(self.n)[:-1]

    def at_once(self, most: int) -> int:
        return most if self.is_sparse else rows_at_once(self.X, most)

    def bound_tiles(self, Q, precise: bool = False, among=None) -> Iterator[tuple[int, np.ndarray]]:
        return self.metric.tiles(self, Q, precise, among)

    def to_lists(self, Q, lists, within=None, *, threads: Threads) -> np.ndarray:
        out = np.empty(lists.shape, self.dtype)
        kernel, *arguments = self.measuring(Q, lists, within, out)
        threads.rows(kernel, len(lists), *arguments, least=least_rows(lists.shape[1]))
        return out

    def measuring(self, Q, lists, within, out) -> tuple:
        """The kernel that writes the distances of lists to `out`, and its arguments behind the range of rows."""
        within = np.full(len(lists), np.inf) if within is None else within.astype(np.float64)
        if not self.is_sparse:
            return self.metric.measure, np.ascontiguousarray(Q), self.X, self.numbering.row_of, lists, within, out
        csr = Q.indptr, Q.indices, Q.data, self.X.indptr, self.X.indices, self.X.data
        return self.metric.measure_sparse, *csr, self.numbering.row_of, lists, within, out

    def of_pairs(self, i, j, *, threads: Threads) -> np.ndarray:
        z = np.empty(len(i), self.dtype)
        for part in blocks(len(i), self.at_once(PAIRS)):
            z[part] = self.to_lists(self.own(i[part]), j[part, None], threads=threads)[:, 0]
        return z


class DistanceMatrix:
    """Distances from a square matrix of them, or of their squares. A query is a row of squared distances to the n samples.

    The matrix is taken over: distances are squared in its place. The entries of a sparse matrix are the allowed edges, and need
    no search. They are kept until `take_edges` hands them over, and then only what new rows need is kept: their form.
    """

    has_centres = has_bounds = False

    def __init__(self, X, metric: str = "precomputed_squared"):
        self.is_squared = metric == "precomputed_squared"
        largest = float((X.data if sp.issparse(X) else X).max(initial=0.0))
        as_it_is = is_safe(largest if self.is_squared else largest**2 if largest < 1e150 else np.inf, X.dtype) or largest == 0.0
        power = 1 if self.is_squared else 2  # of the entries, that a squared distance is
        self.exponent = 0 if as_it_is else exponent_near(largest, "The matrix", 2 * LARGEST_EXPONENT // power)
        self.z_unit = 2.0 ** (power * self.exponent)
        Z = self._squares(rescaled(X, self.exponent), in_place=True)
        self.X: Any = None if sp.issparse(Z) else Z
        self._edges: Any = Z if sp.issparse(Z) else None
        self.dtype, self.n, self.n_features = Z.dtype, Z.shape[0], Z.shape[0]
        self.numbering = Numbering()

    def _squares(self, X, in_place: bool = False):
        if self.is_squared:
            return X
        if sp.issparse(X):
            return sp.csr_matrix((np.square(X.data), X.indices, X.indptr), shape=X.shape)
        with np.errstate(over="ignore"):  # a new sample may be so far away that it has no edge
            return np.square(X, out=X) if in_place else np.square(X)

    @property
    def can_search(self) -> bool:
        return self.X is not None

    def take_edges(self) -> sp.csr_matrix:
        if self._edges is None:
            raise RuntimeError("There are no allowed edges to take: the matrix was dense, or its edges were taken before.")
        edges, self._edges = self._edges, None
        return edges

    def numbered(self, numbering: Numbering) -> "DistanceMatrix":
        other = copy.copy(self)
        other.numbering = numbering
        return other

    def queries(self, X_new):
        X_new = rescaled(X_new, self.exponent)
        if not sp.issparse(X_new):
            return self._squares(without_negatives(X_new))
        dense = np.full(X_new.shape, np.inf, self.dtype)  # a pair that is not stored is no edge
        dense[np.repeat(np.arange(X_new.shape[0]), np.diff(X_new.indptr)), X_new.indices] = without_negatives(X_new.data)
        return self._squares(dense, in_place=True)

    def own(self, nodes):
        return self.X[self.numbering.rows(nodes)]

    def nodes_in_row_order(self) -> np.ndarray:
        return self.numbering.nodes(self.n)[:-1]

    def at_once(self, most: int) -> int:
        return rows_at_once(np.empty((0, self.n), self.dtype), most)  # rows of queries are dense, also where X is sparse

    def bound_tiles(self, Q, precise: bool = False, among=None) -> Iterator[tuple[int, np.ndarray]]:
        if among is None and not self.numbering.by_row:
            among = np.arange(self.n)
        yield 0, np.array(Q if among is None else Q[:, self.numbering.rows(among)])

    def to_lists(self, Q, lists, within=None, *, threads: Threads) -> np.ndarray:
        missing = np.asarray(np.inf, Q.dtype)
        z = np.take_along_axis(Q, np.maximum(self.numbering.rows(lists), 0), axis=1)
        z = np.where(lists < 0, missing, z)
        return z if within is None else np.where(z <= within[:, None], z, missing)

    def of_pairs(self, i, j, *, threads: Threads) -> np.ndarray:
        return self.X[self.numbering.rows(i), self.numbering.rows(j)]


def rows_at_once(X: np.ndarray, most: int) -> int:
    """How many rows of X may be copied at once: `most`, or fewer if they are long."""
    return max(1, min(most, BYTES_AT_ONCE // (X.shape[1] * X.dtype.itemsize)))


def take_rows(X: np.ndarray, rows: np.ndarray, *, threads: Threads) -> np.ndarray:
    """X[rows]. The threads share it, since it takes as long as the system takes to hand out the memory."""
    taken = np.empty((len(rows), X.shape[1]), X.dtype)
    # With another mode than "clip", which is not needed here, NumPy writes to a copy of `out` first.
    threads.map(lambda part: np.take(X, rows[part], axis=0, out=taken[part], mode="clip"), len(rows))
    return taken


def metric_names() -> str:
    """The metrics that there are, for messages."""
    return ", ".join(repr(name) for name in (*METRICS, *MATRICES))


def squared_norms(X) -> np.ndarray:
    """‖x‖² of every row."""
    with np.errstate(over="ignore"):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)


def product_tiles(points: Points, Q, precise: bool, among) -> Iterator[tuple[int, np.ndarray]]:
    """Lower bounds of Euclidean distances from matrix products.

    A matrix product rounds: its entries are off by at most (d + 16)·u·(‖q‖² + ‖x‖²), u the unit roundoff, which is
    taken off. What a bound rules out is ruled out for certain; `precise` computes in float64.
    """
    kind = np.float64 if precise else points.dtype
    keep = 1.0 - (points.n_features + 16) * float(np.finfo(kind).eps) / 2.0
    rows = _with_norms(points, Q, kind, keep)
    if not sp.issparse(Q):
        rows[:, :-2] *= -2.0
        rows[:, -2:] = rows[:, :-3:-1].copy()
    for begin, X in _column_blocks(points, among):
        block = _with_norms(points, X, kind, keep)
        if sp.issparse(Q):
            tile = (rows[0] @ block[0].T).toarray()
            tile *= -2.0
            tile += rows[1][:, None]
            tile += block[1]
        else:
            tile = rows @ block.T
        yield begin, tile


def _column_blocks(points, among):
    """(first column, rows of X) for blocks of the nodes in `among`, or of all nodes if that is None."""
    if among is None and not points.numbering.by_row:
        among = np.arange(points.n, dtype=np.int32)
    for columns in blocks(points.n if among is None else len(among), points.at_once(COLUMNS)):
        yield columns.start, points.X[columns] if among is None else points.own(among[columns])


def _with_norms(points, X, kind, keep):
    """(X, keep·‖x‖²) if X is sparse; else one array of rows (x, 1, keep·‖x‖²), x counted from the middle.

    ‖q‖² − 2q·x + ‖x‖² is the product of the rows (−2q, ‖q‖², 1) and (x, 1, ‖x‖²).
    """
    if sp.issparse(X):
        X = X.astype(kind, copy=False)
        return X, keep * squared_norms(X)
    rows = np.empty((X.shape[0], X.shape[1] + 2), kind)
    x = rows[:, :-2]
    np.subtract(X, points.middle, out=x, dtype=kind)  # in float32 the difference itself would round
    rows[:, -2], rows[:, -1] = 1.0, keep * squared_norms(x)
    return rows


def measured_tiles(points: Points, Q, precise: bool, among) -> Iterator[tuple[int, np.ndarray]]:
    """The distances themselves as their lower bounds, for a metric that no matrix product bounds; `precise` changes nothing."""
    among = np.arange(points.n, dtype=np.int32) if among is None else among
    for columns in blocks(len(among), COLUMNS):
        lists = np.tile(among[columns], (Q.shape[0], 1))
        tile = np.empty(lists.shape, points.dtype)
        kernel, *arguments = points.measuring(Q, lists, None, tile)
        kernel(0, len(lists), *arguments)
        yield columns.start, tile


def _as_they_are(X):
    return X


def _unit_rows(X):
    """The rows scaled to length 1.

    They are divided by their largest value first: so rows of counts that are multiples of each other become equal.
    """
    if sp.issparse(X):
        return _units(X, abs(X).max(axis=1).toarray().ravel())
    units = np.empty(X.shape, X.dtype)
    for rows in blocks(len(X), rows_at_once(X, COLUMNS)):
        units[rows] = _units(X[rows], abs(X[rows]).max(axis=1), rows.start)
    return units


def _units(X, largest, first=0):
    if not largest.all():
        raise ValueError(
            f"metric='cosine' needs rows of non-zero length, but row {first + int(np.argmin(largest))} is all zeros. "
            "Remove such rows, or use metric='euclidean'."
        )
    rows = _divided(X, largest)
    return _divided(rows, np.sqrt(squared_norms(rows))).astype(X.dtype, copy=False)


def _divided(X, by):
    """Every row divided by its number."""
    if not sp.issparse(X):
        return X / by[:, None]
    return sp.csr_matrix((X.data / np.repeat(by, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


_EUCLIDEAN = {
    "measure": kernels.list_distances,
    "measure_sparse": kernels.sparse_list_distances,
    "tiles": product_tiles,
    "has_centres": True,
}

# The cosine metric is the Euclidean one between rows scaled to length 1: z = 2(1 − cos).
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("euclidean", prepare=_as_they_are, **_EUCLIDEAN),
        Metric("cosine", prepare=_unit_rows, **_EUCLIDEAN),
    )
}
