"""What the user asked for besides θ → the problem to solve on given allowed edges.

In: the model and its options, once. Out: for any allowed edges and θ the `Problem` or `L2Problem`, and the functions that solve
it. Locality is a change of distances, made here, so that no solver knows of it.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from smoothgraph.candidates import Candidates, stretched
from smoothgraph.solvers import l2, nodewise
from smoothgraph.solvers.l2 import L2Problem
from smoothgraph.solvers.problem import Ascent, Problem, Solution


@dataclass(frozen=True, eq=False)
class Joints:
    """Edges (i, j), i < j, that join parts of the graph, and their weights, which are not in question."""

    i: np.ndarray
    j: np.ndarray
    weights: np.ndarray

    def as_matrix(self, n: int) -> sp.csr_matrix:
        ends = np.concatenate([self.i, self.j]), np.concatenate([self.j, self.i])
        return sp.csr_matrix((np.tile(self.weights, 2), ends), shape=(n, n))

    def degrees(self, n: int) -> np.ndarray:
        """What each node has of them."""
        return np.bincount(self.i, self.weights, n) + np.bincount(self.j, self.weights, n)


NO_JOINTS = Joints(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))


@dataclass(frozen=True, eq=False)
class Recipe:
    """`stretch`: what locality makes of distances; `prior`: weights of the graph to stay near, in units of δ = 1."""

    model: str = "log"
    stretch: np.ndarray | None = None
    joints: Joints = NO_JOINTS
    max_weight: float = np.inf
    prior: sp.csr_matrix | None = None
    prior_strength: float = 0.0
    _last: dict = field(default_factory=dict, init=False, repr=False)  # the edges asked for last, and what became of them

    def problem(self, candidates: Candidates, theta: float, last: Problem | L2Problem | None = None) -> Problem | L2Problem:
        """The problem on these edges; one that begins where the `last` ended counts λ from where that did."""
        if self._last.get("given") is not candidates:
            self._last.update(given=candidates, counted=self.stretched(candidates))
        counted, fixed = self._last["counted"], None
        if self.joints.i.size:
            fixed = self.joints.degrees(candidates.n)
        if self.model == "l2":
            return L2Problem(counted, theta, fixed)
        prior = None if self.prior is None else _at_edges(self.prior, counted)
        base = None if last is None else last.base * (theta / last.theta)
        return Problem(counted, theta, self.max_weight, prior, self.prior_strength, fixed, base)

    def stretched(self, candidates: Candidates) -> Candidates:
        """The edges with the distances that locality makes of them."""
        return candidates if self.stretch is None else stretched(candidates, self.stretch)

    def with_joints(self, joints: Joints) -> "Recipe":
        other = replace(self, joints=joints)
        other._last.update(self._last)  # the edges are the same
        return other

    def mean_degree(self, point: Ascent) -> float:
        """Neighbours per node."""
        return float(point.active.mean()) + 2.0 * self.joints.i.size / point.active.size

    @property
    def ascend(self):
        """ascend(problem, tol, max_iter, lam, known, changed, scratch) → Ascent."""
        return l2.ascend if self.model == "l2" else nodewise.ascend

    def finish(self, problem, point: Ascent, tol: float, start: float) -> Solution:
        """The Solution at a point of the ascent, with the edges that join."""
        solution = (l2.finish if self.model == "l2" else nodewise.finish)(problem, point, tol, start)
        if not self.joints.i.size:
            return solution
        weights = sp.csr_matrix(solution.weights + self.joints.as_matrix(problem.n))
        weights.sort_indices()
        return replace(solution, weights=weights)


def _at_edges(prior: sp.csr_matrix, candidates: Candidates) -> np.ndarray:
    """The prior's weight at each entry of the allowed edges."""
    return np.asarray(prior[candidates.nodes, candidates.indices], dtype=np.float64).ravel()
