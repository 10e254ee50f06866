"""`solve(problem)`: the one door to the solvers."""

from smoothgraph.solvers import nodewise, primal_dual
from smoothgraph.solvers.problem import Problem, Solution, Status

__all__ = ["Problem", "Solution", "Status", "solve"]


def solve(problem: Problem, *, solver: str = "nodewise", tol: float = 1e-6, max_iter: int | None = None, lam=None) -> Solution:
    """Solve to a relative duality gap of `tol`.

    Parameters
    ----------
    problem : the log model on a graph of allowed edges.
    solver : "nodewise", exact coordinate ascent on the dual, or "primal_dual", the scheme of the paper.
    tol : stop when (P − D)/n is at most this.
    max_iter : give up after as many rounds (1,000 sweeps, or 50,000 primal-dual iterations).
    lam : a dual vector to start from, such as `solution.dual` of a similar problem.
    """
    if solver == "nodewise":
        return nodewise.solve(problem, tol, 1000 if max_iter is None else max_iter, lam)
    if solver == "primal_dual":
        return primal_dual.solve(problem, tol, 50_000 if max_iter is None else max_iter, lam)
    raise ValueError(f"solver={solver!r} is not known: use 'nodewise' or 'primal_dual'.")
