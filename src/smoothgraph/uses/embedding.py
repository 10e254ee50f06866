"""Spectral embedding: a graph → coordinates for its nodes, by the smoothest functions on it.

The coordinates are the solutions f of (D − W)f = λDf with the smallest λ > 0 (Shi & Malik 2000, Belkin & Niyogi 2003): with
S = D^-½WD^-½, the eigenvectors of the normalised Laplacian I − S divided by √d.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from smoothgraph.uses.graphs import check_graph, degrees, parts
from smoothgraph.uses.systems import factorise

DENSE = 500  # nodes up to which all eigenvectors are computed at once
SHIFT = 1e-7  # what makes I − S positive definite; less would drown the solves in rounding
ACCURACY = 1e-8  # of a solve, relative to its right-hand side


MESH = 9.0  # spread up to which a direct factorisation stays sparse: a learned grid has 6, MNIST and molecules 40


class Embedding(NamedTuple):
    """What `spectral_embedding` found.

    Attributes
    ----------
    coordinates : (n, n_components): NaN for nodes that are not in the largest connected part. Each column f has
        Σᵢ dᵢfᵢ² = 1 and its largest entry is positive.
    eigenvalues : (n_components,): λ, ascending.
    embedded : (n,) bool: whether a node is in the largest connected part.
    n_parts : connected parts of the graph.
    """

    coordinates: np.ndarray
    eigenvalues: np.ndarray
    embedded: np.ndarray
    n_parts: int


def spectral_embedding(W, n_components: int = 2) -> Embedding:
    """Coordinates for the nodes of a graph: the smallest non-trivial solutions of (D − W)f = λDf.

    Only the largest connected part is embedded: the parts of a graph have no position to each other.

    Parameters
    ----------
    W : sparse or dense matrix (n, n): symmetric weights of at least 0.
    n_components : int, default 2

    Returns
    -------
    Embedding : a named tuple (coordinates, eigenvalues, embedded, n_parts); the same at every call.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from smoothgraph import learn_graph, spectral_embedding
    >>> embedding = spectral_embedding(learn_graph(load_digits().data, n_neighbors=10), 2)
    >>> embedding.coordinates.shape, embedding.n_parts
    ((1797, 2), 3)
    """
    W = check_graph(W)
    part = parts(W)
    embedded = part == 0
    size = int(embedded.sum())
    if isinstance(n_components, bool) or int(n_components) != n_components or n_components < 1:
        raise ValueError(f"n_components={n_components!r} must be an integer of at least 1.")
    if size <= n_components:
        raise ValueError(
            f"The largest connected part has {size} nodes, which have {size - 1} coordinates at most: n_components="
            f"{n_components} is too many."
        )
    if size < W.shape[0]:
        W = sp.csr_matrix(W[embedded][:, embedded])
    d = degrees(W)
    root = np.sqrt(d)
    S = sp.csr_matrix(sp.diags(1.0 / root) @ W @ sp.diags(1.0 / root))
    values, vectors = (_all if size <= DENSE else _smallest)(S, root / np.linalg.norm(root), int(n_components))
    coordinates = np.full((part.size, n_components), np.nan)
    vectors = vectors / root[:, None]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(n_components)]
    coordinates[embedded] = vectors * np.sign(largest)
    return Embedding(coordinates, values, embedded, int(part.max()) + 1)


def _all(S, trivial, k):
    values, vectors = np.linalg.eigh(np.eye(trivial.size) - S.toarray() + 3.0 * np.outer(trivial, trivial))
    return values[:k], vectors[:, :k]


def _smallest(S, trivial, k):
    """Lanczos on the inverse.

    The smallest eigenvalues of a graph like a grid are tiny and close; those of the inverse are far apart, and none is missed.
    """
    n = trivial.size
    solve = _solver(S)

    def inverse(v):
        out = solve(v.ravel() - trivial * (trivial @ v.ravel()))
        return out - trivial * (trivial @ out)

    start = np.random.default_rng(0).normal(size=n)
    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LM", v0=inverse(start), ncv=min(max(2 * k + 4, 8), n - 1), tol=1e-7)
    vectors = vectors[:, np.argsort(-values)]
    return np.einsum("ij,ij->j", vectors, vectors - S @ vectors), vectors


def _solver(S):
    """v → (I − S)⁻¹v: by a factorisation where that stays sparse, else by conjugate gradients."""
    n = S.shape[0]
    system = factorise(S, np.full(n, 1.0 + SHIFT))
    if system.spread <= MESH:
        matrix = sp.csc_matrix(sp.diags(np.full(n, 1.0 + SHIFT)) - S)
        return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve

    def solve(v):
        right = np.ascontiguousarray(v[system.order, None])
        x, out = np.zeros_like(right), np.empty(n)
        system.solve(right, x, ACCURACY * np.abs(right).max(), 2000)
        out[system.order] = x[:, 0]
        return out

    return solve
