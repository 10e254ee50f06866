"""`solve`, the one door to the solvers: what holds of every solver on every problem."""

import numpy as np
import pytest
from numba import njit
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs, edges_of, relative_l1
from smoothgraph.models import L2Problem, LogProblem, PenaltyProblem
from smoothgraph.solvers import Status, solve


@njit
def target_phi(d):
    return 4.0 * (d - 1.0) ** 2


@njit
def target_degree(lam):
    return 1.0 - lam / 8.0


def penalty_problem(edges, theta):
    return PenaltyProblem(edges, theta, target_phi, target_degree)


PROBLEMS = {"log": LogProblem, "l2": L2Problem, "penalty": penalty_problem}
EVERY = [("log", None), ("log", "primal_dual"), ("l2", None), ("penalty", None)]


def problem_of(name, X, k=10, theta_times=2.0):
    edges = edges_of(X, k)
    return PROBLEMS[name](edges, theta_times / edges.z.mean())


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_a_missed_tolerance_is_said(rng, name, solver):
    with pytest.warns(ConvergenceWarning, match=r"gap .* max_iter"):
        solution = solve(problem_of(name, blobs(200, 4, rng)), solver=solver, tol=1e-12, max_iter=1)
    assert solution.status is Status.MAX_ITER
    assert solution.gap > 1e-12


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_the_gap_is_reached_and_the_dual_is_below(rng, name, solver):
    solution = solve(problem_of(name, blobs(200, 4, rng)), solver=solver, tol=1e-7)
    assert solution.status is Status.CONVERGED
    assert 0 <= solution.gap <= 1e-7
    assert solution.dual_objective <= solution.objective
    assert (solution.weights.data > 0).all()
    assert abs(solution.weights - solution.weights.T).max() <= (0.0 if solver is None else 1e-14)
    assert solution.weights.has_sorted_indices


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_permuting_the_nodes_permutes_the_weights(rng, name, solver):
    X = blobs(300, 4, rng)
    order = rng.permutation(300)
    plain, permuted = (solve(problem_of(name, Y), solver=solver, tol=1e-12).weights for Y in (X, X[order]))
    assert abs(plain[order][:, order] - permuted).max() < 1e-6


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_a_warm_start_is_never_slower(rng, name, solver):
    X = blobs(500, 5, rng)
    cold = solve(problem_of(name, X), solver=solver, tol=1e-8)
    warm = solve(problem_of(name, X), solver=solver, tol=1e-8, lam=cold.dual)
    assert warm.n_iter <= cold.n_iter
    assert relative_l1(warm.weights, cold.weights) < 1e-3


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_bits_for_any_number_of_threads(rng, name):
    X = blobs(9000 if name != "penalty" else 500, 3, rng)
    one, three = (solve(problem_of(name, X, 8), tol=1e-9, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.dual, three.dual)
    np.testing.assert_array_equal(one.weights.data, three.weights.data)
    assert (one.gap, one.objective) == (three.gap, three.objective)


def test_an_unknown_solver_is_named(rng):
    with pytest.raises(ValueError, match="'simplex'"):
        solve(problem_of("log", blobs(30, 2, rng)), solver="simplex")
