"""The models of Daitch, Kelner and Spielman (2009): each sample near the weighted mean of its neighbours.

    hard   minimise ‖LX‖²_F   over w ≥ 0, d ≥ 1;       soft   minimise ‖LX‖²_F + μ Σᵢ max(1 − dᵢ, 0)²   over w ≥ 0.

How many neighbours a node has is up to the model; `n_neighbors` only sets the length of the lists. The models need the samples
themselves, and say nothing of new ones.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from smoothgraph.distances import MATRICES
from smoothgraph.fit.task import Learned, Task
from smoothgraph.solvers import all_pairs, multipliers

MAX_ALL_PAIRS = 10_000  # samples up to which all pairs are looked at: that takes two minutes of one core


def _mu(mu, z_unit):
    """The price in units of the distances."""
    return None if mu is None else mu / z_unit


class Daitch(BaseEstimator):
    """Daitch's models.

    Parameters
    ----------
    kind : "hard", degrees of at least 1, or "soft", a price for degrees below that.
    mu : the price of the soft model; ten times the mean squared distance of allowed edges if None.
    projection : project the samples to so many features first, at random (the lists are made before). None takes them all.
    """

    takes = ()
    learns = True

    def __init__(self, kind: str = "hard", *, mu: float | None = None, projection: int | None = None):
        self.kind = kind
        self.mu = mu
        self.projection = projection

    @property
    def name(self) -> str:
        return self.kind

    def check(self, metric, neighbors) -> None:
        """It needs the samples themselves."""
        if self.kind not in ("hard", "soft"):
            raise ValueError(f"Daitch({self.kind!r}) is not known: use 'hard' or 'soft'.")
        if self.kind == "hard" and self.mu is not None:
            raise ValueError(f"mu={self.mu!r} does not apply to model='hard', only to soft: leave it out.")
        if self.mu is not None and not (isinstance(self.mu, Real) and 0.0 < self.mu < np.inf):
            raise ValueError(f"mu={self.mu!r} must be a positive, finite number.")
        whole = isinstance(self.projection, Integral) and not isinstance(self.projection, bool)
        if self.projection is not None and not (whole and self.projection >= 1):
            raise ValueError(f"projection={self.projection!r} must be a positive number of features.")
        if metric in MATRICES:
            raise ValueError(f"metric={metric!r} does not apply to model={self.name!r}, which needs the samples themselves.")

    def given_theta(self, alpha, beta) -> None:
        """There is no θ."""

    def learn(self, task: Task) -> Learned:
        """Solve on the allowed edges, and over all pairs if these are not too many."""
        X, n, found = task.distances.X, task.distances.n, task.found.by_rows()
        with task.progress.stage("edges") as say:
            allowed = found.edges(threads=task.threads)
            say(f"{allowed.n_edges} allowed edges")
        with task.progress.stage("solve") as say:
            if self.projection is not None:
                X = multipliers.project(X, self.projection, task.random_state)
            mu = None if self.kind == "hard" else _mu(self.mu, task.distances.z_unit) or multipliers.default_mu(X, allowed)
            if task.complete and n <= MAX_ALL_PAIRS:
                solution, n_incomplete = all_pairs.solve_over_all_pairs(
                    X, allowed, mu, task.tol, task.max_iter, threads=task.threads
                )
            else:
                solution, n_incomplete = multipliers.solve(X, allowed, mu, task.tol, task.max_iter), n
            say(f"gap {solution.gap:.1e}, {n - n_incomplete} nodes certified")
        return Learned(solution.weights, solution, n_incomplete=n_incomplete)
