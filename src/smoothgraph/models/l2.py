"""The ℓ2 model (Hu 2013, Dong 2016).

    minimise  ‖W∘Z‖₁,₁ + α‖W1‖² + α‖W‖²_F     over symmetric W ≥ 0 whose entries sum to n,      θ = 1/(2α).

The weights are w = max(0, (λᵢ+λⱼ)/2 − θz), the form that the log model has, so that the same kernels, the same certificate
and the same search for θ serve both. A node may end without an edge: there is no barrier. It has no parameters of its own.
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from sklearn.base import BaseEstimator

from smoothgraph._kernels.form import Form, form_of
from smoothgraph.edges import Edges
from smoothgraph.fit.by_theta import learn_by_theta
from smoothgraph.fit.state import Terms
from smoothgraph.fit.task import Learned, Task
from smoothgraph.parallel import Threads
from smoothgraph.solvers.newton import Newton

LARGEST_SHARE = 0.999  # of the weight of the whole graph that bridges may have: the rest must be left to optimise


class L2(BaseEstimator):
    """The ℓ2 model: the sum of all weights is n, and nodes may end without an edge."""

    name = "l2"
    takes = ("locality", "connect", "proof", "theta", "alpha")
    learns = True

    def check(self, metric, neighbors) -> None:
        """It can be combined with any metric and any search."""

    def given_theta(self, alpha: float | None, beta: float | None) -> float | None:
        """θ = 1/(2α), if α is given."""
        return None if alpha is None else 0.5 / alpha

    def learn(self, task: Task) -> Learned:
        return learn_by_theta(self, task)

    def theta_at(self, first: np.ndarray, edge: np.ndarray) -> np.ndarray:
        """A node alone has weights that add up to 1: w = max(0, λ − θz), λ = (1 + θb_k)/k, so that θ = 1/(k·e − b_k)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return 1.0 / (edge * np.sum(1.0 - first / edge[:, None], axis=1))

    def problem(self, edges: Edges, theta: float, terms: Terms, fixed: np.ndarray | None) -> "L2Problem":
        if fixed is not None and not float(fixed.sum()) < LARGEST_SHARE * edges.n:
            raise ValueError(
                f"The bridges that connect the graph would have a weight of {float(fixed.sum()):.4g}, and all edges of the ℓ2 "
                f"model together have {edges.n}: ask for more neighbours (a smaller θ), or use connect=False or model='log'."
            )
        return L2Problem(edges, theta, fixed)

    def solver(self, threads: Threads) -> Newton:
        return Newton(threads)

    def row_solver(self, problem: "L2Problem", lam: np.ndarray):
        return partial(new_rows, level=1.0 + float(lam.mean()))


@dataclass(frozen=True, eq=False)
class L2Problem:
    """The ℓ2 model on allowed edges; `fixed` is the weight that each node has of bridges."""

    edges: Edges
    theta: float
    fixed: np.ndarray | None = None
    shrink = 1.0  # there is no prior

    def solver(self, threads: Threads) -> Newton:
        return Newton(threads)

    @property
    def n(self) -> int:
        return self.edges.n

    @property
    def alpha(self) -> float:
        return 0.5 / self.theta

    @cached_property
    def given(self) -> np.ndarray:
        return np.zeros(self.n) if self.fixed is None else self.fixed

    def form(self, z_offset: np.ndarray | None = None) -> Form:
        """What kernels take. λ needs no offset: it is of the size of the degrees."""
        return form_of(self.edges.indptr, self.edges.indices, self.edges.z, self.theta)


def new_rows(a: np.ndarray, threads: Threads, level: float):
    """λ and weights max(0, (λ − a)/2) of new nodes whose neighbours stay as they are: λ + Σⱼ wⱼ = level = 1 + λ̄."""
    order = np.sort(a, axis=1)
    m = np.arange(a.shape[1] + 1)
    sums = np.concatenate([np.zeros((a.shape[0], 1)), np.cumsum(order, axis=1)], axis=1)
    roots = (2.0 * level + sums) / (m + 2.0)
    following = np.concatenate([order, np.full((a.shape[0], 1), np.inf)], axis=1)
    lam = np.take_along_axis(roots, np.argmax(roots <= following, axis=1)[:, None], axis=1)
    return lam[:, 0], np.maximum(0.0, 0.5 * (lam - a))
