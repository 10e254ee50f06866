"""The two objects that the stages of a fit hand to each other: what is asked, and where we are."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.distances import Distances
from smoothgraph.edges import Edges
from smoothgraph.neighbors.bounds import Bounds
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import Point, Solver


@dataclass(frozen=True, eq=False)
class Bridges:
    """Edges (i, j), i < j, that connect components, and their weights, which are not in question."""

    i: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    j: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def count(self) -> int:
        return self.i.size

    def graph(self, n: int) -> sp.csr_matrix:
        ends = np.concatenate([self.i, self.j]), np.concatenate([self.j, self.i])
        return sp.csr_matrix((np.tile(self.weights, 2), ends), shape=(n, n))

    def degrees(self, n: int, sizes: np.ndarray | None = None) -> np.ndarray | None:
        """The weight that each node has of them; None if there are none. Between copies a bridge connects all with all."""
        if not self.count:
            return None
        to_i, to_j = (1.0, 1.0) if sizes is None else (sizes[self.j], sizes[self.i])
        return np.bincount(self.i, self.weights * to_i, n) + np.bincount(self.j, self.weights * to_j, n)

    def chosen(self, those: np.ndarray) -> "Bridges":
        return Bridges(self.i[those], self.j[those], self.weights[those])

    def added(self, i, j, weights) -> "Bridges":
        new = np.minimum(i, j), np.maximum(i, j), weights
        return Bridges(*(np.concatenate(both) for both in zip((self.i, self.j, self.weights), new, strict=True)))


@dataclass(frozen=True, eq=False)
class Terms:
    """What changes the problem besides θ, in units of the graph with δ = 1; `prior` is a graph of the nodes.

    `sizes` is the number of equal rows that each node stands for, or None: then there is a node for every row.
    """

    max_weight: float | None = None
    prior: sp.csr_matrix | None = None
    prior_strength: float = 0.0
    sizes: np.ndarray | None = None

    def n_rows(self, n: int) -> int:
        """The number of rows that n nodes stand for."""
        return n if self.sizes is None else int(self.sizes.sum())


@dataclass(frozen=True, eq=False)
class Asked:
    """What a fit is to reach.

    `is_exact` says that the lists of the support are exact. `degree` is the wanted mean number of neighbours; None keeps θ.
    `theta_range` is where a search for θ may go: no θ beyond it gives another graph.
    `complete` asks for a support that is proven to be large enough; for a `proof` nothing is taken from lists. `bounds` find
    all pairs of samples that are near; None if the samples have none. `say` takes a line about the progress.
    """

    model: Any
    solver: Solver
    distances: Distances
    terms: Terms = field(default_factory=Terms)
    is_exact: bool = False
    degree: float | None = None
    theta_range: tuple[float, float] = (1e-300, 1e300)
    complete: bool = True
    proof: bool = False
    bounds: Bounds | None = None
    tol: float = 1e-6
    max_iter: int = 1000
    threads: Threads = field(default_factory=Threads)
    say: Callable[[str], None] = lambda text: None

    def problem(self, support: "Support", theta: float, bridges: Bridges):
        """The model's problem on the support at θ."""
        return self.model.problem(support.edges, theta, self.terms, bridges.degrees(support.edges.n, self.terms.sizes))


@dataclass(frozen=True, eq=False)
class Support:
    """Allowed edges, and what is known of the pairs left out.

    `edges` have the distances that the problem counts: squared ones times local_scaleᵢ·local_scaleⱼ, which is None without
    locality. The reach of each node is not scaled. `width` is how long the lists were at first.

    Nodes marked `scanned` were compared with every sample: all pairs of one of them and any other node with a (scaled) squared
    distance below scan_limitsᵢ + scan_limitsⱼ are among the edges. Both are None before the first scan.
    """

    edges: Edges
    width: int
    local_scale: np.ndarray | None = None
    scanned: np.ndarray | None = None
    scan_limits: np.ndarray | None = None

    @classmethod
    def of(cls, edges: Edges, width: int, local_scale: np.ndarray | None = None, *, threads: Threads) -> "Support":
        """The support of edges that have true squared distances."""
        return cls(edges.scaled(local_scale, threads=threads), width, local_scale)

    def scaled(self, i, j, z):
        """Squared distances z of the pairs of nodes i and j as the problem counts them."""
        return z if self.local_scale is None else (z * (self.local_scale[i] * self.local_scale[j])).astype(z.dtype)

    def add_lists(self, nodes, indices, z, reach, *, threads: Threads) -> "Support":
        """The support after `Edges.add_lists` with true squared distances; its edges are consumed."""
        z = self.scaled(nodes[:, None], indices, z)
        return replace(self, edges=self.edges.add_lists(nodes, indices, z, reach, threads=threads))

    def add_pairs(self, i, j, z, *, threads: Threads) -> "Support":
        """The support after `Edges.add_pairs` with true squared distances; its edges are consumed."""
        return replace(self, edges=self.edges.add_pairs(i, j, self.scaled(i, j, z), threads=threads))


@dataclass(frozen=True)
class Jump:
    """The wanted number of neighbours is not attainable: the nearest that are, below and above (None where there is none)."""

    below: float | None
    above: float | None

    def __str__(self) -> str:
        if self.below is None:
            return f"the fewest that any θ gives are about {self.above:.4g}"
        if self.above is None:
            return f"the most that any θ gives are about {self.below:.4g}"
        return f"equal distances, or few samples, leave no graph between {self.below:.4g} and {self.above:.4g}"


@dataclass(frozen=True, eq=False)
class State:
    """Where a fit is: the problem, its optimum, the support it is on, and the nodes without a certificate.

    `jump` says which numbers of neighbours there are where the wanted one is not.
    """

    problem: Any
    point: Point
    support: Support
    bridges: Bridges
    failing: np.ndarray
    jump: Jump | None = None

    @property
    def theta(self) -> float:
        """θ of the problem without a prior: the one that goes with the point's λ."""
        return self.point.form.theta


def mean_neighbors(point: Point, bridges: Bridges) -> float:
    """Neighbours per node, bridges included; per row where nodes stand for several rows."""
    if point.sizes is not None:
        of_bridges = 2.0 * float(np.sum(point.sizes[bridges.i] * point.sizes[bridges.j]))
        return (float(np.sum(point.sizes * point.n_neighbors)) + of_bridges) / float(point.sizes.sum())
    return float(point.n_neighbors.mean()) + 2.0 * bridges.count / point.n_neighbors.size
