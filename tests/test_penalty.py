"""Degree penalties of the user's own, against CVXPY and against the solvers that are made for one."""

import cvxpy as cp
import numpy as np
import pytest
from numba import njit
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs, candidates_of
from cvx import all_pairs, solve_accurately
from smoothgraph.solvers import Problem, penalty, solve


@njit
def log_phi(d):
    return -np.log(d) if d > 0.0 else np.inf


@njit
def log_degree(lam):
    return 1.0 / lam if lam > 0.0 else np.inf


@njit
def hub_phi(d):
    return -np.log(d) + d**2 if d > 0.0 else np.inf


@njit
def hub_degree(lam):
    return 2.0 / (lam + np.sqrt(lam**2 + 8.0))


@njit
def target_phi(d):
    return 4.0 * (d - 1.0) ** 2


@njit
def target_degree(lam):
    return 1.0 - lam / 8.0


CASES = {
    "hubs": (hub_phi, hub_degree, lambda d: -cp.sum(cp.log(d)) + cp.sum_squares(d)),
    "target": (target_phi, target_degree, lambda d: 4.0 * cp.sum_squares(d - 1.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_cvxpy(name):
    phi, degree, term = CASES[name]
    X = blobs(25, 2, np.random.default_rng(2))
    i, j, z = all_pairs(X)
    theta = 2.0 / z.mean()
    solution = penalty.solve(candidates_of(X, 24), theta, phi, degree, tol=1e-12)
    S = np.zeros((25, len(i)))
    S[i, np.arange(len(i))] = S[j, np.arange(len(i))] = 1.0
    w = cp.Variable(len(i), nonneg=True)
    problem = cp.Problem(cp.Minimize(2.0 * theta * (z @ w) + cp.sum_squares(w) + term(S @ w)))
    solve_accurately(problem)
    assert np.abs(solution.weights.toarray()[i, j] - w.value).sum() < 1e-5 * w.value.sum()
    assert solution.objective == pytest.approx(problem.value, rel=1e-6)
    assert solution.dual_objective <= solution.objective


def test_the_logarithm_is_the_log_model(rng):
    edges = candidates_of(blobs(300, 3, rng), 10)
    theta = 2.0 / edges.z.mean()
    own, default = penalty.solve(edges, theta, log_phi, log_degree, tol=1e-10), solve(Problem(edges, theta), tol=1e-12)
    assert abs(own.weights - default.weights).sum() < 1e-4 * default.weights.sum()
    assert own.objective == pytest.approx(default.objective, rel=1e-8)


def test_a_missed_tolerance_is_a_warning(rng):
    edges = candidates_of(blobs(100, 3, rng), 10)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        penalty.solve(edges, 1.0, log_phi, log_degree, tol=1e-12, max_iter=1)
