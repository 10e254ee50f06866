"""The node-wise solver: any start, far outliers, bounds, many nodes at once."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs, edges_of, paper_learner, relative_l1
from smoothgraph.models import LogProblem
from smoothgraph.parallel import Threads
from smoothgraph.solvers import Status, nodewise, solve, sweeps
from smoothgraph.solvers.nodewise import Nodewise
from smoothgraph.solvers.sweeps import Memory, Sweeps


def problem_of(X, k, theta_times, max_weight=None):
    edges = edges_of(X, k)
    return LogProblem(edges, theta_times / edges.z.mean(), max_weight)


@pytest.fixture(scope="module")
def big_problem():
    return problem_of(blobs(sweeps.SERIAL_NODES + 5_000, 3, np.random.default_rng(0)), 8, 3.0)


def test_threads_with_barriers_find_the_same_bits(big_problem, monkeypatch):
    """Few nodes are swept in one thread: here each wave of blocks has its barrier."""
    alone = solve(big_problem, tol=1e-9, n_jobs=1)
    monkeypatch.setattr(sweeps, "THREADED_NODES", 1)
    for n_jobs in (1, 2, 5):
        np.testing.assert_array_equal(solve(big_problem, tol=1e-9, n_jobs=n_jobs).dual, alone.dual)


def test_blocks_side_by_side_find_what_strict_order_finds(big_problem, monkeypatch):
    in_blocks = solve(big_problem, tol=1e-10)
    monkeypatch.setattr(sweeps, "SERIAL_NODES", 10**9)
    in_order = solve(big_problem, tol=1e-10)
    assert in_blocks.n_iter != in_order.n_iter or np.any(in_blocks.dual != in_order.dual), "both took the same way"
    assert relative_l1(in_blocks.weights, in_order.weights) < 1e-4


def test_a_warm_start_is_never_slower(rng):
    problem = problem_of(blobs(1000, 5, rng), 12, 2.0)
    cold = solve(problem, tol=1e-8)
    warm = solve(problem, tol=1e-8, lam=cold.dual)
    farther = LogProblem(problem.edges, problem.theta * 1.02)
    assert warm.n_iter == 1
    assert solve(farther, tol=1e-8, lam=cold.dual).n_iter <= solve(farther, tol=1e-8).n_iter


@pytest.mark.parametrize("far", [1e3, 1e5, 1e8])
def test_any_start_is_good_enough(rng, far):
    problem = problem_of(blobs(100, 3, rng), 8, 2.0)
    best = solve(problem, tol=1e-10)
    for lam in (np.full(100, far), np.full(100, 1 / far), rng.lognormal(sigma=5, size=100)):
        assert abs(solve(problem, tol=1e-10, lam=lam).weights - best.weights).max() < 1e-4


@pytest.mark.parametrize(("longest", "theta"), [(100.0, 1.0), (300.0, 1.0), (1000.0, 1.0)])
def test_a_chain_of_far_points_is_solved_at_once(rng, longest, theta):
    """Along such a chain the dual is almost flat, with corners where edges get weight: sweeps alone only creep."""
    problem = LogProblem(edges_of(np.cumsum(rng.uniform(1.0, longest, size=200))[:, None], 2), theta)
    assert solve(problem, tol=1e-6).status is Status.CONVERGED
    alone, lam = Sweeps(problem, problem.far_offset(), Memory(), Threads(1)), np.ones(200)
    alone.first_round(lam)
    for _ in range(10):
        alone.run(lam, 1e-6, 1000)
    assert alone.evaluate(lam).gap > 1e-3


@pytest.mark.parametrize("max_weight", [None, 0.1])
def test_many_far_outliers(rng, max_weight):
    X = np.concatenate([rng.normal(size=(400, 5)), 1000.0 * rng.normal(size=(60, 5))])
    solution = solve(problem_of(X, 10, 1.0, max_weight), tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert np.diff(solution.weights.indptr).min() > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_heavy_tails(monkeypatch, seed):
    """Groups of outliers far from each other, at all scales: the more leaps are no help, the more nodes move at once."""
    X = np.random.default_rng(seed).lognormal(sigma=2.5, size=(1500, 4))
    monkeypatch.setattr(nodewise, "DIRECT_EDGES", 1000)
    learner = paper_learner(5).fit(X)
    x = learner.graph_ @ np.ones(1500) * learner.solution_.dual
    assert np.mean(x - 1.0 - np.log(x)) <= 1e-6
    assert learner.n_incomplete_ == 0
    monkeypatch.setattr(nodewise, "DIRECT_DOUBLINGS", 0)
    with pytest.warns(ConvergenceWarning) as caught:  # the edges that it gets in the end may pass the degree, too
        paper_learner(5).fit(X)
    assert any("relative duality gap" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("max_weight", [0.05, 0.2, 0.5])
def test_weights_at_their_upper_bound_among_outliers(rng, max_weight):
    """Some nodes have only full edges, others only tiny ones: both are in what is moved at once."""
    solution = solve(LogProblem(edges_of(blobs(400, 3, rng), 18), 2.1, max_weight), tol=1e-10)
    assert solution.status is Status.CONVERGED
    assert np.mean(solution.weights.data == max_weight) > 0.03
    assert solution.weights.data.min() < 0.01 * max_weight


@pytest.mark.parametrize("far", [1e3, 1e5, 1e6, 1e7, 1e8, 1e12])
def test_weights_of_a_far_outlier_have_all_their_digits(rng, far):
    """Its λ is about 2θz, its degree 1/λ: their difference is lost in float64 unless λ is kept apart from its offset.

    From 1e7 the degree is less than what λ of its neighbours, about 1, is rounded by.
    """
    X = np.concatenate([rng.normal(size=(50, 2)), [[far, 0.0]]])
    solution = solve(LogProblem(edges_of(X, 6), 1.0), tol=1e-10)
    assert solution.status is Status.CONVERGED
    degree = np.asarray(solution.weights.sum(axis=1)).ravel()
    assert degree[50] == pytest.approx(1.0 / solution.dual[50], rel=1e-3)
    assert degree[50] == pytest.approx(0.5 / far**2, rel=1e-2)
    inner = solve(LogProblem(edges_of(X[:50], 6), 1.0), tol=1e-10)  # what the outlier's 1e-6 or less hardly changes
    assert abs(solution.weights[:50, :50] - inner.weights).max() < 1e-4


def test_lambda_of_far_outliers_goes_with_theta(rng):
    """From the point at one θ to the optimum at another, where λ of an outlier is about 2θz."""
    X = np.concatenate([rng.normal(size=(50, 2)), [[1e4, 0.0]]])
    edges, solver = edges_of(X, 6), Nodewise()
    point = solver.ascend(LogProblem(edges, 1.0), 1e-10, 1000)
    assert point.lam_offset[50] > 1e7
    carried = solver.ascend(LogProblem(edges, 3.0), 1e-10, 1000, point)
    cold = Nodewise().ascend(LogProblem(edges, 3.0), 1e-10, 1000)
    np.testing.assert_allclose(carried.lam, cold.lam, rtol=1e-4)
    np.testing.assert_allclose(carried.degree, cold.degree, rtol=1e-3)
