"""`solve(problem)`: the one door to the solvers. They are algorithms, and know no model by name."""

import time

from smoothgraph.parallel import Threads
from smoothgraph.solvers import primal_dual
from smoothgraph.solvers.problem import Point, Problem, Solution, Solver, Status

__all__ = ["Point", "Problem", "Solution", "Solver", "Status", "solve"]


def solve(
    problem, *, solver: str | None = None, tol: float = 1e-6, max_iter: int | None = None, lam=None, n_jobs=None
) -> Solution:
    """Solve to a relative duality gap of `tol`.

    Parameters
    ----------
    problem : a model on a graph of allowed edges, such as `LogProblem(edges, theta)` of `smoothgraph.models`.
    solver : the model's own by default ("nodewise" for the log model, "newton" for ℓ2); "primal_dual" is the scheme of the
        paper, for the log model.
    tol : stop when the relative gap is at most this: (P − D)/n, or (P − D)/P for the ℓ2 model.
    max_iter : give up after as many rounds (1,000 sweeps, or 50,000 primal-dual iterations).
    lam : a dual vector to start from, such as `solution.dual` of a similar problem.
    n_jobs : threads; None or −1 is all.
    """
    if solver == "primal_dual" and not hasattr(problem, "z_hat"):
        raise ValueError(f"solver='primal_dual' is for the log model, not for a {type(problem).__name__}: leave it out.")
    if solver == "primal_dual" and getattr(problem, "sizes", None) is not None:
        raise ValueError("solver='primal_dual' needs a node for every row, without sizes: use the default solver.")
    with Threads(n_jobs) as threads:
        if solver == "primal_dual":
            return primal_dual.solve(problem, tol, 50_000 if max_iter is None else max_iter, lam, threads)
        started, own = time.perf_counter(), problem.solver(threads)
        if solver not in (None, own.name):
            raise ValueError(f"solver={solver!r} is not known: use {own.name!r} or 'primal_dual'.")
        start = None if lam is None else own.point_at(problem, lam)
        return own.finish(problem, own.ascend(problem, tol, 1000 if max_iter is None else max_iter, start), tol, started)
