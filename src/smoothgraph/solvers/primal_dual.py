"""The paper's own solver: forward-backward-forward primal-dual splitting (Kalofolias 2016, Algorithm 1; Komodakis & Pesquet).

In: a problem of the log model. Out: weights and λ, found without the closed form the node-wise solver rests on. It is the
reference that solver is checked against, and its opponent in the benchmarks.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array
from scipy.sparse.linalg import eigsh

from smoothgraph._kernels import schemes
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import Solution, status_of

CHECK_EVERY = 20  # iterations between two looks at the gap, which costs as much as one of them


class State(NamedTuple):
    """The iterates w and v, and the proximal points p and v_bar: feasible, with exact zeros, and the same in the limit."""

    w: np.ndarray
    v: np.ndarray
    p: np.ndarray
    v_bar: np.ndarray
    v_next: np.ndarray


def solve(problem, tol: float, max_iter: int, lam=None, threads: Threads | None = None) -> Solution:
    """Iterate until the relative gap is at most `tol`."""
    started, threads = time.perf_counter(), Threads() if threads is None else threads
    gamma = step_size(problem)
    state = start_state(problem, None if lam is None else np.asarray(lam, np.float64) * problem.shrink)
    objective, dual_objective, n_iter = np.inf, -np.inf, 0
    while n_iter < max_iter and not objective - dual_objective <= tol * problem.n:
        for _ in range(min(CHECK_EVERY, max_iter - n_iter)):
            state = iterate(problem, gamma, state, threads)
            n_iter += 1
        objective, dual_objective = values(problem, state, threads)
    gap = (objective - dual_objective) / problem.n
    advice = "Raise max_iter or tol, or use solver='nodewise'."
    status = status_of(gap, tol, n_iter, what="iterations", advice=advice)
    edges = problem.edges
    weights = csr_matrix((state.p * problem.shrink, edges.indices, edges.indptr), shape=(problem.n, problem.n), copy=True)
    weights.eliminate_zeros()
    weights.sort_indices()
    seconds = time.perf_counter() - started
    return Solution(weights, -state.v_bar / problem.shrink, objective, dual_objective, gap, n_iter, status, seconds)


def step_size(problem) -> float:
    """The largest step for which the scheme converges: 1/(ζ + ‖S‖), ζ = 2 the Lipschitz constant of the gradient of ‖w‖²."""
    edges = problem.edges
    allowed = csr_matrix((np.ones(edges.indices.size), edges.indices, edges.indptr), shape=(problem.n, problem.n))
    degrees = np.diff(edges.indptr).astype(np.float64)
    signless = allowed + diags_array(degrees)  # S·Sᵀ
    if problem.n < 10:
        norm = np.sqrt(np.linalg.eigvalsh(signless.toarray())[-1])
    else:  # Lanczos comes from below, hence the margin
        norm = 1.01 * np.sqrt(eigsh(signless, k=1, tol=1e-3, v0=np.sqrt(degrees), return_eigenvectors=False)[0])
    return float(0.99 / (2.0 + norm))


def start_state(problem, lam=None) -> State:
    """No edges, and v = −λ, 0 by default, as its authors begin: it shares nothing with the solver it is to check."""
    lam = np.zeros(problem.n) if lam is None else lam
    w = np.zeros(problem.edges.indices.size)
    return State(w, -lam, np.empty_like(w), np.empty_like(lam), np.empty_like(lam))


def iterate(problem, gamma: float, state: State, threads: Threads) -> State:
    """One iteration, in place; the state returned is the new one."""
    form, (w, v, p, v_bar, v_next) = problem.form(), state
    threads.rows(schemes.proximal_step, problem.n, form, gamma, w, v, p, v_bar, v_next)
    threads.rows(schemes.forward_step, problem.n, form, gamma, w, v, p, v_bar)
    return state._replace(v=v_next, v_next=v)


def values(problem, state: State, threads: Threads) -> tuple[float, float]:
    """P and D at the proximal points."""
    lam = -state.v_bar
    degree, energy, conjugate = np.empty(problem.n), np.empty(problem.n), np.empty(problem.n)
    threads.rows(schemes.primal_dual_values, problem.n, problem.form(), state.p, lam, degree, energy, conjugate)
    with np.errstate(divide="ignore"):
        objective = energy.sum() - np.log(degree).sum()
    dual_objective = problem.n + np.log(lam).sum() - conjugate.sum()
    return float(objective) + problem.constant, float(dual_objective) + problem.constant
