"""What the user asked for besides θ → the problem to solve on given allowed edges.

In: the model and its options, once. Out: for any allowed edges and θ the `Problem` or `L2Problem`, and the functions that solve
it. Locality and joined parts are changes of distances, made here, so that no solver knows of them.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from smoothgraph.candidates import Candidates, stretched
from smoothgraph.solvers import l2, nodewise
from smoothgraph.solvers.l2 import L2Problem
from smoothgraph.solvers.problem import Problem


@dataclass(frozen=True, eq=False)
class Joints:
    """Pairs (i, j) that join parts of the graph, and the distances they count with, however far apart they are."""

    i: np.ndarray
    j: np.ndarray
    z: np.ndarray


@dataclass(frozen=True, eq=False)
class Recipe:
    """`stretch`: what locality makes of distances; `prior`: weights of the graph to stay near, in units of δ = 1."""

    model: str = "log"
    stretch: np.ndarray | None = None
    joints: Joints | None = None
    max_weight: float = np.inf
    prior: sp.csr_matrix | None = None
    prior_strength: float = 0.0
    _last: dict = field(default_factory=dict, init=False, repr=False)  # the distances of the edges asked for last

    def problem(self, candidates: Candidates, theta: float) -> Problem | L2Problem:
        """The problem on these edges."""
        counted = self.counted(candidates)
        if self.model == "l2":
            return L2Problem(counted, theta)
        weights = None if self.prior is None else _at_edges(self.prior, candidates)
        return Problem(counted, theta, self.max_weight, weights, self.prior_strength)

    def counted(self, candidates: Candidates) -> Candidates:
        """The edges with the distances that the model is to see."""
        if self.stretch is None and self.joints is None:
            return candidates
        if self._last.get("given") is not candidates:
            counted = candidates if self.stretch is None else stretched(candidates, self.stretch)
            self._last.update(given=candidates, counted=counted if self.joints is None else _joined(counted, self.joints))
        return self._last["counted"]

    def with_joints(self, joints: Joints) -> "Recipe":
        return replace(self, joints=joints)

    @property
    def ascend(self):
        """ascend(problem, tol, max_iter, lam, restless, scratch) → Ascent."""
        return l2.ascend if self.model == "l2" else nodewise.ascend

    @property
    def finish(self):
        """finish(problem, point, tol, start) → Solution."""
        return l2.finish if self.model == "l2" else nodewise.finish


def _joined(candidates, joints):
    z = candidates.z.copy()
    for i, j, counted in zip(joints.i, joints.j, joints.z, strict=True):
        for a, b in ((i, j), (j, i)):
            row = slice(candidates.indptr[a], candidates.indptr[a + 1])
            z[row][candidates.indices[row] == b] = counted
    return replace(candidates, z=z)


def _at_edges(prior: sp.csr_matrix, candidates: Candidates) -> np.ndarray:
    """The prior's weight at each entry of the allowed edges."""
    return np.asarray(prior[candidates.nodes, candidates.indices], dtype=np.float64).ravel()
