"""Sweeps for a degree penalty of the user's own, node by node, without what the other solvers know of the logarithm.

In: a problem with two compiled functions, φ and the degree at which −φ′ = λ. Out: a point. A node alone has to solve Σⱼ
max(0, (λ − aⱼ)/2) = d(λ), where d(λ) falls as λ grows, and bisection does. The functions are compiled into the sweep, so that
its loops call nothing; that takes some seconds in every process, for every φ.
"""

import numpy as np

from smoothgraph._kernels import dual, schemes
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import Point, Solution, solution_at


class PenaltySweeps:
    """The solver."""

    name = "penalty_sweeps"

    def __init__(self, threads: Threads | None = None):
        self.threads = Threads() if threads is None else threads

    def ascend(self, problem, tol: float, max_iter: int, start: Point | None = None, changed=None) -> Point:
        """Sweeps over all nodes until the relative gap (P − D)/n is at most `tol`."""
        form, given = problem.form(), problem.given
        lam = np.ones(problem.n) if start is None else start.lam_shifted.copy()
        for n_iter in range(1, max_iter + 1):
            schemes.penalty_sweep(form, given, lam, problem.degree_at)
            point = self._point(problem, form, lam, n_iter)
            if point.gap <= tol:
                break
        return point

    def finish(self, problem, point: Point, tol: float, started: float) -> Solution:
        """The Solution at a point; warns if the gap is larger than `tol`."""
        check_degrees(point.lam_shifted, problem.phi, problem.degree_at)
        penalties, _ = schemes.penalties(point.degree, point.lam_shifted, problem.phi, problem.degree_at)
        objective = float(point.energy.sum() + penalties.sum())
        values = point.lam_shifted, objective, objective - problem.n * point.gap
        return solution_at(point, 1.0, values, tol, started, self.threads)

    def point_at(self, problem, lam: np.ndarray) -> Point:
        """The point at a λ of the user's."""
        return self._point(problem, problem.form(), np.array(lam, np.float64), 0)

    def _point(self, problem, form, lam, n_iter):
        degree, n_neighbors, energy = np.empty(problem.n), np.empty(problem.n, np.int32), np.empty(problem.n)
        self.threads.rows(dual.evaluate, problem.n, form, problem.given, lam, degree, n_neighbors, energy)
        penalties, least = schemes.penalties(degree, lam, problem.phi, problem.degree_at)
        gap = float(np.mean(penalties - least + lam * degree))
        return Point(form, lam.copy(), np.zeros(problem.n), gap, n_iter, degree, n_neighbors, energy)


def check_degrees(lam: np.ndarray, phi, degree) -> None:
    """Refuses functions that do not belong together, or have no digits left at a λ: the gap would prove nothing."""
    node = schemes.wrong_degree(lam, phi, degree)
    if node >= 0:
        raise ValueError(
            f"degree({lam[node]:.6g}) is {degree(lam[node]):.6g}, but φ(d) + λd is smaller beside it: degree(λ) has to be the "
            "d at which −φ′(d) = λ, to 4 digits at least. A difference of nearly equal numbers in it can lose them."
        )
