"""The support certificate, judged by looking at all pairs; and growth, by scans and by longer lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances

from conftest import asked_for, blobs, edges_of, lists_of, relative_l1, support_of
from cvx import all_pairs
from smoothgraph import GraphLearner
from smoothgraph.distances import distances_of
from smoothgraph.edges import Edges
from smoothgraph.fit import certify
from smoothgraph.fit.certify import EXTENSION_SLACK, Growth, failing_nodes
from smoothgraph.fit.state import Support
from smoothgraph.models import LogProblem
from smoothgraph.neighbors.bounds import Bounds
from smoothgraph.parallel import Threads
from smoothgraph.reference import log as judge
from smoothgraph.solvers import solve


def outside(X, edges, local_scale=None):
    """(i, j, z) of all pairs outside the support, z as the problem counts it."""
    i, j, z = all_pairs(X)
    inside = set(zip(edges.nodes.tolist(), edges.indices.tolist(), strict=True))
    left_out = np.array([pair not in inside for pair in zip(i.tolist(), j.tolist(), strict=True)])
    z = z if local_scale is None else z * local_scale[i] * local_scale[j]
    return i[left_out], j[left_out], z[left_out]


def violated(X, theta, lam, edges, local_scale=None):
    """Pairs outside the support that the dual gives weight."""
    i, j, z = outside(X, edges, local_scale)
    heavy = judge.best_weights(lam, i, j, z, theta) > 0
    return list(zip(i[heavy].tolist(), j[heavy].tolist(), strict=True))


def squared(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def grow(support, X, failing, theta, lam):
    """The support after a scan, as exact lists grow; None if it found too many pairs."""
    growth = Growth(asked_for(X), support, failing, theta, lam, 0)
    assert growth.way == "scan"
    return growth.grow()


# --- the certificate ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.floats(0.3, 30.0), st.floats(-1.0, 1.0))
def test_without_failing_nodes_no_pair_outside_has_weight(seed, k, theta_times, noise):
    """True of any λ, not of the optimum alone; and every pair with weight that was left out has a failing end."""
    rng = np.random.default_rng(seed)
    X = blobs(40, 2, rng)
    support = support_of(X, k)
    theta = theta_times / support.edges.z.mean()
    lam = solve(LogProblem(support.edges, theta), tol=1e-8).dual * np.exp(noise * rng.normal(size=40))
    failing = set(failing_nodes(support, theta, lam).tolist())
    assert all(i in failing or j in failing for i, j in violated(X, theta, lam, support.edges))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.floats(0.01, 1.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_with_local_scales_too_pairs_left_out_have_a_failing_end(seed, k, theta, lam_spread, scale_spread):
    """True of any λ and any local scale.

    λ and scale are drawn each for itself. That λ/scale² of both ends is small says nothing then of the pair.
    """
    rng = np.random.default_rng(seed)
    X = blobs(40, 2, rng)
    lam, scale = (np.exp(spread * rng.normal(size=40)) for spread in (lam_spread, scale_spread))
    support = support_of(X, k, scale)
    theta *= np.median(lam / scale**2) / np.median(support.edges.reach)
    failing = set(failing_nodes(support, theta, lam).tolist())
    assert all(i in failing or j in failing for i, j in violated(X, theta, lam, support.edges, scale))


def test_a_pair_of_opposite_ends_is_answered_for():
    """Each end is certified by its own λ/scale², and yet the pair has weight: the certificate must look at both."""
    X = np.array([[0.0], [0.1], [0.3], [0.4]])
    lam, scale = np.array([0.01, 0.01, 100.0, 100.0]), np.array([0.1, 0.1, 10.0, 10.0])
    support = support_of(X, 1, scale)
    reach = support.edges.reach
    theta = 2.0 * (lam / scale**2).max() / reach.min()
    assert (theta * reach > lam / scale**2).all()
    assert violated(X, theta, lam, support.edges, scale)
    assert failing_nodes(support, theta, lam).size


def test_local_scales_of_one_are_the_plain_certificate(rng):
    X = blobs(300, 3, rng)
    lam = np.exp(rng.normal(size=300))
    plain, ones = (failing_nodes(support_of(X, 6, scale), 0.5, lam) for scale in (None, np.ones(300)))
    np.testing.assert_array_equal(plain, ones)
    assert 0 < plain.size < 300


# --- scans ----------------------------------------------------------------------------------------------------------------


def test_growing_ends_at_the_solution_over_all_pairs(rng):
    X = blobs(400, 3, rng)
    support = support_of(X, 6)
    theta = 2.0 / support.edges.z.mean()
    solution = solve(LogProblem(support.edges, theta), tol=1e-10)
    assert violated(X, theta, solution.dual, support.edges), "the test needs a support that is too small"
    for _ in range(15):
        failing = failing_nodes(support, theta, solution.dual)
        if not failing.size:
            break
        support = grow(support, X, failing, theta, solution.dual)
        solution = solve(LogProblem(support.edges, theta), tol=1e-10, lam=solution.dual)
    assert not failing.size
    assert not violated(X, theta, solution.dual, support.edges)
    reference = solve(LogProblem(edges_of(X, 399), theta), tol=1e-12)
    assert relative_l1(solution.weights, reference.weights) < 1e-4
    assert support.edges.n_edges < 400 * 399 / 2


def test_a_scan_finds_exactly_the_pairs_that_may_have_weight(rng):
    X = blobs(120, 2, rng)
    scale, theta, lam = np.exp(0.5 * rng.normal(size=120)), 0.5, np.exp(rng.normal(size=120))
    first = support_of(X, 3, scale)
    before = set(zip(first.edges.nodes.tolist(), first.edges.indices.tolist(), strict=True))
    grown = grow(first, X, np.arange(120, dtype=np.int32), theta, lam)
    i, j, z = all_pairs(X)
    cost, half = theta * z * scale[i] * scale[j], 0.5 * (lam[i] + lam[j])
    have = set(zip(grown.edges.nodes.tolist(), grown.edges.indices.tolist(), strict=True))
    pairs = np.array(list(zip(i.tolist(), j.tolist(), strict=True)))
    assert all(tuple(pair) in have for pair in pairs[cost < half].tolist())
    assert not any(tuple(pair) in have - before for pair in pairs[cost > certify.SCAN_SLACK * half * (1 + 1e-9)].tolist())
    assert not failing_nodes(grown, theta, lam).size
    assert grown.scanned.all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.3, 10.0), st.floats(0.0, 0.5), st.booleans())
def test_after_scans_too_pairs_left_out_have_a_failing_end(seed, k, theta_times, noise, scaled):
    """The failing nodes are scanned, λ moves, and again: each time all pairs are looked at."""
    rng = np.random.default_rng(seed)
    X = blobs(40, 2, rng)
    scale = np.exp(0.3 * rng.normal(size=40)) if scaled else None
    support = support_of(X, k, scale)
    theta = theta_times / support.edges.z.mean()
    lam = solve(LogProblem(support.edges, theta), tol=1e-8).dual
    for _ in range(4):
        failing = failing_nodes(support, theta, lam)
        support = grow(support, X, failing, theta, lam)
        assert not failing_nodes(support, theta, lam).size
        i, j, z = outside(X, support.edges, scale)
        at_scanned, limits = support.scanned[i] | support.scanned[j], support.scan_limits
        assert (z >= (limits[i] + limits[j]) * (1 - 1e-9))[at_scanned].all()
        lam = lam * np.exp(noise * rng.normal(size=40))
        failing = set(failing_nodes(support, theta, lam).tolist())
        assert all(i in failing or j in failing for i, j in violated(X, theta, lam, support.edges, scale))


def test_a_scan_counts_as_long_as_lambda_is_within_its_slack(rng):
    X = blobs(300, 3, rng)
    support = support_of(X, 4)
    theta = 2.0 / support.edges.z.mean()
    lam = solve(LogProblem(support.edges, theta), tol=1e-10).dual
    failing, failing_above = (failing_nodes(support, theta, times * lam) for times in (1.0, 1.05))
    scanned = grow(support, X, failing, theta, lam)
    assert failing_nodes(scanned, theta, lam).size == 0
    assert failing_nodes(scanned, theta, lam * 1.05).size == np.setdiff1d(failing_above, failing).size
    assert set(failing) <= set(failing_nodes(scanned, theta, lam * 1.2))
    risen = lam.copy()
    risen[17] *= 1.2
    assert failing_nodes(scanned, theta, risen).tolist() == [17], "one that rises makes no others fail"


def test_a_node_that_scanned_nodes_were_compared_with_is_not_scanned():
    """Sample 2 rises and reaches far enough, then not: the pair (2, 3) is in the reach of neither and has weight."""
    X = np.array([[100.0], [101.0], [0.0], [1.01]])
    edges = Edges(np.array([0, 1, 2, 2, 2]), np.array([1, 0], np.int32), np.ones(2), np.array([0.1, 9.0, 1.0, 1.0]))
    support, lam = Support.of(edges, 1, threads=Threads()), np.array([1.0, 1.0, 0.5, 1.0])
    for risen in (0.5, 1.0):
        lam[2] = risen
        failing = failing_nodes(support, 1.0, lam)
        assert failing.tolist() == [0 if risen == 0.5 else 2]
        support = grow(support, X, failing, 1.0, lam)
        assert not failing_nodes(support, 1.0, lam).size
    assert support.scanned.tolist() == [True, False, False, False]
    lam[2] = 1.09
    assert violated(X, 1.0, lam, support.edges) == [(2, 3)]
    assert failing_nodes(support, 1.0, lam).tolist() == [2]


def test_groups_of_copies_end_the_growth_instead_of_the_memory(rng):
    """A scan of 4,000 copies finds 16 million pairs with weight, more than any graph of so few nodes needs."""
    X = np.vstack([np.zeros((4000, 2)), rng.normal(size=(50, 2))])
    n = len(X)
    ring = np.stack([(np.arange(n) + 1) % n, (np.arange(n) - 1) % n], axis=1).astype(np.int32)
    edges = Edges(2 * np.arange(n + 1), ring.ravel(), np.ones(2 * n), np.zeros(n))
    support, lam = Support.of(edges, 2, threads=Threads()), np.ones(n)
    failing = failing_nodes(support, 1.0, lam)
    assert failing.size == n
    assert grow(support, X, failing, 1.0, lam) is None
    assert edges.indices.size == 2 * n, "the support that could not grow can still be used"


# --- bounds ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bounds_are_tried(monkeypatch):
    """As they are with many samples."""
    monkeypatch.setattr(certify, "FEWEST_BOUNDED", 0)


def with_bounds(X, **options):
    return asked_for(X, is_exact=False, bounds=Bounds(distances_of(X), threads=Threads()), **options)


@pytest.mark.usefixtures("bounds_are_tried")
@pytest.mark.parametrize("local", [False, True])
def test_where_most_lists_are_too_short_bounds_find_every_pair_with_weight(rng, local):
    X = blobs(300, 20, rng)
    scale = np.exp(0.2 * rng.normal(size=300)) if local else None
    support, asked = support_of(X, 5, scale), with_bounds(X)
    lam = np.exp(0.3 * rng.normal(size=300)) * 2.0 * np.median(support.edges.reach) / support.edges.reach.max()
    theta = 1.0 / support.edges.reach.max()
    growth = Growth(asked, support, failing_nodes(support, theta, lam), theta, lam, 0)
    assert growth.way == "bounds"
    grown = growth.grow()
    assert not violated(X, theta, lam, grown.edges, scale)
    assert not failing_nodes(grown, theta, lam).size
    risen = lam * np.where(rng.random(300) < 0.1, 1.5, 1.0)
    failing = failing_nodes(grown, theta, risen)
    assert 0 < failing.size < 60
    again = Growth(asked, grown, failing, theta, risen, 0)
    assert again.way == "bounds", "what is prepared is used again"
    grown = again.grow()
    assert not violated(X, theta, risen, grown.edges, scale)
    assert not failing_nodes(grown, theta, risen).size


@pytest.mark.usefixtures("bounds_are_tried")
@pytest.mark.parametrize(("ratio", "way"), [(0.9, "bounds"), (0.99, "scan")])
def test_bounds_serve_many_lists_that_are_a_little_too_short(rng, ratio, way):
    """Such nodes may look for possible pairs; but of most of all nodes these are many, and then bounds are the shorter way."""
    X, scale = blobs(300, 10, rng), np.exp(0.2 * rng.normal(size=300))
    support = support_of(X, 12, scale)
    lam = scale**2 * support.edges.reach / ratio
    growth = Growth(with_bounds(X), support, failing_nodes(support, 1.0, lam), 1.0, lam, 0)
    assert not growth.too_short.size
    assert growth.way == way


@pytest.mark.usefixtures("bounds_are_tried")
@pytest.mark.parametrize(("cost", "way"), [(0.0, "scan"), (1e9, "bounds")])
def test_dear_bounds_serve_where_neighbours_of_neighbours_are_dearer(rng, monkeypatch, cost, way):
    monkeypatch.setattr(certify, "DEAR_BOUNDS", 0.0)
    monkeypatch.setattr(certify, "TWO_HOPS_COST", cost)
    support, lam = support_of(X := blobs(300, 10, rng), 12), np.full(300, 1e9)
    failing = failing_nodes(support, 1.0, lam)
    assert Growth(with_bounds(X), support, failing, 1.0, lam, certify.MAX_EXTENSIONS).way == way


@pytest.mark.usefixtures("bounds_are_tried")
def test_of_nodes_that_were_not_looked_at_bounds_say_nothing(rng):
    """Fewer than half of the nodes fail: only they count as scanned, and all of their pairs are found."""
    X = blobs(300, 10, rng)
    support = support_of(X, 20)
    lam = np.where(np.arange(300) < 90, 1.5, 0.1) * support.edges.reach
    failing = failing_nodes(support, 1.0, lam)
    np.testing.assert_array_equal(failing, np.arange(90))
    grown = Growth(with_bounds(X), support, failing, 1.0, lam, 0).grow()
    np.testing.assert_array_equal(np.flatnonzero(grown.scanned), failing)
    assert not violated(X, 1.0, lam, grown.edges)
    assert not failing_nodes(grown, 1.0, lam).size


def test_the_pairs_to_be_found_are_expected_from_a_few_nodes(rng):
    X = rng.normal(size=(200, 10))
    support, lam = support_of(X, 5), np.full(200, 20.0)
    growth = Growth(with_bounds(X), support, np.arange(200, dtype=np.int32), 1.0, lam, 0)
    near = np.triu(pairwise_distances(X, metric="sqeuclidean") < 2.0 * growth._limits(1.0)[0], 1).sum()
    assert 1000 < near < 15000
    assert growth._expected_pairs(growth._limits(1.0)) == pytest.approx(near, rel=0.1)


@pytest.mark.usefixtures("bounds_are_tried")
@pytest.mark.parametrize("expected", [True, False])
def test_bounds_give_up_where_too_many_pairs_may_have_weight(rng, monkeypatch, expected):
    """They are told before by a few nodes; and where these are wrong, no more are kept than may be."""
    X = blobs(300, 10, rng)
    support, lam = support_of(X, 5), np.full(300, 1e9)
    monkeypatch.setattr(certify, "MAX_PAIRS", 1000)
    monkeypatch.setattr(certify, "MAX_PAIRS_PER_NODE", 1)
    asked, kept = with_bounds(X), []
    if not expected:
        monkeypatch.setattr(Growth, "_expected_pairs", lambda self, limits: 0.0)
    near_pairs = asked.bounds.near_pairs

    def counted(limits, take, nodes=None):
        kept.append(sum(pairs[0].size for pairs in near_pairs(limits, take, nodes)))
        return []

    monkeypatch.setattr(asked.bounds, "near_pairs", counted)
    assert Growth(asked, support, np.arange(300, dtype=np.int32), 1.0, lam, 0).grow() is None
    assert len(kept) == (0 if expected else 1)
    assert all(count <= 1000 for count in kept)


# --- longer lists ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def scans_are_dear(monkeypatch):
    """Approximate lists of a few samples are extended, as those of millions are."""
    monkeypatch.setattr(certify, "CHEAP_SCAN", 0.0)


def extend(support, X, nodes, theta, lam):
    growth = Growth(asked_for(X, is_exact=False), support, nodes, theta, lam, 0)
    assert growth.way == "extend"
    return growth.grow()


@pytest.mark.usefixtures("scans_are_dear")
def test_extended_lists_are_almost_those_of_a_search(rng):
    X = blobs(2000, 4, rng)
    nodes = np.arange(0, 2000, 7, dtype=np.int32)
    grown = extend(support_of(X, 15), X, nodes, 1.0, np.full(2000, np.inf))
    true_reach = lists_of(X, 60).reach[nodes]
    assert np.median(grown.edges.reach[nodes] / true_reach) < 1.05  # two hops miss a few of the 60 nearest
    assert (grown.edges.reach[nodes] >= true_reach).all()
    assert grown.scanned is None


@pytest.mark.usefixtures("scans_are_dear")
def test_an_extension_lets_in_what_the_certificate_needs_and_no_more(rng):
    """A cloud in which two hops lead from every node to every other, so that the longer lists are exact."""
    X = rng.normal(size=(120, 2))
    support = support_of(X, 60)
    nodes = np.arange(0, 120, 2, dtype=np.int32)
    before = support.edges.reach.copy()
    lam = rng.uniform(1.0, 1.5, size=120) * before  # none is certified at θ = 1
    known = set(zip(support.edges.nodes.tolist(), support.edges.indices.tolist(), strict=True))
    grown = extend(support, X, nodes, 1.0, lam).edges
    Z = squared(X)
    allowed = set(zip(grown.nodes.tolist(), grown.indices.tolist(), strict=True))
    assert (grown.reach[nodes] > before[nodes]).all()
    assert (grown.reach <= np.maximum(before, EXTENSION_SLACK * lam)).all()
    cut = nodes[EXTENSION_SLACK * lam[nodes] < np.sort(squared(X), axis=1)[nodes, -1]]  # lists that end before the last sample
    np.testing.assert_allclose(grown.reach[cut], EXTENSION_SLACK * lam[cut])
    for i in nodes.tolist():
        left_out = [j for j in range(120) if j != i and (i, j) not in allowed]
        assert all(Z[i, j] >= grown.reach[i] * (1 - 1e-12) for j in left_out)
    assert all(min(Z[i, j] - grown.reach[i], Z[i, j] - grown.reach[j]) <= 1e-9 for i, j in allowed - known)


def test_how_the_support_grows(rng, monkeypatch):
    """Exact lists are scanned; approximate ones where that is cheap, are extended a few times, and scanned in the end."""
    X = blobs(200, 3, rng)
    support, failing, lam = support_of(X, 5), np.arange(200, dtype=np.int32), np.ones(200)

    def way(extensions, is_exact=False, support=support):
        return Growth(asked_for(X, is_exact=is_exact), support, failing, 1.0, lam, extensions).way

    assert way(0) == "scan"
    monkeypatch.setattr(certify, "CHEAP_SCAN", 0.0)
    assert [way(0), way(certify.MAX_EXTENSIONS - 1), way(certify.MAX_EXTENSIONS)] == ["extend", "extend", "scan"]
    assert way(0, support=support_of(X, 199)) == "scan", "lists of all samples cannot be longer"
    assert way(0, is_exact=True) == "scan"
    monkeypatch.setattr(certify, "DEAR_SCAN", 0.0)
    assert way(certify.MAX_EXTENSIONS) is None
    assert way(certify.MAX_EXTENSIONS, is_exact=True) == "scan"


@pytest.mark.parametrize("locality", [0.0, 1.0])
def test_far_samples_have_all_their_weight_though_their_lists_are_wrong(rng, locality):
    """Approximate lists are worst for the farthest samples: these are compared with all others, whatever their lists say."""
    X = np.concatenate([rng.normal(size=(980, 3)), 12.0 * rng.normal(size=(20, 3))])
    lists = lists_of(X, 16).by_rows().indices.astype(np.int64)
    lists[980:] = rng.integers(0, 980, size=(20, 16))
    options = {"locality": locality, "connect": False, "tol": 1e-9}
    theta = GraphLearner(8, neighbors="all", **options).fit(X).theta_
    given, best = (
        GraphLearner(8, neighbors=how, theta=theta, **options).fit(X) for how in ((lists, np.zeros(lists.shape)), "all")
    )
    fitted, scale = given.solution_.dual, given._rows.__self__.local_scale
    largest = np.argsort(-fitted)[:10]
    assert (largest >= 980).any(), "the far samples are not among those of the largest λ"
    assert not given.proven_
    if locality == 0.0:  # else wrong lists give other local scales, which is another problem
        assert relative_l1(given.graph_[largest], best.graph_[largest]) < 1e-3
    i, j, z = all_pairs(X)
    z = z if scale is None else z * scale[i] * scale[j]
    w = judge.best_weights(fitted, i, j, z, theta)
    of_largest = np.isin(i, largest) | np.isin(j, largest)
    has = np.asarray(given.graph_[i, j]).ravel() > 0
    assert w[of_largest & ~has].sum() < 1e-6 * w[of_largest].sum()
