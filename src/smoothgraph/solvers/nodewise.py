"""The default solver: exact coordinate ascent on the dual, one node at a time, and leaps where that is slow.

In: a `Problem`, perhaps a λ to start from. Out: λ, and the weights w = clip((λᵢ+λⱼ)/2 − θz, 0, max_weight) it implies. At that
w the duality gap is P − D = Σᵢ ψ(dᵢλᵢ), ψ(x) = x − 1 − log x: a sum of small positive terms, exact to the last digits.

The update of one node, λ ← T(λ), is a contraction in the largest difference: raising all λⱼ by h lowers λᵢ by at most
h·m/(2dᵢ² + m), m the number of its edges. So sweeps converge in any order and from any start; the order only sets how fast.
"""

import time
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from smoothgraph import _kernels
from smoothgraph.solvers import interior
from smoothgraph.solvers.problem import SHARES, Ascent, Problem, Solution, rows, solution_at

LANES, WAVES = 16, 64  # a sweep is WAVES times LANES blocks side by side; WAVES is a power of two
SERIAL = 5_000  # below as many nodes a sweep is too short for threads
FEW, MANY = 0.05, 0.2  # shares of the nodes: so few are swept over all allowed edges, unless they become so many
RELAX = 1.25  # times the way to its optimum goes a node
MARGIN = 0.2  # live edges are those that can have weight while no λ rises by more than this share
ROUGH, ROUGH_ROUNDS = 300, 8  # down to so many times the gap asked for every node is swept, since nearly all would be marked
COARSE = 1e-8  # a gap up to which sweeps are best; then a leap, and sweeps again
REST = 0.2  # of the gap asked for may be left to the nodes that are restless still
VISITS, CREEPING = 20, 40  # visits per node on average, and rounds of few nodes, before something else is tried
CG_ROUNDS, CG_TOL = 20, 0.03  # how well a Newton step is solved for
DIRECT = 60_000  # nodes that have together at most so many allowed edges are moved to their joint optimum at once
DOUBLINGS = 4  # of that number, one for every leap that did not help
STALLED = 10  # leaps after which the gap is not even halved: rounding leaves no more
PARTS = 8  # that the live edges are chosen in; with many, huge pages of memory would be used at the end of each


def solve(problem: Problem, tol: float, max_iter: int, lam=None) -> Solution:
    """Sweep until the relative gap is at most `tol`."""
    start = time.perf_counter()
    lam = None if lam is None else np.asarray(lam, np.float64) * problem.shrink - problem.base
    return finish(problem, ascend(problem, tol, max_iter, lam), tol, start)


def finish(problem: Problem, point: Ascent, tol: float, start: float) -> Solution:
    """The Solution at a point of the ascent; warns if the gap is larger than `tol`."""
    energy = point.energy + problem.base * point.degree  # what the distances have less
    with np.errstate(divide="ignore"):  # a solve that was cut short may leave a node without weight: the objective is inf
        objective = float(energy.sum() - np.log(point.degree).sum()) + problem.constant
    dual = (point.lam + problem.base) / problem.shrink
    dual_objective = objective - problem.n * point.gap
    return solution_at(point, problem.arrays_less_base, problem.shrink, dual, objective, dual_objective, tol, start)


def ascend(
    problem: Problem, tol: float, max_iter: int, lam=None, *, known: Ascent | None = None, changed=None, scratch=None
) -> Ascent:
    """Sweeps, coarse ones from a cold start, then leaps and finer sweeps until the gap is at most `tol`.

    The `lam` given is not changed. If the point `known`, at that λ, is the optimum of a problem that differs in a few nodes
    only, marked `changed`, the work is theirs. `scratch` is memory that several solves share.
    """
    sweeper = _Sweeper(problem, scratch or Scratch())
    if lam is None:
        indptr, _, z, theta, _ = problem.arrays_less_base
        lam = _kernels.start_dual(indptr, z, theta, problem.base)
        sweeper.first_round(lam)
        n_iter = 1 + sweeper.settle(lam, max(tol, COARSE), max_iter - 1)
    else:
        lam = lam.copy()
        n_iter = sweeper.settle(lam, tol, max_iter, changed)
    point = sweeper.evaluate(lam) if known is None else sweeper.evaluate_again(known, changed, lam)
    best, stalled = point.gap, 0
    while point.gap > tol and n_iter < max_iter and stalled < STALLED:
        point = _leap(sweeper, point, tol, DIRECT << min(stalled, DOUBLINGS))
        n_iter += 1
        if point.gap > tol:
            lam = point.lam.copy()
            n_iter += sweeper.settle(lam, tol, max_iter - n_iter)
            point = sweeper.evaluate(lam)
        stalled = 0 if point.gap < 0.5 * best else stalled + 1
        best = min(best, point.gap)
    return replace(point, n_iter=n_iter)


class Scratch:
    """Memory that one solve can leave to the next: touching new memory takes longer than the copy."""

    def __init__(self):
        self._rows = self._nodes = self._mixed = None

    def rows(self, n, entries, dtype):
        """For the live edges."""
        if self._rows is None or self._rows[0].size != n or self._rows[2].size < entries or self._rows[3].dtype != dtype:
            room = 2 * entries  # the support may grow, and memory costs nothing until it is written to
            self._rows = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(room, np.int32), np.empty(room, dtype)
        return self._rows

    def mixed(self, indptr, indices, shift):
        """`_kernels.mixed_rows`; who has more edges than when it was asked for last may have become mixed: counts as such."""
        if self._mixed is None or self._mixed[0].size != indptr.size:
            self._mixed = indptr, _kernels.mixed_rows(indptr, indices, WAVES, shift)
        elif self._mixed[0] is not indptr:
            last, mixed = self._mixed
            self._mixed = indptr, mixed | (np.diff(indptr) != np.diff(last))
        return self._mixed[1]

    def nodes(self, n):
        """Three numbers for every node."""
        if self._nodes is None or self._nodes.shape[1] != n:
            self._nodes = np.empty((3, n))
        return self._nodes


class _Sweeper:
    """Sweeps of one problem, and what its weights are.

    Few of the allowed edges have weight. Sweeps look only at those that can have weight while no λ rises by more than a
    margin, and none does: nodes that come to this limit rest until the live edges are chosen anew.
    """

    def __init__(self, problem, scratch):
        *self.allowed, self.theta, self.upper = problem.arrays_less_base
        self.problem, self.n, self.given, self.scratch = problem, problem.n, problem.given, scratch
        self.live = scratch.rows(self.n, self.allowed[1].size, self.allowed[2].dtype)
        self.before, self.live_limit, self.no_limit = scratch.nodes(self.n)
        self.live_limit[:], self.no_limit[:] = -np.inf, np.inf
        self.restless = np.zeros(self.n, np.bool_)
        self.shift = (-(-self.n // (LANES * WAVES)) - 1).bit_length()  # node i is in block i >> shift

    def first_round(self, lam):
        """A sweep of all nodes over all allowed edges, after which λ is good enough to tell which of them are live."""
        self._allow_all()
        self.before[:] = lam
        self._round(lam, np.arange(self.n, dtype=np.int32), np.inf, 1.0)

    def settle(self, lam, tol, most, restless=None):
        """Update all nodes, or those marked, then those far from their optimum, or next to one that was, until all rest.

        Most nodes settle in a few rounds. Gives up when that takes too many visits, when a few nodes creep, or after `most`
        rounds. Returns their number.
        """
        nodes = (np.arange(self.n) if restless is None else np.flatnonzero(restless)).astype(np.int32)
        visits, rounds, creeping, few = VISITS * self.n, 0, CREEPING, max(FEW * self.n, 1000.0)
        self.before[:] = lam
        while nodes.size:
            many = nodes.size > few
            if many:  # choosing costs as much as two visits of every node
                self._choose_live(lam)
            else:
                self._allow_all()
            share, rough = np.inf, nodes.size == self.n
            while nodes.size and share > REST * tol * self.n:
                if not many and nodes.size > max(few, MANY * self.n):  # now it is worth it
                    break
                if visits <= 0 or creeping <= 0 or rounds >= most:
                    return rounds
                share = self._round(lam, nodes, np.inf if rough else tol)
                rounds += 1
                visits -= nodes.size
                creeping -= nodes.size <= few
                if rough:
                    rough = share > ROUGH * tol * self.n and rounds < ROUGH_ROUNDS  # a few outliers may have a large share
                else:
                    nodes = self._take_restless()
            else:
                nodes = np.flatnonzero(lam >= self.limit).astype(np.int32)
        return rounds

    def evaluate(self, lam) -> Ascent:
        """The point at λ. Edges that are not live have no weight, if no λ is beyond its limit."""
        return self._point(lam, *_kernels.evaluate(*self._rows_for(lam), self.theta, self.upper, self.given, lam))

    def evaluate_again(self, known, changed, lam) -> Ascent:
        """The point at λ, from one that differs at few nodes: those are evaluated, and whoever has an edge with one."""
        nodes = np.flatnonzero((lam != known.lam) | changed)
        if nodes.size > FEW * self.n:
            return self.evaluate(lam)
        marks = np.zeros(self.n, np.bool_)
        arrays = *rows(self.allowed), self.theta, self.upper
        _kernels.mark_touched(nodes, *arrays, known.lam, lam, marks)
        parts = known.degree.copy(), known.active.copy(), known.energy.copy()
        _kernels.evaluate_again(np.flatnonzero(marks), *arrays, self.given, lam, *parts)
        return self._point(lam, *parts)

    def _point(self, lam, degree, active, energy):
        gap = _kernels.mean_psi(degree, lam, self.problem.base, SHARES)
        return Ascent(lam, gap, 0, degree, active, energy)

    def free_edges(self, lam):
        """The edges whose weight is strictly between its bounds, as CSR arrays (indptr, indices)."""
        return _kernels.weighted_edges(*self._rows_for(lam), self.theta, self.upper, lam, self.upper)[:2]

    def _rows_for(self, lam):
        return self.live if (lam <= self.live_limit).all() else rows(self.allowed)

    def _choose_live(self, lam):
        np.multiply(MARGIN, self.problem.base + lam, out=self.live_limit)
        self.live_limit += lam
        self.limit = self.live_limit
        _kernels.live_edges(*self.allowed, self.theta, self.limit, PARTS, *self.live)
        self.rows, self.longest_row = self.live, int((self.live[1] - self.live[0]).max())

    def _allow_all(self):
        self.limit = self.no_limit
        self.rows, self.longest_row = rows(self.allowed), self.problem.candidates.longest_row

    def _round(self, lam, nodes, quiet, relax=RELAX):
        constants = self.theta, self.upper, self.problem.base, self.given, self.limit
        marks = self.before, self.restless, quiet, relax
        return _kernels.sweep(nodes, *self._blocks(nodes), *self.rows, *constants, lam, *marks, self.longest_row)

    def _blocks(self, nodes):
        """(bounds, waves, shift, mixed) of the blocks that these nodes are swept in: who is mixed has neighbours beside it."""
        if nodes.size < SERIAL:
            return np.array([0, nodes.size]), 1, 31, np.zeros(self.n, np.bool_)
        mixed = self.scratch.mixed(*self.allowed[:2], self.shift)
        return np.searchsorted(nodes, np.arange(LANES * WAVES + 1) << self.shift), WAVES, self.shift, mixed

    def _take_restless(self):
        nodes = np.flatnonzero(self.restless).astype(np.int32)
        self.restless[nodes] = False
        return nodes


def _leap(sweeper, before, tol, direct):
    """The point after what sweeps would take long for, or the same if that is no ascent of the dual."""
    with np.errstate(all="ignore"):  # of λ of very different sizes rounding may leave nothing: such a step is refused
        return _line_search(sweeper, before, _step(sweeper, before, tol, direct))


def _step(sweeper, before, tol, direct):
    """The nodes that are not at their optimum, and their neighbours, to their joint optimum if they are few.

    That is, if they have together at most `direct` allowed edges. Else a semismooth Newton step of all.
    """
    problem = sweeper.problem
    free = sweeper.free_edges(before.lam)
    moving = np.abs(before.degree * (before.lam + problem.base) - 1.0) > np.sqrt(0.1 * tol)
    free_graph = csr_matrix((np.ones(free[1].size, np.bool_), free[1], free[0]), shape=(problem.n, problem.n))
    moving = np.flatnonzero(moving | (free_graph @ moving))
    if np.diff(problem.candidates.indptr)[moving].sum() <= direct:
        return interior.move(problem, before.lam, moving, 0.1 * tol) - before.lam
    return _newton_step(problem, before, free)


def _line_search(sweeper, before, step):
    """The point after as much of the step as makes the dual rise."""
    problem, dual = sweeper.problem, _dual_value(sweeper.problem, before)
    lam = before.lam + problem.base
    t = min(1.0, 0.9 / max(np.max(-step / lam), 1e-300))  # λ stays positive
    while t > 1e-3:
        trial = sweeper.evaluate(before.lam + t * step)
        rise = _dual_value(problem, trial) - dual
        if rise > 0.0 or (rise > -1e-12 * problem.n and trial.gap < before.gap):  # near the optimum a rise is lost in rounding
            return trial
        t *= 0.5
    return before


def _newton_step(problem, point, free):
    """The step H⁻¹∇D, H = diag(1/λ²) + ½ S_A S_Aᵀ over the edges A strictly between their bounds."""
    lam = point.lam + problem.base
    diagonal, gradient = 1.0 / lam**2 + 0.5 * np.diff(free[0]), 1.0 / lam - point.degree
    return _kernels.conjugate_gradients(*rows(free), diagonal, gradient, 0.0, CG_ROUNDS, CG_TOL, SHARES)


def _dual_value(problem, point):
    """D(λ) = P(w) − gap, but for constants; from sums that stay finite where a degree is 0."""
    return np.sum(np.log(point.lam + problem.base)) + float(np.sum(point.energy - point.degree * point.lam))
