"""Possible pairs, judged by looking at all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import asked_for, blobs, edges_of, support_of
from cvx import all_pairs
from smoothgraph.distances import distances_of
from smoothgraph.fit import certify
from smoothgraph.fit.certify import Growth, failing_nodes
from smoothgraph.fit.possible_pairs import count_of_pairs, count_of_possible, possible_pairs
from smoothgraph.parallel import Threads

THREADS = Threads()


def near_pairs(X, edges, limits, scale):
    """All pairs outside the edges with z·scaleᵢ·scaleⱼ < limitᵢ + limitⱼ."""
    i, j, z = all_pairs(X)
    near = z * scale[i] * scale[j] < limits[i] + limits[j]
    inside = set(zip(edges.nodes.tolist(), edges.indices.tolist(), strict=True))
    return set(zip(i[near].tolist(), j[near].tolist(), strict=True)) - inside


def found_pairs(X, edges, nodes, limits, scale, most=10**6, **how):
    i, j, z = possible_pairs(distances_of(X), edges, nodes, limits, scale, most, **how, threads=THREADS)
    np.testing.assert_allclose(z, ((X[i] - X[j]) ** 2).sum(axis=1))
    return set(zip(np.minimum(i, j).tolist(), np.maximum(i, j).tolist(), strict=True))


def drawn(seed, k, spread, scale_spread, n=50):
    """Samples, edges of exact lists, limits and local scales, each drawn for itself. Some limits are 0."""
    rng = np.random.default_rng(seed)
    X = blobs(n, 2, rng)
    edges, scale = edges_of(X, k), np.exp(scale_spread * rng.normal(size=n))
    limits = 0.3 * np.median(scale) ** 2 * np.median(edges.reach) * np.exp(spread * rng.normal(size=n))
    limits[rng.random(n) < 0.1] = 0.0
    return X, edges, limits, scale


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.floats(0.0, 2.0), st.floats(0.0, 1.5))
def test_with_exact_lists_every_pair_below_the_limits_is_found(seed, k, spread, scale_spread):
    X, edges, limits, scale = drawn(seed, k, spread, scale_spread)
    nodes = np.arange(len(X), dtype=np.int32)
    assert found_pairs(X, edges, nodes, limits, scale, alone=False, is_exact=True) == near_pairs(X, edges, limits, scale)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.floats(0.0, 2.0), st.floats(0.0, 1.5))
def test_nodes_that_look_alone_find_the_pairs_they_are_an_end_of(seed, k, spread, scale_spread):
    X, edges, limits, scale = drawn(seed, k, spread, scale_spread)
    nodes = np.arange(0, len(X), 5, dtype=np.int32)
    expected = {pair for pair in near_pairs(X, edges, limits, scale) if pair[0] % 5 == 0 or pair[1] % 5 == 0}
    assert found_pairs(X, edges, nodes, limits, scale, alone=True, is_exact=True) == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.floats(0.0, 2.0), st.floats(0.0, 1.5), st.booleans())
def test_with_approximate_lists_those_with_a_path_of_two_edges_are_found(seed, k, spread, scale_spread, alone):
    X, edges, limits, scale = drawn(seed, k, spread, scale_spread)
    A = np.zeros((len(X), len(X)))
    A[edges.nodes, edges.indices] = 1.0
    paths = A @ A
    nodes = np.arange(len(X), dtype=np.int32)
    expected = {pair for pair in near_pairs(X, edges, limits, scale) if paths[pair] > 0}
    assert found_pairs(X, edges, nodes, limits, scale, alone=alone, is_exact=False) == expected


@pytest.mark.parametrize("is_exact", [True, False])
def test_nodes_with_lists_of_all_others_have_no_possible_pairs(rng, is_exact):
    X = rng.normal(size=(12, 2))
    edges, nodes = edges_of(X, 11), np.arange(12, dtype=np.int32)
    assert np.isinf(edges.reach).all()
    assert not found_pairs(X, edges, nodes, np.full(12, 1e9), np.ones(12), alone=False, is_exact=is_exact)


def test_too_many_pairs_are_not_returned(rng):
    X, edges, limits, scale = drawn(0, 3, 0.5, 0.3)
    nodes, count = np.arange(50, dtype=np.int32), len(near_pairs(X, edges, 100.0 * limits, scale))
    look = {"alone": True, "is_exact": True, "threads": THREADS}
    assert count > 100
    assert possible_pairs(distances_of(X), edges, nodes, 100.0 * limits, scale, count - 1, **look) is None
    assert possible_pairs(distances_of(X), edges, nodes, 100.0 * limits, scale, 2 * count, **look) is not None


def test_the_number_of_possible_pairs_is_told_from_any_share_of_the_nodes(rng):
    _, support, scale, lam = scaled_cloud(rng, n=240)
    limits, reach, edges = 0.5 * lam, support.edges.reach, support.edges
    far = np.maximum(reach[:, None], reach) * scale[:, None] * scale
    possible = np.triu(far < limits[:, None] + limits, 1)
    for i in range(240):
        possible[i, edges.indices[edges.indptr[i] : edges.indptr[i + 1]]] = False
    assert possible.sum() > 500
    assert count_of_possible(edges, limits, scale, 240) == possible.sum()
    assert count_of_possible(edges, limits, scale, 80) == pytest.approx(possible.sum(), rel=0.3)


# --- growth that looks for them -------------------------------------------------------------------------------------------


def scaled_cloud(rng, n=300, k=12):
    """A cloud with local scales, and a λ at which some lists are too short, and others only for the worst partner."""
    X = rng.normal(size=(n, 3))
    scale = np.exp(0.3 * rng.normal(size=n))
    support = support_of(X, k, scale)
    return X, support, scale, scale**2 * support.edges.reach / rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize(
    ("is_exact", "look_cost", "measure_cost"), [(True, 0.0, 0.0), (True, np.inf, 0.0), (True, 0.0, np.inf), (False, 0.0, 0.0)]
)
def test_one_look_certifies_all_nodes(rng, monkeypatch, is_exact, look_cost, measure_cost):
    """With exact lists all nodes that fail are scanned where that is cheaper than a look, and than to measure what it finds."""
    monkeypatch.setattr(certify, "LOOK_COST", look_cost)
    monkeypatch.setattr(certify, "MEASURE_COST", measure_cost)
    X, support, scale, lam = scaled_cloud(rng)
    failing = failing_nodes(support, 1.0, lam)
    assert near_pairs(X, support.edges, lam / 2.0, scale), "the test needs a support that is too small"
    growth = Growth(asked_for(X, is_exact=is_exact), support, failing, 1.0, lam, 0)
    assert 0 < growth.too_short.size < failing.size
    grown = growth.grow()
    assert grown.scanned[failing].all()
    assert grown.scanned.all() == (look_cost == measure_cost == 0.0)
    assert not failing_nodes(grown, 1.0, lam).size
    missed = near_pairs(X, grown.edges, lam / 2.0, scale)
    assert not missed if is_exact else len(missed) < 3  # a few are farther away than the neighbours of neighbours
    assert grown.edges.n_edges < 300 * 299 / 4


def test_where_no_scan_is_affordable_lists_that_are_too_short_keep_failing(rng, monkeypatch):
    monkeypatch.setattr(certify, "DEAR_SCAN", 0.0)
    X, support, _, lam = scaled_cloud(rng)
    failing = failing_nodes(support, 1.0, lam)
    growth = Growth(asked_for(X, is_exact=False), support, failing, 1.0, lam, certify.MAX_EXTENSIONS)
    assert growth.way == "scan"
    grown = growth.grow()
    left = failing_nodes(grown, 1.0, lam)
    assert 0 < np.intersect1d(growth.too_short, growth.outliers).size < growth.too_short.size
    np.testing.assert_array_equal(left, np.setdiff1d(growth.too_short, growth.outliers))  # the farthest are scanned anyway
    assert Growth(asked_for(X, is_exact=False), grown, left, 1.0, lam, certify.MAX_EXTENSIONS).way is None


def test_the_pairs_of_a_look_are_those_that_levels_do_not_rule_out(rng):
    """Counted pair by pair, from the inequality that makes a pair harmless for the node that looks."""
    _, support, scale, lam = scaled_cloud(rng, n=80)
    limits = 0.5 * lam
    level = scale**2 * support.edges.reach
    ratio = level / (2.0 * limits)
    apart = 0.5 * (np.sqrt(level / level[:, None]) + np.sqrt(level[:, None] / level))
    counted = np.count_nonzero((ratio[:, None] < 1.0) | (apart > ratio[:, None] * (1.0 + 1e-12)))
    assert 0 < counted < 80 * 80
    assert count_of_pairs(support.edges, limits, scale) == counted
