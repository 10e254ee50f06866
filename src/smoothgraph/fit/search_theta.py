"""θ for the wanted mean number of neighbours.

In: what is asked, a support, a θ to begin with and perhaps a point to start from. Out: the problem at the θ found, its optimum,
and which numbers of neighbours there are where the wanted one is not among them. Every solve starts from the λ of the one
before; the steps are those of a secant on log degree against log θ.

Equal distances make the number of neighbours jump: on a grid a node has four or eight. The search ends where θ is known to
NARROWEST_BRACKET and the wanted number still lies inside the jump, and at the ends of the range of θ in which a node alone
changes its neighbours: no θ beyond it gives fewer, or more.
"""

from typing import Any

import numpy as np

from smoothgraph.fit.state import Asked, Bridges, Jump, Support, mean_neighbors
from smoothgraph.solvers.problem import Point

MAX_SOLVES = 40  # far more than it takes: a bracket as wide as the largest step is bisected to the narrowest one in 22 solves
LARGEST_STEP = np.log(4.0)  # of log θ; it doubles with every step that changes nothing
FIRST_SLOPE, LOCAL_FIRST_SLOPE = -1.0, -1.3  # of log degree against log θ, before two are known; without and with locality
FLAT_SLOPE = -0.05  # a secant flatter than this says nothing about where the degree is
BRACKET_MARGIN = 0.05  # a proposal nearer than this share to an end of the bracket is replaced by its middle
NARROWEST_BRACKET = 1e-6  # in log θ: a degree that still jumps inside is not attainable


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
) -> tuple[Any, Point, Jump | None]:
    """Solve to `gap`, at θ or at the θ near it for which the degree is as wanted, to a relative `degree_tol`.

    `start` is the optimum of a similar problem; with `changed`, that of the problem at θ but for the nodes marked.
    """
    if asked.degree is None:
        problem = asked.problem(support, theta, bridges)
        return problem, asked.solver.ascend(problem, gap, asked.max_iter, start, changed), None
    tolerance = max(degree_tol * asked.degree, 1.0 / asked.terms.n_rows(support.edges.n))  # half an edge
    first_slope = FIRST_SLOPE if support.local_scale is None else LOCAL_FIRST_SLOPE
    tries, log_theta = _Tries(asked.degree, np.log(asked.theta_range), first_slope), np.log(theta)
    best, best_miss = None, np.inf
    for _ in range(MAX_SOLVES):
        problem = asked.problem(support, float(np.exp(log_theta)), bridges)
        start = asked.solver.ascend(problem, gap, asked.max_iter, start, changed)
        changed = None
        reached = mean_neighbors(start, bridges)
        if abs(reached - asked.degree) < best_miss:
            best, best_miss = (problem, start), abs(reached - asked.degree)
        tries.add(log_theta, reached)
        if best_miss <= tolerance or tries.jump is not None:
            break
        log_theta = tries.next_log_theta()
    return *best, None if best_miss <= tolerance else tries.jump  # type: ignore[misc]


class _Tries:
    """The θ tried so far. The degree is too large at `low` and too small at `high`, both log θ."""

    def __init__(self, degree: float, log_range, first_slope: float):
        self.degree, (self.least, self.most), self.first_slope = degree, log_range, first_slope
        self.low, self.high = -np.inf, np.inf
        self.above: float | None = None  # the nearest degrees seen on both sides of the wanted one
        self.below: float | None = None
        self.seen: list[tuple[float, float]] = []
        self.largest_step = LARGEST_STEP

    def add(self, log_theta, reached):
        if reached > self.degree:
            self.low, self.above = log_theta, reached if self.above is None else min(self.above, reached)
        else:
            self.high, self.below = log_theta, reached if self.below is None else max(self.below, reached)
        self.seen.append((log_theta, np.log(max(reached, 1e-300) / self.degree)))

    @property
    def jump(self) -> Jump | None:
        """What there is in place of the wanted degree, if it is known by now that no θ gives it."""
        ends = self.low >= self.most or self.high <= self.least
        return Jump(self.below, self.above) if ends or self.high - self.low < NARROWEST_BRACKET else None

    def next_log_theta(self):
        """The secant's zero, kept inside the bracket and to a largest step; the bracket's middle if the secant is no use."""
        log_theta, value = self.seen[-1]
        slope = self.first_slope
        if len(self.seen) > 1 and log_theta != self.seen[-2][0]:
            slope = (value - self.seen[-2][1]) / (log_theta - self.seen[-2][0])
        if slope < FLAT_SLOPE:
            step = np.clip(-value / slope, -LARGEST_STEP, LARGEST_STEP)
        else:
            step, self.largest_step = np.sign(value) * self.largest_step, 2.0 * self.largest_step
        proposal = min(max(log_theta + step, self.least), self.most)
        if np.isfinite(self.low) and np.isfinite(self.high):
            margin = BRACKET_MARGIN * (self.high - self.low)
            if not self.low + margin <= proposal <= self.high - margin:
                proposal = 0.5 * (self.low + self.high)
        return proposal
