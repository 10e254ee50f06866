"""The nearest-neighbour graphs people use today, to compare with. Nothing is learned.

In: neighbour lists. Out: a symmetric graph with an edge where one end lists the other. Weights are 1 ("binary"),
exp(−z/(2σ²)) with one width σ ("gaussian"), or exp(−z/(σᵢσⱼ)) with σᵢ the distance to node i's last neighbour ("self-tuning",
Zelnik-Manor & Perona 2004).
"""

from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from smoothgraph.fit.task import Learned, Task
from smoothgraph.neighbors.lists import keep_nearest
from smoothgraph.neighbors.queries import nearest_to_new
from smoothgraph.parallel import Threads

LEAST_WEIGHT = np.finfo(np.float64).tiny  # a neighbour so far that its weight is 0 in floating point stays one


class Nearest(BaseEstimator):
    """A nearest-neighbour graph; `n_neighbors` is the length of the lists.

    Parameters
    ----------
    weighting : "binary", "gaussian" or "self-tuning".
    sigma : the width of "gaussian"; the root of the mean squared distance to the last neighbour if None.
    mutual : keep an edge only if each end lists the other.
    """

    takes = ()
    learns = False

    def __init__(self, weighting: str = "binary", *, sigma: float | None = None, mutual: bool = False):
        self.weighting = weighting
        self.sigma = sigma
        self.mutual = mutual

    @property
    def name(self) -> str:
        return "knn" if self.weighting == "binary" else f"knn-{self.weighting}"

    def check(self, metric, neighbors) -> None:
        """It needs neighbour lists."""
        if self.weighting not in ("binary", "gaussian", "self-tuning"):
            raise ValueError(f"Nearest({self.weighting!r}) is not known: use 'binary', 'gaussian' or 'self-tuning'.")
        if self.sigma is not None and self.weighting != "gaussian":
            raise ValueError(f"sigma={self.sigma!r} does not apply to model={self.name!r}, only to knn-gaussian: leave it out.")
        if self.sigma is not None and not (isinstance(self.sigma, Real) and 0.0 < self.sigma < np.inf):
            raise ValueError(f"sigma={self.sigma!r} must be a positive, finite number.")
        if isinstance(neighbors, str) and neighbors == "all":
            raise ValueError(
                f"neighbors='all' does not apply to model={self.name!r}, which needs neighbour lists: use 'exact'."
            )

    def given_theta(self, alpha, beta) -> None:
        """There is no θ."""

    def learn(self, task: Task) -> Learned:
        if task.found.is_given:
            raise ValueError(f"model={self.name!r} needs samples, or a dense matrix of distances.")
        found: Any = task.found.by_rows()  # lists, since pairs are refused by `check` and above
        with task.progress.stage("graph"):
            widths = self._widths(found.distances, task.distances.z_unit)
            directed = self._graph(found.indices, found.distances, widths, widths)
            both = directed.minimum(directed.T) if self.mutual else directed.maximum(directed.T)
            graph = sp.csr_matrix(both)
            graph.sort_indices()
        return Learned(graph, rows=partial(self._new_rows, task.distances, found.indices.shape[1], widths))

    def _new_rows(self, distances, k, widths, Q, threads: Threads) -> sp.csr_matrix:
        """Weights (n_new, n) of new samples to their k nearest fitted ones."""
        lists, z, _ = nearest_to_new(distances, Q, k, threads=threads)
        lists, z = keep_nearest(np.full(len(lists), -1, np.int32), lists, z, k, threads=threads)
        own = _last(z) if self.weighting == "self-tuning" else np.full(len(z), widths[0])
        return self._graph(lists, z, np.where(own > 0, own, widths.min()), widths)

    def _widths(self, z, z_unit):
        """The width of every node. Copies, whose last neighbour is at distance 0, have the smallest that is not 0."""
        last = _last(z)
        if self.weighting == "self-tuning":
            positive = last[last > 0]
            return np.where(last > 0, last, positive.min() if positive.size else 1.0)
        sigma = (float(np.sqrt(np.mean(last**2))) or 1.0) if self.sigma is None else self.sigma / np.sqrt(z_unit)
        return np.full(last.size, float(sigma))

    def _graph(self, lists, z, row_widths, column_widths):
        """The directed graph from each row to its list."""
        is_entry = lists >= 0
        rows, columns = np.repeat(np.arange(len(lists)), np.count_nonzero(is_entry, axis=1)), lists[is_entry]
        z = z[is_entry].astype(np.float64)
        if self.weighting == "binary":
            w = np.ones(z.size)
        else:
            factor = 2.0 if self.weighting == "gaussian" else 1.0
            w = np.exp(-z / (row_widths[rows] * column_widths[columns] * factor))
        return sp.csr_matrix((np.maximum(w, LEAST_WEIGHT), (rows, columns)), shape=(len(lists), column_widths.size))


def _last(z):
    """The distance to the last entry of each row."""
    return np.sqrt(np.where(np.isfinite(z), z, 0.0).max(axis=1).astype(np.float64))
