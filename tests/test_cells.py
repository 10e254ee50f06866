"""Approximate lists against brute force."""

import tracemalloc

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from conftest import blobs
from smoothgraph import GraphLearner, cells
from smoothgraph.neighbors import ApproximateBackend, find_neighbors
from smoothgraph.samples import Samples


@pytest.fixture
def small_cells(monkeypatch):
    """So that a few thousand samples have many cells."""
    monkeypatch.setattr(cells, "SIZE", 50)
    monkeypatch.setattr(cells, "LARGEST", 200)


def true_distances(X, k):
    return np.square(NearestNeighbors(n_neighbors=k).fit(X).kneighbors()[0])


def found_share(lists, true):
    return np.mean(lists.distances <= true[:, -1:] * (1 + 1e-5))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_nearly_all_neighbours_are_found_and_the_estimate_says_how_many(small_cells, rng, kind):
    X = blobs(4000, 6, rng).astype(kind)
    lists = find_neighbors(Samples(X), 10, ApproximateBackend(0))
    share = found_share(lists, true_distances(X.astype(np.float64), 10))
    assert share > 0.97
    assert abs(lists.recall - share) < 0.02
    assert not any(i in row for i, row in enumerate(lists.indices.tolist()))


def test_hard_data_looks_into_more_cells(small_cells, rng):
    """Without structure in 20 dimensions the first six cells hold few of the neighbours."""
    X = rng.normal(size=(3000, 20))
    search = cells.Search(Samples(X), 10, 0)
    search.widen()
    true = NearestNeighbors(n_neighbors=11).fit(X).kneighbors(X, return_distance=False)[:, 1:]
    first = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(search.lists.tolist(), true.tolist(), strict=True)])
    lists = find_neighbors(Samples(X), 10, ApproximateBackend(0))
    assert first < 0.8
    assert lists.recall > 0.95
    assert abs(lists.recall - found_share(lists, true_distances(X, 10))) < 0.02


def test_sparse_and_dense_samples_have_the_same_lists(small_cells, rng):
    X = np.round(blobs(2000, 5, rng) * (rng.random((2000, 5)) < 0.7), 1)
    dense = find_neighbors(Samples(X), 8, ApproximateBackend(0))
    sparse = find_neighbors(Samples(sp.csr_matrix(X)), 8, ApproximateBackend(0))
    assert abs(dense.recall - sparse.recall) < 0.02
    assert sparse.recall > 0.95


def test_one_seed_one_result(small_cells, rng):
    X = blobs(2000, 4, rng)
    first, again = (find_neighbors(Samples(X), 8, ApproximateBackend(seed)) for seed in (7, np.random.RandomState(7)))
    np.testing.assert_array_equal(first.indices, again.indices)


def test_the_lists_are_the_same_bits_whatever_the_threads(small_cells, rng):
    X = blobs(5000, 5, rng).astype(np.float32)
    before = numba.get_num_threads()
    try:
        found = []
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            found.append(find_neighbors(Samples(X), 8, ApproximateBackend(0)))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0].indices, found[1].indices)
    np.testing.assert_array_equal(found[0].distances, found[1].distances)


@pytest.fixture
def landmarks(small_cells, monkeypatch):
    """So that a hundred centres count as many."""
    monkeypatch.setattr(cells, "LANDMARKS", 5)
    monkeypatch.setattr(cells, "AROUND", 30)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_landmarks_lead_to_nearly_all_of_the_nearest_centres(landmarks, monkeypatch, rng, form):
    samples = Samples(form(blobs(5000, 5, rng)))
    centres, nodes = cells._centres(samples, 0), np.arange(0, 5000, 3)
    found = cells._nearest_centres(samples, nodes, centres, 4)
    true = cells._nearest_of(samples.own(nodes), centres, 4)
    assert len(centres) == 100
    assert np.mean([len(set(a) & set(b)) / 4 for a, b in zip(found.tolist(), true.tolist(), strict=True)]) > 0.95
    monkeypatch.setattr(cells, "AROUND", 50)  # from here on it is all of them
    np.testing.assert_array_equal(cells._nearest_centres(samples, nodes, centres, 4), true)


def test_lists_by_way_of_landmarks_are_nearly_right(landmarks, rng):
    X = blobs(5000, 5, rng)
    lists = find_neighbors(Samples(X), 10, ApproximateBackend(0))
    assert found_share(lists, true_distances(X, 10)) > 0.97


def test_thousands_of_equal_samples_do_not_make_one_huge_cell(small_cells, rng):
    X = np.concatenate([np.zeros((2500, 3)), blobs(1500, 3, rng)])
    search = cells.Search(Samples(X), 5, 0)
    search.widen()
    assert np.diff(search.cells.ptr).max() <= 200
    assert sorted(search.cells.members.tolist()) == list(range(4000))
    lists = find_neighbors(Samples(X), 5, ApproximateBackend(0))
    assert np.all(lists.distances[:2500] == 0)


@pytest.mark.parametrize("n", [3, 40, 1500])
def test_few_samples_are_all_looked_at(rng, n):
    X = blobs(n, 3, rng)
    k = min(5, n - 1)
    lists = find_neighbors(Samples(X), 5, ApproximateBackend(0))
    assert lists.recall == 1.0
    np.testing.assert_allclose(lists.distances, true_distances(X, k), rtol=1e-9)


def test_a_memory_map_is_not_read_into_memory_whole(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "SIZE", 400)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(30_000, 1000))
    for begin in range(0, len(X), 1000):
        X[begin : begin + 1000] = 100 * rng.random((1000, 1), np.float32) + rng.random((1000, 1000), np.float32)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(GraphLearner(2).fit(X[:50])._samples.X, X)
    before = numba.get_num_threads()
    numba.set_num_threads(min(2, before))  # each has its own tile
    tracemalloc.start()
    find_neighbors(Samples(X), 4, ApproximateBackend(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numba.set_num_threads(before)
    assert peak < 0.75 * X.nbytes


def test_the_graph_from_approximate_lists_is_nearly_the_optimum(small_cells, rng):
    X = blobs(3000, 4, rng)
    exact = GraphLearner(8, neighbors="exact").fit(X)
    approximate = GraphLearner(8, neighbors="approximate", theta=exact.theta_, random_state=0).fit(X)
    assert approximate.neighbors_ == "approximate"
    assert exact.recall_ == 1.0
    assert 0.97 < approximate.recall_ <= 1.0
    assert abs(exact.graph_ - approximate.graph_).sum() < 0.01 * exact.graph_.sum()
