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

With locality a distance counts sᵢsⱼ times, s the local scales. Let qᵢ = θ·sᵢ²·reachᵢ/λᵢ, and take a pair outside with qᵢ ≤ qⱼ:
(λᵢ+λⱼ)/2 ≤ θ·(sᵢ²·reachᵢ + sⱼ²·reachⱼ)/(2qᵢ) ≤ θ·max(reach)·(sᵢ² + sⱼ²)/(2qᵢ), which is at most θ·sᵢsⱼ·max(reach), and the
weight 0, if qᵢ ≥ ½(sᵢ/sⱼ + sⱼ/sᵢ). So nodes are certified for which this holds with the smallest and the largest of all scales
in place of sⱼ. Where all scales are the same it is the test above.

Of a million nodes nearly all fail that, because the worst partner of a node may be anywhere. So with locality all nodes get a
limit, and *possible pairs* are looked for (possible_pairs.py): those that the reach of their ends does not rule out at these
limits. The few with z·sᵢsⱼ < limitᵢ + limitⱼ become allowed edges, and then all nodes count as scanned: what a scan says of a
node's pairs is true of theirs. Only nodes with a qᵢ well below 1, of which the lists are too short even for partners like
themselves, have many possible pairs: they get longer lists or a true scan before that.

Where the lists of most nodes are too short, as those of samples in many dimensions that have hubs, longer lists would be lists
of nearly everything. *Bounds* (neighbors/bounds.py) then find every pair of failing nodes with z·sᵢsⱼ < limitᵢ + limitⱼ, and
these nodes are scanned. They are also what a *proof* is made of, which does not rest on lists at all: nothing is known of their
reach, and all nodes fail.
"""

from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from smoothgraph._kernels import lists
from smoothgraph.fit.possible_pairs import count_of_pairs, count_of_possible, possible_pairs
from smoothgraph.fit.state import Asked, Support
from smoothgraph.neighbors.bounds import TEST_COST, Bounds, Limits
from smoothgraph.neighbors.lists import keep_nearest, reach
from smoothgraph.neighbors.queries import pairs_nearer_than
from smoothgraph.parallel import ROWS, blocks, least_rows

LIST_FACTOR = 4  # an extension makes the lists of nodes that need it so many times as long
MAX_EXTENSIONS = 2  # times that lists are extended
# Pairs are let in up to these factors beyond what is needed, so that λ and θ may still move. Extended lists cost more with
# every pair, and so does a look for possible pairs, so their factors are the smaller ones.
EXTENSION_SLACK, LOOK_SLACK, SCAN_SLACK, BOUNDS_SLACK = 1.03, 1.01, 1.1, 1.03
# Multiplications that a scan may cost when the lists are approximate: up to the first, half a second, it is the shortest way;
# up to the second, seconds, it is made where longer lists did not help. Beyond a million samples, where all the rest takes
# longer too, as many for every million.
CHEAP_SCAN, DEAR_SCAN = 6e10, 2e11
# Nodes of the largest λ, the farthest outliers, are scanned whatever their lists say where these are approximate: such lists
# miss most there. So many they are at most, which takes a second or two at a million, and this share of all.
MAX_OUTLIERS, OUTLIER_SHARE = 1500, 0.02
MAX_PAIRS_PER_NODE, MAX_PAIRS = 50, 10_000_000  # a scan that finds more than both gives up: n copies have n² pairs with weight
# There are bounds from so many samples on. With approximate lists they are used where more than this share of the lists is
# shorter than a node needs among partners like itself, by this ratio, and they take so many multiplications at most, about ten
# seconds of two cores: 130,000 samples in 100 dimensions. Where hubs have many neighbours longer lists and a look at all nodes
# take longer than that: so many for every neighbour of a neighbour.
FEWEST_BOUNDED, MANY_SHORT, SHORT_RATIO, DEAR_BOUNDS, TWO_HOPS_COST = 20_000, 0.25, 0.95, 1e12, 2000.0
# What a pair of nodes costs in a look at all nodes for possible pairs, in multiplications, and what a possible pair costs for
# each feature: it is measured by itself, which takes many times as long as a product of many rows.
LOOK_COST, MEASURE_COST = 600.0, 25.0
# Nodes by which numbers of pairs are told before; and the share of the limit that those which bounds would find may be.
TRIED_NODES, EXPECTED_SHARE = 256, 0.7
# With locality, lists of a smaller θ·local_scale²·reach/λ are too short for a node to look for possible pairs only. Longer
# lists take several times as long, and find little more: with 0.95 a million molecules take 3 s more, and miss 0.25 % of the
# weight in place of 0.32 %, nearly all of it because lists missed neighbours.
SHORTEST_RATIO = 0.7
MAX_TWO_HOPS = 1024  # neighbours of neighbours that a node looks at for a longer list, at the least


def failing_nodes(support: Support, theta: float, lam: np.ndarray) -> np.ndarray:
    """Nodes such that every pair outside the support that may have weight has one of them at an end."""
    failing = np.zeros(lam.size, np.bool_)
    if support.scanned is None or not support.scanned.all():
        failing = theta * support.edges.reach < _needed(support.local_scale, lam)
    if support.scanned is not None and support.scan_limits is not None:
        failing &= ~support.scanned
        failing |= lam > 2.0 * theta * support.scan_limits
    return np.flatnonzero(failing).astype(np.int32)


def _needed(local_scale, lam):
    """θ·reach from which on a node is certified."""
    if local_scale is None:
        return lam
    worst = np.maximum(local_scale / local_scale.min(), local_scale.max() / local_scale)
    return _own_needed(local_scale, lam) * 0.5 * (worst + 1.0 / worst)


def _own_needed(local_scale, lam):
    """θ·reach that a node needs among partners with a local scale like its own."""
    return lam if local_scale is None else lam / local_scale**2


class Growth:
    """How the support can grow for the failing nodes at θ and λ: by bounds, by a scan, by longer lists, or not at all.

    `way` is None for the last. With exact lists a scan costs what longer lists would and lets in no more than is needed; with
    approximate ones it is made where it is affordable. `extensions` is how often lists were extended already.
    """

    def __init__(self, asked: Asked, support: Support, failing: np.ndarray, theta: float, lam: np.ndarray, extensions: int):
        self.asked, self.support, self.failing, self.theta, self.lam = asked, support, failing, theta, lam
        self.too_short = _too_short(support, failing, theta, lam, SHORTEST_RATIO)
        self.extensions = extensions
        n = asked.distances.n
        extendable = extensions < MAX_EXTENSIONS and support.width < n - 1
        self.scan_of_one = float(n) * (asked.distances.n_features + 60)  # multiplications
        work = self.too_short.size * self.scan_of_one
        self.affordable = asked.is_exact or work <= (CHEAP_SCAN if extendable else DEAR_SCAN) * max(1.0, n / 1e6)
        self.outliers = failing[:0] if asked.is_exact or support.scanned is not None else _outliers(lam)
        others_look = support.local_scale is not None and failing.size > self.too_short.size
        if asked.proof or self._bounds_pay(work):
            self.way: str | None = "bounds"
        elif self.affordable:
            self.way = "scan"
        else:
            self.way = "extend" if extendable else "scan" if others_look else None

    def _bounds_pay(self, work: float) -> bool:
        """Whether bounds are the best way, where the scan of nodes with short lists is so much work.

        Once they are prepared, they are.
        """
        bounds, n = self.asked.bounds, float(self.asked.distances.n)
        if bounds is None or bounds.is_prepared:
            return bounds is not None
        short = _too_short(self.support, self.failing, self.theta, self.lam, SHORT_RATIO)
        if n < FEWEST_BOUNDED or not (self.asked.is_exact or short.size > MANY_SHORT * n):
            return False
        if self.asked.is_exact:
            most = work + self._look_work(self._limits(LOOK_SLACK))
        else:
            n_neighbors = np.diff(self.support.edges.indptr).astype(float)
            most = max(DEAR_BOUNDS, TWO_HOPS_COST * float(n_neighbors @ n_neighbors))
        pairs = min(0.5 * n, self.failing.size) * n
        return pairs * TEST_COST < most and pairs * bounds.work(self._pair_limits(self._limits(BOUNDS_SLACK))) < most

    def _look_work(self, limits) -> float:
        """What it takes to look at all nodes for possible pairs, or to scan the nodes that would look, if that is less."""
        scale, others = self.support.local_scale, self.failing.size - self.too_short.size
        if scale is None or not others:
            return 0.0
        if self.support.scanned is not None:  # nodes that look alone look at every other node
            return others * self.scan_of_one
        edges, n_features = self.support.edges, self.asked.distances.n_features
        measuring = MEASURE_COST * n_features * count_of_possible(edges, limits, scale, TRIED_NODES)
        return min(LOOK_COST * count_of_pairs(edges, limits, scale) + measuring, others * self.scan_of_one)

    @property
    def is_scan(self) -> bool:
        """Whether it goes over all samples, and is better made once, for λ that are right."""
        return self.way in ("scan", "bounds")

    def grow(self) -> Support | None:
        """The larger support; None if too many pairs may have weight."""
        return self._scan() if self.is_scan else self._extend()

    def _extend(self):
        """Longer lists, from the neighbours of neighbours, cut where the certificate needs no more, with some slack."""
        distances, support, nodes = self.asked.distances, self.support, self.too_short
        width = min(LIST_FACTOR ** (self.extensions + 1) * support.width, distances.n - 1)
        found, z = np.empty((nodes.size, width), np.int32), np.empty((nodes.size, width), distances.dtype)
        within = EXTENSION_SLACK * _own_needed(support.local_scale, self.lam)[nodes] / self.theta
        for rows in blocks(nodes.size, ROWS):
            found[rows], z[rows] = self._nearest_of_two_hops(nodes[rows], within[rows], width)
        full = found[:, -1] >= 0  # there may be other samples beyond the last
        within[full] = np.minimum(within, reach(found, z, distances.n))[full]
        return support.add_lists(nodes, found, z, within, threads=self.asked.threads)

    def _nearest_of_two_hops(self, nodes, within, width):
        distances, edges, threads = self.asked.distances, self.support.edges, self.asked.threads
        most = max(MAX_TWO_HOPS, 1 << (4 * width - 1).bit_length())
        found = np.empty((nodes.size, most), np.int32)
        threads.rows(lists.two_hops, nodes.size, nodes, edges.indptr, edges.indices, found, least=least_rows(most))
        z = distances.to_lists(distances.own(nodes), found, within, threads=threads)
        return keep_nearest(nodes, found, z, width, threads=threads)

    def _scan(self):
        """Let in every pair that may have weight, of those that are not known to have none.

        The limits of all other nodes stay, since the scanned nodes were compared with them up to these limits.
        """
        support, threads = self.support, self.asked.threads
        slack = LOOK_SLACK if support.local_scale is not None and support.scanned is None else SCAN_SLACK
        slack = BOUNDS_SLACK if self.way == "bounds" else slack
        scanned, limits = np.zeros(self.lam.size, np.bool_), self._limits(slack)
        if support.scanned is not None and support.scan_limits is not None:
            scanned, before = support.scanned.copy(), support.scan_limits.copy()
            before[self.failing] = np.maximum(before, limits)[self.failing]
            limits = before
        is_large = self.way == "bounds" or self.too_short.size > max(MANY_SHORT * limits.size, TRIED_NODES)
        if is_large and self._expected_pairs(limits) > EXPECTED_SHARE * self._most_pairs():
            return None
        if self.way == "bounds":
            found = self._bounded_pairs(scanned, limits)
        elif support.local_scale is None:
            found = self._near_pairs(scanned, limits)
        else:
            found = self._local_pairs(scanned, limits)
        if found is None or any(pairs is None for pairs in found):
            return None
        pairs = (np.concatenate(both) for both in zip(*found, strict=True))
        return replace(support.add_pairs(*pairs, threads=threads), scanned=scanned, scan_limits=limits)

    def _near_pairs(self, scanned, limits):
        """Pairs of nodes with short lists and any sample, of other failing and scanned nodes. Marks the `scanned` in place."""
        near = partial(pairs_nearer_than, self.asked.distances, limits=limits, local_scale=None, most=self._most_pairs())
        threads, others = self.asked.threads, np.setdiff1d(self.failing, self.too_short)
        among, compared = np.flatnonzero(scanned).astype(np.int32), np.union1d(self.too_short, self.outliers)
        scanned[compared] = True
        return near(compared, threads=threads), near(others, among=among, threads=threads)

    def _local_pairs(self, scanned, limits):
        """The same with locality: pairs of nodes with short lists and any sample, and possible pairs of the other nodes.

        All of these look at first, later those that fail. Nodes with short lists look too where no scan is affordable. With
        exact lists a look goes over all nodes, and all nodes that fail are scanned where that is less work.
        """
        distances, support, threads, most = self.asked.distances, self.support, self.asked.threads, self._most_pairs()
        others = self.failing.size - self.too_short.size
        if self.asked.is_exact and self._look_work(limits) >= others * self.scan_of_one:
            scanned[self.failing] = True
            return (pairs_nearer_than(distances, self.failing, limits, support.local_scale, most, threads=threads),)
        compared = np.union1d(self.too_short if self.affordable else self.too_short[:0], self.outliers)
        looks = np.full(distances.n, support.scanned is None)
        looks[self.failing] = True
        looks[compared] = False
        looking = np.flatnonzero(looks).astype(np.int32)
        scanned[looking], scanned[self.too_short] = True, self.affordable
        scanned[compared] = True
        alone, is_exact, local_scale = support.scanned is not None, self.asked.is_exact, support.local_scale
        look = partial(possible_pairs, distances, support.edges, alone=alone, is_exact=is_exact)
        return (
            pairs_nearer_than(distances, compared, limits, local_scale, most, threads=threads),
            look(looking, limits, local_scale, most, threads=threads),
        )

    def _limits(self, slack):
        """Up to which squared distances the nodes are compared with others."""
        return slack * np.maximum(self.lam, 0.0) / (2.0 * self.theta)

    def _pair_limits(self, limits) -> Limits:
        scale = self.support.local_scale
        return Limits(limits, limits, np.ones(limits.size) if scale is None else scale)

    def _bounded_pairs(self, scanned, limits):
        """All pairs that may have weight, of nodes that fail, or None if they are too many. Marks the `scanned` in place."""
        most, kept, bounds = self._most_pairs(), 0, cast(Bounds, self.asked.bounds)
        every = 2 * self.failing.size > limits.size
        nodes = None if every else self.failing  # each pair is found once, or at both of its ends

        def take(*pairs):
            nonlocal kept
            kept += pairs[0].size
            return pairs if kept <= most else tuple(part[:0] for part in pairs)  # so that memory is bounded

        found = bounds.near_pairs(self._pair_limits(limits), take, nodes)
        scanned[slice(None) if every else self.failing] = True
        return None if kept > most else found

    def _expected_pairs(self, limits) -> float:
        """About how many pairs of failing nodes may have weight, from a few of these nodes.

        Those of them that have most are left out: one hub would decide, and its pairs are counted at their other ends.
        """
        distances, scale, threads = self.asked.distances, self.support.local_scale, self.asked.threads
        tried = self.failing[:: -(-self.failing.size // TRIED_NODES)]
        i, j, _ = pairs_nearer_than(distances, tried, limits, scale, tried.size * distances.n + 1, threads=threads)
        counts = np.sort(np.bincount(np.concatenate([i, j]), minlength=limits.size)[tried])
        return 0.5 * float(counts[: -(-counts.size * 49 // 50)].mean()) * self.failing.size

    def _most_pairs(self):
        return max(MAX_PAIRS_PER_NODE * self.asked.distances.n, MAX_PAIRS)


def _outliers(lam):
    """The nodes of the largest λ."""
    count = min(MAX_OUTLIERS, int(np.ceil(OUTLIER_SHARE * lam.size)))
    return np.sort(np.argpartition(lam, -count)[-count:]).astype(np.int32)


def _too_short(support, failing, theta, lam, ratio):
    """The failing nodes with lists that are too short, with locality by this ratio even for partners like themselves.

    Of the others the scan limit was passed, or their lists are too short for the worst partner only.
    """
    if support.local_scale is not None:
        short = theta * support.edges.reach[failing] < ratio * _own_needed(support.local_scale, lam)[failing]
        return failing[short if support.scanned is None else short & ~support.scanned[failing]]
    if support.scanned is None:
        return failing
    risen = ~support.scanned[failing] & (lam[failing] > 2.0 * theta * support.scan_limits[failing])
    risen &= theta * support.edges.reach[failing] >= lam[failing]
    return failing[~risen]
