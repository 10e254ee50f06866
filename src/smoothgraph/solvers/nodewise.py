"""The default solver: exact coordinate ascent on the dual, one node at a time, and leaps where that is slow.

In: a problem of the log model, perhaps a point to start from. Out: a point, that is λ and the weights at λ. There the duality
gap is P − D = Σᵢ ψ(dᵢλᵢ), ψ(x) = x − 1 − log x: a sum of small positive terms, exact to the last digits.

The update of one node, λ ← T(λ), is a contraction in the largest difference: raising all λⱼ by h lowers λᵢ by at most
h·m/(2dᵢ² + m), m the number of its edges. So sweeps converge in any order and from any start; the order only sets how fast.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from smoothgraph._kernels import dual
from smoothgraph.parallel import Threads
from smoothgraph.solvers import interior
from smoothgraph.solvers.conjugate_gradients import conjugate_gradients
from smoothgraph.solvers.problem import Point, Solution, solution_at
from smoothgraph.solvers.sweeps import Memory, Sweeps

COARSE_GAP = 1e-8  # a cold start sweeps to this gap first: up to here sweeps are best; then come a leap and finer sweeps
MAX_STALLED = 10  # leaps in a row that do not even halve the gap: rounding leaves no more to gain
SHIFTS = 3  # times that λ of far outliers is counted anew in one solve
CG_ROUNDS, CG_TOL = 20, 0.03  # rounds, and relative residual, to which a Newton step is solved for
DIRECT_EDGES = 60_000  # nodes with at most so many allowed edges in all are moved to their joint optimum at once
DIRECT_DOUBLINGS = 4  # that number doubles with every leap that did not help, up to so many times


class Nodewise:
    """The solver. It keeps its memory between solves: touching new memory takes longer than writing to it."""

    name = "nodewise"

    def __init__(self, threads: Threads | None = None):
        self.threads = Threads() if threads is None else threads
        self._memory = Memory()

    def ascend(self, problem, tol: float, max_iter: int, start: Point | None = None, changed=None) -> Point:
        """Sweeps, coarse ones from a cold start, then leaps and finer sweeps until the gap is at most `tol`.

        Outliers that have outliers as neighbours may need more digits than their shifted λ has. Where the gap is missed, λ is
        counted anew from where it has come to, and has all its digits again.
        """
        form, offset, lam = self._carried(problem, start)
        point = self._ascend(problem, tol, max_iter, form, offset, lam, start, changed)
        for _ in range(SHIFTS):
            if point.gap <= tol or not offset.any():
                break
            lam, is_far = point.lam, offset > 0.0
            offset = np.where(is_far, lam, 0.0)
            point = self._ascend(problem, tol, max_iter, problem.form(offset), offset, np.where(is_far, 0.0, lam))
        return point

    def finish(self, problem, point: Point, tol: float, started: float) -> Solution:
        """The Solution at a point; warns if the gap is larger than `tol`."""
        self._memory = Memory()  # the graph needs the room
        energy = point.energy + point.lam_offset * point.degree  # what the distances of the form have less
        with np.errstate(divide="ignore"):  # a solve that was cut short may leave a node without weight: P is inf
            objective = float(energy.sum() - np.log(point.degree).sum()) + problem.constant
        dual_objective = objective - problem.n * point.gap
        values = point.lam / problem.shrink, objective, dual_objective
        return solution_at(point, problem.shrink, values, tol, started, self.threads)

    def point_at(self, problem, lam: np.ndarray) -> Point:
        """The point at a λ of the user's."""
        offset = problem.far_offset()
        lam = np.asarray(lam, np.float64) * problem.shrink - offset
        return Sweeps(problem, problem.form(offset), offset, self._memory, self.threads).evaluate(lam)

    def _carried(self, problem, start):
        """(form, offset, shifted λ) to begin with: λ of far outliers goes with θ, that of all other nodes stays."""
        if start is None:
            offset = problem.far_offset()
            return problem.form(offset), offset, None
        if not start.lam_offset.any():
            return problem.form(), start.lam_offset, start.lam_shifted
        ratio = problem.theta * problem.shrink / start.form.theta
        offset = start.lam_offset * ratio
        return problem.form(offset), offset, np.where(offset > 0.0, start.lam_shifted * ratio, start.lam_shifted)

    def _ascend(self, problem, tol, max_iter, form, offset, lam, start=None, changed=None) -> Point:
        sweeps = Sweeps(problem, form, offset, self._memory, self.threads)
        if lam is None:
            lam = np.empty(problem.n)
            self.threads.rows(dual.start_dual, problem.n, form, offset, lam)
            sweeps.first_round(lam)
            n_iter = 1 + sweeps.run(lam, max(tol, COARSE_GAP), max_iter - 1)
        else:
            lam = lam.copy()
            n_iter = sweeps.run(lam, tol, max_iter, changed)
        point = sweeps.evaluate(lam) if changed is None else sweeps.evaluate_changes(start, changed, lam)
        best, stalled = point.gap, 0
        while point.gap > tol and n_iter < max_iter and stalled < MAX_STALLED:
            point = _leap(sweeps, point, tol, DIRECT_EDGES << min(stalled, DIRECT_DOUBLINGS))
            n_iter += 1
            if point.gap > tol:
                lam = point.lam_shifted.copy()
                n_iter += sweeps.run(lam, tol, max_iter - n_iter)
                point = sweeps.evaluate(lam)
            stalled = 0 if point.gap < 0.5 * best else stalled + 1
            best = min(best, point.gap)
        return replace(point, n_iter=n_iter)


def _leap(sweeps, before, tol, direct_edges):
    """The point after a step that sweeps would take long for, or the same point if that is no ascent of the dual."""
    with np.errstate(all="ignore"):  # of λ of very different sizes rounding may leave nothing: such a step is refused
        return _line_search(sweeps, before, _step(sweeps, before, tol, direct_edges))


def _step(sweeps, before, tol, direct_edges):
    """The nodes that are not at their optimum, and their neighbours, to their joint optimum if they are few.

    They are few if they have together at most `direct_edges` allowed edges. Else a semismooth Newton step of all nodes.
    """
    problem = sweeps.problem
    free = sweeps.free_edges(before.lam_shifted)
    moving = np.abs(before.degree * before.lam - 1.0) > np.sqrt(0.1 * tol)
    free_graph = csr_matrix((np.ones(free[1].size, np.bool_), free[1], free[0]), shape=(problem.n, problem.n))
    moving = np.flatnonzero(moving | (free_graph @ moving))
    if np.diff(problem.edges.indptr)[moving].sum() <= direct_edges:
        return interior.move(problem, before, moving, 0.1 * tol) - before.lam_shifted
    return _newton_step(before, free, sweeps.threads)


def _line_search(sweeps, before, step):
    """The point after as much of the step as makes the dual rise."""
    n, value = sweeps.problem.n, _dual_value(before)
    t = min(1.0, 0.9 / max(np.max(-step / before.lam), 1e-300))  # λ stays positive
    while t > 1e-3:
        trial = sweeps.evaluate(before.lam_shifted + t * step)
        rise = _dual_value(trial) - value
        if rise > 0.0 or (rise > -1e-12 * n and trial.gap < before.gap):  # near the optimum a rise is lost in rounding
            return trial
        t *= 0.5
    return before


def _newton_step(point, free, threads):
    """The step H⁻¹∇D, H = diag(1/λ²) + ½ S_A S_Aᵀ over the edges A strictly between their bounds."""
    indptr, indices = free
    diagonal, gradient = 1.0 / point.lam**2 + 0.5 * np.diff(indptr), 1.0 / point.lam - point.degree
    return conjugate_gradients((indptr[:-1], indptr[1:], indices), diagonal, gradient, 0.0, CG_ROUNDS, CG_TOL, threads)


def _dual_value(point):
    """D(λ) = P(w) − gap, but for constants; from sums that stay finite where a degree is 0."""
    return np.sum(np.log(point.lam)) + float(np.sum(point.energy - point.degree * point.lam_shifted))
