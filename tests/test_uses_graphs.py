"""What the uses share: the check of a graph, its components, values of its nodes, and the public names."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from smoothgraph import uses
from smoothgraph.uses.graphs import check_graph, components, degrees, one_per_node


def random_graph(n, density, seed):
    upper = sp.triu(sp.random(n, n, density, random_state=np.random.default_rng(seed)), k=1)
    return sp.csr_matrix(upper + upper.T)


@pytest.mark.parametrize("seed", range(5))
def test_components_are_those_of_scipy_and_the_largest_is_first(seed):
    W = random_graph(200, 0.005, seed)
    count, component = components(W)
    n_expected, expected = connected_components(W, directed=False)
    assert count == n_expected > 5
    assert len(set(zip(component, expected, strict=True))) == count == component.max() + 1
    sizes = np.bincount(component)
    assert (np.diff(sizes) <= 0).all()
    first = np.array([np.argmax(component == c) for c in range(count)])
    assert (np.diff(first)[np.diff(sizes) == 0] > 0).all()


def test_degrees_are_sums_of_weights():
    W = random_graph(30, 0.2, 0)
    np.testing.assert_allclose(degrees(W), W.toarray().sum(axis=1))


def test_a_checked_graph_has_no_diagonal_and_no_zeros():
    W = sp.csr_matrix(([5.0, 0.0, 1.0, 1.0], ([0, 0, 1, 2], [0, 2, 2, 1])), shape=(3, 3))
    graph = check_graph(W)
    assert graph.toarray().tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert graph.nnz == 2
    assert W.nnz == 4


def test_one_per_node():
    assert one_per_node("y", ["a", "b"], 2).tolist() == ["a", "b"]
    for wrong in (["a"], [["a", "b"]], "ab"):
        with pytest.raises(ValueError, match=r"ids has shape .*, but the graph has 2 nodes: ids needs one entry for each"):
            one_per_node("ids", wrong, 2)


def test_public_names_are_found_when_they_are_used():
    for name in uses.__all__:
        assert getattr(uses, name).__name__ == name
        assert name in dir(uses)
    assert sorted(uses.__all__) == list(uses.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'diametre'; it has Diameter, "):
        uses.diametre  # noqa: B018
