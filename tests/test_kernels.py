import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components

from conftest import candidates_of
from smoothgraph import _kernels
from smoothgraph._kernels import dual


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-5.0, 50.0), min_size=1, max_size=40),
    st.floats(0.0, 100.0),
    st.sampled_from([np.inf, 1.0, 0.2, 0.01]),
    st.sampled_from([0.0, 3.0, 1e4]),
    st.sampled_from([0.0, 0.05, 1.0]),
)
@example([10.0], 0.0, 0.05, 0.0, 0.0)
@example([10.0], 0.0, np.inf, 0.0, 0.5)
def test_node_dual_is_the_root_that_bracketing_finds(costs, guess, upper, base, fixed):
    costs = np.array(costs)

    def excess(s):
        return (base + s) * (fixed + np.clip((s - costs) / 2, 0, upper).sum()) - 1.0

    top = costs.max() + 10.0 + 10.0 / min(upper, 1.0)
    expected = brentq(excess, -base + 1e-12, top + base, xtol=1e-13, rtol=1e-14, maxiter=500)
    padded = np.empty(costs.size + dual.SIMD)
    padded[: costs.size] = costs
    s, degree, m = _kernels.node_dual(padded, dual._pad(padded, costs.size), guess, upper, base, fixed)
    assert s == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert degree == pytest.approx(fixed + np.clip((guess - costs) / 2, 0, upper).sum(), rel=1e-9, abs=1e-9)
    near = 1e-8 * (1 + abs(s))
    assert (
        ((s - costs > near) & (s - costs < 2 * upper - near)).sum()
        <= m
        <= ((s - costs > -near) & (s - costs < 2 * upper + near)).sum()
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30), st.floats(0.1, 4.0), st.floats(0.0, 1.0), st.floats(0.1, 1.0))
def test_a_node_of_the_l2_model_goes_to_the_root_that_bracketing_finds(z, level, fixed, relax):
    """Alone, and among neighbours whose λ is known: a star, of which the first node is looked at."""
    z, n = np.array(z), len(z) + 1
    lam = np.linspace(-0.5, 1.5, n)
    indptr = np.concatenate([[0], np.arange(n - 1, 2 * n - 1)])
    indices = np.concatenate([np.arange(1, n), np.zeros(n - 1)]).astype(np.int32)
    known = np.full(n, fixed)

    def root(excess):
        return brentq(excess, level - fixed - 100.0, level + 1e-9, xtol=1e-13, rtol=1e-14, maxiter=500)

    both = np.concatenate([z, z])
    alone, active = _kernels.start_l2(indptr[:-1], indptr[1:], both, 1.0, known, level, n)
    assert alone[0] == pytest.approx(root(lambda s: s + fixed + np.maximum(s - z, 0).sum() - level), abs=1e-9)
    assert (z < alone[0] - 1e-8).sum() <= active[0] <= (z < alone[0] + 1e-8).sum()
    best = root(lambda s: s + fixed + np.maximum((s + lam[1:]) / 2 - z, 0).sum() - level)
    moved = _kernels.sweep_l2(indptr, indices, both, 1.0, known, level, relax, lam, n)
    assert moved[0] == pytest.approx(lam[0] + relax * (best - lam[0]), abs=1e-9)


@pytest.mark.parametrize("theta", [0.5, 1.0, 2.0, 4.0])
def test_parts_by_weight_are_those_of_the_graph(rng, theta):
    """scipy's connected components of the weights from their definition, with and without joints."""
    edges = candidates_of(rng.normal(size=(500, 2)), 8)
    lam = rng.uniform(0.0, 0.2, size=500)
    dense = np.zeros((500, 500))
    dense[edges.nodes, edges.indices] = np.maximum(0.0, 0.5 * (lam[edges.nodes] + lam[edges.indices]) - theta * edges.z)
    i, j = rng.integers(0, 500, (2, 40)).astype(np.int32)
    arrays = edges.indptr[:-1], edges.indptr[1:], edges.indices, edges.z, theta, np.inf, lam
    for count in (0, 40):
        dense[i[:count], j[:count]] = 1.0
        expected = connected_components(dense, directed=False)[1]
        assert 5 < expected.max() < 499
        np.testing.assert_array_equal(_kernels.weighted_parts(*arrays, i[:count], j[:count]), expected)


@pytest.mark.parametrize("most", [1, 2, 5, 500])
def test_small_parts_are_those_of_the_graph(rng, most):
    edges = candidates_of(rng.normal(size=(500, 2)), 8)
    lam = rng.uniform(0.0, 0.2, size=500)
    joints = sp.random_array((500, 500), density=20 / 500**2, rng=rng, format="csr")
    joints = sp.csr_matrix(joints + joints.T)
    w = np.maximum(0.0, 0.5 * (lam[edges.nodes] + lam[edges.indices]) - edges.z)
    expected = connected_components(sp.csr_matrix((w, (edges.nodes, edges.indices)), shape=(500, 500)) + joints)[1]
    starts = rng.choice(500, 200, replace=False)
    arrays = edges.indptr[:-1], edges.indptr[1:], edges.indices, edges.z, 1.0, np.inf, lam, joints.indptr, joints.indices
    found = _kernels.small_parts(starts, *arrays, most)
    sizes = np.bincount(expected)
    small = np.isin(expected, expected[starts]) & (sizes[expected] <= most)
    assert sizes.max() > 5
    np.testing.assert_array_equal(found > 0, small)
    assert len(set(zip(expected[small], found[small], strict=True))) == len(set(expected[small])) == found.max()


def test_what_is_evaluated_again_is_as_if_all_were(rng):
    """After λ of some nodes, and what is given to others, has changed."""
    edges = candidates_of(rng.normal(size=(500, 2)), 8)
    arrays = edges.indptr[:-1], edges.indptr[1:], edges.indices, edges.z, 1.0, np.inf
    before, given = rng.uniform(0.0, 0.2, size=500), np.zeros(500)
    parts = _kernels.evaluate(*arrays, given, before)
    lam, changed = before.copy(), rng.choice(500, 20, replace=False)
    lam[changed[:10]] += rng.uniform(-0.1, 0.3, size=10)
    given[changed[10:]] = 1.0
    marks = np.zeros(500, np.bool_)
    _kernels.mark_touched(changed, *arrays, before, lam, marks)
    assert 20 < marks.sum() < 250
    _kernels.evaluate_again(np.flatnonzero(marks), *arrays, given, lam, *parts)
    for again, all_of_it in zip(parts, _kernels.evaluate(*arrays, given, lam), strict=True):
        np.testing.assert_allclose(again, all_of_it, rtol=1e-14)


def test_the_gap_is_the_mean_of_psi(rng):
    degree, lam, base = rng.uniform(0.1, 3.0, size=(3, 1000))
    x = degree * (lam + base)
    assert _kernels.mean_psi(degree, lam, base, 64) == pytest.approx(np.mean(x - 1.0 - np.log(x)), rel=1e-13)
    degree[7] = 0.0
    assert _kernels.mean_psi(degree, lam, base, 64) == np.inf
