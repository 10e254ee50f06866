"""Solve, search θ, certify, grow, until all of it holds: what `solve_certified` ends in."""

from dataclasses import replace

import numpy as np
import pytest

from conftest import asked_for, blobs, edges_of, relative_l1, support_of
from smoothgraph.distances import distances_of
from smoothgraph.fit import certify
from smoothgraph.fit.certify import Growth, failing_nodes
from smoothgraph.fit.solve_certified import solve_certified
from smoothgraph.fit.state import Bridges, Support, mean_neighbors
from smoothgraph.models import L2, LogProblem
from smoothgraph.neighbors.bounds import Bounds
from smoothgraph.parallel import Threads
from smoothgraph.solvers import solve


def weights_of(asked, state):
    return asked.solver.finish(state.problem, state.point, asked.tol, 0.0).weights


def test_it_ends_at_the_optimum_over_all_pairs(rng):
    X = blobs(400, 3, rng)
    asked, theta = asked_for(X, tol=1e-10), 0.5
    state = solve_certified(asked, support_of(X, 4), theta)
    assert state.theta == state.problem.theta == theta
    assert state.point.gap <= 1e-10
    assert not state.failing.size
    assert not failing_nodes(state.support, theta, state.point.lam).size
    reference = solve(LogProblem(edges_of(X, 399), theta), tol=1e-12).weights
    assert relative_l1(weights_of(asked, state), reference) < 1e-4


@pytest.mark.parametrize("model", [None, L2()])
@pytest.mark.parametrize("local", [False, True])
def test_it_reaches_the_degree_on_a_support_that_is_proven(rng, model, local):
    X = blobs(1000, 3, rng)
    scale = np.exp(0.3 * rng.normal(size=1000)) if local else None
    state = solve_certified(asked_for(X, model, degree=6), support_of(X, 8, scale), 1.0)
    assert mean_neighbors(state.point, state.bridges) == pytest.approx(6, rel=0.01)
    assert not state.failing.size
    assert state.point.gap <= 1e-6


def test_without_completion_the_failing_nodes_are_those_that_fail(rng):
    X = blobs(1000, 4, rng)
    support = support_of(X, 7)
    state = solve_certified(asked_for(X, degree=5, complete=False), support, 1.0)
    assert state.support is support
    assert state.failing.size > 0
    np.testing.assert_array_equal(state.failing, failing_nodes(support, state.theta, state.point.lam))
    assert not solve_certified(asked_for(X, degree=5), support, 1.0).failing.size


def test_unless_it_may_scan_the_support_grows_by_longer_lists_only(rng, monkeypatch):
    X = blobs(1000, 3, rng)
    asked = asked_for(X, degree=3, is_exact=False)
    waits = solve_certified(asked, support_of(X, 9), 1.0, may_scan=False)
    assert waits.support.scanned is None
    assert waits.failing.size > 0
    scanned = solve_certified(asked, support_of(X, 9), 1.0)
    assert scanned.support.scanned.any()
    assert not scanned.failing.size
    monkeypatch.setattr(certify, "CHEAP_SCAN", 0.0)
    longer = solve_certified(asked, support_of(X, 9), 1.0, may_scan=False)
    assert longer.support.scanned is None
    assert longer.support.edges.n_edges > waits.support.edges.n_edges
    assert longer.failing.size < waits.failing.size


def test_where_longer_lists_and_scans_are_too_dear_the_rest_stays_without_a_certificate(rng, monkeypatch):
    monkeypatch.setattr(certify, "CHEAP_SCAN", 0.0)
    monkeypatch.setattr(certify, "DEAR_SCAN", 0.0)
    X = np.vstack([rng.normal(size=(1000, 3)), 30.0 * rng.normal(size=(10, 3))])
    state = solve_certified(asked_for(X, is_exact=False), support_of(X, 4), 0.05)
    assert state.support.scanned is None
    assert state.point.gap <= 1e-6
    assert 0 < state.failing.size < 1010
    np.testing.assert_array_equal(state.failing, failing_nodes(state.support, state.theta, state.point.lam))


@pytest.mark.parametrize("seed", [16, 47, 66, 73])
def test_growing_sees_every_new_edge_beside_the_bridges(seed):
    """The duality gap over all pairs, from its definition: λ and w(λ) must be optimal beyond the edges they began with."""
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(14, 2)), 2.0
    i, j = rng.integers(0, 7, 5).astype(np.int32), (7 + rng.permutation(7)[:5]).astype(np.int32)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    few = edges_of(X, 2).add_pairs(i, j, square[i, j], threads=Threads())
    support, bridges = Support.of(few, 2, threads=Threads()), Bridges(i, j, np.full(5, 0.05))
    state = solve_certified(asked_for(X, tol=1e-9), support, theta, bridges=bridges)
    assert state.support.edges.n_edges > few.n_edges
    lam = state.point.lam
    W = np.maximum(0.0, 0.5 * (lam[:, None] + lam) - theta * square)
    np.fill_diagonal(W, 0.0)
    W[i, j] += 0.05
    W[j, i] += 0.05
    x = W.sum(axis=1) * lam
    assert np.mean(x - 1.0 - np.log(x)) <= 2e-9


def test_from_where_it_ended_there_is_nothing_to_do(rng):
    X = blobs(500, 3, rng)
    asked = asked_for(X, degree=5)
    state = solve_certified(asked, support_of(X, 15), 1.0)
    again = solve_certified(replace(asked, degree=None), state.support, state.theta, start=state)
    assert again.point.n_iter == 1
    assert again.support is state.support
    assert relative_l1(weights_of(asked, again), weights_of(asked, state)) < 1e-4


def test_a_change_at_few_nodes_is_solved_for(rng):
    X = blobs(500, 3, rng)
    asked, theta = asked_for(X, tol=1e-10), 1.0
    state = solve_certified(asked, support_of(X, 15), theta)
    bridges, changed = Bridges(np.array([3]), np.array([400]), np.array([0.2])), np.zeros(500, np.bool_)
    changed[[3, 400]] = True
    warm = solve_certified(asked, state.support, theta, bridges=bridges, start=state, changed=changed)
    cold = solve_certified(asked, support_of(X, 15), theta, bridges=bridges)
    assert abs(state.point.degree[3] - cold.point.degree[3]) > 1e-3
    assert relative_l1(weights_of(asked, warm), weights_of(asked, cold)) < 1e-4


def test_it_says_where_it_is(rng):
    X, said = blobs(300, 3, rng), []
    state = solve_certified(asked_for(X, degree=5, say=said.append), support_of(X, 8), 1.0)
    assert all(word in line for line in said for word in ("θ", "degree", "gap", "nodes certified"))
    assert said[-1].startswith(f"θ {state.theta:.6g}, degree {mean_neighbors(state.point, state.bridges):.3f}")
    assert said[-1].endswith(f"{300 - state.failing.size} nodes certified")


def test_a_degree_that_ties_forbid_is_said():
    grid = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), axis=-1).reshape(-1, 2)
    twice = np.concatenate([grid, grid])
    state = solve_certified(asked_for(twice, degree=6), support_of(twice, 18), 1.0)
    reached = mean_neighbors(state.point, state.bridges)
    assert abs(reached - 6) > 0.06
    assert state.jump.below <= reached <= state.jump.above  # at the jump itself rounding decides on some edges


@pytest.mark.parametrize("degree", [6, None])
def test_where_too_many_pairs_have_weight_at_first_a_larger_theta_lets_some_in_before(rng, monkeypatch, degree):
    """In many dimensions a few samples are near to all: lists hold a small part of the pairs that have weight."""
    X, theta = rng.normal(size=(800, 40)), 0.02
    asked = asked_for(X, degree=degree, is_exact=False, tol=1e-9, bounds=Bounds(distances_of(X), threads=Threads()))
    monkeypatch.setattr(certify, "FEWEST_BOUNDED", 0)
    tried, expected_pairs = [], Growth._expected_pairs

    def expected(growth, limits):
        tried.append((growth.theta, expected_pairs(growth, limits)))
        return tried[-1][1]

    monkeypatch.setattr(Growth, "_expected_pairs", expected)
    support = support_of(X, 8)
    solve_certified(asked, support_of(X, 8), theta)
    monkeypatch.setattr(certify, "MAX_PAIRS", int(0.9 * tried[0][1] / certify.EXPECTED_SHARE))
    monkeypatch.setattr(certify, "MAX_PAIRS_PER_NODE", 0)
    tried.clear()
    state = solve_certified(replace(asked, bounds=Bounds(distances_of(X), threads=Threads())), support, theta)
    assert tried[1][0] > tried[0][0], "θ was not raised"
    assert not state.failing.size
    if degree is None:
        assert state.theta == theta
    else:
        assert mean_neighbors(state.point, state.bridges) == pytest.approx(degree, rel=0.01)
    reference = solve(LogProblem(edges_of(X, 799), state.theta), tol=1e-12).weights
    assert relative_l1(weights_of(asked, state), reference) < 1e-3
