"""Weights → the graph the user gets.

In: a symmetric CSR matrix of weights with δ = 1. Out: what to multiply it by, and how many components it has.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh

from smoothgraph._kernels import components


def scale_factor(W: sp.csr_matrix, scale: float | str) -> float:
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


def count_components(W: sp.csr_matrix) -> int:
    """The number of connected components of a symmetric graph."""
    return int(components.components(W.indptr, W.indices).max()) + 1
