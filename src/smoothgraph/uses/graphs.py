"""What every use asks of a graph: the one check, and its connected parts.

In: whatever the user calls a graph. Out: a CSR matrix, square, symmetric, finite, weights > 0, diagonal empty, indices sorted.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

ROUNDING = 1e-5  # relative difference of (i, j) and (j, i) that is put down to rounding


def check_graph(W, name: str = "W") -> sp.csr_matrix:
    """The graph W, checked; a diagonal and stored zeros are left out, W itself is not changed."""
    if not sp.issparse(W) and np.ndim(W) != 2:
        raise ValueError(
            f"{name} must be a matrix of weights (n, n), sparse or dense, not an array of {np.ndim(W)} dimensions."
        )
    graph = sp.csr_matrix(W, dtype=np.float64)
    if graph.shape[0] != graph.shape[1] or graph.shape[0] == 0:
        raise ValueError(f"{name} has shape {graph.shape}: a graph on n nodes is a matrix (n, n).")
    if not np.isfinite(graph.data).all():
        raise ValueError(f"{name} has weights that are NaN or infinite: remove those edges, or give them finite weights.")
    if graph.nnz and graph.data.min() < 0.0:
        raise ValueError(
            f"{name} has negative weights, the smallest is {graph.data.min():.6g}: a graph has weights of at least 0."
        )
    if not graph.has_canonical_format or (graph.data == 0.0).any() or graph.diagonal().any():
        graph = graph.copy()  # the conversion above copies only what it must
        graph.sum_duplicates()
        graph.setdiag(0.0)
        graph.eliminate_zeros()
    _check_symmetry(graph, name)
    return graph


def _check_symmetry(graph, name):
    back = graph.T.tocsr()
    same_pattern = np.array_equal(graph.indptr, back.indptr) and np.array_equal(graph.indices, back.indices)
    if same_pattern and np.allclose(graph.data, back.data, rtol=ROUNDING, atol=0.0):
        return
    difference = sp.coo_matrix(abs(graph - back))
    at = int(np.argmax(difference.data))
    i, j = int(difference.row[at]), int(difference.col[at])
    raise ValueError(
        f"{name} is not symmetric: ({i}, {j}) holds {graph[i, j]:.6g}, ({j}, {i}) holds {graph[j, i]:.6g}. Neighbours in one "
        f"direction only are made a graph by {name}.maximum({name}.T)."
    )


def degrees(W: sp.csr_matrix) -> np.ndarray:
    """The weighted degree of each node."""
    return np.asarray(W.sum(axis=1)).ravel()


def parts(W: sp.csr_matrix) -> np.ndarray:
    """The connected component of each node, numbered from the largest on; equal ones in the order of their first nodes."""
    _, component = connected_components(W, directed=False)
    sizes = np.bincount(component)
    number = np.empty(sizes.size, dtype=np.int64)
    number[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    return number[component]
