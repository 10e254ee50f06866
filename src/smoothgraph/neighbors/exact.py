"""Exact neighbour lists: brute force, a tile at a time, and the proof of it.

In: distances, the length of the lists. Out: `NeighborLists` that are exact.

Tiles hold lower bounds of the distances. A sample that is not among the smallest bounds of a row is at least as far away as the
largest of them: if the k-th measured distance is no larger, the row is right. Rows for which rounding leaves that open are
searched again in float64, and rows that are still open (samples that differ in the last digits only) without products.
"""

import numpy as np

from smoothgraph.distances import Distances
from smoothgraph.neighbors.lists import NeighborLists, clean_all, clean_lists
from smoothgraph.neighbors.queries import smallest_bounds
from smoothgraph.parallel import ROWS, Threads, blocks

NAME = "exact"
PROVEN_AT_ONCE = 64 * ROWS  # rows of which the k-th distance is measured together


def search_exact(distances: Distances, k: int, *, threads: Threads) -> NeighborLists:
    """The k nearest others of every sample, proven."""
    lists, z = clean_all(distances, _found(distances, k, threads), k, NAME, threads=threads)
    return NeighborLists(lists, z, NAME, exact=True, recall=1.0)


def _found(distances, k, threads):
    """Indices (n, a few more than k) among which the k nearest are."""
    nodes = np.arange(distances.n, dtype=np.int32)
    indices, cuts = smallest_bounds(distances, lambda rows: distances.own(nodes[rows]), nodes, k, threads=threads)
    unproven = _unproven(distances, nodes, indices, cuts, k, threads)
    if unproven.size and distances.dtype != np.float64:
        own = unproven
        found, found_cuts = smallest_bounds(
            distances, lambda rows: distances.own(own[rows]), own, k, precise=True, threads=threads
        )
        indices[own], cuts[own] = found, found_cuts
        unproven = _unproven(distances, own, found, found_cuts, k, threads)
    for row in range(unproven.size):
        indices[unproven[row], :k] = clean_lists(distances, unproven[row : row + 1], nodes[None, :], k, threads=threads)[0]
    return indices


def _unproven(distances, nodes, indices, cuts, k, threads):
    """The nodes with a k-th measured distance beyond what the search proves."""
    kth = np.empty(len(nodes), distances.dtype)
    for rows in blocks(len(nodes), distances.at_once(PROVEN_AT_ONCE)):
        kth[rows] = clean_lists(distances, nodes[rows], indices[rows], k, threads=threads)[1][:, -1]
    return nodes[kth > cuts]
