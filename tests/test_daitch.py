"""The models of Daitch, Kelner and Spielman: against CVXPY, and relations that hold of their optimum."""

import cvxpy as cp
import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import candidates_of
from cvx import solve_accurately
from smoothgraph.models import daitch as judge
from smoothgraph.solvers import Status, daitch

MODELS = {"hard": None, "soft": 3.0, "stiff": 300.0}  # μ in units of the mean squared distance


def mu_of(times, candidates):
    return None if times is None else times * float(candidates.z.mean())


def edges_of(candidates):
    once = candidates.nodes < candidates.indices
    return candidates.nodes[once], candidates.indices[once]


def at_edges(W, i, j):
    return np.asarray(W[i, j]).ravel()


def solve_with_cvxpy(X, i, j, mu):
    """(P*, w*) from the definition, with M as a dense matrix."""
    n, d = X.shape
    edges = np.arange(len(i))
    S, B = np.zeros((n, len(i))), np.zeros((n, len(i)))
    S[i, edges] = S[j, edges] = 1.0
    B[i, edges], B[j, edges] = 1.0, -1.0
    M = np.concatenate([B * (X[i, c] - X[j, c]) for c in range(d)])
    w = cp.Variable(len(i), nonneg=True)
    energy = cp.sum_squares(M @ w)
    short = cp.Variable(n, nonneg=True)  # what a degree falls short of 1; Clarabel is more accurate with it than with cp.pos
    if mu is None:
        problem = cp.Problem(cp.Minimize(energy), [S @ w >= 1])
    else:
        problem = cp.Problem(cp.Minimize(energy + mu * cp.sum_squares(short)), [S @ w + short >= 1])
    solve_accurately(problem)
    return problem.value, w.value


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("n", "d", "k"), [(15, 20, 4), (25, 12, 6), (30, 3, 5), (12, 4, 11)])
def test_solution_is_that_of_a_general_solver(rng, times, n, d, k):
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))
    candidates = candidates_of(X, k)
    mu, (i, j) = mu_of(times, candidates), edges_of(candidates)
    solution = daitch.solve(X, candidates, mu, tol=1e-8)
    best, w = solve_with_cvxpy(X, i, j, mu)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert judge.objective(at_edges(solution.weights, i, j), i, j, X, mu) == pytest.approx(solution.objective, rel=1e-9)
    if d > 10:  # fewer edges than equations: the optimum is unique, and an error of 1e-6 in P is one of 1e-3 in w
        assert np.abs(at_edges(solution.weights, i, j) - w).max() < 1e-3


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("max_iter", [3, 6, 10])
def test_the_optimum_lies_between_dual_and_primal_at_any_time(rng, times, max_iter):
    X = rng.normal(size=(25, 8))
    candidates = candidates_of(X, 6)
    mu, (i, j) = mu_of(times, candidates), edges_of(candidates)
    with pytest.warns(ConvergenceWarning, match="gap"):
        solution = daitch.solve(X, candidates, mu, tol=1e-15, max_iter=max_iter)
    _, best = solve_with_cvxpy(X, i, j, mu)
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
    candidates = candidates_of(X, 12)
    mu, (i, j) = mu_of(times, candidates), edges_of(candidates)
    solution = daitch.solve(X, candidates, mu, tol=1e-8)
    w = at_edges(solution.weights, i, j)
    assert w.min() >= 0.0
    assert abs(solution.weights - solution.weights.T).max() == 0.0
    assert judge.kkt_residual(w, solution.dual, i, j, X, mu) < 1e-4
    if times is None:
        assert judge.degrees(w, i, j, 500).min() >= 1.0 - 1e-8


@pytest.mark.parametrize("times", [None, 3.0])
def test_permuting_and_scaling(rng, times):
    X = rng.normal(size=(200, 15))
    candidates, order = candidates_of(X, 8), rng.permutation(200)
    mu = mu_of(times, candidates)
    plain = daitch.solve(X, candidates, mu, tol=1e-9)
    permuted = daitch.solve(X[order], candidates_of(X[order], 8), mu, tol=1e-9)
    scaled = daitch.solve(7.0 * X, candidates_of(7.0 * X, 8), None if mu is None else 49.0 * mu, tol=1e-9)
    assert abs(plain.weights[order][:, order] - permuted.weights).max() < 1e-3
    assert permuted.objective == pytest.approx(plain.objective, rel=1e-8)
    assert abs(plain.weights - scaled.weights).max() < 1e-3
    assert scaled.objective == pytest.approx(49.0 * plain.objective, rel=1e-8)
    assert daitch.default_mu(7.0 * X, candidates) == pytest.approx(49.0 * daitch.default_mu(X, candidates))


@pytest.mark.parametrize("times", [None, 3.0])
def test_the_grown_support_gives_the_optimum_over_all_pairs(rng, times):
    X = rng.normal(size=(60, 12))
    few, everything = candidates_of(X, 3), candidates_of(X, 59)
    mu = mu_of(times, everything)
    solution, grown, violated = daitch.solve_complete(X, few, mu, tol=1e-7)
    full = daitch.solve(X, everything, mu, tol=1e-7)
    assert violated == 0
    assert few.n_edges < grown.n_edges < everything.n_edges
    assert solution.gap <= 1e-7
    assert solution.objective == pytest.approx(full.objective, rel=1e-6)
    assert daitch.solve(X, few, mu, tol=1e-7).objective > full.objective * 1.01


def test_duplicates_cost_nothing(rng):
    X = rng.normal(size=(40, 10))
    twice = np.concatenate([X, X])
    solution = daitch.solve(twice, candidates_of(twice, 5), tol=1e-6)
    assert solution.objective <= 1e-9 * np.sum(X**2)
    assert solution.status is Status.CONVERGED
    half = np.concatenate([X, X[:10]])
    solution = daitch.solve(half, candidates_of(half, 6), tol=1e-6)
    i, j = edges_of(candidates_of(half, 6))
    assert solution.objective == pytest.approx(solve_with_cvxpy(half, i, j, None)[0], rel=1e-5)


def test_far_groups_do_not_know_of_each_other(rng):
    A, B = rng.normal(size=(50, 12)), rng.normal(size=(60, 12)) * 5.0
    both = np.concatenate([A, B + 1000.0])
    apart = [daitch.solve(P, candidates_of(P, 6), tol=1e-8) for P in (A, B)]
    together = daitch.solve(both, candidates_of(both, 6), tol=1e-8)
    assert together.objective == pytest.approx(apart[0].objective + apart[1].objective, rel=1e-6)
    assert abs(together.weights - sp.block_diag([s.weights for s in apart])).max() < 1e-2


def test_the_same_bits_whatever_the_number_of_threads(rng):
    X = rng.normal(size=(400, 10))
    candidates, found = candidates_of(X, 8), []
    try:
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            found.append(daitch.solve(X, candidates, tol=1e-6).weights)
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    assert (found[0] != found[1]).nnz == 0


def test_a_warm_start_is_no_slower(rng):
    X = rng.normal(size=(300, 15))
    candidates = candidates_of(X, 8)
    cold = daitch.solve(X, candidates, tol=1e-6)
    assert daitch.solve(X, candidates, tol=1e-6, w=cold.weights, lam=cold.dual).n_iter <= 3


def test_projection_keeps_distances_on_average(rng):
    X = rng.normal(size=(100, 300))
    small = [daitch.project(X, 20, seed) for seed in range(30)]
    ratio = np.mean([np.sum((P[:50] - P[50:]) ** 2) for P in small]) / np.sum((X[:50] - X[50:]) ** 2)
    assert ratio == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(small[0], daitch.project(X, 20, 0))
    np.testing.assert_allclose(daitch.project(sp.csr_matrix(X), 20, 0), small[0])


def test_what_makes_no_sense_is_named(rng):
    X = rng.normal(size=(20, 3))
    candidates = candidates_of(X, 4)
    for options, match in (
        ({"mu": -1.0}, "mu=-1.0"),
        ({"mu": np.nan}, "mu=nan"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ):
        with pytest.raises(ValueError, match=match):
            daitch.solve(X, candidates, **options)
    with pytest.raises(ValueError, match="10 samples"):
        daitch.solve(X[:10], candidates)
    with pytest.raises(ValueError, match="NaN"):
        daitch.solve(np.where(X > 1, np.nan, X), candidates)
    with pytest.raises(ValueError, match=r"project\(X, 20\)"):
        daitch.solve(sp.csr_matrix((20, 10**9)), candidates)
    with pytest.raises(ValueError, match="n_features=4"):
        daitch.project(X, 4)
