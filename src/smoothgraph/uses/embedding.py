"""Spectral embedding: a graph → coordinates for its nodes, by the smoothest functions on it.

The coordinates are the solutions f of (D − W)f = λDf with the smallest λ > 0 (Shi & Malik 2000, Belkin & Niyogi 2003): with
S = D^-½WD^-½, the eigenvectors of the normalised Laplacian I − S divided by √d.

Measured on two busy cores: two coordinates of a million molecules with the default graph take 14.6 s and 18 CPU seconds, and
the fit in the same process 47.8 s and 70. LOBPCG with 30 rounds of conjugate gradients in each step took 185 CPU seconds.
"""

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, splu
from sklearn.exceptions import ConvergenceWarning

from smoothgraph.messages import warn
from smoothgraph.parallel import Threads, one_blas_thread
from smoothgraph.uses.graphs import check_graph, components, degrees
from smoothgraph.uses.systems import in_columns, multilevel

MAX_DENSE_NODES = 500  # up to here LAPACK computes all eigenvectors at once, in less than a second
MAX_MESH_SPREAD = 9.0  # `spread` up to which a direct factorisation stays sparse: a learned grid has 6, MNIST and molecules 40
SHIFT = 1e-7  # added to the diagonal of I − S, which makes it positive definite; with less, rounding would spoil the solves
ACCURACY = 1e-4  # wanted ‖(I − S)f − λf‖, relative to λ
ROUNDING = 1e-14  # the same, absolute: what rounding leaves of it where λ is tiny
CALLS_WITH_CYCLE = 3  # the first calls of LOBPCG are preconditioned by one cycle; graphs in many dimensions need no more
INNER_ROUNDS = 30  # rounds of conjugate gradients with which a step of the other calls is preconditioned, at most
INNER_TOLERANCE = 1e-3  # the residual at which these rounds end, relative to the largest entry of the right-hand side
SPARE_COLUMNS = 2  # eigenvectors computed besides those asked for: LOBPCG converges faster with some to spare
LOBPCG_STEPS = 3, 4, 6, 9, 14, 21, 32  # steps between restarts; LOBPCG returns its best, which may be where it started


class Embedding(NamedTuple):
    """What `spectral_embedding` found.

    Attributes
    ----------
    coordinates : (n, n_components): NaN for nodes that are not in the largest connected component. Each column f has
        Σᵢ dᵢfᵢ² = 1 and its largest entry is positive.
    eigenvalues : (n_components,): λ, ascending.
    embedded : (n,) bool: whether a node is in the largest connected component.
    n_graph_components : connected components of the graph (`n_components` is the number of coordinates).
    """

    coordinates: np.ndarray
    eigenvalues: np.ndarray
    embedded: np.ndarray
    n_graph_components: int


def spectral_embedding(W, n_components: int = 2) -> Embedding:
    """Coordinates for the nodes of a graph: the smallest non-trivial solutions of (D − W)f = λDf.

    Only the largest connected component is embedded: components have no position relative to each other.

    Parameters
    ----------
    W : sparse or dense matrix (n, n): symmetric weights of at least 0.
    n_components : int, default 2
        Coordinates of a node.

    Returns
    -------
    Embedding : a named tuple (coordinates, eigenvalues, embedded, n_graph_components); every call gives the same.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from smoothgraph import learn_graph, spectral_embedding
    >>> embedding = spectral_embedding(learn_graph(load_digits().data, n_neighbors=10), 2)
    >>> embedding.coordinates.shape, embedding.n_graph_components
    ((1797, 2), 1)
    """
    W = check_graph(W)
    n_graph_components, component = components(W)
    embedded = component == 0
    size = int(embedded.sum())
    if not isinstance(n_components, Integral) or isinstance(n_components, bool) or n_components < 1:
        raise ValueError(f"n_components={n_components!r} must be an integer of at least 1.")
    if size <= n_components:
        raise ValueError(
            f"The largest connected component has {size} nodes, which have {size - 1} coordinates at most: n_components="
            f"{n_components} is too many."
        )
    if size < W.shape[0]:
        W = sp.csr_matrix(W[embedded][:, embedded])
    d = degrees(W)
    root = np.sqrt(d)
    solver = _all if size <= max(MAX_DENSE_NODES, 5 * (n_components + SPARE_COLUMNS)) else _smallest
    values, vectors = solver(W, root, root / np.linalg.norm(root), int(n_components))
    coordinates = np.full((embedded.size, n_components), np.nan)
    vectors = vectors / root[:, None]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(n_components)]
    coordinates[embedded] = vectors * np.sign(largest)
    return Embedding(coordinates, values, embedded, n_graph_components)


def rough_eigenvectors(W, *, n_rounds: int = 200) -> np.ndarray:
    """Roughly the first two columns of the embedding of a connected graph (n, 2), good enough for a picture.

    Random numbers are averaged over neighbours `n_rounds` times: what varies least along the edges lasts longest.
    """
    degree = np.asarray(W.sum(axis=1))
    average = sp.csr_matrix(W.multiply(0.5 / degree))
    x = np.random.default_rng(0).normal(size=(W.shape[0], 6))
    for r in range(n_rounds):
        x = 0.5 * x + average @ x
        if r % 10 == 9:
            x -= (degree * x).sum(axis=0) / degree.sum()
            x = np.linalg.qr(np.sqrt(degree) * x)[0] / np.sqrt(degree)
    moved = x.T @ (degree * (0.5 * x + average @ x))
    return x @ np.linalg.eigh(moved + moved.T)[1][:, :-3:-1]


def _normalised(W, root):
    """S = D^-½WD^-½."""
    return sp.csr_matrix(sp.diags(1.0 / root) @ W @ sp.diags(1.0 / root))


def _all(W, root, trivial, k):
    """(eigenvalues, eigenvectors): the k smallest of I − S without the trivial one, by LAPACK."""
    S = _normalised(W, root).toarray()
    values, vectors = np.linalg.eigh(np.eye(trivial.size) - S + 3.0 * np.outer(trivial, trivial))
    return values[:k], vectors[:, :k]


def _smallest(W, root, trivial, k):
    """The same, by a direct factorisation where that stays sparse, else by LOBPCG."""
    with Threads() as threads, one_blas_thread:
        system = multilevel(W, SHIFT * root**2, threads=threads)
        if system.spread <= MAX_MESH_SPREAD:
            return _of_mesh(_normalised(W, root), trivial, k)
        vectors = np.empty((root.size, k))
        values, vectors[system.order] = _of_many_dimensions(system, root[system.order], trivial[system.order], k)
        return values, vectors


def _of_mesh(S, trivial, k):
    """Lanczos on the inverse.

    The smallest eigenvalues of a graph that is like a grid are tiny and close to each other. Those of the inverse are far
    apart, so that none is missed.
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


def _of_many_dimensions(system, root, trivial, k):
    """LOBPCG, preconditioned by a cycle over levels. Nodes are in the order of the system.

    The cycle nearly inverts the matrix, so that few steps are needed (13 for a million molecules), and small eigenvalues are
    found however close they are. Where these were not enough, as in graphs of curves and surfaces, rounds of conjugate
    gradients come nearer to the inverse. Spare columns and restarts keep LOBPCG from stalling.
    """
    n = root.size
    root = root[:, None]

    def laplacian(X):
        return in_columns(system.product, X / root) / root - SHIFT * X

    def by_cycle(R):
        return in_columns(system.cycle, R.reshape(n, -1) * root) * root

    def by_rounds(R):
        right = R.reshape(n, -1) * root
        scale = np.maximum(np.abs(right / root**2).max(axis=0), 1e-300)  # the residual of a column may be exactly 0
        x = np.zeros_like(right)
        system.solve(right / scale, x, INNER_TOLERANCE, INNER_ROUNDS)
        return x * scale * root

    operator, cycle, rounds = (
        LinearOperator((n, n), matvec=work, matmat=work, dtype=np.float64) for work in (laplacian, by_cycle, by_rounds)
    )
    start = np.random.default_rng(0).normal(size=(n, k + SPARE_COLUMNS))
    vectors, _ = np.linalg.qr(by_cycle(start - np.outer(trivial, trivial @ start)))
    enough = ROUNDING
    for place, steps in enumerate(LOBPCG_STEPS):
        preconditioner = cycle if place < CALLS_WITH_CYCLE else rounds
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LOBPCG warns that so few steps have not converged
            warnings.simplefilter("ignore", LinAlgWarning)  # and of directions that are nearly the same: the errors judge below
            values, vectors = lobpcg(
                operator, vectors, M=preconditioner, Y=trivial[:, None], largest=False, tol=enough, maxiter=steps
            )
        # LOBPCG stops to work on columns that are this accurate: the noise in them would disturb the others.
        enough = max(0.1 * ACCURACY * values[0], ROUNDING)
        errors = np.linalg.norm(laplacian(vectors) - vectors * values, axis=0)[:k]
        if (errors <= np.maximum(ACCURACY * values[:k], ROUNDING)).all():
            break
    else:
        warn(
            f"After {sum(LOBPCG_STEPS)} steps the error of the embedding is {np.max(errors / values[:k]):.1e} of its "
            f"eigenvalues; {ACCURACY:.0e} was wanted. Clusters with only tiny weights between them make it hard: learn the "
            "graph with more neighbours.",
            ConvergenceWarning,
        )
    return values[:k], vectors[:, :k]
