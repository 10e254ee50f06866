"""What every use needs of a graph: the check, degrees, connected components, and values that belong to its nodes.

In: whatever the user calls a graph. Out of `check_graph`: a CSR matrix, square, symmetric, finite, with weights > 0, an empty
diagonal and sorted indices, which the other functions take.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from smoothgraph.sparse import check_unmasked, checked_csr
from smoothgraph.symmetry import check_symmetric


def check_graph(W, name: str = "W") -> sp.csr_matrix:
    """The graph W, checked. The diagonal and stored zeros are left out; W itself is not changed."""
    shape = W.shape if sp.issparse(W) else np.shape(W)
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be a matrix of weights (n, n), sparse or dense, not an array of {len(shape)} dimensions."
        )
    if shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"{name} has shape {shape}: a graph on n nodes is a matrix (n, n).")
    graph = checked_csr(W, name).astype(np.float64, copy=False)
    if not np.isfinite(graph.data.sum()) and not np.isfinite(graph.data).all():
        raise ValueError(f"{name} has weights that are NaN or infinite: remove those edges, or give them finite weights.")
    if graph.nnz and graph.data.min() < 0.0:
        raise ValueError(
            f"{name} has negative weights, the smallest is {graph.data.min():.6g}: a graph has weights of at least 0."
        )
    if not graph.has_canonical_format or (graph.data == 0.0).any() or graph.diagonal().any():
        graph = graph.copy()  # the conversion to CSR shares its arrays with W where it can
        graph.sum_duplicates()
        row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        graph.data[graph.indices == row] = 0.0  # setdiag of scipy 1.12 stores zeros first, and warns that this takes long
        graph.eliminate_zeros()
    if not np.isfinite(graph.data.sum()):
        raise ValueError(
            f"{name} has weights up to {graph.data.max():.3g}, whose sum is beyond what float64 holds: rescale them."
        )
    check_symmetric(graph, name, f"Neighbours in one direction only are made a graph by {name}.maximum({name}.T).")
    return graph


def one_per_node(name: str, values, n: int) -> np.ndarray:
    """The values as an array of one entry for each of n nodes; an error that calls them `name` otherwise."""
    check_unmasked(values, name, f"fill them in, {name}.filled(value)")
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape}, but the graph has {n} nodes: {name} needs one entry for each.")
    return values


def degrees(W: sp.csr_matrix) -> np.ndarray:
    """The degree of each node: the sum of the weights of its edges."""
    return np.asarray(W.sum(axis=1)).ravel()


def components(W: sp.csr_matrix) -> tuple[int, np.ndarray]:
    """(number of connected components, the component of each node).

    Component 0 is the largest, and so on; components of the same size are in the order of their first nodes.
    """
    count, component = connected_components(W, directed=False)
    number = np.empty(count, dtype=np.int64)
    number[np.argsort(-np.bincount(component, minlength=count), kind="stable")] = np.arange(count)
    return count, number[component]
