"""The spectral embedding against dense eigenvectors and scikit-learn's."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import kneighbors_graph

from smoothgraph import learn_graph, spectral_embedding
from smoothgraph.uses.embedding import rough_eigenvectors


def dense(W, k):
    """(D − W)f = λDf by LAPACK."""
    W = np.asarray(sp.csr_matrix(W).todense())
    D = np.diag(W.sum(axis=1))
    values, vectors = scipy.linalg.eigh(D - W, D)
    return values[1 : k + 1], vectors[:, 1 : k + 1]


def up_to_sign(f):
    return f * np.sign(f[np.abs(f).argmax(axis=0), np.arange(f.shape[1])])


def grid(rows, columns, rng):
    """A grid with random weights, so that all its eigenvalues differ."""
    i = np.arange(rows * columns).reshape(rows, columns)
    pairs = np.concatenate([np.stack([i[:, 1:], i[:, :-1]], -1).reshape(-1, 2), np.stack([i[1:], i[:-1]], -1).reshape(-1, 2)])
    W = sp.coo_matrix((1.0 + 0.1 * rng.random(len(pairs)), pairs.T), shape=(i.size, i.size))
    return sp.csr_matrix(W + W.T)


def many_dimensions(n, rng, d=8):
    """A graph of neighbours in many dimensions, which is solved by iterations; a grid is solved by a direct factorisation."""
    W = kneighbors_graph(rng.normal(size=(n, d)), 8, mode="distance")
    W.data = np.exp(-W.data / W.data.mean())
    return sp.csr_matrix(W.maximum(W.T))


SMALL = pytest.param(lambda rng: grid(12, 17, rng), id="all-eigenvectors")
GRID = pytest.param(lambda rng: grid(23, 29, rng), id="direct")
MANY = pytest.param(lambda rng: many_dimensions(700, rng), id="iterated")


@pytest.mark.parametrize("graph", [SMALL, GRID, MANY])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_it_is_what_the_definition_says(graph, k, rng):
    W = graph(rng)
    found = spectral_embedding(W, k)
    values, vectors = dense(W, k)
    np.testing.assert_allclose(found.eigenvalues, values, rtol=1e-6)
    np.testing.assert_allclose(found.coordinates, up_to_sign(vectors), atol=1e-5)
    assert found.embedded.all()
    assert found.n_graph_components == 1


def test_it_is_what_scikit_learn_finds_on_a_learned_graph():
    W = learn_graph(load_digits().data, n_neighbors=10)
    found = spectral_embedding(W, 2)
    W = W[found.embedded][:, found.embedded]  # scikit-learn embeds connected graphs only
    theirs = SpectralEmbedding(2, affinity="precomputed", eigen_solver="arpack", random_state=0).fit_transform(W)
    ours, theirs = up_to_sign(found.coordinates[found.embedded]), up_to_sign(theirs)
    np.testing.assert_allclose(ours / np.abs(ours).max(axis=0), theirs / np.abs(theirs).max(axis=0), atol=1e-4)


def test_only_the_largest_component_is_embedded(rng):
    W = sp.block_diag([grid(5, 6, rng), grid(23, 25, rng), [[0.0]]], format="csr")
    found = spectral_embedding(W, 2)
    assert found.n_graph_components == 3
    np.testing.assert_array_equal(np.flatnonzero(found.embedded), np.arange(30, 605))
    assert np.isnan(found.coordinates[~found.embedded]).all()
    np.testing.assert_array_equal(found.coordinates[30:605], spectral_embedding(W[30:605][:, 30:605], 2).coordinates)


@pytest.mark.parametrize("graph", [GRID, MANY])
def test_a_cluster_on_one_tiny_edge_is_found(graph, rng):
    """Its eigenvalue is tiny and its eigenvector is 0 but for a few nodes: iterations from a random start easily miss it."""
    W = graph(rng)
    n = W.shape[0]
    W = sp.block_diag([W, grid(2, 3, rng)], format="lil")
    W[100, n + 3] = W[n + 3, 100] = 1e-5
    found = spectral_embedding(W, 2)
    values, vectors = dense(W, 2)
    np.testing.assert_allclose(found.eigenvalues, values, rtol=1e-4)
    np.testing.assert_allclose(found.coordinates, up_to_sign(vectors), atol=1e-4)


@pytest.mark.parametrize("bridge", [1e-9, 1e-5, 1.0])
def test_two_cliques(bridge):
    """The first eigenvector is nearly constant on each clique, and all other eigenvalues are nearly equal."""
    W = sp.block_diag([np.ones((350, 350)), np.ones((350, 350))], format="lil")
    W.setdiag(0.0)
    W[0, 699] = W[699, 0] = bridge
    found = spectral_embedding(W, 2)
    values, _ = dense(W, 2)
    np.testing.assert_allclose(found.eigenvalues, values, rtol=1e-6, atol=1e-13)
    assert (found.coordinates[1:350, 0] > 0).all() != (found.coordinates[350:699, 0] > 0).all()


def test_a_complete_graph():
    W = np.ones((600, 600)) - np.eye(600)
    np.testing.assert_allclose(spectral_embedding(W, 3).eigenvalues, 600 / 599)


@pytest.mark.parametrize("graph", [GRID, MANY])
def test_it_is_the_same_every_time(graph, rng):
    W = graph(rng)
    np.testing.assert_array_equal(spectral_embedding(W).coordinates, spectral_embedding(W).coordinates)


def test_a_missed_accuracy_is_said(rng):
    """A chain of 40 clusters with weights of 1e-9 between them has 40 eigenvalues that float64 can hardly tell apart."""
    W = sp.block_diag([many_dimensions(40, rng) for _ in range(40)], format="lil")
    for node in range(0, 1560, 40):
        W[node, node + 40] = W[node + 40, node] = 1e-9
    with pytest.warns(ConvergenceWarning, match=r"After 89 steps the error of the embedding is .* of its eigenvalues"):
        spectral_embedding(W)


def test_rough_eigenvectors_are_near_the_exact_ones(rng):
    """The span of the first two eigenvectors, as numpy finds it. Three clusters make them differ from the others."""
    X = np.vstack([rng.normal(size=(60, 2)) + 3.5 * np.array(c) for c in ((0, 0), (1, 0), (0, 1))])
    W = kneighbors_graph(X, 12)
    W = sp.csr_matrix(W.maximum(W.T))
    root = np.sqrt(np.asarray(W.sum(axis=1)))
    exact = np.linalg.eigh(W.toarray() / root / root.T)[1][:, -3:-1]
    rough = np.linalg.qr(root * rough_eigenvectors(W))[0]
    assert np.linalg.svd(exact.T @ rough)[1].min() > 0.95


def test_bad_requests_are_refused(rng):
    W = grid(2, 2, rng)
    assert spectral_embedding(W, 3).coordinates.shape == (4, 3)
    for k, message in [(4, "4 nodes"), (0, "at least 1"), (1.5, "integer"), (True, "integer")]:
        with pytest.raises(ValueError, match=message):
            spectral_embedding(W, k)
    with pytest.raises(ValueError, match="not symmetric"):
        spectral_embedding([[0, 1], [0, 0]], 1)
