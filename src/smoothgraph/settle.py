"""The heart of the flow: solve, land on the wanted degree, certify, grow, until all of it holds.

In: a support, a first θ, the recipe for the problem and what the user wants. Out: the final support, θ and point of the dual
ascent, and the nodes that could not be certified. Every solve starts from the λ of the one before.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from smoothgraph import _kernels
from smoothgraph.certify import EXTENSIONS, Support, compares, failing_nodes, grow
from smoothgraph.recipe import Recipe
from smoothgraph.solvers.nodewise import Scratch
from smoothgraph.solvers.problem import Ascent

ROUNDS = 20  # of growing the support
LANDINGS = 25  # solves in search of θ
COARSE_GAP = 1e-4  # while θ and the support still change: the degree is then right to about 0.1 %
DEGREE_TOL, ROUGH_DEGREE = 0.006, 0.01  # relative; 0.01 is promised. Rough is enough before the support grows
REBASES = 3  # of λ of far outliers, in one solve
LARGEST_STEP = np.log(4.0)


@dataclass(frozen=True)
class Settled:
    """Where it ended. `failing` are the nodes without a certificate."""

    problem: Any
    point: Ascent
    support: Support
    failing: np.ndarray


def settle(
    support: Support,
    theta: float,
    degree: float | None,
    recipe: Recipe,
    *,
    start: Settled | None = None,
    changed: np.ndarray | None = None,
    samples,
    exact: bool,
    complete: bool = True,
    compare: bool = True,
    tol: float,
    max_iter: int,
    scratch: Scratch | None = None,
    say: Callable[[str], None],
) -> Settled:
    """Solve at θ, or at the θ that gives `degree` neighbours per node; with `complete`, on a support that is large enough.

    Without `compare` it is grown by longer lists only, and nodes that need to be compared with all samples stay as they are.
    `start` is where an earlier call ended: its λ is the optimum, but for the nodes marked `changed`, if those are given.
    """
    support = replace(support, extensions=0, exhausted=False)  # who needs more now may be others than in an earlier call
    gap = max(tol, COARSE_GAP) if start is None else tol
    scratch = scratch or Scratch()
    last = None if start is None else (start.problem, start.point)
    near = ROUGH_DEGREE if gap > tol else DEGREE_TOL
    problem, point = _land(support, theta, degree, near, recipe, last, changed, gap, max_iter, scratch)
    for _ in range(ROUNDS):
        theta, dual = problem.theta, point.lam + problem.base
        failing = failing_nodes(support, theta * problem.shrink, dual)
        reached, certified = recipe.mean_degree(point), problem.n - failing.size
        say(f"θ {theta:.6g}, degree {reached:.3f}, gap {point.gap:.1e}, {certified} nodes certified")
        growing = complete and failing.size and not support.exhausted
        asked = support, samples, failing, theta * problem.shrink, dual, exact
        if growing and (not compares(*asked) or (compare and gap <= tol)):  # a comparison is for λ that are right
            before = problem.candidates.indptr
            support = grow(*asked)
            problem = recipe.problem(support.candidates, theta, problem)
            changed = _kernels.weight_is_new(before, *problem.arrays_less_base, point.lam)
            if not changed.any():  # the solution stands, and may be certified now
                continue
        elif gap <= tol:
            break
        else:
            gap, changed, near = tol, None, DEGREE_TOL
            support = replace(support, extensions=min(support.extensions, EXTENSIONS - 1))  # θ may move once more
        problem, point = _land(support, theta, degree, near, recipe, (problem, point), changed, gap, max_iter, scratch)
    else:
        failing = failing_nodes(support, problem.theta * problem.shrink, point.lam + problem.base)
    reached = recipe.mean_degree(point)
    if degree is not None and abs(reached - degree) > max(0.01 * degree, 2.0 / problem.n):
        warnings.warn(
            f"Wanted {degree} neighbours per node, the nearest that any θ gives is {reached:.4g}. Equal distances, "
            "or few samples, leave no graph in between.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Settled(problem, point, support, failing)


def _land(support, theta, degree, near, recipe, last, changed, gap, max_iter, scratch):
    """Solve, at θ or at the θ near it for which the mean degree is as `near` as that: secant steps on log degree against log θ.

    `last` is a problem and its optimum, which is that at θ but for the nodes marked `changed`, if those are given.
    """
    tolerance = 0.0 if degree is None else max(near * degree, 1.0 / support.candidates.n)
    log_theta, low, high = np.log(theta), -np.inf, np.inf  # the degree is too large at low, too small at high
    seen, best, best_miss = [], None, np.inf
    for _ in range(LANDINGS):
        problem = recipe.problem(support.candidates, theta, None if last is None else last[0])
        known = None if changed is None else last[1]
        problem, point = _ascend(recipe, problem, gap, max_iter, _carried(last, problem), known, changed, scratch)
        last, changed = (problem, point), None
        if degree is None:
            return problem, point
        miss = recipe.mean_degree(point) - degree
        if abs(miss) < best_miss:
            best, best_miss = (problem, point), abs(miss)
        if abs(miss) <= tolerance:
            break
        low, high = (log_theta, high) if miss > 0 else (low, log_theta)
        seen.append((log_theta, np.log(recipe.mean_degree(point) / degree)))
        if high - low < 1e-9:
            break
        log_theta = _next_log_theta(seen, low, high)
        theta = float(np.exp(log_theta))
    return best


def _ascend(recipe, problem, gap, max_iter, lam, known, changed, scratch):
    """(problem, its optimum).

    Outliers that have outliers as neighbours may need more digits than λ − base has. Where the gap is missed, λ is counted anew
    from where it has come to, and has all of them again.
    """
    point = recipe.ascend(problem, gap, max_iter, lam, known=known, changed=changed, scratch=scratch)
    for _ in range(REBASES):
        if point.gap <= gap or not np.any(problem.base):
            break
        dual, far = point.lam + problem.base, problem.base > 0.0
        problem = replace(problem, base=np.where(far, dual, 0.0))
        point = recipe.ascend(problem, gap, max_iter, np.where(far, 0.0, dual), scratch=scratch)
    return problem, point


def _carried(last, problem):
    """λ − base to begin with: λ of far outliers goes with θ, that of others stays."""
    if last is None:
        return None
    before, point = last
    if not np.any(problem.base):
        return point.lam
    return np.where(problem.base > 0.0, point.lam * (problem.theta / before.theta), point.lam)


def _next_log_theta(seen, low, high):
    """The secant's zero, kept inside the bracket and to steps of at most 4×; its middle where the secant is of no use."""
    log_theta, value = seen[-1]
    slope = -1.0
    if len(seen) > 1 and seen[-1][0] != seen[-2][0]:
        slope = (seen[-1][1] - seen[-2][1]) / (seen[-1][0] - seen[-2][0])
    step = -value / slope if slope < -0.05 else np.sign(value) * LARGEST_STEP
    proposal = log_theta + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
    if np.isfinite(low) and np.isfinite(high):
        margin = 0.05 * (high - low)
        if not low + margin <= proposal <= high - margin:
            proposal = 0.5 * (low + high)
    return proposal
