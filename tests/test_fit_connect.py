"""Connecting the components of a graph: judged by Kruskal over all pairs, and by CVXPY given the bridges."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from conftest import asked_for, at_edges, blobs, paper_learner, support_of
from cvx import all_pairs, incidence, solve_accurately
from smoothgraph import GraphLearner
from smoothgraph._kernels import components
from smoothgraph.distances import distances_of
from smoothgraph.fit.connect import connect
from smoothgraph.fit.solve_certified import solve_certified
from smoothgraph.fit.state import Asked, Bridges, Support
from smoothgraph.models import Log
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads
from smoothgraph.theta import node_thetas


def pairs_of_points(rng, count=60):
    """Isolated pairs in the plane: the log barrier leaves them so."""
    centres = 2.0 * np.sqrt(count) * rng.random((count, 2))
    return np.vstack([centres, centres + 0.01 * rng.normal(size=(count, 2))])


@pytest.mark.parametrize("n_costs", [3, 10_000])
def test_a_spanning_forest_of_least_cost(rng, n_costs):
    """Of many equal costs too. SciPy's forest has the same cost and connects the same nodes; pairs may come twice."""
    n, cost = 500, rng.permutation(10_000)[:900] % n_costs + 1.0
    i, j = rng.integers(0, 480, size=(2, 900)).astype(np.int32)
    chosen = components.spanning_forest(i, j, cost, n)
    cheapest = np.full((n, n), np.inf)
    np.minimum.at(cheapest, (i, j), cost)
    pairs = sp.csr_matrix(np.where(np.isinf(cheapest), 0.0, cheapest))
    cheapest = np.minimum(cheapest, cheapest.T)
    np.fill_diagonal(cheapest, np.inf)
    forest = minimum_spanning_tree(sp.csr_matrix(np.where(np.isinf(cheapest), 0.0, cheapest)))
    assert cost[chosen].sum() == forest.sum()
    assert chosen.size == forest.nnz
    own = sp.coo_matrix((np.ones(chosen.size), (i[chosen], j[chosen])), shape=(n, n))
    np.testing.assert_array_equal(connected_components(own, False)[1], connected_components(pairs, False)[1])


@pytest.mark.parametrize(
    "options",
    [
        {"locality": 0.0},
        {"locality": 1.0},
        {"model": "l2"},
        {"locality": 0.0, "complete": False},
        {"locality": 0.0, "neighbors": "approximate", "random_state": 0},
    ],
)
def test_one_component_at_the_wanted_degree(options):
    X = blobs(1000, 3, np.random.default_rng(0))
    apart = GraphLearner(3, connect=False, **options).fit(X)
    assert apart.n_components_ > 1
    assert not apart.bridges_.size
    connected = GraphLearner(3, connect=True, **options).fit(X)
    assert connected.n_components_ == 1
    assert connected.n_neighbors_ == pytest.approx(3, rel=0.01)
    assert connected.solution_.gap <= 1e-6
    assert connected.n_incomplete_ == 0 or "complete" in options
    for i, j in connected.bridges_:
        assert connected.graph_[i, j] > 0


@pytest.mark.parametrize("small", [1, 3, 10**6])
def test_components_are_found_whatever_their_size(small, monkeypatch):
    """Those that come off while others are connected, too small or too large for the quick search."""
    monkeypatch.setattr("smoothgraph.fit.connect.SMALL_COMPONENT", small)
    connected = GraphLearner(3, connect=True).fit(blobs(1000, 3, np.random.default_rng(0)))
    assert connected_components(connected.graph_, directed=False)[0] == 1
    assert connected.n_incomplete_ == 0


def test_a_connected_graph_is_left_alone(rng):
    X = rng.random((300, 2))
    plain, connected = (GraphLearner(12, connect=connect).fit(X) for connect in (False, True))
    assert plain.n_components_ == 1
    assert not connected.bridges_.size
    np.testing.assert_array_equal(plain.graph_.toarray(), connected.graph_.toarray())


@pytest.mark.parametrize("options", [{}, {"locality": 1.0}, {"prior_strength": 1.0}])
def test_a_bridge_has_the_smaller_mean_weight_its_ends_had(options):
    X = blobs(400, 3, np.random.default_rng(0))
    if "prior_strength" in options:
        options = {**options, "prior": sp.csr_matrix((400, 400))}
    apart = GraphLearner(3, theta=2.0, tol=1e-12, **options).fit(X).graph_
    connected = GraphLearner(3, theta=2.0, tol=1e-12, connect=True, **options).fit(X)
    means = (apart @ np.ones(400)) / np.diff(apart.indptr)
    i, j = connected.bridges_.T
    assert i.size > 10
    np.testing.assert_allclose(at_edges(connected.graph_, i, j), np.minimum(means[i], means[j]), rtol=1e-4)


def test_a_pair_that_the_model_gives_weight_to_is_no_bridge(rng):
    """As may happen to one when others are connected: here it is the nearest pair of all."""
    X, theta = pairs_of_points(rng, 20), 1.0
    asked = asked_for(X, tol=1e-9)
    nearest = Bridges(np.array([0], np.int32), np.array([20], np.int32), np.array([0.05]))
    state = connect(asked, solve_certified(asked, support_of(X, 5), theta, bridges=nearest))
    lam, i, j = state.point.lam, state.bridges.i, state.bridges.j
    assert i.size > 5
    assert not np.any((i == 0) & (j == 20))
    assert np.all(theta * ((X[i] - X[j]) ** 2).sum(axis=1) >= 0.5 * (lam[i] + lam[j]))


@pytest.mark.parametrize("options", [{}, {"max_weight": 0.5}, {"locality": 1.0}])
def test_everything_else_is_optimal_given_the_bridges(options):
    """CVXPY over all other pairs, with the weights of the bridges given."""
    X = pairs_of_points(np.random.default_rng(1), 20)
    learner = GraphLearner(2, connect=True, theta=1.0, tol=1e-12, **options).fit(X)
    assert learner.n_components_ == 1
    assert len(learner.bridges_) > 3
    n = len(X)
    i, j, z = all_pairs(X)
    square = np.zeros((n, n))
    square[i, j] = square[j, i] = z
    scale = node_thetas(np.sort(square, axis=1)[:, 1:], 2) ** (learner.locality_ / 2)
    z = z * scale[i] * scale[j]
    W = at_edges(learner.graph_, i, j)
    bridges = {tuple(pair) for pair in learner.bridges_.tolist()}
    given = np.array([pair in bridges for pair in zip(i.tolist(), j.tolist(), strict=True)])
    w = cp.Variable(len(i), nonneg=True)
    limits = [w[given] == W[given]] + ([w <= options["max_weight"]] if "max_weight" in options else [])
    energy = 2 * z @ w + cp.sum_squares(w) - cp.sum(cp.log(incidence(i, j, n) @ w))
    solve_accurately(cp.Problem(cp.Minimize(energy), limits))
    assert np.abs(W - w.value).sum() < 1e-5 * w.value.sum()


@pytest.mark.parametrize(("n_neighbors", "apart"), [(3, True), (8, False)])
def test_approximate_lists_are_scanned_when_the_components_are_connected(n_neighbors, apart, rng):
    """Before that no node is, though some need it; the graph is certified all the same, and if it had one component as well."""
    X = blobs(1000, 3, rng) if apart else rng.normal(size=(600, 8))
    threads, width = Threads(), 3 * n_neighbors
    found = find_neighbors(distances_of(X), width, "approximate", random_state=0, threads=threads)
    asked = Asked(Log(), Log().solver(threads), distances_of(X).numbered(found.numbering), degree=n_neighbors, threads=threads)
    first = solve_certified(asked, Support.of(found.edges(threads=threads), width, threads=threads), 1.0, may_scan=False)
    assert first.support.scanned is None
    assert first.failing.size > 0
    last = connect(asked, first)
    assert last.support.scanned.any()
    assert not last.failing.size
    assert apart == (last.bridges.count > 0)


@pytest.mark.parametrize(("n_neighbors", "apart"), [(3, True), (8, False)])
def test_the_learner_leaves_scans_of_approximate_lists_to_connect(n_neighbors, apart, rng):
    X, said = blobs(1000, 3, rng) if apart else rng.normal(size=(600, 8)), []
    options = {"neighbors": "approximate", "random_state": 0, "verbose": lambda stage, text: said.append((stage, text))}

    def certified(stage):
        return [int(text.split()[-3]) for at, text in said if at == stage and text.endswith("nodes certified")]

    plain = paper_learner(n_neighbors, **options).fit(X)
    assert plain.n_incomplete_ == 0
    assert certified("solve")[-1] == len(X)
    said.clear()
    connected = paper_learner(n_neighbors, connect=True, **options).fit(X)
    assert certified("solve")[-1] < len(X)
    assert certified("connect")[-1] == len(X)
    assert connected.n_incomplete_ == 0
    assert apart == (len(connected.bridges_) > 0)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_the_forest_is_the_cheapest_of_all_pairs(strength, rng):
    """Kruskal over all pairs of samples between components, at the λ before any bridge; a prior makes its edges cheaper."""
    X = pairs_of_points(rng, 25)
    prior = np.triu(rng.uniform(0.0, 0.3, size=(50, 50)) * (rng.random((50, 50)) < 0.1), k=1)
    options = {"n_neighbors": 2, "theta": 1.0, "neighbors": "all", "tol": 1e-12}
    options |= {"prior": sp.csr_matrix(prior + prior.T), "prior_strength": strength}
    apart = GraphLearner(**options).fit(X)
    i, j, z = all_pairs(X)
    lam = apart.solution_.dual
    labels = connected_components(apart.graph_, directed=False)[1]
    assert labels.max() > 5
    parent = {component: component for component in range(labels.max() + 1)}

    def root(component):
        while parent[component] != component:
            component = parent[component]
        return component

    chosen = set()
    for e in np.argsort(z - strength * prior[i, j] - 0.5 * (lam[i] + lam[j]), kind="stable"):
        a, b = root(labels[i[e]]), root(labels[j[e]])
        if a != b:
            parent[a] = b
            chosen.add((i[e], j[e]))
    connected = GraphLearner(**options, connect=True).fit(X)
    first = {tuple(sorted(pair)) for pair in connected.bridges_[: len(chosen)].tolist()}
    assert first == chosen


@pytest.mark.parametrize("locality", [0.0, None])
def test_far_groups_are_connected_by_a_search(rng, locality):
    """Three clouds whose lists know nothing of each other: two pairs connect them, about as near as clouds can be.

    With locality that is near in the distances that count.
    """
    X = np.vstack([rng.normal(size=(150, 3)) + 1000.0 * c for c in range(3)])
    learner = GraphLearner(5, connect=True, locality=locality).fit(X)
    assert learner.n_components_ == 1
    cloud = np.arange(450) // 150
    between_clouds = [(i, j) for i, j in learner.bridges_ if cloud[i] != cloud[j]]
    assert len(between_clouds) == 2
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    own = node_thetas(np.sort(distance**2, axis=1)[:, 1:], 5) ** (learner.locality_ / 4)
    distance *= own[:, None] * own
    for i, j in between_clouds:
        assert abs(cloud[i] - cloud[j]) == 1
        assert distance[i, j] < 1.001 * distance[cloud == cloud[i]][:, cloud == cloud[j]].min()


def test_allowed_edges_that_do_not_connect_are_a_warning():
    blocks = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 2).tocsr()
    with pytest.warns(UserWarning, match="2 components"):
        learner = GraphLearner(2, connect=True, metric="precomputed_squared", theta=1.0).fit(blocks)
    assert learner.n_components_ == 2


def test_a_single_allowed_bridge_is_used():
    Z = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 2).tolil()
    Z[0, 7] = Z[7, 0] = 50.0
    learner = GraphLearner(2, connect=True, metric="precomputed_squared", theta=1.0).fit(Z.tocsr())
    assert learner.n_components_ == 1
    assert learner.bridges_.tolist() == [[0, 7]]
