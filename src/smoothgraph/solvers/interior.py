"""A few nodes to their joint optimum at once, the others as they are: a primal-dual interior-point method.

In: a `Problem`, λ, the nodes to move. Out: their λ. Far outliers that have little but each other make the dual nearly flat:
raising one λ and lowering its neighbour's changes no weight, and how far that may go is decided by edges without weight yet.
Updates of one node creep along such a valley, and Newton's steps stop at each of its corners. From the inside it has none:

    λᵢdᵢ = 1,   wₑμₑ = τ,   sₑνₑ = τ,   μₑ = qₑ + 2wₑ + νₑ − Σ λ of its moving ends,   w, μ, s, ν > 0,   τ → 0,

qₑ being 2θz less the λ of an end that does not move, and s = max_weight − w (inf, with ν = 0, where there is no such bound).
Eliminating all but λ leaves one symmetric positive definite system for every step, as sparse as the edges. Mehrotra's predictor
and corrector choose τ; a few tens of steps are common.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array, eye_array
from scipy.sparse.linalg import splu

from smoothgraph import _kernels
from smoothgraph.solvers.problem import SHARES

STEPS = 100
SHORT = 0.95  # of the way to where a variable would become 0
START = 100.0  # τ at first
IDLE = 10  # steps after which τ is not even halved: rounding leaves no more
BLOCKED = 0.1  # after a step that could go no further than this share of its way the second order is no help
LEAST = 0.1  # times as large at least becomes τ after a step that could not go its whole way


def move(problem, lam: np.ndarray, nodes: np.ndarray, tol: float) -> np.ndarray:
    """λ − base with that of `nodes` at their joint optimum: the mean of their ψ(dλ) at most `tol`, if it gets there."""
    S, q = _edges(problem, lam, nodes)
    base, given, upper = problem.base[nodes], problem.given[nodes], problem.arrays_less_base[-1]
    at = _on_the_path(lam[nodes], 0.5 * (S.T @ lam[nodes] - q), upper, START)
    best, best_gap, a = at.x, np.inf, 0.0
    least, idle = np.inf, 0
    for _ in range(STEPS):
        step = _Step(S, q, base, given, at)
        if step.failed:
            break
        way = step.corrected(0.0 if a > 0.9 else LEAST, float(a > BLOCKED))
        a = min(1.0, SHORT * step.longest(way))
        at = _Point(*(value + a * change for value, change in zip(at, way, strict=True)))
        if not np.isfinite(at.x).all():
            break
        degree = given + S @ np.clip(0.5 * (S.T @ at.x - q), 0.0, upper)
        gap = _kernels.mean_psi(degree, at.x, base, SHARES)
        if gap < best_gap or best_gap == np.inf:  # rounding may leave a node without weight, and yet this is the way
            best, best_gap = at.x, gap
        tau = np.mean(at.w * at.mu)
        idle = 0 if tau < 0.5 * least else idle + 1
        least = min(tau, least)
        if gap <= tol or idle > IDLE:
            break
    moved = lam.copy()
    moved[nodes] = best
    return moved


class _Point(NamedTuple):
    """Where it is, or a direction to go. x is λ − base; s is inf and ν 0 where weights have no upper bound."""

    x: np.ndarray
    w: np.ndarray
    mu: np.ndarray
    s: np.ndarray | float
    nu: np.ndarray | float


def _edges(problem, lam, nodes):
    """S (nodes × edges, the ends that move) and q of the edges that touch `nodes`, each once."""
    indptr, indices, z, theta, _ = problem.arrays_less_base
    counts = indptr[nodes + 1] - indptr[nodes]
    row = np.repeat(np.arange(nodes.size), counts)
    entry = np.arange(row.size) + np.repeat(indptr[nodes] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    place = np.full(problem.n, -1)
    place[nodes] = np.arange(nodes.size)
    other = indices[entry]
    once = (place[other] < 0) | (nodes[row] < other)
    row, other, q = row[once], other[once], 2.0 * theta * z[entry[once]].astype(np.float64)
    moves = place[other] >= 0
    edge = np.arange(row.size)
    q -= np.where(moves, 0.0, lam[other])
    ends = np.concatenate([row, place[other[moves]]]), np.concatenate([edge, edge[moves]])
    return csr_matrix((np.ones(ends[0].size), ends), shape=(nodes.size, row.size)), q


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

    def __init__(self, S, q, base, given, at):
        self.S, self.at, self.lam = S, at, base + at.x
        self.bounded = np.ndim(at.s) > 0
        self.degree = given + S @ at.w
        self.off = q + 2.0 * at.w + at.nu - S.T @ at.x - at.mu  # 0 but for rounding
        self.stiff = at.mu + at.w * (2.0 + at.nu / at.s)
        self.scale = np.sqrt(self.lam / self.degree)
        B = diags_array(self.scale) @ S @ diags_array(np.sqrt(at.w / self.stiff))
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
        return self.direction(lower, upper, ones - second * first.x * (self.S @ first.w))

    def mean_product(self, way, a):
        """The mean of wμ and sν after going so far."""
        _, w, mu, s, nu = (value + a * change for value, change in zip(self.at, way, strict=True))
        return 0.5 * (np.mean(w * mu) + np.mean(s * nu)) if self.bounded else np.mean(w * mu)

    def direction(self, lower, upper, ones):
        """Steps that change wμ by `lower`, sν by `upper` and λd by `ones`, to first order."""
        at = self.at
        rest = lower - at.w * (self.off + upper / at.s)
        right = self.scale * (ones / self.lam - self.S @ (rest / self.stiff))
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
