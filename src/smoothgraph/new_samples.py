"""Rows for samples that the graph has not seen.

In: λ of the fitted samples, and new samples. Out: weights (n_new, n) as a CSR matrix without stored zeros. Each new sample
solves its one-node problem while the λ of the fitted samples stay.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from smoothgraph._kernels.dual import NEVER
from smoothgraph.distances import Distances
from smoothgraph.neighbors.queries import nearest_to_new
from smoothgraph.parallel import ROWS, Threads, blocks
from smoothgraph.theta import node_thetas

FIRST_WIDTH = 4  # a row is looked for among so many times the wanted number of neighbours at first


def rows_of_new(X, distances: Distances, rows: Callable[..., sp.csr_matrix], *, threads: Threads) -> sp.csr_matrix:
    """Weights (n_new, n) of new samples, where `rows(queries, threads)` has those of a block of them.

    A block at a time is brought into the form of the fitted samples, which may be dense while X is sparse.
    """
    parts = []
    for part in blocks(X.shape[0], ROWS):
        Q = distances.queries(X[part])
        if not sp.issparse(Q) and not (has_edge := np.isfinite(Q).any(axis=1)).all():
            row = part.start + int(np.argmin(has_edge))
            raise ValueError(f"New sample {row} has no allowed edge: store at least one distance in its row.")
        parts.append(rows(Q, threads))
    return sp.csr_matrix(sp.vstack(parts, format="csr"))


@dataclass(frozen=True, eq=False)
class FittedGraph:
    """What a row for a new sample needs of the fitted ones.

    `solve_rows(a, threads)` gives λ and weights of new nodes with costs a. θ and λ are those of the problem without a prior,
    whose weights are 1/`ratio` times as large. `local_scale` is what locality multiplies the fitted samples' distances by, or
    None. If fitted samples stand for several rows (`sizes`), it is `solve_rows(a, sizes, threads)`, and weights are those to
    each of these rows.
    """

    distances: Distances
    solve_rows: Callable[..., tuple[np.ndarray, np.ndarray]]
    theta: float
    lam: np.ndarray
    k: int
    locality: float = 0.0
    local_scale: np.ndarray | None = None
    ratio: float = 1.0
    sizes: np.ndarray | None = None

    def rows(self, Q, threads: Threads) -> sp.csr_matrix:
        """Weights (n_new, n) of new samples to the fitted ones.

        With aⱼ = 2θzⱼ − λⱼ a row is (λ − a)/2 where that is positive, so it is found among the samples of smallest a. A row
        is complete when its λ is at most the a of every sample that it was not given; until then it gets twice as many.
        """
        columns, weights = self._complete_rows(Q, threads)
        indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
        rows = self.distances.numbering.rows(np.concatenate(columns))
        part = sp.csr_matrix((np.concatenate(weights), rows, indptr), shape=(Q.shape[0], self.distances.n))
        part.sort_indices()
        return part * self.ratio

    def _complete_rows(self, Q, threads):
        """Columns and weights of each row, as lists of arrays."""
        n_rows, n, theta, lam = Q.shape[0], self.distances.n, self.theta, self.lam
        columns, weights = [np.empty(0, np.int32)] * n_rows, [np.empty(0)] * n_rows
        own = None if self.local_scale is None else self._own_scale(Q, threads)
        pending, width = np.arange(n_rows), min(FIRST_WIDTH * self.k, n)
        while pending.size:
            scales = None if own is None or self.local_scale is None else (own[pending], self.local_scale)
            offset = lam / (2.0 * theta)
            lists, z, cuts = nearest_to_new(self.distances, Q[pending], width, offset, scales, threads=threads)
            z = z.astype(np.float64) if scales is None else z * scales[0][:, None] * scales[1][lists]
            a = np.where(lists < 0, NEVER, 2.0 * theta * z - lam[lists])
            masses = () if self.sizes is None else (self.sizes[lists].astype(np.float64),)
            new_lam, w = self.solve_rows(a, *masses, threads)
            is_complete = (new_lam <= 2.0 * theta * cuts) | (width == n)
            for r in np.flatnonzero(is_complete):
                keep = w[r] > 0.0
                columns[pending[r]], weights[pending[r]] = lists[r, keep], w[r, keep]
            pending, width = pending[~is_complete], min(2 * width, n)
        return columns, weights

    def _own_scale(self, Q, threads):
        """What locality multiplies the new samples' distances by: θᵢ from their own nearest, as the fitted ones had it."""
        k = min(self.k, self.distances.n - 1)
        z = np.sort(nearest_to_new(self.distances, Q, k + 1, threads=threads)[1], axis=1)
        return node_thetas(z, k) ** (0.5 * self.locality)
