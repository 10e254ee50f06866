"""Label propagation against dense solves, and what it says about nodes that no label reaches."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from smoothgraph import label_propagation, learn_graph


def random_graph(n, rng, per_node=3, small=0.0):
    """A connected graph: a random tree and some more edges; a share of `small` weights is tiny."""
    i = np.concatenate([np.arange(1, n), rng.integers(n, size=per_node * n)])
    j = np.concatenate([(rng.random(n - 1) * np.arange(1, n)).astype(int), rng.integers(n, size=per_node * n)])
    w = rng.random(i.size) + 0.1
    w[rng.random(i.size) < small] *= 1e-7
    W = sp.coo_matrix((w, (i, j)), shape=(n, n)).tocsr()
    W = W.maximum(W.T)
    W = sp.csr_matrix(W - sp.diags(W.diagonal()))
    W.eliminate_zeros()
    return W


def harmonic(W, y, classes):
    """The definition, solved densely."""
    W = np.asarray(W.todense())
    u, known = y == -1, y != -1
    L = np.diag(W.sum(axis=1)) - W
    scores = (y[:, None] == classes).astype(float)
    scores[u] = np.linalg.solve(L[np.ix_(u, u)], W[np.ix_(u, known)] @ scores[known])
    return scores


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 120), st.integers(1, 13), st.integers(0, 2**31), st.sampled_from([0.0, 0.3]))
def test_scores_are_the_harmonic_functions(n, n_classes, seed, small):
    rng = np.random.default_rng(seed)
    W = random_graph(n, rng, small=small)
    y = np.where(rng.random(n) < 0.2, rng.integers(n_classes, size=n), -1)
    y[0] = 0
    found = label_propagation(W, y, tol=1e-12)
    wanted = harmonic(W, y, found.classes)
    np.testing.assert_allclose(found.scores, wanted, atol=1e-5)
    assert found.reached.all()
    clear = np.sort(wanted, axis=1)[:, -1] - (np.sort(wanted, axis=1)[:, -2] if wanted.shape[1] > 1 else 0) > 1e-4
    np.testing.assert_array_equal(found.labels[clear], found.classes[wanted.argmax(axis=1)][clear])


def test_a_learned_graph_of_real_data(rng):
    X, truth = load_digits(return_X_y=True)
    W = learn_graph(X, n_neighbors=10)
    y = np.where(rng.random(len(truth)) < 0.05, truth, -1)
    found = label_propagation(W, y)
    np.testing.assert_allclose(found.scores, harmonic(W, y, found.classes), atol=1e-4)
    # Every score is the mean over the neighbours, as far as `residual` says.
    d = np.asarray(W.sum(axis=1))
    off = np.abs(W @ found.scores / d - found.scores)[y == -1].max()
    assert off <= 2e-6
    assert found.residual <= 1e-6
    assert (found.labels == truth).mean() > 0.9


def test_a_cluster_on_one_tiny_edge_gets_the_scores_of_the_node_at_its_other_end(rng):
    """The residual in the cluster is tiny from the start, while the scores there do not sum to 1."""
    W = sp.block_diag([random_graph(300, rng), random_graph(200, rng)], format="lil")
    W[5, 400] = W[400, 5] = 1e-8
    y = np.full(500, -1)
    y[:300:10] = np.arange(30) % 2
    found = label_propagation(W, y)
    np.testing.assert_allclose(found.scores[300:], np.broadcast_to(found.scores[5], (200, 2)), atol=2e-3)


def test_components_without_a_label_are_flagged_and_not_guessed(rng):
    W = sp.block_diag([random_graph(50, rng), random_graph(30, rng), [[0.0]]], format="csr")
    y = np.full(81, -1)
    y[[3, 7]] = 4, 9
    found = label_propagation(W, y)
    np.testing.assert_array_equal(found.reached, np.arange(81) < 50)
    assert (found.labels[50:] == -1).all()
    assert np.isnan(found.scores[50:]).all()
    assert set(found.labels[:50]) <= {4, 9}
    alone = label_propagation(W[:50][:, :50], y[:50])
    np.testing.assert_allclose(found.scores[:50], alone.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        (np.array([3, 8], dtype=np.int8), -1),
        (np.array([0.5, 2.0]), np.nan),
        (np.array(["cat", "dog"]), ""),
        (np.array(["cat", "dog"], dtype=object), None),
    ],
)
def test_labels_keep_their_type(labels, mark):
    W = sp.block_diag([np.ones((4, 4)), np.ones((4, 4)), np.ones((2, 2))])
    y = np.full(10, mark, dtype=labels.dtype)
    y[0], y[4] = labels
    found = label_propagation(W, y)
    assert found.labels.dtype == y.dtype
    assert found.labels[:8].tolist() == [labels[0]] * 4 + [labels[1]] * 4
    assert not found.reached[8:].any()
    np.testing.assert_array_equal(found.labels[8:], np.full(2, mark, dtype=y.dtype))
    assert found.classes.tolist() == labels.tolist()


def test_permuting_the_nodes_permutes_the_scores_and_scale_does_not_matter(rng):
    W = random_graph(400, rng)
    y = np.where(rng.random(400) < 0.1, rng.integers(3, size=400), -1)
    order = rng.permutation(400)
    found = label_propagation(W, y, tol=1e-10)
    np.testing.assert_allclose(
        label_propagation(W[order][:, order], y[order], tol=1e-10).scores, found.scores[order], atol=1e-7
    )
    np.testing.assert_allclose(label_propagation(1e-6 * W, y, tol=1e-10).scores, found.scores, atol=1e-7)


def test_given_labels_stay_as_they_are(rng):
    y = rng.integers(3, size=30)
    np.testing.assert_array_equal(label_propagation(random_graph(30, rng), y).labels, y)


def test_too_few_rounds_are_said(rng):
    path = sp.diags([1.0, 1.0], [-1, 1], shape=(500, 500)).tocsr()
    shuffled = rng.permutation(500)
    path = path[shuffled][:, shuffled]
    y = np.full(500, -1)
    y[[0, 1]] = 0, 1
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        label_propagation(path + 0.01 * random_graph(500, rng), y, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        label_propagation(path, y)


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), "shape"),
        (np.ones(3), "dimensions"),
        ([[0, 1], [2, 0]], "not symmetric"),
        ([[0, 1], [0, 0]], r"maximum\(W.T\)"),
        ([[0, -1], [-1, 0]], "negative"),
        ([[0, np.nan], [np.nan, 0]], "NaN"),
    ],
)
def test_what_is_not_a_graph_is_refused(W, message):
    with pytest.raises(ValueError, match=message):
        label_propagation(W, [0, -1])


def test_bad_labels_are_refused():
    W = np.ones((3, 3))
    for y, message in [
        ([0, 1], "3 nodes"),
        ([-1, -1, -1], "no label"),
        (np.array([1, "a", None], dtype=object), "sorted"),
        (np.array([1j, 0, 0]), "dtype"),
    ]:
        with pytest.raises(ValueError, match=message):
            label_propagation(W, y)
    with pytest.raises(ValueError, match="tol"):
        label_propagation(W, [0, -1, -1], tol=0)
    with pytest.raises(ValueError, match="max_iter"):
        label_propagation(W, [0, -1, -1], max_iter=0)


def test_the_graph_given_is_not_changed(rng):
    W = random_graph(20, rng).tolil()
    W[3, 3] = 5.0
    W = W.tocsr()
    before = W.copy()
    label_propagation(W, np.where(np.arange(20) < 2, np.arange(20), -1))
    assert abs(W - before).nnz == 0
    assert W[3, 3] == 5.0


def chain_of_clusters(tie, weak, clusters=20, size=20, at=12):
    """Clusters in a row, each with one small weight `tie` to the next; after cluster `at` it is the smaller weight `weak`."""
    rng = np.random.default_rng(0)
    inside = [rng.random((size, size)) * (rng.random((size, size)) < 0.4) for _ in range(clusters)]
    W = sp.lil_matrix(sp.block_diag([np.triu(one, 2) + 0.5 * np.eye(size, k=1) for one in inside]))
    for cluster in range(clusters - 1):
        W[cluster * size + size - 1, (cluster + 1) * size] = weak if cluster == at else tie
    return sp.csr_matrix(W + W.T), np.arange(clusters * size) // size > at


def test_clusters_with_small_weights_between_them():
    """The labels of the two ends meet at the smallest weight. Where weights are too small to find that, a warning says so."""
    W, truth = chain_of_clusters(1e-9, 1e-11)
    y = np.full(truth.size, -1)
    y[0], y[-1] = 0, 1
    np.testing.assert_array_equal(label_propagation(W, y).labels, truth)
    with pytest.warns(ConvergenceWarning, match="paths to labelled nodes have very small weights"):
        found = label_propagation(chain_of_clusters(1e-20, 1e-40)[0], y)
    assert found.n_iter < 2000


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, bool])
def test_labels_that_have_no_mark_label_every_node(kind):
    y = (np.arange(6) % 2).astype(kind)
    found = label_propagation(np.ones((6, 6)), y)
    np.testing.assert_array_equal(found.labels, y)
    assert found.labels.dtype == y.dtype
    assert found.reached.all()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.float16, np.float32, object])
def test_small_types_of_labels(kind):
    """Two components, one of them without a label."""
    W = np.kron(np.eye(2), np.ones((3, 3)))
    y = np.array([100, -1, 101, -1, -1, -1]).astype(kind)
    if kind is object:
        y[y == -1] = None
    found = label_propagation(W, y)
    assert found.labels.dtype == y.dtype
    assert found.classes.tolist() == [100, 101]
    assert found.reached.tolist() == [True] * 3 + [False] * 3
    assert found.labels[0] == 100
    assert found.labels[1] in (100, 101)
    assert all(label is None or label != label or label == -1 for label in found.labels[3:])


def test_missing_labels_of_pandas():
    y = pd.array([1, None, 2, None], dtype="Int64")
    found = label_propagation(np.ones((4, 4)), y)
    assert found.classes.tolist() == [1, 2]
    assert found.reached.all()
    with pytest.raises(ValueError, match="y has masked values"):
        label_propagation(np.ones((4, 4)), np.ma.masked_equal([1, 0, 2, 0], 0))
    entries = np.empty(4, object)
    entries[:] = [np.ones(2), 1, 2, None]
    with pytest.raises(ValueError, match="y has an entry of type ndarray"):
        label_propagation(np.ones((4, 4)), entries)


PATH = sp.diags([np.ones(4), np.ones(4)], [-1, 1]).tocsr()  # five nodes in a row


@pytest.mark.parametrize("tol", [10**20, 1.0, np.inf, np.nan, -1e-6, "small"])
def test_a_tolerance_that_asks_for_nothing_is_refused(tol):
    with pytest.raises(ValueError, match=r"tol=.*positive number below 1"):
        label_propagation(PATH, [0, -1, -1, -1, 1], tol=tol)


def test_parameters_may_be_numbers_of_numpy():
    found = label_propagation(PATH, [0, -1, -1, -1, 1], tol=np.float32(1e-6), max_iter=np.uint8(200))
    np.testing.assert_allclose(found.scores[:, 1], np.arange(5) / 4, atol=1e-5)
