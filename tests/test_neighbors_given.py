"""Neighbours that the user gives: lists, transformers, matrices, and all pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

from conftest import blobs
from smoothgraph.distances import DistanceMatrix, Points
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads

THREADS = Threads(2)


def exact_lists(X, k):
    return find_neighbors(Points(X), k, "exact", threads=THREADS)


def test_whatever_form_lists_have_they_are_put_in_order(rng):
    """Self in the middle or missing, repeats, gaps, nothing sorted."""
    X = blobs(150, 3, rng)
    clean, nodes = exact_lists(X, 7), np.arange(150)[:, None]
    messy = np.concatenate([clean.indices, nodes, clean.indices[:, :2], np.full((150, 2), -1)], axis=1)
    lists = find_neighbors(Points(X), 7, (rng.permuted(messy, axis=1), None), threads=THREADS)
    np.testing.assert_array_equal(lists.indices[:, :7], clean.indices)
    np.testing.assert_array_equal(lists.distances[:, :7], clean.distances)
    assert (lists.indices[:, 7:] == -1).all()
    assert np.isinf(lists.distances[:, 7:]).all()
    assert lists.recall == 1.0
    assert not lists.exact


def test_rows_shorter_than_asked_end_in_gaps(rng):
    X = blobs(20, 2, rng)
    indices = exact_lists(X, 4).indices.copy()
    indices[3, 2:] = -1
    lists = find_neighbors(Points(X), 4, (indices, None), threads=THREADS)
    assert lists.indices[3, 2:].tolist() == [-1, -1]
    assert np.isinf(lists.distances[3, 2:]).all()
    assert lists.reach[3] == lists.distances[3, 1]
    assert lists.recall == 78 / 80


@pytest.mark.parametrize("form", ["samples", "distances"])
def test_a_transformer_and_a_pair_give_the_lists_of_their_indices(rng, form):
    X = blobs(200, 3, rng)
    plain = exact_lists(X, 9)
    distances = Points(X) if form == "samples" else DistanceMatrix(pairwise_distances(X, metric="sqeuclidean"))
    metric = "minkowski" if form == "samples" else "precomputed"
    transformer = KNeighborsTransformer(n_neighbors=9, mode="distance", metric=metric)
    pair = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(X, return_distance=True)[::-1]  # with self, distances not squared
    for given, name in ((transformer, "KNeighborsTransformer"), (pair, "given lists"), (list(pair), "given lists")):
        lists = find_neighbors(distances, 9, given, threads=THREADS)
        np.testing.assert_allclose(lists.distances[:, :9], plain.distances, rtol=1e-9)
        assert (lists.name, lists.numbering.by_row) == (name, True)


def test_wrong_lists_have_a_low_recall(rng):
    X = blobs(600, 3, rng)
    indices = rng.integers(0, 600, size=(600, 5))
    assert find_neighbors(Points(X), 5, (indices, None), threads=THREADS).recall < 0.2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fastest", "'fastest'"),
        (3, "neighbors=3"),
        ((np.zeros((9, 2), int), None), r"\(9, 2\)"),
        ((np.zeros((10, 2)), None), "float64"),
        ((np.full((10, 2), 10), None), "10 to 10"),
        ((np.full((10, 2), -2), None), "-2 to -2"),
        ((np.zeros((10, 2), int),), "1 parts"),
        ((np.full((10, 2), -1), None), "Sample 0 has no neighbour"),
        ((np.zeros((10, 0), int), None), "no neighbour"),
        ((np.repeat(np.arange(10)[:, None], 2, axis=1), None), "no neighbour"),
    ],
)
@pytest.mark.parametrize("form", [Points, lambda X: DistanceMatrix(pairwise_distances(X))])
def test_bad_neighbours_are_named(rng, given, message, form):
    with pytest.raises(ValueError, match=message):
        find_neighbors(form(rng.normal(size=(10, 2))), 2, given, threads=THREADS)


def test_a_transformer_of_the_wrong_shape_is_named(rng):
    class Wrong:
        def fit_transform(self, X):
            return sp.eye(3)

    with pytest.raises(ValueError, match=r"Wrong.*\(3, 3\)"):
        find_neighbors(Points(rng.normal(size=(10, 2))), 2, Wrong(), threads=THREADS)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_transformer_with_distances_that_are_not_finite_is_named(rng, value):
    class Broken:
        def fit_transform(self, X):
            D = pairwise_distances(X)
            D[0, 4] = value
            return sp.dia_matrix(D)

    with pytest.raises(ValueError, match=f"Broken returned a distance of {value}"):
        find_neighbors(Points(rng.normal(size=(10, 2))), 2, Broken(), threads=THREADS)


@pytest.fixture
def allowed(rng):
    """A sparse matrix of squared distances, every node with an edge."""
    Z = sp.triu(sp.random(30, 30, 0.1, random_state=rng) + sp.diags(np.ones(29), 1), k=1)
    return sp.csr_matrix(Z + Z.T)


def test_the_entries_of_a_sparse_matrix_are_the_allowed_edges(allowed):
    pairs = find_neighbors(DistanceMatrix(allowed), 5, "exact", threads=THREADS)
    edges = pairs.edges(threads=THREADS)
    assert (sp.csr_matrix((edges.z, edges.indices, edges.indptr), shape=(30, 30)) != allowed).nnz == 0
    assert (pairs.name, pairs.exact, pairs.recall, pairs.is_given) == ("allowed edges", False, 1.0, True)
    assert pairs.most_neighbors == allowed.nnz / 30
    assert pairs.first(2) is pairs.by_rows() is pairs


def test_a_sparse_matrix_is_not_kept_once_its_edges_were_found(allowed):
    distances = DistanceMatrix(allowed)
    find_neighbors(distances, 5, threads=THREADS)
    assert not any(sp.issparse(value) for value in vars(distances).values())


def test_all_pairs_are_the_lists_of_all_others(rng):
    X, scale = blobs(40, 2, rng), rng.uniform(0.5, 2.0, size=40)
    pairs, lists = (find_neighbors(Points(X), 39, way, threads=THREADS) for way in ("all", "exact"))
    for local_scale in (None, scale):
        of_pairs, of_lists = (found.nearest(6, local_scale, threads=THREADS) for found in (pairs, lists))
        np.testing.assert_allclose(of_pairs, of_lists[:, :6], rtol=1e-12)
    assert (pairs.name, pairs.exact, pairs.recall, pairs.is_given) == ("all pairs", False, 1.0, False)
    assert (pairs.most_neighbors, lists.most_neighbors, lists.is_given) == (39.0, np.inf, False)
    assert pairs.edges(threads=THREADS).n_edges == lists.edges(threads=THREADS).n_edges == 40 * 39 // 2


@pytest.mark.parametrize("way", ["all", "matrix"])
def test_pairs_can_be_used_for_several_graphs(rng, allowed, way):
    """Growing a store consumes it; of these there is nothing to grow, and each fit finds them as they were."""
    distances = Points(rng.normal(size=(30, 2))) if way == "all" else DistanceMatrix(allowed)
    pairs = find_neighbors(distances, 5, "all", threads=THREADS)
    for _ in range(2):
        edges = pairs.edges(threads=THREADS)
        i, j = edges.nodes[::7], edges.indices[::7]
        assert edges.add_pairs(i, j, edges.z[::7], threads=THREADS).n_edges == edges.n_edges
        assert pairs.nearest(3, threads=THREADS).shape == (30, 3)
