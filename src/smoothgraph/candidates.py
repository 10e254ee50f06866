"""Neighbour lists → the graph of allowed edges.

In: neighbour lists, or a sparse matrix of squared distances. Out: `Candidates`: every allowed edge once at each of its two
ends, with its squared distance, in CSR arrays, and how far each node has looked. Columns are not sorted.

These arrays are the largest there are. They have room to grow, and adding edges takes them over: of the `Candidates` that edges
were added to, only `indptr` and `reach` stay as they were.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numba
import numpy as np
import scipy.sparse as sp

from smoothgraph import _kernels
from smoothgraph.neighbors import NeighborLists
from smoothgraph.samples import ROWS, blocks

BYTES_PER_PAIR = 24  # of all pairs, each at both ends: its index and distance, and as much again while they are used


@dataclass(frozen=True, eq=False)
class Candidates:
    """Allowed edges in CSR form: `z` squared distances; a pair outside is at least max(reach[i], reach[j]) apart."""

    indptr: np.ndarray
    indices: np.ndarray
    z: np.ndarray
    reach: np.ndarray

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    @property
    def n_edges(self) -> int:
        return self.indices.size // 2

    @cached_property
    def farthest(self) -> float:
        """The largest squared distance."""
        return float(self.z.max())

    @cached_property
    def longest_row(self) -> int:
        return int(np.diff(self.indptr).max())

    @property
    def nodes(self) -> np.ndarray:
        """The node of each entry of `indices`: the row numbers of the CSR arrays."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))


SPARE = 1.0  # room to grow, as a share of the entries: memory costs nothing until it is written to


def from_lists(lists: NeighborLists) -> Candidates:
    """An edge is allowed if one end lists the other."""
    n = lists.indices.shape[0]
    nothing = Candidates(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, lists.distances.dtype), np.zeros(n))
    return add_lists(nothing, np.arange(n, dtype=np.int32), lists.indices, lists.distances, lists.reach)


def from_matrix(Z: sp.csr_matrix) -> Candidates:
    """The stored entries of a symmetric matrix are the allowed edges, and there are no others (so reach is inf)."""
    Z = Z.tocoo()
    off = Z.row != Z.col
    order = np.argsort(Z.row[off], kind="stable")
    counts = np.bincount(Z.row[off], minlength=Z.shape[0])
    if not counts.all():
        raise ValueError(
            f"Sample {int(np.argmin(counts))} has no allowed edge: every sample needs one at least. Store a squared distance "
            "for it, or leave the sample out."
        )
    indptr = np.zeros(Z.shape[0] + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return Candidates(indptr, Z.col[off][order].astype(np.int32), Z.data[off][order], np.full(Z.shape[0], np.inf))


def from_all_pairs(samples) -> Candidates:
    """Every pair of samples is an allowed edge."""
    n = samples.n
    needed = BYTES_PER_PAIR * float(n) * n
    if needed > _memory():
        raise ValueError(
            f"All pairs of {n} samples need about {needed / 1e9:.3g} GB of memory, and this machine has "
            f"{_memory() / 1e9:.3g} GB. Use neighbors='auto': with complete=True the graph is proven to be the same."
        )
    others = np.arange(n - 1, dtype=np.int32)
    indices = others + (others >= np.arange(n)[:, None])  # row i is everybody but i
    z = np.concatenate([samples.distances(samples.own(np.arange(n)[rows]), indices[rows]) for rows in blocks(n, ROWS)])
    return Candidates(np.arange(n + 1, dtype=np.int64) * (n - 1), indices.ravel(), z.ravel(), np.full(n, np.inf))


def _memory() -> float:
    """Bytes of memory that the machine has."""
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")


def nearest_allowed(candidates: Candidates, width: int) -> np.ndarray:
    """The `width` smallest squared distances of each node's allowed edges (n, width), ascending, inf where it has fewer."""
    return _kernels.smallest_of_rows(candidates.indptr, candidates.z, width)


def stretched(candidates: Candidates, stretch: np.ndarray) -> Candidates:
    """The same edges, each distance stretchᵢ·stretchⱼ times as long."""
    z = _kernels.stretch_edges(candidates.indptr, candidates.indices, candidates.z, stretch)
    return replace(candidates, z=z)


def add_lists(candidates: Candidates, nodes, indices, distances, reach) -> Candidates:
    """Allow the edges from each of `nodes` to its list (−1 is no entry) too; how far they have now looked is `reach`."""
    wider = candidates.reach.copy()
    wider[nodes] = reach
    place = np.full(candidates.n, -1, np.int32)
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    return _merge(candidates, nodes, indices, distances, place, wider)


def add_pairs(candidates: Candidates, i, j, z) -> Candidates:
    """Allow single edges too. A pair given twice, in whatever order, is one edge."""
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j)
    _, first = np.unique(low * candidates.n + high, return_index=True)
    low, high = low[first].astype(np.int32), high[first, None].astype(np.int32)
    return _merge(candidates, low, high, z[first, None], np.full(candidates.n, -1, np.int32), candidates.reach)


def add_graph(candidates: Candidates, W: sp.csr_matrix, samples) -> Candidates:
    """Allow the edges of a graph too, at the samples' distances."""
    edges = sp.triu(W, k=1).tocoo()
    i, j = edges.row.astype(np.int32), edges.col.astype(np.int32)
    z = [samples.distances(samples.own(i[rows]), j[rows, None])[:, 0] for rows in blocks(i.size, ROWS)]
    return add_pairs(candidates, i, j, np.concatenate(z)) if z else candidates


def _merge(candidates, nodes, lists, distances, place, reach):
    before, shares = candidates.indptr, numba.get_num_threads()
    new = _kernels.mark_new_edges(nodes, lists, place, before, candidates.indices)
    if not new.any():
        return replace(candidates, reach=reach)
    indptr = _kernels.rows_with(nodes, lists, new, before, shares)
    with ThreadPoolExecutor(2) as pool:
        indices, z = pool.map(lambda values: _with_room(values, before, indptr), (candidates.indices, candidates.z))
    _kernels.fill_rows(nodes, lists, distances, new, before, indptr, indices, z, shares)
    return Candidates(indptr, indices, z, reach)


def _with_room(values, before, indptr):
    """The rows `before` of `values` moved apart to those of `indptr`, in the same memory if it has the room."""
    count, room = int(indptr[-1]), values if values.base is None else values.base
    if room.size < count:
        room = np.empty(count + int(SPARE * count), values.dtype)
    _kernels.move_rows(before, values, indptr, room)
    return room[:count]
