"""Sweeps over the nodes: blocks that run side by side, live edges, what changed and what spreads from it."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from conftest import edges_of, relative_l1
from smoothgraph.edges import edges_of_matrix
from smoothgraph.models import LogProblem
from smoothgraph.parallel import Threads
from smoothgraph.solvers.nodewise import Nodewise
from smoothgraph.solvers.sweeps import LANES, SERIAL_NODES, WAVES, Memory, Sweeps, mean_psi


def sweeps_of(problem, threads=None):
    return Sweeps(problem, np.zeros(problem.n), Memory(), threads or Threads(1))


def test_nodes_that_move_at_the_same_time_do_not_rock_each_other(rng):
    n, length = 16 * LANES * WAVES, 8
    apart = n // length  # whole waves: the nodes of a chain i, i + apart, i + 2·apart, … all move at the same time
    i = np.arange(n - apart)
    Z = csr_matrix((rng.uniform(1.0, 30.0, i.size), (i, i + apart)), shape=(n, n))
    Z = Z + Z.T
    in_order = np.arange(n).reshape(length, apart).T.ravel()  # each chain by itself, one node after the other
    assert n > SERIAL_NODES
    assert gap_after(Z, 20) < 2 * gap_after(Z[in_order][:, in_order], 20)


def gap_after(Z, rounds):
    """The gap after so many sweeps of all nodes. With a gap of 0 asked for, no node rests."""
    sweeps, lam = sweeps_of(LogProblem(edges_of_matrix(Z), 1.0)), np.ones(Z.shape[0])
    sweeps.first_round(lam)
    assert sweeps.run(lam, 0.0, rounds - 1) == rounds - 1
    point = sweeps.evaluate(lam)
    x = point.degree * point.lam
    return np.mean((x - 1.0) ** 2 / (x + 1.0))  # near 1 this is x − 1 − log x


def test_mixed_nodes_are_known_after_edges_were_added(rng):
    """A node that has got a neighbour in a block beside its own, and does not count as mixed, would race with it."""
    n, shift, memory, threads = 3000, 2, Memory(), Threads(1)

    def mixed_by_definition(edges):
        own, other = edges.nodes >> shift, edges.indices >> shift
        mixed = np.zeros(n, bool)
        mixed[edges.nodes[(own != other) & (own % WAVES == other % WAVES)]] = True
        return mixed

    def mixed_by_memory(edges):
        return memory.mixed_rows(edges.indptr, LogProblem(edges, 1.0).form(), shift, threads).copy()

    edges = edges_of(rng.normal(size=(n, 2)), 5)
    before = mixed_by_memory(edges)
    np.testing.assert_array_equal(before, mixed_by_definition(edges))
    grown = edges.add_pairs(rng.integers(0, n // 2, 500), rng.integers(n // 2, n, 500), np.ones(500), threads=threads)
    now, mixed = mixed_by_memory(grown), mixed_by_definition(grown)
    assert np.any(mixed & ~before)
    assert np.all(now[mixed])
    assert np.count_nonzero(now & ~before) <= 1000


def test_a_change_at_few_nodes_that_spreads_to_many_is_solved_for(rng):
    """From the optimum, weight given to some nodes: sweeps begin over all edges and end over live ones, with no leap."""
    edges = edges_of(rng.normal(size=(6000, 5)), 10)
    theta, fixed, marks = 2.0 / edges.z.mean(), np.zeros(6000), np.zeros(6000, np.bool_)
    known = Nodewise().ascend(LogProblem(edges, theta), 1e-7, 1000)
    marks[::7] = True
    fixed[marks] = 0.3
    problem = LogProblem(edges, theta, fixed=fixed)
    reference = Nodewise().ascend(problem, 1e-12, 1000)
    sweeps, lam = sweeps_of(problem), known.lam_shifted.copy()
    assert not np.isfinite(sweeps.live_limit).any()
    sweeps.run(lam, 1e-7, 1000, marks)
    assert np.isfinite(sweeps.live_limit).all(), "live edges were never chosen"
    point = sweeps.evaluate_changes(known, marks, lam)
    assert point.gap <= 1e-7
    assert relative_l1(lam, reference.lam) < 1e-3
    solved = Nodewise().ascend(problem, 1e-7, 1000, known, marks)
    np.testing.assert_array_equal(solved.lam, lam)


@pytest.mark.parametrize("few", [True, False])
def test_what_is_evaluated_after_a_change_is_as_if_all_were(rng, few):
    edges = edges_of(rng.normal(size=(3000, 3)), 8)
    problem = LogProblem(edges, 1.0)
    sweeps, before = sweeps_of(problem), rng.uniform(0.0, 0.3, size=3000)
    known = sweeps.evaluate(before)
    lam, changed = before.copy(), np.zeros(3000, np.bool_)
    changed[rng.choice(3000, 20 if few else 1000, replace=False)] = True
    lam[changed] += rng.uniform(-0.1, 0.3, size=changed.sum())
    again, afresh = sweeps.evaluate_changes(known, changed, lam), sweeps_of(problem).evaluate(lam)
    np.testing.assert_array_equal(again.n_neighbors, afresh.n_neighbors)
    np.testing.assert_allclose(again.degree, afresh.degree, rtol=1e-14)
    np.testing.assert_allclose(again.energy, afresh.energy, rtol=1e-14, atol=1e-300)
    assert np.any(known.n_neighbors != again.n_neighbors)


def test_the_gap_is_the_mean_of_psi(rng):
    degree, lam, offset = rng.uniform(0.1, 3.0, size=(3, 1000))
    x = degree * (lam + offset)
    assert mean_psi(degree, lam, offset) == pytest.approx(np.mean(x - 1.0 - np.log(x)), rel=1e-13)
    assert mean_psi(degree, lam, offset, Threads(3)) == mean_psi(degree, lam, offset)
    degree[7] = 0.0
    assert mean_psi(degree, lam, offset) == np.inf
