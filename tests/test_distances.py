"""Distances of chosen pairs and tiles of lower bounds, whatever numbers nodes have: judged by numpy in float64."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from smoothgraph import GraphLearner
from smoothgraph.distances import METRICS, DistanceMatrix, Metric, Points, distances_of, measured_tiles
from smoothgraph.neighbors import find_neighbors
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import ROWS, Threads

THREADS = Threads(2)
N = 60
FORMS = {
    "float32": lambda X: Points(X.astype(np.float32)),
    "float64": Points,
    "sparse": lambda X: Points(sp.csr_matrix(X)),
    "distances": lambda X: DistanceMatrix(((X[:, None] - X[None]) ** 2).sum(axis=2)),
}


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture(params=["rows", "numbered"])
def sampled(request, form, rng):
    """(distances of N samples, their squared distances by node)."""
    X = rng.normal(size=(N, 33)).astype(np.float32).astype(np.float64)
    rows = np.arange(N) if request.param == "rows" else rng.permutation(N)
    distances = FORMS[form](X)
    if request.param == "numbered":
        distances = distances.numbered(Numbering.of(rows))
    return distances, ((X[rows][:, None] - X[rows][None]) ** 2).sum(axis=2)


def test_distances_to_lists_are_those_of_numpy(sampled, rng):
    distances, square = sampled
    lists = rng.integers(-1, N, size=(N, 40)).astype(np.int32)
    z = distances.to_lists(distances.own(np.arange(N)), lists, threads=THREADS)
    expected = np.where(lists < 0, np.inf, np.take_along_axis(square, np.maximum(lists, 0), axis=1))
    np.testing.assert_allclose(z, expected, rtol=1e-6)
    assert z.dtype == distances.dtype


def test_distances_up_to_a_limit_are_the_same_bits_and_the_limit_itself_is_within(sampled, rng):
    distances, _ = sampled
    lists = rng.integers(-1, N, size=(N, 40)).astype(np.int32)
    own = distances.own(np.arange(N))
    z = distances.to_lists(own, lists, threads=THREADS)
    limits = np.sort(np.where(lists < 0, np.nan, z), axis=1)[:, 10].astype(np.float64)
    near = distances.to_lists(own, lists, limits, threads=THREADS)
    np.testing.assert_array_equal(near, np.where(z <= limits[:, None], z, np.inf))
    assert (near == limits[:, None]).any(axis=1).all()


def test_distances_of_pairs_are_those_of_lists_of_one(sampled, rng):
    distances, _ = sampled
    i, j = rng.integers(N, size=(2, 200)).astype(np.int32)
    z = distances.of_pairs(i, j, threads=THREADS)
    np.testing.assert_array_equal(z, distances.to_lists(distances.own(i), j[:, None], threads=THREADS)[:, 0])
    assert distances.of_pairs(i[:0], j[:0], threads=THREADS).shape == (0,)


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_tiles_are_lower_bounds_that_are_nearly_the_distances(sampled, form, rng, precise, some):
    distances, square = sampled
    rounding = 1e-5 if precise and form == "float32" else 1e-12  # the middle is subtracted in float32 even then
    among = rng.permutation(N)[:25].astype(np.int32) if some else None
    tiles = list(distances.bound_tiles(distances.own(np.arange(N)), precise, among))
    bounds = np.concatenate([tile for _, tile in tiles], axis=1)
    true = square if among is None else square[:, among]
    assert [first for first, _ in tiles] == list(np.cumsum([0] + [tile.shape[1] for _, tile in tiles])[:-1])
    assert (bounds <= true + rounding).all()
    np.testing.assert_allclose(bounds, true, atol=1e-3)


def test_many_pairs_and_many_columns_are_done_in_blocks(rng):
    X = rng.normal(size=(9000, 2))
    points = Points(X)
    i, j = rng.integers(9000, size=(2, 40_000)).astype(np.int32)
    np.testing.assert_allclose(points.of_pairs(i, j, threads=THREADS), ((X[i] - X[j]) ** 2).sum(axis=1))
    tiles = list(points.bound_tiles(X[:3]))
    assert len(tiles) > 1
    np.testing.assert_allclose(np.concatenate([t for _, t in tiles], axis=1), pairwise_distances(X[:3], X) ** 2, atol=1e-9)


def test_nodes_in_the_order_of_their_rows(form, rng):
    X, rows = rng.normal(size=(50, 3)), rng.permutation(50)
    distances = FORMS[form](X)
    numbered = distances.numbered(Numbering.of(rows))
    np.testing.assert_array_equal(rows[numbered.nodes_in_row_order()], np.arange(50))
    np.testing.assert_array_equal(distances.nodes_in_row_order(), np.arange(50))
    own = numbered.own(numbered.nodes_in_row_order())
    assert abs(own - distances.X).max() == 0


def test_a_memory_map_stays_where_it_is(rng, tmp_path):
    np.save(tmp_path / "X.npy", rng.normal(size=(50, 3)))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(Points(X).X, X)
    assert np.shares_memory(Points(X).numbered(Numbering.of(rng.permutation(50))).X, X)


@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}])
@pytest.mark.parametrize("copies", [0, 600])
def test_rows_of_a_wide_memory_map_are_copied_a_few_at_a_time(rng, tmp_path, monkeypatch, options, copies):
    """However wide, no stage holds a thousand rows at once; what must be held is only the table that cosine or copies make."""
    n, d, at_once = 1200, 3000, 1 << 20
    monkeypatch.setattr("smoothgraph.distances.BYTES_AT_ONCE", at_once)
    monkeypatch.setattr("smoothgraph._checks.SAMPLED_VALUES", 100_000)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(n, d))
    X[:] = rng.random((n, 1), np.float32) + rng.random(d, np.float32) * rng.random((n, 1), np.float32)
    X[n - copies :] = X[:copies]
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    learner = GraphLearner(3, n_jobs=1, connect=False, **options)
    learner.fit(X)  # what is compiled the first time is not counted
    made = 4 * d * (n - copies) * (("metric" in options) + (copies > 0))
    tracemalloc.start()
    learner.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - made < 9 * at_once < 0.75 * X.nbytes


def test_repeated_entries_of_a_sparse_row_are_one_and_the_samples_stay_as_they_were():
    X = sp.csr_matrix((np.ones(4), np.array([1, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 3))
    points = Points(X)
    assert points.of_pairs(np.array([0], np.int32), np.array([1], np.int32), threads=THREADS) == 1 + 4 + 1
    assert X.nnz == 4


@pytest.mark.parametrize("to_form", [np.asarray, sp.csr_matrix])
def test_cosine_is_the_distance_of_rows_of_length_one(rng, to_form):
    X = rng.normal(size=(30, 5))
    points = distances_of(to_form(X), "cosine")
    i, j = rng.integers(30, size=(2, 50)).astype(np.int32)
    expected = 2.0 * pairwise_distances(X, metric="cosine")[i, j]
    np.testing.assert_allclose(points.of_pairs(i, j, threads=THREADS), expected, atol=1e-12)
    z = points.to_lists(points.queries(to_form(7.0 * X[i])), j[:, None], threads=THREADS)
    np.testing.assert_allclose(z[:, 0], expected, atol=1e-12)


def test_a_row_of_the_table_is_all_that_a_metric_needs(rng, monkeypatch):
    """The Euclidean kernel under another name, with itself in place of matrix products: the same lists, found exactly."""
    plain = METRICS["euclidean"]
    row = Metric("plain", plain.prepare, plain.measure, None, measured_tiles, has_centres=False)
    monkeypatch.setitem(METRICS, "plain", row)
    X = rng.normal(size=(5000, 3)).astype(np.float32)
    ours, known = (
        find_neighbors(distances_of(X, metric), 6, "approximate" if metric == "plain" else "exact", threads=THREADS)
        for metric in ("plain", "euclidean")
    )
    assert ours.exact
    np.testing.assert_array_equal(ours.indices, known.indices)
    np.testing.assert_array_equal(ours.distances, known.distances)
    with pytest.raises(ValueError, match=r"'plain' takes dense samples.*toarray"):
        Points(sp.csr_matrix(X), "plain")


def test_new_rows_of_a_sparse_matrix_are_at_infinity_where_nothing_is_stored():
    Z = sp.csr_matrix(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 0.0], [4.0, 0.0, 0.0]]))
    distances = distances_of(Z, "precomputed_squared")
    assert not distances.can_search
    np.testing.assert_array_equal(distances.queries(sp.csr_matrix([[0.0, 2.0, 0.0]])), [[np.inf, 2.0, np.inf]])
    with pytest.raises(ValueError, match="smallest is -2"):
        distances.queries(np.array([[0.0, -2.0, 0.0]]))


def test_allowed_edges_are_handed_over_once(rng):
    Z = sp.csr_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    distances = DistanceMatrix(Z)
    assert distances.take_edges() is Z
    for other in (distances, DistanceMatrix(Z.toarray()), Points(rng.normal(size=(5, 2)))):
        with pytest.raises(RuntimeError, match="no allowed edges to take"):
            other.take_edges()


def test_overflow_zero_rows_and_unknown_metrics_are_named():
    with pytest.raises(ValueError, match=r"values up to 1e\+200.*Rescale"):
        Points(np.array([[-1e200], [0.0], [1e200]]))
    with pytest.raises(ValueError, match="row 1 is all zeros"):
        Points(np.array([[1.0], [0.0]]), "cosine")
    with pytest.raises(ValueError, match=r"'chebyshev' is not known.*'euclidean', 'cosine'"):
        distances_of(np.ones((3, 1)), "chebyshev")


@pytest.mark.parametrize("options", [{}, {"neighbors": "approximate", "random_state": 0}, {"metric": "precomputed"}])
def test_rows_of_a_wide_table_are_copied_a_block_at_a_time(options, rng, monkeypatch):
    """However many rows a stage wants: not even the rows of a table that fits in memory twice are all copied."""
    copied: list[int] = []
    monkeypatch.setattr("smoothgraph.distances.BYTES_AT_ONCE", 1 << 18)
    for kind in (Points, DistanceMatrix):
        own = kind.own
        monkeypatch.setattr(kind, "own", lambda self, nodes, own=own: (copied.append(len(nodes)), own(self, nodes))[1])
    X = rng.normal(size=(2600, 40))
    X = pairwise_distances(X[:1500]) if "metric" in options else X
    GraphLearner(5, **options).fit(X)
    assert max(copied) <= ROWS
