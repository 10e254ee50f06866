"""Sweeps over the nodes: each goes to the optimum of its own λ, the others as they are.

In: a problem of the log model in its form for kernels, and λ, which is changed in place. Out: the number of rounds made, and
the `Point` at a λ.

Few of the allowed edges have weight. A sweep looks only at *live* edges: those that can have weight while no λ rises by more
than a margin. No λ may pass this limit: a node that reaches it is not moved until live edges are chosen again.
"""

import numpy as np

from smoothgraph._kernels import dual
from smoothgraph._kernels.dual import Blocks
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import GROUPS, Point, weighted_edges
from smoothgraph.solvers.work import Work

LANES, WAVES = 16, 64  # a sweep is WAVES (a power of two) times LANES blocks side by side
SERIAL_NODES = 5_000  # a sweep of fewer nodes is one block: no two nodes move at the same time
THREADED_NODES = 80_000  # nodes from which two threads gain more than the barrier after each wave (40 µs) costs
# Shares of the nodes: a round begins with all edges of its nodes if they are at most the first share, and goes over to live
# edges when more than the second share is pending. FEW_NODES nodes count as few in any case.
FEW_SHARE, MANY_SHARE, FEW_NODES = 0.05, 0.2, 1000.0
OVER_RELAX = 1.25  # a node goes so many times the way to its optimum
LIVE_MARGIN = 0.2  # live edges are those that can have weight while no λ rises by more than this share
ROUGH_GAP_FACTOR, ROUGH_ROUNDS = (
    300,
    8,
)  # the first rounds sweep all nodes: to so many times the gap asked for, or so many rounds
REST_SHARE = 0.2  # of the gap asked for may be left to the nodes that are still pending
VISITS = 20  # visits per node on average before something else is tried
CREEPING_ROUNDS = 40  # rounds of few nodes before something else is tried
LIVE_GROUPS = 8  # groups that the live edges are chosen in; with many, huge pages of memory would be used at the end of each


class Memory:
    """Arrays that one solve leaves to the next."""

    def __init__(self):
        self._rows = self._nodes = self._mixed = None

    def live_rows(self, n, entries, dtype):
        """Room for the live edges: begin, end, columns, values."""
        if self._rows is None or self._rows[0].size != n or self._rows[2].size < entries or self._rows[3].dtype != dtype:
            room = 2 * entries  # the support may grow, and memory costs nothing until it is written to
            self._rows = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(room, np.int32), np.empty(room, dtype)
        return self._rows

    def mixed_rows(self, indptr, form, shift, threads):
        """Which nodes are mixed (see `Blocks`). Nodes with more edges than at the last call may be, and count as such."""
        if self._mixed is None or self._mixed[0].size != indptr.size:
            mixed = np.empty(form.n, np.bool_)
            threads.rows(dual.mixed_rows, form.n, form, WAVES, shift, mixed)
            self._mixed = indptr, mixed
        elif self._mixed[0] is not indptr:
            last, mixed = self._mixed
            self._mixed = indptr, mixed | (np.diff(indptr) != np.diff(last))
        return self._mixed[1]

    def of_nodes(self, n):
        """Three numbers for every node."""
        if self._nodes is None or self._nodes.shape[1] != n:
            self._nodes = np.empty((3, n))
        return self._nodes


class Sweeps:
    """Sweeps of one problem, and what its weights are at a λ."""

    def __init__(self, problem, z_offset: np.ndarray, memory: Memory, threads: Threads, work: Work | None = None):
        form = problem.form(z_offset)
        self.problem, self.n, self.given = problem, problem.n, problem.given
        self.z_offset, self.offset = z_offset, 2.0 * form.theta * z_offset
        self.threads, self.memory, self.all_edges, self.work = threads, memory, form, Work() if work is None else work
        begin, end, columns, values = memory.live_rows(self.n, form.indices.size, form.z.dtype)
        self.live_edges = form._replace(begin=begin, end=end, indices=columns, z=values)
        self.before, self.live_limit, self.no_limit = memory.of_nodes(self.n)
        self.live_limit[:], self.no_limit[:] = -np.inf, np.inf
        self.pending = np.zeros(self.n, np.bool_)
        self.shift = (-(-self.n // (LANES * WAVES)) - 1).bit_length()  # node i is in block i >> shift

    def start(self) -> np.ndarray:
        """λ to begin with: that of every node alone, after one sweep."""
        lam = np.empty(self.n)
        self.threads.rows(dual.start_dual, self.n, self.all_edges, self.offset, lam)
        self.first_round(lam)
        return lam

    def first_round(self, lam):
        """A sweep of all nodes over all allowed edges, after which λ is good enough to tell which of them are live."""
        self._look_at_all()
        self.before[:] = lam
        self._round(lam, np.arange(self.n, dtype=np.int32), np.inf, 1.0)

    def run(self, lam, tol, max_rounds, changed=None):
        """Update all nodes, or those `changed`, then the pending ones: they are far from their optimum, or a neighbour was.

        Most nodes are not pending after a few rounds. It gives up when that takes too many visits, when a few nodes creep, or
        after `max_rounds` rounds. Returns their number.
        """
        nodes = (np.arange(self.n) if changed is None else np.flatnonzero(changed)).astype(np.int32)
        visits, rounds, creeping, few = VISITS * self.n, 0, CREEPING_ROUNDS, max(FEW_SHARE * self.n, FEW_NODES)
        self.before[:] = lam
        while nodes.size:
            many = nodes.size > few
            if many:  # choosing costs as much as two visits of every node
                self._choose_live(lam)
            else:
                self._look_at_all()
            share, rough = np.inf, nodes.size == self.n
            while nodes.size and share > REST_SHARE * tol * self.n:
                if not many and nodes.size > max(few, MANY_SHARE * self.n):  # now choosing is worth it
                    break
                if visits <= 0 or creeping <= 0 or rounds >= max_rounds:
                    return rounds
                share = self._round(lam, nodes, np.inf if rough else tol)
                rounds += 1
                visits -= nodes.size
                creeping -= nodes.size <= few
                if rough:  # a few outliers may have a large share for long, hence the second condition
                    rough = share > ROUGH_GAP_FACTOR * tol * self.n and rounds < ROUGH_ROUNDS
                else:
                    nodes = self._take_pending()
            else:
                nodes = np.flatnonzero(lam >= self.limit).astype(np.int32)
        return rounds

    def evaluate(self, lam) -> Point:
        """The point at λ. Edges that are not live have no weight, if no λ is beyond its limit."""
        arrays = np.empty(self.n), np.empty(self.n, np.int32), np.empty(self.n)
        self.threads.rows(dual.evaluate, self.n, self._form_for(lam), self.given, lam, *arrays)
        return self._point(lam, *arrays)

    def evaluate_changes(self, known, changed, lam) -> Point:
        """The point at λ, from a `known` one that differs at few nodes: only these and their neighbours are evaluated."""
        nodes = np.flatnonzero((lam != known.lam_shifted) | changed)
        if nodes.size > FEW_SHARE * self.n:
            return self.evaluate(lam)
        marks = np.zeros(self.n, np.bool_)
        dual.mark_touched(nodes, self.all_edges, known.lam_shifted, lam, marks)
        touched, arrays = np.flatnonzero(marks), (known.degree.copy(), known.n_neighbors.copy(), known.energy.copy())
        self.threads.rows(dual.evaluate_at, touched.size, touched, self.all_edges, self.given, lam, *arrays)
        return self._point(lam, *arrays)

    def free_edges(self, lam):
        """The edges whose weight is strictly between its bounds, as CSR arrays (indptr, indices)."""
        upper = np.inf if self.all_edges.upper is None else self.all_edges.upper
        return weighted_edges(self._form_for(lam), lam, upper, threads=self.threads)[:2]

    def _point(self, lam, degree, n_neighbors, energy):
        gap = mean_psi(degree, lam, self.offset, self.threads)
        return Point(self.all_edges, lam, self.z_offset, gap, 0, degree, n_neighbors, energy)

    def _form_for(self, lam):
        return self.live_edges if (lam <= self.live_limit).all() else self.all_edges

    def _choose_live(self, lam):
        np.multiply(LIVE_MARGIN, self.offset + lam, out=self.live_limit)
        self.live_limit += lam
        self.limit, self.form, live = self.live_limit, self.live_edges, self.live_edges
        room = live.begin, live.end, live.indices, live.z
        self.threads.rows(dual.live_edges, LIVE_GROUPS, self.all_edges, self.limit, LIVE_GROUPS, *room, least=1)
        self.longest_row = int((live.end - live.begin).max())

    def _look_at_all(self):
        self.limit, self.form, self.longest_row = self.no_limit, self.all_edges, self.problem.edges.longest_row

    def _round(self, lam, nodes, quiet, relax=OVER_RELAX):
        """One sweep of `nodes`; returns the sum of their shares of the gap before it."""
        self.work.add(nodes.size * self.all_edges.indices.size / self.n)
        blocks = self._blocks(nodes)
        gap_shares = np.zeros(blocks.bounds.size - 1)
        lanes = gap_shares.size // blocks.waves
        arguments = (
            nodes,
            blocks,
            self.form,
            self.offset,
            self.given,
            self.limit,
            lam,
            self.before,
            self.pending,
            quiet,
            relax,
        )
        if nodes.size < THREADED_NODES:
            dual.sweep(0, blocks.waves, 0, lanes, *arguments, self.longest_row, gap_shares)
        else:
            self.threads.waves(dual.sweep, blocks.waves, lanes, *arguments, self.longest_row, gap_shares)
        self.threads.rows(dual.copy_at, nodes.size, nodes, lam, self.before)
        return dual.total(gap_shares)

    def _blocks(self, nodes):
        """The blocks that these nodes are swept in."""
        if nodes.size < SERIAL_NODES:
            return Blocks(np.array([0, nodes.size]), 1, 31, np.zeros(self.n, np.bool_))
        mixed = self.memory.mixed_rows(self.problem.edges.indptr, self.all_edges, self.shift, self.threads)
        return Blocks(np.searchsorted(nodes, np.arange(LANES * WAVES + 1) << self.shift), WAVES, self.shift, mixed)

    def _take_pending(self):
        nodes = np.flatnonzero(self.pending).astype(np.int32)
        self.pending[nodes] = False
        return nodes


def mean_psi(degree, lam_shifted, offset, threads: Threads | None = None, sizes: np.ndarray | None = None) -> float:
    """The mean of ψ(dλ) over the nodes: the duality gap per node; over rows, if nodes stand for `sizes` of them."""
    if sizes is not None:
        x = degree * (lam_shifted + offset)
        with np.errstate(divide="ignore"):  # a degree of 0 makes it inf
            return float(np.sum(sizes * (x - 1.0 - np.log(x))) / sizes.sum())
    sums = np.empty(GROUPS)
    if threads is None:
        dual.psi_sums(0, GROUPS, degree, lam_shifted, offset, sums)
    else:
        least = max(1, -(-GROUPS * 50_000 // max(lam_shifted.size, 1)))  # groups of 50,000 nodes are worth a thread
        threads.rows(dual.psi_sums, GROUPS, degree, lam_shifted, offset, sums, least=least)
    return dual.total(sums) / lam_shifted.size
