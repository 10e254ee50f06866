"""The default solver: exact coordinate ascent on the dual, one node at a time, and Newton steps to polish.

In: a `Problem`, perhaps a λ to start from. Out: λ, and the weights w = clip((λᵢ+λⱼ)/2 − θz, 0, max_weight) it implies. At that
w the duality gap is P − D = Σᵢ ψ(dᵢλᵢ), ψ(x) = x − 1 − log x: a sum of small positive terms, exact to the last digits.

The update of one node, λ ← T(λ), is a contraction in the largest difference: raising all λⱼ by h lowers λᵢ by at most
h·m/(2dᵢ² + m), m the number of its edges. So sweeps converge in any order and from any start; the order only sets how fast.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, diags_array
from scipy.sparse.linalg import splu
from sklearn.exceptions import ConvergenceWarning

from smoothgraph import _kernels
from smoothgraph.solvers.problem import Problem, Solution, Status

LANES, WAVES = 16, 16  # a sweep is WAVES times LANES blocks side by side: fixed, and with it the result, whatever the threads
FEW = 0.05  # up to this share of the nodes is swept in one thread, in strict order
SERIAL = 20_000  # below as many nodes a sweep is too short for threads
PATIENCE = 20  # visits per node before the gap is looked at, whoever is still restless
RELAX = 1.5  # times the way to its optimum goes a node that is among the few left
EXCHANGE_EVERY = 12  # rounds over the few that are left, before they are helped by exchanges
CHECK_EVERY = 4  # sweeps between two looks at the gap, unless it seems done
ESTIMATE_OVER_GAP = 3.0  # a sweep sees a node's share of the gap before its update: two to four times the gap afterwards
CHECKS_PER_NEWTON = 2  # a Newton step is taken where sweeps would need more checks than this
DIRECT = 5_000  # up to as many nodes its equations are solved by factorisation


@dataclass(frozen=True)
class Ascent:
    """A point of the dual ascent: λ (of the form without prior) less its base, the gap, the nodes' degrees and edges."""

    lam: np.ndarray
    gap: float
    n_iter: int
    degree: np.ndarray
    active: np.ndarray
    energy: np.ndarray

    @property
    def mean_degree(self) -> float:
        """Neighbours per node."""
        return float(self.active.mean())


def solve(problem: Problem, tol: float, max_iter: int, lam=None) -> Solution:
    """Sweep until the relative gap is at most `tol`."""
    start = time.perf_counter()
    lam = None if lam is None else np.asarray(lam, np.float64) * problem.shrink - problem.base
    return finish(problem, ascend(problem, tol, max_iter, lam), tol, start)


def finish(problem: Problem, point: Ascent, tol: float, start: float) -> Solution:
    """The Solution at a point of the ascent; warns if the gap is larger than `tol`."""
    indptr, indices, w = _kernels.positive_edges(*problem.arrays_less_base, point.lam, point.active)
    if indptr[-1] < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    weights = csr_matrix((w * problem.shrink, indices, indptr), shape=(problem.n, problem.n))
    weights.sort_indices()
    energy = point.energy + problem.base * point.degree  # what the distances have less
    with np.errstate(divide="ignore"):  # a solve that was cut short may leave a node without weight: the objective is inf
        objective = float(energy.sum() - np.log(point.degree).sum()) + problem.constant
    status = Status.CONVERGED if point.gap <= tol else Status.MAX_ITER
    if status is not Status.CONVERGED:
        warnings.warn(
            f"The relative duality gap is {point.gap:.2e} after {point.n_iter} rounds, more than tol={tol:.2e}. "
            "Raise max_iter, or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Solution(
        weights=weights,
        dual=(point.lam + problem.base) / problem.shrink,
        objective=objective,
        dual_objective=objective - problem.n * point.gap,
        gap=point.gap,
        n_iter=point.n_iter,
        status=status,
        seconds=time.perf_counter() - start,
    )


def ascend(problem: Problem, tol: float, max_iter: int, lam=None, restless=None) -> Ascent:
    """Sweeps until the gap is at most `tol`, and Newton steps where sweeps would cost more. The `lam` given is not changed.

    `restless` marks the nodes to begin with, for a λ that is the optimum of a problem that differs in those nodes only.
    """
    arrays = problem.arrays_less_base
    lam = _kernels.start_dual(*arrays[:1], *arrays[2:4], problem.base) if lam is None else lam.copy()
    sweeper = _Sweeper(problem)
    gap, n_iter = np.inf, 0
    while n_iter < max_iter:
        estimate, all_quiet = sweeper.sweep(lam, tol, restless)
        restless = None
        n_iter += 1
        if not all_quiet and estimate > ESTIMATE_OVER_GAP * tol and n_iter % CHECK_EVERY:
            continue
        point, last = _evaluate(problem, lam, n_iter), gap
        gap = point.gap
        if gap <= tol:
            return point
        if n_iter >= CHECK_EVERY and _checks_left(gap, last, tol) > CHECKS_PER_NEWTON:
            lam = _newton_step(problem, point, tol)
            n_iter += 1
    return _evaluate(problem, lam, n_iter)


class _Sweeper:
    """Sweeps of one problem, with their scratch arrays."""

    def __init__(self, problem):
        self.n, self.arrays = problem.n, (*problem.arrays_less_base, problem.base)
        indptr = problem.candidates.indptr
        self.blocks = _blocks(indptr)
        self.longest_row = int(np.diff(indptr).max())
        self.fresh, self.restless, self.woken = np.empty(self.n), np.empty(self.n, np.bool_), np.empty(self.n, np.bool_)

    def sweep(self, lam, tol, restless=None):
        """Update every node, or those marked, then only those far from their optimum, or next to one that was, until all rest.

        Most nodes settle in a few sweeps. What stays are far outliers that have little but each other: they need many
        visits, and are few enough to have them, in strict order, because two that are updated side by side overshoot, with
        steps beyond their optimum and exchanges, because they creep. Returns (estimated gap per node, whether all is quiet).
        """
        self.restless[:] = True if restless is None else restless
        estimate = self._round(lam, tol, 1.0, *self.blocks)
        visits, rounds = PATIENCE * self.n, 0
        while visits > 0:
            nodes = np.flatnonzero(self.restless)
            if nodes.size == 0:
                break
            rounds += 1
            visits -= nodes.size + self.n // 200  # finding them costs too
            few = nodes.size <= max(FEW * self.n, FEW * SERIAL)
            self._round(lam, tol, RELAX if few else 1.0, *(_one_block(self.n) if few else self.blocks))
            if rounds % EXCHANGE_EVERY == 0 and nodes.size <= FEW * SERIAL:
                _kernels.exchange(*self.arrays, lam, nodes, self.longest_row)
        return estimate / self.n, visits > 0

    def _round(self, lam, quiet, relax, bounds, lanes):
        scratch = self.fresh, self.restless, self.woken
        return _kernels.sweep(*self.arrays, lam, *scratch, quiet, relax, bounds, lanes, self.longest_row)


def _evaluate(problem, lam, n_iter):
    degree, active, energy = _kernels.evaluate(*problem.arrays_less_base, lam)
    return Ascent(lam, _mean_psi(degree * (lam + problem.base)), n_iter, degree, active, energy)


def _mean_psi(x):
    """Mean of x − 1 − log x; a degree of 0 (a start far off) makes it inf."""
    with np.errstate(divide="ignore"):
        return float(np.mean(x - 1.0 - np.log(x)))


def _checks_left(gap, last, tol):
    """How many more checks it takes if the gap goes on shrinking as it did since the last."""
    return np.inf if gap >= last else np.log(tol / gap) / np.log(gap / last) if last < np.inf else CHECKS_PER_NEWTON


def _blocks(indptr):
    """(bounds, lanes): the nodes cut into blocks of about equally many edges."""
    n = indptr.size - 1
    if n < SERIAL:
        return _one_block(n)
    bounds = np.searchsorted(indptr, np.linspace(0, indptr[-1], LANES * WAVES + 1))
    bounds[0], bounds[-1] = 0, n
    return bounds, LANES


def _one_block(n):
    return np.array([0, n]), 1


def _newton_step(problem, before, tol):
    """λ after one semismooth Newton step on the dual, or as it was if the step is no ascent.

    Hessian −H, H = diag(1/λ²) + ½ S_A S_Aᵀ over the edges A strictly between their bounds. The nodes that are not at their
    optimum, and their neighbours, move; if they are few, H is factorised, because far outliers that have only each other
    make it nearly singular: raising one λ and lowering the other changes no weight. For many, conjugate gradients do.
    """
    lam = before.lam + problem.base
    free = _kernels.free_edges(*problem.arrays_less_base, before.lam)
    gradient, diagonal = 1.0 / lam - before.degree, 1.0 / lam**2 + 0.5 * np.diff(free[0])
    x = before.degree * lam
    moving = np.abs(x - 1.0) > np.sqrt(0.1 * tol)
    moving = np.flatnonzero(moving | (_kernels.half_adjacency(*free, moving.astype(np.float64)) > 0.0))
    step = np.zeros(problem.n)
    if moving.size <= DIRECT:
        A = csr_matrix((np.full(free[1].size, 0.5), free[1], free[0]), shape=(problem.n, problem.n))[moving][:, moving]
        factor = splu((A + diags_array(diagonal[moving])).tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
        step[moving] = factor.solve(gradient[moving])
    else:
        step = _conjugate_gradients(free, diagonal, gradient)
    dual = _dual_value(problem, before)
    t = min(1.0, 0.9 / max(np.max(-step / lam), 1e-300))  # λ stays positive
    while t > 1e-3:
        trial = _evaluate(problem, before.lam + t * step, 0)
        rise = _dual_value(problem, trial) - dual
        if rise > 0.0 or (rise > -1e-12 * problem.n and trial.gap < before.gap):  # near the optimum a rise is lost in rounding
            return trial.lam
        t *= 0.5
    return before.lam


def _dual_value(problem, point):
    """D(λ) = P(w) − gap, but for constants; from sums that stay finite where a degree is 0."""
    return np.sum(np.log(point.lam + problem.base)) + float(np.sum(point.energy - point.degree * point.lam))


def _conjugate_gradients(free, diagonal, right, rounds=40, tol=1e-3):
    """Solve (diag + ½ A) x = right, A the adjacency of the free edges. np.sum, not dot: its order never changes."""
    x, residual = np.zeros_like(right), right.copy()
    z = residual / diagonal
    p, rz = z.copy(), np.sum(residual * z)
    stop = tol * tol * rz
    for _ in range(rounds):
        Hp = _kernels.half_adjacency(*free, p) + diagonal * p
        alpha = rz / np.sum(p * Hp)
        x += alpha * p
        residual -= alpha * Hp
        z = residual / diagonal
        rz, old = np.sum(residual * z), rz
        if rz <= stop:
            break
        p = z + (rz / old) * p
    return x
