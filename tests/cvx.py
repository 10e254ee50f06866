"""The log model as CVXPY with Clarabel solves it. Shares no code with smoothgraph."""

import warnings

import cvxpy as cp
import numpy as np


def solve_log_model(i, j, z, n, theta, max_weight=np.inf, prior=None, prior_strength=0.0):
    """Weights of the edges (i, j), as accurately as Clarabel can."""
    edges = len(i)
    S = np.zeros((n, edges))
    S[i, np.arange(edges)] = S[j, np.arange(edges)] = 1.0
    w = cp.Variable(edges, nonneg=True)
    energy = 2.0 * theta * (z @ w) + cp.sum_squares(w)
    if prior is not None:
        energy += prior_strength * cp.sum_squares(w - prior)
    bound = [] if np.isinf(max_weight) else [w <= max_weight]
    problem = cp.Problem(cp.Minimize(energy - cp.sum(cp.log(S @ w))), bound)
    solve_accurately(problem)
    return w.value


def solve_accurately(problem):
    """Ask for more digits than there are: Clarabel then stops where it makes no more progress, and CVXPY warns of that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-15, tol_gap_rel=1e-15, tol_feas=1e-15)


def all_pairs(X):
    """(i, j, z) of every pair i < j, by the definition."""
    i, j = np.triu_indices(len(X), 1)
    return i, j, ((X[i] - X[j]) ** 2).sum(axis=1)
