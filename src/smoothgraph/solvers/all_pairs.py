"""The models of Daitch over all pairs of samples: solve on some edges, look at all pairs, let in those that would gain weight.

In: samples X and allowed edges to begin with. Out: a `Solution` that is proven over all pairs. All pairs are looked at in
blocks, n²·d multiplications each time: this is for thousands of nodes, not for millions.
"""

import time

import numpy as np

from smoothgraph._kernels import daitch as kernels
from smoothgraph.edges import Edges
from smoothgraph.parallel import Threads, least_rows
from smoothgraph.solvers.multipliers import (
    RESIDUAL_FACTOR,
    SHIFTS,
    ZERO_OBJECTIVE,
    as_dense,
    check_parameters,
    descend,
    dual_objective,
    finish,
    first_point,
    mean_distances,
    one_way_edges,
    weights_matrix,
)
from smoothgraph.solvers.problem import Solution

NEW_PAIRS = 10  # pairs per node that may join the support in a round
MAX_ROUNDS = 100  # rounds of growing the support
FIRST_TOL = 1e-2  # tolerance of the first solve while the support grows; each following one has a tenth of it


def solve_over_all_pairs(
    X, allowed: Edges, mu: float | None = None, tol: float = 1e-6, max_iter: int = 1000, threads: Threads | None = None
) -> tuple[Solution, int]:
    """The optimum over all pairs of samples, and the number of nodes with violated pairs. It consumes the allowed edges.

    A pair outside the support is violated where 2(xᵢ − xⱼ)·(yᵢ − yⱼ) < λᵢ + λⱼ: its weight would rise. The worst such pairs of
    each node join the support until gap or residual are as `solve` wants them, both over all pairs: D is that of a (Y, λ) which
    every pair allows. Then the last number is 0, otherwise it counts nodes with a pair that is violated by more than
    10·`tol`·(4z + λᵢ + λⱼ). `max_iter` is for all solves together.
    """
    started, threads = time.perf_counter(), Threads() if threads is None else threads
    check_parameters(mu, tol, max_iter)
    X = as_dense(X)
    stiffness, inner_tol, n_iter, w, lam = np.inf if mu is None else float(mu), max(FIRST_TOL, tol), 0, None, None
    for _ in range(MAX_ROUNDS):
        edges = one_way_edges(X, allowed)
        point, rounds = descend(edges, stiffness, inner_tol, max_iter - n_iter, *first_point(edges, w, lam))
        n_iter += rounds
        violated, worst = _violated(X, point, RESIDUAL_FACTOR * tol, threads)
        dual = dual_objective(X, point.Y, point.lam, stiffness, _all_shares(X, point, threads))
        gap = (point.objective - dual) / max(point.objective, ZERO_OBJECTIVE * float(mean_distances(edges).sum()))
        point = point._replace(dual_objective=dual, gap=gap, residual=max(point.residual, worst))
        if point.converged(tol) or n_iter == max_iter:
            break
        n_before = allowed.n_edges
        grown = _add_violated(X, allowed, point, tol, threads)
        if inner_tol > tol or grown.n_edges == n_before:
            inner_tol *= 0.1
        if inner_tol < 1e-3 * tol:
            break
        allowed, w, lam = grown, weights_matrix(edges, point.w), point.lam
    return finish(edges, point, tol, n_iter, started), 0 if point.converged(tol) else violated


def _all_shares(X, point, threads):
    """`OneWay.shares` over all pairs."""
    shares = np.empty((len(X), SHIFTS.size))
    least = least_rows(X.size)  # a row is compared with all others
    threads.rows(kernels.feasible_shares_of_all, len(X), X, point.Y, point.lam, SHIFTS, shares, least=least)
    return shares


def _violations(X, point, rows):
    """λᵢ + λⱼ less the slopes, and 4z + λᵢ + λⱼ, for `rows` and all nodes."""
    excess, scale = np.empty((2, rows.stop - rows.start, len(X)))
    kernels.violations(rows.start, rows.stop, X, point.Y, point.lam, excess, scale)
    return excess, scale


def _add_violated(X, allowed, point, least, threads):
    """The allowed edges and, for each node, the worst of the pairs that are violated by more than `least`."""
    most = min(NEW_PAIRS, len(X))

    def worst(rows):
        excess, scale = _violations(X, point, rows)
        relative = np.divide(excess, scale, out=np.full_like(excess, -np.inf), where=scale > 0.0)
        for row in range(len(relative)):  # pairs that are allowed already are violated by what the solve left
            begin, end = allowed.indptr[rows.start + row : rows.start + row + 2]
            relative[row, allowed.indices[begin:end]] = -np.inf
        columns = np.argpartition(-relative, most - 1, axis=1)[:, :most]
        r, c = np.nonzero(np.take_along_axis(relative, columns, axis=1) > least)
        return r + rows.start, columns[r, c]

    i, j = (np.concatenate(parts) for parts in zip(*threads.map(worst, len(X)), strict=True))
    if not i.size:
        return allowed
    return allowed.add_pairs(i, j, np.sum((X[i] - X[j]) ** 2, axis=1).astype(allowed.z.dtype), threads=threads)


def _violated(X, point, least, threads):
    """(nodes with a pair that is violated by more than `least`, the largest violation), in units of 4z + λᵢ + λⱼ."""

    def largest(rows):
        excess, scale = _violations(X, point, rows)
        return np.divide(excess, scale, out=np.zeros_like(excess), where=scale > 0.0).max(axis=1)

    largest_of_all = np.concatenate(threads.map(largest, len(X)))
    return int(np.count_nonzero(largest_of_all > least)), float(largest_of_all.max())
