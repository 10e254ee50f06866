"""Copies that are kept: the model to the letter over all rows, solved over the distinct samples."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

import smoothgraph.learner as learner_module
from conftest import blobs, edges_of, relative_l1
from cvx import all_pairs, solve_log_model
from smoothgraph import GraphLearner, degree_path, memory, plots
from smoothgraph.distances import distances_of
from smoothgraph.edges import edges_of_all_pairs
from smoothgraph.io.exports import edge_distances
from smoothgraph.models import LogProblem
from smoothgraph.parallel import Threads
from smoothgraph.reference import log as judge
from smoothgraph.solvers import solve
from smoothgraph.solvers.nodewise import Nodewise

PAPER = {"duplicates": "keep", "locality": 0.0, "connect": False}


def with_copies(rng, n_distinct=20, d=3, most=8):
    """Rows in random order: every second sample alone, the others in groups of 2 to `most`."""
    sizes = np.where(np.arange(n_distinct) % 2 == 0, 1, rng.integers(2, most + 1, size=n_distinct))
    return rng.permutation(np.repeat(rng.normal(size=(n_distinct, d)), sizes, axis=0))


def over_all_rows(X, theta, max_weight=None):
    """The optimum over all pairs of rows, every row a node of its own."""
    distances = distances_of(X)
    edges = edges_of_all_pairs(distances, threads=Threads(1))
    return solve(LogProblem(edges, theta * distances.z_unit, max_weight), tol=1e-13)


def check_optimal(learner, X, max_weight=np.inf, tol=1e-6):
    """w = clip((λᵢ+λⱼ)/2 − θz, 0, max_weight) for all pairs of rows, and P(w) − D(λ) ≤ n·tol, by the definition."""
    n, lam, theta = len(X), learner.solution_.dual, learner.theta_
    i, j, z = all_pairs(X)
    w = np.asarray(learner.graph_[i, j]).ravel() / learner.scale_
    np.testing.assert_allclose(w, judge.best_weights(lam, i, j, z, theta, max_weight), atol=1e-9 * lam.max())
    objective, dual = judge.objective(w, i, j, z, theta, n), judge.dual_objective(lam, i, j, z, theta, max_weight)
    assert (objective - dual) / n <= tol
    np.testing.assert_allclose(learner.solution_.objective, objective, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(learner.solution_.gap, (objective - dual) / n, rtol=1e-3, atol=1e-12)
    assert (learner.graph_ != learner.graph_.T).nnz == 0
    assert not learner.graph_.diagonal().any()


@pytest.mark.parametrize("theta", [0.02, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("max_weight", [None, 0.2])
def test_groups_have_the_optimum_over_all_rows(theta, max_weight, rng):
    X = with_copies(rng)
    learner = GraphLearner(5, **PAPER, theta=theta, max_weight=max_weight, tol=1e-12).fit(X)
    reference = over_all_rows(X, theta, max_weight)
    assert learner.distances_.n == len(np.unique(X, axis=0)) < len(X) == learner.solution_.dual.size
    assert abs(learner.graph_ - reference.weights).max() < 1e-6
    np.testing.assert_allclose(learner.solution_.objective, reference.objective, rtol=1e-9)
    np.testing.assert_allclose(learner.solution_.dual, reference.dual, rtol=1e-5)
    check_optimal(learner, X, np.inf if max_weight is None else max_weight)


@pytest.mark.parametrize("max_weight", [None, 0.25])
def test_groups_have_the_optimum_that_cvxpy_finds(max_weight, rng):
    X = with_copies(rng, n_distinct=8, most=5)
    learner = GraphLearner(5, **PAPER, theta=0.4, max_weight=max_weight, tol=1e-12).fit(X)
    i, j, z = all_pairs(X)
    expected = solve_log_model(i, j, z, len(X), 0.4, max_weight)
    np.testing.assert_allclose(np.asarray(learner.graph_[i, j]).ravel(), expected, atol=2e-6)


def test_a_group_alone_is_a_clique_with_the_weight_of_its_closed_form(rng):
    """λ·(m−1)·λ = 1, also where all rows are equal."""
    X = np.repeat(rng.normal(size=(2, 3)), [5, 9], axis=0)
    learner = GraphLearner(3, **PAPER, theta=1e3).fit(X)
    expected = np.zeros((14, 14))
    expected[:5, :5], expected[5:, 5:] = 1.0 / np.sqrt(4.0), 1.0 / np.sqrt(8.0)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(learner.graph_.toarray(), expected, rtol=1e-9)
    equal = GraphLearner(3, **PAPER, theta=1.0).fit(np.ones((7, 2)))
    np.testing.assert_allclose(equal.graph_.toarray(), (1.0 - np.eye(7)) / np.sqrt(6.0), rtol=1e-9)
    bounded = GraphLearner(3, **PAPER, theta=1.0, max_weight=0.1).fit(np.ones((7, 2)))
    np.testing.assert_allclose(bounded.graph_.toarray(), 0.1 * (1.0 - np.eye(7)), rtol=1e-9)


def test_the_support_grows_until_all_pairs_of_rows_are_certified(rng):
    X = blobs(400, 3, rng)
    X = rng.permutation(np.concatenate([X, X[:60], X[:60], X[300:330]]))
    learner = GraphLearner(8, **PAPER, oversampling=1.0, tol=1e-9).fit(X)
    assert learner.n_incomplete_ == 0
    check_optimal(learner, X, tol=1e-9)


def test_far_samples_and_copies_together_have_an_optimum(rng):
    """Distances over many orders of magnitude: λ of far samples is counted from an offset, and leaps move what creeps."""
    X = np.round(np.exp(3.0 * rng.normal(size=(400, 2))), 1)
    X = np.concatenate([X, X[:50], np.zeros((12, 2))])
    learner = GraphLearner(6, **PAPER, theta=2.0).fit(X)
    degrees = np.asarray(learner.graph_.sum(axis=1)).ravel()
    assert learner.solution_.gap <= 1e-6
    assert learner.n_isolated_ == 0
    x = degrees * learner.solution_.dual
    assert np.mean(x - 1.0 - np.log(x)) <= 2e-6
    reference = over_all_rows(X, 2.0)
    assert abs(learner.solution_.objective - reference.objective) <= 2e-6 * len(X)


@pytest.mark.parametrize("locality", [0.0, 1.0])
def test_the_wanted_degree_is_that_of_rows(locality, rng):
    X = blobs(900, 4, rng)
    X = np.concatenate([X, X[:200], X[:100]])
    learner = GraphLearner(10, duplicates="keep", locality=locality, connect=False).fit(X)
    assert learner.n_neighbors_ == learner.graph_.nnz / len(X) == pytest.approx(10, rel=0.01)
    np.testing.assert_array_equal(learner.group_sizes_[:3], [3, 3, 3])
    for same in (learner.graph_[0] - learner.graph_[900], learner.graph_[0] - learner.graph_[1100]):
        assert set(same.nonzero()[1]) <= {0, 900, 1100}  # copies have the same row, but for themselves


def test_more_copies_than_neighbours_are_refused_with_the_least_degree(rng):
    X = np.concatenate([rng.normal(size=(50, 3)), np.zeros((50, 3))])
    with pytest.raises(ValueError, match=r"n_neighbors=10, but with duplicates='keep' a row has 25 neighbours"):
        GraphLearner(10, duplicates="keep").fit(X)
    with pytest.raises(ValueError, match="pairs at distance 0 are connected whatever θ is"):
        GraphLearner(3, duplicates="keep").fit(np.ones((9, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one group comes in at once, so that the degree jumps
        assert GraphLearner(30, duplicates="keep").fit(X).n_neighbors_ >= 25


def test_a_large_group_costs_what_one_sample_does(rng):
    X = rng.normal(size=(501, 4))
    edges, work, rounds = edges_of(X, 30), [], []
    for copies in (1, 10_000):
        sizes = np.ones(501, np.int64)
        sizes[-1], sizes[-2] = copies, 2
        solver = Nodewise(Threads(1))
        point = solver.ascend(LogProblem(edges, 0.3, sizes=sizes), 1e-8, 1000)
        assert point.gap <= 1e-8
        assert point.n_rows == 501 + copies
        work.append(solver.work.visits)
        rounds.append(point.n_iter)
    assert work[1] <= 2.0 * work[0]
    assert rounds[1] <= 2 * rounds[0]


def test_cliques_that_do_not_fit_in_memory_are_refused_before_the_search(monkeypatch):
    monkeypatch.setattr(learner_module, "find_neighbors", lambda *_, **__: pytest.fail("it has searched"))
    X = np.zeros((400_000, 1), np.float32)
    X[:10, 0] = np.arange(10)
    with pytest.raises(ValueError, match=r"largest group of which has 399991.*GB of memory.*Use duplicates='merge'"):
        GraphLearner(5, duplicates="keep").fit(X)


def test_blocks_of_copies_that_do_not_fit_are_refused_before_they_are_made(monkeypatch, rng):
    X = np.repeat(rng.normal(size=(6, 2)), 10, axis=0)
    monkeypatch.setattr(memory, "available_memory", lambda: 24.0 * 1000)  # the cliques have 540 entries, all rows 3,540
    with pytest.raises(ValueError, match=r"3.54e\+03 entries"):
        GraphLearner(9, **PAPER, theta=1e-3).fit(X)


def test_without_copies_keep_is_merge_to_the_bit(rng):
    X = blobs(300, 3, rng)
    for parameters in ({}, {"locality": 0.0, "connect": False}, {"max_weight": 0.1}):
        keep, merge = (GraphLearner(8, duplicates=how, **parameters).fit(X) for how in ("keep", "merge"))
        assert (keep.graph_ != merge.graph_).nnz == 0
        np.testing.assert_array_equal(keep.solution_.dual, merge.solution_.dual)
        assert keep.solution_.gap == merge.solution_.gap


@pytest.mark.parametrize("parameters", [{"theta": 0.5}, {"theta": 0.5, "max_weight": 0.02}, {}])
def test_new_samples_have_their_weight_to_every_copy(parameters, rng):
    X, new = with_copies(rng, n_distinct=40), rng.normal(size=(12, 3))
    learner = GraphLearner(8, **PAPER, **parameters).fit(X)
    lam, theta, upper = learner.solution_.dual, learner.theta_, parameters.get("max_weight", np.inf)
    rows = learner.transform(new)
    assert rows.shape == (12, len(X))
    for x, row in zip(new, rows.toarray(), strict=True):
        z = ((x - X) ** 2).sum(axis=1)

        def weights(own, z=z):
            return np.clip(0.5 * (own + lam) - theta * z, 0.0, upper)

        own = brentq(lambda own: own * weights(own).sum() - 1.0, 1e-9, 1e9, xtol=1e-14, rtol=1e-14)
        np.testing.assert_allclose(row, weights(own), atol=1e-8)


def test_bridges_take_all_copies_of_both_ends(rng):
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 50.0])
    X = np.concatenate([X, X[:20], X[30:45]])
    apart = GraphLearner(6, duplicates="keep", locality=0.0, connect=False).fit(X)
    learner = GraphLearner(6, duplicates="keep", locality=0.0, connect=True).fit(X)
    assert apart.n_components_ > 1 == learner.n_components_
    degrees = np.asarray(learner.graph_.sum(axis=1)).ravel()
    np.testing.assert_allclose(degrees * learner.solution_.dual, 1.0, atol=0.05)
    assert learner.solution_.gap <= 1e-6
    bridges = {tuple(pair) for pair in learner.bridges_}
    copies = [np.flatnonzero(learner.copy_of_ == first) for first in learner.copy_of_]
    assert bridges == {(min(a, b), max(a, b)) for i, j in bridges for a in copies[i] for b in copies[j]}
    assert (learner.graph_[learner.bridges_[:, 0], learner.bridges_[:, 1]] > 0).all()


def test_the_graph_does_not_depend_on_the_order_of_rows_or_on_how_distances_come(rng):
    X = with_copies(rng, n_distinct=40)
    parameters = {**PAPER, "theta": 0.5, "tol": 1e-11}
    graph, order = GraphLearner(8, **parameters).fit(X).graph_, rng.permutation(len(X))
    permuted = GraphLearner(8, **parameters).fit(X[order]).graph_
    assert abs(permuted - graph[order][:, order]).max() < 1e-6
    Z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    matrix = GraphLearner(8, **parameters, metric="precomputed_squared").fit(Z)
    assert relative_l1(matrix.graph_, graph) < 1e-5
    assert relative_l1(GraphLearner(8, **parameters, neighbors="all").fit(X).graph_, graph) < 1e-5
    new = rng.normal(size=(3, 3))
    square = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    assert relative_l1(matrix.transform(square), GraphLearner(8, **parameters).fit(X).transform(new)) < 1e-5
    cosine = GraphLearner(8, **parameters, metric="cosine").fit(np.concatenate([X, 2.0 * X[:5]]))
    np.testing.assert_array_equal(cosine.copy_of_[-5:], cosine.copy_of_[:5])


def test_a_path_of_degrees_and_a_scale_work_with_copies(rng):
    X = blobs(400, 3, rng)
    X = np.concatenate([X, X[:60]])
    for learner in degree_path(X, [5, 12], duplicates="keep", scale="sum"):
        assert learner.n_neighbors_ == pytest.approx(learner.n_neighbors, rel=0.02)
        assert learner.graph_.sum() == pytest.approx(len(X))
        assert learner.distances_.n == 400


def test_what_has_no_groups_goes_over_all_rows(rng):
    """A prior, the user's own lists, other models, and allowed edges that are given."""
    X = with_copies(rng)
    n = len(X)
    Z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    lists = np.argsort(Z, axis=1, kind="stable")[:, :20]
    prior = sp.csr_matrix(([1.0, 1.0], ([0, 1], [1, 0])), shape=(n, n))
    for parameters in ({"prior": prior, "prior_strength": 1.0}, {"neighbors": (lists, None)}, {"model": "l2"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner = GraphLearner(9, duplicates="keep", locality=0.0, theta=0.5, **parameters).fit(X)
        assert learner.distances_.n == n
    given = GraphLearner(9, duplicates="keep", theta=0.5, metric="precomputed_squared").fit(sp.csr_matrix(Z + 1.0))
    assert given.distances_.n == n


def test_a_solve_that_is_cut_short_says_its_true_gap(rng):
    X = np.round(np.exp(3.0 * rng.normal(size=(60, 2))), 1)
    X = np.concatenate([X, X[:20], X[:20]])
    with pytest.warns(UserWarning, match="gap"):
        learner = GraphLearner(5, **PAPER, theta=3.0, max_iter=1, tol=1e-12).fit(X)
    i, j, z = all_pairs(X)
    w, lam, n = np.asarray(learner.graph_[i, j]).ravel(), learner.solution_.dual, len(X)
    objective = judge.objective(w, i, j, z, 3.0, n)
    np.testing.assert_allclose(learner.solution_.objective, objective, rtol=1e-9)
    gap = (objective - judge.dual_objective(lam, i, j, z, 3.0)) / n
    assert np.isfinite(gap)
    np.testing.assert_allclose(learner.solution_.gap, gap, rtol=1e-6)
    assert learner.n_isolated_ == 0


def test_distances_of_edges_are_those_of_rows(rng):
    X = with_copies(rng)
    learner = GraphLearner(5, **PAPER, theta=0.5).fit(X)
    stored = edge_distances(learner)
    rows = np.repeat(np.arange(len(X)), np.diff(stored.indptr))
    assert stored.nnz == learner.graph_.nnz
    np.testing.assert_allclose(stored.data, np.linalg.norm(X[rows] - X[stored.indices], axis=1), atol=1e-9)


def test_what_does_not_know_copies_says_so(rng):
    X = with_copies(rng)
    problem = LogProblem(edges_of(np.unique(X, axis=0), 5), 0.5, sizes=np.unique(X, axis=0, return_counts=True)[1])
    assert solve(problem).gap <= 1e-6
    with pytest.raises(ValueError, match="primal_dual"):
        solve(problem, solver="primal_dual")
    with pytest.raises(ValueError, match="Convergence cannot be drawn for copies that are kept"):
        plots.convergence(GraphLearner(5, **PAPER, theta=0.5).fit(X))


def test_a_degree_that_copies_make_unattainable_is_said():
    """An edge of two samples stands for edges of all their copies: one more or less is more than one edge of rows."""
    with pytest.warns(ConvergenceWarning, match="Wanted 1 neighbours per node, the graph has 2"):
        assert GraphLearner(1, duplicates="keep").fit([[1.0], [0.0], [0.0]]).n_neighbors_ == 2.0


def test_lists_and_all_pairs_have_the_same_local_scales_where_copies_leave_few_samples(rng):
    X = np.concatenate([rng.normal(size=(10, 3)), np.zeros((6, 3))])  # 10 others for 14 wanted neighbours
    options = {"duplicates": "keep", "locality": 0.5, "connect": False, "theta": 0.1, "tol": 1e-9}
    by_lists, by_pairs = (GraphLearner(14, neighbors=how, **options).fit(X).graph_ for how in ("exact", "all"))
    np.testing.assert_allclose(by_pairs.toarray(), by_lists.toarray(), atol=1e-8)
