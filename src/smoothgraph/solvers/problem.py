"""What a solver takes, where it is on its way, and what it gives back.

The weights of all models with a degree penalty are w = clip((λᵢ+λⱼ)/2 − θz, 0, max_weight), so that a solver looks for λ. A
model states its problem as a class with the attributes of `Problem`; a solver moves a `Point`; the end is a `Solution`.

λ of an outlier whose nearest neighbour is at θz = 10⁸ is near 2·10⁸ and its weights are near 10⁻⁸, the last digit of λ. So λ is
stored as 2θ·`z_offset` + `lam_shifted`, with an offset near the squared distance of the nearest neighbour for such nodes and 0
for all others; the distances in the `Form` are less by the offsets of both ends, so that a weight keeps all its digits. Offsets
are distances, because a difference of two nearly equal distances is exact, and because λ of such a node grows as θ does.
"""

import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smoothgraph._kernels import dual
from smoothgraph._kernels.form import Form
from smoothgraph.messages import warn
from smoothgraph.parallel import Threads

GROUPS = 64  # groups of nodes that sums are made over; it does not depend on the number of threads, so neither do the bits


class Problem(Protocol):
    """A model on allowed edges, as a solver sees it.

    `given` is the weight that each node has of bridges, which is not in question. `form(z_offset)` is what kernels take; it
    is of the problem without a prior, whose weights are 1/shrink times as large and whose λ is shrink times as large.
    """

    edges: Any
    theta: float
    shrink: float
    n: int
    given: np.ndarray

    def form(self, z_offset: np.ndarray | None = None) -> Form: ...


@dataclass(frozen=True, eq=False)
class Point:
    """Where a solver is: λ in its stored form, and what the weights at λ are.

    `energy` is each node's half of Σₑ 2θzw + w², with the distances of the form. `z_offset` is 0 for a model that has
    no offsets. `sizes` is the number of rows that each node stands for, or None: then nodes are rows. Degree, neighbours and
    energy are those of one row.
    """

    form: Form
    lam_shifted: np.ndarray
    z_offset: np.ndarray
    gap: float
    n_iter: int
    degree: np.ndarray
    n_neighbors: np.ndarray
    energy: np.ndarray
    sizes: np.ndarray | None = None

    @property
    def lam_offset(self) -> np.ndarray:
        """What `lam_shifted` is counted from."""
        return 2.0 * self.form.theta * self.z_offset

    @property
    def lam(self) -> np.ndarray:
        """λ as the mathematics has it (of the problem without a prior)."""
        return self.lam_shifted + self.lam_offset

    @property
    def mass(self) -> np.ndarray | float:
        """What a node counts for in sums over rows."""
        return 1.0 if self.sizes is None else self.sizes

    @property
    def n_rows(self) -> int:
        return self.form.n if self.sizes is None else int(self.sizes.sum())

    def on(self, problem: Problem) -> "Point":
        """The same λ on a problem with more edges; the degrees hold as long as none of these has weight."""
        return replace(self, form=problem.form(self.z_offset))


def less_offsets(z, offset, other_offset) -> np.ndarray:
    """Squared distances less the offsets of both ends of the edges.

    The larger of the two is taken off first. Where little is left of a distance, and this is where weights are, both
    differences are then exact.
    """
    return (z - np.maximum(offset, other_offset)) - np.minimum(offset, other_offset)


class Solver(Protocol):
    """An algorithm for one kind of problem. It keeps memory between solves, and no results."""

    name: str

    def ascend(self, problem: Any, tol: float, max_iter: int, start: Point | None = None, changed=None) -> Point:
        """A point with a gap of at most `tol`, if it can be reached.

        `start` is the optimum of a similar problem; with `changed`, it is that of this very problem but for the nodes marked.
        """
        ...

    def finish(self, problem: Any, point: Point, tol: float, started: float) -> "Solution":
        """The solution at a point. It warns if the gap is larger than `tol`. `started` is when the solve began."""
        ...

    def point_at(self, problem: Any, lam: np.ndarray) -> Point:
        """The point at a λ of the user's, to start from."""
        ...


class Status(Enum):
    """How a solve ended: CONVERGED within the tolerance, or at MAX_ITER rounds, or where rounding left no more to gain."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Solution:
    """The optimum, and how well it is known.

    Attributes
    ----------
    weights : symmetric CSR matrix of the positive weights, before any scaling (δ = 1).
    dual : λ, one positive number per node; at the optimum of the log model one over the node's degree.
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


def status_of(gap: float, tol: float, n_iter: int, *, what: str = "rounds", advice: str = "Raise max_iter, or tol.") -> Status:
    """CONVERGED if the gap is at most `tol`; else MAX_ITER, with a warning."""
    if gap <= tol:
        return Status.CONVERGED
    text = f"The relative duality gap is {gap:.2e} after {n_iter} {what}, more than tol={tol:.2e}. {advice}"
    warn(text, ConvergenceWarning)
    return Status.MAX_ITER


def solution_at(
    point: Point,
    ratio: float,
    values: tuple,
    tol: float,
    started: float,
    threads: Threads,
    advice: str = "Raise max_iter, or tol.",
) -> Solution:
    """The Solution at a point: its positive weights, `ratio` times as large; `values` are λ, P and D.

    `advice` goes with the warning that the gap is larger than `tol`.
    """
    n, (lam, objective, dual_objective) = point.lam_shifted.size, values
    indptr, indices, w = weighted_edges(point.form, point.lam_shifted, threads=threads)
    if indptr[-1] < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    w *= ratio
    weights = sp.csr_matrix((w, indices, indptr), shape=(n, n))
    weights.sort_indices()
    status = status_of(point.gap, tol, point.n_iter, advice=advice)
    return Solution(weights, lam, objective, dual_objective, point.gap, point.n_iter, status, time.perf_counter() - started)


def weighted_edges(form: Form, lam: np.ndarray, less_than: float = np.inf, *, threads: Threads):
    """The edges with a weight that is positive and less than `less_than`, as CSR arrays (indptr, indices, w)."""
    n = lam.size
    indptr = np.zeros(n + 1, np.int64)
    threads.rows(dual.count_weighted, n, form, lam, less_than, indptr[1:])
    np.cumsum(indptr, out=indptr)
    columns, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    threads.rows(dual.fill_weighted, n, form, lam, less_than, indptr, columns, weights)
    return indptr, columns, weights
