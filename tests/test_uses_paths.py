"""Hops and diameters against networkx and scipy."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from smoothgraph.uses import diameter, hops


def to_matrix(graph):
    return nx.to_scipy_sparse_array(graph, format="csr")


def hops_by_scipy(W):
    """Between all pairs. Indices are of 32 bits, as scipy 1.12 searches no paths along others."""
    W = sp.csr_matrix((W.data, W.indices.astype(np.int32), W.indptr.astype(np.int32)), W.shape)
    return shortest_path(W, directed=False, unweighted=True)


def graphs():
    yield nx.random_geometric_graph(300, 0.09, seed=1)
    yield nx.barabasi_albert_graph(300, 2, seed=2)
    yield nx.path_graph(40)
    yield nx.random_labeled_tree(200, seed=3)
    yield nx.grid_2d_graph(15, 9)
    yield nx.cycle_graph(31)
    yield nx.complete_graph(6)


def test_the_diameter_is_that_of_the_largest_component():
    for graph in graphs():
        largest = graph.subgraph(max(nx.connected_components(graph), key=len))
        wanted = nx.diameter(largest)
        assert diameter(to_matrix(graph)) == (wanted, wanted)


@pytest.mark.parametrize(
    "graph",
    [
        nx.random_geometric_graph(3500, 0.03, seed=1),
        nx.path_graph(3200),
        nx.random_labeled_tree(3300, seed=3),
        nx.grid_2d_graph(70, 45),
        nx.cycle_graph(3101),
    ],
    ids=["geometric", "path", "tree", "grid", "cycle"],
)
def test_bounds_of_large_graphs_meet_at_the_diameter(graph):
    """Graphs of so many nodes that only some of the hops are counted; scipy counts them all. Small components do not matter."""
    W = to_matrix(graph)
    wanted = hops_by_scipy(W)
    wanted = int(wanted[np.isfinite(wanted)].max())
    W = sp.block_diag([to_matrix(nx.path_graph(9)), W, [[0.0]]], format="csr")
    assert diameter(W, max_searches=4000) == (wanted, wanted)


def test_with_few_searches_the_diameter_is_between_the_bounds():
    loose = 0
    for seed in range(3):
        W = to_matrix(nx.connected_watts_strogatz_graph(3100, 6, 0.1, seed=seed))
        found = diameter(W, max_searches=4)
        assert found.lower <= hops_by_scipy(W).max() <= found.upper
        loose += found.lower < found.upper
    assert loose > 0


def test_hops_are_shortest_paths():
    for graph in graphs():
        nodes = list(graph)
        wanted = nx.single_source_shortest_path_length(graph, nodes[3])
        found = hops(to_matrix(graph), 3)
        assert found.tolist() == [wanted.get(node, -1) for node in nodes]
        np.testing.assert_array_equal(hops(to_matrix(graph), 3, n_hops=2), np.where(found <= 2, found, -1))
    with pytest.raises(ValueError, match="node=40"):
        hops(to_matrix(nx.path_graph(40)), 40)
    with pytest.raises(ValueError, match="n_hops"):
        hops(to_matrix(nx.path_graph(4)), 0, n_hops=-1)
