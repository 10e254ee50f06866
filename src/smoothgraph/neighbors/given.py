"""Neighbours that are not searched here.

In: the user's own lists, a pair (indices, distances) or a k-neighbours transformer; or a sparse matrix of squared distances, or
the wish for all pairs. Out: `NeighborLists` of the given indices, with distances measured anew; or `AllowedPairs`.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from smoothgraph.distances import Distances
from smoothgraph.edges import Edges, edges_of_all_pairs, edges_of_matrix
from smoothgraph.neighbors.lists import NeighborLists, RecallSample, clean_all
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import Threads
from smoothgraph.sparse import check_unmasked, checked_csr

LISTS_NAME, EDGES_NAME, PAIRS_NAME = "given lists", "allowed edges", "all pairs"


@dataclass(frozen=True, eq=False)
class AllowedPairs:
    """Allowed edges that need no search: those of a sparse matrix, which `is_given`, or all pairs. Nodes are rows.

    `edges` returns the same store every time. No edge is ever new to it, so that it is never consumed: it has all pairs, or the
    only ones that there are.
    """

    pairs: Edges
    name: str
    is_given: bool
    numbering: Numbering = field(default_factory=Numbering)

    exact = False  # there are no lists that could be compared with every sample
    recall = 1.0

    @property
    def most_neighbors(self) -> float:
        return 2 * self.pairs.n_edges / self.pairs.n

    def edges(self, *, threads: Threads) -> Edges:
        return self.pairs

    def nearest(self, width: int, local_scale: np.ndarray | None = None, *, threads: Threads) -> np.ndarray:
        return self.pairs.scaled(local_scale, threads=threads).nearest(width, threads=threads)

    def first(self, width: int) -> "AllowedPairs":
        return self

    def by_rows(self) -> "AllowedPairs":
        return self

    def release(self) -> None:
        """Nothing is let go: the solve goes on with the same edges."""


def matrix_pairs(Z: sp.csr_matrix) -> AllowedPairs:
    """The stored entries of a symmetric matrix of squared distances, and no others."""
    return AllowedPairs(edges_of_matrix(Z), EDGES_NAME, is_given=True)


def all_pairs(distances: Distances, *, threads: Threads) -> AllowedPairs:
    """Every pair of samples."""
    return AllowedPairs(edges_of_all_pairs(distances, threads=threads), PAIRS_NAME, is_given=False)


def given_name(given) -> str:
    """What the user's own lists are called: the class of a transformer, or "given lists"."""
    return type(given).__name__ if hasattr(given, "fit_transform") else LISTS_NAME


def lists_of_given(distances: Distances, k: int, given, *, threads: Threads) -> NeighborLists:
    """The user's lists, at their full length: `given` is a k-neighbours transformer, or a pair (indices, distances).

    Of a pair only the indices are used. The recall is that of the first k entries.
    """
    name = given_name(given)
    sample = RecallSample(distances, k, threads=threads)
    indices = _transformed(given, distances, name) if hasattr(given, "fit_transform") else _checked_indices(given, distances.n)
    lists, z = clean_all(distances, indices, indices.shape[1], name, threads=threads)
    return NeighborLists(lists, z, name, exact=False, recall=sample.recall(z[sample.nodes]))


def _transformed(transformer, distances, name):
    """The lists that a k-neighbours transformer makes."""
    found = transformer.fit_transform(distances.X)
    shape = found.shape if sp.issparse(found) else np.shape(found)
    if shape != (distances.n, distances.n):
        raise ValueError(
            f"neighbors={name} returned a matrix of shape {shape}; a k-neighbours transformer of {distances.n} samples returns "
            f"({distances.n}, {distances.n})."
        )
    matrix = checked_csr(found, f"The result of neighbors={name}")
    if not np.isfinite(matrix.data).all():  # its distances are not used, but neighbours at such a distance are none
        wrong = matrix.data[~np.isfinite(matrix.data)][0]
        raise ValueError(f"neighbors={name} returned a distance of {wrong}: leave out what is no neighbour.")
    counts = np.diff(matrix.indptr)
    lists = np.full((distances.n, counts.max(initial=1)), -1, np.int32)
    lists[np.arange(lists.shape[1]) < counts[:, None]] = matrix.indices[: matrix.indptr[-1]]
    return lists


def _checked_indices(pair, n):
    """The indices of a pair (indices, distances)."""
    if len(pair) != 2:
        raise ValueError(f"neighbors has {len(pair)} parts: a pair (indices, distances) is needed.")
    check_unmasked(pair[0], "neighbors[0]", "fill them in, with −1 for a missing entry")
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
