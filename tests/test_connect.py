"""Joining the parts of a graph: judged by Kruskal over all pairs, and by CVXPY given the edges that join."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from conftest import blobs
from cvx import all_pairs, solve_accurately
from smoothgraph import GraphLearner
from smoothgraph.candidates import add_pairs, from_lists
from smoothgraph.certify import Support
from smoothgraph.connect import connect
from smoothgraph.neighbors import ExactBackend, find_neighbors
from smoothgraph.recipe import Joints, Recipe
from smoothgraph.samples import Samples
from smoothgraph.settle import settle
from smoothgraph.theta import node_thetas


def pairs_of_points(rng, count=60):
    """Isolated pairs in the plane: the log barrier leaves them so."""
    centres = 2.0 * np.sqrt(count) * rng.random((count, 2))
    return np.vstack([centres, centres + 0.01 * rng.normal(size=(count, 2))])


@pytest.mark.parametrize(
    "options", [{}, {"locality": 1.0}, {"model": "l2"}, {"complete": False}, {"neighbors": "approximate", "random_state": 0}]
)
def test_one_part_at_the_wanted_degree(options):
    X = blobs(1000, 3, np.random.default_rng(0))
    apart = GraphLearner(3, **options).fit(X)
    assert apart.n_components_ > 1
    assert not apart.joining_edges_.size
    joined = GraphLearner(3, connect=True, **options).fit(X)
    assert joined.n_components_ == 1
    assert joined.n_neighbors_ == pytest.approx(3, rel=0.01)
    assert joined.solution_.gap <= 1e-6
    assert joined.n_incomplete_ == 0 or "complete" in options
    for i, j in joined.joining_edges_:
        assert joined.graph_[i, j] > 0


@pytest.mark.parametrize("small", [1, 3, 10**6])
def test_parts_are_found_whatever_their_size(small, monkeypatch):
    """Those that come off while others are joined, too small or too large for the quick search."""
    monkeypatch.setattr("smoothgraph.connect.SMALL", small)
    joined = GraphLearner(3, connect=True).fit(blobs(1000, 3, np.random.default_rng(0)))
    assert connected_components(joined.graph_, directed=False)[0] == 1
    assert joined.n_incomplete_ == 0


def test_a_connected_graph_is_left_alone(rng):
    X = rng.random((300, 2))
    plain, joined = GraphLearner(12).fit(X), GraphLearner(12, connect=True).fit(X)
    assert plain.n_components_ == 1
    assert not joined.joining_edges_.size
    np.testing.assert_array_equal(plain.graph_.toarray(), joined.graph_.toarray())


@pytest.mark.parametrize("options", [{}, {"locality": 1.0}, {"prior_strength": 1.0}])
def test_a_joining_edge_has_the_smaller_mean_weight_its_ends_had(options):
    X = blobs(400, 3, np.random.default_rng(0))
    if "prior_strength" in options:
        options = {**options, "prior": sp.csr_matrix((400, 400))}
    apart = GraphLearner(3, theta=2.0, tol=1e-12, **options).fit(X).graph_
    joined = GraphLearner(3, theta=2.0, tol=1e-12, connect=True, **options).fit(X)
    means = (apart @ np.ones(400)) / np.diff(apart.indptr)
    i, j = joined.joining_edges_.T
    assert i.size > 10
    np.testing.assert_allclose(np.asarray(joined.graph_[i, j]).ravel(), np.minimum(means[i], means[j]), rtol=1e-4)


def test_a_pair_that_the_model_gives_weight_to_is_no_joining_edge(rng):
    """As may happen to one when others are joined: here it is the nearest pair of all."""
    X, theta = pairs_of_points(rng, 20), 1.0
    samples = Samples(X)
    options = {"samples": samples, "exact": True, "tol": 1e-9, "max_iter": 1000, "say": str}
    nearest = Joints(np.array([0], np.int32), np.array([20], np.int32), np.array([0.05]))
    edges = Support(from_lists(find_neighbors(samples, 5, ExactBackend())), 5)
    settled = settle(edges, theta, None, Recipe().with_joints(nearest), **options)

    def resettle(settled, recipe, changed, certify):
        return settle(settled.support, theta, None, recipe, start=settled, changed=changed, complete=certify, **options)

    settled, recipe = connect(settled, Recipe().with_joints(nearest), samples, None, resettle, str)
    lam, i, j = settled.point.lam, recipe.joints.i, recipe.joints.j
    assert i.size > 5
    assert not np.any((i == 0) & (j == 20))
    assert np.all(theta * ((X[i] - X[j]) ** 2).sum(axis=1) >= 0.5 * (lam[i] + lam[j]))


@pytest.mark.parametrize("options", [{}, {"max_weight": 0.5}, {"locality": 1.0}])
def test_everything_else_is_optimal_given_the_joining_edges(options):
    """CVXPY over all other pairs, with the weights of the joining edges given."""
    X = pairs_of_points(np.random.default_rng(1), 20)
    learner = GraphLearner(2, connect=True, theta=1.0, tol=1e-12, **options).fit(X)
    assert learner.n_components_ == 1
    assert len(learner.joining_edges_) > 3
    n = len(X)
    i, j, z = all_pairs(X)
    square = np.zeros((n, n))
    square[i, j] = square[j, i] = z
    stretch = node_thetas(np.sort(square, axis=1)[:, 1:], 2) ** (learner.locality / 2)
    z = z * stretch[i] * stretch[j]
    W = learner.graph_.toarray()
    joins = {tuple(pair) for pair in learner.joining_edges_.tolist()}
    given = np.array([pair in joins for pair in zip(i.tolist(), j.tolist(), strict=True)])
    w = cp.Variable(len(i), nonneg=True)
    S = np.zeros((n, len(i)))
    S[i, np.arange(len(i))] = S[j, np.arange(len(i))] = 1.0
    limits = [w[given] == W[i, j][given]] + ([w <= options["max_weight"]] if "max_weight" in options else [])
    solve_accurately(cp.Problem(cp.Minimize(2 * z @ w + cp.sum_squares(w) - cp.sum(cp.log(S @ w))), limits))
    assert np.abs(W[i, j] - w.value).sum() < 1e-5 * w.value.sum()


@pytest.mark.parametrize(("n_neighbors", "parts"), [(3, True), (8, False)])
def test_approximate_lists_are_compared_when_the_parts_are_joined(n_neighbors, parts, rng, monkeypatch):
    """Before that nobody is, though some need it; the graph is certified all the same, and if there was one part as well."""
    stages = []

    def noted(*args, **options):
        settled = settle(*args, **options)
        stages.append((settled.support.comparison is not None, settled.failing.size))
        return settled

    monkeypatch.setattr("smoothgraph.learner.settle", noted)
    X = blobs(1000, 3, rng) if parts else rng.normal(size=(600, 8))
    joined = GraphLearner(n_neighbors, connect=True, neighbors="approximate", random_state=0).fit(X)
    compared, failing = stages[0]
    assert not compared
    assert failing > 0
    assert stages[-1] == (True, 0)
    assert joined.n_incomplete_ == 0
    assert parts == (len(joined.joining_edges_) > 0)


@pytest.mark.parametrize("seed", [16, 47, 66, 73])
def test_growing_sees_every_new_edge_beside_the_joining_ones(seed):
    """The duality gap over all pairs, from its definition: λ and w(λ) must be optimal beyond the edges they began with."""
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(14, 2)), 2.0
    i, j = rng.integers(0, 7, 5).astype(np.int32), (7 + rng.permutation(7)[:5]).astype(np.int32)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    samples = Samples(X)
    few = add_pairs(from_lists(find_neighbors(samples, 2, ExactBackend())), i, j, square[i, j])
    recipe = Recipe().with_joints(Joints(i, j, np.full(5, 0.05)))
    options = {"samples": samples, "exact": True, "tol": 1e-9, "max_iter": 1000, "say": str}
    settled = settle(Support(few, 2), theta, None, recipe, **options)
    assert settled.support.candidates.n_edges > few.n_edges
    lam = settled.point.lam
    W = np.maximum(0.0, 0.5 * (lam[:, None] + lam) - theta * square)
    np.fill_diagonal(W, 0.0)
    W[i, j] += 0.05
    W[j, i] += 0.05
    x = W.sum(axis=1) * lam
    assert np.mean(x - 1.0 - np.log(x)) <= 2e-9


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_the_forest_is_the_cheapest_of_all_pairs(strength, rng):
    """Kruskal over all pairs of samples between parts, at the λ of the graph in parts; a prior makes its edges cheaper."""
    X = pairs_of_points(rng, 25)
    prior = np.triu(rng.uniform(0.0, 0.3, size=(50, 50)) * (rng.random((50, 50)) < 0.1), k=1)
    options = {"n_neighbors": 2, "theta": 1.0, "neighbors": "all", "tol": 1e-12}
    options |= {"prior": sp.csr_matrix(prior + prior.T), "prior_strength": strength}
    apart = GraphLearner(**options).fit(X)
    i, j, z = all_pairs(X)
    lam = apart.solution_.dual
    labels = connected_components(apart.graph_, directed=False)[1]
    assert labels.max() > 5
    parent = {part: part for part in range(labels.max() + 1)}

    def root(part):
        while parent[part] != part:
            part = parent[part]
        return part

    chosen = set()
    for e in np.argsort(z - strength * prior[i, j] - 0.5 * (lam[i] + lam[j]), kind="stable"):
        a, b = root(labels[i[e]]), root(labels[j[e]])
        if a != b:
            parent[a] = b
            chosen.add((i[e], j[e]))
    joined = GraphLearner(**options, connect=True).fit(X)
    first = {tuple(sorted(pair)) for pair in joined.joining_edges_[: len(chosen)].tolist()}
    assert first == chosen


def test_far_groups_are_joined_by_a_search(rng):
    """Three clouds whose lists know nothing of each other: two pairs join them, about as near as clouds can be."""
    X = np.vstack([rng.normal(size=(150, 3)) + 1000.0 * c for c in range(3)])
    learner = GraphLearner(5, connect=True).fit(X)
    assert learner.n_components_ == 1
    cloud = np.arange(450) // 150
    between_clouds = [(i, j) for i, j in learner.joining_edges_ if cloud[i] != cloud[j]]
    assert len(between_clouds) == 2
    for i, j in between_clouds:
        between = np.linalg.norm(X[cloud == cloud[i]][:, None] - X[cloud == cloud[j]][None], axis=2)
        assert abs(cloud[i] - cloud[j]) == 1
        assert np.linalg.norm(X[i] - X[j]) < 1.001 * between.min()


def test_allowed_edges_that_do_not_connect_are_a_warning():
    blocks = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 2).tocsr()
    with pytest.warns(UserWarning, match="2 parts"):
        learner = GraphLearner(2, connect=True, metric="precomputed", theta=1.0).fit(blocks)
    assert learner.n_components_ == 2


def test_a_single_allowed_bridge_is_used():
    Z = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 2).tolil()
    Z[0, 7] = Z[7, 0] = 50.0
    learner = GraphLearner(2, connect=True, metric="precomputed", theta=1.0).fit(Z.tocsr())
    assert learner.n_components_ == 1
    assert learner.joining_edges_.tolist() == [[0, 7]]
