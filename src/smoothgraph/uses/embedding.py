"""Spectral embedding: a graph → coordinates for its nodes, by the smoothest functions on it.

The coordinates are the solutions f of (D − W)f = λDf with the smallest λ > 0 (Shi & Malik 2000, Belkin & Niyogi 2003): with
S = D^-½WD^-½, the eigenvectors of the normalised Laplacian I − S divided by √d.
"""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, splu
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from smoothgraph.uses.graphs import check_graph, degrees, parts
from smoothgraph.uses.systems import factorise

DENSE = 500  # nodes up to which all eigenvectors are computed at once
SHIFT = 1e-7  # what makes I − S positive definite; less would drown the solves in rounding
ACCURACY, ROUNDING = 1e-4, 1e-14  # of (I − S)f = λf: relative to λ, and what rounding leaves
ROUNDS, NEARLY = 30, 1e-3  # of conjugate gradients, or until the residual is so much less
SPARE = 2  # columns more than asked for
STEPS = 3, 4, 6, 9, 14, 21, 32  # of LOBPCG, before it starts again: what it returns is its best, which may be where it started
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
    """By a factorisation where that stays sparse, else by conjugate gradients."""
    n = trivial.size
    system = factorise(S, np.full(n, 1.0 + SHIFT))
    with threadpool_limits(limits=1, user_api="blas"):  # its threads and ours would wait for each other, spinning
        if system.spread <= MESH:
            values, vectors = _of_mesh(S, trivial, k)
        else:
            vectors = np.empty((n, k))
            values, vectors[system.order] = _of_many_dimensions(system, trivial[system.order], k)
    return values, vectors


def _of_mesh(S, trivial, k):
    """Lanczos on the inverse.

    The smallest eigenvalues of a graph like a grid are tiny and close; those of the inverse are far apart, and none is missed.
    """
    n = trivial.size
    matrix = sp.csc_matrix(sp.diags(np.full(n, 1.0 + SHIFT)) - S)
    solve = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve

    def inverse(v):
        out = solve(v.ravel() - trivial * (trivial @ v.ravel()))
        return out - trivial * (trivial @ out)

    start = np.random.default_rng(0).normal(size=n)
    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LM", v0=inverse(start), ncv=min(max(2 * k + 4, 8), n - 1), tol=1e-7)
    vectors = vectors[:, np.argsort(-values)]
    return np.einsum("ij,ij->j", vectors, vectors - S @ vectors), vectors


def _of_many_dimensions(system, trivial, k):
    """LOBPCG, nodes in the order of the system, which some rounds of conjugate gradients precondition.

    They nearly invert, so that it takes few steps and finds what is small, however close. More columns than asked for, and
    starting again after a few steps, keep it from stalling.
    """
    n = trivial.size

    def laplacian(X):
        return X - system.W @ X

    def nearly_inverse(R):
        right = np.ascontiguousarray(R.reshape(n, -1))
        scale = np.maximum(np.abs(right).max(axis=0), 1e-300)  # a column may be right to the last digit
        x = np.zeros_like(right)
        system.solve(right / scale, x, NEARLY, ROUNDS)
        return x * scale

    operator, preconditioner = (
        LinearOperator((n, n), matvec=work, matmat=work, dtype=np.float64) for work in (laplacian, nearly_inverse)
    )
    start = np.random.default_rng(0).normal(size=(n, k + SPARE))
    vectors, _ = np.linalg.qr(nearly_inverse(start - np.outer(trivial, trivial @ start)))
    enough = ROUNDING
    for steps in STEPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that so few steps have not converged
            values, vectors = lobpcg(
                operator, vectors, M=preconditioner, Y=trivial[:, None], largest=False, tol=enough, maxiter=steps
            )
        enough = max(0.1 * ACCURACY * values[0], ROUNDING)  # columns that are this right rest: their noise disturbs the others
        off = np.linalg.norm(laplacian(vectors) - vectors * values, axis=0)[:k]
        if (off <= np.maximum(ACCURACY * values[:k], ROUNDING)).all():
            break
    else:
        warnings.warn(
            f"After {sum(STEPS)} steps the embedding is right to {np.max(off / values[:k]):.1e} of its eigenvalues only. "
            "Parts of the graph that hang together by tiny weights make it hard: more neighbours help.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return values[:k], vectors[:, :k]
