"""The ℓ2 model (Hu, Dong): minimise ‖W∘Z‖₁,₁ + α‖W1‖² + α‖W‖²_F over symmetric W ≥ 0 whose entries sum to n.

In: allowed edges and θ = 1/(2α). Out: λ, and the weights w = max(0, (λᵢ+λⱼ)/2 − θz) it implies: the form that the log model
has, so that the same kernels, the same certificate and the same search for θ serve both. Divided by α, the dual is

    D(λ) = n + 2Σλᵢ − Σ(λᵢ − λ̄)² − 2Σₑ wₑ²,        ½∇D = 1 − (λ − λ̄) − d,

the multiplier of the sum having been eliminated: at the optimum dᵢ = 1 − (λᵢ − λ̄), which adds up to n. D is concave and
piecewise quadratic, and Newton's method with a line search ends on the right piece after some ten steps. A node may end
without an edge: there is no barrier.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from smoothgraph import _kernels
from smoothgraph.candidates import Candidates
from smoothgraph.solvers.problem import Ascent, Solution, rows, solution_at

CG_ROUNDS, CG_TOL = 60, 1e-2
SHARES = 64  # that sums are cut into, whatever the number of threads
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


def ascend(problem: L2Problem, tol: float, max_iter: int, lam=None, restless=None, scratch=None) -> Ascent:
    """Newton steps on λ; `restless` and `scratch` are for solvers that go node by node."""
    point = _evaluate(problem, _start(problem, lam))
    for n_iter in range(max_iter):
        if point.gap <= tol:
            break
        trial = _step(problem, point)
        if trial is None:  # rounding leaves no ascent
            break
        point = replace(trial, n_iter=n_iter + 1)
    return point


def finish(problem: L2Problem, point: Ascent, tol: float, start: float) -> Solution:
    """The Solution at a point of the ascent, its weights scaled to add up to n; warns if the gap is larger than `tol`."""
    alpha = 0.5 / problem.theta
    objectives = alpha * _primal(point, problem.given), alpha * _dual(point)
    return solution_at(point, problem.arrays, _ratio(point, problem.given), point.lam, *objectives, tol, start)


def new_rows(a: np.ndarray, level: float):
    """λ and weights max(0, (λ − a)/2) of new nodes whose neighbours stay as they are: λ + Σⱼ wⱼ = level = 1 + λ̄."""
    order = np.sort(a, axis=1)
    m = np.arange(a.shape[1] + 1)
    sums = np.concatenate([np.zeros((a.shape[0], 1)), np.cumsum(order, axis=1)], axis=1)
    roots = (2.0 * level + sums) / (m + 2.0)
    following = np.concatenate([order, np.full((a.shape[0], 1), np.inf)], axis=1)
    lam = np.take_along_axis(roots, np.argmax(roots <= following, axis=1)[:, None], axis=1)
    return lam[:, 0], np.maximum(0.0, 0.5 * (lam - a))


def _start(problem, lam):
    """λ, or the same λ for all, raised or lowered as a whole until the weights add up to n, if they are far from that.

    A λ of another θ may leave no edge any weight, and Newton's method nothing to go by. The sum is a convex function of what
    is added: Newton's method from above comes near.
    """
    n = problem.n
    lam = np.zeros(n) if lam is None else lam
    total = float(_kernels.evaluate(*rows(problem.arrays), problem.given, lam)[0].sum())
    if 0.5 * n <= total <= 2.0 * n:
        return lam
    level = 1.0 + problem.theta * float(problem.candidates.z.max()) - float(lam.min())  # every edge has weight
    for _ in range(100):
        degree, active, _ = _kernels.evaluate(*rows(problem.arrays), problem.given, lam + level)
        total = float(degree.sum())
        if total <= 2.0 * n:
            break
        level -= (total - n) / float(active.sum())
    return lam + level


def _evaluate(problem, lam):
    degree, active, energy = _kernels.evaluate(*rows(problem.arrays), problem.given, lam)
    point = Ascent(lam, np.inf, 0, degree, active, energy)
    primal = _primal(point, problem.given)
    return replace(point, gap=(primal - _dual(point)) / primal)


def _squares(point):
    """Σₑ wₑ² + Σᵢ λᵢ·givenᵢ, from Σₑ 2θzw + w² = Σᵢ λᵢ(dᵢ − givenᵢ) − Σₑ wₑ²."""
    return float(np.sum(point.lam * point.degree) - point.energy.sum())


def _ratio(point, given):
    """What to multiply the weights by so that all add up to n."""
    total = float(np.sum(point.degree - given))
    return (point.lam.size - float(given.sum())) / total if total > 0.0 else np.inf


def _primal(point, given):
    """P/α at the weights, scaled to add up to n."""
    ratio, squares = _ratio(point, given), _squares(point) - float(np.sum(point.lam * given))
    linear = float(point.energy.sum()) - squares
    degree = given + ratio * (point.degree - given)
    return 2.0 * (ratio * linear + ratio**2 * squares) + float(np.sum(degree**2))


def _dual(point):
    return point.lam.size + 2.0 * point.lam.sum() - np.sum((point.lam - point.lam.mean()) ** 2) - 2.0 * _squares(point)


def _step(problem, point):
    """The point after a Newton step, as long as it has to be shortened for D to rise; None if it does not."""
    gradient = 1.0 - (point.lam - point.lam.mean()) - point.degree
    step = _newton_direction(problem, point, gradient)
    dual, slope, t = _dual(point), 2.0 * float(np.sum(gradient * step)), 1.0
    while t > 1e-8:
        trial = _evaluate(problem, point.lam + t * step)
        rise = _dual(trial) - dual
        if rise >= ARMIJO * t * slope or (abs(rise) <= 1e-12 * abs(dual) and trial.gap < point.gap):
            return trial
        t *= 0.5
    return None


def _newton_direction(problem, point, gradient):
    """(I + ½S_A S_Aᵀ − 11ᵀ/n)⁻¹·gradient, A being the edges with weight."""
    free = _kernels.weighted_edges(*rows(problem.arrays), point.lam, np.inf)[:2]
    diagonal = 1.0 + 0.5 * np.diff(free[0])
    return _kernels.conjugate_gradients(*free, diagonal, gradient, 1.0, CG_ROUNDS, CG_TOL, SHARES)
