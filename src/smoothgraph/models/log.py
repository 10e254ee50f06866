"""The log model (Kalofolias 2016; Kalofolias & Perraudin 2019).

    minimise  Σₑ 2θzₑwₑ + wₑ² + c(wₑ − w⁰ₑ)²  −  Σᵢ log dᵢ     over 0 ≤ wₑ ≤ max_weight,   d = Sw + fixed,

`fixed` being the weight that each node has of bridges (0 unless components were connected). It has no parameters of its own:
θ, α, β, `max_weight` and `prior` are the learner's.

Substituting ŵ = √(1+c)·w leaves the same problem without the prior, with distances z − (c/θ)w⁰ and θ/√(1+c): solvers work on
that form, so none of them knows what a prior is.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from smoothgraph._kernels import dual, groups
from smoothgraph._kernels.form import Form, form_of
from smoothgraph.edges import Edges, check_no_isolated
from smoothgraph.fit.by_theta import learn_by_theta
from smoothgraph.fit.state import Terms
from smoothgraph.fit.task import Learned, Task
from smoothgraph.parallel import Threads
from smoothgraph.solvers.nodewise import Nodewise
from smoothgraph.solvers.problem import less_offsets
from smoothgraph.theta import log_theta_at

FAR = 1e4  # 2θz to the nearest neighbour from which a node counts as a far outlier, and its λ is stored with an offset


class Log(BaseEstimator):
    """The log model: every node has an edge, and the number of neighbours follows θ."""

    name = "log"
    takes = ("locality", "connect", "proof", "theta", "alpha", "beta", "max_weight", "prior")
    learns, counts_copies = True, True
    recommended_locality, recommended_connect = 1.0, True  # what did best on the tasks of docs/results.md

    def check(self, metric, neighbors) -> None:
        """It can be combined with any metric and any search."""

    def given_theta(self, alpha: float | None, beta: float | None) -> float | None:
        """θ = 1/√(αβ), if both are given."""
        if (alpha is None) != (beta is None):
            raise ValueError("Give theta alone, or alpha and beta together, or none of them to have θ found for n_neighbors.")
        return None if alpha is None or beta is None else 1.0 / (float(np.sqrt(alpha)) * float(np.sqrt(beta)))

    def learn(self, task: Task) -> Learned:
        return learn_by_theta(self, task)

    def theta_at(self, first: np.ndarray, edge: np.ndarray) -> np.ndarray:
        return log_theta_at(first, edge)

    def problem(self, edges: Edges, theta: float, terms: Terms, fixed: np.ndarray | None) -> "LogProblem":
        prior = None if terms.prior is None else weights_at(terms.prior, edges)
        return LogProblem(edges, theta, terms.max_weight, prior, terms.prior_strength, fixed, terms.sizes)

    def solver(self, threads: Threads) -> Nodewise:
        return Nodewise(threads)

    def row_solver(self, problem: "LogProblem", lam: np.ndarray):
        return partial(new_rows if problem.sizes is None else new_rows_to_copies, upper=problem.upper)


@dataclass(frozen=True, eq=False)
class LogProblem:
    """The log model on allowed edges. `prior` has one weight per entry of `edges.indices`, or is None.

    `sizes` is the number of rows that each node stands for, or None. Equal rows have the same λ and, among themselves, weights
    of min(λ, max_weight): the problem over all rows is one over the distinct samples (`solvers/groups.py`). It has no prior.
    """

    edges: Edges
    theta: float
    max_weight: float | None = None
    prior: np.ndarray | None = None
    prior_strength: float = 0.0
    fixed: np.ndarray | None = None
    sizes: np.ndarray | None = None

    far_cost = FAR

    def __post_init__(self):
        if self.sizes is None or not (self.sizes > 1).all():
            check_no_isolated(self.edges)

    def solver(self, threads: Threads) -> Nodewise:
        return Nodewise(threads)

    @property
    def n(self) -> int:
        return self.edges.n

    @property
    def shrink(self) -> float:
        """w = ŵ · shrink, λ = λ̂ / shrink."""
        return 1.0 if self.prior is None else float(1.0 / np.sqrt(1.0 + self.prior_strength))

    @property
    def upper(self) -> float | None:
        """The largest ŵ."""
        return None if self.max_weight is None else self.max_weight / self.shrink

    @cached_property
    def given(self) -> np.ndarray:
        """`fixed` in the form without a prior."""
        if self.fixed is None:
            return np.zeros(self.n)
        return self.fixed if self.prior is None else self.fixed / self.shrink

    @cached_property
    def z_hat(self) -> np.ndarray:
        """The distances of the form without a prior."""
        z = self.edges.z
        return z if self.prior is None else z - (self.prior_strength / self.theta) * self.prior

    def form(self, z_offset: np.ndarray | None = None) -> Form:
        """What kernels take, without the prior, with the distances that go with λ − 2θ·z_offset."""
        edges, theta, z = self.edges, self.theta * self.shrink, self.z_hat
        if z_offset is not None and z_offset.any():
            z = less_offsets(z, np.repeat(z_offset, np.diff(edges.indptr)), z_offset[edges.indices])
        return form_of(edges.indptr, edges.indices, z, theta, self.upper)

    @cached_property
    def nearest_costs(self) -> np.ndarray:
        """2θz of each node's nearest neighbour, which is a copy if it has one."""
        if self.sizes is not None and not self.edges.n_edges:
            return np.zeros(self.n)
        nearest = np.minimum.reduceat(self.z_hat, self.edges.indptr[:-1]).astype(np.float64)
        nearest = nearest if self.sizes is None else np.where(self.sizes > 1, 0.0, nearest)
        return 2.0 * self.theta * self.shrink * nearest

    def far_offset(self) -> np.ndarray:
        """Offsets to begin with: the squared distance of the nearest neighbour of far outliers, 0 of all other nodes."""
        costs = self.nearest_costs
        return np.where(costs > FAR, costs / (2.0 * self.theta * self.shrink), 0.0)

    @property
    def constant(self) -> float:
        """What the substitution takes from the objective."""
        if self.prior is None:
            return 0.0
        prior_energy = 0.5 * self.prior_strength * float(np.square(self.prior, dtype=np.float64).sum())
        return prior_energy - self.n * np.log(self.shrink)


def weights_at(W: sp.csr_matrix, edges: Edges) -> np.ndarray:
    """The weight of a graph at each entry of the allowed edges."""
    return np.asarray(W[edges.nodes, edges.indices], dtype=np.float64).ravel()


def new_rows(a: np.ndarray, threads: Threads, upper: float | None = None):
    """λ and weights clip((λ − a)/2, 0, upper) of new nodes whose neighbours stay as they are: λ·Σⱼ wⱼ = 1."""
    lam, w = np.empty(len(a)), np.empty(a.shape)
    threads.rows(dual.new_rows, len(a), a, upper, lam, w, least=64)
    return lam, w


def new_rows_to_copies(a: np.ndarray, sizes: np.ndarray, threads: Threads, upper: float | None = None):
    """The same where the entry aⱼ stands for sizesⱼ equal samples, and wⱼ is the weight to each of them: λ·Σⱼ sizesⱼ·wⱼ = 1."""
    lam, w = np.empty(len(a)), np.empty(a.shape)
    threads.rows(groups.new_rows, len(a), a, sizes, np.inf if upper is None else upper, lam, w, least=64)
    return lam, w
