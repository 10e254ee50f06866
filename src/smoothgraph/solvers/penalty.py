"""A degree penalty of the user's own: minimise Σₑ 2θzₑwₑ + wₑ² + Σᵢ φ(dᵢ) over w ≥ 0, for any convex φ.

In: allowed edges, θ, and φ as two compiled functions of one number. Out: a `Solution`. This is the node-wise solver without
what it knows of the logarithm: at the optimum w = max(0, (λᵢ+λⱼ)/2 − θz) with λᵢ = −φ′(dᵢ), and a node alone has to solve
Σⱼ max(0, (λ − aⱼ)/2) = d(λ), where d(λ), the inverse of −φ′, falls as λ grows. The functions are compiled into the sweep, so
that its loops call nothing; that takes some seconds in every process, for every φ.

The log model is φ(d) = −log d, d(λ) = 1/λ. To have it cost something to be a hub:

>>> import numpy as np
>>> from numba import njit
>>> from smoothgraph.candidates import from_lists
>>> from smoothgraph.neighbors import ExactBackend, find_neighbors
>>> from smoothgraph.samples import Samples
>>> from smoothgraph.solvers import penalty
>>> @njit
... def phi(d):
...     return -np.log(d) + d**2 if d > 0.0 else np.inf
>>> @njit
... def degree(lam):  # λ = 1/d − 2d
...     return 2.0 / (lam + np.sqrt(lam**2 + 8.0))
>>> X = np.random.default_rng(0).normal(size=(200, 2))
>>> edges = from_lists(find_neighbors(Samples(X), 12, ExactBackend()))
>>> solution = penalty.solve(edges, 4.0, phi, degree)
>>> str(solution.status), float(solution.weights.sum(axis=1).max()) < 1.0
('converged', True)
"""

import time

import numpy as np

from smoothgraph import _kernels
from smoothgraph.candidates import Candidates
from smoothgraph.solvers.problem import Ascent, Solution, rows, solution_at


def solve(candidates: Candidates, theta: float, phi, degree, tol: float = 1e-6, max_iter: int = 1000, lam=None) -> Solution:
    """Sweep over the nodes until the relative gap (P − D)/n is at most `tol`.

    Parameters
    ----------
    candidates : the allowed edges.
    theta : what distances are multiplied by.
    phi : compiled by `numba.njit`: the convex penalty of one degree d ≥ 0; inf where a degree may not be.
    degree : compiled by `numba.njit`: the d at which −φ′(d) = λ, a decreasing function of any real λ; inf where no d is large
        enough. It may be negative where φ goes on smoothly below 0: such a node has no edges.
    lam : a λ to start from; 1 for every node otherwise.
    """
    start = time.perf_counter()
    arrays = candidates.indptr, candidates.indices, candidates.z, float(theta)
    lam = np.ones(candidates.n) if lam is None else np.array(lam, np.float64)
    for n_iter in range(1, max_iter + 1):
        _kernels.penalty_sweep(*arrays, lam, degree)
        d, active, energy = _kernels.evaluate(*rows(arrays), np.inf, np.zeros(candidates.n), lam)
        penalties, least = _kernels.penalties(d, lam, phi, degree)
        point = Ascent(lam, float(np.mean(penalties - least + lam * d)), n_iter, d, active, energy)
        if point.gap <= tol:
            break
    objective = float(energy.sum() + penalties.sum())
    dual_objective = objective - candidates.n * point.gap
    return solution_at(point, (*arrays, np.inf), 1.0, lam, objective, dual_objective, tol, start)
