"""A few nodes to their joint optimum at once, the others as they are: a primal-dual interior-point method.

In: a problem, a point, the nodes to move. Out: the shifted λ, and what it is counted from. Far outliers that have little but
each other make the dual nearly flat: raising one λ and lowering its neighbour's changes no weight, and how far that may go is
decided by edges without weight yet. Updates of one node creep along such a valley, and Newton's steps stop at each of its
corners. From the inside it has none:

    λᵢdᵢ = 1,   wₑμₑ = τ,   sₑνₑ = τ,   μₑ = qₑ + 2wₑ + νₑ − Σ λ of its moving ends,   w, μ, s, ν > 0,   τ → 0,

qₑ being 2θz less the λ of an end that does not move, and s = max_weight − w (inf, with ν = 0, where there is no such bound).
Eliminating all but λ leaves one symmetric positive definite system for every step, as sparse as the edges. Mehrotra's predictor
and corrector choose τ; a few tens of steps are common.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array, eye_array
from scipy.sparse.linalg import splu

from smoothgraph.solvers.problem import less_offsets
from smoothgraph.solvers.sweeps import mean_psi
from smoothgraph.solvers.work import Work

MAX_STEPS = 100
# What a step takes in any case, for every edge, and for every operation of its factorisation, in visits of an edge by a sweep.
STEP_VISITS, EDGE_VISITS, FLOP_VISITS = 1e6, 50.0, 0.1
STEP_SHARE = 0.95  # a step goes this share of the way to where a variable would become 0
FIRST_TAU = 100.0  # τ at the start
MAX_IDLE = 10  # steps in a row that do not even halve τ: rounding leaves no more to gain
BLOCKED_SHARE = 0.1  # after a step that went less than this share of its way, the second order is no help
LEAST_CUT = 0.1  # after a step that could not go its whole way, τ becomes this many times as large at the least


def move(problem, point, nodes: np.ndarray, tol: float, work: Work) -> tuple[np.ndarray, np.ndarray]:
    """(offset, shifted λ) with `nodes` at their joint optimum: the mean of their ψ(dλ) at most `tol`, if it gets there.

    λ of far nodes is counted anew after every step, so that it has all its digits wherever it goes.
    """
    upper, two_theta = np.inf if point.form.upper is None else point.form.upper, 2.0 * point.form.theta
    edges, given = _Edges(problem, point, nodes), problem.given[nodes]
    sizes = None if point.sizes is None else point.sizes[nodes]
    S, z_offset, is_far = edges.S, point.z_offset[nodes], point.z_offset[nodes] > 0.0
    q, x = edges.costs(z_offset), point.lam_shifted[nodes]
    at = _on_the_path(x, 0.5 * (S.T @ x - q), upper, FIRST_TAU)
    best, best_gap, a = (z_offset, x), np.inf, 0.0
    least, idle = np.inf, 0
    for _ in range(MAX_STEPS):
        step = _Step(edges, q, two_theta * z_offset, given, at)
        if step.failed:
            break
        work.add(STEP_VISITS + EDGE_VISITS * S.nnz + FLOP_VISITS * step.factor.nnz**2 / nodes.size)
        way = step.corrected(0.0 if a > 0.9 else LEAST_CUT, float(a > BLOCKED_SHARE))
        a = min(1.0, STEP_SHARE * step.longest(way))
        at = _Point(*(value + a * change for value, change in zip(at, way, strict=True)))
        if not np.isfinite(at.x).all():
            break
        if is_far.any():
            before, z_offset = z_offset, np.where(is_far, np.maximum(z_offset + at.x / two_theta, 0.0), 0.0)
            at = at._replace(x=at.x - two_theta * (z_offset - before))
            q = edges.costs(z_offset)
        degree = given + edges.sums(np.clip(0.5 * (S.T @ at.x - q), 0.0, upper))
        gap = mean_psi(degree, at.x, two_theta * z_offset, sizes=sizes)
        if gap < best_gap or best_gap == np.inf:  # rounding may leave a node without weight, and yet this is the way
            best, best_gap = (z_offset, at.x), gap
        tau = np.mean(at.w * at.mu)
        idle = 0 if tau < 0.5 * least else idle + 1
        least = min(tau, least)
        if gap <= tol or idle > MAX_IDLE:
            break
    all_offsets, lam = point.z_offset.copy(), point.lam_shifted.copy()
    all_offsets[nodes], lam[nodes] = best
    return all_offsets, lam


class _Point(NamedTuple):
    """Where it is, or a direction to go. x is the shifted λ; s is inf and ν 0 where weights have no upper bound."""

    x: np.ndarray
    w: np.ndarray
    mu: np.ndarray
    s: np.ndarray | float
    nu: np.ndarray | float


class _Edges:
    """The edges that touch `nodes`, each once: S (nodes × edges, the ends that move), and what they cost.

    A node may stand for several rows (`mass`). An edge then stands for all pairs of rows of its ends (`count`), and a node has
    an edge to itself, with both ends there, that stands for the pairs of its own rows.
    """

    def __init__(self, problem, point, nodes):
        form, place = point.form, np.full(point.form.n, -1)
        place[nodes] = np.arange(nodes.size)
        counts = form.end[nodes] - form.begin[nodes]
        row = np.repeat(np.arange(nodes.size), counts)
        entry = np.arange(row.size) + np.repeat(form.begin[nodes] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        other = form.indices[entry]
        once = (place[other] < 0) | (nodes[row] < other)
        row, other, z = row[once], other[once], problem.z_hat[entry[once]].astype(np.float64)
        self.mass: np.ndarray | float = 1.0
        self.count: np.ndarray | float = 1.0
        if point.sizes is not None:
            own = np.flatnonzero(point.sizes[nodes] > 1.0)
            m = point.sizes[nodes[own]]
            self.mass = point.sizes[nodes]
            self.count = np.concatenate([point.sizes[nodes[row]] * point.sizes[other], 0.5 * m * (m - 1.0)])
            row, other, z = np.append(row, own), np.append(other, nodes[own]), np.append(z, np.zeros(own.size))
        edge, moves = np.arange(row.size), place[other] >= 0
        ends = np.concatenate([row, place[other[moves]]]), np.concatenate([edge, edge[moves]])
        self.S = csr_matrix((np.ones(ends[0].size), ends), shape=(nodes.size, row.size))
        self.z, self.two_theta = z, 2.0 * form.theta
        self.row, self.place, self.moves = row, place[other], moves
        self.fixed_offset = point.z_offset[other]
        self.fixed_lam = np.where(moves, 0.0, point.lam_shifted[other])

    def sums(self, w):
        """What the weights w are to each node, or to one of its rows."""
        return self.S @ (self.count * w) / self.mass

    def costs(self, z_offset):
        """q: 2θz as it counts for the shifted λ of the ends that move, less the shifted λ of those that do not."""
        other_offset = np.where(self.moves, z_offset[self.place], self.fixed_offset)
        return self.two_theta * less_offsets(self.z, z_offset[self.row], other_offset) - self.fixed_lam


def _on_the_path(x, t, upper, tau):
    """The point at x with wμ = sν = τ and 2w − μ + ν = 2t."""
    if upper < np.inf:  # 2w − τ/w + τ/(upper − w) rises with w
        low, high = np.zeros(t.size), np.full(t.size, upper)
        for _ in range(60):
            w = 0.5 * (low + high)
            less = 2.0 * w - tau / w + tau / (upper - w) < 2.0 * t
            low, high = np.where(less, w, low), np.where(less, high, w)
        return _Point(x, w, tau / w, upper - w, tau / (upper - w))
    root = np.sqrt(t * t + 2.0 * tau)  # without cancellation
    large = 0.5 * (np.abs(t) + root)
    small = 0.5 * tau / large
    return _Point(x, np.where(t > 0.0, large, small), 2.0 * np.where(t > 0.0, small, large), np.inf, 0.0)


class _Step:
    """The Newton system at one point."""

    def __init__(self, edges, q, offset, given, at):
        self.S, self.edges, self.at, self.lam = edges.S, edges, at, offset + at.x
        self.bounded = np.ndim(at.s) > 0
        self.degree = given + edges.sums(at.w)
        self.off = q + 2.0 * at.w + at.nu - self.S.T @ at.x - at.mu  # 0 but for rounding
        self.stiff = at.mu + at.w * (2.0 + at.nu / at.s)
        self.scale = np.sqrt(self.lam / self.degree / edges.mass)
        B = diags_array(self.scale) @ self.S @ diags_array(np.sqrt(edges.count * at.w / self.stiff))
        self.H = (eye_array(self.lam.size) + B @ B.T).tocsc()
        try:
            self.factor = splu(self.H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
            self.failed = False
        except RuntimeError:  # singular to working precision: λ of very different sizes
            self.failed = True

    def corrected(self, least, second):
        """The direction that aims at a smaller τ and takes `second` times the second order of a step to τ = 0 into account."""
        at, ones = self.at, 1.0 - self.lam * self.degree
        first = self.direction(-at.w * at.mu, -at.s * at.nu if self.bounded else 0.0, ones)
        a = self.longest(first)
        tau = self.mean_product(first, 0.0)
        goal = tau * max((self.mean_product(first, a) / tau) ** 3, least)
        lower = goal - at.w * at.mu - second * first.w * first.mu
        upper = goal - at.s * at.nu - second * first.s * first.nu if self.bounded else 0.0
        return self.direction(lower, upper, ones - second * first.x * self.edges.sums(first.w))

    def mean_product(self, way, a):
        """The mean of wμ and sν after going so far."""
        _, w, mu, s, nu = (value + a * change for value, change in zip(self.at, way, strict=True))
        return 0.5 * (np.mean(w * mu) + np.mean(s * nu)) if self.bounded else np.mean(w * mu)

    def direction(self, lower, upper, ones):
        """Steps that change wμ by `lower`, sν by `upper` and λd by `ones`, to first order."""
        at = self.at
        rest = lower - at.w * (self.off + upper / at.s)
        right = self.scale * (self.edges.mass * ones / self.lam - self.S @ (self.edges.count * rest / self.stiff))
        y = self.factor.solve(right)
        y += self.factor.solve(right - self.H @ y)
        dx = self.scale * y
        ends = self.S.T @ dx
        dw = (rest + at.w * ends) / self.stiff
        dnu = (upper + at.nu * dw) / at.s
        return _Point(dx, dw, 2.0 * dw + dnu - ends + self.off, -dw if self.bounded else 0.0, dnu)

    def longest(self, way):
        """How far a step may go, at most 1, until something becomes 0."""
        pairs = [(way.x, self.lam), (way.w, self.at.w), (way.mu, self.at.mu)]
        pairs += [(way.s, self.at.s), (way.nu, self.at.nu)] if self.bounded else []
        return 1.0 / max(1.0, *(np.max(-step / value) for step, value in pairs))
