"""Exact lists against brute force and scikit-learn."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from conftest import blobs
from smoothgraph.distances import DistanceMatrix, Points
from smoothgraph.neighbors.exact import search_exact
from smoothgraph.parallel import Threads

THREADS = Threads(2)


def lists_of(X, k):
    return search_exact(Points(X), k, threads=THREADS)


def brute_force(Z, k):
    """Sorted squared distances of the k nearest others, from the whole matrix."""
    Z = Z.copy()
    np.fill_diagonal(Z, np.inf)
    return np.sort(Z, axis=1)[:, :k]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [5, 300, 5000])  # 5000: more than one tile in both directions
def test_exact_lists_are_those_of_scikit_learn(rng, n, dtype):
    X = blobs(n, 4, rng).astype(dtype)
    k = min(10, n - 1)
    lists = lists_of(X, k)
    expected, _ = NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(X.astype(float)).kneighbors()
    np.testing.assert_allclose(lists.distances, expected**2, rtol=1e-5)
    assert lists.distances.dtype == dtype
    assert lists.indices.dtype == np.int32
    assert (lists.name, lists.exact, lists.recall, lists.numbering.by_row) == ("exact", True, 1.0, True)


def test_a_large_offset_costs_no_digits(rng):
    """Distances from products lose small ones far from the origin; these are summed from differences."""
    X = rng.normal(size=(200, 3))
    np.testing.assert_allclose(lists_of(X + 1e6, 5).distances, lists_of(X, 5).distances, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1e4, 1e7])
def test_exact_is_exact_where_products_are_not(rng, dtype, far):
    """Two tight clusters far apart: around any centre, products of float32 keep none of the digits that tell neighbours."""
    X = rng.integers(-50, 50, size=(400, 3)).astype(dtype)
    X[200:] += dtype(far)
    Z = ((X[:, None].astype(float) - X[None].astype(float)) ** 2).sum(axis=2)
    np.testing.assert_allclose(lists_of(X, 6).distances, brute_force(Z, 6), rtol=1e-6)


def test_one_sentinel_value_spoils_no_other_list(rng):
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    clean = lists_of(X, 5)
    X[7] = 1e9
    spoilt = lists_of(X, 5)
    untouched = ~((clean.indices == 7).any(axis=1) | (np.arange(3000) == 7))
    np.testing.assert_array_equal(spoilt.indices[untouched], clean.indices[untouched])


def test_duplicates_are_at_exactly_zero(rng):
    X = np.repeat(1e3 + rng.normal(size=(50, 7)).astype(np.float32), 3, axis=0)
    lists = lists_of(X, 4)
    assert (lists.distances[:, :2] == 0).all()
    assert (lists.distances[:, 2] > 0).all()
    assert (lists.indices != np.arange(150)[:, None]).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_and_dense_samples_have_the_same_lists(rng, metric):
    X = sp.random_array((300, 40), density=0.2, random_state=rng, format="csr")
    X = X + sp.csr_array(np.full((300, 1), 0.1) * np.eye(1, 40))
    sparse, dense = (search_exact(Points(x, metric), 8, threads=THREADS) for x in (sp.csr_matrix(X), X.toarray()))
    np.testing.assert_allclose(sparse.distances, dense.distances, rtol=1e-9, atol=1e-12)
    expected = pairwise_distances(X.toarray(), metric="sqeuclidean" if metric == "euclidean" else metric)
    np.testing.assert_allclose(
        dense.distances, brute_force(expected * (2 if metric == "cosine" else 1), 8), rtol=1e-6, atol=1e-9
    )


def test_a_distance_matrix_is_searched_like_samples(rng):
    X = blobs(200, 3, rng)
    Z = pairwise_distances(X, metric="sqeuclidean")
    lists = search_exact(DistanceMatrix(Z), 6, threads=THREADS)
    np.testing.assert_array_equal(lists.distances, brute_force(Z, 6))


def test_exact_search_holds_tiles_not_the_matrix(rng):
    n = 20_000
    X = rng.normal(size=(n, 8)).astype(np.float32)
    lists_of(X[:100], 5)
    tracemalloc.start()
    lists_of(X, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6 < 4 * n * n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_lists_are_the_same_bits_whatever_the_threads(rng, dtype):
    X = blobs(3000, 7, rng).astype(dtype)
    one, three = (search_exact(Points(X), 9, threads=Threads(count)) for count in (1, 3))
    np.testing.assert_array_equal(one.indices, three.indices)
    np.testing.assert_array_equal(one.distances, three.distances)


def test_more_neighbours_begin_with_the_same(rng):
    X = blobs(500, 3, rng)
    short, long = lists_of(X, 6), lists_of(X, 15)
    np.testing.assert_array_equal(long.first(6).indices, short.indices)
    np.testing.assert_array_equal(long.first(6).distances, short.distances)


def test_reach_is_infinite_where_a_list_has_all_others(rng):
    X = blobs(12, 2, rng)
    assert np.isinf(lists_of(X, 11).reach).all()
    np.testing.assert_array_equal(lists_of(X, 10).reach, lists_of(X, 11).distances[:, 9])


def test_scaled_distances_of_lists_are_ascending_again(rng):
    lists, scale = lists_of(blobs(100, 2, rng), 6), rng.uniform(0.2, 5.0, size=100)
    scaled = lists.nearest(3, scale, threads=THREADS)  # lists give whole lists
    expected = np.sort(lists.distances * scale[:, None] * scale[lists.indices], axis=1)
    np.testing.assert_allclose(scaled, expected)
    assert (np.argsort(lists.distances * scale[:, None] * scale[lists.indices], axis=1) != np.arange(6)).any()
    assert lists.nearest(3, threads=THREADS) is lists.distances
