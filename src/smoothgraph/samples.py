"""The samples and the squared distances between them.

In: X (n, d), dense float32 or float64 (a memory map too), or scipy CSR; or a dense matrix of squared distances. Out: squared
distances of chosen pairs, summed as Σ(x−y)² so that duplicates are at exactly 0, and tiles of lower bounds of all of them,
from a matrix product, to search in. The cosine metric is the Euclidean one between rows scaled to length 1: z = 2(1 − cos).

Samples may go by other numbers than their rows: with near numbers for near samples, loops over a graph find in the cache what
they need.
"""

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from smoothgraph import _kernels

ROWS, COLUMNS = 1024, 4096  # the tile of bounds held in memory: 16 MB in float32


class Samples:
    """Distances of points. X is read as it is, and nothing of its size is stored beside it."""

    def __init__(self, X, metric: str = "euclidean"):
        self.metric = metric
        self.n, self.n_features = X.shape
        self.X = self.queries(X)
        self.dtype = self.X.dtype
        # The row of X of each sample's number, and −1 last, where −1 looks; empty: numbers are rows.
        self._row_of = np.empty(0, np.int32)
        # Around the middle the products are small, and with them what rounding takes from the distances. The median of a
        # thousand rows is the middle of most, whatever a few far ones are.
        self._centre: Any = None if sp.issparse(X) else np.median(self.X[:: 1 + self.n // 1000], axis=0).astype(self.dtype)
        blocks = (self._centred(self.X[s : s + COLUMNS]) for s in range(0, self.n, COLUMNS))
        if not all(np.isfinite(4.0 * squared_norms(block).max()) for block in blocks):
            raise ValueError(
                f"Squared distances overflow {self.X.dtype}: X holds values up to {abs(X).max():.3g}. "
                "Rescale the features (StandardScaler), or remove sentinel values such as 1e20."
            )

    def queries(self, X_new):
        """Samples, new or own, in the form that the other methods take."""
        if sp.issparse(X_new) and not X_new.has_canonical_format:
            X_new = X_new.copy()
            X_new.sum_duplicates()
        if self.metric == "euclidean":
            return X_new
        lengths = np.sqrt(squared_norms(X_new))
        if not lengths.all():
            raise ValueError(
                f"metric='cosine' needs rows of non-zero length, but row {int(np.argmin(lengths))} is all zeros. "
                "Remove such rows, or use metric='euclidean'."
            )
        return (X_new.multiply(1.0 / lengths[:, None]).tocsr() if sp.issparse(X_new) else X_new / lengths[:, None]).astype(
            X_new.dtype, copy=False
        )

    def numbered(self, order) -> "Samples":
        """The same samples by other numbers: number i is row order[i]. None leaves them as they are."""
        if order is None:
            return self
        other = copy.copy(self)
        other._row_of = np.append(order, -1).astype(np.int32)
        return other

    def rows(self, nodes):
        """The rows of X that `nodes`, an array, are; −1 stays −1."""
        return self._row_of[nodes] if self._row_of.size else nodes

    def by_row(self):
        """The numbers of all samples in the order of their rows: in this order X is read from front to back."""
        numbers = np.arange(self.n, dtype=np.int32)
        if self._row_of.size:
            numbers[self._row_of[:-1]] = numbers.copy()
        return numbers

    def own(self, nodes):
        """The queries that are the samples `nodes` themselves."""
        return self.X[self.rows(nodes)]

    def _centred(self, X):
        return X if self._centre is None else X - self._centre

    def bound_tiles(self, Q, precise: bool = False, among=None):
        """Yield (first column, tile): lower bounds of the squared distances of queries Q to COLUMNS samples at a time.

        The columns are all samples, or those listed in `among`.

        A matrix product rounds: its entries are off by at most (d + 16)·u·(‖q‖² + ‖x‖²), u the unit roundoff, which is
        taken off. What a bound rules out is ruled out for certain; `precise` computes in float64.
        """
        kind = np.float64 if precise else self.dtype
        keep = 1.0 - (self.n_features + 16) * float(np.finfo(kind).eps) / 2.0
        rows = self._with_norms(Q, kind, keep)
        if not sp.issparse(Q):
            rows = np.concatenate([-2.0 * rows[:, :-2], rows[:, -1:], rows[:, -2:-1]], axis=1)
        if among is None and self._row_of.size:
            among = np.arange(self.n, dtype=np.int32)
        for begin in range(0, self.n if among is None else len(among), COLUMNS):
            columns = slice(begin, begin + COLUMNS)
            block = self._with_norms(self.X[columns] if among is None else self.own(among[columns]), kind, keep)
            if sp.issparse(Q):
                tile = (rows[0] @ block[0].T).toarray()
                tile *= -2.0
                tile += rows[1][:, None]
                tile += block[1]
            else:
                tile = rows @ block.T
            yield begin, tile

    def _with_norms(self, X, kind, keep):
        """(X, keep·‖x‖²) if X is sparse; else one array of rows (x, 1, keep·‖x‖²), x counted from the centre.

        ‖q‖² − 2q·x + ‖x‖² is the product of the rows (−2q, ‖q‖², 1) and (x, 1, ‖x‖²).
        """
        if sp.issparse(X):
            X = X.astype(kind, copy=False)
            return X, keep * squared_norms(X)
        rows = np.empty((X.shape[0], X.shape[1] + 2), kind)
        x = rows[:, :-2]
        np.subtract(X, self._centre, out=x)
        rows[:, -2], rows[:, -1] = 1.0, keep * squared_norms(x)
        return rows

    def distances(self, Q, lists, within=None):
        """Squared distances (r, K) of query r to the samples in its list; inf where the list has −1, or beyond within[r]."""
        within = np.full(len(lists), np.inf) if within is None else within.astype(np.float64)
        if not sp.issparse(self.X):
            return _kernels.list_distances(np.ascontiguousarray(Q), self.X, self._row_of, lists, within)
        csr = Q.indptr, Q.indices, Q.data, self.X.indptr, self.X.indices, self.X.data
        return _kernels.sparse_list_distances(*csr, self._row_of, lists, within)


class DistanceMatrix:
    """The same view of a square matrix of squared distances. A query is a row of distances to the n samples.

    Of a sparse matrix, whose entries are the allowed edges and need no search, only the form is kept, for new rows.
    """

    def __init__(self, Z):
        self.Z: Any = None if sp.issparse(Z) else Z
        self.dtype, self.n, self.n_features = Z.dtype, Z.shape[0], Z.shape[0]

    @property
    def sparse(self) -> bool:
        return self.Z is None

    def queries(self, Z_new):
        if sp.issparse(Z_new):  # what is not stored is no edge
            dense = np.full(Z_new.shape, np.inf, self.dtype)
            dense[np.repeat(np.arange(Z_new.shape[0]), np.diff(Z_new.indptr)), Z_new.indices] = Z_new.data
            Z_new = dense
        if Z_new.min() < 0:
            raise ValueError(f"Squared distances cannot be negative, but the smallest is {Z_new.min():.6g}.")
        return Z_new

    def numbered(self, order):
        """As it is: lists from a matrix are exact, and have no order of their own."""
        return self

    def rows(self, nodes):
        return nodes

    def by_row(self):
        return np.arange(self.n, dtype=np.int32)

    def own(self, nodes):
        return self.Z[nodes]

    def bound_tiles(self, Q, precise=False, among=None):
        yield 0, np.array(Q if among is None else Q[:, among])

    def distances(self, Q, lists, within=None):
        z = np.where(lists < 0, np.asarray(np.inf, Q.dtype), np.take_along_axis(Q, np.maximum(lists, 0), axis=1))
        return z if within is None else np.where(z <= within[:, None], z, np.asarray(np.inf, Q.dtype))


def blocks(count: int, size: int) -> list[slice]:
    return [slice(begin, begin + size) for begin in range(0, count, size)]


def over_blocks(work, count: int, size: int = ROWS) -> list:
    """[work(slice) for blocks of at most `size` of `count` rows], in threads.

    A thread multiplies its own matrices: threads of BLAS and threads of ours, by turns, would wait for each other.
    """
    threads = numba.get_num_threads()
    size = max(1, min(size, -(-count // threads)))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, blocks(count, size)))


def squared_norms(X):
    """‖x‖² of every row."""
    with np.errstate(over="ignore"):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
