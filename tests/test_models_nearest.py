"""Nearest-neighbour graphs against scikit-learn's, and their weights by the formulas."""

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from conftest import blobs
from smoothgraph import GraphLearner
from smoothgraph.models import Nearest


def directed(X, k, mode):
    return kneighbors_graph(X, k, mode=mode).toarray()


def test_binary_weights_are_those_of_scikit_learn(rng):
    X, k = blobs(200, 3, rng), 7
    own = directed(X, k, "connectivity")
    union, mutual = (GraphLearner(k, model=Nearest(mutual=m)).fit(X).graph_.toarray() for m in (False, True))
    np.testing.assert_array_equal(union, np.maximum(own, own.T))
    np.testing.assert_array_equal(mutual, np.minimum(own, own.T))


def test_gaussian_weights(rng):
    X, k = blobs(200, 3, rng), 7
    d = directed(X, k, "distance")
    both = np.maximum(d, d.T)
    sigma = np.sqrt(np.mean(d.max(axis=1) ** 2))
    for given, used in ((None, sigma), (2.5, 2.5)):
        learner = GraphLearner(k, model=Nearest("gaussian", sigma=given)).fit(X)
        wanted = np.where(both > 0, np.exp(-(both**2) / (2 * used**2)), 0.0)
        np.testing.assert_allclose(learner.graph_.toarray(), wanted, rtol=1e-9, atol=1e-300)


def test_self_tuning_weights(rng):
    X, k = blobs(200, 3, rng), 7
    d = directed(X, k, "distance")
    both, last = np.maximum(d, d.T), d.max(axis=1)
    learner = GraphLearner(k, model="knn-self-tuning").fit(X)
    wanted = np.where(both > 0, np.exp(-(both**2) / np.outer(last, last)), 0.0)
    np.testing.assert_allclose(learner.graph_.toarray(), wanted, rtol=1e-9)
    assert learner.n_neighbors_ == np.count_nonzero(both) / 200
    assert learner.solution_ is None
    assert learner.n_incomplete_ is None
    assert learner.theta_ is None


def test_approximate_lists_give_the_graph_of_the_rows(rng):
    """The search numbers the samples anew; the graph has the numbers of the table."""
    X = blobs(3000, 3, rng)
    exact, found = (GraphLearner(5, model="knn", neighbors=way, random_state=0).fit(X) for way in ("exact", "approximate"))
    assert found.neighbors_ == "approximate"
    assert abs(exact.graph_ - found.graph_).sum() < 0.01 * exact.graph_.sum()


@pytest.mark.parametrize("model", [Nearest(), Nearest("gaussian", sigma=0.1), Nearest("self-tuning")])
def test_duplicates_and_far_neighbours_keep_their_edges(model, rng):
    X = np.vstack([np.zeros((10, 2)), rng.normal(size=(30, 2)), [[1e4, 0.0]]])
    graph = GraphLearner(4, model=model, duplicates="keep").fit(X).graph_
    assert np.isfinite(graph.data).all()
    assert (graph.data > 0).all()
    assert (np.diff(graph.indptr) >= 4).all()


@pytest.mark.parametrize("model", ["knn", "knn-gaussian", "knn-self-tuning"])
def test_rows_of_new_samples(model, rng):
    X, new = blobs(150, 3, rng), blobs(10, 3, rng)
    learner = GraphLearner(5, model=model).fit(X)
    rows = learner.transform(new)
    z = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    nearest = np.argsort(z, axis=1)[:, :5]
    assert [set(row.indices) for row in rows] == [set(row) for row in nearest]
    if model == "knn-self-tuning":
        own, theirs = np.sqrt(np.sort(z, axis=1)[:, 4]), directed(X, 5, "distance").max(axis=1)
        np.testing.assert_allclose(rows[3, nearest[3, 0]], np.exp(-z[3, nearest[3, 0]] / (own[3] * theirs[nearest[3, 0]])))


def test_what_makes_no_sense_is_named(rng):
    X = rng.normal(size=(30, 2))
    for model, options, word in (
        (Nearest("cosine"), {}, r"Nearest\('cosine'\)"),
        (Nearest(sigma=1.0), {}, "sigma=1.0 does not apply to model='knn', only to knn-gaussian"),
        (Nearest("gaussian", sigma=-1.0), {}, "sigma=-1.0 must be"),
        (Nearest(), {"neighbors": "all"}, "neighbors='all'"),
        (Nearest(), {"locality": 0.5}, "locality=0.5 does not apply"),
        (Nearest(), {"connect": True}, "connect=True does not apply"),
        (Nearest(), {"theta": 1.0}, "theta=1.0 does not apply"),
    ):
        with pytest.raises(ValueError, match=word):
            GraphLearner(5, model=model, **options).fit(X)
