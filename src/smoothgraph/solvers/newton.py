"""Newton's method on a dual that is concave and piecewise quadratic: the solver of the ℓ2 model.

In: a problem of the ℓ2 model, perhaps a point to start from. Out: a point. Divided by α, the dual is

    D(λ) = n + 2Σλᵢ − Σ(λᵢ − λ̄)² − 2Σₑ wₑ²,        ½∇D = 1 − (λ − λ̄) − d,

the multiplier of the sum having been eliminated: at the optimum dᵢ = 1 − (λᵢ − λ̄), which adds up to n. λ of every node
alone, and a sweep, find most of the right piece, and Newton's method with a line search ends on it after a few steps.
"""

from dataclasses import replace

import numpy as np

from smoothgraph._kernels import dual, l2
from smoothgraph.parallel import Threads
from smoothgraph.solvers.conjugate_gradients import conjugate_gradients
from smoothgraph.solvers.problem import GROUPS, Point, Solution, solution_at

SAMPLED_NODES = 1000  # nodes that the level of λ is guessed from
RELAX = 0.85  # in the sweep before the first step a node goes this share of the way to its optimum, since all move at once
CG_ROUNDS, CG_TOL = 60, 3e-2  # rounds, and relative residual, to which a Newton step is solved for
ARMIJO = 1e-4  # a step is taken if the dual rises by at least this share of what its slope promises
SHORTEST_STEP = 1e-8  # share of a Newton step below which rounding leaves no ascent


class Newton:
    """The solver."""

    name = "newton"

    def __init__(self, threads: Threads | None = None):
        self.threads = Threads() if threads is None else threads

    def ascend(self, problem, tol: float, max_iter: int, start: Point | None = None, changed=None) -> Point:
        """Newton steps until the gap is at most `tol`. That only some nodes `changed` is of no use to them."""
        steps = _Steps(problem, self.threads)
        point = None if start is None else steps.evaluate(start.lam_shifted)
        if point is None or not 0.5 * problem.n <= point.degree.sum() <= 2.0 * problem.n:  # far off, as a λ of another θ may be
            point = steps.evaluate(steps.start())
        for n_iter in range(max_iter):
            if point.gap <= tol:
                break
            trial = steps.step(point)
            if trial is None:  # rounding leaves no ascent
                break
            point = replace(trial, n_iter=n_iter + 1)
        return point

    def finish(self, problem, point: Point, tol: float, started: float) -> Solution:
        """The Solution at a point, its weights scaled to add up to n; warns if the gap is larger than `tol`."""
        primal, dual_value, ratio = _values(point.lam_shifted, point.degree, point.energy, problem.given, self.threads)
        values = point.lam_shifted, problem.alpha * primal, problem.alpha * dual_value
        return solution_at(point, ratio, values, tol, started, self.threads)

    def point_at(self, problem, lam: np.ndarray) -> Point:
        """The point at a λ of the user's."""
        return _Steps(problem, self.threads).evaluate(np.asarray(lam, np.float64))


class _Steps:
    """Newton steps of one problem, and where to begin them."""

    def __init__(self, problem, threads):
        self.form, self.n, self.given, self.threads = problem.form(), problem.n, problem.given, threads
        self.longest_row = problem.edges.longest_row
        self.weighted = np.empty(self.n, np.int64), np.empty(self.n, np.int64), np.empty_like(self.form.indices)
        self.least = _groups_per_call(self.n)

    def start(self):
        """λ of every node alone, and after a sweep."""
        lam, _ = self._alone(self._level(), 1)
        level, moved = 1.0 + lam.mean(), np.empty(self.n)
        self.threads.rows(l2.sweep_l2, self.n, self.form, self.given, level, RELAX, self.longest_row, lam, moved)
        return moved

    def evaluate(self, lam) -> Point:
        """The point at λ. Its edges with weight, and D, are kept for the step from it."""
        degree, energy = np.empty(self.n), np.empty(self.n)
        arrays = self.form, self.given, lam, GROUPS, degree, energy, *self.weighted
        self.threads.rows(l2.evaluate_l2, GROUPS, *arrays, least=self.least)
        primal, self.dual_value, _ = _values(lam, degree, energy, self.given, self.threads)
        n_neighbors = (self.weighted[1] - self.weighted[0]).astype(np.int32)
        return Point(self.form, lam, np.zeros(self.n), (primal - self.dual_value) / primal, 0, degree, n_neighbors, energy)

    def step(self, point):
        """The point after a Newton step from that evaluated last, shortened until D rises; None if it does not."""
        gradient = 1.0 - (point.lam - point.lam.mean()) - point.degree
        step = self._direction(point, gradient)
        value, slope, t = self.dual_value, 2.0 * float(np.sum(gradient * step)), 1.0
        while t > SHORTEST_STEP:
            trial = self.evaluate(point.lam + t * step)
            rise = self.dual_value - value
            if rise >= ARMIJO * t * slope or (abs(rise) <= 1e-12 * abs(value) and trial.gap < point.gap):
                return trial
            t *= 0.5
        return None

    def _direction(self, point, gradient):
        """(I + ½S_A S_Aᵀ − 11ᵀ/n)⁻¹·gradient, A being the edges with weight."""
        diagonal = 1.0 + 0.5 * point.n_neighbors
        return conjugate_gradients(self.weighted, diagonal, gradient, 1.0, CG_ROUNDS, CG_TOL, self.threads)

    def _level(self):
        """1 + λ̄ where nodes alone, some of them at regular distances, have that mean: Newton's method, from above."""
        every, level = max(1, self.n // SAMPLED_NODES), 1.0
        for _ in range(100):
            lam, n_neighbors = self._alone(level, every)
            excess = level - 1.0 - float(lam.mean())
            if 0.0 <= excess <= 0.01:
                break
            slope = max(1e-3, 1.0 - float(np.mean(1.0 / (1.0 + n_neighbors))))
            level = 2.0 * level if excess < 0.0 else level - excess / slope
        return level

    def _alone(self, level, every):
        """λ and number of neighbours of every node alone, or of one in so many."""
        begin, end, given = (np.ascontiguousarray(a[::every]) for a in (self.form.begin, self.form.end, self.given))
        lam, n_neighbors = np.empty(begin.size), np.empty(begin.size)
        form = self.form._replace(begin=begin, end=end)
        self.threads.rows(l2.start_l2, begin.size, form, given, level, self.longest_row, lam, n_neighbors)
        return lam, n_neighbors


def _values(lam, degree, energy, given, threads):
    """P/α at the weights, times the ratio that makes all add up to n; D/α; and that ratio."""
    n, sums, parts, least = lam.size, np.empty((5, GROUPS)), np.empty((2, GROUPS)), _groups_per_call(lam.size)
    threads.rows(l2.sums_l2, GROUPS, lam, degree, energy, given, sums, least=least)
    squares, linear, own, fixed, level = (dual.total(row) for row in sums)
    ratio, mean = (n - fixed) / own if own > 0.0 else np.inf, level / n  # at a λ where no edge has weight P is not a number
    threads.rows(l2.values_l2, GROUPS, lam, degree, given, ratio, mean, parts, least=least)
    primal, dual_value = (dual.total(row) for row in parts)
    return primal + 2.0 * (ratio * linear + ratio * ratio * squares), dual_value - 2.0 * squares, ratio


def _groups_per_call(n):
    """Groups of nodes that make some 4,000 nodes, for which a thread is worth its start."""
    return max(1, -(-GROUPS * 4096 // max(n, 1)))
