"""What a solver takes and what it gives back.

`Problem` is the log model on a graph of allowed edges:

    minimise  Σₑ 2θzₑwₑ + wₑ² + c(wₑ − w⁰ₑ)²  −  Σᵢ log dᵢ     over 0 ≤ wₑ ≤ max_weight,   d = Sw + fixed,

`fixed` being what each node has of edges whose weight is not in question (0 unless parts of a graph were joined).

Substituting ŵ = √(1+c)·w leaves the same problem without the prior, with distances z − (c/θ)w⁰ and θ/√(1+c): solvers work on
that form, so none of them knows what a prior is.

Of an outlier whose nearest neighbour is at θz = 10⁸, λ is near 2·10⁸ and its weights near 10⁻⁸, the last digit of λ. So λ is
kept as base + lam, base = 2θz of the nearest neighbour for such nodes and 0 for all others, and `z_less_base` is less by what
that adds: (lamᵢ + lamⱼ)/2 − θ·z_less_base is the weight, with all its digits. Any base will do: a problem that begins where
another ended has that one's, in proportion to θ. Farther than θz = 10¹⁰ no node is: weights
below 10⁻¹⁰ are not told apart.
"""

import time
import warnings
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smoothgraph import _kernels
from smoothgraph.candidates import Candidates

FARTHEST = 1e10
SHARES = 64  # that sums are cut into, whatever the number of threads
FAR = 1e4  # 2θz to the nearest neighbour from which a node counts as a far outlier


@dataclass(frozen=True)
class Ascent:
    """A point of a dual ascent: λ (of the form without prior) less its base, the gap, the nodes' degrees and edges.

    `energy` is each node's half of Σₑ 2θzw + w².
    """

    lam: np.ndarray
    gap: float
    n_iter: int
    degree: np.ndarray
    active: np.ndarray
    energy: np.ndarray


class Status(Enum):
    """How a solve ended: CONVERGED within the tolerance, or at MAX_ITER rounds, or where rounding left no more to gain."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Problem:
    """The log model on allowed edges. `prior` has one weight per entry of `candidates.indices`, or is None."""

    candidates: Candidates
    theta: float
    max_weight: float = np.inf
    prior: np.ndarray | None = None
    prior_strength: float = 0.0
    fixed: np.ndarray | None = None
    z_hat: np.ndarray = field(init=False, repr=False)
    base: Any = field(default=None, repr=False)
    z_less_base: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        z = self.candidates.z
        if self.theta * self.candidates.farthest > FARTHEST:
            z = np.minimum(z, FARTHEST / self.theta)
        if self.prior is not None:
            z = z - (self.prior_strength / self.theta) * self.prior
        object.__setattr__(self, "z_hat", z)
        base = self._far() if self.base is None else self.base
        if base.any():
            z = z - (base[self.candidates.nodes] + base[self.candidates.indices]) / (2.0 * self.theta * self.shrink)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "z_less_base", z)

    def _far(self):
        """2θz of the nearest neighbour of far outliers, 0 of all others."""
        if self.theta * self.z_hat.max() <= FAR:
            return np.zeros(self.n)
        costs = 2.0 * self.theta * self.shrink * np.minimum.reduceat(self.z_hat, self.candidates.indptr[:-1])
        return np.where(costs > FAR, costs, 0.0).astype(np.float64)

    @property
    def n(self) -> int:
        return self.candidates.n

    @property
    def shrink(self) -> float:
        """w = ŵ · shrink, λ = λ̂ / shrink."""
        return 1.0 if self.prior is None else 1.0 / np.sqrt(1.0 + self.prior_strength)

    @property
    def given(self) -> np.ndarray:
        """`fixed` in the form without a prior."""
        if self.fixed is None:
            return np.zeros(self.n)
        return self.fixed if self.prior is None else self.fixed / self.shrink

    @property
    def arrays(self) -> tuple:
        """The form without a prior: allowed edges (CSR), squared distances, θ, upper bound."""
        csr = self.candidates.indptr, self.candidates.indices
        return *csr, self.z_hat, self.theta * self.shrink, self.max_weight / self.shrink

    @property
    def arrays_less_base(self) -> tuple:
        """The same with the distances that go with λ − base."""
        csr = self.candidates.indptr, self.candidates.indices
        return *csr, self.z_less_base, self.theta * self.shrink, self.max_weight / self.shrink

    @property
    def constant(self) -> float:
        """What the substitution takes from the objective."""
        if self.prior is None:
            return 0.0
        prior_energy = 0.5 * self.prior_strength * float(np.square(self.prior, dtype=np.float64).sum())
        return prior_energy - self.n * np.log(self.shrink)


@dataclass(frozen=True)
class Solution:
    """The optimum, and how well it is known.

    Attributes
    ----------
    weights : symmetric CSR matrix of the positive weights, before any scaling (δ = 1).
    dual : λ, one positive number per node; at the optimum one over the node's degree.
    objective, dual_objective : P(w) and D(λ); the optimum lies between them.
    gap : (P − D) / n for the log model. The mean squared error Σₑ(w − w*)²/n is at most this, since P is strongly convex.
        (P − D) / P for the ℓ2 model and those of Daitch.
    n_iter : sweeps (nodewise) or iterations (primal_dual), and Newton steps.
    status : Status.CONVERGED if gap ≤ tol (for the models of Daitch: or the KKT residual ≤ 10·tol), else Status.MAX_ITER.
    seconds : time in the solver.
    """

    weights: sp.csr_matrix
    dual: np.ndarray
    objective: float
    dual_objective: float
    gap: float
    n_iter: int
    status: Status
    seconds: float


def rows(arrays) -> tuple:
    """CSR arrays with the beginnings and the ends of the rows in place of `indptr`."""
    indptr, *others = arrays
    return indptr[:-1], indptr[1:], *others


def solution_at(point: Ascent, arrays, ratio, dual, objective, dual_objective, tol: float, start: float) -> Solution:
    """The Solution at a point: its positive weights, `ratio` times as large. Warns if the gap is larger than `tol`."""
    n = point.lam.size
    indptr, indices, w = _kernels.weighted_edges(*rows(arrays), point.lam, np.inf)
    if indptr[-1] < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    w *= ratio
    weights = sp.csr_matrix((w, indices, indptr), shape=(n, n))
    weights.sort_indices()
    status = Status.CONVERGED if point.gap <= tol else Status.MAX_ITER
    if status is not Status.CONVERGED:
        alone = int(np.count_nonzero(point.degree == 0.0))
        far = f" {alone} nodes have no edge yet: outliers far from all others? Remove or clip them." if alone else ""
        warnings.warn(
            f"The relative duality gap is {point.gap:.2e} after {point.n_iter} rounds, more than tol={tol:.2e}. "
            f"Raise max_iter, or tol.{far}",
            ConvergenceWarning,
            stacklevel=5,
        )
    seconds = time.perf_counter() - start
    return Solution(weights, dual, objective, dual_objective, point.gap, point.n_iter, status, seconds)
