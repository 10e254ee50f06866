"""Measures of a graph against networkx and the definitions."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from smoothgraph.uses import relative_l1, weight_between_classes, wrong_weight


def to_matrix(graph):
    return nx.to_scipy_sparse_array(graph, format="csr")


def test_weights_of_pairs_of_classes_are_sums_over_edges(rng):
    W = sp.random(60, 60, 0.1, random_state=0)
    W = W + W.T
    W = sp.csr_matrix(W - sp.diags(W.diagonal()))
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
