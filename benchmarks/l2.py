"""The ℓ2 model to a relative gap of 1e-6: Newton's method on the dual against accelerated projected gradient, same threads."""

import time

import numpy as np
from numba import njit, prange
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigsh

from benchmarks import data
from smoothgraph.models import L2, L2Problem
from smoothgraph.parallel import Threads
from smoothgraph.reference import l2 as judge
from smoothgraph.solvers.newton import Newton
from smoothgraph.theta import theta_bounds

GAP, K, CHECK_EVERY = 1e-6, 10, 10


def run():
    yield measure("10,000 words", data.some("words", 10_000))
    yield measure("MNIST 60k", data.some("mnist"))


def measure(name, X):
    lists, solver = data.lists_of(X, 3 * K, "approximate"), Newton()
    bounds = theta_bounds(lists.distances, K, L2().theta_at)
    problem = L2Problem(lists.edges(threads=Threads()), float(np.sqrt(bounds.lower * bounds.upper)))
    point = solver.ascend(problem, GAP, 100)
    seconds = []  # of ours, one for every few iterations of theirs: both have the good and the bad moments of the machine
    theirs = {kind: time_reference(problem, kind, seconds) for kind in ("fista", "strongly convex")}
    best = min(theirs, key=lambda kind: theirs[kind][0])
    ours = float(np.median(seconds))
    return {
        "benchmark": f"l2 model to relative gap {GAP}, {name}, k={K}",
        "newton_seconds": ours,
        "newton_steps": point.n_iter,
        "degree": float(point.n_neighbors.mean()),
        "nodes_without_edge": int(np.count_nonzero(point.n_neighbors == 0)),
        **{f"{kind.replace(' ', '_')}_seconds": theirs[kind][0] for kind in theirs},
        **{f"{kind.replace(' ', '_')}_iterations": theirs[kind][1] for kind in theirs},
        "difference_of_objectives": abs(theirs[best][2] / solver.finish(problem, point, GAP, 0.0).objective - 1.0),
        "ratio": theirs["fista"][0] / ours,
        "ratio_to_the_better": theirs[best][0] / ours,
        "wanted": "ratio >= 50",
        "ok": theirs["fista"][0] / ours >= 50,
    }


def time_reference(problem, kind, ours, most=20_000):
    """Seconds of iterations alone until the gap, by the definitions of objective and dual, is reached.

    To `ours` go the seconds of our solver, timed in turns with it.
    """
    solver, edges, alpha = Newton(), problem.edges, problem.alpha
    upper = np.flatnonzero(edges.nodes < edges.indices)
    i, j, z = edges.nodes[upper], edges.indices[upper], edges.z[upper].astype(np.float64)
    start = time.perf_counter()
    scheme = Reference(edges, alpha, kind)
    seconds = time.perf_counter() - start
    scheme.iterate(1)  # compiles
    scheme = Reference(edges, alpha, kind)
    for iterations in range(CHECK_EVERY, most, CHECK_EVERY):
        start = time.perf_counter()
        solver.ascend(problem, GAP, 100)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        scheme.iterate(CHECK_EVERY)
        seconds += time.perf_counter() - start
        objective = judge.objective(scheme.w[upper], i, j, z, edges.n, alpha)
        if objective - best_dual(scheme, i, j, z, alpha) <= GAP * objective:
            return seconds, iterations, objective
    return seconds, iterations, objective


def best_dual(scheme, i, j, z, alpha):
    """D at λ = c − d: the largest over a few c around the threshold that the projection found."""
    degree = np.bincount(i, scheme.w[scheme.upper], scheme.n) + np.bincount(j, scheme.w[scheme.upper], scheme.n)
    used = scheme.w[scheme.upper] > 0
    levels = (2.0 * scheme.w[scheme.upper] + degree[i] + degree[j] + z / alpha)[used] / 2.0
    return max(judge.dual_objective(c - degree, i, j, z, alpha) for c in np.percentile(levels, [25, 50, 75]))


class Reference:
    """Projected gradient with Nesterov's momentum, on the weights: fista's, or the one for strongly convex functions."""

    def __init__(self, edges, alpha, kind):
        self.n, self.alpha, self.kind = edges.n, alpha, kind
        self.csr = edges.indptr, edges.indices, edges.z
        self.upper = np.flatnonzero(edges.nodes < edges.indices)
        ones = csr_matrix((np.ones(edges.indices.size), edges.indices, edges.indptr), shape=(self.n, self.n))
        signless = ones + csr_matrix((np.asarray(ones.sum(axis=1)).ravel(), (range(self.n), range(self.n))))
        largest = float(eigsh(signless, k=1, which="LA", return_eigenvectors=False, tol=1e-3)[0])
        self.step = 1.0 / (4.0 * alpha + 2.0 * alpha * 1.001 * largest)
        root = np.sqrt(4.0 * alpha * self.step)
        self.constant = (1.0 - root) / (1.0 + root)
        self.w = np.full(edges.indices.size, self.n / edges.indices.size)
        self.y, self.v, self.degree, self.t, self.tau = self.w.copy(), np.empty_like(self.w), np.empty(self.n), 1.0, 0.0

    def iterate(self, times):
        for _ in range(times):
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.t**2))
            momentum = (self.t - 1.0) / following if self.kind == "fista" else self.constant
            self.t = following
            self.tau = _iterate(*self.csr, self.alpha, self.step, momentum, self.w, self.y, self.v, self.degree, self.tau)


@njit(parallel=True, cache=True)
def _iterate(indptr, indices, z, alpha, step, momentum, w, y, v, degree, tau):
    n = degree.size
    for i in prange(n):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += y[e]
        degree[i] = total
    for i in prange(n):
        for e in range(indptr[i], indptr[i + 1]):
            v[e] = y[e] - step * (2.0 * z[e] + 4.0 * alpha * y[e] + 2.0 * alpha * (degree[i] + degree[indices[e]]))
    for _ in range(100):  # Newton's method for the threshold of the projection, from the last one
        total, count = 0.0, 0
        for e in prange(v.size):
            if v[e] > tau:
                total += v[e] - tau
                count += 1
        change = (total - n) / count if count > 0 else v.max() - tau - n / v.size
        tau += change
        if abs(total - n) <= 1e-12 * n:
            break
    for e in prange(v.size):
        new = max(v[e] - tau, 0.0)
        y[e] = new + momentum * (new - w[e])
        w[e] = new
    return tau
