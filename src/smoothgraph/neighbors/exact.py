"""Exact neighbour lists, proven: what is not in a list is at least as far away as its last entry.

In: distances, the length of the lists. Out: `NeighborLists` that are exact.

Where bounds rule most pairs out (bounds.py), a quick search makes lists that are nearly right; then every sample that is nearer
than the last of a list is found, and the list is right. The work depends on how many dimensions the data really has.

Else it is brute force, a tile at a time. Tiles hold lower bounds of the distances. A sample that is not among the smallest
bounds of a row is at least as far away as the largest of them: if the k-th measured distance is no larger, the row is right.
For rows where rounding or ties leave that open, all samples with a bound in float64 below their k-th distance are measured.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from smoothgraph._kernels import cells as kernels
from smoothgraph.distances import Distances, Points
from smoothgraph.neighbors.approximate import quick_lists
from smoothgraph.neighbors.bounds import Bounds, Limits
from smoothgraph.neighbors.lists import NeighborLists, RecallSample, clean_all, clean_lists
from smoothgraph.neighbors.queries import smallest_bounds
from smoothgraph.parallel import ROWS, Threads, blocks

NAME = "exact"
FEWEST_BOUNDED = 20_000  # samples from which on bounds are tried: below, brute force takes some seconds at most
BRUTE_COST = 60.0  # what a pair costs in brute force besides its products, in multiplications
WORTH = 0.6  # share of the work of brute force up to which bounds are taken: a quick search and cells come on top
PROVEN_AT_ONCE = 64 * ROWS  # rows of which the k-th distance is measured together


def search_exact(distances: Distances, k: int, *, threads: Threads) -> NeighborLists:
    """The k nearest others of every sample, proven."""
    if distances.n >= FEWEST_BOUNDED and distances.has_bounds:
        distances = cast(Points, distances)
        bounds = Bounds(distances, threads=threads)
        if bounds.work(*_some_limits(distances, k, threads)) < WORTH * (distances.n_features + BRUTE_COST):
            found = proven_lists(quick_lists(distances, k, threads=threads), bounds, k)
            return replace(found, name=NAME, exact=True, recall=1.0)
    return brute_force(distances, k, threads=threads)


def brute_force(distances: Distances, k: int, *, threads: Threads) -> NeighborLists:
    """The same, by comparing all with all."""
    lists, z = clean_all(distances, _found(distances, k, threads), k, NAME, threads=threads)
    return NeighborLists(lists, z, NAME, exact=True, recall=1.0)


def _some_limits(distances: Points, k, threads) -> tuple[Limits, np.ndarray]:
    """The k-th distances of a few nodes as limits, and these nodes."""
    sample = RecallSample(distances, k, threads=threads)
    kth = np.zeros(distances.n)
    kth[sample.nodes] = sample.true[:, -1]
    return Limits.of_rows(kth), sample.nodes


def proven_lists(found: NeighborLists, bounds: Bounds, k: int) -> NeighborLists:
    """The same lists, of which the first k entries are the k nearest for certain."""
    bounds.number(found.numbering)
    threads, distances, width = bounds.threads, bounds.distances, found.indices.shape[1]
    lists, z = found.indices.copy(), found.distances.copy()
    everything = np.arange(distances.n, dtype=np.int32)
    for node in everything[lists[:, k - 1] < 0]:  # a list that is too short has no k-th distance
        whole = clean_lists(distances, everything[node : node + 1], everything[None], width, threads=threads)
        lists[node], z[node] = (part[0] for part in whole)
    limits = Limits.of_rows(z[:, k - 1].astype(np.float64))
    bounds.near_pairs(limits, lambda i, j, z_ij: kernels.insert_pairs(i, j, z_ij, lists, z), everything)
    return replace(found, indices=lists, distances=z)


def proof_of(found: NeighborLists, distances: Points, k: int, *, threads: Threads) -> tuple[NeighborLists, Bounds]:
    """Lists of which the first k entries are right for certain, and the bounds that prove it, for further proofs."""
    bounds = Bounds(distances.numbered(found.numbering), threads=threads)
    return proven_lists(found, bounds, k), bounds


def _found(distances, k, threads):
    """Indices (n, a few more than k) among which the k nearest are."""
    nodes = np.arange(distances.n, dtype=np.int32)
    indices, cuts = smallest_bounds(distances, lambda rows: distances.own(nodes[rows]), nodes, k, threads=threads)
    kth = np.empty(distances.n, distances.dtype)
    for rows in blocks(distances.n, distances.at_once(PROVEN_AT_ONCE)):
        kth[rows] = clean_lists(distances, nodes[rows], indices[rows], k, threads=threads)[1][:, -1]
    unproven = np.flatnonzero(kth > cuts).astype(np.int32)
    for rows in blocks(unproven.size, distances.at_once(ROWS)):
        indices[unproven[rows], :k] = _measured(distances, unproven[rows], indices[unproven[rows]], k, threads)
    return indices


def _measured(distances, nodes, found, k, threads):
    """The k nearest of each of the nodes: every sample with a bound below the k-th distance of those found is measured."""
    lists, z = clean_lists(distances, nodes, found, k, threads=threads)
    kth = z[:, -1:].astype(np.float64)
    for first, tile in distances.bound_tiles(distances.own(nodes), precise=True):
        row, column = (place.astype(np.int32) for place in np.nonzero(tile < kth))
        column += np.int32(first)
        others = column != nodes[row]
        row, column = row[others], column[others]
        kernels.insert_pairs(row, column, distances.of_pairs(nodes[row], column, threads=threads), lists, z)
    return lists
