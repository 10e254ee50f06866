"""Compiled loops against their definitions. The only tests that look into `_kernels`: a loop's contract is its arrays."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components

from conftest import edges_of
from smoothgraph._kernels import components, dual, l2, lists
from smoothgraph._kernels.form import form_of


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-5.0, 50.0), min_size=1, max_size=40),
    st.floats(0.0, 100.0),
    st.sampled_from([None, 1.0, 0.2, 0.01]),
    st.sampled_from([0.0, 3.0, 1e4]),
    st.sampled_from([0.0, 0.05, 1.0]),
)
@example([10.0], 0.0, 0.05, 0.0, 0.0)
@example([10.0], 0.0, None, 0.0, 0.5)
def test_node_dual_is_the_root_that_bracketing_finds(costs, guess, upper, offset, fixed):
    costs, bound = np.array(costs), np.inf if upper is None else upper

    def excess(s):
        return (offset + s) * (fixed + np.clip((s - costs) / 2, 0, bound).sum()) - 1.0

    top = costs.max() + 10.0 + 10.0 / min(bound, 1.0)
    expected = brentq(excess, -offset + 1e-12, top + offset, xtol=1e-13, rtol=1e-14, maxiter=500)
    padded = np.empty(costs.size + dual.SIMD)
    padded[: costs.size] = costs
    s, degree, m = dual.node_dual(padded, dual.pad(padded, costs.size), guess, upper, offset, fixed)
    assert s == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert degree == pytest.approx(fixed + np.clip((guess - costs) / 2, 0, bound).sum(), rel=1e-9, abs=1e-9)
    near = 1e-8 * (1 + abs(s))
    assert (
        ((s - costs > near) & (s - costs < 2 * bound - near)).sum()
        <= m
        <= ((s - costs > -near) & (s - costs < 2 * bound + near)).sum()
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30), st.floats(0.1, 4.0), st.floats(0.0, 1.0), st.floats(0.1, 1.0))
def test_a_node_of_the_l2_model_goes_to_the_root_that_bracketing_finds(z, level, fixed, relax):
    """Alone, and among neighbours whose λ is known: a star, of which the first node is looked at."""
    z, n = np.array(z), len(z) + 1
    lam = np.linspace(-0.5, 1.5, n)
    indptr = np.concatenate([[0], np.arange(n - 1, 2 * n - 1)])
    indices = np.concatenate([np.arange(1, n), np.zeros(n - 1)]).astype(np.int32)
    form, known = form_of(indptr, indices, np.concatenate([z, z]), 1.0), np.full(n, fixed)

    def root(excess):
        return brentq(excess, level - fixed - 100.0, level + 1e-9, xtol=1e-13, rtol=1e-14, maxiter=500)

    alone, n_neighbors, moved = np.empty(n), np.empty(n), np.empty(n)
    l2.start_l2(0, n, form, known, level, n, alone, n_neighbors)
    assert alone[0] == pytest.approx(root(lambda s: s + fixed + np.maximum(s - z, 0).sum() - level), abs=1e-9)
    assert (z < alone[0] - 1e-8).sum() <= n_neighbors[0] <= (z < alone[0] + 1e-8).sum()
    best = root(lambda s: s + fixed + np.maximum((s + lam[1:]) / 2 - z, 0).sum() - level)
    l2.sweep_l2(0, n, form, known, level, relax, n, lam, moved)
    assert moved[0] == pytest.approx(lam[0] + relax * (best - lam[0]), abs=1e-9)


def form_at(edges, theta):
    return form_of(edges.indptr, edges.indices, edges.z, theta)


@pytest.mark.parametrize("theta", [0.5, 1.0, 2.0, 4.0])
def test_components_by_weight_are_those_of_the_graph(rng, theta):
    """scipy's connected components of the weights from their definition, with and without bridges."""
    edges = edges_of(rng.normal(size=(500, 2)), 8)
    lam = rng.uniform(0.0, 0.2, size=500)
    dense = np.zeros((500, 500))
    dense[edges.nodes, edges.indices] = np.maximum(0.0, 0.5 * (lam[edges.nodes] + lam[edges.indices]) - theta * edges.z)
    i, j = rng.integers(0, 500, (2, 40)).astype(np.int32)
    for count in (0, 40):
        dense[i[:count], j[:count]] = 1.0
        expected = connected_components(dense, directed=False)[1]
        assert 5 < expected.max() < 499
        found = components.weighted_components(form_at(edges, theta), lam, i[:count], j[:count])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("most", [1, 2, 5, 500])
def test_small_components_are_those_of_the_graph(rng, most):
    edges = edges_of(rng.normal(size=(500, 2)), 8)
    lam = rng.uniform(0.0, 0.2, size=500)
    bridges = sp.random_array((500, 500), density=20 / 500**2, random_state=rng, format="csr")
    bridges = sp.csr_matrix(bridges + bridges.T)
    w = np.maximum(0.0, 0.5 * (lam[edges.nodes] + lam[edges.indices]) - edges.z)
    expected = connected_components(sp.csr_matrix((w, (edges.nodes, edges.indices)), shape=(500, 500)) + bridges)[1]
    starts = rng.choice(500, 200, replace=False)
    found = components.small_components(starts, form_at(edges, 1.0), lam, bridges.indptr, bridges.indices, most)
    sizes = np.bincount(expected)
    small = np.isin(expected, expected[starts]) & (sizes[expected] <= most)
    assert sizes.max() > 5
    np.testing.assert_array_equal(found > 0, small)
    assert len(set(zip(expected[small], found[small], strict=True))) == len(set(expected[small])) == found.max()


def evaluated(form, given, lam):
    arrays = np.empty(lam.size), np.empty(lam.size, np.int32), np.empty(lam.size)
    dual.evaluate(0, lam.size, form, given, lam, *arrays)
    return arrays


def test_what_is_evaluated_again_is_as_if_all_were(rng):
    """After λ of some nodes, and what is given to others, has changed."""
    form = form_at(edges_of(rng.normal(size=(500, 2)), 8), 1.0)
    before, given = rng.uniform(0.0, 0.2, size=500), np.zeros(500)
    known = evaluated(form, given, before)
    lam, changed = before.copy(), rng.choice(500, 20, replace=False)
    lam[changed[:10]] += rng.uniform(-0.1, 0.3, size=10)
    given[changed[10:]] = 1.0
    marks = np.zeros(500, np.bool_)
    dual.mark_touched(changed, form, before, lam, marks)
    assert 20 < marks.sum() < 250
    touched = np.flatnonzero(marks)
    dual.evaluate_at(0, touched.size, touched, form, given, lam, *known)
    for again, all_of_it in zip(known, evaluated(form, given, lam), strict=True):
        np.testing.assert_allclose(again, all_of_it, rtol=1e-14)


def test_what_counts_edges_and_what_lists_them_agree_to_the_last_bit():
    """Pairs whose (λᵢ+λⱼ)/2 is θz or a neighbour of it among the floats: a fused product would see another sign."""
    rng, n, theta = np.random.default_rng(0), 40_000, 0.3
    z = np.repeat(rng.random(n // 2), 2)
    lam = theta * z
    for towards, moved in ((np.inf, rng.random(n // 2) < 0.3), (0.0, rng.random(n // 2) < 0.3)):
        lam = np.where(np.repeat(moved, 2), np.nextafter(lam, towards), lam)
    begin, pairs = np.arange(n + 1, dtype=np.int64), (np.arange(n) ^ 1).astype(np.int32)
    form, expected = form_of(begin, pairs, z, theta), lam > theta * z
    assert 0 < expected.sum() < n
    degree, n_neighbors, _ = evaluated(form, np.zeros(n), lam)
    np.testing.assert_array_equal(n_neighbors, expected)
    np.testing.assert_array_equal(degree > 0.0, expected)
    indptr = np.zeros(n + 1, np.int64)
    dual.count_weighted(0, n, form, lam, np.inf, indptr[1:])
    np.testing.assert_array_equal(indptr[1:], expected)
    indptr = np.cumsum(indptr)
    columns, w = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    dual.fill_weighted(0, n, form, lam, np.inf, indptr, columns, w)
    np.testing.assert_array_equal(columns, pairs[expected])
    assert w.min() > 0.0
    is_new = np.empty(n, np.bool_)
    dual.mark_new_weight(0, n, np.zeros(n + 1, np.int64), form, lam, is_new)
    np.testing.assert_array_equal(is_new, expected)
    pair_w = np.empty(n)
    dual.pair_weights(0, n, np.arange(n), pairs, form, lam, pair_w)
    np.testing.assert_array_equal(pair_w > 0.0, expected)


@pytest.mark.parametrize("cuts", [[0, 500], [0, 1, 250, 499, 500], list(range(0, 501, 50))])
def test_a_range_of_rows_is_part_of_all_rows(rng, cuts):
    """Kernels over ranges that cover all rows give the bits of one call, whatever the ranges."""
    form = form_at(edges_of(rng.normal(size=(500, 2)), 8), 1.0)
    given, lam = rng.uniform(0.0, 0.1, size=500), rng.uniform(0.0, 0.2, size=500)
    parts = np.full(500, np.nan), np.full(500, -1, np.int32), np.full(500, np.nan)
    for first, last in pairwise(cuts):
        dual.evaluate(first, last, form, given, lam, *parts)
    for part, whole in zip(parts, evaluated(form, given, lam), strict=True):
        np.testing.assert_array_equal(part, whole)


def test_paths_of_two_edges_do_not_go_through_all_edges_of_a_hub():
    """A star, whose leaves are also a ring: a leaf finds its neighbours, and some of those with the same hub."""
    n, most = 5000, 4096
    leaf = np.arange(1, n)
    i, j = np.concatenate([np.zeros(n - 1, int), leaf]), np.concatenate([leaf, np.roll(leaf, 1)])
    W = sp.coo_matrix((np.ones(i.size), (i, j)), (n, n)).tocsr()
    W = sp.csr_matrix(W + W.T)
    found = np.empty((1, most), np.int32)
    lists.two_hops(0, 1, np.array([4000], np.int32), W.indptr.astype(np.int64), W.indices, found)
    reached = found[0][found[0] >= 0]
    assert {0, 3999, 4001, 3998, 4002} <= set(reached.tolist())
    assert np.unique(reached).size == reached.size <= lists.MOST_FOLLOWED + 5
    assert 4000 not in reached
