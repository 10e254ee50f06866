"""The paper's own solver: forward-backward-forward primal-dual splitting (Kalofolias 2016, Algorithm 1; Komodakis & Pesquet).

In: a `Problem`. Out: weights and λ, found without the closed form the node-wise solver rests on. It is the reference that
solver is checked against, and its opponent in the benchmarks.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning

from smoothgraph import _kernels
from smoothgraph.solvers.problem import Problem, Solution, Status

CHECK_EVERY = 20  # iterations between two looks at the gap, which costs as much as one of them


class State(NamedTuple):
    """The iterates w and v, and the proximal points p and v_bar: feasible, with exact zeros, and the same in the limit."""

    w: np.ndarray
    v: np.ndarray
    p: np.ndarray
    v_bar: np.ndarray
    v_next: np.ndarray


def solve(problem: Problem, tol: float, max_iter: int, lam=None) -> Solution:
    """Iterate until the relative gap is at most `tol`."""
    start = time.perf_counter()
    gamma = step_size(problem)
    state = start_state(problem, None if lam is None else np.asarray(lam, np.float64) * problem.shrink)
    objective, dual_objective, n_iter = np.inf, -np.inf, 0
    while n_iter < max_iter and not objective - dual_objective <= tol * problem.n:
        for _ in range(min(CHECK_EVERY, max_iter - n_iter)):
            state = iterate(problem, gamma, state)
            n_iter += 1
        objective, dual_objective = values(problem, state)
    gap = (objective - dual_objective) / problem.n
    status = Status.CONVERGED if gap <= tol else Status.MAX_ITER
    if status is not Status.CONVERGED:
        warnings.warn(
            f"The relative duality gap is {gap:.2e} after {n_iter} iterations, more than tol={tol:.2e}. "
            "Raise max_iter or tol, or use solver='nodewise'.",
            ConvergenceWarning,
            stacklevel=3,
        )
    csr = problem.candidates
    weights = csr_matrix((state.p * problem.shrink, csr.indices, csr.indptr), shape=(problem.n, problem.n), copy=True)
    weights.eliminate_zeros()
    weights.sort_indices()
    seconds = time.perf_counter() - start
    return Solution(weights, -state.v_bar / problem.shrink, objective, dual_objective, gap, n_iter, status, seconds)


def step_size(problem: Problem) -> float:
    """The largest step for which the scheme converges: 1/(ζ + ‖S‖), ζ = 2 the Lipschitz constant of the gradient of ‖w‖²."""
    csr = problem.candidates
    allowed = csr_matrix((np.ones(csr.indices.size), csr.indices, csr.indptr), shape=(problem.n, problem.n))
    degrees = np.diff(csr.indptr).astype(np.float64)
    signless = allowed + diags_array(degrees)  # S·Sᵀ
    if problem.n < 10:
        norm = np.sqrt(np.linalg.eigvalsh(signless.toarray())[-1])
    else:  # Lanczos comes from below, hence the margin
        norm = 1.01 * np.sqrt(eigsh(signless, k=1, tol=1e-3, v0=np.sqrt(degrees), return_eigenvectors=False)[0])
    return float(0.99 / (2.0 + norm))


def start_state(problem: Problem, lam=None) -> State:
    """No edges, and v = −λ, 0 by default, as its authors begin: it shares nothing with the solver it is to check."""
    lam = np.zeros(problem.n) if lam is None else lam
    w = np.zeros(problem.candidates.indices.size)
    return State(w, -lam, np.empty_like(w), np.empty_like(lam), np.empty_like(lam))


def iterate(problem: Problem, gamma: float, state: State) -> State:
    """One iteration, in place; the state returned is the new one."""
    _kernels.primal_dual_step(*problem.arrays, gamma, *state)
    return state._replace(v=state.v_next, v_next=state.v)


def values(problem: Problem, state: State) -> tuple[float, float]:
    """P and D at the proximal points."""
    lam = -state.v_bar
    degree, energy, conjugate = _kernels.primal_dual_values(*problem.arrays, state.p, lam)
    with np.errstate(divide="ignore"):
        objective = energy.sum() - np.log(degree).sum()
    dual_objective = problem.n + np.log(lam).sum() - conjugate.sum()
    return float(objective) + problem.constant, float(dual_objective) + problem.constant
