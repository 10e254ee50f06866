"""The solver for samples with copies: exact coordinate ascent on the dual over the distinct samples, and Newton steps.

In: a problem of the log model with `sizes`, the number of rows that are equal to each node's, perhaps a point to start from.
Out: a point whose λ holds for every row of a group, whose degrees and numbers of neighbours are those of one row, and whose gap
is Σ m_g ψ(d_gλ_g)/n over all n rows. The copies of a group are symmetric in a convex problem, so that this is the optimum over
all rows, while a group costs no more than one sample.
"""

from dataclasses import replace

import numpy as np

from smoothgraph._kernels import groups as kernels
from smoothgraph.solvers.conjugate_gradients import conjugate_gradients
from smoothgraph.solvers.nodewise import CG_ROUNDS, CG_TOL, MAX_STALLED, ROUNDED_DOWN, Nodewise
from smoothgraph.solvers.problem import Point, Solution, solution_at, weighted_edges
from smoothgraph.solvers.sweeps import OVER_RELAX, REST_SHARE

SWEEPS = 20  # sweeps over all groups before a Newton step is tried


class GroupSweeps(Nodewise):
    """The solver. How λ of far outliers is counted, and where a solve begins, is as in `Nodewise`."""

    name = "group_sweeps"

    def finish(self, problem, point: Point, tol: float, started: float) -> Solution:
        """The Solution at a point, its weights those of one row to one row; warns if the gap is larger than `tol`."""
        with np.errstate(divide="ignore"):  # a solve that was cut short may leave a node without weight: the gap is inf then
            terms = point.energy + point.lam_offset * point.degree - np.log(point.degree)
        objective, n_rows = float(np.sum(problem.sizes * terms)), int(problem.sizes.sum())
        lam = point.lam * np.where(point.z_offset > 0.0, 1.0 - ROUNDED_DOWN, 1.0)  # as in `Nodewise.finish`
        values = lam, objective, objective - n_rows * point.gap
        return solution_at(point, 1.0, values, tol, started, self.threads)

    def point_at(self, problem, lam: np.ndarray) -> Point:
        """The point at a λ of the user's."""
        groups = _Groups(problem, problem.far_offset(), self.threads)
        return groups.evaluate(np.asarray(lam, np.float64) - groups.offset)[0]

    def _ascend(self, problem, tol, max_iter, offset, lam, start=None, changed=None) -> Point:
        groups = _Groups(problem, offset, self.threads)
        lam = groups.start() if lam is None else lam.copy()
        n_iter, stalled, best = 0, 0, np.inf
        while True:
            n_iter += groups.sweep(lam, tol, min(SWEEPS, max_iter - n_iter))
            point, free_mass = groups.evaluate(lam)
            stalled = 0 if point.gap < 0.5 * best else stalled + 1
            best = min(best, point.gap)
            if point.gap <= tol or n_iter >= max_iter or stalled >= MAX_STALLED:
                break
            with np.errstate(all="ignore"):  # of λ of very different sizes rounding may leave nothing: such a step is refused
                point = _line_search(groups, point, _newton_step(groups, point, free_mass))
            n_iter += 1
            lam = point.lam_shifted.copy()
        return replace(point, n_iter=n_iter)


class _Groups:
    """The arrays of one problem as the kernels take them, and the calls."""

    def __init__(self, problem, z_offset, threads):
        self.form, self.given, self.threads, self.z_offset = problem.form(z_offset), problem.given, threads, z_offset
        self.sizes, self.offset = problem.sizes.astype(np.float64), 2.0 * self.form.theta * z_offset
        self.upper, self.longest_row = np.inf if self.form.upper is None else self.form.upper, problem.edges.longest_row
        self.n_rows = float(self.sizes.sum())

    def start(self):
        """λ of every group alone."""
        lam = np.empty(self.form.n)
        self.threads.rows(kernels.start, lam.size, self.form, self.sizes, self.offset, self.longest_row, lam)
        return lam

    def sweep(self, lam, tol, most):
        """Sweeps, in place, until the rows' shares of the gap are well below `tol`. Returns their number, at most `most`."""
        arguments = self.form, self.sizes, self.upper, self.offset, self.given
        for count in range(1, most + 1):
            relax = 1.0 if count == 1 else OVER_RELAX
            if kernels.sweep(*arguments, relax, self.longest_row, lam) <= REST_SHARE * tol * self.n_rows:
                return count
        return most

    def evaluate(self, lam):
        """The point at λ, and how many rows of other groups a row has a free weight to."""
        n = self.form.n
        degree, n_neighbors, energy, free_mass = np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(n)
        arguments = self.form, self.sizes, self.upper, self.given, lam, degree, n_neighbors, energy, free_mass
        self.threads.rows(kernels.evaluate, n, *arguments)
        x = degree * (lam + self.offset)
        with np.errstate(divide="ignore"):  # a degree of 0 makes the gap inf
            gap = float(np.sum(self.sizes * (x - 1.0 - np.log(x)))) / self.n_rows
        return Point(self.form, lam, self.z_offset, gap, 0, degree, n_neighbors, energy, self.sizes), free_mass


def _newton_step(groups, point, free_mass):
    """The step H⁻¹∇D with y = m·λ as unknowns: H has ½ at every pair of groups with a free weight, whatever their sizes are."""
    lam, sizes = point.lam, groups.sizes
    indptr, indices, _ = weighted_edges(point.form, point.lam_shifted, groups.upper, threads=groups.threads)
    own = np.where(lam < groups.upper, sizes - 1.0, 0.0)
    diagonal, gradient = (1.0 / lam**2 + own + 0.5 * free_mass) / sizes, 1.0 / lam - point.degree
    rows = indptr[:-1], indptr[1:], indices
    return conjugate_gradients(rows, diagonal, gradient, 0.0, CG_ROUNDS, CG_TOL, groups.threads) / sizes


def _line_search(groups, before, step):
    """The point after as much of the step as makes the dual rise; the same point if none does."""
    value, slack = _dual_value(groups, before), 1e-12 * groups.n_rows  # near the optimum a rise is lost in rounding
    t = min(1.0, 0.9 / max(np.max(-step / before.lam), 1e-300))  # λ stays positive
    while t > 1e-3:
        trial = groups.evaluate(before.lam_shifted + t * step)[0]
        rise = _dual_value(groups, trial) - value
        if rise > 0.0 or (rise > -slack and trial.gap < before.gap):
            return trial
        t *= 0.5
    return before


def _dual_value(groups, point):
    """D(λ), but for constants."""
    return float(np.sum(groups.sizes * (np.log(point.lam) + point.energy - point.degree * point.lam_shifted)))
