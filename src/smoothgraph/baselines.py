"""Neighbour lists → the nearest-neighbour graphs people use today, to compare with.

In: neighbour lists and the kind of weights. Out: a symmetric CSR matrix. Weights are 1 ("knn"), exp(−z/(2σ²)) with one width σ
("knn-gaussian"; the root of the mean squared distance to the last neighbour unless it is given), or exp(−z/(σᵢσⱼ)) with σᵢ the
distance to node i's last neighbour ("knn-self-tuning", Zelnik-Manor & Perona 2004).
"""

import numpy as np
import scipy.sparse as sp

from smoothgraph import _kernels
from smoothgraph.neighbors import NeighborLists, nearest_to_new

MODELS = "knn", "knn-gaussian", "knn-self-tuning"
SMALLEST = np.finfo(np.float64).tiny  # a neighbour so far that its weight is 0 in floating point stays one


def knn_graph(lists: NeighborLists, model: str, width: np.ndarray, mutual: bool = False) -> sp.csr_matrix:
    """An edge where one end lists the other; with `mutual`, where both do. `width` comes from `widths`."""
    n = lists.indices.shape[0]
    directed = _rows(lists.indices, lists.distances, model, width, width, n)
    graph = sp.csr_matrix(directed.minimum(directed.T) if mutual else directed.maximum(directed.T))
    graph.sort_indices()
    return graph


def new_rows(samples, Q, k: int, model: str, width: np.ndarray) -> sp.csr_matrix:
    """Weights (n_new, n) of new samples to their k nearest fitted ones."""
    lists, z, _ = nearest_to_new(samples, Q, k)
    _kernels.tidy_lists(np.full(len(lists), -1, np.int32), lists, z, k)
    lists, z = lists[:, :k], z[:, :k]
    own = _last(z) if model == "knn-self-tuning" else np.full(len(z), width[0])
    return _rows(lists, z, model, np.where(own > 0, own, width.min()), width, samples.n)


def widths(lists: NeighborLists, model: str, sigma: float | None) -> np.ndarray:
    """The width of every node. Duplicates, whose last neighbour is at distance 0, have the smallest that is not 0."""
    last = _last(lists.distances)
    if model == "knn-self-tuning":
        positive = last[last > 0]
        return np.where(last > 0, last, positive.min() if positive.size else 1.0)
    if sigma is None:
        sigma = float(np.sqrt(np.mean(last**2))) or 1.0
    return np.full(last.size, float(sigma))


def _last(z):
    """The distance to the last entry of each row."""
    return np.sqrt(np.where(np.isfinite(z), z, 0.0).max(axis=1).astype(np.float64))


def _rows(lists, z, model, row_width, column_width, n):
    found = lists >= 0
    rows, columns = np.repeat(np.arange(len(lists)), np.count_nonzero(found, axis=1)), lists[found]
    z = z[found].astype(np.float64)
    if model == "knn":
        w = np.ones(z.size)
    else:
        w = np.exp(-z / (row_width[rows] * column_width[columns] * (2.0 if model == "knn-gaussian" else 1.0)))
    return sp.csr_matrix((np.maximum(w, SMALLEST), (rows, columns)), shape=(len(lists), n))
