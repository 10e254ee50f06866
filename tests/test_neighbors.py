import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

from conftest import blobs, lists_of
from smoothgraph.neighbors import (
    EXACT_WORK,
    ApproximateBackend,
    ExactBackend,
    GivenBackend,
    choose_backend,
    find_neighbors,
    nearest_to_new,
    pairs_nearer_than,
)
from smoothgraph.samples import DistanceMatrix, Samples


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


def test_one_sentinel_value_spoils_nobody_else(rng):
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
    X = sp.random_array((300, 40), density=0.2, rng=rng, format="csr") + sp.csr_array(np.full((300, 1), 0.1) * np.eye(1, 40))
    sparse, dense = (find_neighbors(Samples(x, metric), 8, ExactBackend()) for x in (sp.csr_matrix(X), X.toarray()))
    np.testing.assert_allclose(sparse.distances, dense.distances, rtol=1e-9, atol=1e-12)
    expected = pairwise_distances(X.toarray(), metric="sqeuclidean" if metric == "euclidean" else metric)
    np.testing.assert_allclose(
        dense.distances, brute_force(expected * (2 if metric == "cosine" else 1), 8), rtol=1e-6, atol=1e-9
    )


def test_a_distance_matrix_is_searched_like_samples(rng):
    X = blobs(200, 3, rng)
    Z = pairwise_distances(X, metric="sqeuclidean")
    lists = find_neighbors(DistanceMatrix(Z), 6, ExactBackend())
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


class MessyBackend:
    """Self in the middle or missing, repeats, gaps, nothing sorted."""

    name, exact = "messy", False

    def __init__(self, rng):
        self.rng = rng

    def __call__(self, samples, k, sampled):
        found = lists_of(samples.X, k).indices
        nodes = np.arange(samples.n)[:, None]
        messy = np.concatenate([found, nodes, found[:, :2], np.full((samples.n, 2), -1)], axis=1)
        return self.rng.permuted(messy, axis=1)


def test_what_backends_return_is_put_in_order(rng):
    X = blobs(150, 3, rng)
    tidy, clean = find_neighbors(Samples(X), 7, MessyBackend(rng)), lists_of(X, 7)
    np.testing.assert_array_equal(tidy.indices, clean.indices)
    np.testing.assert_array_equal(tidy.distances, clean.distances)


def test_rows_shorter_than_asked_end_in_gaps(rng):
    X = blobs(20, 2, rng)
    indices = lists_of(X, 4).indices.copy()
    indices[3, 2:] = -1
    lists = find_neighbors(Samples(X), 4, GivenBackend((indices, None)))
    assert lists.indices[3, 2:].tolist() == [-1, -1]
    assert np.isinf(lists.distances[3, 2:]).all()
    assert lists.reach[3] == lists.distances[3, 1]


def test_a_transformer_and_a_pair_give_the_lists_of_their_indices(rng):
    X = blobs(200, 3, rng)
    plain = lists_of(X, 9)
    transformer = KNeighborsTransformer(n_neighbors=9, mode="distance")
    pair = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(X, return_distance=True)[::-1]  # with self, distances not squared
    for given in (transformer, pair):
        lists = find_neighbors(Samples(X), 9, choose_backend(given, Samples(X)))
        np.testing.assert_allclose(lists.distances[:, :9], plain.distances, rtol=1e-9)


def test_reach_is_infinite_where_a_list_has_everybody(rng):
    X = blobs(12, 2, rng)
    assert np.isinf(lists_of(X, 11).reach).all()
    assert np.isfinite(lists_of(X, 10).reach).all()


def test_auto_goes_by_the_amount_of_work():
    small = DistanceMatrix(np.zeros((2, 2)))
    assert choose_backend("auto", small).name == "exact"

    class Size:
        def __init__(self, n, n_features):
            self.n, self.n_features = n, n_features

    n_even = int(np.sqrt(EXACT_WORK / (100 + 60)))
    assert choose_backend("auto", Size(n_even - 1, 100)).name == "exact"
    assert choose_backend("auto", Size(n_even + 1, 100)).name == "approximate"


def test_approximate_lists_are_almost_the_exact_ones(rng):
    X = blobs(3000, 10, rng).astype(np.float32)
    found = find_neighbors(Samples(X), 10, ApproximateBackend(random_state=0))
    recall = (found.distances <= lists_of(X, 10).reach[:, None] * (1 + 1e-6)).mean()
    assert recall > 0.95
    assert not found.exact


def test_new_samples_find_the_smallest_shifted_distance(rng):
    X, Q, offset = blobs(500, 3, rng), blobs(30, 3, rng), rng.random(500)
    lists, distances, cuts = nearest_to_new(Samples(X), Q, 12, offset)
    shifted = np.sort(pairwise_distances(Q, X, metric="sqeuclidean") - offset, axis=1)
    np.testing.assert_allclose(np.sort(distances - offset[lists], axis=1)[:, :12], shifted[:, :12], atol=1e-9)
    assert (cuts <= shifted[:, lists.shape[1]] + 1e-9).all()


def test_pairs_within_the_sum_of_two_limits(rng):
    X, limits = blobs(400, 3, rng), rng.random(400)
    nodes = np.array([3, 77, 399], np.int32)
    i, j, z = pairs_nearer_than(Samples(X), nodes, limits, np.ones(len(X)), 10**6)
    Z = pairwise_distances(X, metric="sqeuclidean")
    expected = {(a, b) for a in nodes for b in range(400) if a != b and Z[a, b] < limits[a] + limits[b]}
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == expected
    np.testing.assert_allclose(z, Z[i, j], rtol=1e-9)
    assert pairs_nearer_than(Samples(X), nodes, limits + 1e9, np.ones(len(X)), 100) is None


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
        ((np.full((10, 2), -1), None), "no neighbour"),
        ((np.repeat(np.arange(10)[:, None], 2, axis=1), None), "no neighbour"),
    ],
)
def test_bad_neighbours_are_named(rng, given, message):
    samples = Samples(rng.normal(size=(10, 2)))
    with pytest.raises(ValueError, match=message):
        find_neighbors(samples, 2, choose_backend(given, samples))


def test_a_transformer_of_the_wrong_shape_is_named(rng):
    class Wrong:
        def fit_transform(self, X):
            return sp.eye(3)

    samples = Samples(rng.normal(size=(10, 2)))
    with pytest.raises(ValueError, match=r"Wrong.*\(3, 3\)"):
        find_neighbors(samples, 2, choose_backend(Wrong(), samples))


def test_overflow_and_zero_rows_are_named():
    with pytest.raises(ValueError, match=r"overflow float32.*1e\+30"):
        Samples(np.array([[0.0], [1e30]], np.float32))
    with pytest.raises(ValueError, match="row 1 is all zeros"):
        Samples(np.array([[1.0], [0.0]]), "cosine")
