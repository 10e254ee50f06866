"""θ: the one-node problem, the interval that gives a node k neighbours, and a θ for every node."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cvx import solve_accurately
from smoothgraph import solve_one_node, theta_bounds, theta_for_degree
from smoothgraph.theta import node_thetas

distances = arrays(np.float64, st.integers(1, 12), elements=st.floats(0.0, 100.0, allow_subnormal=False))
thetas = st.floats(1e-3, 1e3)


@given(distances, thetas)
def test_one_node_solution_meets_the_optimality_conditions(z, theta):
    w, lam, k = solve_one_node(z, theta)
    assert w.sum() * lam == pytest.approx(1.0, rel=1e-9)
    assert np.all(w >= 0)
    np.testing.assert_allclose((w + theta * z)[w > 0], lam)
    assert np.all(theta * z[w == 0] >= lam * (1 - 1e-12))
    assert k == np.count_nonzero(w)


def test_one_node_solution_is_that_of_a_general_solver(rng):
    for theta in (0.1, 1.0, 5.0):
        z = rng.exponential(size=9)
        w = cp.Variable(9, nonneg=True)
        solve_accurately(cp.Problem(cp.Minimize(theta * (z @ w) - cp.log(cp.sum(w)) + 0.5 * cp.sum_squares(w))))
        np.testing.assert_allclose(solve_one_node(z, theta).weights, w.value, atol=1e-6)


@given(st.lists(st.integers(0, 10_000), min_size=3, max_size=12, unique=True), st.data())
def test_theta_inside_the_interval_gives_exactly_k_neighbours(integers, data):
    """Theorem 3, with the interval closed below and open above."""
    z = np.sort(np.array(integers, dtype=float)) + 1.0
    k = data.draw(st.integers(2, z.size - 1))
    bounds = theta_bounds(z[None, :], k)
    for share in (1e-6, 0.3, 0.7, 1.0 - 1e-6):
        theta = bounds.lower + share * (bounds.upper - bounds.lower)
        assert solve_one_node(z, theta).k == k
    assert solve_one_node(z, bounds.upper * (1 + 1e-9)).k < k
    assert solve_one_node(z, bounds.lower * (1 - 1e-9)).k > k


@given(distances, thetas, st.floats(1e-3, 1e3))
def test_distances_scale_out_of_theta(z, theta, factor):
    a, b = solve_one_node(z, theta), solve_one_node(factor * z, theta / factor)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-6, atol=1e-9)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 3).map(float)),
    st.integers(1, 6),
)
def test_bounds_are_finite_and_positive_whatever_the_ties(z, k):
    z = np.sort(z, axis=1)
    k = min(k, z.shape[1])
    if not z.any():
        with pytest.raises(ValueError, match="distance 0"):
            theta_bounds(z, k)
        return
    bounds = theta_bounds(z, k)
    for value in (bounds.lower, bounds.upper, bounds.node_lower, bounds.node_upper, theta_for_degree(z, k)):
        assert np.all(np.isfinite(value))
        assert np.all(np.asarray(value) > 0)


@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1e20, 1e150])
def test_bounds_survive_extreme_units(rng, unit):
    z = np.sort(rng.exponential(size=(5, 8)), axis=1)
    assert theta_bounds(z * unit, 3).lower * unit == pytest.approx(theta_bounds(z, 3).lower)


def test_one_neighbour_and_lists_without_a_spare_entry():
    z = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 4.0]])
    one = theta_bounds(z, 1)  # k = 1 has no upper bound
    assert one.upper == 2.0 * one.lower
    full = theta_bounds(z, 3)  # no fourth entry, no lower bound
    assert full.lower == full.upper / 2.0
    np.testing.assert_array_equal(one.node_lower, [1 / np.sqrt(2), 1 / np.sqrt(6)])


def test_missing_entries_do_not_count():
    z = np.array([[1.0, 2.0, 3.0], [1.0, np.inf, np.inf]])
    bounds = theta_bounds(z, 2)
    assert bounds.lower == theta_bounds(z[:1], 2).lower
    assert bounds.upper == theta_bounds(z[:1], 2).upper


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve_one_node([], 1.0), "non-empty"),
        (lambda: solve_one_node([-1.0], 1.0), "non-negative"),
        (lambda: solve_one_node([1.0], 0.0), "theta=0.0"),
        (lambda: solve_one_node([1.0], np.nan), "theta=nan"),
        (lambda: theta_bounds(np.ones((3, 4)), 5), "k=5"),
        (lambda: theta_bounds(np.ones((3, 4)), 0), "k=0"),
        (lambda: theta_bounds(np.ones(3), 1), "shape"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- a θ for every node ---------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_node_theta_gives_the_node_k_neighbours(seed, k):
    z = np.sort(np.random.default_rng(seed).gamma(2.0, size=(5, 12)), axis=1)
    for row, theta in zip(z, node_thetas(z, k), strict=True):
        assert solve_one_node(row, theta).k in (k, k + 1)


def test_node_thetas_of_ties_and_duplicates_are_finite_and_follow_the_scale():
    ties = np.full((1, 5), 4.0)
    zeros = np.zeros((1, 5))
    many_zeros = np.array([[0.0, 0.0, 0.0, 2.0, 3.0]])
    short = np.array([[1.0, np.inf, np.inf, np.inf, np.inf]])
    plain = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])
    z = np.vstack([ties, zeros, many_zeros, short, plain])
    own = node_thetas(z, 3)
    assert np.isfinite(own).all()
    assert (own > 0).all()
    np.testing.assert_allclose(node_thetas(100.0 * z, 3) * 100.0, own)
    assert own[1] == pytest.approx(np.exp(np.log(own[[0, 2, 3, 4]]).mean()))
    with pytest.raises(ValueError, match="duplicate"):
        node_thetas(zeros, 3)


def test_theta_is_held_against_the_farthest_distance():
    """The nearest alone would pass: the sums of the others are beyond float64."""
    with pytest.raises(ValueError, match="too large for squared distances up to 1e\\+300"):
        solve_one_node([1e-300, 1.0, 1e300], theta=1e20)
