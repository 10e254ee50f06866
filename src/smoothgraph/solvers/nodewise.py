"""The default solver: exact coordinate ascent on the dual, one node at a time, and leaps where that is slow.

In: a problem of the log model, perhaps a point to start from. Out: a point, that is λ and the weights at λ. There the duality
gap is P − D = Σᵢ ψ(dᵢλᵢ), ψ(x) = x − 1 − log x: a sum of small positive terms, exact to the last digits.

The update of one node, λ ← T(λ), is a contraction in the largest difference: raising all λⱼ by h lowers λᵢ by at most
h·m/(2dᵢ² + m), m the number of its edges. So sweeps converge in any order and from any start; the order only sets how fast.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from smoothgraph.parallel import Threads
from smoothgraph.solvers import interior
from smoothgraph.solvers.conjugate_gradients import conjugate_gradients
from smoothgraph.solvers.groups import Groups
from smoothgraph.solvers.problem import Point, Solution, solution_at
from smoothgraph.solvers.sweeps import Memory, Sweeps, mean_psi
from smoothgraph.solvers.work import Work

COARSE_GAP = 1e-8  # a cold start sweeps to this gap first: up to here sweeps are best; then come a leap and finer sweeps
MAX_STALLED = 10  # leaps in a row that do not even halve the gap: rounding leaves no more to gain
THETA_STEP = 100.0  # where most nodes are far, a θ so many times smaller is solved for first
SHIFTS = 3  # times that λ of far outliers is counted anew in one solve
CG_ROUNDS, CG_TOL = 20, 0.03  # rounds, and relative residual, to which a Newton step is solved for
DIRECT_EDGES = 60_000  # nodes with at most so many allowed edges in all are moved to their joint optimum at once
ROUNDED_DOWN = 8.0 * np.finfo(np.float64).eps  # share of λ of far nodes that the rounding of 2θz and of sums can take
DIRECT_DOUBLINGS = 4  # that number doubles with every leap that did not help, up to so many times
OUT_OF_PROPORTION = (
    "The work was out of proportion, and ended here: distances span too many orders of magnitude for one θ. Use locality=1, "
    "rescale the features, or remove samples that are far from all others."
)


class Nodewise:
    """The solver. It keeps its memory between solves: touching new memory takes longer than writing to it.

    It counts its work over all solves of a fit. When that is out of proportion, a solve is a few sweeps, and no leaps.
    """

    name = "nodewise"

    def __init__(self, threads: Threads | None = None):
        self.threads = Threads() if threads is None else threads
        self.work = Work()
        self._memory = Memory()

    def ascend(self, problem, tol: float, max_iter: int, start: Point | None = None, changed=None) -> Point:
        """Sweeps, coarse ones from a cold start, then leaps and finer sweeps until the gap is at most `tol`.

        Outliers that have outliers as neighbours may need more digits than their shifted λ has. Where the gap is missed, λ is
        counted anew from where it has come to, and has all its digits again. Where most nodes are far from all others, θ is far
        too large for the distances; then a smaller θ is solved for first, as λ of far nodes grows as θ does.
        """
        if start is None and np.median(problem.nearest_costs) > problem.far_cost:
            start = self.ascend(replace(problem, theta=problem.theta / THETA_STEP), tol, max_iter)
        offset, lam = self._carried(problem, start)
        point = self._ascend(problem, tol, max_iter, offset, lam, start, changed)
        for _ in range(SHIFTS):
            if point.gap <= tol or not point.z_offset.any() or self._is_too_much(problem):
                break
            point = self._ascend(problem, tol, max_iter, *_counted_anew(point))
        return point

    def finish(self, problem, point: Point, tol: float, started: float) -> Solution:
        """The Solution at a point; warns if the gap is larger than `tol`.

        A solve that was cut short may leave nodes without weight. Each of them gets an edge, so that the graph is feasible and
        its gap is a number.
        """
        self._memory = Memory()  # the graph needs the room
        point, last = self._with_last_edges(problem, point, tol)
        energy = point.energy + point.lam_offset * point.degree  # what the distances of the form have less
        objective = float(np.sum(point.mass * energy) - np.sum(point.mass * np.log(point.degree))) + problem.constant
        dual_objective = objective - point.n_rows * point.gap
        # One number cannot hold all digits of a far node's λ. The dual falls steeply where such a λ is too large, and by no
        # more than the share that is taken off where it is too small: so λ is rounded down, and the gap holds for it too.
        lam = point.lam * np.where(point.z_offset > 0.0, 1.0 - ROUNDED_DOWN, 1.0)
        values = lam / problem.shrink, objective, dual_objective
        advice = OUT_OF_PROPORTION if self._is_too_much(problem) else "Raise max_iter, or tol."
        solution = solution_at(point, problem.shrink, values, tol, started, self.threads, advice)
        if last.count:
            weights = csr_matrix(solution.weights + problem.shrink * last.graph(problem.n))
            weights.sort_indices()
            solution = replace(solution, weights=weights)
        return solution

    def point_at(self, problem, lam: np.ndarray) -> Point:
        """The point at a λ of the user's."""
        sweeps = self._sweeps(problem, problem.far_offset())
        return sweeps.evaluate(np.asarray(lam, np.float64) * problem.shrink - sweeps.offset)

    def _with_last_edges(self, problem, point, tol):
        """(the point with one edge for each node without weight, these edges).

        A far node may need weights that are less than what λ of its neighbours is rounded by. The weights at λ are noise then,
        of any size. So it is made a node without weight, whose one edge has all its digits, where the gap is smaller for it.
        """
        last = _last_edges(point)
        found = _with_edges(point, last)
        noisy = _noisy(problem, found, tol)
        if noisy.size:
            lowered = self._sweeps(problem, point.z_offset).evaluate(_lowered(point, noisy))
            more = _last_edges(lowered)
            lowered = _with_edges(replace(lowered, n_iter=point.n_iter), more)
            if lowered.gap < found.gap:
                return lowered, more
        return found, last

    def _carried(self, problem, start):
        """(offset, shifted λ) to begin with: λ of far outliers goes with θ, that of all other nodes stays."""
        if start is None:
            return problem.far_offset(), None
        theta = problem.theta * problem.shrink
        is_far = (start.z_offset > 0.0) | (problem.nearest_costs > problem.far_cost)
        if not is_far.any():
            return start.z_offset, start.lam_shifted
        ratio = theta / start.form.theta
        offset = np.where(is_far & (start.z_offset == 0.0), 0.5 * start.lam_shifted / start.form.theta, start.z_offset)
        lam = np.where(is_far, np.where(start.z_offset > 0.0, start.lam_shifted * ratio, 0.0), start.lam_shifted)
        return offset, lam

    def _ascend(self, problem, tol, max_iter, offset, lam, start=None, changed=None) -> Point:
        sweeps = self._sweeps(problem, offset)
        if lam is None:
            lam = sweeps.start()
            n_iter = 1 + sweeps.run(lam, max(tol, COARSE_GAP), max_iter - 1)
        else:
            lam = lam.copy()
            n_iter = sweeps.run(lam, tol, max_iter, changed)
        point = sweeps.evaluate(lam) if changed is None else sweeps.evaluate_changes(start, changed, lam)
        best, stalled = point.gap, 0
        while point.gap > tol and n_iter < max_iter and stalled < MAX_STALLED and not self._is_too_much(problem):
            point = self._leap(sweeps, point, tol, DIRECT_EDGES << min(stalled, DIRECT_DOUBLINGS))
            n_iter += 1
            if point.z_offset is not sweeps.z_offset:
                sweeps = self._sweeps(problem, point.z_offset)
            if point.gap > tol:
                lam = point.lam_shifted.copy()
                n_iter += sweeps.run(lam, tol, max_iter - n_iter)
                point = sweeps.evaluate(lam)
            stalled = 0 if point.gap < 0.5 * best else stalled + 1
            best = min(best, point.gap)
        return replace(point, n_iter=n_iter)

    def _sweeps(self, problem, offset):
        if problem.sizes is not None:
            return Groups(problem, offset, self.threads, self.work)
        return Sweeps(problem, offset, self._memory, self.threads, self.work)

    def _is_too_much(self, problem):
        return self.work.is_too_much(problem.edges.indptr[-1])

    def _leap(self, sweeps, before, tol, direct_edges) -> Point:
        """The point after a step that sweeps would take long for, or the same point if that is no ascent of the dual.

        The nodes that are not at their optimum, and their neighbours, go to their joint optimum if they have together at most
        `direct_edges` allowed edges. Else it is a semismooth Newton step of all nodes.
        """
        problem, free = sweeps.problem, sweeps.free_edges(before.lam_shifted)
        moving = _moving(problem, before, free, tol)
        with np.errstate(all="ignore"):  # of λ of very different sizes rounding may leave nothing: such a step is refused
            if np.diff(problem.edges.indptr)[moving].sum() > direct_edges:
                return _line_search(sweeps, before, _newton_step(before, free, self.threads))
            offset, lam = interior.move(problem, before, moving, 0.1 * tol, self.work)
            if before.z_offset.any():  # λ has been counted anew, and the old way of counting has no digits for it
                point = self._sweeps(problem, offset).evaluate(lam)
                if point.gap < before.gap or before.gap == np.inf:
                    return point
            return _line_search(sweeps, before, lam - before.lam_shifted + 2.0 * before.form.theta * (offset - before.z_offset))


def _counted_anew(point):
    """(offset, shifted λ) of the same λ, far outliers being counted from where their λ has come to."""
    to_z = 0.5 / point.form.theta
    offset = np.where(point.z_offset > 0.0, np.maximum(point.z_offset + to_z * point.lam_shifted, 0.0), 0.0)
    return offset, point.lam_shifted - (offset - point.z_offset) / to_z


class _LastEdges(NamedTuple):
    """One edge (i, j) for each node i without weight: its weight w, and by how much it lies below the cost of the edge.

    j stands for `rows` equal rows, and i has the edge to each of them.
    """

    i: np.ndarray
    j: np.ndarray
    w: np.ndarray
    short: np.ndarray
    rows: np.ndarray

    @property
    def count(self):
        return self.i.size

    def graph(self, n):
        """Their graph. Two nodes that have each other have both weights."""
        one_way = csr_matrix((self.w, (self.i, self.j)), shape=(n, n))
        return one_way + one_way.T


def _last_edges(point):
    """For every node without weight the edge that comes nearest to having some, with the weight 1/λ."""
    form, lam = point.form, point.lam_shifted
    nodes, entries, short = np.flatnonzero(point.degree == 0.0), [], []
    for i in nodes:
        row = slice(form.begin[i], form.end[i])
        missing = form.theta * form.z[row] - 0.5 * (lam[i] + lam[form.indices[row]])
        entries.append(form.begin[i] + int(np.argmin(missing)))
        short.append(float(missing.min()))
    others = form.indices[np.array(entries, np.int64)]
    rows = np.ones(nodes.size) if point.sizes is None else point.sizes[others]  # such a node has no copies, its neighbour may
    w = 1.0 / (rows * point.lam[nodes])
    w = w if form.upper is None else np.minimum(w, form.upper)
    return _LastEdges(nodes, others, w, np.array(short), rows)


def _noisy(problem, point, tol):
    """The far nodes with a share of the gap above `tol`, of those that have nothing but edges to other nodes."""
    alone = (problem.given == 0.0) & (True if point.sizes is None else point.sizes == 1.0)
    x = point.degree * point.lam
    return np.flatnonzero((point.z_offset > 0.0) & alone & ~(x - 1.0 - np.log(x) <= tol))


def _lowered(point, nodes):
    """The shifted λ, that of these nodes below where they would have weight, by no more than it is rounded by."""
    form, lam = point.form, point.lam_shifted.copy()
    for i in nodes:
        row = slice(form.begin[i], form.end[i])
        limits, others = 2.0 * form.theta * form.z[row], point.lam_shifted[form.indices[row]]
        lam[i] = min(lam[i], np.min(limits - others - ROUNDED_DOWN * (np.abs(limits) + np.abs(others))))
    return lam


def _with_edges(point, last):
    """The point with these edges. For a weight that λ does not give, the gap has w² + 2·short·w more."""
    if not last.count:
        return point
    n, cost = point.form.n, last.rows * (last.w**2 + 2.0 * last.short * last.w)
    added = np.bincount(last.i, last.rows * last.w, n) + np.bincount(last.j, last.w, n)
    degree, energy = point.degree + added, point.energy + point.lam_shifted * added
    energy[last.i] += cost
    gap = mean_psi(degree, point.lam_shifted, point.lam_offset, sizes=point.sizes) + float(cost.sum()) / point.n_rows
    return replace(point, degree=degree, energy=energy, gap=gap)


def _moving(problem, point, free, tol):
    """The nodes that are not at their optimum, and their neighbours."""
    moving = np.abs(point.degree * point.lam - 1.0) > np.sqrt(0.1 * tol)
    free_graph = csr_matrix((np.ones(free[1].size, np.bool_), free[1], free[0]), shape=(problem.n, problem.n))
    return np.flatnonzero(moving | (free_graph @ moving))


def _line_search(sweeps, before, step):
    """The point after as much of the step as makes the dual rise."""
    n, value = before.n_rows, _dual_value(before)
    t = min(1.0, 0.9 / max(np.max(-step / before.lam), 1e-300))  # λ stays positive
    while t > 1e-3:
        trial = sweeps.evaluate(before.lam_shifted + t * step)
        rise = _dual_value(trial) - value
        if rise > 0.0 or (rise > -1e-12 * n and trial.gap < before.gap):  # near the optimum a rise is lost in rounding
            return trial
        t *= 0.5
    return before


def _newton_step(point, free, threads):
    """The step H⁻¹∇D, H = diag(1/λ²) + ½ S_A S_Aᵀ over the edges A strictly between their bounds.

    For nodes that stand for m rows the unknowns are m times λ: then H still has ½ at every edge.
    """
    indptr, indices = free
    diagonal, gradient = 1.0 / point.lam**2 + 0.5 * np.diff(indptr), 1.0 / point.lam - point.degree
    if point.sizes is not None:
        n, upper = point.form.n, np.inf if point.form.upper is None else point.form.upper
        rows_of_others = csr_matrix((np.ones(indices.size), indices, indptr), shape=(n, n)) @ point.sizes
        rows_of_own = np.where(point.lam < upper, point.sizes - 1.0, 0.0)
        diagonal = (1.0 / point.lam**2 + rows_of_own + 0.5 * rows_of_others) / point.sizes
    rows = indptr[:-1], indptr[1:], indices
    return conjugate_gradients(rows, diagonal, gradient, 0.0, CG_ROUNDS, CG_TOL, threads) / point.mass


def _dual_value(point):
    """D(λ) = P(w) − gap, but for constants; from sums that stay finite where a degree is 0."""
    energy = point.energy - point.degree * point.lam_shifted
    return np.sum(point.mass * np.log(point.lam)) + float(np.sum(point.mass * energy))
