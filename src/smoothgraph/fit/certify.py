"""Is the support complete? Grow it where it is not.

In: a support with each node's reach, θ and λ. Out: the nodes for which the reach does not prove that every pair left out has
weight 0, and a larger support for them.

A pair outside the support is at least max(reach) apart. If θ·reachᵢ ≥ λᵢ holds for all nodes, take such a pair with λᵢ ≥ λⱼ:
θzᵢⱼ ≥ θ·reachᵢ ≥ λᵢ ≥ (λᵢ+λⱼ)/2, so its weight would be 0. This is true of any λ, not of the optimum alone: adding the pair
changes neither P(w) nor D(λ), and the duality gap found on the support holds for all n(n−1)/2 pairs. With approximate lists
it is true as far as the lists are.

Where lists would be too long, a node is *scanned*: it is compared with every sample, and its pairs with z < limitᵢ + limitⱼ
become allowed edges, the limits being somewhat more than λ/(2θ). All others have θz ≥ (λᵢ+λⱼ)/2 as long as no λ is above
2θ·limit. Nodes whose λ rose above that fail.

With locality a distance counts local_scaleᵢ·local_scaleⱼ times, and node i answers for its pairs with the nodes that come no
later in the order of λ/local_scale². It is certified if θ·reachᵢ is at least the largest
(λᵢ+λⱼ)/(2·local_scaleᵢ·local_scaleⱼ) over those: then one of its two ends answers for every pair outside. Without locality
the largest is λᵢ, and this is the test above.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from smoothgraph._kernels import dual, lists
from smoothgraph.fit.state import Asked, Support
from smoothgraph.neighbors.lists import keep_nearest, reach
from smoothgraph.neighbors.queries import pairs_nearer_than
from smoothgraph.parallel import ROWS, blocks, least_rows

LIST_FACTOR = 4  # an extension makes the lists of nodes that need it so many times as long
MAX_EXTENSIONS = 2  # times that lists are extended
# Pairs are let in up to these factors beyond what is needed, so that λ and θ may still move. Extended lists cost more with
# every pair, so their factor is the smaller one.
EXTENSION_SLACK, SCAN_SLACK = 1.03, 1.1
# Multiplications that a scan may cost when the lists are approximate: up to the first, half a second, it is the shortest way;
# up to the second, seconds, it is made where longer lists did not help. Beyond a million samples, where all the rest takes
# longer too, as many for every million.
CHEAP_SCAN, DEAR_SCAN = 6e10, 2e11
MAX_PAIRS_PER_NODE, MAX_PAIRS = 50, 10_000_000  # a scan that finds more than both gives up: n copies have n² pairs with weight
MAX_TWO_HOPS = 1024  # neighbours of neighbours that a node looks at for a longer list, at the least
ANY_PATH = np.empty(0, np.int8)  # to `two_hops`: paths need no new edge


def failing_nodes(support: Support, theta: float, lam: np.ndarray) -> np.ndarray:
    """Nodes such that every pair outside the support that may have weight has one of them at an end."""
    failing = theta * support.edges.reach < _needed(support.local_scale, lam)
    if support.scanned is not None and support.scan_limits is not None:
        failing &= ~support.scanned
        failing |= lam > 2.0 * theta * support.scan_limits
    return np.flatnonzero(failing).astype(np.int32)


def _needed(local_scale, lam):
    """θ·reach from which on a node is certified."""
    if local_scale is None:
        return lam
    order = np.argsort(lam / local_scale**2, kind="stable")
    return 0.5 * dual.largest_partners(order, local_scale, lam) / local_scale


class Growth:
    """How the support can grow for the failing nodes at θ and λ: by a scan, by longer lists, or not at all (`way` is None).

    With exact lists a scan costs what longer lists would and lets in no more than is needed; with approximate ones it is made
    where it is affordable. `extensions` is how often lists were extended already.
    """

    def __init__(self, asked: Asked, support: Support, failing: np.ndarray, theta: float, lam: np.ndarray, extensions: int):
        self.asked, self.support, self.failing, self.theta, self.lam = asked, support, failing, theta, lam
        self.too_short = _too_short(support, failing, theta, lam)
        self.extensions = extensions
        n = asked.distances.n
        extendable = extensions < MAX_EXTENSIONS and support.width < n - 1
        work = float(self.too_short.size) * n * (asked.distances.n_features + 60)
        affordable = (CHEAP_SCAN if extendable else DEAR_SCAN) * max(1.0, n / 1e6)
        self.way = "scan" if asked.is_exact or work <= affordable else "extend" if extendable else None

    def grow(self) -> Support | None:
        """The larger support; None if a scan found too many pairs."""
        return self._scan() if self.way == "scan" else self._extend()

    def _extend(self):
        """Longer lists, from the neighbours of neighbours, cut where the certificate needs no more, with some slack."""
        distances, support, nodes = self.asked.distances, self.support, self.too_short
        width = min(LIST_FACTOR ** (self.extensions + 1) * support.width, distances.n - 1)
        found, z = np.empty((nodes.size, width), np.int32), np.empty((nodes.size, width), distances.dtype)
        within = EXTENSION_SLACK * _needed(support.local_scale, self.lam)[nodes] / self.theta
        for rows in blocks(nodes.size, ROWS):
            found[rows], z[rows] = self._nearest_of_two_hops(nodes[rows], within[rows], width)
        full = found[:, -1] >= 0  # there may be other samples beyond the last
        within[full] = np.minimum(within, reach(found, z, distances.n))[full]
        threads = self.asked.threads
        return support.with_edges(support.edges.add_lists(nodes, found, z, within, threads=threads), threads)

    def _nearest_of_two_hops(self, nodes, within, width):
        distances, edges, threads = self.asked.distances, self.support.edges, self.asked.threads
        most = max(MAX_TWO_HOPS, 1 << (4 * width - 1).bit_length())
        found = np.empty((nodes.size, most), np.int32)
        threads.rows(lists.two_hops, nodes.size, nodes, edges.indptr, edges.indices, ANY_PATH, found, least=least_rows(most))
        z = distances.to_lists(distances.own(nodes), found, within, threads=threads)
        return keep_nearest(nodes, found, z, width, threads=threads)

    def _scan(self):
        """Let in every pair that may have weight: of nodes with short lists and any sample, of other failing and scanned nodes.

        The limits of all other nodes stay, since the scanned nodes were compared with them up to these limits.
        """
        n, support, nodes = self.asked.distances.n, self.support, self.failing
        scanned, limits = np.zeros(n, np.bool_), SCAN_SLACK * np.maximum(self.lam, 0.0) / (2.0 * self.theta)
        if support.scanned is not None and support.scan_limits is not None:
            scanned, before = support.scanned.copy(), support.scan_limits.copy()
            before[nodes] = np.maximum(before, limits)[nodes]
            limits = before
        local_scale = np.ones(n) if support.local_scale is None else support.local_scale
        most = max(MAX_PAIRS_PER_NODE * n, MAX_PAIRS)
        near = partial(pairs_nearer_than, self.asked.distances, limits=limits, local_scale=local_scale, most=most)
        others = np.setdiff1d(nodes, self.too_short)
        threads = self.asked.threads
        found = (
            near(self.too_short, threads=threads),
            near(others, among=np.flatnonzero(scanned).astype(np.int32), threads=threads),
        )
        if any(pairs is None for pairs in found):
            return None
        scanned[self.too_short] = True
        pairs = (np.concatenate(both) for both in zip(*found, strict=True))
        grown = support.with_edges(support.edges.add_pairs(*pairs, threads=threads), threads)
        return replace(grown, scanned=scanned, scan_limits=limits)


def _too_short(support, failing, theta, lam):
    """The failing nodes with lists that are too short. The others reach far enough: only their scan limit was passed."""
    if support.scanned is None:
        return failing
    risen = ~support.scanned[failing] & (lam[failing] > 2.0 * theta * support.scan_limits[failing])
    if risen.any():  # with locality it takes a while to tell
        risen &= theta * support.edges.reach[failing] >= _needed(support.local_scale, lam)[failing]
    return failing[~risen]
