"""A degree penalty of the user's own: minimise Σₑ 2θzₑwₑ + wₑ² + Σᵢ φ(dᵢ) over w ≥ 0, for any convex φ.

At the optimum w = max(0, (λᵢ+λⱼ)/2 − θz) with λᵢ = −φ′(dᵢ). The log model is φ(d) = −log d, where −φ′ = λ at d = 1/λ. To have
it cost something to be a hub:

>>> import numpy as np
>>> from numba import njit
>>> from smoothgraph import GraphLearner
>>> from smoothgraph.models import Penalty
>>> @njit
... def phi(d):
...     return -np.log(d) + d**2 if d > 0.0 else np.inf
>>> @njit
... def degree(lam):  # λ = 1/d − 2d
...     root = np.sqrt(lam**2 + 8.0)
...     return 2.0 / (root + lam) if lam > 0.0 else 0.25 * (root - lam)  # no difference of nearly equal numbers
>>> X = np.random.default_rng(0).normal(size=(200, 2))
>>> learner = GraphLearner(5, model=Penalty(phi, degree)).fit(X)
>>> round(learner.n_neighbors_), float(learner.graph_.sum(axis=1).max()) < 1.0
(5, True)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from sklearn.base import BaseEstimator

from smoothgraph._kernels import schemes
from smoothgraph._kernels.form import Form, form_of
from smoothgraph.edges import Edges, check_no_isolated
from smoothgraph.fit.by_theta import learn_by_theta
from smoothgraph.fit.state import Terms
from smoothgraph.fit.task import Learned, Task
from smoothgraph.parallel import Threads
from smoothgraph.solvers.penalty import PenaltySweeps, check_degrees
from smoothgraph.theta import log_theta_at


class Penalty(BaseEstimator):
    """A model with a degree penalty of your own.

    Parameters
    ----------
    phi : compiled by `numba.njit`: the convex penalty of one degree d ≥ 0; inf where a degree may not be.
    degree : compiled by `numba.njit`: the d at which −φ′(d) = λ, a decreasing function of any real λ; inf where no d is large
        enough. It may be negative where φ goes on smoothly below 0: such a node has no edges. The proof of the optimum rests on
        it: a fit refuses a d that is visibly not where φ(d) + λd is smallest.
    """

    name = "penalty"
    takes = ("locality", "connect", "proof", "theta")
    learns = True

    def __init__(self, phi: Callable[[float], float], degree: Callable[[float], float]):
        self.phi = phi
        self.degree = degree

    def check(self, metric, neighbors) -> None:
        for name in ("phi", "degree"):
            if not hasattr(getattr(self, name), "py_func"):
                raise ValueError(f"{name} is not compiled: decorate it with numba.njit.")

    def given_theta(self, alpha, beta) -> None:
        """θ is given by its own name only."""

    def learn(self, task: Task) -> Learned:
        return learn_by_theta(self, task)

    def theta_at(self, first: np.ndarray, edge: np.ndarray) -> np.ndarray:
        """That of the log model, which is only where the search for θ begins."""
        return log_theta_at(first, edge)

    def problem(self, edges: Edges, theta: float, terms: Terms, fixed: np.ndarray | None) -> "PenaltyProblem":
        return PenaltyProblem(edges, theta, self.phi, self.degree, fixed)

    def solver(self, threads: Threads) -> PenaltySweeps:
        return PenaltySweeps(threads)

    def row_solver(self, problem: "PenaltyProblem", lam: np.ndarray):
        return partial(new_rows, phi=self.phi, degree=self.degree)


@dataclass(frozen=True, eq=False)
class PenaltyProblem:
    """The model on allowed edges; `fixed` is the weight that each node has of bridges."""

    edges: Edges
    theta: float
    phi: Callable[[float], float]
    degree_at: Callable[[float], float]
    fixed: np.ndarray | None = None
    shrink = 1.0  # there is no prior

    def __post_init__(self):
        if not np.diff(self.edges.indptr).all() and not np.isfinite(self.phi(0.0)):
            check_no_isolated(self.edges)

    def solver(self, threads: Threads) -> PenaltySweeps:
        return PenaltySweeps(threads)

    @property
    def n(self) -> int:
        return self.edges.n

    @cached_property
    def given(self) -> np.ndarray:
        return np.zeros(self.n) if self.fixed is None else self.fixed

    def form(self, z_offset: np.ndarray | None = None) -> Form:
        """What kernels take; λ has no offset."""
        return form_of(self.edges.indptr, self.edges.indices, self.edges.z, self.theta)


def new_rows(a: np.ndarray, threads: Threads, phi, degree):
    """λ and weights max(0, (λ − a)/2) of new nodes whose neighbours stay as they are: Σⱼ wⱼ = degree(λ)."""
    lam, w = schemes.penalty_rows(a, degree)
    check_degrees(lam, phi, degree)
    return lam, w
