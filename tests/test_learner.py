"""GraphLearner as its users see it: relations, ways in, scikit-learn, and errors for what makes no sense."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, laplacian
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from conftest import PAPER, at_edges, blobs, edges_of, paper_learner, relative_l1
from cvx import all_pairs, solve_log_model
from smoothgraph import GraphLearner, degree_path, learn_graph
from smoothgraph.models import L2, Daitch, LogProblem, Nearest
from smoothgraph.solvers import solve

DIGITS = load_digits().data


def assert_is_graph(W, n):
    assert isinstance(W, sp.csr_matrix)
    assert W.shape == (n, n)
    assert np.isfinite(W.data).all()
    assert (W.data > 0).all()
    assert W.diagonal().sum() == 0
    assert abs(W - W.T).max() == 0
    assert (np.diff(W.indptr) > 0).all()  # the barrier leaves no node alone
    assert W.indices.dtype == np.int32
    assert W.has_sorted_indices


def test_the_graph_and_its_dual_number_rows_alike(rng):
    """At the optimum of the log model λ is one over the degree. The search has numbers of its own for the samples."""
    learner = paper_learner(5, neighbors="approximate", tol=1e-12).fit(rng.permutation(blobs(3000, 8, rng)))
    assert learner.neighbors_ == "approximate"
    np.testing.assert_allclose(learner.solution_.dual * learner.solution_.weights.sum(axis=1).A1, 1.0, atol=1e-4)


# --- scikit-learn ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["log", L2()], ids=str)
def test_scikit_learn_accepts_it(model):
    because = "fit_transform gives the graph of the samples, transform the rows of samples as new ones, which find themselves"
    check_estimator(
        GraphLearner(n_neighbors=3, model=model),
        expected_failed_checks={"check_transformer_general": because, "check_transformer_data_not_an_array": because},
        on_skip=None,
    )


@pytest.mark.parametrize("model", ["log", L2(), Daitch("soft", mu=2.0), Nearest("gaussian", sigma=3.0)], ids=str)
def test_a_clone_learns_the_same_and_a_refit_too(rng, model):
    X, other = blobs(100, 3, rng), blobs(80, 3, rng)
    learner = GraphLearner(4, model=model, oversampling=2.5)
    copy = clone(learner)
    assert copy is not learner
    assert repr(copy.get_params()) == repr(learner.get_params())
    first = learner.fit(X).graph_.toarray()
    np.testing.assert_array_equal(copy.fit(other).fit(X).graph_.toarray(), first)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_it_works_where_scikit_learn_does():
    labels = load_digits().target
    graph = make_pipeline(StandardScaler(with_std=False), GraphLearner(12)).fit_transform(DIGITS)
    found = SpectralClustering(10, affinity="precomputed", random_state=0, assign_labels="cluster_qr").fit_predict(graph)
    assert adjusted_rand_score(labels, found) > 0.6
    copy = pickle.loads(pickle.dumps(clone(GraphLearner(5)).fit(DIGITS)))
    assert copy.transform(DIGITS[:3]).shape == (3, len(DIGITS))


# --- what is learned ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [2, 10])
def test_what_is_learned_is_a_graph(n_neighbors):
    learner = GraphLearner(n_neighbors).fit(DIGITS)
    assert_is_graph(learner.graph_, len(DIGITS))
    assert learner.n_isolated_ == 0
    assert learner.connect_ == (n_neighbors > 2)  # a tree has nearly two neighbours per node: hardly an edge would be learned
    assert set(learner.seconds_) - {"connect"} == {"copies", "neighbors", "edges", "theta", "solve", "graph"}
    assert ("connect" in learner.seconds_) == learner.connect_
    assert all(seconds >= 0 for seconds in learner.seconds_.values())


@pytest.mark.parametrize("options", [PAPER, {}], ids=["paper", "default"])
def test_a_path_gives_the_graphs_of_single_fits(options):
    path = degree_path(DIGITS, [20, 5, 10], tol=1e-10, **options)
    assert [round(learner.n_neighbors_) for learner in path] == [20, 5, 10]
    for learner in path:
        same = {"locality": learner.locality_, "connect": learner.connect_, "duplicates": learner.duplicates}
        single = GraphLearner(learner.n_neighbors, theta=learner.theta_, tol=1e-10, **same).fit(DIGITS)
        assert relative_l1(learner.graph_, single.graph_) < 1e-4
        assert learner.n_incomplete_ == 0


def test_a_path_of_any_model_searches_once():
    said = []
    path = degree_path(DIGITS, [4, 8], model="knn", verbose=lambda stage, text: said.append((stage, text)))
    assert sum("search" in text for _, text in said) == 1
    for learner in path:
        single = GraphLearner(learner.n_neighbors, model="knn").fit(DIGITS)
        np.testing.assert_array_equal(learner.graph_.toarray(), single.graph_.toarray())


def test_a_degree_that_ties_forbid_is_said():
    side = np.arange(40)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(float)
    with pytest.warns(ConvergenceWarning, match="Wanted 6 neighbours"):
        learner = GraphLearner(6).fit(np.concatenate([grid, grid]))
    assert_is_graph(learner.graph_, 3200)


# --- relations ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [PAPER, {}], ids=["paper", "default"])
def test_permuting_the_samples_permutes_the_graph(rng, options):
    order = rng.permutation(len(DIGITS))
    plain = GraphLearner(8, tol=1e-10, **options).fit(DIGITS)
    same = {"theta": plain.theta_, "locality": plain.locality_, "connect": plain.connect_}
    permuted = GraphLearner(8, tol=1e-10, **same).fit(DIGITS[order])
    assert relative_l1(plain.graph_[order][:, order], permuted.graph_) < 1e-4


@pytest.mark.parametrize("factor", [1e-8, 1e-3, 1e5])
def test_scaling_the_data_scales_theta_and_leaves_the_graph(factor):
    plain, scaled = paper_learner(8, tol=1e-10).fit(DIGITS), paper_learner(8, tol=1e-10).fit(factor * DIGITS)
    assert scaled.theta_ * factor**2 == pytest.approx(plain.theta_, rel=1e-6)
    assert relative_l1(scaled.graph_, plain.graph_) < 1e-4


def test_sparse_float32_and_integers_give_the_graph_of_float64():
    plain = paper_learner(8, tol=1e-10).fit(DIGITS)
    small = DIGITS.astype(np.uint8)
    for X in (sp.csr_matrix(DIGITS), DIGITS.astype(np.float32), small, pd.DataFrame(small).astype({0: np.float32})):
        other = paper_learner(8, tol=1e-10, theta=plain.theta_).fit(X)
        assert relative_l1(other.graph_, plain.graph_) < 1e-4
    assert other.distances_.dtype == np.float32


def test_cosine_is_euclidean_on_the_sphere():
    X = DIGITS / np.linalg.norm(DIGITS, axis=1, keepdims=True)
    assert relative_l1(learn_graph(DIGITS, 8, metric="cosine", tol=1e-10), learn_graph(X, 8, tol=1e-10)) < 1e-4


@pytest.mark.parametrize("scale", ["sum", "laplacian", 3.0])
def test_scale_changes_the_units_and_nothing_else(scale):
    plain, scaled = GraphLearner(8).fit(DIGITS), GraphLearner(8, scale=scale).fit(DIGITS)
    np.testing.assert_allclose(scaled.graph_.data, plain.graph_.data * scaled.scale_, rtol=1e-12)
    if scale == "sum":
        assert scaled.graph_.sum() == pytest.approx(len(DIGITS))
    elif scale == "laplacian":
        assert np.linalg.eigvalsh(laplacian(scaled.graph_).toarray())[-1] == pytest.approx(1.0)
    else:
        assert scaled.graph_.max() <= 3.0


def test_components_are_counted():
    X = np.concatenate([DIGITS[:50], DIGITS[50:100] + 1e4])
    learner = paper_learner(4).fit(X)
    assert learner.n_components_ == connected_components(learner.graph_)[0] >= 2


# --- other ways in --------------------------------------------------------------------------------------------------------


def test_dense_distances_give_the_graph_of_the_samples():
    Z = pairwise_distances(DIGITS[:600], metric="sqeuclidean")
    from_samples = GraphLearner(8, tol=1e-10).fit(DIGITS[:600])
    from_distances = GraphLearner(8, tol=1e-10, metric="precomputed_squared").fit(Z)
    assert from_distances.theta_ == pytest.approx(from_samples.theta_)
    assert relative_l1(from_distances.graph_, from_samples.graph_) < 1e-4


def test_allowed_edges_are_all_there_is(rng):
    """A sensor network: only sensors in range may be linked."""
    places, signals = rng.random((300, 2)), rng.normal(size=(300, 6))
    in_range = pairwise_distances(places) < 0.2
    Z = sp.csr_matrix(np.where(in_range, pairwise_distances(signals, metric="sqeuclidean"), 0.0))
    learner = GraphLearner(5, metric="precomputed_squared").fit(Z)
    assert learner.neighbors_ == "allowed edges"
    assert learner.n_incomplete_ == 0
    assert learner.n_neighbors_ == pytest.approx(5, rel=0.02)
    assert (learner.graph_.toarray()[~in_range] == 0).all()


@pytest.mark.parametrize("options", [PAPER, {}], ids=["paper", "default"])
def test_given_lists_are_used_and_named(options):
    learner = GraphLearner(5, neighbors=KNeighborsTransformer(n_neighbors=15), **options).fit(DIGITS)
    assert learner.neighbors_ == "KNeighborsTransformer"
    same = {"theta": learner.theta_, "locality": learner.locality_, "connect": learner.connect_}
    assert relative_l1(learner.graph_, GraphLearner(5, **same).fit(DIGITS).graph_) < 1e-2


def test_verbose_says_what_was_chosen_and_done(capsys):
    GraphLearner(5, verbose=1).fit(DIGITS)
    printed = capsys.readouterr().out
    for word in ("exact search", "allowed edges", "bounds", "gap", "certified", "components"):
        assert word in printed
    GraphLearner(5).fit(DIGITS)
    assert capsys.readouterr().out == ""


def test_a_callable_hears_every_stage_begin_and_what_it_did():
    said = []
    learner = GraphLearner(5, verbose=lambda stage, text: said.append((stage, text))).fit(DIGITS)
    begun = [stage for stage, text in said if not text]
    assert begun == ["copies", "neighbors", "edges", "theta", "solve", "connect", "graph", "graph"]
    assert list(learner.seconds_) == list(dict.fromkeys(begun))
    assert all(any(at == stage and text for at, text in said) for stage in set(begun))


def test_all_pairs_is_the_complete_graph_problem_and_says_what_it_would_need(rng):
    X = blobs(250, 3, rng)
    some = paper_learner(5, tol=1e-10).fit(X)
    every = paper_learner(5, tol=1e-10, theta=some.theta_, neighbors="all").fit(X)
    assert every.neighbors_ == "all pairs"
    assert every.n_incomplete_ == 0
    assert relative_l1(every.graph_, some.graph_) < 1e-4
    with pytest.raises(ValueError, match="GB"):
        GraphLearner(5, neighbors="all").fit(np.arange(3_000_000, dtype=np.float32)[:, None])


# --- small, degenerate and wrong input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2), (5, 4), (12, 11)])
def test_few_samples_and_all_the_neighbours_there_are(rng, n, k):
    X = rng.normal(size=(n, 3))
    learner = GraphLearner(k, tol=1e-12, theta=1.0).fit(X)
    i, j, z = all_pairs(X)
    expected = solve_log_model(i, j, z, n, 1.0)
    assert relative_l1(at_edges(learner.graph_, i, j), expected) < 1e-6
    assert_is_graph(learner.graph_, n)


def test_two_samples_and_every_neighbour_land_without_theta(rng):
    assert GraphLearner(1).fit(rng.normal(size=(2, 3))).graph_.nnz == 2
    assert GraphLearner(4).fit(rng.normal(size=(5, 3))).n_neighbors_ == 4


def test_duplicates_make_a_graph_without_nan(rng):
    X = np.repeat(rng.normal(size=(100, 3)), 4, axis=0)
    learner = GraphLearner(6).fit(X)
    assert_is_graph(learner.graph_, 400)
    assert learner.graph_.max() <= 1.0


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        ([[0.0, np.nan], [1.0, 2.0]], {}, "NaN"),
        ([[0.0, np.inf], [1.0, 2.0]], {}, "infinity"),
        ([["a", "b"], ["c", "d"]], {}, "could not convert string"),
        (np.empty((0, 3)), {}, "0 sample"),
        (np.empty((3, 0)), {}, r"0 feature"),
        ([[1.0, 2.0]], {}, "1 sample.*minimum of 2"),
        (np.eye(5), {"n_neighbors": 5}, "n_neighbors=5 must be less than the number of samples"),
        (np.eye(5), {"n_neighbors": 0}, "n_neighbors=0"),
        (np.eye(5), {"n_neighbors": 2.5}, "n_neighbors=2.5"),
        (np.ones((30, 3)), {"n_neighbors": 3}, "All 30 rows are equal"),
        (
            np.ones((30, 3)),
            {"n_neighbors": 3, "duplicates": "keep"},
            "All distances .* are 0, .*duplicates='merge'",
        ),
        (np.eye(5), {"duplicates": "drop"}, "duplicates='drop' is not known: use 'merge' or 'keep'"),
        (np.eye(5), {"metric": "manhattan"}, "'manhattan'"),
        (np.eye(5), {"theta": -1.0}, "theta=-1.0"),
        (np.eye(5), {"theta": 1.0, "alpha": 1.0, "beta": 1.0}, "theta alone"),
        (np.eye(5), {"alpha": 1.0}, "alpha and beta together"),
        (np.eye(5), {"alpha": 1.0, "beta": 1.0, "scale": 2.0}, "leave scale=None"),
        (np.eye(5), {"scale": "unit"}, "'unit'"),
        (np.eye(5), {"tol": 0}, "tol=0"),
        (np.eye(5), {"max_weight": np.nan}, "max_weight=nan"),
        (np.eye(5), {"max_iter": 0}, "max_iter=0"),
        (np.eye(5), {"oversampling": 0.5}, "oversampling=0.5"),
        (np.eye(5), {"n_jobs": 0}, "n_jobs=0"),
        (np.eye(5), {"prior_strength": -1}, "prior_strength=-1"),
        (np.eye(5), {"prior": np.eye(4), "prior_strength": 1}, r"prior has shape \(4, 4\)"),
        (np.eye(5), {"prior": np.triu(np.ones((5, 5)), 1), "prior_strength": 1}, "prior is not symmetric"),
        (np.eye(5), {"prior": -np.ones((5, 5)), "prior_strength": 1}, "negative"),
        (
            np.eye(5),
            {"neighbors": (np.roll(np.arange(5), 1)[:, None], None), "n_neighbors": 3},
            "1 entries, n_neighbors=3 needs at least 4",
        ),
        (np.ones((4, 5)), {"metric": "precomputed_squared"}, r"square matrix.*\(4, 5\)"),
        (-np.ones((5, 5)), {"metric": "precomputed_squared"}, "negative.*-1"),
        (
            np.arange(25.0).reshape(5, 5),
            {"metric": "precomputed_squared"},
            r"not symmetric: \(0, 4\) holds 4, \(4, 0\) holds 20",
        ),
        (
            sp.csr_matrix(np.triu(np.ones((5, 5)), 1)),
            {"metric": "precomputed_squared"},
            r"\(0, 1\) holds 1, \(1, 0\) holds nothing",
        ),
        (sp.csr_matrix(np.eye(5)), {"metric": "precomputed_squared"}, "None of the 5 samples has an allowed edge"),
        (
            sp.csr_matrix(np.eye(6)[::-1]),
            {"metric": "precomputed_squared"},
            "n_neighbors=2, but the allowed edges give a node 1 ",
        ),
    ],
)
def test_wrong_input_gets_its_own_error(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        GraphLearner(**{"n_neighbors": 2, **parameters}).fit(X)


def test_wrong_calls_get_their_own_error():
    with pytest.raises(NotFittedError):
        GraphLearner().transform(DIGITS)
    with pytest.raises(ValueError, match="n_neighbors is empty"):
        degree_path(DIGITS, [])
    with pytest.raises(ValueError, match="64"):
        GraphLearner(4).fit(DIGITS[:100]).transform(DIGITS[:5, :10])


def test_a_matrix_that_differs_by_rounding_is_symmetric_enough(rng):
    Z = pairwise_distances(DIGITS[:100].astype(np.float32), metric="sqeuclidean")
    Z[3, 4] *= 1 + 1e-6
    assert_is_graph(learn_graph(Z, 5, metric="precomputed_squared"), 100)


def test_solve_takes_what_the_learner_found():
    learner = paper_learner(6).fit(DIGITS[:300])
    again = solve(LogProblem(edges_of(DIGITS[:300], 299), learner.theta_), tol=1e-10)
    assert relative_l1(learner.graph_, again.weights) < 1e-3
