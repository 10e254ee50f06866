"""Newton's linear systems: (diag + ½A − less·11ᵀ/n)x = right, A the 0/1 adjacency matrix of the edges with weight.

In: A as CSR rows (begin, end, indices), and vectors. Out: x, to a residual of `tol` times that at x = 0.
"""

import numpy as np

from smoothgraph._kernels import dual, newton
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import GROUPS

LEAST_CURVATURE = 1e-6  # share of pᵀ(diag + ½A)p that is left when the last term is taken off: without edges it may be 0
GROUP_ROWS = 4096  # nodes per thread from which threads pay for themselves here


def conjugate_gradients(rows, diagonal, right, less: float, rounds: int, tol: float, threads: Threads) -> np.ndarray:
    """Solve, preconditioned by the diagonal. Sums are made over a fixed number of groups of nodes."""
    n = right.size
    least = max(1, -(-GROUPS * GROUP_ROWS // max(n, 1)))  # groups per call
    x, residual, p, Hp = np.zeros(n), right.copy(), right / diagonal, np.empty(n)
    partial, sums = np.empty(GROUPS), np.empty(GROUPS)
    rz = dual.total(right * p)
    stop = tol * tol * rz
    for _ in range(rounds):
        threads.rows(newton.cg_product, GROUPS, *rows, diagonal, p, Hp, partial, sums, least=least)
        plain = dual.total(sums)
        whole = dual.total(partial)
        curvature = max(whole - less * plain * plain / n, LEAST_CURVATURE * whole)
        step, offset = rz / curvature, less * plain / n
        threads.rows(newton.cg_advance, GROUPS, step, offset, diagonal, p, Hp, x, residual, partial, least=least)
        last, rz = rz, dual.total(partial)
        if rz <= stop:
            break
        threads.rows(newton.cg_turn, n, rz / last, diagonal, residual, p)
    return x
