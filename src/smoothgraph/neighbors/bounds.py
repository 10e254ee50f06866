"""Near pairs among all pairs, by bounds that rule the others out for certain.

In: points, and limits: a pair counts if z·sᵢ·sⱼ < aᵢ + bⱼ. Out: every pair that counts, whatever a search has found before.

1. *Short rows.* Let P project onto p orthonormal directions, those in which a part of the samples differs most, and let rᵢ be
   what is left of sample i. Then z ≥ ‖Pxᵢ − Pxⱼ‖² + (‖rᵢ‖ − ‖rⱼ‖)²: rows (Px, ‖r‖) of p + 1 numbers bound all distances.
2. *Cells* of short rows. Let w be the unit vector from centre a to centre b. The distance of a sample x of cell A to any sample
   y of cell B is at least w·(y − x) = ‖b − a‖ − w·(x − a) − max over B of (−w)·(y − b): one number for each x and each cell B
   rules all pairs of x with B out, or does not.
3. The pairs that are left are bounded by products of short rows, counted from the centre of B. With n = ‖x‖² a pair counts
   only if sᵢnᵢ + sᵢnⱼ − 2sᵢxᵢ·xⱼ − aᵢ/sⱼ − bⱼ/sⱼ < 0, which is one product of rows (−2sᵢxᵢ, sᵢnᵢ, sᵢ, −aᵢ, −1) and
   (xⱼ, 1, nⱼ, 1/sⱼ, bⱼ/sⱼ). The few for which it is negative are measured.

Rounding is taken off every bound. Let u be the precision of the type, r the radii of the cells A and B, R the largest length
of a sample, q the short row of i counted from the centre of B, and y that of j. Computed in float64, coordinates are off by
less than v·R, v = (d + 16)·2⁻⁵². Rounded to the type and moved from one centre to the other, q and y are together off by less
than E = 2u‖q‖ + 2u·r_A + u·r_B + 2vR. Their distance is at least ‖q − y‖ − E, and its square ‖q − y‖² − 2E(‖q‖ + ‖y‖).
With 2ab ≤ a²/u + ub² this is

    z ≥ (1 − 10u)(‖q‖² + ‖y‖²) − 2q·y − 8u(r_A² + r_B²) − 4v²R²/u.

The product of p + 4 numbers is off by less than (p + 8)·u times the sum of its terms without their signs, which is at most
2sᵢ(‖q‖² + ‖y‖²) + (aᵢ + bⱼ)/sⱼ. So squared lengths are taken (1 − κ) times, and limits (1 + κ) times, κ = 4(p + 16)u.

Numbers are brought near 1 before, by one unit of lengths and one of scales. Where limits are more than 10¹² times apart, all
is in float64.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from smoothgraph._kernels import bounds as kernels
from smoothgraph.distances import Points, squared_norms
from smoothgraph.neighbors.cells import Cells, CellSizes, Centres
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import ROWS, Threads, blocks

MOST_DIRECTIONS = 128
SAMPLED = 1500  # samples of which the directions are found
TRIED_ROWS, TRIED_COLUMNS = 300, 2000  # pairs of samples by which the number of directions is chosen
# In multiplications of a matrix product, 0.02 ns each: what a pair costs besides its products, and what it costs to measure one
# that no bound rules out, where its rows must come from memory.
TEST_COST, MEASURE_COST = 12.0, 6000.0
CELL_SIZE = 250  # samples of a cell on average
LARGEST_COUNT = 4000  # of cells: a matrix of cells × cells is stored
RUN = 256  # places that look together
WIDEST_RANGE = 1e12  # factor between limits up to which float32 is wide enough
SEED = 0


class Limits(NamedTuple):
    """A pair of nodes i and j counts if z·scaleᵢ·scaleⱼ < ownᵢ + partnerⱼ. All are arrays with one number per node."""

    own: np.ndarray
    partner: np.ndarray
    scale: np.ndarray

    @classmethod
    def of_rows(cls, limits: np.ndarray) -> "Limits":
        """Pairs (i, j) count if z < limitsᵢ, whatever j."""
        return cls(limits, np.zeros(limits.size), np.ones(limits.size))


class Bounds:
    """The short rows of points, in cells, made when they are first needed, for the limits that are then asked for."""

    def __init__(self, distances: Points, *, cell_size: int = CELL_SIZE, threads: Threads):
        self.distances, self.threads = distances, threads
        self.cell_size = max(cell_size, distances.n // LARGEST_COUNT)
        self.middle = np.asarray(distances.middle, np.float64)
        self._directions: np.ndarray | None = None
        self._work = np.inf
        self.is_prepared = False

    def work(self, limits: Limits, tried: np.ndarray | None = None) -> float:
        """About the number of multiplications per pair, not counting what cells rule out.

        The first call chooses the number of directions, for the limits of the nodes `tried`, or of some that are drawn.
        """
        if self._directions is None:
            self._directions, self._work = self._best_directions(limits, tried)
        return self._work

    @property
    def _n_directions(self) -> int:
        return self._directions.shape[1]  # type: ignore[union-attr]

    def number(self, numbering: Numbering) -> None:
        """Nodes have these numbers from now on."""
        self.distances = self.distances.numbered(numbering)

    def _best_directions(self, limits, tried):
        """The orthonormal directions (d, p) that leave the least work, and the work per pair."""
        rng, n = np.random.default_rng(SEED), self.distances.n
        directions = _principal(self._from_middle(np.sort(rng.choice(n, min(n, SAMPLED), replace=False))))
        most = directions.shape[1]
        i, j = (np.sort(rng.choice(n, min(n, count), replace=False)) for count in (TRIED_ROWS, TRIED_COLUMNS))
        i = i if tried is None else tried
        counts = [p for p in (4, 8, 12, 16, 24, 32, 48, 64, 96, MOST_DIRECTIONS) if p < most] + [most]
        of_pairs = (limits.own[i][:, None] + limits.partner[j]) / (limits.scale[i][:, None] * limits.scale[j])
        of_pairs[i[:, None] == j] = -np.inf
        q, x = self._from_middle(i), self._from_middle(j)
        rows = (q @ directions, squared_norms(q)), (x @ directions, squared_norms(x))
        costs = [p + TEST_COST + MEASURE_COST * _share_below(*rows, p, of_pairs) for p in counts]
        best = int(np.argmin(costs))
        return np.ascontiguousarray(directions[:, : counts[best]]), costs[best]

    def _from_middle(self, nodes):
        return self.distances.own(nodes).astype(np.float64) - self.middle

    def _prepare(self, limits: Limits) -> None:
        """Make the short rows and the cells, in a type that is wide enough for limits like these."""
        self.work(limits)
        self._choose_units(limits)
        cells = self._cells()
        self.row_at, self.ptr = cells.members, cells.ptr.astype(np.int64)
        self._count_from_centres()
        self._measure_cells()

    def _cells(self) -> Cells:
        """Cells of short rows, which are rounded here: those that count from the centres of cells are made anew."""
        distances, threads = self.distances, self.threads
        short = np.empty((distances.n, self._n_directions + 1), self.kind)

        def shorten(rows):
            short[rows] = self._short_rows(distances.X[rows])

        threads.map(shorten, distances.n, distances.at_once(ROWS))
        sizes = CellSizes(mean=self.cell_size)
        return Cells.of(Centres(Points(short), SEED, sizes, threads=threads).nearest(1)[:, 0], sizes.largest)

    def _short_rows(self, X):
        """The short rows of rows of X, in the unit of lengths and in float64."""
        return _shortened(X.astype(np.float64) - self.middle, self._directions) * self.length

    def _choose_units(self, limits):
        """Factors of lengths and scales that bring all numbers near 1, and the type that holds them."""
        usual = np.median(limits.scale)
        self.length = 2.0 ** -np.ceil(0.5 * np.log2(max(self.distances.largest_square, np.finfo(np.float64).tiny)))
        self.scale = 2.0 ** -np.round(np.log2(usual))
        of_pairs = (limits.own + limits.partner)[limits.own + limits.partner > 0.0] * (self.length * self.scale) ** 2
        numbers = np.concatenate([of_pairs, limits.scale * self.scale, [1.0]])
        fits = numbers.max() < WIDEST_RANGE and numbers.min() > 1.0 / WIDEST_RANGE
        self.kind = self.distances.dtype if fits else np.dtype(np.float64)

    def _count_from_centres(self):
        """The rows (x, 1, ‖x‖²·keep − extra, ·, ·) in the order of cells, x counted from the centre of its cell."""
        count, p, u = self.ptr.size - 1, self._n_directions + 1, float(np.finfo(self.kind).eps)
        v = (self.distances.n_features + 16) * 2.0**-52
        self.centres, radius = np.zeros((count, p), self.kind), np.zeros(count)
        self.columns = np.empty((self.distances.n, p + 4), self.kind)
        self.columns[:, p + kernels.ONE] = 1.0
        rounded = 4.0 * (p + 16) * u
        self.keep, self.up = self.kind.type(1.0 - rounded), 1.0 + rounded
        longest = 2.0  # twice the largest length of a sample, in the unit of lengths: the centre is not further away
        self.extra, self.slack = np.zeros(count), np.zeros(count)

        def of_cell(at):
            c = filled[at.start]
            members = slice(self.ptr[c], self.ptr[c + 1])
            rows = self._short_rows(self.distances.X[self.row_at[members]])
            self.centres[c] = rows.mean(axis=0)
            rows -= self.centres[c]
            norms = squared_norms(rows)
            radius[c] = np.sqrt(norms.max())
            self.extra[c] = 8.0 * u * norms.max() + 4.0 * (v * longest) ** 2 / u
            self.slack[c] = rounded * radius[c] + v * longest
            self.columns[members, :p] = rows
            self.columns[members, p + kernels.NORM] = self.keep * norms - self.extra[c]

        filled = np.flatnonzero(np.diff(self.ptr))
        self.threads.map(of_cell, filled.size, 1)

    def _measure_cells(self):
        """farthest[a, b]: how far members of cell b go from its centre toward the centre of a."""
        count = len(self.centres)
        farthest = np.full((count, count), -np.inf, self.kind)
        self.runs = [
            (c, self.ptr[c] + rows.start, self.ptr[c] + rows.stop)
            for c in range(count)
            for rows in blocks(int(self.ptr[c + 1] - self.ptr[c]), RUN)
        ]

        def one(at):
            for c, begin, end in self.runs[at]:
                kernels.farthest_toward(self.columns, begin, end, self.centres, c, farthest[c])

        # The runs of a cell write to the same row: they are in one task.
        first = np.searchsorted([run[0] for run in self.runs], np.arange(count + 1))
        self.threads.map(lambda cells: one(slice(first[cells.start], first[cells.stop])), count, 16)
        self.farthest = np.ascontiguousarray(farthest.T)

    def near_pairs(self, limits: Limits, take: Callable[..., Any], nodes=None) -> list:
        """[take(i, j, z) of all pairs that count, a run of samples i at a time]: i are nodes in `nodes`, j any other nodes.

        Without `nodes` a pair is found once, at either of its ends: `own` and `partner` of a node must then be the same. With
        them it is found at each of its ends in `nodes`. `take` is called in the threads.
        """
        if not self.is_prepared:
            self._prepare(limits)
            self.is_prepared = True
        half, at, p = nodes is None, self.distances.numbering.nodes(self.distances.n)[self.row_at], self.centres.shape[1]
        wanted = np.full(at.size, True) if half else np.isin(at, nodes)
        own, partner, scale = (np.asarray(values, np.float64)[at] for values in limits)
        unit = (self.length * self.scale) ** 2
        self.columns[:, p + kernels.INVERSE] = 1.0 / (scale * self.scale)
        self.columns[:, p + kernels.PARTNER] = self.up * unit * partner / (scale * self.scale)
        cells = np.stack([_largest(self.columns[:, p + at], self.ptr) for at in (kernels.INVERSE, kernels.PARTNER)], axis=1)
        places = kernels.Places(self.columns, self.centres, self.ptr, self.slack, self.extra, self.keep, self.up)
        of_places = kernels.PlaceLimits(own, partner, scale, wanted, cells, unit, self.scale)
        runs = [run for run in self.runs if wanted[run[1] : run[2]].any()]

        def one(place):
            cell, begin, end = runs[place.start]
            X, farthest = self.distances.X, self.farthest[cell]
            i, j, z = kernels.near_pairs_of_run(begin, end, cell, half, places, farthest, of_places, X, self.row_at)
            return take(at[i], at[j], z.astype(self.distances.dtype))

        return self.threads.map(one, len(runs), 1)


def _principal(x):
    """Orthonormal directions (d, at most MOST_DIRECTIONS) in which the rows x differ most, the first most of all."""
    x = x - x.mean(axis=0)
    n, d = x.shape
    most = min(MOST_DIRECTIONS, n, d)
    if d <= n:
        return np.ascontiguousarray(eigh(x.T @ x, subset_by_index=[d - most, d - 1])[1][:, ::-1])
    along = eigh(x @ x.T, subset_by_index=[n - most, n - 1])[1][:, ::-1]
    return np.linalg.qr(x.T @ along)[0]


def _shortened(x, directions):
    """Rows (Px, ‖r‖). What is left is computed itself: a difference of squares would have half of the digits."""
    along = x @ directions
    left = x - along @ directions.T
    return np.column_stack([along, np.sqrt(squared_norms(left))])


def _share_below(rows, columns, p, limits):
    """The share of pairs that short rows of p directions do not rule out; rows and columns are (coordinates, squared norms)."""
    (q, q_norms), (x, x_norms) = ((along[:, :p], norms) for along, norms in (rows, columns))
    left = [np.sqrt(np.maximum(norms - squared_norms(along), 0.0)) for along, norms in ((q, q_norms), (x, x_norms))]
    z = squared_norms(q)[:, None] - 2.0 * q @ x.T + squared_norms(x) + (left[0][:, None] - left[1]) ** 2
    return float((z < limits).mean())


def _largest(values, ptr):
    """The largest of the values of each cell."""
    out, filled = np.zeros(ptr.size - 1), np.diff(ptr) > 0
    out[filled] = np.maximum.reduceat(values, ptr[:-1][filled])
    return out
