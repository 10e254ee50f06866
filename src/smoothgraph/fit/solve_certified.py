"""The heart of a fit: solve, search θ for the wanted degree, certify, grow, until all of it holds.

In: what is asked, a support and a first θ. Out: the `State` it ended in. Every solve starts from the λ of the one before.
"""

import numpy as np

from smoothgraph._kernels import dual
from smoothgraph.fit.certify import MAX_EXTENSIONS, Growth, failing_nodes
from smoothgraph.fit.search_theta import search_theta
from smoothgraph.fit.state import Asked, Bridges, State, Support, mean_neighbors

MAX_ROUNDS = 20  # rounds of growing the support
RAISE, MAX_RAISES = 1.12, 12  # of θ, where too many pairs are found at once; and times that this is done
COARSE_GAP = 1e-4  # gap of the solves while θ and the support still change: the degree is then right to about 0.1 %
# Relative errors of the degree: 1 % is promised, and the last search ends below that. Before the support grows 1 % is enough.
DEGREE_TOL, ROUGH_DEGREE_TOL = 0.006, 0.01


def solve_certified(
    asked: Asked,
    support: Support,
    theta: float,
    *,
    bridges: Bridges | None = None,
    start: State | None = None,
    changed: np.ndarray | None = None,
    may_scan: bool = True,
) -> State:
    """Solve at θ, or at the θ that gives the degree asked for; if a complete support is asked for, on one that is large enough.

    `start` is where an earlier call ended: its λ is the optimum, but for the nodes marked `changed`, if those are given.
    Unless it `may_scan`, the support grows by longer lists and bounds only; nodes that need a scan stay without a certificate.
    """
    bridges = Bridges() if bridges is None else bridges
    gap, degree_tol = asked.tol, DEGREE_TOL
    if start is None and asked.tol < COARSE_GAP:
        gap, degree_tol = COARSE_GAP, ROUGH_DEGREE_TOL
    point = None if start is None else start.point
    problem, point, jump = search_theta(
        asked, support, theta, bridges=bridges, gap=gap, degree_tol=degree_tol, start=point, changed=changed
    )
    extensions, exhausted, raises, is_raised = 0, False, 0, False
    for _ in range(MAX_ROUNDS):
        failing = failing_nodes(support, point.form.theta, point.lam)
        _tell(asked, problem, point, bridges, failing)
        growth = None
        if asked.complete and failing.size and not exhausted:
            growth = Growth(asked, support, failing, point.form.theta, point.lam, extensions)
        waits = growth is not None and growth.is_scan and (gap > asked.tol or (growth.way == "scan" and not may_scan))
        if growth is not None and not waits:  # a scan waits for λ that are right
            grown = None if growth.way is None else growth.grow()
            if grown is None and growth.is_scan and raises < MAX_RAISES:
                problem, point = _at_larger_theta(asked, support, problem, point, bridges, gap)
                raises, is_raised = raises + 1, True
                continue
            exhausted, extensions = grown is None, extensions + (growth.way == "extend")
            before, support = support.edges.indptr, grown or support
            problem = asked.problem(support, problem.theta if asked.degree is not None else theta, bridges)
            if is_raised:
                changed, is_raised = None, False
            else:
                point = point.on(problem)
                changed = _newly_weighted(before, point, asked)
                if not changed.any():  # the solution stands, and may be certified now
                    continue
        elif gap <= asked.tol:
            break
        else:  # θ may move once more, so lists may be extended once more
            gap, changed, degree_tol, extensions = asked.tol, None, DEGREE_TOL, min(extensions, MAX_EXTENSIONS - 1)
        problem, point, jump = search_theta(
            asked, support, problem.theta, bridges=bridges, gap=gap, degree_tol=degree_tol, start=point, changed=changed
        )
    else:
        failing = failing_nodes(support, point.form.theta, point.lam)
    return State(problem, point, support, bridges, failing, jump)


def _at_larger_theta(asked, support, problem, point, bridges, gap):
    """The problem and its optimum at a larger θ, where fewer pairs have weight.

    While most of the pairs that have weight in the end are not in the support, λ is too large, and gives weight to far more.
    What is let in at a larger θ makes λ smaller; then there are fewer pairs to let in at the θ that is asked for.
    """
    problem = asked.problem(support, min(RAISE * problem.theta, asked.theta_range[1]), bridges)
    return problem, asked.solver.ascend(problem, gap, asked.max_iter, point)


def _newly_weighted(before, point, asked):
    """Which nodes have weight at an edge that was added since the rows were those of the indptr `before`."""
    is_new = np.empty(point.form.n, np.bool_)
    asked.threads.rows(dual.mark_new_weight, is_new.size, before, point.form, point.lam_shifted, is_new)
    return is_new


def _tell(asked, problem, point, bridges, failing):
    reached, certified = mean_neighbors(point, bridges), problem.n - failing.size
    asked.say(f"θ {problem.theta:.6g}, degree {reached:.3f}, gap {point.gap:.1e}, {certified} nodes certified")
