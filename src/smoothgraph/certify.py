"""Is the support complete? Grow it where it is not.

In: allowed edges with each node's reach, θ and λ. Out: the nodes for which the reach does not prove that every pair left out
has weight 0, and a larger support for them.

A pair outside the support is at least max(reach) apart. If θ·reachᵢ ≥ λᵢ holds for all nodes, take such a pair with λᵢ ≥ λⱼ:
θzᵢⱼ ≥ θ·reachᵢ ≥ λᵢ ≥ (λᵢ+λⱼ)/2, so its weight would be 0. This is true of any λ, not of the optimum alone: adding the pair
changes neither P(w) nor D(λ), and the duality gap found on the support holds for all n(n−1)/2 pairs. With approximate lists
it is true as far as the lists are.

Where lists would be too long, a node is compared with every sample instead, and its pairs with z < limitᵢ + limitⱼ are let in,
the limits being somewhat more than λ/(2θ). The others have θz ≥ (λᵢ+λⱼ)/2 as long as no λ is beyond 2θ·limit: whose is, fails.

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
    """All pairs of a node that is marked `done` and any other, with (stretched) z < limitᵢ + limitⱼ, are in the support."""

    done: np.ndarray
    limits: np.ndarray


@dataclass(frozen=True)
class Support:
    """Allowed edges, and what is known of the pairs left out: each node's reach, and a comparison with every sample.

    `width` is how long the lists were at first, and `extensions` how often some were made longer since. `stretch` is what
    locality makes of distances, None without it. Candidates and reach are not stretched.
    """

    candidates: Candidates
    width: int
    stretch: np.ndarray | None = None
    extensions: int = 0
    comparison: Comparison | None = None
    exhausted: bool = False


def failing_nodes(support: Support, theta: float, lam: np.ndarray) -> np.ndarray:
    """Nodes such that every pair outside the support that may have weight has one of them at an end."""
    failing = theta * support.candidates.reach < _needed(support.stretch, lam)
    if support.comparison is not None:
        done, limits = support.comparison
        failing &= ~done
        failing |= lam > 2.0 * theta * limits
    return np.flatnonzero(failing).astype(np.int32)


def _needed(stretch, lam):
    """θ·reach from which on a node is certified."""
    if stretch is None:
        return lam
    order = np.argsort(lam / stretch**2, kind="stable")
    return 0.5 * _kernels.largest_partners(order, stretch, lam) / stretch


def compares(support: Support, samples, nodes: np.ndarray, theta: float, lam: np.ndarray, exact: bool) -> bool:
    """Whether `grow` compares these failing nodes with every sample, rather than extend their lists.

    With exact lists a comparison costs what longer lists would and lets in no more than is needed; with approximate ones it
    is made where it is affordable.
    """
    return _compares(support, samples, _short(support, nodes, theta, lam), exact)


def _compares(support, samples, short, exact):
    work = float(short.size) * samples.n * (samples.n_features + 60)
    affordable = SHORT_WORK if _extends(support, samples) else COMPARE_WORK
    return exact or work <= affordable * max(1.0, samples.n / 1e6)


def _short(support, nodes, theta, lam):
    """The failing nodes, without those that reach far enough and need only meet who was compared before."""
    if support.comparison is None:
        return nodes
    done, limits = support.comparison
    risen = ~done[nodes] & (lam[nodes] > 2.0 * theta * limits[nodes])
    if risen.any():  # with locality it takes a while to tell
        risen &= theta * support.candidates.reach[nodes] >= _needed(support.stretch, lam)[nodes]
    return nodes[~risen]


def _extends(support, samples):
    return support.extensions < EXTENSIONS and support.width < samples.n - 1


def grow(support: Support, samples, nodes: np.ndarray, theta: float, lam: np.ndarray, exact: bool) -> Support:
    """A larger support for `nodes`, by comparison with every sample or from the neighbours of their neighbours."""
    short = _short(support, nodes, theta, lam)
    if _compares(support, samples, short, exact):
        return _compare(support, samples, nodes, short, theta, lam)
    if _extends(support, samples):
        return _extend(support, samples, short, theta, lam)
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


def _compare(support, samples, nodes, short, theta, lam):
    """Let in every pair that may have weight: of `short` and any sample, of the other `nodes` and who was compared before.

    The limits of all others stand, since who was compared before was compared up to them.
    """
    done, limits = np.zeros(samples.n, np.bool_), COMPARED_SLACK * np.maximum(lam, 0.0) / (2.0 * theta)
    if support.comparison is not None:
        done, before = support.comparison.done.copy(), support.comparison.limits.copy()
        before[nodes] = np.maximum(before, limits)[nodes]
        limits = before
    stretch = np.ones(samples.n) if support.stretch is None else support.stretch
    near = partial(pairs_nearer_than, samples, limits=limits, stretch=stretch, most=max(PAIRS_PER_NODE * samples.n, PAIRS))
    found = near(short), near(np.setdiff1d(nodes, short), among=np.flatnonzero(done).astype(np.int32))
    if any(pairs is None for pairs in found):
        return replace(support, exhausted=True)
    done[short] = True
    candidates = add_pairs(support.candidates, *(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return replace(support, candidates=candidates, comparison=Comparison(done, limits))
