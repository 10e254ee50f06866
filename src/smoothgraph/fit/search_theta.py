"""θ for the wanted mean number of neighbours.

In: what is asked, a support, a θ to begin with and perhaps a point to start from. Out: the problem at the θ found, and its
optimum. Every solve starts from the λ of the one before; the steps are those of a secant on log degree against log θ.
"""

from typing import Any

import numpy as np

from smoothgraph.fit.state import Asked, Bridges, Support, mean_neighbors
from smoothgraph.solvers.problem import Point

MAX_SOLVES = 25
LARGEST_STEP = np.log(4.0)  # of log θ
FIRST_SLOPE, LOCAL_FIRST_SLOPE = -1.0, -1.3  # of log degree against log θ, before two are known; without and with locality
FLAT_SLOPE = -0.05  # a secant flatter than this says nothing about where the degree is
BRACKET_MARGIN = 0.05  # a proposal nearer than this share to an end of the bracket is replaced by its middle
NARROWEST_BRACKET = 1e-9  # in log θ: a degree that still jumps inside is not attainable


def search_theta(
    asked: Asked,
    support: Support,
    theta: float,
    *,
    bridges: Bridges,
    gap: float,
    degree_tol: float,
    start: Point | None = None,
    changed: np.ndarray | None = None,
) -> tuple[Any, Point]:
    """Solve to `gap`, at θ or at the θ near it for which the degree is as wanted, to a relative `degree_tol`.

    `start` is the optimum of a similar problem; with `changed`, that of the problem at θ but for the nodes marked.
    """
    tolerance = 0.0 if asked.degree is None else max(degree_tol * asked.degree, 1.0 / support.edges.n)
    log_theta, low, high = np.log(theta), -np.inf, np.inf  # the degree is too large at low, too small at high
    first_slope = FIRST_SLOPE if support.local_scale is None else LOCAL_FIRST_SLOPE
    seen: list[tuple[float, float]] = []
    best, best_miss = None, np.inf
    for _ in range(MAX_SOLVES):
        problem = asked.problem(support, theta, bridges)
        start = asked.solver.ascend(problem, gap, asked.max_iter, start, changed)
        changed = None
        if asked.degree is None:
            return problem, start
        reached = mean_neighbors(start, bridges)
        miss = reached - asked.degree
        if abs(miss) < best_miss:
            best, best_miss = (problem, start), abs(miss)
        if abs(miss) <= tolerance:
            break
        low, high = (log_theta, high) if miss > 0 else (low, log_theta)
        seen.append((log_theta, np.log(reached / asked.degree)))
        if high - low < NARROWEST_BRACKET:
            break
        log_theta = _next_log_theta(seen, low, high, first_slope)
        theta = float(np.exp(log_theta))
    return best  # type: ignore[return-value]


def _next_log_theta(seen, low, high, first_slope):
    """The secant's zero, kept inside the bracket and to a largest step; the bracket's middle where the secant is of no use."""
    log_theta, value = seen[-1]
    slope = first_slope
    if len(seen) > 1 and seen[-1][0] != seen[-2][0]:
        slope = (seen[-1][1] - seen[-2][1]) / (seen[-1][0] - seen[-2][0])
    step = -value / slope if slope < FLAT_SLOPE else np.sign(value) * LARGEST_STEP
    proposal = log_theta + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
    if np.isfinite(low) and np.isfinite(high):
        margin = BRACKET_MARGIN * (high - low)
        if not low + margin <= proposal <= high - margin:
            proposal = 0.5 * (low + high)
    return proposal
