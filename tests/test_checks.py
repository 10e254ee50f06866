"""What the learner is given: missing values, priors, matrices of squared distances, tables that are seldom meant so."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import cosine_distances, rbf_kernel
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from conftest import at_edges, blobs, relative_l1
from cvx import solve_l2_model
from smoothgraph import GraphLearner, degree_path

X = blobs(60, 3, np.random.default_rng(0))
GRAPH = GraphLearner(4).fit(X).graph_


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def allowed(Z, edges):
    """A sparse matrix of the squared distances of these pairs alone, a distance of 0 stored."""
    i, j = edges
    return sp.csr_matrix((np.tile(Z[i, j], 2), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=Z.shape)


# --- masked values ----------------------------------------------------------------------------------------------------------


def test_masked_values_are_an_error_as_nan_is():
    masked = np.ma.array(X, mask=np.zeros(X.shape, bool))
    assert (GraphLearner(4).fit(masked).graph_ != GRAPH).nnz == 0  # nothing is masked yet
    masked.mask[[3, 7], 1] = True
    with pytest.raises(ValueError, match=r"X has masked values, 2 of 180.*X\.filled"):
        GraphLearner(4).fit(masked)
    with pytest.raises(ValueError, match="X has masked values, 2 of 180"):
        GraphLearner(4).fit(X).transform(masked)
    with pytest.raises(ValueError, match="X has masked values"):
        degree_path(masked, [3, 4])
    rows = masked[~np.ma.getmaskarray(masked).any(axis=1)]  # as the message says
    assert GraphLearner(4).fit(rows).graph_.shape == (58, 58)


def test_a_masked_prior_is_an_error():
    prior = np.ma.masked_equal(GRAPH.toarray(), 0.0)
    with pytest.raises(ValueError, match=r"prior has masked values.*prior\.filled\(0\)"):
        GraphLearner(4, prior=prior, prior_strength=1.0).fit(X)
    filled = GraphLearner(4, prior=prior.filled(0), prior_strength=1.0).fit(X)
    assert (filled.graph_ != GraphLearner(4, prior=GRAPH, prior_strength=1.0).fit(X).graph_).nnz == 0


# --- the prior --------------------------------------------------------------------------------------------------------------


def test_a_prior_and_its_strength_come_together():
    with pytest.raises(ValueError, match="no effect without prior_strength"):
        GraphLearner(4, prior=GRAPH).fit(X)
    with pytest.raises(ValueError, match=r"prior_strength=2\.0 has no effect without prior"):
        GraphLearner(4, prior_strength=2.0).fit(X)
    # 0 is a strength, such as the first one of a grid.
    nothing = GraphLearner(4, prior=GRAPH, prior_strength=0, theta=1.0, tol=1e-10).fit(X)
    assert relative_l1(nothing.graph_, GraphLearner(4, theta=1.0, tol=1e-10).fit(X).graph_) < 1e-4


@pytest.mark.parametrize("model", ["l2", "hard", "soft", "knn", "knn-gaussian", "knn-self-tuning"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array, sp.csr_matrix.toarray])
def test_a_prior_of_any_kind_does_not_apply_to_models_without_one(model, kind):
    with pytest.raises(ValueError, match=f"prior=a graph does not apply to model='{model}', only to log"):
        GraphLearner(4, model=model, prior=kind(GRAPH), prior_strength=1.0).fit(X)


class PyGSPGraph:
    """As pygsp has it: the matrix is its attribute W."""

    __module__ = "pygsp.graphs.graph"


def test_graphs_of_other_packages_are_refused_with_the_call_that_gives_their_matrix():
    igraph = pytest.importorskip("igraph")
    weighted = nx.from_scipy_sparse_array(GRAPH)
    for graph, call in (
        (weighted, r"nx\.to_scipy_sparse_array\(G"),
        (nx.DiGraph(weighted), r"nx\.to_scipy_sparse_array\(G"),
        (igraph.Graph.Ring(60), r"G\.get_adjacency_sparse"),
        (PyGSPGraph(), r"use G\.W"),
        ("prior.npz", r"prior is a str.*read_graph\(path\)\.W"),
        (3.0, "prior is a float"),
    ):
        with pytest.raises(TypeError, match=call):
            GraphLearner(4, prior=graph, prior_strength=1.0).fit(X)
    followed = nx.to_scipy_sparse_array(weighted, nodelist=range(60))
    expected = GraphLearner(4, prior=GRAPH, prior_strength=1.0).fit(X).graph_
    assert relative_l1(GraphLearner(4, prior=followed, prior_strength=1.0).fit(X).graph_, expected) < 1e-12


def test_edges_of_a_prior_must_be_among_the_allowed_ones():
    Z = squared_distances(X)
    Z[:3, :3] = 0.0  # a stored 0 is an allowed edge
    i, j = np.triu_indices(60, 1)
    some = (j - i < 20) & ~((i == 5) & (j == 9))
    S = allowed(Z, (i[some], j[some]))
    options = {"metric": "precomputed_squared", "theta": 0.1, "prior_strength": 100.0}

    def prior_on(*pairs):
        P = sp.lil_matrix((60, 60))
        for a, b in pairs:
            P[a, b] = P[b, a] = 0.5
        return P

    inside = GraphLearner(4, prior=prior_on((0, 1), (5, 10)), **options).fit(S)
    assert inside.graph_[5, 10] > GraphLearner(4, metric="precomputed_squared", theta=0.1).fit(S).graph_[5, 10]
    with pytest.raises(ValueError, match=r"prior has 2 edges that are not allowed.*the first is \(5, 9\)"):
        GraphLearner(4, prior=prior_on((0, 1), (30, 55), (5, 9)), **options).fit(S)
    GraphLearner(4, prior=prior_on((30, 55), (5, 9)), **options).fit(Z)  # of a dense matrix every pair is allowed


def test_a_wrong_prior_is_said_before_the_search():
    said = []
    with pytest.raises(ValueError, match="prior has shape"):
        GraphLearner(4, prior=GRAPH[:5], prior_strength=1.0, verbose=lambda *text: said.append(text)).fit(X)
    assert not said


# --- the largest weight -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, 0.3, 1.0, 7.0, "sum", "laplacian"])
@pytest.mark.parametrize("connect", [False, True])
def test_no_weight_is_above_max_weight_whatever_the_scale(scale, connect):
    learner = GraphLearner(4, max_weight=0.1, scale=scale, connect=connect)
    if isinstance(scale, str):
        with pytest.raises(ValueError, match=rf"max_weight=0\.1.*scale='{scale}'.*multiply the graph"):
            learner.fit(X)
    else:
        W = learner.fit(X)
        assert W.graph_.max() <= 0.1 * (1 + 1e-12)
        assert W.transform(X + 1e-3).max() <= 0.1 * (1 + 1e-12)


# --- matrices of squared distances ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_rounding_leaves_of_a_gram_matrix_is_no_error(dtype, rng):
    points = np.repeat(blobs(40, 5, rng), 2, axis=0).astype(dtype) + dtype(3.0)  # copies, whose distances round to either side
    norms = (points**2).sum(axis=1)
    Z = norms[:, None] + norms[None] - 2.0 * (points @ points.T)
    Z[0, 1] = -4.0 * np.finfo(dtype).eps * Z.max()  # on this machine rounding may have left none
    Z[1, 0] = -Z[0, 1]
    Z[2, 2] = -Z[1, 0]
    assert Z.min() < 0 < Z.diagonal().max()
    options = {
        "metric": "precomputed_squared",
        "theta": 0.05,
        "tol": 1e-9,
        "duplicates": "keep",
    }  # copies that rounding has parted
    learner = GraphLearner(6, **options).fit(Z)
    expected = GraphLearner(6, **options).fit(squared_distances(points.astype(float)))
    assert relative_l1(learner.graph_, expected.graph_) < 1e-3
    every = np.repeat(np.arange(5), 80), np.tile(np.arange(80), 5)
    for new in (Z[:5], sp.csr_matrix((Z[:5].ravel(), every), shape=(5, 80))):
        assert relative_l1(learner.transform(new), expected.transform(np.maximum(Z[:5], 0.0))) < 1e-3


def test_what_is_really_negative_stays_an_error():
    Z = squared_distances(X)
    learner = GraphLearner(4, metric="precomputed_squared").fit(Z)
    Z[3, 4] = Z[4, 3] = -1e-6 * Z.max()
    for kind in (np.asarray, sp.csr_matrix):
        with pytest.raises(ValueError, match=r"cannot be negative.*np\.maximum"):
            GraphLearner(4, metric="precomputed_squared").fit(kind(Z))
        with pytest.raises(ValueError, match="cannot be negative"):
            learner.transform(kind(Z[:5]))
    Z[3, 4], Z[4, 3] = -1e-14 * Z.max(), 1.0  # the other one says that there is a distance
    with pytest.raises(ValueError, match=r"not symmetric: \(3, 4\) holds 0, \(4, 3\) holds 1"):
        GraphLearner(4, metric="precomputed_squared").fit(Z)


def test_similarities_are_told_from_distances_by_their_diagonal():
    with pytest.warns(UserWarning, match=r"diagonal.*\(0, 0\) holds 1.*similarities"):
        GraphLearner(4, metric="precomputed_squared").fit(rbf_kernel(X, gamma=0.01))
    Z = squared_distances(X)
    other = Z + 1e-13 * np.eye(60)
    plain = GraphLearner(4, metric="precomputed_squared").fit(Z)
    assert (GraphLearner(4, metric="precomputed_squared").fit(other).graph_ != plain.graph_).nnz == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_are_distances_as_in_scikit_learn(kind, dtype):
    """The graph of distances is that of their squares, which have a name of their own; so are rows for new samples."""
    D = np.sqrt(squared_distances(X)).astype(dtype)
    given = kind(D)
    untouched = given.copy()
    distances = GraphLearner(4, metric="precomputed", tol=1e-9).fit(given)
    squares = GraphLearner(4, metric="precomputed_squared", tol=1e-9).fit(kind(D**2))
    assert abs(given - untouched).max() == 0.0
    assert relative_l1(distances.graph_, squares.graph_) < 1e-12
    assert distances.theta_ == pytest.approx(squares.theta_, rel=1e-12)
    for new in (np.asarray, sp.csr_matrix):
        assert relative_l1(distances.transform(new(D[:7] + 1)), squares.transform(new((D[:7] + 1) ** 2))) < 1e-12
    samples = GraphLearner(4, tol=1e-9).fit(X)
    if kind is np.asarray:
        assert relative_l1(distances.graph_, samples.graph_) < (1e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("factor", [2.0**-490, 2.0**490])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_distances_may_be_as_large_as_their_squares_are_numbers(factor, kind):
    D = np.sqrt(squared_distances(X))
    plain, scaled = (GraphLearner(4, metric="precomputed").fit(kind(c * D)) for c in (1.0, factor))
    assert relative_l1(scaled.graph_, plain.graph_) < 1e-9
    assert relative_l1(scaled.transform(factor * D[:5]), plain.transform(D[:5])) < 1e-9
    with pytest.raises(ValueError, match=r"values up to 1e.*Rescale"):
        GraphLearner(4, metric="precomputed").fit(kind(D / D.max() * 1e200))


def in_range(Z, radius):
    i, j = np.nonzero(radius >= Z)
    return sp.csr_matrix((Z[i, j], (i, j)), shape=Z.shape)


def test_squares_that_are_given_as_distances_are_warned_of():
    Z = squared_distances(X)
    with pytest.warns(UserWarning, match=r"no distances of a metric: \(\d+, \d+\) holds .*metric='precomputed_squared'"):
        GraphLearner(4, metric="precomputed").fit(Z)
    near = in_range(Z, np.quantile(Z, 0.7))
    with pytest.warns(UserWarning, match=r"precomputed_squared"):
        GraphLearner(4, model="l2", metric="precomputed").fit(near)
    with pytest.warns(UserWarning, match=r"precomputed_squared"):
        GraphLearner(4, metric="precomputed").fit(cosine_distances(rng_table(60, 3)))


def rng_table(n, d):
    return np.random.default_rng(5).normal(size=(n, d))


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev", "canberra", "jaccard"])
def test_distances_of_metrics_are_not_warned_of(metric):
    tables = [X, rng_table(100, 40), np.repeat(X[:20], 3, axis=0)]
    for table in tables:
        D = pairwise_distances(table > 0 if metric == "jaccard" else table, metric=metric)
        for given in (D, D.astype(np.float32), in_range(D, np.quantile(D, 0.6))):
            said = warnings_of(GraphLearner(2, model="l2", metric="precomputed"), given)
            assert not any("no distances of a metric" in text for text in said)


@pytest.mark.parametrize("theta", [None, 0.2, 1.0])
def test_the_l2_model_leaves_samples_without_allowed_edges_alone(theta):
    Z = squared_distances(X)
    i, j = np.triu_indices(60, 1)
    some = (Z[i, j] < 4.0) & (i != 7) & (j != 7) & (i != 0) & (j != 59)
    i, j = i[some], j[some]
    S = allowed(Z, (i, j))
    learner = GraphLearner(2, model="l2", metric="precomputed_squared", theta=theta, tol=1e-12).fit(S)
    expected = solve_l2_model(i, j, Z[i, j], 60, 0.5 / learner.theta_)
    assert np.abs(at_edges(learner.graph_, i, j) - expected).sum() < 1e-5 * 60
    assert learner.n_isolated_ >= np.count_nonzero(np.diff(S.indptr) == 0) >= 3
    assert learner.solution_.gap <= 1e-12
    with pytest.raises(ValueError, match=r"Sample 0 has no allowed edge.*model='l2'"):
        GraphLearner(2, metric="precomputed_squared", theta=theta).fit(S)


# --- tables that are seldom meant as they are -------------------------------------------------------------------------------


def test_distances_without_their_metric_are_warned_of():
    D = np.sqrt(squared_distances(X))
    for table in (D, D.astype(np.float32), pd.DataFrame(D), sp.csr_matrix(D), D * (1 + 1e-9 * np.triu(D))):
        with pytest.warns(UserWarning, match=r"metric='precomputed'"):
            GraphLearner(4).fit(table)


def warnings_of(learner, table):
    """What a fit warns of, as texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(table)
    return [str(warning.message) for warning in caught]


def test_other_square_tables_are_not():
    D = np.sqrt(squared_distances(X))
    D[3, 4] *= 2.0
    for table in (D, np.corrcoef(X), D[:30], D - D.mean(), sp.random(60, 60, density=0.2, random_state=0).tocsr()):
        assert warnings_of(GraphLearner(4), table) == []
    assert warnings_of(GraphLearner(1), np.array([[0.0, 1.0], [1.0, 0.0]])) == []  # a one-hot table


def named(table):
    return pd.DataFrame(table, columns=[f"c{j}" for j in range(table.shape[1])])


def test_a_column_that_is_nearly_all_of_the_distance_is_named_once():
    raw = load_wine(as_frame=True).data  # proline, in the hundreds, among percentages
    with pytest.warns(UserWarning, match=r"Column 'proline' makes up 99.* %.*the other 12.*StandardScaler") as caught:
        GraphLearner(5).fit(raw)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=r"Column 12 \(counted from 0\)") as caught:
        degree_path(raw.to_numpy(), [3, 5])
    assert len(caught) == 1
    GraphLearner(5).fit(StandardScaler().fit_transform(raw))


@pytest.mark.parametrize("factor", [1e-60, 1.0, 1e60])
def test_the_share_of_a_column_does_not_depend_on_the_scale_of_all(factor):
    table = X * [1.0, 100.0, 1.0]
    with pytest.warns(UserWarning, match="Column 'c1'"):
        GraphLearner(4).fit(named(table * factor))


def test_the_share_is_that_of_the_mean_squared_distances():
    """The warning comes just above 95 % of the variance, and does not just below."""
    table = np.random.default_rng(1).uniform(-1, 1, size=(400, 4))
    table /= np.clip(table, *np.quantile(table, [0.05, 0.95], axis=0)).std(axis=0)
    for share, is_warned in ((0.93, False), (0.97, True)):
        scaled = table * [np.sqrt(3.0 * share / (1.0 - share)), 1.0, 1.0, 1.0]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            GraphLearner(4).fit(scaled)
        assert any("Column 0" in str(warning.message) for warning in caught) == is_warned


def test_ordinary_tables_are_not_warned_of(rng):
    """Columns of one unit; one-hot tables, counts, two columns; one wrong value; columns that hardly vary."""
    codes = rng.choice(4, size=(200, 3), p=[0.9, 0.05, 0.04, 0.01])
    wrong = rng.normal(size=(200, 3))
    wrong[17, 1] = 1e4
    rare = np.column_stack([rng.random(200) < 0.5, *(rng.random((30, 200)) < 0.001)]).astype(float)
    for table in (
        load_iris().data,
        OneHotEncoder(sparse_output=False).fit_transform(codes),
        rng.poisson(rng.gamma(2.0, size=8), size=(200, 8)),
        rng.normal(size=(200, 2)) * [1.0, 1000.0],
        wrong,
        rare,
    ):
        assert warnings_of(GraphLearner(4, model="knn"), named(table)) == []


@pytest.mark.parametrize("prior", [GRAPH.astype(complex), GRAPH.toarray().astype(complex)])
def test_a_complex_prior_is_refused_and_called_so(prior):
    with pytest.raises(ValueError, match="complex"):
        GraphLearner(4, prior=prior, prior_strength=1.0).fit(X)


@pytest.mark.parametrize(("max_weight", "scale"), [(1e-300, None), (9e-9, None), (1e-3, 1e6)])
def test_a_max_weight_without_digits_is_refused(max_weight, scale):
    with pytest.raises(ValueError, match=r"max_weight=.*too small for a graph with δ"):
        GraphLearner(3, max_weight=max_weight, scale=scale).fit(np.random.default_rng(0).normal(size=(30, 3)))


def test_the_smallest_max_weight_gives_a_graph_of_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # with so small a bound nearly all pairs are neighbours
        learner = GraphLearner(3, max_weight=1e-8).fit(np.random.default_rng(0).normal(size=(30, 3)))
    assert np.isfinite(learner.graph_.data).all()
    assert 0.0 < learner.graph_.data.max() <= 1e-8
    assert learner.solution_.gap < 1e-6


@pytest.mark.parametrize("parameters", [{"alpha": 1e-320, "beta": 1e-320}, {"model": "l2", "alpha": 1e-320}])
def test_alpha_and_beta_beyond_numbers_are_refused(parameters):
    with pytest.raises(ValueError, match=r"alpha=1e-320.*give θ = inf"):
        GraphLearner(3, **parameters).fit(np.random.default_rng(0).normal(size=(30, 3)))


@pytest.mark.parametrize("tol", [1, 1.5, 10**20])
def test_a_tolerance_that_asks_for_nothing_is_refused(tol):
    with pytest.raises(ValueError, match=r"tol=.*must be below 1"):
        GraphLearner(3, tol=tol).fit(np.random.default_rng(0).normal(size=(30, 3)))


def test_alpha_and_beta_far_apart_scale_the_graph_by_a_number():
    X = np.random.default_rng(0).normal(size=(30, 3))
    far, near = (GraphLearner(3, alpha=alpha, beta=1 / alpha).fit(X).graph_ for alpha in (1e300, 1.0))
    np.testing.assert_allclose(far.toarray() / 1e300, near.toarray(), rtol=1e-9)
