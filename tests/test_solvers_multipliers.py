"""The method of multipliers on Daitch's models: against CVXPY, and relations that hold of their optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import at_edges, edges_of
from cvx import incidence, laplacian_map, solve_daitch_model
from smoothgraph.reference import daitch as judge
from smoothgraph.solvers import Status, multipliers
from smoothgraph.solvers.multipliers import default_mu, project

MODELS = {"hard": None, "soft": 3.0, "stiff": 300.0}  # μ in units of the mean squared distance


def mu_of(times, edges):
    return None if times is None else times * float(edges.z.mean())


def one_way(edges):
    once = edges.nodes < edges.indices
    return edges.nodes[once], edges.indices[once]


def polish(X, i, j, mu, w, lam):
    """(w, λ) to the last digits: the optimality conditions as a linear system, given which w and λ are positive.

    Of a weight and its slope, and of a λ and what its degree has to spare, the larger one (without units) is taken to be so.
    """
    M, S = laplacian_map(X, i, j), incidence(i, j, len(X))
    slopes = judge.slopes(judge.laplacian_product(w, i, j, X), i, j, X) - lam[i] - lam[j]
    free = w > slopes / (2.0 * judge.slopes(X, i, j, X))
    tight = lam / lam.mean() > S @ w - 1.0 + (0.0 if mu is None else lam / (2.0 * mu))
    M, S_tight = M[:, free], S[np.ix_(tight, free)]
    corner = np.zeros((tight.sum(), tight.sum())) if mu is None else np.eye(tight.sum()) / (2.0 * mu)
    both = np.linalg.solve(
        np.block([[2.0 * M.T @ M, -S_tight.T], [S_tight, corner]]), np.repeat([0.0, 1.0], [free.sum(), tight.sum()])
    )
    w, lam = np.zeros_like(w), np.zeros_like(lam)
    w[free], lam[tight] = both[: free.sum()], both[free.sum() :]
    return w, lam


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("n", "d", "k"), [(15, 20, 4), (25, 12, 6), (30, 3, 5), (12, 4, 11), (40, 2, 6)])
def test_solution_is_that_of_a_general_solver(rng, times, n, d, k):
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))
    edges = edges_of(X, k)
    mu, (i, j) = mu_of(times, edges), one_way(edges)
    solution = multipliers.solve(X, edges, mu, tol=1e-8)
    best, _, _ = solve_daitch_model(X, i, j, mu)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert judge.objective(at_edges(solution.weights, i, j), i, j, X, mu) == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("n", "d", "k"), [(15, 20, 4), (25, 12, 6)])
def test_weights_that_are_determined(rng, times, n, d, k):
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))
    edges = edges_of(X, k)
    mu, (i, j) = mu_of(times, edges), one_way(edges)
    w, lam = polish(X, i, j, mu, *solve_daitch_model(X, i, j, mu)[1:])
    assert judge.kkt_residual(w, lam, i, j, X, mu) < 1e-10
    solution = multipliers.solve(X, edges, mu, tol=1e-13)
    np.testing.assert_allclose(at_edges(solution.weights, i, j), w, atol=1e-6)
    np.testing.assert_allclose(solution.dual, lam, atol=1e-6 * lam.max())


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("max_iter", [1, 3, 10])
def test_the_optimum_lies_between_dual_and_primal_at_any_time(rng, times, max_iter):
    X = rng.normal(size=(25, 8))
    edges = edges_of(X, 6)
    mu, (i, j) = mu_of(times, edges), one_way(edges)
    with pytest.warns(ConvergenceWarning, match="gap"):
        solution = multipliers.solve(X, edges, mu, tol=1e-15, max_iter=max_iter)
    _, best, _ = solve_daitch_model(X, i, j, mu)
    best = np.maximum(best, 0.0)
    best /= 1.0 if mu else min(1.0, judge.degrees(best, i, j, 25).min())
    assert solution.status is Status.MAX_ITER
    assert solution.dual_objective <= judge.objective(best, i, j, X, mu)  # which is at least the optimum
    w = at_edges(solution.weights, i, j)
    assert mu or judge.degrees(w, i, j, 25).min() >= 1.0 - 1e-8
    assert solution.objective == pytest.approx(judge.objective(w, i, j, X, mu), rel=1e-9)
    assert solution.gap == pytest.approx((solution.objective - solution.dual_objective) / solution.objective)


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
def test_optimality_conditions_and_feasibility(rng, times):
    X = rng.normal(size=(500, 15)).astype(np.float32)
    edges = edges_of(X, 12)
    mu, (i, j) = mu_of(times, edges), one_way(edges)
    solution = multipliers.solve(X, edges, mu, tol=1e-8)
    w = at_edges(solution.weights, i, j)
    assert w.min() >= 0.0
    assert abs(solution.weights - solution.weights.T).max() == 0.0
    assert judge.kkt_residual(w, solution.dual, i, j, X, mu) < 1e-4
    if times is None:
        assert judge.degrees(w, i, j, 500).min() >= 1.0 - 1e-8


@pytest.mark.parametrize("times", [None, 3.0])
def test_permuting_and_scaling(rng, times):
    X = rng.normal(size=(200, 15))
    edges, order = edges_of(X, 8), rng.permutation(200)
    mu = mu_of(times, edges)
    plain = multipliers.solve(X, edges, mu, tol=1e-12)
    permuted = multipliers.solve(X[order], edges_of(X[order], 8), mu, tol=1e-12)
    scaled = multipliers.solve(7.0 * X, edges_of(7.0 * X, 8), None if mu is None else 49.0 * mu, tol=1e-12)
    assert abs(plain.weights[order][:, order] - permuted.weights).max() < 1e-5
    assert permuted.objective == pytest.approx(plain.objective, rel=1e-8)
    assert abs(plain.weights - scaled.weights).max() < 1e-5
    assert scaled.objective == pytest.approx(49.0 * plain.objective, rel=1e-8)
    assert default_mu(7.0 * X, edges) == pytest.approx(49.0 * default_mu(X, edges))


def test_duplicates_cost_nothing(rng):
    X = rng.normal(size=(40, 10))
    twice = np.concatenate([X, X])
    solution = multipliers.solve(twice, edges_of(twice, 5), tol=1e-6)
    assert solution.objective <= 1e-9 * np.sum(X**2)
    assert solution.status is Status.CONVERGED
    half = np.concatenate([X, X[:10]])
    solution = multipliers.solve(half, edges_of(half, 6), tol=1e-8)
    assert solution.objective == pytest.approx(solve_daitch_model(half, *one_way(edges_of(half, 6)), None)[0], rel=1e-6)


@pytest.mark.parametrize("times", [None, 3.0])
def test_work_has_a_bound_and_what_is_missed_is_said(rng, times):
    X = rng.normal(size=(600, 2))
    edges = edges_of(X, 10)
    with pytest.warns(ConvergenceWarning, match="KKT residual"):
        solution = multipliers.solve(X, edges, mu_of(times, edges), max_iter=100)
    assert solution.n_iter == 100
    assert solution.dual_objective <= solution.objective


def test_far_groups_do_not_know_of_each_other(rng):
    A, B = rng.normal(size=(50, 12)), rng.normal(size=(60, 12)) * 5.0
    both = np.concatenate([A, B + 1000.0])
    apart = [multipliers.solve(P, edges_of(P, 6), tol=1e-12) for P in (A, B)]
    together = multipliers.solve(both, edges_of(both, 6), tol=1e-12)
    assert together.objective == pytest.approx(apart[0].objective + apart[1].objective, rel=1e-6)
    assert abs(together.weights - sp.block_diag([s.weights for s in apart])).max() < 1e-4


def test_a_warm_start_is_no_slower(rng):
    X = rng.normal(size=(300, 15))
    edges = edges_of(X, 8)
    cold = multipliers.solve(X, edges, tol=1e-6)
    assert multipliers.solve(X, edges, tol=1e-6, w=cold.weights, lam=cold.dual).n_iter <= 5


def test_projection_keeps_distances_on_average(rng):
    X = rng.normal(size=(100, 300))
    small = [project(X, 20, seed) for seed in range(30)]
    ratio = np.mean([np.sum((P[:50] - P[50:]) ** 2) for P in small]) / np.sum((X[:50] - X[50:]) ** 2)
    assert ratio == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(small[0], project(X, 20, 0))
    np.testing.assert_allclose(project(sp.csr_matrix(X), 20, 0), small[0])


def test_what_makes_no_sense_is_named(rng):
    X = rng.normal(size=(20, 3))
    edges = edges_of(X, 4)
    for options, match in (
        ({"mu": -1.0}, "mu=-1.0"),
        ({"mu": np.nan}, "mu=nan"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ):
        with pytest.raises(ValueError, match=match):
            multipliers.solve(X, edges, **options)
    with pytest.raises(ValueError, match="10 samples"):
        multipliers.solve(X[:10], edges)
    with pytest.raises(ValueError, match="NaN"):
        multipliers.solve(np.where(X > 1, np.nan, X), edges)
    with pytest.raises(ValueError, match=r"project\(X, 20\)"):
        multipliers.solve(sp.csr_matrix((20, 10**9)), edges)
    with pytest.raises(ValueError, match="n_features=4"):
        project(X, 4)
