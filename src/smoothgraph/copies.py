"""Copies: samples that are equal, and so at distance 0 of each other.

In: X (n, d), dense or CSR, or a dense matrix of distances (equal rows of it are copies too). Out: `Copies`, which goes from the
rows of the table to its distinct samples and back.

A pair at distance 0 has weight at every θ, so that with groups of more than k copies no θ gives degree k. So there is one node
of the learned graph per distinct sample, its first row, and every further copy hangs on that row by one edge.

Where copies are *kept*, all rows are nodes. Copies have the same λ, so that the graph of the distinct samples, together with
the weights of copies among themselves, says all: every edge of two samples stands for the edges of all their copies.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from smoothgraph._kernels import copies as kernels
from smoothgraph.distances import MATRICES, METRICS, rows_at_once, take_rows
from smoothgraph.memory import check_memory
from smoothgraph.parallel import ROWS, Threads, blocks

HANGING_WEIGHT = 1.0  # the largest weight that the log model gives any pair, and the one that two copies alone have
COMPARED_AT_ONCE = 16 * ROWS  # rows that are compared with their first copy together
BYTES_PER_ENTRY = (
    24  # memory for an entry of a graph: 8 of its weight and 4 of its index, and as much again before it is scaled
)


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are equal. Distinct samples have the numbers of their order in the table.

    `first` has the first row of every distinct sample, ascending; `sample_of` the number of every row's distinct sample.
    `kept` says that every row is a node of the graph.
    """

    first: np.ndarray
    sample_of: np.ndarray
    kept: bool = False

    @property
    def any(self) -> bool:
        return self.first.size < self.sample_of.size

    @property
    def n(self) -> int:
        return self.sample_of.size

    @property
    def n_distinct(self) -> int:
        return self.first.size

    @property
    def copy_of(self) -> np.ndarray:
        """The row that every row is a copy of: its own number if it is the first of its group."""
        return self.first[self.sample_of]

    @property
    def sizes(self) -> np.ndarray:
        """The number of rows of every distinct sample."""
        return np.bincount(self.sample_of, minlength=self.first.size)

    def distinct(self, X, *, threads: Threads):
        """The distinct rows of a table."""
        if not self.any:
            return X
        return X[self.first] if sp.issparse(X) else take_rows(X, self.first, threads=threads)

    def distinct_columns(self, X):
        """The columns of the distinct samples, of a matrix that has one for every row of the table."""
        return X[:, self.first] if self.any else X

    def distinct_pairs(self, A: sp.csr_matrix) -> sp.csr_matrix:
        """A graph of rows → one of distinct samples: of several edges of two samples it has the largest."""
        if not self.any:
            return A
        A = A.tocoo()
        i, j = self.sample_of[A.row].astype(np.int64), self.sample_of[A.col].astype(np.int64)
        key, value = (i * self.n_distinct + j)[i != j], A.data[i != j]
        order = np.argsort(key, kind="stable")
        key, begin = np.unique(key[order], return_index=True)
        largest = np.maximum.reduceat(value[order], begin) if key.size else value[:0]
        ends = key // self.n_distinct, key % self.n_distinct
        return sp.csr_matrix((largest, ends), shape=(self.n_distinct, self.n_distinct))

    def hung(self, W: sp.csr_matrix, weight: float) -> sp.csr_matrix:
        """A graph of distinct samples → one of all rows. Every copy has an edge of this weight to the first of its group."""
        if not self.any:
            return W
        copy_of = self.copy_of
        copies = np.flatnonzero(copy_of != np.arange(copy_of.size))
        counts = np.ones(copy_of.size, np.int64)
        counts[self.first] = np.diff(W.indptr) + self.sizes - 1
        indptr = np.zeros(copy_of.size + 1, np.int64)
        np.cumsum(counts, out=indptr[1:])
        columns, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        kernels.hang_copies(W.indptr, W.indices, W.data, self.first, copies, copy_of, weight, indptr, columns, values)
        if indptr[-1] < np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        graph = sp.csr_matrix((values, columns, indptr), shape=(copy_of.size, copy_of.size))
        graph.sort_indices()
        return graph

    def spread(self, W: sp.csr_matrix, own: np.ndarray) -> sp.csr_matrix:
        """A graph of distinct samples → one of all rows: copies have the edges of their sample, and `own` among themselves."""
        self.check_size(W)
        W = self.columns_of_rows(sp.csr_matrix(W + sp.diags(own))[self.sample_of])
        W = sp.csr_matrix(W - sp.diags(W.diagonal()))
        W.eliminate_zeros()
        W.sort_indices()
        return W

    def solution_of_rows(self, solution, weights: sp.csr_matrix):
        """A `Solution` of distinct samples → of all rows, which have these weights, if copies are kept; else as it is."""
        if not (self.kept and self.any):
            return solution
        return replace(solution, weights=weights, dual=solution.dual[self.sample_of])

    def pairs_of_rows(self, pairs: np.ndarray) -> np.ndarray:
        """Pairs (m, 2) of distinct samples → of their first rows; of all their copies if these are kept."""
        if not (self.kept and self.any):
            return self.first[pairs]
        shape = self.n_distinct, self.n_distinct
        graph = sp.csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)
        of_rows = self.columns_of_rows(graph[self.sample_of]).tocoo()
        return np.sort(np.stack([of_rows.row, of_rows.col], axis=1), axis=1)

    def check_size(self, W: sp.csr_matrix | None = None) -> None:
        """Raise if the graph of all rows would not fit in memory; without W, if the edges of copies alone would not."""
        sizes = self.sizes.astype(np.float64)
        entries = float(sizes @ (sizes - 1.0)) + (0.0 if W is None else float(sizes @ (W.sign() @ sizes)))
        check_memory(
            BYTES_PER_ENTRY * entries,
            f"duplicates='keep' connects all copies with each other, the largest group of which has {int(sizes.max())}: "
            f"{entries:.3g} entries of the graph need",
            "Use duplicates='merge'.",
        )

    def columns_of_rows(self, W: sp.csr_matrix) -> sp.csr_matrix:
        """Rows of weights to the distinct samples → to all rows of the table; copies have none, unless they are kept."""
        if not self.any:
            return W
        if self.kept:
            n = self.sample_of.size
            is_copy = sp.csr_matrix((np.ones(n), (self.sample_of, np.arange(n))), shape=(self.n_distinct, n))
            return sp.csr_matrix(W @ is_copy)
        return sp.csr_matrix((W.data, self.first[W.indices], W.indptr), shape=(W.shape[0], self.sample_of.size))


def no_copies(n: int) -> Copies:
    """Every row is a sample of its own."""
    return Copies(np.arange(n), np.arange(n))


def distinct_samples(X, metric: str, keep: bool = False, *, threads: Threads):
    """(copies, X without them); of a matrix of distances both the rows and the columns of distinct samples are left.

    Allowed edges, the entries of a sparse matrix of distances, are taken as they are given: nothing is merged. If the copies
    are to be kept, it raises where the edges among them would not fit in memory.
    """
    if metric in MATRICES and sp.issparse(X):
        return no_copies(X.shape[0]), X
    copies = find_copies(X if metric in MATRICES else METRICS[metric].prepare(X), threads=threads)
    if keep:
        copies = replace(copies, kept=True)
        copies.check_size()
    if metric not in MATRICES:
        return copies, copies.distinct(X, threads=threads)
    return copies, X[np.ix_(copies.first, copies.first)] if copies.any else X


def find_copies(X, *, threads: Threads) -> Copies:
    """The copies among the rows of X. Rows with the same 64 bits of a hash are compared."""
    X = _canonical(X)
    n = X.shape[0]
    hashes = _hashes(X, threads)
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], hashes[order][1:] != hashes[order][:-1]]))
    if starts.size == n:
        return no_copies(n)
    copy_of = np.empty(n, np.int64)
    copy_of[order] = np.repeat(order[starts], np.diff(np.concatenate([starts, [n]])))  # the first row of each hash
    later = np.flatnonzero(copy_of != np.arange(n))
    for part in blocks(later.size, COMPARED_AT_ONCE if sp.issparse(X) else rows_at_once(X, COMPARED_AT_ONCE)):
        for row in later[part][~_same_rows(X, later[part], copy_of[later[part]])]:  # another row with the same hash
            earlier = np.flatnonzero((hashes[:row] == hashes[row]) & (copy_of[:row] == np.arange(row)))
            same = [other for other in earlier if _same_rows(X, np.array([row]), np.array([other]))[0]]
            copy_of[row] = same[0] if same else row
    first = np.flatnonzero(copy_of == np.arange(n))
    return Copies(first, np.searchsorted(first, copy_of))


def _canonical(X):
    """CSR rows without stored zeros, sorted; a dense X as it is."""
    if not sp.issparse(X):
        return X
    X = sp.csr_matrix(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _hashes(X, threads):
    hashes = np.empty(X.shape[0], np.uint64)
    if sp.issparse(X):
        threads.rows(kernels.hash_sparse_rows, X.shape[0], X.indptr, X.indices, X.data, hashes)
        return hashes
    for part in blocks(X.shape[0], COMPARED_AT_ONCE):
        block = np.ascontiguousarray(X[part])
        threads.rows(kernels.hash_rows, len(block), block, hashes[part], least=ROWS)
    return hashes


def _same_rows(X, rows, others):
    """Which of the rows are equal to the other rows."""
    if not sp.issparse(X):
        return (X[rows] == X[others]).all(axis=1)
    return np.diff((X[rows] != X[others]).tocsr().indptr) == 0
