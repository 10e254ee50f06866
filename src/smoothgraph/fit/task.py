"""What the learner asks a model for, and what it gets back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.distances import Distances
from smoothgraph.neighbors.bounds import Bounds
from smoothgraph.neighbors.lists import Neighborhoods
from smoothgraph.parallel import Threads
from smoothgraph.progress import Progress
from smoothgraph.solvers.problem import Solution
from smoothgraph.theta import ThetaBounds


@dataclass(frozen=True, eq=False)
class Task:
    """The parameters of the learner that models look at, checked; see `GraphLearner` for what they mean.

    `distances` are of the distinct samples, and `first_rows` are their rows in the table, for messages. `found` are the
    neighbour lists, or the pairs that are allowed without a search; a model releases them when it has its edges. With `bounds`
    the certificate is to be proven over all pairs, whatever the lists. `theta` goes
    with the unit of the distances, and is None if it is to be found for `n_neighbors`. `max_weight` and `prior` are in units
    of the graph with δ = 1. `sizes` is the number of rows that each sample stands for, or None: then there is a sample for
    every row, or copies are merged.
    """

    distances: Distances
    first_rows: np.ndarray
    found: Neighborhoods
    n_neighbors: int
    width: int
    locality: float
    complete: bool
    connect: bool
    theta: float | None
    max_weight: float | None
    prior: sp.csr_matrix | None
    prior_strength: float
    tol: float
    max_iter: int
    random_state: Any
    threads: Threads
    progress: Progress
    sizes: np.ndarray | None = None
    bounds: Bounds | None = None

    @property
    def node_sizes(self) -> np.ndarray | None:
        """`sizes` by nodes."""
        return None if self.sizes is None else self.sizes[self.found.numbering.rows(np.arange(self.sizes.size))]


@dataclass(frozen=True, eq=False)
class Learned:
    """What a model made of it, for samples numbered by rows.

    `rows(Q, threads)` are the weights of new samples, or None. What a model does not have is None: nearest-neighbour graphs
    have no solution, no θ and no certificate. `own_weights` is the weight of each sample's copies among themselves, if samples
    stand for several rows.
    """

    weights: sp.csr_matrix
    solution: Solution | None = None
    theta: float | None = None
    theta_bounds: ThetaBounds | None = None
    n_incomplete: int | None = None
    bridges: np.ndarray | None = None
    rows: Callable[[Any, Threads], sp.csr_matrix] | None = None
    own_weights: np.ndarray | None = None
