"""Rows for samples that the graph has not seen: the equations of their one-node problem, and copies of a fitted learner."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from conftest import blobs, paper_learner, relative_l1
from smoothgraph import GraphLearner
from smoothgraph.models import Nearest
from smoothgraph.theta import node_thetas

DIGITS = load_digits().data


@pytest.mark.parametrize("options", [{}, {"max_weight": 0.05}])
def test_new_rows_solve_their_own_problem(options):
    """Minimise Σ 2θzw + w² − λᵀw − log Σw over w ≥ 0: the conditions hold for every one of the n fitted samples."""
    train, new = DIGITS[:1000], DIGITS[1000:1100]
    learner = paper_learner(8, **options).fit(train)
    rows = learner.transform(new).toarray()
    z = pairwise_distances(new, train, metric="sqeuclidean")
    slope = 2 * learner.theta_ * z + 2 * rows - learner.solution_.dual - 1 / rows.sum(axis=1, keepdims=True)
    bound = options.get("max_weight", np.inf)
    assert (slope[rows == 0] > -1e-6).all()
    assert (np.abs(slope[(rows > 0) & (rows < bound)]) < 1e-6).all()
    assert (slope[rows == bound] < 1e-6).all()
    assert rows.max() <= bound


def test_rows_of_the_l2_model_solve_theirs(rng):
    """A new node's λ + Σw = 1 + λ̄, w = max(0, (λ + λⱼ)/2 − θz): checked by the equations, over all fitted samples."""
    X, new = blobs(300, 3, rng), blobs(20, 3, rng)
    learner = GraphLearner(6, model="l2", tol=1e-10).fit(X)
    rows = learner.transform(new).toarray()
    lam = learner.solution_.dual
    z = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    own = 1.0 + lam.mean() - rows.sum(axis=1)
    np.testing.assert_allclose(rows, np.maximum(0.0, 0.5 * (own[:, None] + lam) - learner.theta_ * z), atol=1e-9)


def test_rows_with_locality_solve_theirs(rng):
    """1/Σw = λ of the new node, w = max(0, (λ + λⱼ)/2 − θ·z·scales): by the equations, over all fitted samples."""
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


def test_rows_after_an_approximate_search_are_of_the_table(rng):
    """The search numbers the samples anew; the columns have the numbers of the table."""
    X, new = blobs(3000, 3, rng), blobs(20, 3, rng)
    exact = GraphLearner(5, theta=1.0, tol=1e-9).fit(X)
    found = GraphLearner(5, theta=1.0, tol=1e-9, neighbors="approximate", random_state=0).fit(X)
    assert relative_l1(found.transform(new), exact.transform(new)) < 1e-2


def test_a_far_new_sample_asks_for_more_neighbours_than_were_first_searched(rng):
    X = rng.normal(size=(500, 2))
    learner = GraphLearner(1, theta=1e-4).fit(X)  # so dense that the first four neighbours are far from enough
    far = np.array([[30.0, 30.0]])
    w = learner.transform(far).toarray()[0]
    a = 2 * learner.theta_ * pairwise_distances(far, X, metric="sqeuclidean")[0] - learner.solution_.dual
    lam = (a + 2 * w)[w > 0]  # the same for all edges, and one over the degree
    assert np.count_nonzero(w) > 4
    np.testing.assert_allclose(lam, lam[0], rtol=1e-9)
    assert lam[0] * w.sum() == pytest.approx(1.0, rel=1e-6)
    assert (a[w == 0] >= lam[0] * (1 - 1e-9)).all()


def test_new_rows_of_distances_and_of_allowed_edges():
    train, new = DIGITS[:400], DIGITS[400:420]
    Z, Z_new = (pairwise_distances(X, train, metric="sqeuclidean") for X in (train, new))
    expected = GraphLearner(6, theta=1e-3).fit(train).transform(new)
    dense = GraphLearner(6, theta=1e-3, metric="precomputed_squared").fit(Z)
    allowed = GraphLearner(6, theta=1e-3, metric="precomputed_squared").fit(sp.csr_matrix(Z))
    assert relative_l1(dense.transform(Z_new), expected) < 1e-3
    assert relative_l1(allowed.transform(sp.csr_matrix(Z_new)), expected) < 1e-3
    with pytest.raises(ValueError, match="New sample 1 has no allowed edge"):
        allowed.transform(sp.csr_matrix(([1.0], ([0], [3])), shape=(2, 400)))


def test_new_rows_are_in_the_units_of_the_graph():
    plain, scaled = (GraphLearner(6, scale=scale).fit(DIGITS[:500]) for scale in (None, "sum"))
    ratio = scaled.transform(DIGITS[500:510]).sum() / plain.transform(DIGITS[500:510]).sum()
    assert ratio == pytest.approx(scaled.scale_)


def test_many_new_samples_are_those_of_single_calls(rng):
    """More than a block of rows, in one and in three threads."""
    X, new = blobs(500, 3, rng), blobs(2500, 3, rng)
    learner = GraphLearner(5, n_jobs=3).fit(X)
    rows = learner.transform(new)
    np.testing.assert_array_equal(rows.toarray(), learner.set_params(n_jobs=1).transform(new).toarray())
    for r in (0, 1023, 1024, 2499):
        np.testing.assert_allclose(rows[[r]].toarray(), learner.transform(new[r : r + 1]).toarray(), rtol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "l2"},
        {"model": "knn"},
        {"model": Nearest("gaussian", sigma=2.0, mutual=True)},
        {"model": "knn-self-tuning"},
        {"locality": 1.0, "connect": True, "max_weight": 0.3},
        {"neighbors": "approximate", "random_state": 0},
        {"metric": "cosine", "scale": "sum", "n_jobs": 2},
    ],
    ids=str,
)
def test_a_pickled_learner_has_the_same_rows(rng, options):
    X, new = blobs(400, 4, rng), blobs(30, 4, rng)
    learner = GraphLearner(5, **options).fit(X)
    copy = pickle.loads(pickle.dumps(learner))
    rows, again = learner.transform(new), copy.transform(new)
    assert rows.nnz > 0
    np.testing.assert_array_equal(again.toarray(), rows.toarray())
    np.testing.assert_array_equal(copy.graph_.toarray(), learner.graph_.toarray())
    assert copy.get_params().keys() == learner.get_params().keys()


def test_a_pickled_learner_of_distances_has_the_same_rows(rng):
    X, new = blobs(200, 3, rng), blobs(10, 3, rng)
    Z, Z_new = (pairwise_distances(Y, X, metric="sqeuclidean") for Y in (X, new))
    for matrix, rows in ((Z, Z_new), (sp.csr_matrix(Z), sp.csr_matrix(Z_new))):
        learner = GraphLearner(5, metric="precomputed_squared").fit(matrix)
        copy = pickle.loads(pickle.dumps(learner))
        np.testing.assert_array_equal(copy.transform(rows).toarray(), learner.transform(rows).toarray())


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("model", ["log", "l2", "knn"])
def test_new_samples_may_be_sparse_where_the_fitted_are_dense_and_the_reverse(metric, model, rng):
    X, new = (np.maximum(rng.normal(size=(n, 12)), 0.0) + 0.1 * rng.random((n, 1)) for n in (80, 1500))
    rows = []
    for fitted in (np.asarray, sp.csr_matrix, sp.csc_array):
        learner = GraphLearner(5, metric=metric, model=model, tol=1e-10).fit(fitted(X))
        rows += [learner.transform(given(new)) for given in (np.asarray, sp.csr_matrix, sp.coo_array)]
    for other in rows[1:]:
        assert relative_l1(other, rows[0]) < 1e-6


def test_a_new_sample_without_an_allowed_edge_is_named_by_its_row(rng):
    D = pairwise_distances(rng.normal(size=(40, 3)))
    learner, new = GraphLearner(4, metric="precomputed").fit(D), sp.lil_matrix((2000, 40))
    new[:, 3] = 1.0
    new[1500, 3] = 0.0
    with pytest.raises(ValueError, match="New sample 1500 has no allowed edge"):
        learner.transform(new)


def test_new_samples_beyond_all_digits_are_refused(rng):
    learner = GraphLearner(4).fit(rng.normal(size=(40, 3)))
    for far in (1e200, -1e160):
        with pytest.raises(ValueError, match=r"New samples hold values up to .*beyond what float64 holds"):
            learner.transform(np.full((2, 3), far))
