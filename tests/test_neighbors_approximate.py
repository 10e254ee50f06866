"""Approximate lists against brute force."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from conftest import blobs, paper_learner
from smoothgraph.distances import Points
from smoothgraph.neighbors import approximate
from smoothgraph.neighbors.approximate import search_approximate
from smoothgraph.neighbors.cells import Cells, CellSizes
from smoothgraph.parallel import Threads

THREADS = Threads(2)
SMALL = CellSizes(mean=50, largest=200, probes=5)  # a few thousand samples have many cells
NO_VOTES = CellSizes(mean=50, largest=200, probes=5, votes=0)
LANDMARKS = CellSizes(mean=50, largest=200, probes=5, votes=0, around=3)  # of the hundred centres a third


def lists_of(X, k, sizes=SMALL, seed=0, threads=THREADS):
    """Approximate lists, of nodes that are rows."""
    return search_approximate(Points(X), k, seed, sizes=sizes, threads=threads).by_rows()


def true_distances(X, k):
    return np.square(NearestNeighbors(n_neighbors=k).fit(X).kneighbors()[0])


def found_share(lists, true):
    return np.mean(lists.distances <= true[:, -1:] * (1 + 1e-5))


@pytest.fixture
def only_first_cells(monkeypatch):
    """The first cells alone: no more of them, and no neighbours of neighbours."""
    monkeypatch.setattr(approximate, "MAX_WIDENINGS", 1)
    monkeypatch.setattr(approximate, "MAX_REFINEMENTS", 0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_nearly_all_neighbours_are_found_and_the_estimate_says_how_many(rng, kind):
    X = blobs(4000, 6, rng).astype(kind)
    lists = lists_of(X, 10)
    share = found_share(lists, true_distances(X.astype(np.float64), 10))
    assert share > 0.97
    assert abs(lists.recall - share) < 0.02
    assert not any(i in row for i, row in enumerate(lists.indices.tolist()))
    assert (lists.name, lists.exact) == ("approximate", False)


def test_distances_are_those_of_the_samples_and_ascending(rng):
    X = blobs(3000, 4, rng)
    lists = lists_of(X, 8)
    np.testing.assert_allclose(lists.distances, ((X[:, None] - X[lists.indices]) ** 2).sum(axis=2))
    assert (np.diff(lists.distances, axis=1) >= 0).all()


def hard_data(rng):
    """Without structure in 20 dimensions the first five cells hold few of the neighbours."""
    return rng.normal(size=(3000, 20))


def test_the_first_cells_of_hard_data_hold_too_few(only_first_cells, rng):
    X = hard_data(rng)
    lists = lists_of(X, 10, NO_VOTES)
    assert lists.recall < 0.8
    assert abs(lists.recall - found_share(lists, true_distances(X, 10))) < 0.05


def test_votes_lead_to_further_neighbours(only_first_cells, rng):
    X = hard_data(rng)
    true = true_distances(X, 10)
    voted, plain = lists_of(X, 10, SMALL), lists_of(X, 10, NO_VOTES)
    assert found_share(voted, true) > found_share(plain, true) + 0.05
    assert (voted.distances <= plain.distances).all()


def test_hard_data_looks_into_more_cells(monkeypatch, rng):
    monkeypatch.setattr(approximate, "MAX_REFINEMENTS", 0)
    X = hard_data(rng)
    lists = lists_of(X, 10)
    assert lists.recall > 0.9
    assert abs(lists.recall - found_share(lists, true_distances(X, 10))) < 0.02


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_no_sample_is_in_a_list_twice_when_cells_are_looked_into_after_refinement(monkeypatch, rng, form):
    monkeypatch.setattr(approximate, "GOOD_RECALL", 2.0)
    lists = lists_of(form(hard_data(rng).astype(np.float32)), 10)
    assert all(len(set(row)) == 10 for row in lists.indices.tolist())
    assert lists.recall > 0.99


def test_neighbours_of_neighbours_make_lists_better(monkeypatch, rng):
    monkeypatch.setattr(approximate, "MAX_WIDENINGS", 1)
    X = rng.normal(size=(4000, 10))
    true = true_distances(X, 10)
    refined = lists_of(X, 10, NO_VOTES)
    monkeypatch.setattr(approximate, "MAX_REFINEMENTS", 0)
    plain = lists_of(X, 10, NO_VOTES)
    assert found_share(plain, true) + 0.1 < found_share(refined, true)
    assert (refined.distances <= plain.distances).all()


def test_sparse_and_dense_samples_have_lists_as_good(rng):
    X = np.round(blobs(2000, 5, rng) * (rng.random((2000, 5)) < 0.7), 1)
    dense, sparse = lists_of(X, 8), lists_of(sp.csr_matrix(X), 8)
    assert abs(dense.recall - sparse.recall) < 0.02
    assert sparse.recall > 0.95


def sparse_texts(rng, n=3000, words=2000, topics=40):
    """Counts of words, of which a few are in most texts; half of the words of a text are those of its topic."""
    ranks = (words ** rng.random((n, 60))).astype(np.int64) - 1
    columns = (ranks + rng.integers(topics, size=(n, 1)) * (rng.random((n, 60)) < 0.5) * (words // topics)) % words
    counts = sp.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 60)), (n, words))
    counts.sum_duplicates()
    return counts


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_texts_have_their_neighbours_and_distances(rng, kind):
    X = sparse_texts(rng).astype(kind)
    X.data = np.log1p(X.data)
    lists, dense = lists_of(X, 10), X.toarray().astype(np.float64)
    assert found_share(lists, true_distances(dense, 10)) > 0.95
    for i in range(0, X.shape[0], 50):
        np.testing.assert_allclose(lists.distances[i], ((dense[i] - dense[lists.indices[i]]) ** 2).sum(axis=1), rtol=1e-5)


def test_sparse_copies_are_at_0_and_rows_without_entries_are_samples_too(rng):
    X = sparse_texts(rng, 1000)
    X = sp.vstack([X, X, sp.csr_matrix((3, X.shape[1]))]).tocsr()
    z = lists_of(X, 5).distances
    assert np.all(z[:, 0] == 0)


def test_sparse_lists_are_the_same_bits_whatever_the_threads(rng):
    X = sparse_texts(rng)
    one, four = (search_approximate(Points(X), 8, 0, sizes=SMALL, threads=Threads(count)) for count in (1, 4))
    np.testing.assert_array_equal(one.indices, four.indices)
    np.testing.assert_array_equal(one.distances, four.distances)


@pytest.mark.parametrize("n_features", [3, 200])
def test_rows_are_read_from_a_copy_or_where_they_are_with_the_same_result(monkeypatch, rng, n_features):
    X = blobs(2000, n_features, rng)
    some = lists_of(X, 8)
    monkeypatch.setattr(approximate, "SHORT_ROW", 10**6 if n_features == 200 else 0)
    others = lists_of(X, 8)
    np.testing.assert_array_equal(some.indices, others.indices)
    np.testing.assert_array_equal(some.distances, others.distances)


def test_one_seed_one_result(rng):
    X = blobs(2000, 4, rng)
    first, again, other = (lists_of(X, 8, seed=seed) for seed in (7, np.random.RandomState(7), 8))
    np.testing.assert_array_equal(first.indices, again.indices)
    assert (first.indices != other.indices).any()


def test_the_lists_are_the_same_bits_whatever_the_threads(rng):
    X = blobs(5000, 5, rng).astype(np.float32)
    one, four = (search_approximate(Points(X), 8, 0, sizes=SMALL, threads=Threads(count)) for count in (1, 4))
    np.testing.assert_array_equal(one.indices, four.indices)
    np.testing.assert_array_equal(one.distances, four.distances)
    np.testing.assert_array_equal(one.numbering.row_of, four.numbering.row_of)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_landmarks_lead_to_nearly_the_same_cells(only_first_cells, rng, form):
    X = blobs(5000, 5, rng)
    by_landmarks, direct = lists_of(form(X), 10, LANDMARKS), lists_of(form(X), 10, NO_VOTES)
    true = true_distances(X, 10)
    assert found_share(by_landmarks, true) > found_share(direct, true) - 0.03
    assert (by_landmarks.indices != direct.indices).any()


def test_lists_by_way_of_landmarks_are_nearly_right(rng):
    X = blobs(5000, 5, rng)
    assert found_share(lists_of(X, 10, LANDMARKS), true_distances(X, 10)) > 0.97


def test_no_cell_is_too_large_and_every_sample_is_in_one(rng):
    home = np.concatenate([np.zeros(2500), rng.integers(0, 30, size=1500)]).astype(np.int32)
    cells = Cells.of(home, 200)
    sizes = np.diff(cells.ptr)
    assert sizes.max() == 200
    assert sorted(cells.members.tolist()) == list(range(4000))
    np.testing.assert_array_equal(cells.home[cells.members], np.repeat(np.arange(sizes.size), sizes))
    kept = cells.home < 30
    np.testing.assert_array_equal(cells.home[kept], home[kept])


def test_thousands_of_equal_samples_find_each_other(rng):
    X = np.concatenate([np.zeros((2500, 3)), blobs(1500, 3, rng)])
    assert np.all(lists_of(X, 5).distances[:2500] == 0)


@pytest.mark.parametrize("n", [3, 40, 1500])
def test_few_samples_are_all_looked_at(rng, n):
    X = blobs(n, 3, rng)
    k = min(5, n - 1)
    lists = lists_of(X, k, sizes=None)
    assert lists.recall == 1.0
    np.testing.assert_allclose(lists.distances, true_distances(X, k), rtol=1e-9)


def test_a_memory_map_is_not_read_into_memory_whole(rng, tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(30_000, 1000))
    for begin in range(0, len(X), 1000):
        X[begin : begin + 1000] = 100 * rng.random((1000, 1), np.float32) + rng.random((1000, 1000), np.float32)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    tracemalloc.start()
    search_approximate(Points(X), 4, 0, sizes=CellSizes(mean=400), threads=THREADS)  # each thread has its own tile
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * X.nbytes


def test_the_graph_from_approximate_lists_is_nearly_the_optimum(monkeypatch, rng):
    monkeypatch.setattr(approximate, "CELL_SIZES", SMALL)
    X = blobs(3000, 4, rng)
    exact = paper_learner(8, neighbors="exact").fit(X)
    learned = paper_learner(8, neighbors="approximate", theta=exact.theta_, random_state=0).fit(X)
    assert learned.neighbors_ == "approximate"
    assert exact.recall_ == 1.0
    assert 0.97 < learned.recall_ <= 1.0
    assert abs(exact.graph_ - learned.graph_).sum() < 0.01 * exact.graph_.sum()


def test_one_sample_far_away_does_not_blur_the_others(rng):
    X = np.concatenate([rng.normal(size=(60, 3)), [[1e12, -1e12, 1e12]]])
    lists = lists_of(X, 5, sizes=None)
    np.testing.assert_allclose(lists.distances[:60], true_distances(X, 5)[:60], rtol=1e-9)
