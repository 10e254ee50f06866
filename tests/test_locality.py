"""A θ for every node: the model on stretched distances, its certificate and its rows for new samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import blobs, candidates_of
from cvx import all_pairs, solve_log_model
from smoothgraph import GraphLearner, solve_one_node
from smoothgraph.certify import Support, failing_nodes, grow
from smoothgraph.samples import Samples
from smoothgraph.theta import node_thetas


def uneven(n, rng):
    """Two clouds, one ten times as dense as the other."""
    return np.vstack([rng.normal(size=(n // 2, 3)), 30.0 + 10.0 * rng.normal(size=(n - n // 2, 3))])


def test_no_locality_is_the_paper_to_the_last_bit(rng):
    X = blobs(400, 3, rng)
    plain, zero = GraphLearner(6).fit(X), GraphLearner(6, locality=0).fit(X)
    np.testing.assert_array_equal(plain.graph_.toarray(), zero.graph_.toarray())


@pytest.mark.parametrize("locality", [0.5, 1.0])
def test_it_is_the_log_model_on_stretched_distances(locality):
    """CVXPY over all pairs, with distances stretched by the definition."""
    n, k = 40, 4
    X = uneven(n, np.random.default_rng(3))
    learner = GraphLearner(k, locality=locality, tol=1e-12).fit(X)
    i, j, z = all_pairs(X)
    square = np.zeros((n, n))
    square[i, j] = square[j, i] = z
    own = node_thetas(np.sort(square, axis=1)[:, 1:], k)
    stretched = z * (own[i] * own[j]) ** (locality / 2)
    reference = solve_log_model(i, j, stretched, n, learner.theta_)
    assert np.abs(learner.graph_.toarray()[i, j] - reference).sum() < 1e-5 * reference.sum()
    assert learner.n_incomplete_ == 0


def test_degrees_are_even_and_theta_near_one():
    X = uneven(1500, np.random.default_rng(0))
    spread = {}
    for locality in (0.0, 1.0):
        learner = GraphLearner(8, locality=locality).fit(X)
        assert learner.n_neighbors_ == pytest.approx(8, rel=0.01)
        assert learner.n_incomplete_ == 0
        spread[locality] = np.diff(learner.graph_.indptr).std()
    assert spread[1.0] < 0.5 * spread[0.0]
    assert 0.7 < learner.theta_ < 1.3


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.floats(0.01, 1.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_without_failing_nodes_no_pair_outside_has_weight(seed, k, theta, lam_spread, stretch_spread):
    """True of any λ and any stretch: every pair with weight that was left out has a failing end.

    λ and stretch are drawn each for itself. That λ/stretch² of both ends is small says nothing then of the pair.
    """
    rng = np.random.default_rng(seed)
    n = 40
    X = blobs(n, 2, rng)
    candidates = candidates_of(X, k)
    lam, stretch = (np.exp(spread * rng.normal(size=n)) for spread in (lam_spread, stretch_spread))
    theta *= np.median(lam / stretch**2) / np.median(candidates.reach)
    failing = set(failing_nodes(Support(candidates, k, stretch), theta, lam).tolist())
    assert all(i in failing or j in failing for i, j in left_out(X, candidates, theta, lam, stretch))


def left_out(X, candidates, theta, lam, stretch):
    """Pairs outside the support that have weight, by looking at all of them."""
    i, j, z = all_pairs(X)
    inside = set(zip(candidates.nodes.tolist(), candidates.indices.tolist(), strict=True))
    heavy = 0.5 * (lam[i] + lam[j]) > theta * z * stretch[i] * stretch[j]
    return [(a, b) for a, b in zip(i[heavy].tolist(), j[heavy].tolist(), strict=True) if (a, b) not in inside]


def test_a_pair_of_opposite_ends_is_answered_for():
    """Each end is certified by its own λ/stretch², and yet the pair has weight: the certificate must look at both."""
    X = np.array([[0.0], [0.1], [0.3], [0.4]])
    candidates = candidates_of(X, 1)
    lam, stretch = np.array([0.01, 0.01, 100.0, 100.0]), np.array([0.1, 0.1, 10.0, 10.0])
    theta = 2.0 * (lam / stretch**2).max() / candidates.reach.min()
    assert (theta * candidates.reach > lam / stretch**2).all()
    assert left_out(X, candidates, theta, lam, stretch)
    assert failing_nodes(Support(candidates, 1, stretch), theta, lam).size


def test_without_stretch_the_certificate_is_the_plain_one(rng):
    X = blobs(300, 3, rng)
    candidates = candidates_of(X, 6)
    lam = np.exp(rng.normal(size=300))
    plain, ones = (failing_nodes(Support(candidates, 6, stretch), 0.5, lam) for stretch in (None, np.ones(300)))
    np.testing.assert_array_equal(plain, ones)
    assert 0 < plain.size < 300


def test_comparing_finds_exactly_the_pairs_that_may_have_weight(rng):
    X = blobs(120, 2, rng)
    stretch = np.exp(0.5 * rng.normal(size=120))
    candidates, theta, lam = candidates_of(X, 3), 0.5, np.exp(rng.normal(size=120))
    support = Support(candidates, 3, stretch)
    grown = grow(support, Samples(X), np.arange(120, dtype=np.int32), theta, lam, exact=True)
    i, j, z = all_pairs(X)
    wanted = theta * z * stretch[i] * stretch[j] < 0.5 * (lam[i] + lam[j])
    have = set(zip(grown.candidates.nodes.tolist(), grown.candidates.indices.tolist(), strict=True))
    assert all((a, b) in have for a, b in zip(i[wanted].tolist(), j[wanted].tolist(), strict=True))
    assert not failing_nodes(grown, theta, lam).size


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


def test_duplicates_and_grids_get_a_graph(rng):
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    X = np.vstack([grid, np.repeat(grid[:3], 6, axis=0)])
    learner = GraphLearner(4, locality=1.0, theta=1.0).fit(X)
    assert np.isfinite(learner.graph_.data).all()
    assert learner.n_isolated_ == 0


def test_new_rows_solve_the_one_node_problem(rng):
    """1/Σw = λ of the new node, w = max(0, (λ + λⱼ)/2 − θ·z·stretches): by the equations, over all fitted samples."""
    X, new, k = blobs(300, 3, rng), blobs(20, 3, rng), 6
    learner = GraphLearner(k, locality=0.75, tol=1e-10).fit(X)
    rows, lam = learner.transform(new).toarray(), learner.solution_.dual
    z = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    among = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    own = node_thetas(np.sort(z, axis=1), k) ** 0.375
    theirs = node_thetas(np.sort(among, axis=1)[:, 1:], k) ** 0.375
    lam_new = 1.0 / rows.sum(axis=1)
    wanted = np.maximum(0.0, 0.5 * (lam_new[:, None] + lam) - learner.theta_ * z * own[:, None] * theirs)
    np.testing.assert_allclose(rows, wanted, atol=1e-8)


def test_scaling_the_data_changes_nothing_at_locality_one(rng):
    X = blobs(300, 3, rng)
    one, ten = (GraphLearner(5, locality=1.0, tol=1e-10).fit(c * X) for c in (1.0, 10.0))
    assert ten.theta_ == pytest.approx(one.theta_, rel=1e-6)
    assert abs(one.graph_ - ten.graph_).sum() < 1e-4 * one.graph_.sum()
