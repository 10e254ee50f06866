"""Neighbour lists, and what every way to find neighbours returns.

In: the indices that a search found, in whatever form (the node itself among them or not, −1, repeats, unsorted). Out:
`NeighborLists`: for every node its K nearest others with squared distances, ascending, the node itself left out, −1 at distance
inf where a row is shorter. Only the indices of a search are trusted: `clean_lists` measures the distances anew.

`Neighborhoods` is the Protocol of what is returned to the rest of the package: lists, or pairs that need no search (given.py).
"""

from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from smoothgraph._kernels import lists as kernels
from smoothgraph.distances import Distances
from smoothgraph.edges import Edges, edges_of_lists
from smoothgraph.neighbors.queries import smallest_bounds
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import ROWS, Threads, blocks, least_rows

RECALL_ROWS = 500  # rows from which the recall is estimated
LISTS_AT_ONCE = 8 * ROWS  # lists that are cleaned together: their samples, and all that a search found for them, are in memory
COPIED_AT_ONCE = 64 * ROWS  # lists of which only the numbers are copied


class Neighborhoods(Protocol):
    """Neighbours of every node, in the order of the search that found them: `numbering` has the row of each node."""

    @property
    def name(self) -> str:
        """The way they were found."""
        ...

    @property
    def exact(self) -> bool:
        """Whether lists are proven to hold the nearest neighbours."""
        ...

    @property
    def recall(self) -> float:
        """The share of true neighbours that was found."""
        ...

    @property
    def numbering(self) -> Numbering: ...

    @property
    def is_given(self) -> bool:
        """Whether the user gave all edges that there are, so that none may be added."""
        ...

    @property
    def most_neighbors(self) -> float:
        """The largest mean number of neighbours that a graph can have."""
        ...

    def edges(self, *, threads: Threads) -> Edges:
        """The allowed edges."""
        ...

    def nearest(self, width: int, local_scale: np.ndarray | None = None, *, threads: Threads) -> np.ndarray:
        """Squared distances (n, K) of each node's nearest, ascending, times local_scaleᵢ·local_scaleⱼ; inf if it has fewer.

        There are `width` for each node, or, where there are lists, as many as these have.
        """
        ...

    def first(self, width: int) -> Self:
        """Lists cut to their `width` nearest; pairs that were not searched stay as they are."""
        ...

    def by_rows(self) -> Self:
        """The same with nodes that have the numbers of their rows."""
        ...

    def release(self) -> None:
        """Let go of the lists, which cannot be used afterwards: solving needs the memory."""
        ...


@dataclass(frozen=True, eq=False)
class NeighborLists:
    """K nearest others of every node: `indices` int32 and `distances` squared, both (n, K), ascending."""

    indices: np.ndarray
    distances: np.ndarray
    name: str
    exact: bool
    recall: float  # the share of true neighbours, estimated from a sample of the rows unless the lists are exact
    numbering: Numbering = field(default_factory=Numbering)

    is_given = False
    most_neighbors = np.inf  # lists become longer where they must

    @property
    def reach(self) -> np.ndarray:
        """The squared distance within which each list is complete."""
        return reach(self.indices, self.distances, len(self.indices))

    def edges(self, *, threads: Threads) -> Edges:
        return edges_of_lists(self.indices, self.distances, self.reach, threads=threads)

    def nearest(self, width: int, local_scale: np.ndarray | None = None, *, threads: Threads) -> np.ndarray:
        if local_scale is None:
            return self.distances
        z = np.empty_like(self.distances)

        def scaled(rows):
            factor = local_scale[rows, None] * local_scale[self.indices[rows]]  # an entry of −1 is at inf, whatever the factor
            z[rows] = np.sort(self.distances[rows] * factor, axis=1)

        threads.map(scaled, len(z), COPIED_AT_ONCE)
        return z

    def first(self, width: int) -> "NeighborLists":
        return replace(self, indices=self.indices[:, :width].copy(), distances=self.distances[:, :width].copy())

    def by_rows(self) -> "NeighborLists":
        if self.numbering.by_row:
            return self
        indices, distances = np.empty_like(self.indices), np.empty_like(self.distances)
        for part in blocks(len(indices), COPIED_AT_ONCE):
            rows = self.numbering.row_of[part]
            indices[rows], distances[rows] = self.numbering.rows(self.indices[part]), self.distances[part]
        return replace(self, indices=indices, distances=distances, numbering=Numbering())

    def release(self) -> None:
        for name in ("indices", "distances"):
            object.__setattr__(self, name, None)


def reach(indices, distances, n: int) -> np.ndarray:
    """The squared distance below which each list has every neighbour: its last; inf if the list has all the others."""
    counts = np.count_nonzero(indices >= 0, axis=1)
    farthest = distances[np.arange(len(counts)), counts - 1].astype(np.float64)
    return np.where(counts == n - 1, np.inf, farthest)


def keep_nearest(own, lists, z, width: int, *, threads: Threads):
    """The `width` nearest of each list and their distances, sorted by (distance, index), −1 at inf where there are fewer.

    Row r belongs to node own[r] (−1 for a new sample). The node itself, −1 and repeats are no neighbours. Works in place.
    """
    threads.rows(kernels.tidy_lists, len(lists), own, lists, z, width, least=least_rows(lists.shape[1]))
    return lists[:, :width], z[:, :width]


def clean_lists(distances: Distances, nodes, indices, width: int, *, threads: Threads):
    """What a search found for `nodes` as lists and squared distances (rows, width): measured anew, then as `keep_nearest`."""
    lists = np.array(indices, dtype=np.int32, order="C")
    z = distances.to_lists(distances.own(nodes), lists, threads=threads)
    if not np.isfinite(z[lists >= 0]).all():
        raise ValueError(f"Squared distances overflow {distances.dtype}: rescale the features.")
    return keep_nearest(nodes, lists, z, width, threads=threads)


def clean_all(distances: Distances, indices, width: int, name: str, numbering: Numbering | None = None, *, threads: Threads):
    """`clean_lists` for all nodes, numbered as asked, a part at a time: nothing of the size of the lists is held twice.

    `indices` has rows and their numbers, whatever the numbering. Raises if a node has no neighbour at all.
    """
    numbering = numbering or Numbering()
    lists, z = np.empty((distances.n, width), np.int32), np.empty((distances.n, width), distances.dtype)
    nodes, node_of = np.arange(distances.n, dtype=np.int32), numbering.nodes(distances.n)
    distances = distances.numbered(numbering)
    for part in blocks(distances.n, distances.at_once(LISTS_AT_ONCE)):
        found = indices[part] if numbering.by_row else node_of[indices[numbering.row_of[part]]]
        lists[part], z[part] = clean_lists(distances, nodes[part], found, width, threads=threads)
    check_all_have_neighbors(lists, name, numbering)
    return lists, z


def check_all_have_neighbors(lists, name: str, numbering: Numbering) -> None:
    """Raise if a node has no neighbour at all."""
    is_empty = (lists < 0).all(axis=1)
    if is_empty.any():
        row = int(numbering.rows(np.argmax(is_empty)))
        raise ValueError(
            f"Sample {row} has no neighbour in the lists of {name}: every sample needs one at least. Ask for more "
            "neighbours, or use neighbors='exact'."
        )


class RecallSample:
    """The true distances to the k nearest others of a few samples, by which lists are judged."""

    def __init__(self, distances: Distances, k: int, *, threads: Threads):
        count = min(distances.n, RECALL_ROWS)
        self.nodes = np.sort(np.random.default_rng(0).choice(distances.n, count, replace=False)).astype(np.int32)
        self.k = min(k, distances.n - 1)
        found, _ = smallest_bounds(distances, lambda rows: distances.own(self.nodes[rows]), self.nodes, self.k, threads=threads)
        self.true = clean_lists(distances, self.nodes, found, self.k, threads=threads)[1]

    def recall(self, z) -> float:
        """The share of their k nearest that their lists, of ascending distances z, have; of equal distances any will do."""
        return float(np.count_nonzero(z[:, : self.k] <= self.true[:, -1:]) / self.true.size)
