"""The log model: CVXPY, the definition of its objective and dual, and the paper's theorems judge what is learned."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from conftest import at_edges, blobs, edges_of, paper_learner, relative_l1
from cvx import all_pairs, incidence, solve_accurately, solve_log_model
from smoothgraph import GraphLearner, Status
from smoothgraph.models import Log, LogProblem
from smoothgraph.reference import log as judge
from smoothgraph.solvers import solve

OPTIONS = {
    "plain": {},
    "max_weight": {"max_weight": 0.3},
    "prior": {"prior_strength": 0.7},
    "prior and max_weight": {"prior_strength": 2.0, "max_weight": 0.25},
}


def problem_of(X, k, theta_times, options):
    """A problem with θ in units of one over the mean distance, and a random prior where the options want one."""
    edges, options = edges_of(X, k), dict(options)
    if "prior_strength" in options:
        low, high = np.minimum(edges.nodes, edges.indices), np.maximum(edges.nodes, edges.indices)
        options["prior"] = np.where((low + high) % 3 == 0, 0.4, 0.0)
    return LogProblem(edges, theta_times / edges.z.mean(), **options)


def one_way(problem):
    """The allowed edges once each, i < j, with distances and prior, for judges that know nothing of CSR."""
    edges = problem.edges
    once = edges.nodes < edges.indices
    prior = np.zeros(once.sum()) if problem.prior is None else problem.prior[once]
    return edges.nodes[once], edges.indices[once], edges.z[once].astype(float), prior


# --- the problem, and the solvers for it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [None, "primal_dual"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("n", "k", "theta_times"), [(12, 4, 1.0), (15, 14, 3.0), (20, 3, 0.2)])
def test_solution_is_that_of_a_general_solver(rng, solver, options, n, k, theta_times):
    problem = problem_of(blobs(n, 3, rng), k, theta_times, options)
    i, j, z, prior = one_way(problem)
    solution = solve(problem, solver=solver, tol=1e-13)
    expected = solve_log_model(i, j, z, n, problem.theta, problem.max_weight, prior, problem.prior_strength)
    assert relative_l1(at_edges(solution.weights, i, j), expected) < 1e-6


@pytest.mark.parametrize("solver", [None, "primal_dual"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_judge_confirms_objective_dual_and_gap(rng, solver, options):
    problem = problem_of(blobs(200, 5, rng), 12, 2.0, options)
    i, j, z, prior = one_way(problem)
    solution = solve(problem, solver=solver, tol=1e-7)
    model, bound = {"prior": prior, "prior_strength": problem.prior_strength}, problem.max_weight or np.inf
    P = judge.objective(at_edges(solution.weights, i, j), i, j, z, problem.theta, problem.n, **model)
    D = judge.dual_objective(solution.dual, i, j, z, problem.theta, bound, **model)
    assert solution.objective == pytest.approx(P, abs=1e-9 * problem.n)
    assert solution.dual_objective == pytest.approx(D, abs=1e-9 * problem.n)
    assert (P - D) / problem.n + 1e-12 >= 0
    assert solution.gap == pytest.approx((P - D) / problem.n, abs=1e-9)
    assert solution.gap <= 1e-7
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_two_solvers_agree(rng, options):
    problem = problem_of(blobs(500, 6, rng), 15, 1.5, options)
    fast, reference = solve(problem, tol=1e-12), solve(problem, solver="primal_dual", tol=1e-12)
    assert relative_l1(fast.weights, reference.weights) < 1e-5


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 40), st.floats(0.05, 20.0))
def test_weights_at_most_one_and_gap_bounds_the_error(seed, n, theta_times):
    """Theorem 2 with δ = 1, and strong convexity: Σ(w − w*)² ≤ P(w) − D(λ)."""
    problem = problem_of(blobs(n, 2, np.random.default_rng(seed)), 5, theta_times, {})
    rough, best = solve(problem, tol=1e-2), solve(problem, tol=1e-13)
    assert best.weights.max() <= 1 + 1e-6
    assert (rough.weights - best.weights).power(2).sum() / 2 <= rough.gap * n + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_alpha_and_beta_reduce_to_theta_and_delta(seed, alpha, beta):
    """Proposition 1: the optimality conditions of (α, β) hold at δ·W(θZ, 1, 1)."""
    X = blobs(30, 2, np.random.default_rng(seed))
    edges = edges_of(X, 6)
    unit = edges.z.mean()
    solution = solve(LogProblem(edges, Log().given_theta(alpha, beta) / unit), tol=1e-14)
    W = solution.weights * np.sqrt(alpha / beta)
    d = np.asarray(W.sum(axis=1)).ravel()
    i, j, z, _ = one_way(LogProblem(edges, 1.0))
    w = at_edges(W, i, j)
    slope = 2.0 * z / unit - alpha * (1 / d[i] + 1 / d[j]) + 2.0 * beta * w  # of the objective, as both ends share an edge
    size = np.abs(slope).max() + 1.0
    assert np.all(slope > -1e-5 * size)
    assert np.all(np.abs(slope[w > 0]) < 1e-5 * size)


@pytest.mark.parametrize("seed", range(3))
def test_the_weight_of_bridges_is_given(seed):
    """`fixed` counts in the degrees, and the rest is optimal: the conditions at every allowed edge."""
    rng = np.random.default_rng(seed)
    edges = edges_of(blobs(80, 3, rng), 8)
    theta, fixed = 2.0 / edges.z.mean(), rng.choice([0.0, 0.3], size=80)
    solution = solve(LogProblem(edges, theta, fixed=fixed), tol=1e-14)
    i, j, z, _ = one_way(LogProblem(edges, theta))
    w, d = at_edges(solution.weights, i, j), fixed + np.asarray(solution.weights.sum(axis=1)).ravel()
    slope = 2.0 * theta * z - 1.0 / d[i] - 1.0 / d[j] + 2.0 * w
    assert np.all(slope > -1e-5)
    assert np.all(np.abs(slope[w > 0]) < 1e-5)
    np.testing.assert_allclose(solution.dual, 1.0 / d, rtol=1e-5)


# --- through the learner --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [3, 8])
def test_the_graph_is_the_optimum_over_all_pairs(rng, n_neighbors):
    """From short lists, by growth alone, to what CVXPY finds on the full problem."""
    X = blobs(30, 2, rng)
    learner = paper_learner(n_neighbors, oversampling=1, tol=1e-12).fit(X)
    i, j, z = all_pairs(X)
    expected = solve_log_model(i, j, z, 30, learner.theta_)
    assert learner.n_incomplete_ == 0
    assert relative_l1(at_edges(learner.graph_, i, j), expected) < 1e-6


def test_a_judge_that_sees_all_pairs_confirms_the_gap(rng):
    X = blobs(1500, 5, rng)
    learner = paper_learner(7).fit(X)
    i, j, z = all_pairs(X)
    solution = learner.solution_
    P = judge.objective(at_edges(solution.weights, i, j), i, j, z, learner.theta_, 1500)
    D = judge.dual_objective(solution.dual, i, j, z, learner.theta_)
    assert learner.n_incomplete_ == 0
    assert solution.gap == pytest.approx((P - D) / 1500, abs=1e-9)
    assert solution.gap <= 1e-6
    assert solution.status is Status.CONVERGED


def test_max_weight_prior_and_paper_parameters_together(rng):
    """In units of the returned graph, against CVXPY on the objective as the paper writes it, over α."""
    X = blobs(14, 2, rng)
    alpha, beta, strength, bound = 2.0, 5.0, 0.6, 0.15
    prior = sp.random_array((14, 14), density=0.2, random_state=rng).tocsr() * 0.3
    prior = prior.maximum(prior.T)
    prior = sp.csr_matrix(prior - sp.diags(prior.diagonal()))
    learner = GraphLearner(4, alpha=alpha, beta=beta, prior=prior, prior_strength=strength, max_weight=bound, tol=1e-13).fit(X)
    i, j, z = all_pairs(X)
    delta = np.sqrt(alpha / beta)
    theta = 1 / np.sqrt(alpha * beta)
    expected = delta * solve_log_model(i, j, z, 14, theta, bound / delta, at_edges(prior, i, j) / delta, strength)
    assert learner.theta_ == pytest.approx(theta)
    assert learner.graph_.max() <= bound * (1 + 1e-12)
    assert relative_l1(at_edges(learner.graph_, i, j), expected) < 1e-6


def test_a_prior_graph_pulls_the_result_towards_it(rng):
    X = blobs(300, 10, rng)
    first, noisy = GraphLearner(6).fit(X).graph_, X + rng.normal(size=X.shape)
    graphs = [GraphLearner(6, prior=first, prior_strength=c).fit(noisy).graph_ for c in (0.0, 1.0, 10.0)]
    distances = [relative_l1(graph, first) for graph in graphs]
    assert distances[0] > distances[1] > distances[2]


def test_larger_theta_never_adds_edges(rng):
    X = blobs(800, 4, rng)
    degrees = [GraphLearner(8, theta=theta).fit(X).n_neighbors_ for theta in np.geomspace(0.02, 2, 6)]
    assert degrees == sorted(degrees, reverse=True)


def test_outliers_that_have_only_outliers_near_them():
    """Distances over twenty orders of magnitude: every node keeps a neighbour, and the optimum is found."""
    X = np.random.default_rng(10).standard_t(0.7, size=(200, 3))
    learner = paper_learner(3).fit(X)
    assert learner.solution_.gap <= 1e-6
    assert learner.n_isolated_ == learner.n_incomplete_ == 0
    degrees = np.asarray(learner.graph_.sum(axis=1)).ravel()
    assert degrees.min() < 1e-6 * degrees.max()
    np.testing.assert_allclose(degrees * learner.solution_.dual, 1.0, atol=0.02)


# --- distances of any size, and solves that are cut short -----------------------------------------------------------------

LARGE = {  # samples for which θz is up to 10¹³ at α = β = 1
    "sixteen-bit counts of 30 sensors": np.random.default_rng(3).integers(-(2**15), 2**15, size=(30, 2000)).astype(float),
    "normal times 1e5": 1e5 * np.random.default_rng(2).normal(size=(40, 50)),
}


@pytest.mark.parametrize("X", LARGE.values(), ids=LARGE)
def test_the_gap_is_that_of_the_distances_as_they_are(X):
    """Over all pairs, in NumPy; each term has the error that rounding leaves of (λᵢ+λⱼ)/2 − θz."""
    learner = GraphLearner(10, alpha=1.0, beta=1.0).fit(X)
    lam, W = learner.solution_.dual, learner.graph_.toarray()
    i, j, z = all_pairs(X)
    t, w, x = 0.5 * (lam[i] + lam[j]) - z, W[i, j], W.sum(axis=1) * lam
    rounding = 1e-13 * z
    t = np.clip(w, t - rounding, t + rounding)
    terms = np.where(t >= 0, (w - t) ** 2, w**2 + 2 * np.abs(t) * w)
    assert ((x - 1 - np.log(x)).sum() + terms.sum()) / len(X) <= learner.tol
    assert learner.solution_.gap <= learner.tol
    assert learner.n_incomplete_ == learner.n_isolated_ == 0


@pytest.mark.parametrize("X", LARGE.values(), ids=LARGE)
def test_a_general_solver_finds_the_same_objective_of_large_distances(X):
    """In units of the mean distance, where a general solver has digits: w = v/u, so that P(w) = P(v) + n·log u."""
    learner = GraphLearner(10, alpha=1.0, beta=1.0).fit(X)
    i, j, z = all_pairs(X)
    n, unit = len(X), 2.0 * z.mean()
    v = cp.Variable(len(i), nonneg=True)
    energy = (2.0 * z / unit) @ v + cp.sum_squares(v) / unit**2
    problem = cp.Problem(cp.Minimize(energy - cp.sum(cp.log(incidence(i, j, n) @ v))))
    solve_accurately(problem)
    found = judge.objective(at_edges(learner.graph_, i, j), i, j, z, 1.0, n)
    assert found == pytest.approx(problem.value + n * np.log(unit), abs=2 * n * learner.tol)
    assert learner.solution_.objective == pytest.approx(found, abs=n * learner.tol)


@pytest.mark.parametrize("max_weight", [None, 0.3])
@pytest.mark.parametrize("far", [1.0, 30.0, 1000.0])
def test_a_solve_that_is_cut_short_has_an_edge_for_every_node_and_says_how_far_it_came(rng, far, max_weight):
    X = np.concatenate([blobs(120, 3, rng), far * rng.normal(size=(30, 3))])
    problem = LogProblem(edges_of(X, 10), 1.0, max_weight)
    i, j, z, _ = one_way(problem)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        solution = solve(problem, tol=1e-14, max_iter=1)
    assert np.diff(solution.weights.indptr).min() > 0
    assert (abs(solution.weights - solution.weights.T)).nnz == 0
    P = judge.objective(at_edges(solution.weights, i, j), i, j, z, 1.0, len(X))
    D = judge.dual_objective(solution.dual, i, j, z, 1.0, max_weight or np.inf)
    assert np.isfinite(solution.gap)
    assert solution.gap == pytest.approx((P - D) / len(X), rel=1e-6, abs=1e-6)
    assert solution.status is Status.MAX_ITER
    assert solution.gap > solve(problem, tol=1e-10).gap


def test_a_learner_that_is_cut_short_returns_a_graph(rng):
    X = np.concatenate([blobs(120, 3, rng), 1000.0 * rng.normal(size=(30, 3))])
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        learner = GraphLearner(5, theta=1.0, max_iter=1, tol=1e-14).fit(X)
    assert learner.n_isolated_ == 0
    assert np.isfinite(learner.solution_.gap)
    assert np.isfinite(learner.graph_.data).all()
