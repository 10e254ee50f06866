"""A few nodes to their joint optimum at once, the others as they are: a primal-dual interior-point method.

In: a `Problem`, λ, the nodes to move. Out: their λ. Far outliers that have little but each other make the dual nearly flat:
raising one λ and lowering its neighbour's changes no weight, and how far that may go is decided by edges without weight yet.
Updates of one node creep along such a valley, and Newton's steps stop at each of its corners. From the inside it has none:

    λᵢdᵢ = 1,   wₑμₑ = τ,   μₑ = qₑ + 2wₑ − Σ λ of its moving ends,   w, μ > 0,   τ → 0,

qₑ being 2θz less the λ of an end that does not move. Eliminating w and μ leaves one symmetric positive definite system in λ
for every step, as sparse as the edges. Mehrotra's predictor and corrector choose τ; a few tens of steps are common.
`max_weight` is not in it: the weights of such nodes are small, and who calls it takes a result only if the dual is larger.
"""

import numpy as np
from scipy.sparse import csr_matrix, diags_array, eye_array
from scipy.sparse.linalg import splu

from smoothgraph.solvers.problem import mean_psi

STEPS = 100
SHORT = 0.95  # of the way to where a variable would become 0
START = 100.0  # τ at first
LEAST = 0.1  # times as large at least becomes τ after a step that could not go its whole way


def move(problem, lam: np.ndarray, nodes: np.ndarray, tol: float) -> np.ndarray:
    """λ − base with that of `nodes` at their joint optimum: the mean of their ψ(dλ) at most `tol`, if it gets there."""
    S, q = _edges(problem, lam, nodes)
    base, given, x = problem.base[nodes], problem.given[nodes], lam[nodes]
    t = 0.5 * (S.T @ x - q)
    w, mu = _on_the_path(t, START)
    best, best_gap, a = x, np.inf, 0.0
    for _ in range(STEPS):
        step = _Step(S, q, base + x, given, x, w, mu)
        if step.failed:
            break
        dx, dw, dmu = step.corrected(0.0 if a > 0.9 else LEAST)
        a = min(1.0, SHORT * step.longest(dx, dw, dmu))
        x, w, mu = x + a * dx, w + a * dw, mu + a * dmu
        gap = mean_psi((base + x) * (given + S @ np.maximum(0.5 * (S.T @ x - q), 0.0)))
        if gap < best_gap:
            best, best_gap = x, gap
        if gap <= tol:
            break
    moved = lam.copy()
    moved[nodes] = best
    return moved


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


def _on_the_path(t, tau):
    """w, μ > 0 with wμ = τ and 2w − μ = 2t, without cancellation."""
    root = np.sqrt(t * t + 2.0 * tau)
    large = 0.5 * (np.abs(t) + root)
    small = 0.5 * tau / large
    return np.where(t > 0.0, large, small), 2.0 * np.where(t > 0.0, small, large)


class _Step:
    """The Newton system at one point."""

    def __init__(self, S, q, lam, given, x, w, mu):
        self.S, self.lam, self.w, self.mu = S, lam, w, mu
        self.degree = given + S @ w
        self.off = q + 2.0 * w - S.T @ x - mu  # 0 but for rounding
        self.stiff = mu + 2.0 * w
        self.scale = np.sqrt(lam / self.degree)
        B = diags_array(self.scale) @ S @ diags_array(np.sqrt(w / self.stiff))
        self.H = (eye_array(lam.size) + B @ B.T).tocsc()
        try:
            self.factor = splu(self.H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
            self.failed = False
        except RuntimeError:  # singular to working precision: λ of very different sizes
            self.failed = True

    def corrected(self, least):
        """The direction that aims at a smaller τ and takes the second order of a step to τ = 0 into account."""
        products, tau = self.w * self.mu, np.mean(self.w * self.mu)
        dx, dw, dmu = self.direction(-products, 1.0 - self.lam * self.degree)
        a = self.longest(dx, dw, dmu)
        goal = tau * max((np.mean((self.w + a * dw) * (self.mu + a * dmu)) / tau) ** 3, least)
        return self.direction(goal - products - dw * dmu, 1.0 - self.lam * self.degree - dx * (self.S @ dw))

    def direction(self, products, ones):
        """Steps that change wμ by `products` and λd by `ones`, to first order."""
        rest = products - self.w * self.off
        right = self.scale * (ones / self.lam - self.S @ (rest / self.stiff))
        y = self.factor.solve(right)
        y += self.factor.solve(right - self.H @ y)
        dx = self.scale * y
        ends = self.S.T @ dx
        dw = (rest + self.w * ends) / self.stiff
        return dx, dw, 2.0 * dw - ends + self.off

    def longest(self, dx, dw, dmu):
        """How far a step may go, at most 1, until something becomes 0."""
        return 1.0 / max(1.0, *(np.max(-step / value) for step, value in ((dx, self.lam), (dw, self.w), (dmu, self.mu))))
