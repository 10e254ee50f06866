"""Pairs that may have weight for all that lists and local scales tell, found without looking at every pair of samples.

In: allowed edges with the reach of every node, local scales s, and limits l. Out: the pairs with z·sᵢ·sⱼ < lᵢ + lⱼ that are not
among the edges.

Such a pair is at least max(reach) apart. It is *possible* if sᵢsⱼ·max(reachᵢ, reachⱼ) < lᵢ + lⱼ, and only possible pairs need
be measured. They are few, and most nodes can be told to have none. Let vᵢ = sᵢ²·reachᵢ be the level of a node, qᵢ = vᵢ/(2lᵢ)
its ratio, and let 1 ≤ qᵢ ≤ qⱼ. Then lᵢ + lⱼ ≤ (vᵢ + vⱼ)/(2qᵢ), while sᵢsⱼ·max(reachᵢ, reachⱼ) ≥ √(vᵢvⱼ). So the pair can be
possible only if

    ½(√(vⱼ/vᵢ) + √(vᵢ/vⱼ)) > qᵢ,    that is, if vⱼ is not from vᵢ/κᵢ to vᵢκᵢ,    √κᵢ = qᵢ + √(qᵢ² − 1).

Local scales make levels even, so that few are outside. The end with the smaller ratio looks for the pair; if its ratio is below
1 it looks at all nodes.

With exact lists all nodes are looked at, and nothing is left out. With approximate ones, the neighbours of neighbours: what is
little farther away than a list reaches is among them as far as the lists are right.
"""

import numpy as np

from smoothgraph._kernels import possible as kernels
from smoothgraph.distances import Distances
from smoothgraph.edges import Edges
from smoothgraph.parallel import ROWS, Threads, blocks

TWO_HOPS_ROWS, ANYWHERE_ROWS = 8 * ROWS, 64  # nodes whose possible pairs are in memory together, in each thread
COUNTED_ROWS = 8  # and where they are only counted


def possible_pairs(
    distances: Distances, edges: Edges, nodes, limits, local_scale, most: int, *, alone: bool, is_exact: bool, threads: Threads
):
    """The pairs (a node of `nodes`, another) with z·local_scaleᵢ·local_scaleⱼ < limitᵢ + limitⱼ that are not among the edges.

    If the nodes look `alone`, they look for every pair that they are an end of. Else all other nodes look too, or were compared
    with every sample, and only the end with the smaller ratio looks for a pair. Returns arrays (i, j, squared distance), or
    None if there are more than `most` pairs.
    """
    ends = _ends(edges, limits, local_scale, alone)
    find = _anywhere(edges, ends) if is_exact else _two_hops(edges, ends, alone, threads)
    at_once = ANYWHERE_ROWS if is_exact else TWO_HOPS_ROWS

    def measured(rows):
        i, j = find(nodes[rows])
        z = distances.of_pairs(i, j, threads=threads)
        near = z * local_scale[i] * local_scale[j] < limits[i] + limits[j]
        return i[near], j[near], z[near]

    found = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, distances.dtype))]
    found += threads.map(measured, len(nodes), at_once)
    if sum(pairs[0].size for pairs in found) > most:
        return None
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _ends(edges, limits, local_scale, alone):
    """The limit, the scale, the reach and the ratio of every node; 0 for all ratios if nodes look alone."""
    ends = np.empty((edges.n, 4))
    ends[:, 0], ends[:, 1], ends[:, 2] = limits, local_scale, edges.reach
    with np.errstate(divide="ignore", invalid="ignore"):
        ends[:, 3] = 0.0 if alone else np.nan_to_num(local_scale**2 * edges.reach / (2.0 * limits), posinf=np.inf)
    return ends


def count_of_possible(edges: Edges, limits, local_scale, tried: int) -> float:
    """About how many possible pairs there are if all nodes look at all nodes: from so many of them."""
    nodes = np.arange(edges.n, dtype=np.int32)[:: -(-edges.n // tried)]
    find = _anywhere(edges, _ends(edges, limits, local_scale, False))
    found = sum(find(nodes[some])[0].size for some in blocks(nodes.size, COUNTED_ROWS))
    return edges.n / nodes.size * found


def count_of_pairs(edges: Edges, limits, local_scale) -> float:
    """How many pairs are looked at if all nodes look, and all are possible partners."""
    level, n = local_scale**2 * edges.reach, float(edges.n)
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(level / (2.0 * limits), posinf=np.inf)
        spread = (ratio + np.sqrt(ratio * ratio - 1.0)) ** 2
        low, high = level / spread, level * spread
    ordered = np.sort(level)
    harmless = np.searchsorted(ordered, high, side="right") - np.searchsorted(ordered, low)
    return float(np.where(ratio >= 1.0, n - harmless, n).sum())


def _two_hops(edges, ends, alone, threads):
    """A function from nodes to their possible pairs with neighbours of neighbours."""
    indptr, indices = edges.indptr, edges.indices
    levels = ends[:, 1] ** 2 * ends[:, 2]
    lowest, highest = np.zeros_like(levels), np.zeros_like(levels)
    if not alone:  # else no range of levels is harmless
        threads.rows(kernels.level_ranges, edges.n, indptr, indices, levels, lowest, highest)
    # Who has been seen from where, for each thread. To fill it for each call would take as long as the rest at ten million.
    rooms: list[np.ndarray | None] = [None] * threads.count

    def find(nodes):
        seen = rooms.pop()
        seen = np.full(edges.n, -1, np.int32) if seen is None else seen
        found = kernels.possible_two_hops(nodes, indptr, indices, ends, lowest, highest, seen)
        rooms.append(seen)
        return found

    return find


def _anywhere(edges, ends):
    """A function from nodes to their possible pairs."""
    indptr, indices = edges.indptr, edges.indices
    levels = ends[:, 1] ** 2 * ends[:, 2]
    order = np.argsort(levels, kind="stable").astype(np.int32)
    levels, columns = levels[order], [np.ascontiguousarray(ends[order, column]) for column in range(3)]
    return lambda nodes: kernels.possible_anywhere(nodes, indptr, indices, ends, order, levels, *columns)
