"""Joining the parts of a graph: by brute force over the parts, and by the judge of the model on the distances counted."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from conftest import blobs
from cvx import all_pairs
from smoothgraph import GraphLearner
from smoothgraph.models import log


def pairs_of_points(rng, count=60):
    """Isolated pairs in the plane: the log barrier leaves them so."""
    centres = 50.0 * rng.random((count, 2))
    return np.vstack([centres, centres + 0.01 * rng.normal(size=(count, 2))])


@pytest.mark.parametrize("options", [{}, {"locality": 1.0}, {"model": "l2"}, {"complete": False}])
def test_one_part_at_the_wanted_degree(options):
    X = blobs(1000, 3, np.random.default_rng(0))
    apart = GraphLearner(3, **options).fit(X)
    assert apart.n_components_ > 1
    assert not apart.joining_edges_.size
    joined = GraphLearner(3, connect=True, **options).fit(X)
    assert joined.n_components_ == 1
    assert joined.n_neighbors_ == pytest.approx(3, rel=0.01)
    assert joined.solution_.gap <= 1e-6
    assert joined.n_incomplete_ == apart.n_incomplete_
    for i, j in joined.joining_edges_:
        assert joined.graph_[i, j] > 0


def test_a_connected_graph_is_left_alone(rng):
    X = rng.normal(size=(300, 2))
    plain, joined = GraphLearner(8).fit(X), GraphLearner(8, connect=True).fit(X)
    assert plain.n_components_ == 1
    assert not joined.joining_edges_.size
    np.testing.assert_array_equal(plain.graph_.toarray(), joined.graph_.toarray())


def test_everything_else_is_optimal_given_the_joining_edges(rng):
    """The judge's duality gap over all pairs, on the distances with which the joining edges count."""
    X = pairs_of_points(rng)
    learner = GraphLearner(2, connect=True, theta=1.0, tol=1e-12).fit(X)
    assert learner.n_components_ == 1
    i, j, z = all_pairs(X)
    w, lam = learner.graph_.toarray()[i, j], learner.solution_.dual
    joins = {tuple(sorted(pair)) for pair in learner.joining_edges_.tolist()}
    at = np.array([pair in joins for pair in zip(i.tolist(), j.tolist(), strict=True)])
    counted = z.copy()
    counted[at] = 0.5 * (lam[i] + lam[j])[at] - w[at]  # what w = (λᵢ+λⱼ)/2 − θz says of them
    assert (counted[at] < z[at]).all()
    gap = log.objective(w, i, j, counted, len(X), 1.0) - log.dual_objective(lam, i, j, counted, 1.0)
    assert 0 <= gap + 1e-10 < 1e-9 * len(X) + 1e-10


def test_the_forest_is_the_cheapest_of_all_pairs(rng):
    """Kruskal over all pairs of samples between parts, at the λ of the graph in parts."""
    X = pairs_of_points(rng, 25)
    options = {"n_neighbors": 2, "theta": 1.0, "neighbors": "all", "tol": 1e-12}
    apart = GraphLearner(**options).fit(X)
    i, j, z = all_pairs(X)
    lam = apart.solution_.dual
    labels = connected_components(apart.graph_, directed=False)[1]
    assert labels.max() > 5
    parent = {part: part for part in range(labels.max() + 1)}

    def root(part):
        while parent[part] != part:
            part = parent[part]
        return part

    chosen = set()
    for e in np.argsort(z - 0.5 * (lam[i] + lam[j]), kind="stable"):
        a, b = root(labels[i[e]]), root(labels[j[e]])
        if a != b:
            parent[a] = b
            chosen.add((i[e], j[e]))
    joined = GraphLearner(**options, connect=True).fit(X)
    first = {tuple(sorted(pair)) for pair in joined.joining_edges_[: len(chosen)].tolist()}
    assert first == chosen


def test_far_groups_are_joined_by_a_search(rng):
    """Three clouds whose lists know nothing of each other: two pairs join them, about as near as clouds can be."""
    X = np.vstack([rng.normal(size=(150, 3)) + 1000.0 * c for c in range(3)])
    learner = GraphLearner(5, connect=True).fit(X)
    assert learner.n_components_ == 1
    assert len(learner.joining_edges_) == 2
    cloud = np.arange(450) // 150
    for i, j in learner.joining_edges_:
        between = np.linalg.norm(X[cloud == cloud[i]][:, None] - X[cloud == cloud[j]][None], axis=2)
        assert abs(cloud[i] - cloud[j]) == 1
        assert np.linalg.norm(X[i] - X[j]) < 1.001 * between.min()


def test_allowed_edges_that_do_not_connect_are_a_warning():
    blocks = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 2).tocsr()
    with pytest.warns(UserWarning, match="2 parts"):
        learner = GraphLearner(2, connect=True, metric="precomputed", theta=1.0).fit(blocks)
    assert learner.n_components_ == 2


def test_a_single_allowed_bridge_is_used():
    Z = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 2).tolil()
    Z[0, 7] = Z[7, 0] = 50.0
    learner = GraphLearner(2, connect=True, metric="precomputed", theta=1.0).fit(Z.tocsr())
    assert learner.n_components_ == 1
    assert learner.joining_edges_.tolist() == [[0, 7]]
