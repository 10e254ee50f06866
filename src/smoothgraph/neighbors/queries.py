"""Searches among all samples, a tile of lower bounds at a time.

In: distances, and queries or nodes. Out: for each of them the samples that a wanted quantity is smallest for, or pairs below a
limit. Nothing is left out: what a lower bound rules out is ruled out for certain. Squared distances in results are measured.

Distances count local_scaleᵢ·local_scaleⱼ times where local scales are given.
"""

import numpy as np

from smoothgraph._kernels import lists as kernels
from smoothgraph.distances import Distances
from smoothgraph.parallel import ROWS, Threads, blocks


def smallest_bounds(
    distances: Distances, queries, own, k: int, *, precise=False, offset=None, local_scale=None, threads: Threads
):
    """Indices (rows, a few more than k) of the smallest lower bounds, in any order, and the largest bound among them.

    `queries(rows)` gives the queries of a slice of rows, and `own` the node that each query is, −1 for a new sample. Bounds are
    multiplied by `local_scale`, a pair of arrays for rows and nodes, and are less by `offset`.
    """
    spare = min(distances.n, k + max(8, k // 8))

    def block(rows):
        part = own[rows]
        lists = np.full((len(part), spare), -1, np.int32)
        best = np.full((len(part), spare), np.inf)
        for first, tile in distances.bound_tiles(queries(rows), precise):
            if local_scale is not None:
                tile *= local_scale[1][first : first + tile.shape[1]].astype(tile.dtype)
                tile *= local_scale[0][rows, None].astype(tile.dtype)
            if offset is not None:
                tile -= offset[first : first + tile.shape[1]].astype(tile.dtype)
            kernels.keep_smallest(tile, first, part, lists, best)
        return lists, best[:, 0]

    found = threads.map(block, len(own), distances.at_once(ROWS))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def nearest_to_new(distances: Distances, Q, k: int, offset=None, local_scale=None, *, threads: Threads):
    """The k samples of smallest (squared distance − offset) for each new sample: (indices, squared distances, cut).

    A sample that is not in a row has squared distance − offset of at least the cut of the row. `local_scale` is a pair of
    arrays, for the new samples and for the others.
    """
    own = np.full(Q.shape[0], -1, np.int32)
    scales = {"offset": offset, "local_scale": local_scale}
    lists, cuts = smallest_bounds(distances, lambda rows: Q[rows], own, k, **scales, threads=threads)
    return lists, distances.to_lists(Q, lists, threads=threads), cuts


def nearest_outside(distances: Distances, nodes, labels, offset, local_scale=None, *, threads: Threads):
    """For each of `nodes` the node with another label for which (scaled squared distance − offset) is smallest.

    Returns their numbers and squared distances.
    """

    local_scale = np.ones(distances.n) if local_scale is None else local_scale

    def block(rows):
        part = nodes[rows]
        best, nearest = np.full(len(part), np.inf), np.zeros(len(part), np.int32)
        for first, tile in distances.bound_tiles(distances.own(part)):
            kernels.keep_nearest_outside(tile, first, part, labels, offset, local_scale, best, nearest)
        return nearest

    others = np.concatenate(threads.map(block, len(nodes), distances.at_once(ROWS)))
    return others, distances.of_pairs(nodes, others, threads=threads)


def pairs_nearer_than(distances: Distances, nodes, limits, local_scale, most: int, among=None, *, threads: Threads):
    """All pairs (a node of `nodes`, another node) with z·local_scaleᵢ·local_scaleⱼ < limitᵢ + limitⱼ, by brute force.

    `limits` and `local_scale` have one number per node (None: scales of 1); `among` restricts the other nodes. Returns arrays
    (i, j, squared distance), or None if there are more than `most` pairs. A pair of two of the `nodes` is found from both, and
    counts twice; without `among` it is measured and returned once, with i < j.
    """
    twice = np.zeros(distances.n, np.bool_)
    twice[nodes] = among is None
    among = distances.nodes_in_row_order() if among is None else among
    local_scale = np.ones(distances.n) if local_scale is None else local_scale
    found = [np.empty((2, 0), np.int32)]
    for rows in blocks(len(nodes), distances.at_once(ROWS)):
        # The threads share the other nodes, since these are often many while `nodes` are few.
        def some(part, rows=rows):
            return _near_pairs(distances, nodes[rows], among[part], limits, local_scale, most)

        found += threads.map(some, among.size, among.size)
        if sum(pairs.shape[1] for pairs in found) >= most:
            return None
    i, j = np.concatenate([pairs[:, (pairs[0] < pairs[1]) | ~twice[pairs[1]]] for pairs in found], axis=1)
    return i, j, distances.of_pairs(i, j, threads=threads)


def _near_pairs(distances, nodes, others, limits, local_scale, most):
    """The pairs of `nodes` and `others` (2, count); not all of them if there are more than `most`."""
    found = [np.empty((2, 0), np.int32)]
    for first, tile in distances.bound_tiles(distances.own(nodes), among=others):
        row, column = kernels.near_pairs(tile, others[first : first + tile.shape[1]], nodes, limits, local_scale)
        found.append(np.stack([nodes[row], column]))
        most -= row.size
        if most <= 0:
            break
    return np.concatenate(found, axis=1)
