"""Weights → the graph the user gets, and rows for samples it has not seen.

In: the solution's weights (δ = 1), or the fitted λ and new samples. Out: scipy CSR matrices: symmetric with empty diagonal for
the graph, (n_new, n) for the rows; no stored zeros.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh

from smoothgraph import _kernels
from smoothgraph.neighbors import nearest_to_new
from smoothgraph.samples import ROWS


def scale_factor(W: sp.csr_matrix, scale) -> float:
    """What to multiply W by: δ itself, or what makes ‖W‖₁,₁ = n ("sum") or the Laplacian's largest eigenvalue 1."""
    if scale == "sum":
        return W.shape[0] / float(W.sum())
    if scale == "laplacian":
        return 1.0 / _largest_eigenvalue(laplacian(W))
    return float(scale)


def _largest_eigenvalue(L):
    if L.shape[0] < 100:
        return float(np.linalg.eigvalsh(L.toarray())[-1])
    start = np.random.default_rng(0).normal(size=L.shape[0])
    return float(eigsh(L, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def new_rows(samples, Q, theta: float, upper: float, lam: np.ndarray, k: int) -> sp.csr_matrix:
    """Weights (n_new, n) of new samples to the fitted ones: each solves its one-node problem, the others' λ staying as it is.

    With aⱼ = 2θzⱼ − λⱼ the row is clip((λ − a)/2, 0, upper), so it is found among the samples of smallest a. A row is complete
    when its λ is at most the a of whoever it was not given; until then it gets twice as many. `k` sets how many come first.
    """
    parts = []
    for begin in range(0, Q.shape[0], ROWS):
        block = Q[begin : begin + ROWS]
        columns, weights = _complete_rows(samples, block, theta, upper, lam, k)
        indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
        part = sp.csr_matrix((np.concatenate(weights), np.concatenate(columns), indptr), shape=(block.shape[0], samples.n))
        part.sort_indices()
        parts.append(part)
    return sp.csr_matrix(sp.vstack(parts, format="csr"))


def _complete_rows(samples, Q, theta, upper, lam, k):
    """Columns and weights of each row, as lists of arrays."""
    rows = Q.shape[0]
    columns, weights = [None] * rows, [None] * rows
    pending, width = np.arange(rows), min(4 * k, samples.n)
    while pending.size:
        lists, distances, cuts = nearest_to_new(samples, Q[pending], width, lam / (2.0 * theta))
        if not (lists >= 0).any(axis=1).all():
            row = int(pending[np.argmin((lists >= 0).any(axis=1))])
            raise ValueError(f"New sample {row} has no allowed edge: store at least one squared distance in its row.")
        a = np.where(lists < 0, _kernels.NEVER, 2.0 * theta * distances.astype(np.float64) - lam[lists])
        new_lam, w = _kernels.new_rows(a, upper)
        done = (new_lam <= 2.0 * theta * cuts) | (width == samples.n)
        for r in np.flatnonzero(done):
            keep = w[r] > 0.0
            columns[pending[r]], weights[pending[r]] = lists[r, keep], w[r, keep]
        pending, width = pending[~done], min(2 * width, samples.n)
    return columns, weights
