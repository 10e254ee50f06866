"""The ℓ2 model (Hu, Dong): minimise ‖W∘Z‖₁,₁ + α‖W1‖² + α‖W‖²_F over symmetric W ≥ 0 whose entries sum to n.

In: allowed edges and θ = 1/(2α). Out: λ, and the weights w = max(0, (λᵢ+λⱼ)/2 − θz) it implies: the form that the log model
has, so that the same kernels, the same certificate and the same search for θ serve both. Divided by α, the dual is

    D(λ) = n + 2Σλᵢ − Σ(λᵢ − λ̄)² − 2Σₑ wₑ²,        ½∇D = 1 − (λ − λ̄) − d,

the multiplier of the sum having been eliminated: at the optimum dᵢ = 1 − (λᵢ − λ̄), which adds up to n. D is concave and
piecewise quadratic: λ of every node alone, and a sweep, find most of the right piece, and Newton's method with a line search
ends on it after a few steps. A node may end without an edge: there is no barrier.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from smoothgraph import _kernels
from smoothgraph.candidates import Candidates
from smoothgraph.solvers.problem import SHARES, Ascent, Solution, rows, solution_at

SAMPLE = 1000  # nodes that the level of λ is guessed from
RELAX = 0.85  # of its way to its optimum goes a node in the sweep before the first Newton step, since all move at once
CG_ROUNDS, CG_TOL = 60, 3e-2
ARMIJO = 1e-4


@dataclass(frozen=True, eq=False)
class L2Problem:
    """The ℓ2 model on allowed edges, θ = 1/(2α); `fixed` as in `Problem`."""

    candidates: Candidates
    theta: float
    fixed: np.ndarray | None = None
    base = 0.0
    shrink = 1.0

    @property
    def n(self) -> int:
        return self.candidates.n

    @property
    def given(self) -> np.ndarray:
        """What each node has of edges whose weight is not in question."""
        return np.zeros(self.n) if self.fixed is None else self.fixed

    @property
    def arrays(self) -> tuple:
        """What the kernels take: allowed edges (CSR), squared distances, θ, no upper bound."""
        return self.candidates.indptr, self.candidates.indices, self.candidates.z, self.theta, np.inf

    arrays_less_base = arrays  # the base is 0


def solve(problem: L2Problem, tol: float = 1e-6, max_iter: int = 1000, lam=None) -> Solution:
    """Newton steps until the relative gap is at most `tol`."""
    start = time.perf_counter()
    return finish(problem, ascend(problem, tol, max_iter, lam), tol, start)


def ascend(problem: L2Problem, tol: float, max_iter: int, lam=None, *, known=None, changed=None, scratch=None) -> Ascent:
    """Newton steps on λ; `known`, `changed` and `scratch` are for solvers that go node by node."""
    newton = _Newton(problem)
    point = None if lam is None else newton.evaluate(lam)
    if point is None or not 0.5 * problem.n <= point.degree.sum() <= 2.0 * problem.n:  # far off, as a λ of another θ may be
        point = newton.evaluate(newton.start())
    for n_iter in range(max_iter):
        if point.gap <= tol:
            break
        trial = newton.step(point)
        if trial is None:  # rounding leaves no ascent
            break
        point = replace(trial, n_iter=n_iter + 1)
    return point


def finish(problem: L2Problem, point: Ascent, tol: float, start: float) -> Solution:
    """The Solution at a point of the ascent, its weights scaled to add up to n; warns if the gap is larger than `tol`."""
    alpha = 0.5 / problem.theta
    primal, dual, ratio = _kernels.values_l2(point.lam, point.degree, point.energy, problem.given)
    return solution_at(point, problem.arrays, ratio, point.lam, alpha * primal, alpha * dual, tol, start)


def new_rows(a: np.ndarray, level: float):
    """λ and weights max(0, (λ − a)/2) of new nodes whose neighbours stay as they are: λ + Σⱼ wⱼ = level = 1 + λ̄."""
    order = np.sort(a, axis=1)
    m = np.arange(a.shape[1] + 1)
    sums = np.concatenate([np.zeros((a.shape[0], 1)), np.cumsum(order, axis=1)], axis=1)
    roots = (2.0 * level + sums) / (m + 2.0)
    following = np.concatenate([order, np.full((a.shape[0], 1), np.inf)], axis=1)
    lam = np.take_along_axis(roots, np.argmax(roots <= following, axis=1)[:, None], axis=1)
    return lam[:, 0], np.maximum(0.0, 0.5 * (lam - a))


class _Newton:
    """Newton steps of one problem, and where to begin them."""

    def __init__(self, problem):
        *self.allowed, self.theta, _ = problem.arrays
        self.n, self.given = problem.n, problem.given
        self.longest_row = problem.candidates.longest_row
        self.weighted = np.empty(self.n, np.int64), np.empty(self.n, np.int64), np.empty_like(self.allowed[1])

    def start(self):
        """λ of every node alone, and after a sweep."""
        lam, _ = self._alone(self._level(), slice(None))
        level = 1.0 + lam.mean()
        return _kernels.sweep_l2(*self.allowed, self.theta, self.given, level, RELAX, lam, self.longest_row)

    def evaluate(self, lam) -> Ascent:
        """The point at λ. Its edges with weight, and D, are kept for the step from it."""
        degree, energy = _kernels.evaluate_l2(*self.allowed, self.theta, self.given, lam, *self.weighted)
        primal, self.dual, _ = _kernels.values_l2(lam, degree, energy, self.given)
        active = (self.weighted[1] - self.weighted[0]).astype(np.int32)
        return Ascent(lam, (primal - self.dual) / primal, 0, degree, active, energy)

    def step(self, point):
        """The point after a Newton step from that evaluated last, shortened until D rises; None if it does not."""
        gradient = 1.0 - (point.lam - point.lam.mean()) - point.degree
        step = self._direction(point, gradient)
        dual, slope, t = self.dual, 2.0 * float(np.sum(gradient * step)), 1.0
        while t > 1e-8:
            trial = self.evaluate(point.lam + t * step)
            rise = self.dual - dual
            if rise >= ARMIJO * t * slope or (abs(rise) <= 1e-12 * abs(dual) and trial.gap < point.gap):
                return trial
            t *= 0.5
        return None

    def _direction(self, point, gradient):
        """(I + ½S_A S_Aᵀ − 11ᵀ/n)⁻¹·gradient, A being the edges with weight."""
        diagonal = 1.0 + 0.5 * point.active
        return _kernels.conjugate_gradients(*self.weighted, diagonal, gradient, 1.0, CG_ROUNDS, CG_TOL, SHARES)

    def _level(self):
        """1 + λ̄ where nodes alone, some of them at regular distances, have that mean: Newton's method, from above."""
        some, level = slice(None, None, max(1, self.n // SAMPLE)), 1.0
        for _ in range(100):
            lam, active = self._alone(level, some)
            excess = level - 1.0 - float(lam.mean())
            if 0.0 <= excess <= 0.01:
                break
            slope = max(1e-3, 1.0 - float(np.mean(1.0 / (1.0 + active))))
            level = 2.0 * level if excess < 0.0 else level - excess / slope
        return level

    def _alone(self, level, nodes):
        begin, end, _, z = rows(self.allowed)
        return _kernels.start_l2(begin[nodes], end[nodes], z, self.theta, self.given[nodes], level, self.longest_row)
