"""The method of multipliers, for models that hold each sample near the weighted mean of its neighbours (Daitch 2009).

In: samples X, the allowed edges, μ (None for the hard model). Out: a `Solution` with a duality gap. With Y = LX and d = Sw:

    hard   minimise ‖LX‖²_F   over w ≥ 0, d ≥ 1;       soft   minimise ‖LX‖²_F + μ Σᵢ max(1 − dᵢ, 0)²   over w ≥ 0.

L is never formed, nor the matrix M of w ↦ LX: products with it and its transpose are passes over the edges.

Both models are one: minimise ‖LX‖² + Σᵢ rᵢ max(tᵢ − dᵢ, 0)² again and again, λᵢ = 2rᵢ max(tᵢ − dᵢ, 0), with moderate rᵢ ≤ μ and
tᵢ = 1 + λᵢ(1/2rᵢ − 1/2μ) from the time before (the method of multipliers; for rᵢ = μ nothing is repeated, for the hard model
1/μ = 0). Inside, one weight after the other goes to its minimum, those at 0 once a round, the others 16 times. The weights
after every second sweep are kept, and combined so that the combined step is smallest (Anderson's extrapolation); the
combination is used if its objective is lower.
No step inside goes up, so none can go round in circles, whether or not the model determines the weights.
"""

import time
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smoothgraph._kernels import daitch as kernels
from smoothgraph.edges import Edges
from smoothgraph.messages import warn
from smoothgraph.solvers.problem import Solution, Status

MAX_STIFFNESS = 0.5  # rᵢ at most, in units of the mean squared distance of node i's allowed edges
KEPT_SWEEPS = 8  # pairs of sweeps before an extrapolation
CHECK_EVERY = 5  # rounds before a look at the certificate
RESIDUAL_FACTOR = 10.0  # the KKT residual that counts as converged, in units of `tol`
SHIFTS = np.array([0.0, *10.0 ** np.arange(-9.0, 0.1)])  # multiples of X that are tried to make Y feasible for the dual, rising
SHARE_OFF = 1.0 - 2.0**-50  # a share of λ is a quotient of a sum, and is multiplied: four roundings, of 2⁻⁵³ each
ZERO_OBJECTIVE = 1e-12  # objective per node, in units of squared distances, that counts as 0
MAX_DENSE_BYTES = 4e9  # a sparse X that is larger than this as an array is refused


class OneWay(NamedTuple):
    """Edges once each: i < j, squared distances z, and the same edges in rows (indptr, indices, place of the edge)."""

    X: np.ndarray
    i: np.ndarray
    j: np.ndarray
    z: np.ndarray
    rows: tuple[np.ndarray, np.ndarray, np.ndarray]

    def degrees(self, w):
        return kernels.row_sums(self.rows[0], self.rows[2], w)

    def product(self, w):
        """Y = LX."""
        return kernels.laplacian_product(*self.rows, w, self.X)

    def slopes(self, Y):
        return kernels.edge_slopes(self.i, self.j, self.X, Y)

    def ends(self, y):
        return kernels.end_sums(self.i, self.j, y)

    def shares(self, Y, lam):
        """(n, shifts): how much of λ the edges allow at Y + εX, for each of the `SHIFTS` ε."""
        shares = np.empty((lam.size, SHIFTS.size))
        kernels.feasible_shares(0, lam.size, self.rows[0], self.rows[1], self.X, Y, lam, SHIFTS, shares)
        return shares


class Point(NamedTuple):
    """Feasible weights, λ, and what they prove."""

    w: np.ndarray
    lam: np.ndarray
    Y: np.ndarray
    objective: float
    dual_objective: float
    gap: float
    residual: float

    def converged(self, tol):
        return self.gap <= tol or self.residual <= RESIDUAL_FACTOR * tol


def solve(X, allowed: Edges, mu: float | None = None, tol: float = 1e-6, max_iter: int = 1000, w=None, lam=None) -> Solution:
    """The hard model (mu=None) or the soft one on the allowed edges.

    Parameters
    ----------
    X : (n, d) samples, dense or sparse; distances are measured anew from them, in float64.
    allowed : the allowed edges.
    mu : what a unit of squared shortfall of a degree costs; it scales with X squared. `default_mu` is a good one.
    tol : stop when the relative duality gap is at most this, or the KKT residual at most 10 times this: the largest change
        of a weight, or of a degree, that the optimality conditions still ask for (see `reference/daitch.py`). Where the weights
        are not determined, as with samples in two or three dimensions, the residual is usually there first.
    max_iter : rounds, each of some ten passes over all edges.
    w, lam : weights (a sparse matrix) and multipliers to start from, such as those of a `Solution`.

    Returns
    -------
    Solution : `dual` holds the multipliers of the degrees, λ; `objective` is P at weights that are feasible to rounding;
        `dual_objective` is D at a point that is feasible for the dual, so the optimum lies between them; `gap` is (P − D)/P, or
        (P − D) in units of 10⁻¹² of the squared distances where P is less than that.
    """
    started = time.perf_counter()
    check_parameters(mu, tol, max_iter)
    edges = one_way_edges(as_dense(X), allowed)
    point, n_iter = descend(edges, np.inf if mu is None else float(mu), tol, max_iter, *first_point(edges, w, lam))
    return finish(edges, point, tol, n_iter, started)


def default_mu(X, allowed: Edges) -> float:
    """Ten times the mean squared distance of the allowed edges, the mean taken over the nodes."""
    edges = one_way_edges(as_dense(X), allowed)
    return 10.0 * float(np.mean(mean_distances(edges)))


def project(X, n_features: int, random_state=None) -> np.ndarray:
    """X (n, d), dense or sparse, times a Gaussian matrix of variance 1/n_features: distances stay, on average."""
    from sklearn.random_projection import GaussianRandomProjection

    if not 1 <= n_features <= X.shape[1]:
        raise ValueError(f"n_features={n_features!r} must be between 1 and the {X.shape[1]} features that X has.")
    return GaussianRandomProjection(n_features, random_state=random_state).fit_transform(X)


def check_parameters(mu, tol, max_iter):
    if mu is not None and not 0.0 < mu < np.inf:
        raise ValueError(f"mu={mu!r} must be a positive, finite number; None is the hard model.")
    if not 0.0 < tol < np.inf:
        raise ValueError(f"tol={tol!r} must be a positive, finite number.")
    if max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} must be at least 1.")


def as_dense(X):
    n, d = X.shape
    if sp.issparse(X):
        if 8.0 * n * d > MAX_DENSE_BYTES:
            raise ValueError(
                f"X is sparse, and LX is as large as X made dense: {n} × {d} numbers, {8e-9 * n * d:.3g} GB. Project it to "
                "fewer features first, as with project(X, 20)."
            )
        X = X.toarray()
    X = np.ascontiguousarray(X, np.float64)
    if not np.isfinite(X).all():
        raise ValueError("X holds NaN or infinite values: remove those samples, or fill the values in.")
    return X


def one_way_edges(X, allowed):
    if len(X) != allowed.n:
        raise ValueError(f"X has {len(X)} samples, but the allowed edges are between {allowed.n}.")
    counts = np.diff(allowed.indptr)
    if not counts.all():
        raise ValueError(f"Sample {int(np.argmin(counts))} has no allowed edge: its degree cannot be 1. Allow one.")
    once = allowed.nodes < allowed.indices
    i, j = allowed.nodes[once], allowed.indices[once]
    z = 0.5 * kernels.edge_slopes(i, j, X, X)
    return OneWay(X, i, j, z, kernels.edge_rows(i, j, len(X)))


def first_point(edges, w, lam):
    """(w, λ) to begin with: given, or the same weight on all edges of a node and 0."""
    counts = np.diff(edges.rows[0])
    if w is None:
        w = 1.0 / np.maximum(counts[edges.i], counts[edges.j])
    else:
        w = np.asarray(sp.csr_matrix(w)[edges.i, edges.j], np.float64).ravel()
    return w, np.zeros(counts.size) if lam is None else np.asarray(lam, np.float64)


def mean_distances(edges):
    """The mean squared distance of each node's edges, with a floor where that is 0."""
    mean = edges.degrees(edges.z) / np.diff(edges.rows[0])
    return np.maximum(mean, 1e-6 * np.mean(mean)) if mean.any() else np.ones_like(mean)


def descend(edges, mu, tol, max_iter, w, lam):
    """Rounds until `tol` is reached: (the last point, rounds)."""
    unit = mean_distances(edges)
    r = np.minimum(mu, MAX_STIFFNESS * unit)
    gain = 0.5 / r - 0.5 / mu
    for n_iter in range(1, max_iter + 1):
        t = 1.0 + lam * gain
        w, d = _round(edges, w, r, t)
        lam = 2.0 * r * np.maximum(t - d, 0.0)
        if n_iter % CHECK_EVERY == 0 or n_iter == max_iter:
            point = _certify(edges, w, lam, mu, float(unit.sum()))
            if point.converged(tol):
                break
    return point, n_iter


def _round(edges, w, r, t):
    """(w, degrees) with less of ‖LX‖² + Σᵢ rᵢ max(tᵢ − dᵢ, 0)²: sweeps over the edges, and an extrapolation if it helps."""
    w, Y, d = w.copy(), edges.product(w), edges.degrees(w)

    def sweep(chosen, count):
        kernels.descend_edges(chosen, edges.i, edges.j, edges.z, edges.X, r, t, w, Y, d, count)

    def value(Y, d):
        return np.sum(Y * Y) + np.sum(r * np.maximum(t - d, 0.0) ** 2)

    sweep(np.arange(w.size), 1)
    positive = np.flatnonzero(w > 0.0)
    kept = [w[positive]]
    for _ in range(KEPT_SWEEPS):
        sweep(positive, 2)
        kept.append(w[positive])
    steps = np.diff(kept, axis=0)
    products = np.einsum("ae,be->ab", steps, steps)  # no BLAS: its sums depend on the number of threads
    shares = np.linalg.lstsq(products, np.ones(KEPT_SWEEPS), rcond=1e-12)[0]
    if shares.sum() > 0.0:
        guess = np.zeros_like(w)
        guess[positive] = np.maximum(np.einsum("a,ae->e", shares / shares.sum(), kept[1:]), 0.0)
        d_guess = edges.degrees(guess)
        if value(edges.product(guess), d_guess) < value(Y, d):
            return guess, d_guess
    return w, d


def _certify(edges, w, lam, mu, scale):
    """The `Point` at weights w ≥ 0, which are raised where the hard model needs it, or where μ is so large that it pays."""
    raised = _feasible(edges, w)
    Y, objective = _objective(edges, raised, mu)
    if mu < np.inf:
        Y_low, low = _objective(edges, w, mu)
        raised, Y, objective = (w, Y_low, low) if low <= objective else (raised, Y, objective)
    w, slopes = raised, edges.slopes(Y)
    dual = dual_objective(edges.X, Y, lam, mu, edges.shares(Y, lam))
    gap = (objective - dual) / max(objective, ZERO_OBJECTIVE * scale)
    return Point(w, lam, Y, objective, dual, gap, _residual(edges, w, lam, slopes, mu))


def _objective(edges, w, mu):
    """(Y, P) at weights w; for the hard model degrees are at least 1."""
    Y = edges.product(w)
    short = np.maximum(1.0 - edges.degrees(w), 0.0)
    return Y, float(np.sum(Y * Y)) + (mu * float(np.sum(short * short)) if mu < np.inf else 0.0)


def _residual(edges, w, lam, slopes, mu):
    """The KKT residual, as reference/daitch.py defines it."""
    ends = edges.ends(lam)
    wish = np.divide(slopes - ends, 4.0 * edges.z + ends, out=np.zeros_like(w), where=edges.z + ends > 0.0)
    spare = edges.degrees(w) - 1.0 + lam / (2.0 * mu)
    scaled = lam / max(float(np.mean(lam)), np.finfo(float).tiny)
    return float(max(np.abs(np.minimum(w, wish)).max(), np.abs(np.minimum(spare, scaled)).max()))


def _feasible(edges, w):
    """Weights with all degrees at least 1: those of a node that falls short are raised in proportion."""
    d = edges.degrees(w)
    if not d.all():  # the nearest neighbour of a node that has no weight at all
        nodes, edge = np.concatenate([edges.i, edges.j]), np.tile(np.arange(w.size), 2)
        order = np.argsort(-edges.z[edge], kind="stable")
        nearest = np.empty(d.size, np.int64)
        nearest[nodes[order]] = edge[order]  # the last one stays
        w = w.copy()
        w[nearest[d == 0.0]] = 1.0
        d = edges.degrees(w)
    return w / np.minimum(1.0, np.minimum(d[edges.i], d[edges.j]))


def dual_objective(X, Y, lam, mu, shares):
    """D at the best of some points made feasible: Y + εX, λ lowered to the `shares` that its slopes allow, both times a number.

    A slope rises by 2εz. The best multiple s of (Y, λ) has D = (Σλ)²/4Q, Q = ‖Y‖² + Σλ²/4μ. The point is proven: a slope that
    is too small by 10⁻¹³ lifts D above P where weights are 10⁷, so the shares have what rounding may add taken off, and here
    they lose what their own division and product may add. Y is not LX to the last digit, which D does not ask for.
    """
    X = X - X.mean(axis=0)  # adding the same to all rows of Y changes no slope
    best = 0.0
    for eps, share in zip(SHIFTS, shares.T, strict=True):
        if share.min() < 0.0:
            continue
        feasible = SHARE_OFF * share * lam
        Q = float(np.sum((Y + eps * X) ** 2)) + float(np.sum(feasible**2)) / (4.0 * mu)
        if Q > 0.0:
            best = max(best, float(np.sum(feasible)) ** 2 / (4.0 * Q))
    return best


def finish(edges, point, tol, n_iter, started):
    status = Status.CONVERGED if point.converged(tol) else Status.MAX_ITER
    if status is not Status.CONVERGED:
        warn(
            f"After {n_iter} rounds the relative duality gap is {point.gap:.2e}, more than tol={tol:.2e}, and the KKT residual "
            f"{point.residual:.2e}, more than {RESIDUAL_FACTOR:.0f} times that. Raise max_iter, or tol.",
            ConvergenceWarning,
        )
    weights = weights_matrix(edges, point.w)
    seconds = time.perf_counter() - started
    return Solution(weights, point.lam, point.objective, point.dual_objective, point.gap, n_iter, status, seconds)


def weights_matrix(edges, w):
    """The positive weights as a symmetric sparse matrix."""
    i, j, w, n = edges.i[w > 0.0], edges.j[w > 0.0], w[w > 0.0], len(edges.X)
    return sp.csr_matrix((np.concatenate([w, w]), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n))
