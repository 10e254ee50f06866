"""Copies: found as np.unique finds them, merged before anything is learned, and hung on the first of their group."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import pairwise_distances

from conftest import blobs, paper_learner
from smoothgraph import GraphLearner, degree_path
from smoothgraph import copies as module
from smoothgraph.copies import Copies, find_copies, no_copies
from smoothgraph.io.exports import edge_distances, to_networkx
from smoothgraph.models import Log
from smoothgraph.parallel import Threads
from smoothgraph.uses import label_propagation


def first_of(X):
    """For each row the first that is equal to it, by np.unique; −0 is 0."""
    _, first, group = np.unique(np.asarray(X) + 0.0, axis=0, return_index=True, return_inverse=True)
    return first[group.ravel()]


def rows_with_copies(rng, n=120, repeated=40):
    """Distinct samples in random order, some of them several times; and the number of each row's sample."""
    distinct = blobs(n, 3, rng)
    sample = rng.permutation(np.concatenate([np.arange(n), rng.integers(n, size=repeated)]))
    return distinct[sample], sample


def assert_hung(learner, weight):
    """Every copy has one edge, of this weight, to the first of its group."""
    copy_of, W = learner.copy_of_, learner.graph_
    copies = np.flatnonzero(copy_of != np.arange(copy_of.size))
    assert copies.size > 0
    assert (abs(W - W.T)).nnz == 0
    np.testing.assert_array_equal(np.diff(W[copies].indptr), 1)
    np.testing.assert_array_equal(W[copies].indices, copy_of[copies])
    np.testing.assert_allclose(W[copies].data, weight, rtol=1e-12)


def among_first(learner):
    """The graph between the first rows of the groups."""
    first = np.unique(learner.copy_of_)
    return learner.graph_[first][:, first]


def assert_same_bits(W, other):
    assert W.shape == other.shape
    assert abs(W - other).nnz == 0


# --- which rows are copies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_copies_are_those_of_unique_rows(rng, dtype, kind, n_jobs):
    """Small whole numbers of both signs, with zeros of both: rows are equal where all of their values are."""
    X = rng.integers(-1, 2, size=(3000, 6)).astype(dtype)
    X[rng.random(X.shape) < 0.2] = -0.0
    found = find_copies(kind(X), threads=Threads(n_jobs))
    np.testing.assert_array_equal(found.copy_of, first_of(X))
    np.testing.assert_array_equal(found.first, np.unique(first_of(X)))
    np.testing.assert_array_equal(found.sizes[found.sample_of], (first_of(X)[:, None] == first_of(X)).sum(axis=1))
    np.testing.assert_array_equal(found.distinct(X, threads=Threads(n_jobs)), X[found.first])


def test_zeros_that_are_stored_and_entries_in_parts_are_values_like_others():
    stored = sp.csr_matrix(
        (np.array([1.0, 0.0, 1.0, 0.5, 0.5]), np.array([0, 2, 0, 0, 0]), np.array([0, 2, 3, 5])), shape=(3, 3)
    )
    assert find_copies(stored, threads=Threads(1)).copy_of.tolist() == [0, 0, 0]
    assert stored.nnz == 5  # what was given is as it was


def test_rows_that_differ_in_the_last_bit_are_not_copies(rng):
    X = rng.normal(size=(200, 3))
    found = find_copies(np.concatenate([X, np.nextafter(X, np.inf), X]), threads=Threads(1))
    np.testing.assert_array_equal(found.copy_of, np.concatenate([np.arange(400), np.arange(200)]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_with_the_same_hash_are_compared(rng, kind, monkeypatch):
    """All rows have one hash here: the values decide."""
    monkeypatch.setattr(module, "_hashes", lambda X, threads: np.zeros(X.shape[0], np.uint64))
    X = rng.integers(0, 2, size=(60, 4)).astype(float)
    np.testing.assert_array_equal(find_copies(kind(X), threads=Threads(1)).copy_of, first_of(X))


def test_a_graph_of_rows_becomes_one_of_distinct_samples(rng):
    found = Copies(np.array([0, 1, 3]), np.array([0, 1, 0, 2, 1]))
    A = np.zeros((5, 5))
    for i, j, w in ((0, 2, 9.0), (0, 1, 1.0), (2, 4, 3.0), (3, 4, 2.0)):  # the first is between copies
        A[i, j] = A[j, i] = w
    assert found.distinct_pairs(sp.csr_matrix(A)).toarray().tolist() == [[0, 3, 0], [3, 0, 2], [0, 2, 0]]
    W = sp.csr_matrix(np.ones((3, 3)) - np.eye(3))
    assert no_copies(3).hung(W, 0.5) is W
    hung = found.hung(W, 0.5).toarray()
    assert hung[2].tolist() == [0.5, 0, 0, 0, 0]
    assert hung[4].tolist() == [0, 0.5, 0, 0, 0]
    np.testing.assert_array_equal(hung[np.ix_([0, 1, 3], [0, 1, 3])], W.toarray())


# --- the learned graph ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"locality": 0.0, "connect": False},
        {"locality": 0.5, "connect": True},
        {"theta": 0.7},
        {"model": "l2"},
        {"model": "soft"},
        {"model": "knn-gaussian"},
        {"metric": "cosine"},
        {"neighbors": "approximate", "random_state": 0},
    ],
    ids=str,
)
def test_the_graph_of_the_first_rows_is_that_of_the_distinct_samples(rng, options):
    X, _ = rows_with_copies(rng)
    learner = GraphLearner(5, **options).fit(X)
    first = np.unique(learner.copy_of_)
    alone = GraphLearner(5, **options).fit(X[first])
    np.testing.assert_array_equal(learner.copy_of_, first_of(X))
    np.testing.assert_array_equal(learner.group_sizes_, np.bincount(learner.copy_of_)[learner.copy_of_])
    assert_same_bits(among_first(learner), alone.graph_)
    assert_hung(learner, learner.scale_)
    assert learner.n_neighbors_ == alone.n_neighbors_
    assert learner.n_components_ == alone.n_components_ == connected_components(learner.graph_, directed=False)[0]
    if alone.theta_ is not None:
        assert learner.theta_ == alone.theta_
        np.testing.assert_array_equal(learner.bridges_, first[alone.bridges_])
        np.testing.assert_array_equal(learner.solution_.dual, alone.solution_.dual)


def test_a_group_of_ten_thousand_copies_is_one_node(rng):
    X = np.concatenate([rng.normal(size=(200, 3)), np.ones((10_000, 3))])
    learner = GraphLearner(6).fit(X)
    assert learner.n_neighbors_ == pytest.approx(6, rel=0.01)
    assert learner.group_sizes_[-1] == 10_000
    assert learner.n_components_ == 1
    assert_hung(learner, 1.0)
    assert np.diff(learner.graph_.indptr)[200] >= 9_999


def test_copies_that_are_kept_are_connected_with_each_other(rng):
    """At distance 0 a pair has weight (λᵢ+λⱼ)/2, whatever θ is."""
    X = np.repeat(rng.normal(size=(30, 3)), 3, axis=0)
    learner = paper_learner(4, theta=1.0, tol=1e-10).fit(X)
    np.testing.assert_array_equal(learner.copy_of_, np.repeat(np.arange(0, 90, 3), 3))
    np.testing.assert_array_equal(learner.group_sizes_, 3)
    lam = learner.solution_.dual
    for i, j in ((0, 1), (0, 2), (87, 89)):
        assert learner.graph_[i, j] == pytest.approx(0.5 * (lam[i] + lam[j]), rel=1e-6)


def test_rows_that_are_multiples_are_copies_of_each_other_by_their_angle(rng):
    """Counts in one file and in twice as long a file: by cosine they are the same sample."""
    X = rng.poisson(2.0, size=(80, 12)).astype(float) + np.eye(12)[rng.integers(12, size=80)]
    X = X[np.unique(first_of(X))]
    both = np.concatenate([X, 2.0 * X, 3.0 * X, 7.0 * X[:10]])
    learner = GraphLearner(5, metric="cosine").fit(both)
    assert (learner.copy_of_[len(X) :] < len(X)).all()
    plain = GraphLearner(5, metric="cosine").fit(X)
    np.testing.assert_array_equal(learner.copy_of_[: len(X)], plain.copy_of_)
    assert_same_bits(among_first(learner), among_first(plain))
    assert not find_copies(both, threads=Threads(1)).any


@pytest.mark.parametrize(("options", "weight"), [({}, 1.0), ({"scale": 3.0}, 3.0), ({"alpha": 2.0, "beta": 0.5}, 2.0)])
def test_copies_hang_by_the_scale_of_the_graph_or_its_largest_weight(rng, options, weight):
    X, _ = rows_with_copies(rng)
    assert_hung(GraphLearner(5, **options).fit(X), weight)
    bounded = GraphLearner(5, max_weight=0.2 * weight, **options).fit(X)
    assert_hung(bounded, 0.2 * weight)
    assert bounded.graph_.max() <= 0.2 * weight * (1 + 1e-12)


def test_the_sum_of_the_weights_counts_copies(rng):
    X, _ = rows_with_copies(rng)
    learner = GraphLearner(5, scale="sum").fit(X)
    assert learner.graph_.sum() == pytest.approx(len(X))
    assert_hung(learner, learner.scale_)


# --- other ways in and out ------------------------------------------------------------------------------------------------


def test_new_rows_go_to_the_first_of_a_group(rng):
    X, _ = rows_with_copies(rng)
    learner, new = GraphLearner(5).fit(X), blobs(20, 3, rng)
    rows = learner.transform(new)
    first = np.unique(learner.copy_of_)
    assert rows.shape == (20, len(X))
    assert set(rows.indices) <= set(first)
    assert_same_bits(rows[:, first], GraphLearner(5).fit(X[first]).transform(new))


def test_dense_distances_have_copies_and_allowed_edges_have_none(rng):
    X, _ = rows_with_copies(rng, 60, 15)
    Z = pairwise_distances(X, metric="sqeuclidean")
    Z = np.where(first_of(X)[:, None] == first_of(X), 0.0, Z)
    Z = Z[first_of(X)][:, first_of(X)]  # the rows of copies have the same bits
    learner = GraphLearner(5, metric="precomputed_squared").fit(Z)
    np.testing.assert_array_equal(learner.copy_of_, first_of(X))
    assert_hung(learner, 1.0)
    first = np.unique(learner.copy_of_)
    alone = GraphLearner(5, metric="precomputed_squared").fit(Z[np.ix_(first, first)])
    assert_same_bits(among_first(learner), alone.graph_)
    assert_same_bits(learner.transform(Z[:4])[:, first], alone.transform(Z[:4][:, first]))
    edges = np.nonzero(~np.eye(len(X), dtype=bool))
    allowed = sp.csr_matrix((Z[edges], edges), shape=Z.shape)
    given = GraphLearner(5, metric="precomputed_squared", theta=0.5).fit(allowed)
    np.testing.assert_array_equal(given.copy_of_, np.arange(len(X)))
    i = int(np.flatnonzero(first_of(X) != np.arange(len(X)))[0])
    assert given.graph_[i, first_of(X)[i]] > 0


def test_a_prior_of_copies_is_one_of_their_samples(rng):
    """Of several edges between two samples the largest counts; those between copies say nothing."""
    X, _ = rows_with_copies(rng, 60, 20)
    first = np.unique(first_of(X))
    pairs = np.triu(rng.random((len(X), len(X))) < 0.05, 1) * rng.random((len(X), len(X)))
    prior = pairs + pairs.T
    sample = np.searchsorted(first, first_of(X))
    expected = np.zeros((first.size, first.size))
    np.maximum.at(expected, (sample[:, None], sample[None]), prior)
    np.fill_diagonal(expected, 0.0)
    options = {"prior_strength": 1.0, "theta": 1.0}
    learner = GraphLearner(5, prior=sp.csr_matrix(prior), **options).fit(X)
    alone = GraphLearner(5, prior=sp.csr_matrix(expected), **options).fit(X[first])
    assert_same_bits(among_first(learner), alone.graph_)


def test_given_lists_are_those_of_the_first_rows(rng):
    X, _ = rows_with_copies(rng)
    lists = np.argsort(pairwise_distances(X), axis=1, kind="stable")[:, :30]
    learner = GraphLearner(5, neighbors=(lists, None)).fit(X)
    assert learner.neighbors_ == "given lists"
    assert_hung(learner, 1.0)
    same = {"theta": learner.theta_, "locality": learner.locality_, "connect": learner.connect_}
    searched = GraphLearner(5, tol=1e-6, **same).fit(X)
    assert abs(learner.graph_ - searched.graph_).sum() < 0.05 * searched.graph_.sum()
    with pytest.raises(ValueError, match="neighbo"):
        GraphLearner(5, neighbors=(lists[:-1], None)).fit(X)


def test_a_path_finds_the_copies_once(rng):
    X, _ = rows_with_copies(rng)
    said = []
    path = degree_path(X, [4, 8], verbose=lambda stage, text: said.append(stage if not text else ""))
    assert said.count("copies") == 1
    for learner in path:
        np.testing.assert_array_equal(learner.copy_of_, first_of(X))
        assert_hung(learner, 1.0)
        assert learner.n_neighbors_ == pytest.approx(learner.n_neighbors, abs=0.1)


def test_ids_labels_and_exports_are_of_all_rows(rng):
    X, _ = rows_with_copies(rng)
    ids = [f"row {i}" for i in range(len(X))]
    learner = GraphLearner(5).fit(pd.DataFrame(X, index=ids, columns=["a", "b", "c"]))
    assert learner.ids_.tolist() == ids
    G = to_networkx(learner.graph_, learner.ids_)
    copies = np.flatnonzero(learner.copy_of_ != np.arange(len(X)))
    assert G.number_of_nodes() == len(X)
    for i in copies:
        assert list(G[ids[i]]) == [ids[learner.copy_of_[i]]]
    distances = edge_distances(learner)
    i, j = learner.graph_.nonzero()
    np.testing.assert_array_equal(distances.indices, learner.graph_.indices)
    np.testing.assert_allclose(distances.data, np.linalg.norm(X[i] - X[j], axis=1), rtol=1e-12)
    assert (distances.data == 0).sum() == 2 * copies.size
    labels = np.full(len(X), -1)
    labels[:30] = np.arange(30) % 3
    labels[learner.copy_of_ != np.arange(len(X))] = -1
    spread = label_propagation(learner.graph_, labels)
    np.testing.assert_array_equal(spread.labels[copies], spread.labels[learner.copy_of_[copies]])


def test_too_few_distinct_samples_are_counted(rng):
    X = np.repeat(rng.normal(size=(5, 2)), 8, axis=0)
    with pytest.warns(UserWarning, match="n_neighbors=5, but the 40 rows are copies of 5 distinct samples, which have 4"):
        learner = GraphLearner(5).fit(X)
    assert learner.n_neighbors_ == 4
    assert np.diff(learner.graph_.indptr).min() == 1
    assert GraphLearner(4, theta=1.0).fit(X).graph_.shape == (40, 40)


def test_copies_do_not_matter_for_what_is_recommended(rng):
    X, _ = rows_with_copies(rng)
    learner = GraphLearner(5).fit(X)
    assert (learner.locality_, learner.connect_) == (Log.recommended_locality, Log.recommended_connect)
