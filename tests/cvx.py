"""The models as CVXPY with Clarabel solves them. Shares no code with smoothgraph."""

import warnings

import cvxpy as cp
import numpy as np


def solve_log_model(i, j, z, n, theta, max_weight=None, prior=None, prior_strength=0.0):
    """Weights of the edges (i, j), as accurately as Clarabel can."""
    w = cp.Variable(len(i), nonneg=True)
    energy = 2.0 * theta * (z @ w) + cp.sum_squares(w)
    if prior is not None:
        energy += prior_strength * cp.sum_squares(w - prior)
    bound = [] if max_weight is None else [w <= max_weight]
    solve_accurately(cp.Problem(cp.Minimize(energy - cp.sum(cp.log(incidence(i, j, n) @ w))), bound))
    return w.value


def solve_l2_model(i, j, z, n, alpha, fixed=0.0):
    """`fixed` is what every node has of edges whose weight is not in question."""
    given = np.broadcast_to(fixed, n)
    w = cp.Variable(len(i), nonneg=True)
    degrees = incidence(i, j, n) @ w + given
    energy = 2.0 * z @ w + 2.0 * alpha * cp.sum_squares(w) + alpha * cp.sum_squares(degrees)
    solve_accurately(cp.Problem(cp.Minimize(energy), [2.0 * cp.sum(w) + given.sum() == n]))
    return w.value


def solve_penalty_model(i, j, z, n, theta, term):
    """(weights, optimum) with the penalty term(degrees)."""
    w = cp.Variable(len(i), nonneg=True)
    problem = cp.Problem(cp.Minimize(2.0 * theta * (z @ w) + cp.sum_squares(w) + term(incidence(i, j, n) @ w)))
    solve_accurately(problem)
    return w.value, problem.value


def solve_daitch_model(X, i, j, mu):
    """(P*, w*, λ*) from the definition; mu is None for the hard model."""
    M, S = laplacian_map(X, i, j), incidence(i, j, len(X))
    w, short = cp.Variable(len(i), nonneg=True), cp.Variable(len(X), nonneg=True)
    if mu is None:
        degrees = S @ w >= 1
        problem = cp.Problem(cp.Minimize(cp.sum_squares(M @ w)), [degrees])
    else:
        degrees = S @ w + short >= 1
        problem = cp.Problem(cp.Minimize(cp.sum_squares(M @ w) + mu * cp.sum_squares(short)), [degrees])
    solve_accurately(problem)
    return problem.value, w.value, degrees.dual_value


def incidence(i, j, n):
    """S as a dense matrix: Sw are the degrees."""
    S = np.zeros((n, len(i)))
    S[i, np.arange(len(i))] = S[j, np.arange(len(i))] = 1.0
    return S


def laplacian_map(X, i, j):
    """M as a dense matrix: Mw is LX, column after column."""
    B = np.zeros((len(X), len(i)))
    B[i, np.arange(len(i))], B[j, np.arange(len(i))] = 1.0, -1.0
    return np.concatenate([B * (X[i, c] - X[j, c]) for c in range(X.shape[1])])


def solve_accurately(problem):
    """Ask for more digits than there are: Clarabel then stops where it makes no more progress, and CVXPY warns of that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-15, tol_gap_rel=1e-15, tol_feas=1e-15)


def all_pairs(X):
    """(i, j, z) of every pair i < j, by the definition."""
    i, j = np.triu_indices(len(X), 1)
    return i, j, ((X[i] - X[j]) ** 2).sum(axis=1)
