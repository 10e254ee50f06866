"""Weights → the graph the user gets, and rows for samples it has not seen.

In: the solution's weights (δ = 1), or the fitted λ and new samples. Out: scipy CSR matrices: symmetric with empty diagonal for
the graph, (n_new, n) for the rows; no stored zeros.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh

from smoothgraph import _kernels
from smoothgraph.neighbors import nearest_to_new
from smoothgraph.samples import ROWS
from smoothgraph.solvers.problem import Solution
from smoothgraph.theta import node_thetas


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


def by_nodes(W: sp.csr_matrix, order) -> sp.csr_matrix:
    """A graph of samples as one of nodes: node i is sample order[i]."""
    return by_rows(W, np.argsort(order))


def by_rows(W: sp.csr_matrix, order) -> sp.csr_matrix:
    """A graph of nodes as one of samples: node i is sample order[i]."""
    W = W[np.argsort(order)]
    W = sp.csr_matrix((W.data, order[W.indices], W.indptr), shape=W.shape)
    W.sort_indices()
    return W


def solution_by_rows(solution: Solution, order) -> Solution:
    """The solution for nodes as one for samples; order is None where they are the same."""
    if order is None:
        return solution
    dual = np.empty_like(solution.dual)
    dual[order] = solution.dual
    return replace(solution, weights=by_rows(solution.weights, order), dual=dual)


@dataclass(frozen=True)
class Fitted:
    """What a row for a new sample needs of the fitted ones.

    `solve_rows(a)` gives λ and weights of new nodes with costs a. `stretch` is what locality makes of the fitted samples'
    distances, None without it; θ and λ are those of the form without a prior.
    """

    samples: Any
    solve_rows: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    theta: float
    lam: np.ndarray
    k: int
    locality: float = 0.0
    stretch: np.ndarray | None = None


def new_rows(fitted: Fitted, Q, ratio: float = 1.0) -> sp.csr_matrix:
    """Weights (n_new, n) of new samples to the fitted ones, `ratio` times as large.

    Each new sample solves its one-node problem, the others' λ staying as it is.
    With aⱼ = 2θzⱼ − λⱼ the row is (λ − a)/2 where that is positive, so it is found among the samples of smallest a. A row is
    complete when its λ is at most the a of whoever it was not given; until then it gets twice as many.
    """
    parts = []
    for begin in range(0, Q.shape[0], ROWS):
        block = Q[begin : begin + ROWS]
        columns, weights = _complete_rows(fitted, block)
        indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
        shape = block.shape[0], fitted.samples.n
        part = sp.csr_matrix((np.concatenate(weights), fitted.samples.rows(np.concatenate(columns)), indptr), shape=shape)
        part.sort_indices()
        parts.append(part)
    return sp.csr_matrix(sp.vstack(parts, format="csr")) * ratio


def _complete_rows(fitted, Q):
    """Columns and weights of each row, as lists of arrays."""
    rows, n, theta, lam = Q.shape[0], fitted.samples.n, fitted.theta, fitted.lam
    columns, weights = [None] * rows, [None] * rows
    own = None if fitted.stretch is None else _own_stretch(fitted, Q)
    pending, width = np.arange(rows), min(4 * fitted.k, n)
    while pending.size:
        stretch = None if own is None else (own[pending], fitted.stretch)
        lists, z, cuts = nearest_to_new(fitted.samples, Q[pending], width, lam / (2.0 * theta), stretch)
        if not (lists >= 0).any(axis=1).all():
            row = int(pending[np.argmin((lists >= 0).any(axis=1))])
            raise ValueError(f"New sample {row} has no allowed edge: store at least one squared distance in its row.")
        z = z.astype(np.float64) if own is None else z * own[pending, None] * fitted.stretch[lists]
        a = np.where(lists < 0, _kernels.NEVER, 2.0 * theta * z - lam[lists])
        new_lam, w = fitted.solve_rows(a)
        done = (new_lam <= 2.0 * theta * cuts) | (width == n)
        for r in np.flatnonzero(done):
            keep = w[r] > 0.0
            columns[pending[r]], weights[pending[r]] = lists[r, keep], w[r, keep]
        pending, width = pending[~done], min(2 * width, n)
    return columns, weights


def _own_stretch(fitted, Q):
    """What locality makes of the new samples' distances: θᵢ from their own nearest, as the fitted ones had it."""
    k = min(fitted.k, fitted.samples.n - 1)
    z = np.sort(nearest_to_new(fitted.samples, Q, k + 1)[1], axis=1)
    return node_thetas(z, k) ** (0.5 * fitted.locality)
