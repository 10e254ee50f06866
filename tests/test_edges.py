"""Allowed edges, as sets of pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import blobs
from smoothgraph import edges as edges_module
from smoothgraph.distances import DistanceMatrix, Points
from smoothgraph.edges import Edges, check_no_isolated, edges_of_all_pairs, edges_of_lists, edges_of_matrix, rows_of_lists
from smoothgraph.neighbors import find_neighbors
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import Threads

THREADS = Threads(2)


def lists_of(X, k):
    return find_neighbors(Points(X), k, "exact", threads=THREADS)


def edges_of(X, k):
    lists = lists_of(X, k)
    return edges_of_lists(lists.indices, lists.distances, lists.reach, threads=THREADS)


def as_dict(edges):
    """{(i, j): z} of every stored entry; fails if one is stored twice."""
    entries = list(zip(edges.nodes.tolist(), edges.indices.tolist(), strict=True))
    assert len(entries) == len(set(entries))
    return dict(zip(entries, edges.z.tolist(), strict=True))


def both_ways(pairs):
    return {(i, j) for i, j in pairs} | {(j, i) for i, j in pairs}


def listed(lists):
    return {(i, int(j)) for i, row in enumerate(lists.indices) for j in row if j >= 0}


def random_pairs(n, count, X, rng):
    i, j = rng.integers(n, size=(2, count)).astype(np.int32)
    i, j = i[i != j], j[i != j]
    return i, j, ((X[i] - X[j]) ** 2).sum(axis=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 30), st.integers(1, 8))
def test_an_edge_is_allowed_if_one_end_lists_the_other(seed, n, k):
    X = blobs(n, 2, np.random.default_rng(seed))
    k = min(k, n - 1)
    edges = edges_of(X, k)
    entries = as_dict(edges)
    assert set(entries) == both_ways(listed(lists_of(X, k)))
    for (i, j), z in entries.items():
        assert z == entries[j, i] == pytest.approx(((X[i] - X[j]) ** 2).sum())
    assert (edges.n, 2 * edges.n_edges, edges.farthest) == (n, len(entries), max(entries.values()))
    assert edges.longest_row == np.bincount(edges.nodes).max()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.data())
def test_longer_lists_for_some_nodes_add_their_edges(seed, data):
    X = blobs(25, 2, np.random.default_rng(seed))
    short, long = lists_of(X, 3), lists_of(X, 9)
    nodes = np.array(data.draw(st.lists(st.integers(0, 24), unique=True, min_size=1)), np.int32)
    few = long.indices[nodes], long.distances[nodes], long.reach[nodes]
    grown = edges_of(X, 3).add_lists(nodes, *few, threads=THREADS)
    wanted = listed(short) | {(i, j) for i, j in listed(long) if i in nodes}
    entries = as_dict(grown)
    assert set(entries) == both_ways(wanted)
    assert all(z == entries[j, i] for (i, j), z in entries.items())
    np.testing.assert_array_equal(grown.reach, np.where(np.isin(np.arange(25), nodes), long.reach, short.reach))


def test_single_pairs_are_added_once_whatever_their_order(rng):
    X = blobs(20, 2, rng)
    before = as_dict(edges_of(X, 2))
    pairs = [(0, 19), (19, 0), (5, 12), (0, 19), next(iter(before))]
    i, j = np.array(pairs, np.int32).T
    after = as_dict(edges_of(X, 2).add_pairs(i, j, ((X[i] - X[j]) ** 2).sum(axis=1), threads=THREADS))
    assert set(after) == set(before) | both_ways(pairs)


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("to_distances", [Points, lambda X: DistanceMatrix(((X[:, None] - X[None]) ** 2).sum(axis=2))])
def test_the_edges_of_a_graph_are_added_at_their_distances(rng, numbered, to_distances):
    X = blobs(30, 2, rng)
    rows = rng.permutation(30) if numbered else np.arange(30)
    W = sp.random(30, 30, 0.05, random_state=rng)
    W = sp.csr_matrix(W + W.T + sp.eye(30))  # a diagonal is no edge
    before = as_dict(edges_of(X[rows], 2))
    distances = to_distances(X).numbered(Numbering.of(rows))
    after = as_dict(edges_of(X[rows], 2).add_graph(W, distances, threads=THREADS))
    i, j = W.nonzero()
    assert set(after) == set(before) | {(a, b) for a, b in zip(i.tolist(), j.tolist(), strict=True) if a != b}
    assert len(after) > len(before)
    for (a, b), z in after.items():
        assert z == pytest.approx(((X[rows[a]] - X[rows[b]]) ** 2).sum())


def test_growing_again_and_again_keeps_every_edge_in_the_same_memory_while_there_is_room(rng):
    X = blobs(60, 2, rng)
    edges = edges_of(X, 2)
    entries, moved = as_dict(edges), []
    for _ in range(8):
        i, j, z = random_pairs(60, 40, X, rng)
        memory = edges.indices
        edges = edges.add_pairs(i, j, z, threads=THREADS)
        moved.append(not np.shares_memory(memory, edges.indices))
        for a, b, distance in zip(i.tolist(), j.tolist(), z.tolist(), strict=True):
            entries.setdefault((a, b), distance)
            entries.setdefault((b, a), distance)
        assert as_dict(edges) == entries
    assert not moved[0]
    assert any(moved)


def test_growing_consumes_the_store_and_says_so(rng):
    X = blobs(60, 2, rng)
    old = edges_of(X, 2)
    scaled, indptr, n_edges = old.scaled(np.ones(60), threads=THREADS), old.indptr.copy(), old.n_edges
    new = old.add_pairs(*random_pairs(60, 40, X, rng), threads=THREADS)
    for consumed in (lambda: old.indices, lambda: old.z, lambda: old.farthest, lambda: scaled.indices):
        with pytest.raises(RuntimeError, match="consumed"):
            consumed()
    with pytest.raises(RuntimeError, match="consumed"):
        old.add_pairs(*random_pairs(60, 40, X, rng), threads=THREADS)
    assert (old.n, old.n_edges) == (60, n_edges)
    np.testing.assert_array_equal(old.indptr, indptr)
    np.testing.assert_array_equal(old.reach, new.reach)
    assert new.n_edges > n_edges


def test_edges_that_are_there_already_consume_nothing(rng):
    X = blobs(60, 2, rng)
    long, short = lists_of(X, 5), lists_of(X, 3)
    old = edges_of(X, 5)
    nodes = np.arange(0, 60, 2, dtype=np.int32)
    some = short.indices[nodes], short.distances[nodes], short.reach[nodes]
    same = old.add_lists(nodes, *some, threads=THREADS)
    assert as_dict(same) == as_dict(old)
    np.testing.assert_array_equal(same.reach[nodes], short.reach[nodes])
    np.testing.assert_array_equal(old.reach, long.reach)
    grown = same.add_pairs(*random_pairs(60, 40, X, rng), threads=THREADS)  # both had the memory that is used now
    assert grown.n_edges > old.n_edges
    with pytest.raises(RuntimeError, match="consumed"):
        old.indices  # noqa: B018


def test_a_store_of_given_arrays_never_writes_to_memory_behind_them(rng):
    """The arrays are views of a larger one, whose end is not the store's to use."""
    pair = np.array([1, 0, -7, -7, -7], np.int32), np.array([2.0, 2.0, -7.0, -7.0, -7.0])
    edges = Edges(np.array([0, 1, 2, 2]), pair[0][:2], pair[1][:2], np.zeros(3))
    grown = edges.add_pairs(np.array([1]), np.array([2]), np.array([5.0]), threads=THREADS)
    assert as_dict(grown) == {(0, 1): 2.0, (1, 0): 2.0, (1, 2): 5.0, (2, 1): 5.0}
    assert (pair[0][2:] == -7).all()
    assert (pair[1][2:] == -7).all()


@pytest.mark.parametrize("n", [300, 20_000])  # 20,000: more than one range of nodes
def test_the_edges_are_the_same_bits_whatever_the_threads(rng, n):
    lists = rng.integers(-1, n, size=(n, 6)).astype(np.int32)
    lists[lists == np.arange(n)[:, None]] = -1
    z = rng.random((n, 6)).astype(np.float32)
    one, four = (rows_of_lists(lists, z, threads=Threads(count)) for count in (1, 4))
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)
    i, j = np.repeat(np.arange(n), np.diff(one[0])), one[1]
    forth, back = np.lexsort((j, i)), np.lexsort((i, j))
    np.testing.assert_array_equal((i[forth], j[forth]), (j[back], i[back]))
    np.testing.assert_array_equal(one[2][forth], one[2][back])


def test_a_matrix_gives_its_entries_and_a_stored_zero_is_one():
    Z = sp.csr_matrix((np.array([0.0, 0.0, 3.0, 3.0, 7.0]), ([0, 1, 1, 2, 2], [1, 0, 2, 1, 2])), shape=(3, 3))
    edges = edges_of_matrix(Z)
    assert as_dict(edges) == {(0, 1): 0.0, (1, 0): 0.0, (1, 2): 3.0, (2, 1): 3.0}
    assert np.isinf(edges.reach).all()


def test_a_node_without_an_allowed_edge_is_named_where_every_node_needs_one():
    edges = edges_of_matrix(sp.csr_matrix(([1.0, 1.0], ([0, 1], [1, 0])), shape=(3, 3)))
    with pytest.raises(ValueError, match="Sample 2 has no allowed edge"):
        check_no_isolated(edges)
    with pytest.raises(ValueError, match="None of the 3 samples has an allowed edge"):
        edges_of_matrix(sp.csr_matrix(np.eye(3)))


def test_all_pairs_are_all_pairs(rng):
    X = rng.normal(size=(40, 3))
    edges = edges_of_all_pairs(Points(X), threads=THREADS)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert as_dict(edges).keys() == {(i, j) for i in range(40) for j in range(40) if i != j}
    np.testing.assert_allclose(edges.z, square[edges.nodes, edges.indices])
    assert np.isinf(edges.reach).all()


def test_all_pairs_of_too_many_samples_are_refused_before_memory_is_taken(monkeypatch, rng):
    monkeypatch.setattr(edges_module, "BYTES_PER_PAIR", 1e15)
    with pytest.raises(ValueError, match=r"All pairs of 40 samples need about 1.6e\+09 GB"):
        edges_of_all_pairs(Points(rng.normal(size=(40, 3))), threads=THREADS)


def test_nearest_distances_are_sorted_and_padded():
    Z = sp.csr_matrix([[0, 5, 2, 9], [5, 0, 0, 0], [2, 0, 0, 1], [9, 0, 1, 0]], dtype=float)
    expected = [[2, 5, 9], [5, np.inf, np.inf], [1, 2, np.inf], [1, 9, np.inf]]
    np.testing.assert_array_equal(edges_of_matrix(Z).nearest(3, threads=THREADS), expected)


def test_scaled_distances_count_the_scales_of_both_ends(rng):
    edges, scale = edges_of(blobs(50, 2, rng), 4), rng.uniform(0.5, 2.0, size=50)
    scaled = edges.scaled(scale, threads=THREADS)
    np.testing.assert_allclose(scaled.z, edges.z * scale[edges.nodes] * scale[edges.indices])
    assert scaled.indices.base is edges.indices.base
    assert scaled.indptr is edges.indptr
    assert edges.scaled(None, threads=THREADS) is edges
