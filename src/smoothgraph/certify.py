"""Is the support complete? Grow it where it is not.

In: allowed edges with each node's reach, θ and λ. Out: the nodes for which the reach does not prove that every pair left out
has weight 0, and a larger support for them.

A pair outside the support is at least max(reach) apart. If θ·reachᵢ ≥ λᵢ holds for all nodes, take such a pair with λᵢ ≥ λⱼ:
θzᵢⱼ ≥ θ·reachᵢ ≥ λᵢ ≥ (λᵢ+λⱼ)/2, so its weight would be 0. This is true of any λ, not of the optimum alone: adding the pair
changes neither P(w) nor D(λ), and the duality gap found on the support holds for all n(n−1)/2 pairs. With approximate lists
it is true as far as the lists are.

With locality a distance counts stretchᵢ·stretchⱼ times, and node i answers for its pairs with the nodes that come no later in
the order of λ/stretch². It is certified if θ·reachᵢ is at least the largest (λᵢ+λⱼ)/(2·stretchᵢ·stretchⱼ) over those: then
every pair outside is answered for by one of its ends. Without locality the largest is λᵢ, and this is the test above.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from smoothgraph import _kernels
from smoothgraph.candidates import Candidates, add_lists, add_pairs
from smoothgraph.neighbors import pairs_nearer_than, reach
from smoothgraph.samples import ROWS, blocks

FACTOR, EXTENSIONS = 4, 2  # lists of nodes that need it become this many times longer, so many times
# Pairs are let in up to these factors beyond what is needed, so that λ and θ may still move: longer lists, that cost more with
# every pair, up to the first, comparisons up to the second.
SLACK, COMPARED_SLACK = 1.03, 1.1
# Multiplications that comparing with every sample may cost when the lists are approximate: up to half a second it is the
# shortest way, up to seconds it is made where longer lists did not help. Of more than a million samples, where all the rest
# takes longer too, so many for every million.
SHORT_WORK, COMPARE_WORK = 6e10, 2e11
# Comparing gives up when it finds more pairs than either: groups of duplicates have n² pairs of positive weight.
PAIRS_PER_NODE, PAIRS = 50, 10_000_000
MOST_TWO_HOPS = 1024
ANY_PATH = np.empty(0, np.int8)


class Comparison(NamedTuple):
    """`nodes` were held against every sample: all their pairs with (stretched) z < limitᵢ + limitⱼ are in the support."""

    nodes: np.ndarray
    limits: np.ndarray


@dataclass(frozen=True)
class Support:
    """Allowed edges, and what is known of the pairs left out: each node's reach, and comparisons with every sample.

    `width` is how long the lists were at first, and `extensions` how often some were made longer since. `stretch` is what
    locality makes of distances, None without it. Candidates and reach are not stretched.
    """

    candidates: Candidates
    width: int
    stretch: np.ndarray | None = None
    extensions: int = 0
    comparisons: tuple[Comparison, ...] = ()
    exhausted: bool = False


def failing_nodes(support: Support, theta: float, lam: np.ndarray) -> np.ndarray:
    """The nodes whose pairs outside the support may have weight."""
    failing = theta * support.candidates.reach < _needed(support.stretch, lam)
    for nodes, limits in support.comparisons:
        # θz ≥ θ(limitᵢ + limitⱼ) ≥ (λᵢ + λⱼ)/2 for every j, however λⱼ has risen since
        slack = 2.0 * theta * limits[nodes] - lam[nodes]
        failing[nodes[slack + _kernels.least_slack(limits, lam, theta) >= 0.0]] = False
    return np.flatnonzero(failing).astype(np.int32)


def _needed(stretch, lam):
    """θ·reach from which on a node is certified."""
    if stretch is None:
        return lam
    order = np.argsort(lam / stretch**2, kind="stable")
    return 0.5 * _kernels.largest_partners(order, stretch, lam) / stretch


def compares(support: Support, nodes: np.ndarray, samples, exact: bool) -> bool:
    """Whether `grow` compares these nodes with every sample, rather than extend their lists.

    With exact lists a comparison costs what longer lists would and lets in no more than is needed; with approximate ones it
    is made where it is affordable.
    """
    work = float(nodes.size) * samples.n * (samples.n_features + 60)
    affordable = SHORT_WORK if _extends(support, samples) else COMPARE_WORK
    return exact or work <= affordable * max(1.0, samples.n / 1e6)


def _extends(support, samples):
    return support.extensions < EXTENSIONS and support.width < samples.n - 1


def grow(support: Support, samples, nodes: np.ndarray, theta: float, lam: np.ndarray, exact: bool) -> Support:
    """A larger support for `nodes`, by comparison with every sample or from the neighbours of their neighbours."""
    if compares(support, nodes, samples, exact):
        return _compare(support, samples, nodes, theta, lam)
    if _extends(support, samples):
        return _extend(support, samples, nodes, theta, lam)
    return replace(support, exhausted=True)


def _extend(support, samples, nodes, theta, lam):
    """Longer lists for `nodes`, cut where their certificate needs no more, with some slack."""
    width = min(FACTOR ** (support.extensions + 1) * support.width, samples.n - 1)
    lists, distances = np.empty((nodes.size, width), np.int32), np.empty((nodes.size, width), samples.dtype)
    farthest = SLACK * _needed(support.stretch, lam)[nodes] / theta
    for rows in blocks(nodes.size, ROWS):
        near = _nearest_of_two_hops(samples, support.candidates, nodes[rows], farthest[rows], width)
        lists[rows], distances[rows] = near
    full = lists[:, -1] >= 0  # there may be others beyond the last
    farthest[full] = np.minimum(farthest, reach(lists, distances, samples.n))[full]
    candidates = add_lists(support.candidates, nodes, lists, distances, farthest)
    return replace(support, candidates=candidates, extensions=support.extensions + 1)


def _nearest_of_two_hops(samples, candidates, nodes, farthest, width):
    most = max(MOST_TWO_HOPS, 1 << (4 * width - 1).bit_length())
    lists = _kernels.two_hops(nodes, candidates.indptr, candidates.indices, ANY_PATH, most)
    distances = samples.distances(samples.own(nodes), lists, farthest)
    _kernels.tidy_lists(nodes, lists, distances, width)
    return lists[:, :width], distances[:, :width]


def _compare(support, samples, nodes, theta, lam):
    """Let in every pair of `nodes` that may have weight. Who was compared before need only meet those whose λ has risen."""
    limits = COMPARED_SLACK * lam / (2.0 * theta)
    most = max(PAIRS_PER_NODE * samples.n, PAIRS)
    stretch = np.ones(samples.n) if support.stretch is None else support.stretch
    near = partial(pairs_nearer_than, samples, stretch=stretch, most=most)
    comparisons, found = list(support.comparisons), []
    for known in reversed(support.comparisons):
        risen = lam > 2.0 * theta * known.limits
        again = np.intersect1d(nodes, known.nodes[~risen[known.nodes]])
        if again.size:
            raised = np.where(risen, np.maximum(known.limits, limits), known.limits)
            found.append(near(again, raised, among=np.flatnonzero(risen).astype(np.int32)))
            comparisons.append(Comparison(again, raised))
            nodes = np.setdiff1d(nodes, again)
    found.append(near(nodes, limits))
    if any(pairs is None for pairs in found):
        return replace(support, exhausted=True)
    i, j, z = (np.concatenate(parts) for parts in zip(*found, strict=True))
    comparisons.append(Comparison(nodes, limits))
    return replace(support, candidates=add_pairs(support.candidates, i, j, z), comparisons=tuple(comparisons))
