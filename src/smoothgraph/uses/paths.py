"""Paths in a graph, in hops: a hop is one edge, whatever its weight.

In: a graph, as `check_graph` takes it. Out: counts of hops.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from smoothgraph._kernels import hops as kernels
from smoothgraph.parallel import Threads
from smoothgraph.uses.graphs import check_graph, components

MAX_EXACT_NODES = 3000  # up to here the hops between all pairs are counted, which takes 70 MB and about a second
NO_LIMIT = -1  # what the kernel takes for "count the hops of all paths"


class Diameter(NamedTuple):
    """The hops of the longest shortest path of the largest component: at least `lower`, at most `upper`; equal if exact."""

    lower: int
    upper: int


def diameter(W, *, max_searches: int = 100) -> Diameter:
    """The diameter of the graph's largest connected component, in hops.

    It is exact up to 3,000 nodes. For larger graphs, breadth-first searches from well chosen nodes bring a lower and an upper
    bound together (Crescenzi et al. 2013, iFUB): they stop when both are equal, or after `max_searches`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from smoothgraph.uses import diameter
    >>> path = sp.diags([1.0, 1.0], [-1, 1], shape=(5, 5))
    >>> diameter(path)
    Diameter(lower=4, upper=4)
    """
    W = check_graph(W)
    if not isinstance(max_searches, Integral) or max_searches < 1:
        raise ValueError(f"max_searches={max_searches!r} must be an integer of at least 1.")
    largest = components(W)[1] == 0
    if not largest.all():
        W = sp.csr_matrix(W[largest][:, largest])
    if W.shape[0] <= MAX_EXACT_NODES:
        longest = int(shortest_path(W, directed=False, unweighted=True).max())
        return Diameter(longest, longest)
    with Threads(1):
        return _bounded(W, max_searches)


def _bounded(W, max_searches) -> Diameter:
    """The diameter of a connected graph by a few searches."""
    far = _hops(W, int(np.diff(W.indptr).argmax()))
    first = _hops(W, int(far.argmax()))
    second = _hops(W, int(first.argmax()))
    lower, searches = int(first.max()), 3
    # From the middle of a long path, all nodes are within about half of its hops.
    on_path = np.flatnonzero(first + second == lower)
    level = _hops(W, int(on_path[np.abs(first - second)[on_path].argmin()]))
    # Nodes within r hops of the middle are at most 2r hops apart. So the outermost nodes come first, and the search ends when
    # the nodes that are left cannot be farther apart than what was found.
    for r in range(int(level.max()), 0, -1):
        for node in np.flatnonzero(level == r):
            if lower >= 2 * r:
                return Diameter(lower, lower)
            if searches >= max_searches:
                return Diameter(lower, 2 * r)
            lower, searches = max(lower, int(_hops(W, int(node)).max())), searches + 1
    return Diameter(lower, lower)


def _hops(W, node, max_hops=NO_LIMIT):
    return kernels.hop_counts(W.indptr, W.indices, node, max_hops)


def hops(W, node: int, n_hops: int | None = None) -> np.ndarray:
    """The number of edges on the shortest path from `node` to each node; −1 if there is none, or none of at most `n_hops`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from smoothgraph.uses import hops
    >>> path = sp.diags([1.0, 1.0], [-1, 1], shape=(5, 5))
    >>> hops(path, 1).tolist(), hops(path, 1, n_hops=1).tolist()
    ([1, 0, 1, 2, 3], [1, 0, 1, -1, -1])
    """
    W = check_graph(W)
    if not (isinstance(node, Integral) and 0 <= node < W.shape[0]):
        raise ValueError(f"node={node!r} is not in the graph: its nodes are 0 to {W.shape[0] - 1}.")
    if n_hops is not None and not (isinstance(n_hops, Integral) and n_hops >= 0):
        raise ValueError(f"n_hops={n_hops!r} must be an integer of at least 0, or None for no limit.")
    with Threads(1):
        return _hops(W, int(node)) if n_hops is None else _hops(W, int(node), min(int(n_hops), W.shape[0]))
