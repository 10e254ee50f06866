"""Searches among all samples against brute force, whatever numbers nodes have."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from conftest import blobs
from smoothgraph.distances import DistanceMatrix, Points
from smoothgraph.neighbors.queries import nearest_outside, nearest_to_new, pairs_nearer_than
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import Threads

THREADS = Threads(2)
FORMS = {
    "dense": Points,
    "sparse": lambda X: Points(sp.csr_matrix(X)),
    "distances": lambda X: DistanceMatrix(pairwise_distances(X, metric="sqeuclidean")),
}


@pytest.fixture(params=FORMS)
def searched(request, rng):
    """(distances of 400 numbered samples, their squared distances by node)."""
    X, rows = blobs(400, 3, rng), rng.permutation(400)
    distances = FORMS[request.param](X).numbered(Numbering.of(rows))
    return distances, pairwise_distances(X[rows], metric="sqeuclidean")


@pytest.mark.parametrize("scaled", [False, True])
def test_new_samples_find_the_smallest_shifted_distance(rng, scaled):
    X, Q, offset = blobs(500, 3, rng), blobs(30, 3, rng), rng.random(500)
    scales = (rng.uniform(0.5, 2.0, size=30), rng.uniform(0.5, 2.0, size=500)) if scaled else None
    lists, z, cuts = nearest_to_new(Points(X), Q, 12, offset, scales, threads=THREADS)
    square = pairwise_distances(Q, X, metric="sqeuclidean")
    np.testing.assert_allclose(z, np.take_along_axis(square, lists, axis=1), rtol=1e-9)
    factor = scales[0][:, None] * scales[1] if scaled else np.ones((30, 500))
    shifted = square * factor - offset
    found = np.sort(np.take_along_axis(shifted, lists, axis=1), axis=1)
    np.testing.assert_allclose(found[:, :12], np.sort(shifted, axis=1)[:, :12], atol=1e-9)
    assert (cuts <= np.sort(shifted, axis=1)[:, lists.shape[1]] + 1e-9).all()


def test_new_rows_of_a_matrix_find_their_smallest(rng):
    Z = pairwise_distances(rng.normal(size=(60, 2)), metric="sqeuclidean")
    lists, z, _ = nearest_to_new(DistanceMatrix(Z), Z[:7] + 1.0, 5, threads=THREADS)
    np.testing.assert_allclose(np.sort(z, axis=1)[:, :5], np.sort(Z[:7] + 1.0, axis=1)[:, :5])
    np.testing.assert_array_equal(z, np.take_along_axis(Z[:7] + 1.0, lists, axis=1))


@pytest.mark.parametrize("scaled", [False, True])
def test_pairs_within_the_sum_of_two_limits(searched, rng, scaled):
    distances, square = searched
    limits, scale = rng.random(400), rng.uniform(0.5, 2.0, size=400) if scaled else None
    nodes = np.arange(7, 40, dtype=np.int32)
    i, j, z = pairs_nearer_than(distances, nodes, limits, scale, 10**6, threads=THREADS)
    near = square * (np.outer(scale, scale) if scaled else 1.0) < limits[:, None] + limits
    np.fill_diagonal(near, False)
    expected = {(a, b) for a, b in np.argwhere(near).tolist() if 7 <= a < 40 and not (7 <= b < 40 and a > b)}
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == expected
    assert len(i) == len(expected) > 50
    np.testing.assert_allclose(z, square[i, j], rtol=1e-9)


def test_pairs_among_some_nodes_only(searched, rng):
    distances, square = searched
    limits, nodes, among = rng.random(400), np.array([3, 77, 399], np.int32), rng.permutation(400)[:200].astype(np.int32)
    i, j, _ = pairs_nearer_than(distances, nodes, limits, None, 10**6, among, threads=THREADS)
    near = {(a, b) for a in nodes.tolist() for b in among.tolist() if a != b and square[a, b] < limits[a] + limits[b]}
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == near
    nothing = pairs_nearer_than(distances, nodes, limits, None, 10**6, among[:0], threads=THREADS)
    assert [len(part) for part in nothing] == [0, 0, 0]


def test_too_many_pairs_are_none(searched):
    distances, _ = searched
    nodes, limits = np.arange(3, dtype=np.int32), np.full(400, 1e9)
    assert pairs_nearer_than(distances, nodes, limits, None, 100, threads=THREADS) is None
    assert len(pairs_nearer_than(distances, nodes, limits, None, 3 * 399 + 1, threads=THREADS)[0]) == 3 * 399 - 3


@pytest.mark.parametrize("scaled", [False, True])
def test_the_nearest_node_with_another_label(searched, rng, scaled):
    distances, square = searched
    labels, offset = rng.integers(0, 4, size=400), rng.random(400)
    scale = rng.uniform(0.5, 2.0, size=400) if scaled else None
    nodes = rng.permutation(400)[:150].astype(np.int32)
    others, z = nearest_outside(distances, nodes, labels, offset, scale, threads=THREADS)
    shifted = square * (np.outer(scale, scale) if scaled else 1.0) - offset
    shifted[labels[:, None] == labels] = np.inf
    np.testing.assert_allclose(shifted[nodes, others], shifted[nodes].min(axis=1), atol=1e-9)
    np.testing.assert_allclose(z, square[nodes, others], rtol=1e-9)
