import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import blobs, candidates_of, lists_of
from smoothgraph.candidates import add_lists, add_pairs, from_matrix, nearest_allowed


def as_dict(candidates):
    """{(i, j): z} of every stored entry; fails if one is stored twice."""
    entries = list(zip(candidates.nodes.tolist(), candidates.indices.tolist(), strict=True))
    assert len(entries) == len(set(entries))
    return dict(zip(entries, candidates.z.tolist(), strict=True))


def both_ways(pairs):
    return {(i, j) for i, j in pairs} | {(j, i) for i, j in pairs}


def listed(lists):
    return {(i, int(j)) for i, row in enumerate(lists.indices) for j in row if j >= 0}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 30), st.integers(1, 8))
def test_an_edge_is_allowed_if_one_end_lists_the_other(seed, n, k):
    X = blobs(n, 2, np.random.default_rng(seed))
    k = min(k, n - 1)
    entries = as_dict(candidates_of(X, k))
    assert set(entries) == both_ways(listed(lists_of(X, k)))
    for (i, j), z in entries.items():
        assert z == entries[j, i] == pytest.approx(((X[i] - X[j]) ** 2).sum())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.data())
def test_longer_lists_for_some_nodes_add_their_edges(seed, data):
    X = blobs(25, 2, np.random.default_rng(seed))
    short, long = lists_of(X, 3), lists_of(X, 9)
    nodes = np.array(data.draw(st.lists(st.integers(0, 24), unique=True, min_size=1)), np.int32)
    grown = add_lists(candidates_of(X, 3), nodes, long.indices[nodes], long.distances[nodes], long.reach[nodes])
    wanted = listed(short) | {(i, j) for i, j in listed(long) if i in nodes}
    entries = as_dict(grown)
    assert set(entries) == both_ways(wanted)
    assert all(z == entries[j, i] for (i, j), z in entries.items())
    np.testing.assert_array_equal(grown.reach, np.where(np.isin(np.arange(25), nodes), long.reach, short.reach))


def test_single_pairs_are_added_once_whatever_their_order(rng):
    X = blobs(20, 2, rng)
    before = as_dict(candidates_of(X, 2))
    pairs = [(0, 19), (19, 0), (5, 12), (0, 19), next(iter(before))]
    i, j = np.array(pairs, np.int32).T
    after = as_dict(add_pairs(candidates_of(X, 2), i, j, ((X[i] - X[j]) ** 2).sum(axis=1)))
    assert set(after) == set(before) | both_ways(pairs)


@pytest.mark.parametrize("spare", [0.0, 0.3, 10.0])
def test_growing_again_and_again_keeps_every_edge_whether_there_is_room_or_not(rng, monkeypatch, spare):
    monkeypatch.setattr("smoothgraph.candidates.SPARE", spare)
    X = blobs(60, 2, rng)
    candidates, entries = candidates_of(X, 2), as_dict(candidates_of(X, 2))
    memory = candidates.indices.base
    for _ in range(6):
        i, j = rng.integers(60, size=(2, 40)).astype(np.int32)
        i, j = i[i != j], j[i != j]
        z = ((X[i] - X[j]) ** 2).sum(axis=1)
        candidates = add_pairs(candidates, i, j, z)
        for a, b, distance in zip(i.tolist(), j.tolist(), z.tolist(), strict=True):
            entries.setdefault((a, b), distance)
            entries.setdefault((b, a), distance)
        assert as_dict(candidates) == entries
    assert (candidates.indices.base is memory) == (spare == 10.0)


def test_a_matrix_gives_its_entries_and_a_stored_zero_is_one():
    Z = sp.csr_matrix((np.array([0.0, 0.0, 3.0, 3.0, 7.0]), ([0, 1, 1, 2, 2], [1, 0, 2, 1, 2])), shape=(3, 3))
    candidates = from_matrix(Z)
    assert as_dict(candidates) == {(0, 1): 0.0, (1, 0): 0.0, (1, 2): 3.0, (2, 1): 3.0}
    assert np.isinf(candidates.reach).all()


def test_nearest_allowed_distances_are_sorted_and_padded():
    Z = sp.csr_matrix([[0, 5, 2, 9], [5, 0, 0, 0], [2, 0, 0, 1], [9, 0, 1, 0]], dtype=float)
    expected = [[2, 5, 9], [5, np.inf, np.inf], [1, 2, np.inf], [1, 9, np.inf]]
    np.testing.assert_array_equal(nearest_allowed(from_matrix(Z), 3), expected)


def test_a_node_without_an_allowed_edge_is_named():
    with pytest.raises(ValueError, match="Sample 2 has no allowed edge"):
        from_matrix(sp.csr_matrix(([1.0, 1.0], ([0, 1], [1, 0])), shape=(3, 3)))
