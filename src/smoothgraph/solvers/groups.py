"""Sweeps over distinct samples that stand for groups of equal rows: what `sweeps.py` is for nodes that are single rows.

In: a problem of the log model with `sizes`, the number of rows of each node, and λ, which is changed in place. Out: the number
of rounds made, and the `Point` at a λ: the λ of every row of a group, the degree and the number of neighbours of one row, and
the gap Σ m_g ψ(d_gλ_g)/n over all n rows.

The rows of a group are symmetric in a convex problem and have the same λ, so that this is the optimum over all rows, while a
group costs no more than one sample.
"""

import numpy as np

from smoothgraph._kernels import groups as kernels
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import Point, weighted_edges
from smoothgraph.solvers.sweeps import CREEPING_ROUNDS, OVER_RELAX, REST_SHARE, mean_psi
from smoothgraph.solvers.work import Work


class Groups:
    """Sweeps of one problem, and what its weights are at a λ. A sweep looks at all nodes and all allowed edges."""

    def __init__(self, problem, z_offset: np.ndarray, threads: Threads, work: Work):
        self.problem, self.z_offset, self.threads, self.work = problem, z_offset, threads, work
        self.form, self.sizes, self.given = problem.form(z_offset), problem.sizes.astype(np.float64), problem.given
        self.offset, self.longest_row = 2.0 * self.form.theta * z_offset, problem.edges.longest_row
        self.upper = np.inf if self.form.upper is None else self.form.upper

    def start(self) -> np.ndarray:
        """λ to begin with: of every group alone."""
        lam = np.empty(self.form.n)
        self.threads.rows(kernels.start, lam.size, self.form, self.sizes, self.offset, self.longest_row, lam)
        return lam

    def run(self, lam, tol, max_rounds, changed=None):
        """Update all groups, one after the other, until their shares of the gap leave less than `tol`, or creep.

        Returns the number of rounds. Which nodes `changed` is no help: there is no order that would make use of it.
        """
        arguments, rest = (self.form, self.sizes, self.upper, self.offset, self.given), REST_SHARE * tol * self.sizes.sum()
        most = min(max_rounds, CREEPING_ROUNDS)
        for rounds in range(1, most + 1):
            self.work.add(self.form.indices.size)
            relax = 1.0 if rounds == 1 else OVER_RELAX
            if kernels.sweep(*arguments, relax, self.longest_row, lam) <= rest:
                return rounds
        return max(most, 0)

    def evaluate(self, lam) -> Point:
        """The point at λ."""
        n = self.form.n
        degree, n_neighbors, energy = np.empty(n), np.empty(n, np.int64), np.empty(n)
        arguments = self.form, self.sizes, self.upper, self.given, lam, degree, n_neighbors, energy
        self.threads.rows(kernels.evaluate, n, *arguments)
        gap = mean_psi(degree, lam, self.offset, sizes=self.sizes)
        return Point(self.form, lam, self.z_offset, gap, 0, degree, n_neighbors, energy, self.sizes)

    def evaluate_changes(self, known, changed, lam) -> Point:
        """The same; all nodes are evaluated."""
        return self.evaluate(lam)

    def free_edges(self, lam):
        """The edges whose weight is strictly between its bounds, as CSR arrays (indptr, indices)."""
        return weighted_edges(self.form, lam, self.upper, threads=self.threads)[:2]
