"""The models of Daitch, Kelner and Spielman: against CVXPY, and relations that hold of their optimum."""

import cvxpy as cp
import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import candidates_of
from cvx import solve_accurately
from smoothgraph import GraphLearner
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


def matrices(X, i, j):
    """M and S as dense matrices: Mw is LX, column after column, and Sw the degrees."""
    n, edges = len(X), np.arange(len(i))
    S, B = np.zeros((n, len(i))), np.zeros((n, len(i)))
    S[i, edges] = S[j, edges] = 1.0
    B[i, edges], B[j, edges] = 1.0, -1.0
    return np.concatenate([B * (X[i, c] - X[j, c]) for c in range(X.shape[1])]), S


def solve_with_cvxpy(X, i, j, mu):
    """(P*, w*, λ*) from the definition."""
    M, S = matrices(X, i, j)
    w, short = cp.Variable(len(i), nonneg=True), cp.Variable(len(X), nonneg=True)
    if mu is None:
        degrees = S @ w >= 1
        problem = cp.Problem(cp.Minimize(cp.sum_squares(M @ w)), [degrees])
    else:
        degrees = S @ w + short >= 1
        problem = cp.Problem(cp.Minimize(cp.sum_squares(M @ w) + mu * cp.sum_squares(short)), [degrees])
    solve_accurately(problem)
    return problem.value, w.value, degrees.dual_value


def polish(X, i, j, mu, w, lam):
    """(w, λ) to the last digits: the optimality conditions as a linear system, given which w and λ are positive.

    Of a weight and its slope, and of a λ and what its degree has to spare, the larger one (without units) is taken to be so.
    """
    M, S = matrices(X, i, j)
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
    candidates = candidates_of(X, k)
    mu, (i, j) = mu_of(times, candidates), edges_of(candidates)
    solution = daitch.solve(X, candidates, mu, tol=1e-8)
    best, _, _ = solve_with_cvxpy(X, i, j, mu)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert judge.objective(at_edges(solution.weights, i, j), i, j, X, mu) == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("n", "d", "k"), [(15, 20, 4), (25, 12, 6)])
def test_weights_that_are_determined(rng, times, n, d, k):
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))
    candidates = candidates_of(X, k)
    mu, (i, j) = mu_of(times, candidates), edges_of(candidates)
    w, lam = polish(X, i, j, mu, *solve_with_cvxpy(X, i, j, mu)[1:])
    assert judge.kkt_residual(w, lam, i, j, X, mu) < 1e-10
    solution = daitch.solve(X, candidates, mu, tol=1e-13)
    np.testing.assert_allclose(at_edges(solution.weights, i, j), w, atol=1e-6)
    np.testing.assert_allclose(solution.dual, lam, atol=1e-6 * lam.max())


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("max_iter", [1, 3, 10])
def test_the_optimum_lies_between_dual_and_primal_at_any_time(rng, times, max_iter):
    X = rng.normal(size=(25, 8))
    candidates = candidates_of(X, 6)
    mu, (i, j) = mu_of(times, candidates), edges_of(candidates)
    with pytest.warns(ConvergenceWarning, match="gap"):
        solution = daitch.solve(X, candidates, mu, tol=1e-15, max_iter=max_iter)
    _, best, _ = solve_with_cvxpy(X, i, j, mu)
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
    plain = daitch.solve(X, candidates, mu, tol=1e-12)
    permuted = daitch.solve(X[order], candidates_of(X[order], 8), mu, tol=1e-12)
    scaled = daitch.solve(7.0 * X, candidates_of(7.0 * X, 8), None if mu is None else 49.0 * mu, tol=1e-12)
    assert abs(plain.weights[order][:, order] - permuted.weights).max() < 1e-5
    assert permuted.objective == pytest.approx(plain.objective, rel=1e-8)
    assert abs(plain.weights - scaled.weights).max() < 1e-5
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
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(full.objective, rel=1e-6)
    assert daitch.solve(X, few, mu, tol=1e-7).objective > full.objective * 1.01


def test_duplicates_cost_nothing(rng):
    X = rng.normal(size=(40, 10))
    twice = np.concatenate([X, X])
    solution = daitch.solve(twice, candidates_of(twice, 5), tol=1e-6)
    assert solution.objective <= 1e-9 * np.sum(X**2)
    assert solution.status is Status.CONVERGED
    half = np.concatenate([X, X[:10]])
    solution = daitch.solve(half, candidates_of(half, 6), tol=1e-8)
    i, j = edges_of(candidates_of(half, 6))
    assert solution.objective == pytest.approx(solve_with_cvxpy(half, i, j, None)[0], rel=1e-6)


def low_dimensional(rng):
    """Samples whose weights the models do not determine."""
    x, y = np.meshgrid(np.arange(12.0), np.arange(12.0))
    swiss = rng.uniform(1.0, 3.0, size=150)
    return {
        "line": np.sort(rng.normal(size=(100, 1)), axis=0),
        "plane": rng.uniform(size=(60, 2)),
        "space": rng.normal(size=(150, 3)),
        "grid": np.stack([x.ravel(), y.ravel()], axis=1),
        "roll": np.stack([swiss * np.cos(5 * swiss), swiss * np.sin(5 * swiss), rng.uniform(size=150)], axis=1),
        "duplicates": np.repeat(rng.normal(size=(50, 2)), 3, axis=0),
        "two points": np.repeat(rng.normal(size=(2, 3)), 20, axis=0),
    }


@pytest.mark.parametrize("model", daitch.MODELS)
@pytest.mark.parametrize("name", low_dimensional(np.random.default_rng(0)))
def test_samples_in_few_dimensions(rng, model, name):
    learner = GraphLearner(5, model=model).fit(low_dimensional(rng)[name])
    assert learner.solution_.status is Status.CONVERGED
    assert learner.n_incomplete_ == 0
    if model == "hard":
        assert np.asarray(learner.graph_.sum(axis=1)).min() > 1 - 1e-8


@pytest.mark.parametrize("times", [None, 3.0])
def test_work_has_a_bound_and_what_is_missed_is_said(rng, times):
    X = rng.normal(size=(600, 2))
    candidates = candidates_of(X, 10)
    with pytest.warns(ConvergenceWarning, match="KKT residual"):
        solution = daitch.solve(X, candidates, mu_of(times, candidates), max_iter=100)
    assert solution.n_iter == 100
    assert solution.dual_objective <= solution.objective


def test_far_groups_do_not_know_of_each_other(rng):
    A, B = rng.normal(size=(50, 12)), rng.normal(size=(60, 12)) * 5.0
    both = np.concatenate([A, B + 1000.0])
    apart = [daitch.solve(P, candidates_of(P, 6), tol=1e-12) for P in (A, B)]
    together = daitch.solve(both, candidates_of(both, 6), tol=1e-12)
    assert together.objective == pytest.approx(apart[0].objective + apart[1].objective, rel=1e-6)
    assert abs(together.weights - sp.block_diag([s.weights for s in apart])).max() < 1e-4


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
    assert daitch.solve(X, candidates, tol=1e-6, w=cold.weights, lam=cold.dual).n_iter <= 5


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


@pytest.mark.parametrize("model", ["hard", "soft"])
def test_through_the_learner(rng, model):
    X = rng.normal(size=(150, 12))
    learner = GraphLearner(5, model=model).fit(X)
    assert learner.n_incomplete_ == 0
    assert learner.solution_.status is Status.CONVERGED
    on_lists = GraphLearner(5, model=model, complete=False, mu=None).fit(X)
    assert on_lists.n_incomplete_ == 150
    assert on_lists.solution_.objective > learner.solution_.objective * (1 - 1e-6)
    every = GraphLearner(5, model=model, complete=False, neighbors="all", mu=daitch_mu(learner, X)).fit(X)
    assert every.solution_.objective == pytest.approx(learner.solution_.objective, rel=1e-5)
    if model == "hard":
        assert np.asarray(learner.graph_.sum(axis=1)).min() > 1 - 1e-8
    with pytest.raises(ValueError, match="new samples"):
        learner.transform(X[:3])


def daitch_mu(learner, X):
    return None if learner.model == "hard" else daitch.default_mu(X, candidates_of(X, 15))


def test_the_learner_projects_and_names_what_does_not_apply(rng):
    X = rng.normal(size=(120, 30))
    assert (
        GraphLearner(5, model="hard", projection=4, complete=False, random_state=0).fit(X).solution_.status is Status.CONVERGED
    )
    for options, word in (
        ({"model": "hard", "mu": 1.0}, "mu=1.0 does not apply"),
        ({"model": "soft", "mu": -1.0}, "mu=-1.0 must be"),
        ({"projection": 3}, "projection=3 does not apply"),
        ({"model": "soft", "projection": 0}, "projection=0"),
        ({"model": "soft", "projection": 31}, "31"),
        ({"model": "hard", "locality": 1.0}, "locality=1.0 does not apply"),
        ({"model": "hard", "metric": "precomputed"}, "precomputed"),
    ):
        with pytest.raises(ValueError, match=word):
            GraphLearner(5, **options).fit(X)
