"""The ℓ2 model: CVXPY, the definition of its objective and dual, and relations judge what is learned."""

import numpy as np
import pytest

from conftest import at_edges, blobs, edges_of, relative_l1
from cvx import all_pairs, solve_l2_model
from smoothgraph import GraphLearner, Status, theta_bounds
from smoothgraph.models import L2, L2Problem
from smoothgraph.reference import l2 as judge
from smoothgraph.solvers import solve


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_cvxpy(seed):
    rng = np.random.default_rng(seed)
    n = 30
    X = blobs(n, 3, rng)
    i, j, z = all_pairs(X)
    theta = rng.choice([0.3, 1.0, 5.0]) / z.mean()
    solution = solve(L2Problem(edges_of(X, n - 1), theta), tol=1e-12)
    reference = solve_l2_model(i, j, z, n, 0.5 / theta)
    assert np.abs(at_edges(solution.weights, i, j) - reference).sum() < 1e-6 * n
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_cvxpy_where_some_weight_is_given(seed):
    """As bridges give it. P at the weights found is the optimum, and the gap says so."""
    rng = np.random.default_rng(seed)
    n = 30
    X, fixed = blobs(n, 3, rng), rng.choice([0.0, 0.4, 1.5], size=n, p=[0.6, 0.3, 0.1])
    i, j, z = all_pairs(X)
    theta = 1.0 / z.mean()
    solution = solve(L2Problem(edges_of(X, n - 1), theta, fixed), tol=1e-12)
    reference = solve_l2_model(i, j, z, n, 0.5 / theta, fixed)
    w = at_edges(solution.weights, i, j)
    assert np.abs(w - reference).sum() < 1e-6 * n
    assert abs(solution.weights.sum() + fixed.sum() - n) < 1e-9
    degree = fixed + np.bincount(i, w, n) + np.bincount(j, w, n)
    alpha = 0.5 / theta
    primal = 2.0 * z @ w + 2.0 * alpha * w @ w + alpha * degree @ degree
    assert solution.objective == pytest.approx(primal, rel=1e-9)
    assert solution.status is Status.CONVERGED


def test_objective_and_dual_are_those_of_the_definition(rng):
    X = blobs(60, 3, rng)
    i, j, z = all_pairs(X)
    alpha = z.mean()
    solution = solve(L2Problem(edges_of(X, 59), 0.5 / alpha), tol=1e-3)
    w = at_edges(solution.weights, i, j)
    assert abs(solution.weights.sum() - 60) < 1e-9
    assert solution.objective == pytest.approx(judge.objective(w, i, j, z, 60, alpha), rel=1e-12)
    assert solution.dual_objective == pytest.approx(judge.dual_objective(solution.dual, i, j, z, alpha), rel=1e-12)
    assert solution.dual_objective < solution.objective
    assert solution.gap == pytest.approx((solution.objective - solution.dual_objective) / solution.objective, rel=1e-6)


@pytest.mark.parametrize("k", [2, 5, 9])
def test_theta_inside_the_interval_gives_a_node_alone_k_neighbours(rng, k):
    """Its weights are max(0, λ − θz) and add up to 1."""
    z = np.sort(rng.gamma(2.0, size=(20, 12)), axis=1)
    bounds = theta_bounds(z, k, L2().theta_at)
    for row, lower, upper in zip(z, bounds.node_lower, bounds.node_upper, strict=True):
        for share in (1e-6, 0.5, 1.0 - 1e-6):
            assert neighbors_alone(row, lower + share * (upper - lower)) == k
        assert neighbors_alone(row, lower * (1.0 - 1e-9)) > k
        assert neighbors_alone(row, upper * (1.0 + 1e-9)) < k


def neighbors_alone(z, theta):
    lam = (1.0 + theta * np.cumsum(z)) / np.arange(1, z.size + 1)  # with the first 1, 2, … neighbours
    return int(np.flatnonzero(lam[:-1] <= theta * z[1:])[0]) + 1


# --- through the learner --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locality", [0.0, 1.0])
def test_learner_reaches_the_degree_and_certifies(locality):
    X = blobs(1000, 3, np.random.default_rng(0))
    learner = GraphLearner(6, model="l2", locality=locality).fit(X)
    assert learner.n_neighbors_ == pytest.approx(6, rel=0.01)
    assert learner.n_incomplete_ == 0
    assert abs(learner.graph_.sum() - 1000) < 1e-9
    full = GraphLearner(6, model="l2", locality=locality, theta=learner.theta_, neighbors="all").fit(X)
    assert abs(full.graph_ - learner.graph_).sum() < 5e-3 * 1000


def test_alpha_is_the_papers(rng):
    X = blobs(50, 3, rng)
    i, j, z = all_pairs(X)
    learner = GraphLearner(5, model="l2", alpha=z.mean(), neighbors="all", tol=1e-12).fit(X)
    assert np.abs(at_edges(learner.graph_, i, j) - solve_l2_model(i, j, z, 50, z.mean())).sum() < 1e-6 * 50


def test_scaling_all_distances_changes_theta_alone(rng):
    X = blobs(300, 3, rng)
    one, ten = (GraphLearner(5, model="l2", tol=1e-10).fit(c * X) for c in (1.0, 10.0))
    assert ten.theta_ * 100 == pytest.approx(one.theta_, rel=1e-6)
    assert relative_l1(ten.graph_, one.graph_) < 1e-4


def test_an_outlier_ends_without_an_edge_and_is_counted(rng):
    X = np.vstack([rng.normal(size=(300, 3)), [[100.0, 0.0, 0.0]]])
    learner = GraphLearner(6, model="l2").fit(X)
    assert learner.graph_[[300]].nnz == 0
    assert learner.n_isolated_ >= 1


def test_duplicates_and_two_far_groups_have_an_optimum(rng):
    X = np.vstack([np.repeat(rng.normal(size=(20, 2)), 3, axis=0), 1000.0 + rng.normal(size=(30, 2))])
    learner = GraphLearner(6, model="l2").fit(X)
    assert learner.solution_.gap <= 1e-6
    assert np.isfinite(learner.graph_.data).all()


def test_a_grid_of_equal_distances_has_a_graph():
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    learner = GraphLearner(4, model="l2", theta=0.3).fit(grid)
    assert learner.solution_.gap <= 1e-6
    assert abs(learner.graph_.sum() - 400) < 1e-9


def test_bridges_that_would_have_all_the_weight_are_refused():
    X = np.array([[0.0], [1.0], [3.0], [7.0], [20.0], [60.0], [200.0], [900.0]])
    with pytest.raises(ValueError, match=r"bridges that connect the graph would have a weight of .* all edges .* have 8"):
        GraphLearner(2, model="l2", theta=1e3, connect=True).fit(X)
