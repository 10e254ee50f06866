"""NeighborsTransformer against brute force and scikit-learn's own transformer, and in the places where that one is used."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from conftest import blobs
from smoothgraph import GraphLearner, NeighborsTransformer

DIGITS, DIGIT = load_digits(return_X_y=True)
DIGITS = DIGITS + 0.01 * np.random.default_rng(0).normal(size=DIGITS.shape)  # no two distances are equal


def rows_of(matrix):
    """(indices, values) of a matrix with the same number of entries in each row."""
    assert np.unique(np.diff(matrix.indptr)).size == 1
    return matrix.indices.reshape(matrix.shape[0], -1), matrix.data.reshape(matrix.shape[0], -1)


def assert_nearest(matrix, D):
    """Every row of the matrix has as many entries, of different columns, and they are the smallest of the row of D, sorted."""
    indices, values = rows_of(matrix)
    assert all(len(set(row)) == len(row) for row in indices.tolist())
    np.testing.assert_allclose(values, np.take_along_axis(D, indices, axis=1), atol=1e-6)
    np.testing.assert_allclose(values, np.sort(D, axis=1)[:, : values.shape[1]], atol=1e-6)


def tables(rng):
    yield "blobs", blobs(150, 5, rng)
    yield "copies", 1.0 + rng.integers(0, 3, size=(150, 2))
    yield "one group", np.vstack([np.ones((100, 3)), 1.0 + rng.random((50, 3))])
    yield "all equal", np.ones((150, 3))
    yield (
        "sparse",
        sp.random(150, 40, 0.2, format="csr", random_state=0) + sp.csr_matrix(np.eye(150, 40, k=1) + np.eye(150, 40)),
    )


TABLES = [name for name, _ in tables(np.random.default_rng(0))]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("name", TABLES)
def test_the_nearest_of_all_rows_copies_included(rng, name, metric):
    X = dict(tables(rng))[name]
    D = pairwise_distances(X, metric=metric)
    for k in (1, 4, 120):
        search = NeighborsTransformer(k, metric=metric, search="exact")
        found = search.fit_transform(X)
        assert_nearest(found, D)
        indices, values = rows_of(found)
        assert indices.shape == (X.shape[0], k + 1)
        assert (indices[:, 0] == np.arange(X.shape[0])).all()
        assert (values[:, 0] == 0.0).all()
        assert search.recall_ == 1.0
        assert_nearest(search.transform(X[:20]), D[:20])


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_it_gives_what_scikit_learn_gives(rng, mode):
    """Distances are not tied here, so that the matrices are equal."""
    X, new = rng.normal(size=(120, 4)), rng.normal(size=(15, 4))
    ours, theirs = NeighborsTransformer(7, mode=mode), KNeighborsTransformer(n_neighbors=7, mode=mode)
    for A, B in (
        (ours.fit_transform(X), theirs.fit_transform(X)),
        (ours.transform(new), theirs.transform(new)),
        (ours.transform(X), theirs.transform(X)),
    ):
        assert A.nnz == B.nnz
        np.testing.assert_allclose(A.toarray(), B.toarray(), atol=1e-9)
    assert ours.get_feature_names_out()[3] == "neighborstransformer3"


def test_approximate_lists_are_whole_and_their_recall_is_measured(rng):
    X = np.vstack([blobs(2500, 8, rng), np.ones((500, 8))])
    search = NeighborsTransformer(10, search="approximate", random_state=0)
    indices, values = rows_of(search.fit_transform(X))
    assert search.search_ == "approximate"
    assert indices.shape == (3000, 11)
    assert all(len(set(row)) == 11 for row in indices.tolist())
    assert (np.diff(values, axis=1) >= 0).all()
    true = np.sort(pairwise_distances(X), axis=1)[:, 1:11]
    recall = np.mean(values[:, 1:] <= true[:, -1:] + 1e-9)
    assert search.recall_ == pytest.approx(recall, abs=0.05)
    assert recall > 0.9


def test_float32_far_from_the_origin(rng):
    """Rounding in products is larger than the distances: what bounds leave open is measured."""
    X = (1e4 + rng.normal(size=(200, 3))).astype(np.float32)
    D = pairwise_distances(X.astype(np.float64))
    search = NeighborsTransformer(5).fit(X)
    for found, of in ((NeighborsTransformer(5).fit_transform(X), D), (search.transform(X[:40]), D[:40])):
        np.testing.assert_allclose(rows_of(found)[1], np.sort(of, axis=1)[:, :6], rtol=1e-4, atol=1e-4)


def test_dense_and_sparse_samples_are_the_same(rng):
    X = blobs(80, 4, rng)
    fitted = NeighborsTransformer(5).fit(X)
    np.testing.assert_allclose(fitted.transform(sp.csr_matrix(X)).toarray(), fitted.transform(X).toarray(), atol=1e-6)
    fitted = NeighborsTransformer(5).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(fitted.transform(X).toarray(), fitted.transform(sp.csr_matrix(X)).toarray(), atol=1e-6)


def test_scikit_learn_accepts_it():
    check_estimator(NeighborsTransformer(n_neighbors=3), on_skip=None)


def test_errors_say_what_is_wrong(rng):
    X = rng.normal(size=(10, 2))
    for wrong, words in (
        ({"n_neighbors": 0}, "at least 1"),
        ({"n_neighbors": 2.5}, "at least 1"),
        ({"metric": "manhattan"}, "'euclidean' or 'cosine'"),
        ({"mode": "weights"}, "'distance' or 'connectivity'"),
        ({"search": "all"}, "'auto' or 'exact' or 'approximate'"),
        ({"n_neighbors": 10}, "takes 11 samples, but n_samples_fit = 10"),
    ):
        with pytest.raises(ValueError, match=words):
            NeighborsTransformer(**wrong).fit_transform(X)
    damaged = sp.csr_matrix(X)
    damaged.indices[3] = 10**6
    with pytest.raises(ValueError, match="damaged"):
        NeighborsTransformer(3).fit(damaged)
    with pytest.raises(ValueError, match="damaged"):
        NeighborsTransformer(3).fit(X).transform(damaged)


def test_pipelines_of_scikit_learn():
    """Each of these takes a sparse matrix of distances, and finds the same as by itself, or by the other transformer."""
    X, y, new = DIGITS[:400], DIGIT[:400], DIGITS[400:450]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("error")  # a matrix that is not sorted by distance is warned of
        ours = make_pipeline(NeighborsTransformer(5), KNeighborsClassifier(5, metric="precomputed")).fit(X, y)
        assert (ours.predict(new) == KNeighborsClassifier(5).fit(X, y).predict(new)).all()
        isomap, theirs = Isomap(n_neighbors=20, metric="precomputed"), KNeighborsTransformer(n_neighbors=20)
        ours, theirs = (make_pipeline(search, isomap).fit_transform(X) for search in (NeighborsTransformer(20), theirs))
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-5, atol=1e-5)
        tsne = TSNE(metric="precomputed", init="random", perplexity=10, max_iter=250, random_state=0)
        assert make_pipeline(NeighborsTransformer(31), tsne).fit_transform(X[:100]).shape == (100, 2)
        ours = DBSCAN(eps=20.0, metric="precomputed").fit_predict(NeighborsTransformer(399).fit_transform(X))
        assert (ours == DBSCAN(eps=20.0).fit_predict(X)).all()
        hdbscan = HDBSCAN(metric="precomputed", min_cluster_size=10, copy=True)
        matrices = [search.fit_transform(X) for search in (NeighborsTransformer(60), KNeighborsTransformer(n_neighbors=60))]
        matrices[1].setdiag(0.0)  # where rounding leaves something else
        ours, theirs = (hdbscan.fit_predict(D.maximum(D.T)) for D in matrices)
        assert (ours == theirs).all()
        assert len(set(ours)) > 5


def test_the_learner_takes_it_as_its_search():
    X = DIGITS[:300]
    learner = GraphLearner(6, neighbors=NeighborsTransformer(20)).fit(X)
    assert learner.neighbors_ == "NeighborsTransformer"
    assert learner.recall_ == 1.0
    theirs = GraphLearner(6, neighbors=KNeighborsTransformer(n_neighbors=20)).fit(X)
    assert abs(learner.graph_ - theirs.graph_).max() == 0.0
    assert clone(learner).get_params()["neighbors__n_neighbors"] == 20
