"""Measures of a graph against networkx and the definitions."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from smoothgraph.uses import diameter, hops, quality, relative_l1, weight_between_classes, wrong_weight


def to_matrix(graph):
    return nx.to_scipy_sparse_array(graph, format="csr")


def graphs():
    yield nx.random_geometric_graph(300, 0.09, seed=1)
    yield nx.barabasi_albert_graph(300, 2, seed=2)
    yield nx.path_graph(40)
    yield nx.random_labeled_tree(200, seed=3)
    yield nx.grid_2d_graph(15, 9)
    yield nx.cycle_graph(31)
    yield nx.complete_graph(6)


@pytest.mark.parametrize("exact", [3000, 0])
def test_the_diameter_is_that_of_the_largest_part(exact, monkeypatch):
    monkeypatch.setattr(quality, "EXACT", exact)
    for graph in graphs():
        largest = graph.subgraph(max(nx.connected_components(graph), key=len))
        wanted = nx.diameter(largest)
        found = diameter(to_matrix(graph), max_searches=1000)
        assert found == (wanted, wanted)


def test_with_few_searches_the_diameter_is_between_the_bounds(monkeypatch):
    monkeypatch.setattr(quality, "EXACT", 0)
    loose = 0
    for seed in range(10):
        graph = nx.connected_watts_strogatz_graph(300, 6, 0.1, seed=seed)
        found = diameter(to_matrix(graph), max_searches=4)
        assert found.lower <= nx.diameter(graph) <= found.upper
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


def test_weights_of_pairs_of_classes_are_sums_over_edges(rng):
    W = sp.random(60, 60, 0.1, random_state=0)
    W = sp.csr_matrix(W + W.T)
    W.setdiag(0.0)
    y = rng.choice(["x", "y", "z"], size=60)
    classes, M = weight_between_classes(W, y)
    dense = W.toarray()
    for a, name in enumerate(classes):
        for b, other in enumerate(classes):
            assert M[a, b] == pytest.approx(dense[np.ix_(y == name, y == other)].sum())
    edges = sp.triu(W).tocoo()
    wrong = sum(w for i, j, w in zip(edges.row, edges.col, edges.data, strict=True) if y[i] != y[j])
    assert wrong_weight(W, y) == pytest.approx(wrong / edges.data.sum())
    assert wrong_weight(W, np.zeros(60)) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="no edges"):
        wrong_weight(np.zeros((3, 3)), [0, 1, 2])
    with pytest.raises(ValueError, match="60 nodes"):
        wrong_weight(W, y[:3])


def test_relative_l1_is_zero_for_itself_and_one_for_an_empty_graph():
    W = to_matrix(nx.path_graph(9))
    assert relative_l1(W, W) == 0.0
    assert relative_l1(np.zeros((9, 9)), W) == 1.0
    assert relative_l1(3 * W, W) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="same nodes"):
        relative_l1(W, np.ones((3, 3)))
    with pytest.raises(ValueError, match="no edges"):
        relative_l1(W, np.zeros((9, 9)))
    with pytest.raises(ValueError, match="reference is not symmetric"):
        relative_l1(W, sp.triu(W))
