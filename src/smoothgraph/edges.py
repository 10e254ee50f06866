"""Allowed edges: the pairs of nodes that may have weight.

In: neighbour lists, a sparse matrix of squared distances, or nothing but the samples. Out: `Edges`: every allowed edge once at
each of its two ends, with its squared distance, in CSR arrays whose columns are not sorted; and the reach of every node, the
squared distance within which its list is complete.

These arrays are the largest that there are. They have room to grow, and adding edges moves them to the new store: see `Edges`.
"""

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from smoothgraph._kernels import edges as kernels
from smoothgraph.distances import Distances
from smoothgraph.memory import check_memory
from smoothgraph.parallel import LEAST_ROWS, ROWS, Threads, blocks, least_rows
from smoothgraph.sparse import checked_csr

BYTES_PER_PAIR = 24  # memory for a pair, stored at both ends: index and distance of each, and as much again for the solve
SPARE = 1.0  # room to grow, as a share of the entries: memory costs nothing until it is written to


class _Column:
    """The memory of one CSR array, with room behind its entries. Stores that share it lose it together."""

    def __init__(self, room: np.ndarray):
        self._room: np.ndarray | None = room

    def read(self) -> np.ndarray:
        if self._room is None:
            raise RuntimeError(
                "These edges were consumed: more edges were added to them, and their memory belongs to the store that was "
                "returned then. Use that one."
            )
        return self._room

    def take(self) -> np.ndarray:
        """The memory, which can be read no more afterwards."""
        room, self._room = self.read(), None
        return room


class Edges:
    """Allowed edges in CSR form: `z` squared distances; a pair outside is at least max(reach[i], reach[j]) apart.

    The methods that add edges return a larger store and **consume** this one: its memory is used for the larger one. `indptr`,
    `reach`, `n` and `n_edges` can still be read, `indices` and `z` raise a RuntimeError. If every edge was there already,
    nothing is consumed, and both stores share the memory.

    The arrays `indices` and `z` that a store is made of may be longer than indptr[-1]: the rest is room to grow.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, z: np.ndarray, reach: np.ndarray):
        self.indptr, self.reach = indptr, reach
        self._indices, self._z = _Column(indices), _Column(z)

    @classmethod
    def _sharing(cls, indptr, indices: _Column, z: _Column, reach) -> "Edges":
        """Edges in memory that other stores may have too."""
        edges = cls.__new__(cls)
        edges.indptr, edges.reach, edges._indices, edges._z = indptr, reach, indices, z
        return edges

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    @property
    def n_edges(self) -> int:
        return int(self.indptr[-1]) // 2

    @property
    def indices(self) -> np.ndarray:
        """The other end of each entry."""
        return self._indices.read()[: self.indptr[-1]]

    @property
    def z(self) -> np.ndarray:
        """The squared distance of each entry."""
        return self._z.read()[: self.indptr[-1]]

    @property
    def nodes(self) -> np.ndarray:
        """The node of each entry of `indices`: the row numbers of the CSR arrays."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def farthest(self) -> float:
        """The largest squared distance."""
        return float(self.z.max())

    @cached_property
    def longest_row(self) -> int:
        """The largest number of allowed edges at a node."""
        return int(np.diff(self.indptr).max())

    def nearest(self, width: int, *, threads: Threads) -> np.ndarray:
        """The `width` smallest squared distances of each node's edges (n, width), ascending, inf where it has fewer."""
        nearest = np.empty((self.n, width), self.z.dtype)
        threads.rows(kernels.smallest_of_rows, self.n, self.indptr, self.z, nearest)
        return nearest

    def without_reach(self) -> "Edges":
        """The same edges, with nothing known of the pairs outside. Both share their memory."""
        return Edges._sharing(self.indptr, self._indices, self._z, np.zeros_like(self.reach))

    def scaled(self, local_scale: np.ndarray | None, *, threads: Threads) -> "Edges":
        """The same edges, each squared distance times local_scaleᵢ·local_scaleⱼ; None returns these edges themselves.

        Both share `indptr` and `indices`: adding edges to one consumes the indices of both. The reach is not scaled.
        """
        if local_scale is None:
            return self
        z = np.empty_like(self._z.read())  # with the same room to grow
        threads.rows(kernels.scale_edges, self.n, self.indptr, self.indices, self.z, local_scale, z)
        return Edges._sharing(self.indptr, self._indices, _Column(z), self.reach)

    def add_lists(self, nodes, indices, distances, reach, *, threads: Threads) -> "Edges":
        """Allow the edges from each of `nodes` to its list (−1 is no entry) too; `reach` is the new reach of these nodes.

        Consumes this store.
        """
        wider = self.reach.copy()
        wider[nodes] = reach
        place = np.full(self.n, -1, np.int32)
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        return self._add(nodes, indices, distances, place, wider, threads)

    def add_pairs(self, i, j, z, *, threads: Threads) -> "Edges":
        """Allow single edges too. A pair given twice, in whatever order, is one edge.

        Consumes this store.
        """
        low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j)
        _, first = np.unique(low * self.n + high, return_index=True)
        low, high = low[first].astype(np.int32), high[first, None].astype(np.int32)
        return self._add(low, high, z[first, None], np.full(self.n, -1, np.int32), self.reach, threads)

    def add_graph(self, W: sp.csr_matrix, distances: Distances, *, threads: Threads) -> "Edges":
        """Allow the edges of a graph of the nodes too, at the distances of the samples.

        Consumes this store.
        """
        upper = sp.triu(W, k=1).tocoo()
        i, j = upper.row.astype(np.int32), upper.col.astype(np.int32)
        return self.add_pairs(i, j, distances.of_pairs(i, j, threads=threads), threads=threads)

    def _add(self, nodes, lists, distances, place, reach, threads):
        is_new = _new_entries(nodes, lists, place, self.indptr, self.indices, threads)
        if not is_new.any():
            return Edges._sharing(self.indptr, self._indices, self._z, reach)
        rooms = self._indices.take(), self._z.take()
        indptr, indices, z = _merged(nodes, lists, distances, is_new, self.indptr, rooms, SPARE, threads)
        return Edges(indptr, indices, z, reach)


def edges_of_lists(indices, distances, reach, *, threads: Threads) -> Edges:
    """An edge is allowed if one of its nodes lists the other. `reach` has the reach of every node."""
    indptr, others, z = rows_of_lists(indices, distances, SPARE, threads=threads)
    return Edges(indptr, others, z, reach)


def edges_of_matrix(Z: sp.csr_matrix) -> Edges:
    """The stored entries of a symmetric matrix are the allowed edges, and there are no others (so reach is inf)."""
    Z = checked_csr(Z, "Z").tocoo()
    if Z.nnz and not 0.0 <= Z.data.min() <= Z.data.max() < np.inf:  # comparisons with NaN are false
        raise ValueError("Z has entries that are negative, NaN or infinite: squared distances are finite and at least 0.")
    off = Z.row != Z.col
    order = np.argsort(Z.row[off], kind="stable")
    counts = np.bincount(Z.row[off], minlength=Z.shape[0])
    if not counts.any():
        raise ValueError(f"None of the {Z.shape[0]} samples has an allowed edge: store the distances of some pairs.")
    indptr = np.zeros(Z.shape[0] + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return Edges(indptr, Z.col[off][order].astype(np.int32), Z.data[off][order], np.full(Z.shape[0], np.inf))


def check_no_isolated(edges: Edges) -> None:
    """Raise if a node has no allowed edge, for models whose nodes all have weight."""
    counts = np.diff(edges.indptr)
    if not counts.all():
        raise ValueError(
            f"Sample {int(np.argmin(counts))} has no allowed edge: every sample needs one at least. Store a distance for it, "
            "leave the sample out, or use model='l2', which permits samples without edges."
        )


def edges_of_all_pairs(distances: Distances, *, threads: Threads) -> Edges:
    """Every pair of samples is an allowed edge."""
    n = distances.n
    remedy = "Use neighbors='auto': with complete=True the graph is proven to be the same."
    check_memory(BYTES_PER_PAIR * float(n) * n, f"All pairs of {n} samples need", remedy)
    others = np.arange(n - 1, dtype=np.int32)
    indices = others + (others >= np.arange(n)[:, None])  # row i has all nodes except i
    z = [distances.to_lists(distances.own(np.arange(n)[rows]), indices[rows], threads=threads) for rows in blocks(n, ROWS)]
    return Edges(np.arange(n + 1, dtype=np.int64) * (n - 1), indices.ravel(), np.concatenate(z).ravel(), np.full(n, np.inf))


def rows_of_lists(lists, values, spare: float = 0.0, *, threads: Threads):
    """Each pair of nodes of which one lists the other, at both of its ends: CSR arrays (indptr, indices, values).

    `values` has one for every entry of the lists; of two nodes that list each other, that of the smaller node counts. The last
    two arrays have room for `spare` times as many entries behind the last.
    """
    nodes, no_rows = np.arange(len(lists), dtype=np.int32), np.zeros(len(lists) + 1, np.int64)
    no_entries = np.empty(0, np.int32), np.empty(0, values.dtype)
    is_new = _new_entries(nodes, lists, nodes, no_rows, no_entries[0], threads)
    return _merged(nodes, lists, values, is_new, no_rows, no_entries, spare, threads)


def _new_entries(nodes, lists, place, indptr, indices, threads):
    """Which entries of the lists are edges that are not among the rows yet, each edge once. Row place[j] is the list of j."""
    is_new = np.empty(lists.shape, np.bool_)
    arguments = nodes, lists, place, indptr, indices, is_new
    threads.rows(kernels.mark_new_edges, len(lists), *arguments, least=least_rows(lists.shape[1]))
    return is_new


def _merged(nodes, lists, values, is_new, before, rooms, spare, threads):
    """The rows `before` with the new entries of the lists at both of their ends: (indptr, indices, values).

    `rooms` are the arrays of indices and values so far, of which the memory is used if it is large enough.
    """
    n = before.size - 1
    one_range_each = max(LEAST_ROWS, n // threads.count)  # each call reads all of the lists
    counts = np.empty(n, np.int64)
    threads.rows(kernels.count_entries, n, nodes, lists, is_new, before, counts, least=one_range_each)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    columns = threads.map(lambda one: _with_room(rooms[one.start], before, indptr, spare), len(rooms), 1)
    threads.rows(kernels.fill_rows, n, nodes, lists, values, is_new, before, indptr, *columns, least=one_range_each)
    return indptr, *columns


def _with_room(room, before, indptr, spare):
    """The rows `before` of an array moved apart to those of `indptr`, in the same memory if it has the room."""
    count = int(indptr[-1])
    larger = room if room.size >= count else np.empty(count + int(spare * count), room.dtype)
    kernels.move_rows(before, room, indptr, larger)
    return larger
