"""Join the parts of a graph at the least cost.

In: where the flow settled, and the recipe. Out: the same for a graph in one part, and the pairs that join. The log barrier
forbids isolated nodes, not isolated pairs; the ℓ2 model not even those.

The cost of a pair without weight is θz − (λᵢ+λⱼ)/2 ≥ 0: how much nearer it would have to be to get any. Parts are joined by a
spanning forest of least cost, first with allowed edges; where these leave parts, with the cheapest pairs found by a search. An
edge that joins gets the smaller of the mean weights its two ends had before any was joined, and the problem is solved anew with
that weight given: everything else is optimal, and the duality gap and the support certificate prove it of the problem as it is
then. A pair that the model itself comes to give weight to is no longer a joining edge; others stay, though the model may come
to connect their parts elsewhere: that is their own doing, and without them the parts come off again.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from smoothgraph import _kernels
from smoothgraph.candidates import add_pairs
from smoothgraph.neighbors import nearest_outside
from smoothgraph.recipe import Joints, Recipe
from smoothgraph.settle import Settled
from smoothgraph.solvers.problem import rows

ROUNDS = 30  # of joining
NEAR, DRIFT = 0.009, 0.003  # of the degree, relative: θ stays while it is as near as that, or did not drift farther away
FEW, SMALL = 0.1, 200  # up to this share of nodes that changed, only parts of so many nodes around them are looked for
SEARCHED = 1024  # samples that look for a pair outside their part, over all parts, in one round of the search


def connect(
    settled: Settled, recipe: Recipe, samples, degree: float | None, resettle: Callable[..., Settled], say
) -> tuple[Settled, Recipe]:
    """A settled graph in one part, and the recipe with the edges that join it.

    `resettle(settled, recipe, changed, certify)` settles again, at the same θ where only the nodes `changed` are new, else at
    the θ that gives `degree`, the number of neighbours wanted; None keeps θ. A joining edge may make another give way, and
    edges that come in to certify all may as well: so there are a few rounds, and a certificate is asked for where the graph is
    in one part, as far as a quick look tells. In the end all of it is looked at.
    """
    weights, certified, before = _mean_weights(settled), not settled.failing.size, None
    miss = _miss(settled, recipe, degree)
    for _ in range(ROUNDS):
        labels = _parts(settled, recipe.joints) if before is None else _parts_since(before, settled, recipe.joints)
        i, j, z = _cheapest_pairs(settled, recipe, labels, samples)
        own = _own_weights(settled, recipe.joints) > 0.0
        done = not i.size and not own.any()
        changed = _marked(i, j, recipe.joints.i[own], recipe.joints.j[own], n=labels.size)
        recipe = recipe.with_joints(_add(_those(recipe.joints, ~own), i, j, np.minimum(weights[i], weights[j])))
        stays = _miss(settled, recipe, degree) <= max(NEAR, miss + DRIFT)
        if done and certified and stays:
            if before is None:
                break
            before = None  # now look at all parts
            continue
        if i.size:
            say(f"{labels.max() + 1} parts joined by {i.size} edges")
            candidates = add_pairs(settled.support.candidates, i, j, z.astype(settled.support.candidates.z.dtype))
            settled = replace(settled, support=replace(settled.support, candidates=candidates))
        before = settled if stays else None
        settled = resettle(settled, recipe, changed if stays else None, done)
        certified = done or not settled.failing.size
        miss = miss if stays else _miss(settled, recipe, degree)
    else:
        labels = _parts(settled, recipe.joints)
    if labels.max() > 0:
        text = f"The graph stays in {labels.max() + 1} parts: the allowed edges do not connect them. Allow more edges."
        warnings.warn(text, stacklevel=4)
    return settled, recipe


def _miss(settled, recipe, degree):
    """By how much the degree is not the one wanted, relative to that."""
    return 0.0 if degree is None else abs(recipe.mean_degree(settled.point) / degree - 1.0)


def _marked(*nodes, n):
    marks = np.zeros(n, np.bool_)
    marks[np.concatenate(nodes)] = True
    return marks


def _own_weights(settled, joints):
    """What the model itself gives the pairs that join."""
    return _kernels.pair_weights(joints.i, joints.j, *settled.problem.arrays_less_base, settled.point.lam)


def _those(joints, chosen):
    return Joints(joints.i[chosen], joints.j[chosen], joints.weights[chosen])


def _parts(settled, joints):
    """The number of each node's part."""
    return _kernels.weighted_parts(*rows(settled.problem.arrays_less_base), settled.point.lam, joints.i, joints.j)


def _parts_since(before, settled, joints):
    """The same, `before` having been in one part. If few nodes changed: small parts that came off, 0 for the rest."""
    arrays, lam, last = rows(settled.problem.arrays_less_base), settled.point.lam, before.point.lam
    moved = np.flatnonzero(lam != last)
    if moved.size > FEW * lam.size or not np.array_equal(settled.problem.base, before.problem.base):
        return _parts(settled, joints)
    lost = _kernels.lost_weight(moved, *arrays, last, lam)
    joined = joints.as_matrix(lam.size)
    return _kernels.small_parts(np.flatnonzero(lost), *arrays, lam, joined.indptr, joined.indices, SMALL)


def _cheapest_pairs(settled, recipe, labels, samples):
    """Pairs (i, j, squared distance) that join all parts: a spanning forest of the allowed edges, then of searched pairs.

    None if there is one part, or if the samples are not known and no allowed edge joins any.
    """
    edges, stretch = settled.support.candidates, recipe.stretch
    theta, lam = settled.problem.theta * settled.problem.shrink, settled.point.lam + settled.problem.base
    if not labels.any():
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, edges.z.dtype)
    largest = np.argmax(np.bincount(labels))
    outside = np.flatnonzero(labels != largest).astype(np.int32)
    *arrays, _ = settled.problem.arrays_less_base
    i, place, cost = _kernels.edges_between(outside, labels, largest, *arrays, settled.point.lam)
    chosen = _forest(labels[i], labels[edges.indices[place]], cost, int(labels.max()) + 1)
    pairs = [(i[chosen], edges.indices[place[chosen]], edges.z[place[chosen]])]
    if getattr(samples, "sparse", False):
        return pairs[0]
    labels = _merged(labels, *pairs[0][:2])
    while labels.max() > 0:
        nodes = _who_searches(labels)
        others, z = nearest_outside(samples, nodes, labels, lam / (2.0 * theta), stretch)
        cost = _cost(nodes, others, z, theta, lam, stretch)
        chosen = _forest(labels[nodes], labels[others], cost, int(labels.max()) + 1)
        pairs.append((nodes[chosen], others[chosen], z[chosen]))
        labels = _merged(labels, nodes[chosen], others[chosen])
    i, j, z = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return i, j, z


def _cost(i, j, z, theta, lam, stretch):
    return theta * (z if stretch is None else z * stretch[i] * stretch[j]) - 0.5 * (lam[i] + lam[j])


def _forest(a, b, cost, n_parts):
    """The pairs of parts (a, b) of a spanning forest of least cost, by their places in the arrays."""
    return _kernels.spanning_forest(np.argsort(cost, kind="stable"), a, b, n_parts)


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


def _mean_weights(settled):
    """Of each node's edges; a node without edges has the mean of all."""
    point = settled.point
    free = point.degree - settled.problem.given
    means = np.where(point.active > 0, free / np.maximum(point.active, 1), free.sum() / point.active.sum())
    return means * settled.problem.shrink


def _add(joints, i, j, weights):
    new = np.minimum(i, j), np.maximum(i, j), weights
    return Joints(*(np.concatenate(parts) for parts in zip((joints.i, joints.j, joints.weights), new, strict=True)))
