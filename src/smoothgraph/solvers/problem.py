"""What a solver takes and what it gives back.

`Problem` is the log model on a graph of allowed edges:

    minimise  Σₑ 2θzₑwₑ + wₑ² + c(wₑ − w⁰ₑ)²  −  Σᵢ log dᵢ     over 0 ≤ wₑ ≤ max_weight,   d = Sw.

Substituting ŵ = √(1+c)·w leaves the same problem without the prior, with distances z − (c/θ)w⁰ and θ/√(1+c): solvers work on
that form (`z_hat`, `theta_hat`, `upper_hat`), so none of them knows what a prior is.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import scipy.sparse as sp

from smoothgraph.candidates import Candidates


class Status(Enum):
    """How a solve ended."""

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
    z_hat: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        z = self.candidates.z
        if self.prior is not None:
            z = z - (self.prior_strength / self.theta) * self.prior
        object.__setattr__(self, "z_hat", z)

    @property
    def n(self) -> int:
        return self.candidates.n

    @property
    def shrink(self) -> float:
        """w = ŵ · shrink, λ = λ̂ / shrink."""
        return 1.0 if self.prior is None else 1.0 / np.sqrt(1.0 + self.prior_strength)

    @property
    def arrays(self) -> tuple:
        """What the kernels take first: the allowed edges, distances, θ and upper bound of the form without a prior."""
        csr = self.candidates.indptr, self.candidates.indices, self.z_hat
        return *csr, self.theta * self.shrink, self.max_weight / self.shrink

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
    gap : (P − D) / n. The mean squared error Σₑ(w − w*)²/n is at most this, since P is strongly convex.
    n_iter : sweeps (nodewise) or iterations (primal_dual), and Newton steps.
    status : Status.CONVERGED if gap ≤ tol, else Status.MAX_ITER.
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
