"""How good a graph is: by labels, by distances along it, and against another graph.

In: a graph, as `check_graph` takes it. Out: numbers and small arrays. Hops count edges; weights play no part in them.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from smoothgraph import _kernels
from smoothgraph.uses.graphs import check_graph, parts

EXACT = 3000  # nodes up to which the diameter is the largest of all distances


def weight_between_classes(W, y) -> tuple[np.ndarray, np.ndarray]:
    """(classes, M): M[a, b] is the sum of the weights Wᵢⱼ over i of class a, j of class b; all of M sums to ‖W‖₁,₁.

    Examples
    --------
    >>> from smoothgraph.uses import weight_between_classes
    >>> classes, M = weight_between_classes([[0, 2, 0], [2, 0, 1], [0, 1, 0]], ["a", "a", "b"])
    >>> classes.tolist(), M.tolist()
    (['a', 'b'], [[4.0, 1.0], [1.0, 0.0]])
    """
    W = check_graph(W)
    y = np.asarray(y)
    if y.shape != (W.shape[0],):
        raise ValueError(f"y has shape {y.shape}, but the graph has {W.shape[0]} nodes: y needs one entry for each.")
    classes, code = np.unique(y, return_inverse=True)
    n = W.shape[0]
    member = sp.csr_matrix((np.ones(n), (code, np.arange(n))), shape=(classes.size, n))
    return classes, (member @ W @ member.T).toarray()


def wrong_weight(W, y) -> float:
    """The share of the weight that is on edges between nodes of different classes.

    Examples
    --------
    >>> from smoothgraph.uses import wrong_weight
    >>> wrong_weight([[0, 3, 0], [3, 0, 1], [0, 1, 0]], [0, 0, 1])
    0.25
    """
    _, M = weight_between_classes(W, y)
    total = M.sum()
    if total == 0.0:
        raise ValueError("W has no edges: there is no weight to take a share of.")
    return float(1.0 - np.trace(M) / total)


class Diameter(NamedTuple):
    """The longest shortest path of the largest connected part, in hops: between `lower` and `upper`, the same if it is exact."""

    lower: int
    upper: int


def diameter(W, *, max_searches: int = 100) -> Diameter:
    """The diameter of the graph's largest connected part, in hops.

    Exact up to 3,000 nodes. Beyond, breadth-first searches from well chosen nodes narrow it down (Crescenzi et al. 2013, iFUB):
    they stop when both bounds meet, or after `max_searches`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from smoothgraph.uses import diameter
    >>> path = sp.diags([1, 1], [-1, 1], shape=(5, 5))
    >>> diameter(path)
    Diameter(lower=4, upper=4)
    """
    W = check_graph(W)
    largest = parts(W) == 0
    if not largest.all():
        W = sp.csr_matrix(W[largest][:, largest])
    if W.shape[0] <= EXACT:
        longest = int(shortest_path(W, directed=False, unweighted=True).max())
        return Diameter(longest, longest)
    return _bounded(W, max_searches)


def _bounded(W, max_searches) -> Diameter:
    far = _hops(W, int(np.diff(W.indptr).argmax()))
    first = _hops(W, int(far.argmax()))
    second = _hops(W, int(first.argmax()))
    lower, searches = int(first.max()), 3
    # From half way along a long path the whole graph is seen in about half as many hops.
    on_path = np.flatnonzero(first + second == lower)
    level = _hops(W, int(on_path[np.abs(first - second)[on_path].argmin()]))
    # Nodes within r of the middle are at most 2r apart: look from the outermost inwards until the others cannot be farther.
    for r in range(int(level.max()), 0, -1):
        for node in np.flatnonzero(level == r):
            if lower >= 2 * r:
                return Diameter(lower, lower)
            if searches >= max_searches:
                return Diameter(lower, 2 * r)
            lower, searches = max(lower, int(_hops(W, int(node)).max())), searches + 1
    return Diameter(lower, lower)


def _hops(W, node, most=np.iinfo(np.int32).max):
    return _kernels.hop_counts(W.indptr, W.indices, node, most)


def hops(W, node: int, n_hops: int | None = None) -> np.ndarray:
    """The number of edges on the shortest path from `node` to each node; −1 where there is none, or none of at most `n_hops`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from smoothgraph.uses import hops
    >>> path = sp.diags([1, 1], [-1, 1], shape=(5, 5))
    >>> hops(path, 1).tolist(), hops(path, 1, n_hops=1).tolist()
    ([1, 0, 1, 2, 3], [1, 0, 1, -1, -1])
    """
    W = check_graph(W)
    if not 0 <= node < W.shape[0]:
        raise ValueError(f"node={node!r} is not in the graph: its nodes are 0 to {W.shape[0] - 1}.")
    if n_hops is not None and n_hops < 0:
        raise ValueError(f"n_hops={n_hops!r} must be at least 0, or None for no limit.")
    return _hops(W, int(node)) if n_hops is None else _hops(W, int(node), int(n_hops))


def relative_l1(W, reference) -> float:
    """‖W − reference‖₁,₁ / ‖reference‖₁,₁: how far a graph is from another on the same nodes.

    Examples
    --------
    >>> from smoothgraph.uses import relative_l1
    >>> relative_l1([[0, 1], [1, 0]], [[0, 4], [4, 0]])
    0.75
    """
    W, reference = check_graph(W), check_graph(reference, "reference")
    if W.shape != reference.shape:
        raise ValueError(f"W has {W.shape[0]} nodes, reference {reference.shape[0]}: only graphs on the same nodes compare.")
    if reference.nnz == 0:
        raise ValueError("reference has no edges: there is nothing to be relative to.")
    return float(abs(W - reference).sum() / reference.sum())
