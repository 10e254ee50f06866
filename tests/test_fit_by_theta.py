"""The flow of models with a θ: the wanted degree, and locality, which gives every node its own θ."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from conftest import at_edges, blobs, paper_learner, relative_l1
from cvx import all_pairs, solve_log_model
from smoothgraph import GraphLearner
from smoothgraph.models import Log
from smoothgraph.theta import node_thetas

DIGITS = load_digits().data


def uneven(n, rng):
    """Two clouds, one ten times as dense as the other."""
    return np.vstack([rng.normal(size=(n // 2, 3)), 30.0 + 10.0 * rng.normal(size=(n - n // 2, 3))])


@pytest.mark.parametrize("n_neighbors", [2, 5, 10, 30])
def test_the_degree_is_the_one_asked_for(n_neighbors):
    learner = GraphLearner(n_neighbors).fit(DIGITS)
    assert learner.n_neighbors_ == pytest.approx(n_neighbors, rel=0.01)
    assert learner.graph_.nnz / len(DIGITS) == learner.n_neighbors_
    assert learner.n_incomplete_ == 0


def test_a_given_theta_is_kept():
    theta = 2.0 * GraphLearner(10).fit(DIGITS).theta_bounds_.upper
    learner = GraphLearner(10, theta=theta).fit(DIGITS)
    assert learner.theta_ == theta
    assert learner.n_neighbors_ < 9


def test_without_completion_the_missing_certificates_are_counted(rng):
    X = blobs(1000, 4, rng)
    short = GraphLearner(5, oversampling=1.5, complete=False).fit(X)
    assert short.n_incomplete_ > 0
    assert GraphLearner(5, oversampling=1.5).fit(X).n_incomplete_ == 0


def test_approximate_lists_give_results_by_rows(rng):
    """The search numbers the samples anew: graph, λ and bridges are those of the rows of the table all the same."""
    X = blobs(3000, 3, rng)
    options = {"theta": 9.0, "connect": True, "tol": 1e-9, "random_state": 0}
    exact, found = (GraphLearner(5, neighbors=way, **options).fit(X) for way in ("exact", "approximate"))
    assert found.neighbors_ == "approximate"
    assert relative_l1(found.graph_, exact.graph_) < 0.01
    np.testing.assert_allclose(np.median(np.abs(found.solution_.dual / exact.solution_.dual - 1.0)), 0.0, atol=1e-3)
    same = {tuple(pair) for pair in found.bridges_.tolist()} & {tuple(pair) for pair in exact.bridges_.tolist()}
    assert len(same) > 0.8 * len(exact.bridges_) > 0


def test_a_prior_is_of_the_rows_whatever_the_search(rng):
    X = blobs(3000, 3, rng)
    prior = GraphLearner(4).fit(X).graph_
    options = {"prior": prior, "prior_strength": 1.0, "theta": 1.0, "tol": 1e-9}
    exact, found = (GraphLearner(5, neighbors=way, random_state=0, **options).fit(X) for way in ("exact", "approximate"))
    assert relative_l1(found.graph_, exact.graph_) < 0.01


# --- locality -------------------------------------------------------------------------------------------------------------


def test_what_is_recommended_is_what_the_model_says_and_the_paper_where_theta_is_given(rng):
    X = blobs(400, 3, rng)
    recommended = GraphLearner(6).fit(X)
    assert (recommended.locality_, recommended.connect_) == (Log.recommended_locality, Log.recommended_connect)
    asked = GraphLearner(6, locality=Log.recommended_locality, connect=Log.recommended_connect).fit(X)
    np.testing.assert_array_equal(recommended.graph_.toarray(), asked.graph_.toarray())
    paper = paper_learner(6).fit(X)
    for options in ({"theta": paper.theta_}, {"alpha": 1.0 / paper.theta_, "beta": 1.0 / paper.theta_}):
        given = GraphLearner(6, **options).fit(X)
        assert (given.locality_, given.connect_, given.bridges_.size) == (0.0, False, 0)
        np.testing.assert_array_equal(given.graph_.toarray(), paper_learner(6, theta=given.theta_).fit(X).graph_.toarray())


@pytest.mark.parametrize("model", ["l2", "soft", "knn"])
def test_nothing_is_recommended_for_other_models(rng, model):
    learner = GraphLearner(6, model=model).fit(blobs(100, 3, rng))
    assert (learner.locality_, learner.connect_) == (0.0, False)


def test_without_copies_it_does_not_matter_what_becomes_of_them(rng):
    X = blobs(400, 3, rng)
    merged, kept = (GraphLearner(6, duplicates=duplicates).fit(X) for duplicates in ("merge", "keep"))
    np.testing.assert_array_equal(merged.graph_.toarray(), kept.graph_.toarray())


@pytest.mark.parametrize("locality", [0.5, 1.0])
def test_it_is_the_log_model_on_scaled_distances(locality):
    """CVXPY over all pairs, with distances scaled by the definition."""
    n, k = 40, 4
    X = uneven(n, np.random.default_rng(3))
    learner = GraphLearner(k, locality=locality, connect=False, tol=1e-12).fit(X)
    i, j, z = all_pairs(X)
    square = np.zeros((n, n))
    square[i, j] = square[j, i] = z
    own = node_thetas(np.sort(square, axis=1)[:, 1:], k)
    scaled = z * (own[i] * own[j]) ** (locality / 2)
    reference = solve_log_model(i, j, scaled, n, learner.theta_)
    assert relative_l1(at_edges(learner.graph_, i, j), reference) < 1e-5
    assert learner.n_incomplete_ == 0


def test_degrees_are_even_and_theta_near_one():
    X = uneven(1500, np.random.default_rng(0))
    spread = {}
    for locality in (0.0, 1.0):
        learner = GraphLearner(8, locality=locality).fit(X)
        assert learner.n_neighbors_ == pytest.approx(8, rel=0.01)
        assert learner.n_incomplete_ == 0
        spread[locality] = np.diff(learner.graph_.indptr).std()
    assert spread[1.0] < 0.5 * spread[0.0]
    assert 0.7 < learner.theta_ < 1.3


def test_duplicates_and_grids_get_a_graph(rng):
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    X = np.vstack([grid, np.repeat(grid[:3], 6, axis=0)])
    learner = GraphLearner(4, locality=1.0, theta=1.0).fit(X)
    assert np.isfinite(learner.graph_.data).all()
    assert learner.n_isolated_ == 0


def test_scaling_the_data_changes_nothing_at_locality_one(rng):
    X = blobs(300, 3, rng)
    one, ten = (GraphLearner(5, locality=1.0, tol=1e-10).fit(c * X) for c in (1.0, 10.0))
    assert ten.theta_ == pytest.approx(one.theta_, rel=1e-6)
    assert relative_l1(ten.graph_, one.graph_) < 1e-4
