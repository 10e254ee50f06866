"""Join the parts of a graph at the least cost.

In: where the flow settled, and the recipe. Out: the same for a graph in one part, and the pairs that join. The log barrier
forbids isolated nodes, not isolated pairs; the ℓ2 model not even those.

The cost of a pair without weight is θz − (λᵢ+λⱼ)/2 ≥ 0: how much nearer it would have to be to get any. Parts are joined by a
spanning forest of least cost, first with allowed edges; where these leave parts, with the cheapest pairs found by a search. A
pair that joins then counts as just so near that the model gives it the smaller of the mean weights of its two ends, and the
problem is solved anew: everything else is optimal given that, and what the duality gap and the support certificate prove
holds of the problem with these distances. The other weights at its ends yield a little, and its own with them.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from smoothgraph import _kernels
from smoothgraph.candidates import add_pairs
from smoothgraph.neighbors import nearest_outside
from smoothgraph.recipe import Joints, Recipe
from smoothgraph.settle import Settled

ROUNDS = 12  # of joining: where a new edge makes an old one give way, its weight is halved in the next
SEARCHED = 1024  # samples that look for a pair outside their part, over all parts, in one round of the search
NO_JOINTS = Joints(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))


def connect(settled: Settled, recipe: Recipe, samples, resettle: Callable[..., Settled], say) -> tuple[Settled, Joints]:
    """A settled graph in one part. `resettle(support, theta, recipe, lam)` settles again with other distances."""
    joints, share = recipe.joints or NO_JOINTS, 1.0
    for _ in range(ROUNDS):
        labels = _parts(settled)
        n_parts = int(labels.max()) + 1
        if n_parts == 1:
            break
        i, j, z = _cheapest_pairs(settled, labels, samples, recipe.stretch)
        if not i.size:
            warnings.warn(
                f"The graph stays in {n_parts} parts: the allowed edges do not connect them. Allow more edges.", stacklevel=4
            )
            break
        candidates = add_pairs(settled.support.candidates, i, j, z.astype(settled.support.candidates.z.dtype))
        joints = _add(joints, i, j, _counted_distance(settled, i, j, share))
        say(f"{n_parts} parts joined by {i.size} edges")
        recipe = recipe.with_joints(joints)
        support = replace(settled.support, candidates=candidates)
        settled = resettle(support, settled.problem.theta, recipe, settled.point.lam)
        share *= 0.5
    return settled, joints


def _parts(settled):
    problem, point = settled.problem, settled.point
    indptr, indices, w = _kernels.positive_edges(*_arrays(problem), point.lam, point.active)
    graph = sp.csr_matrix((w, indices, indptr), shape=(problem.n, problem.n))
    return connected_components(graph, directed=False)[1]


def _arrays(problem) -> Any:
    return problem.arrays_less_base if hasattr(problem, "arrays_less_base") else problem.arrays


def _cheapest_pairs(settled, labels, samples, stretch):
    """Pairs (i, j, squared distance) that join all parts: a spanning forest of the allowed edges, then of searched pairs."""
    candidates, theta = settled.problem.candidates, settled.problem.theta * settled.problem.shrink
    lam = settled.point.lam + settled.problem.base
    apart = np.flatnonzero(labels[candidates.nodes] < labels[candidates.indices])
    i, j = candidates.nodes[apart], candidates.indices[apart]
    cost = theta * candidates.z[apart] - 0.5 * (lam[i] + lam[j])
    chosen = _forest(labels[i], labels[j], cost, int(labels.max()) + 1)
    pairs = [(i[chosen], j[chosen], settled.support.candidates.z[apart[chosen]])]
    if getattr(samples, "sparse", False):
        return pairs[0]
    labels = _merged(labels, *pairs[0][:2])
    while labels.max() > 0:
        nodes = _who_searches(labels)
        others, z = nearest_outside(samples, nodes, labels, lam / (2.0 * theta), stretch)
        counted = z if stretch is None else z * stretch[nodes] * stretch[others]
        cost = theta * counted - 0.5 * (lam[nodes] + lam[others])
        chosen = _forest(labels[nodes], labels[others], cost, int(labels.max()) + 1)
        pairs.append((nodes[chosen], others[chosen], z[chosen]))
        labels = _merged(labels, nodes[chosen], others[chosen])
    i, j, z = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return i, j, z


def _forest(a, b, cost, n_parts):
    """The pairs of parts (a, b) of a spanning forest of least cost, by their places in the arrays."""
    order = np.argsort(cost, kind="stable")
    low, high = np.minimum(a, b)[order].astype(np.int64), np.maximum(a, b)[order]
    _, first = np.unique(low * n_parts + high, return_index=True)
    first.sort()
    place = order[first]  # the cheapest of every pair of parts, by ascending cost
    ranks = sp.csr_matrix((np.arange(1, place.size + 1), (low[first], high[first])), shape=(n_parts, n_parts))
    return place[minimum_spanning_tree(ranks).data.astype(np.int64) - 1]


def _merged(labels, i, j):
    """The parts after joining them at these pairs."""
    n_parts = int(labels.max()) + 1
    joined = sp.csr_matrix((np.ones(i.size), (labels[i], labels[j])), shape=(n_parts, n_parts))
    return connected_components(joined, directed=False)[1][labels]


def _who_searches(labels):
    """A few samples of every part but the largest, evenly spaced."""
    sizes = np.bincount(labels)
    largest, each = int(np.argmax(sizes)), max(1, SEARCHED // (sizes.size - 1))
    order = np.argsort(labels, kind="stable")
    place = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = -(-sizes[labels[order]] // each)
    return order[(place % step == 0) & (labels[order] != largest)].astype(np.int32)


def _counted_distance(settled, i, j, share):
    """The distance at which a pair has, before others yield, `share` of the smaller mean weight of its ends."""
    problem, point = settled.problem, settled.point
    lam, theta = point.lam + problem.base, problem.theta * problem.shrink
    mean = float(point.degree.sum() / point.active.sum())
    means = np.where(point.active > 0, point.degree / np.maximum(point.active, 1), mean)  # a node without edges: the overall
    middle = 0.5 * (lam[i] + lam[j])
    return (middle - np.minimum(share * np.minimum(means[i], means[j]), middle)) / theta


def _add(joints, i, j, z):
    """Joints with more pairs; of a pair given twice the last counts."""
    low, high = np.minimum(i, j), np.maximum(i, j)
    old = ~np.isin(_keys(joints.i, joints.j), _keys(low, high))
    return Joints(
        np.concatenate([joints.i[old], low]), np.concatenate([joints.j[old], high]), np.concatenate([joints.z[old], z])
    )


def _keys(i, j):
    return i.astype(np.int64) << 32 | j.astype(np.int64)
