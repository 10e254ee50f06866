"""The judge of small graphs of every model: dense NumPy in float64 over all pairs, and nothing of smoothgraph.

The models with a θ are one: minimise Σₑ 2cₑwₑ + wₑ² + p(wₑ − w⁰ₑ)² + Σᵢ φ(dᵢ) over 0 ≤ wₑ ≤ u, with costs c = θ·sᵢsⱼ·z, a prior
w⁰ of strength p, and d the degrees. For any λ,

    P(w) − D(λ) = Σᵢ [φ(dᵢ) + λᵢdᵢ − min over d of (φ(d) + λᵢd)] + Σₑ [max over w of hₑ − hₑ(wₑ)],

with hₑ(w) = (λᵢ+λⱼ)w − 2cₑw − w² − p(w − w⁰)²: a sum of terms that are not negative, so that a λ *proves* how far w is from the
optimum: (1 + p)‖w − w*‖² ≤ P − D. A bridge has a given weight, which counts in the degrees; its pair has no term. Distances are
known to a rounding error, and each pair gets the cost within that error that is best for the graph.
"""

from dataclasses import dataclass, field

import numpy as np

from torture.kinds import FaultError
from zoo.judge import LEAST_SPREAD, local_scales

SLACK = 2.0  # the gap over all pairs may be so many times the tolerance, as in the zoo
LEAST_GAP = 1e-11  # gaps below this are rounding of the judge's own sums


@dataclass
class Samples:
    """Squared distances z (n, n) of nodes, their absolute rounding errors, and which pairs are allowed."""

    z: np.ndarray
    error: np.ndarray
    allowed: np.ndarray

    @property
    def n(self) -> int:
        return len(self.z)

    def of(self, nodes) -> "Samples":
        at = np.ix_(nodes, nodes)
        return Samples(self.z[at], self.error[at], self.allowed[at])


@dataclass
class Terms:
    """What a problem has beside its distances; `phi` is the name of the degree penalty."""

    phi: str = "log"
    upper: float = np.inf
    prior: np.ndarray | float = 0.0
    strength: float = 0.0
    bridges: np.ndarray = field(default_factory=lambda: np.empty((0, 2), int))


def samples_of(X: np.ndarray, metric: str, is_float32: bool) -> Samples:
    """The distances of the rows of X, Σ(x − y)²; or X itself, squared distances with NaN where no edge is allowed."""
    unit, (n, d) = np.finfo(np.float32 if is_float32 else np.float64).eps / 2.0, X.shape
    others = ~np.eye(n, dtype=bool)
    if metric == "squared":
        allowed = others & np.isfinite(X)
        z = np.where(allowed, X, 0.0)
        return Samples(z, 8.0 * unit * z, allowed)
    if metric == "cosine":
        X = unit_rows(X)
    z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    error = unit * (d + 64) * z
    if metric == "cosine":
        off = apart_error(d, unit)
        error = error + 2.0 * off * np.sqrt(z) + off**2
    return Samples(z, error, others)


def unit_rows(X: np.ndarray) -> np.ndarray:
    X = X / np.abs(X).max(axis=1, keepdims=True)
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


def apart_error(d: int, unit: float) -> float:
    """How much the distance of two rows of length 1 is off.

    A row is off by (d/2 + 4)·unit in length, which its norm, a sum of d squares, and the division leave, and by 2·unit in the
    rounding of its coordinates. So the distance of two rows is off by twice that.
    """
    return (d + 12) * unit


def scales_of(samples: Samples, k: int, locality: float, length: int) -> np.ndarray:
    """The local scale of each node, by its definition."""
    if locality == 0:
        return np.ones(samples.n)

    class _Rows:
        n = samples.n

        @staticmethod
        def z(begin, end):
            return samples.z[begin:end].copy()

    return local_scales(_Rows, k, locality, length)


def scale_of_new(z: np.ndarray, k: int, locality: float) -> float:
    """The local scale of a new sample at squared distances z of the fitted ones."""
    if locality == 0:
        return 1.0
    z, k = np.sort(z), min(k, len(z) - 1)
    logs = []
    for at in (k - 1, min(k, len(z) - 1)):
        edge = z[at] if z[at] > 0.0 else z[z > 0.0].min()
        spread = max(np.maximum(1.0 - z[:k] / edge, 0.0).sum(), LEAST_SPREAD * k)
        logs.append(-np.log(edge) - 0.5 * np.log(spread))
    return float(np.exp(0.5 * locality * np.mean(logs)))


def check_form(W: np.ndarray) -> None:
    """A finite, non-negative, symmetric graph with an empty diagonal."""
    if not np.isfinite(W).all():
        raise FaultError("weights are not finite")
    if (W < 0.0).any():
        raise FaultError(f"a weight is negative: {W.min():.3g}")
    if not np.array_equal(W, W.T):
        raise FaultError(f"the graph is not symmetric: weights differ by up to {np.abs(W - W.T).max():.1e}")
    if W.diagonal().any():
        raise FaultError("the diagonal is not empty")


def gap(W: np.ndarray, lam: np.ndarray, cost: np.ndarray, error: np.ndarray, terms: Terms, allowed: np.ndarray) -> float:
    """P(w) − D(λ) over all allowed pairs; inf where λ is no proof."""
    is_bridge = np.zeros(W.shape, bool)
    is_bridge[terms.bridges[:, 0], terms.bridges[:, 1]] = is_bridge[terms.bridges[:, 1], terms.bridges[:, 0]] = True
    if np.any(W[~allowed & ~is_bridge] != 0.0):
        raise FaultError("a pair that is not allowed has an edge")
    with np.errstate(all="ignore"):
        total = node_terms(terms.phi, W.sum(axis=1), lam).sum()
        total += np.triu(np.where(allowed & ~is_bridge, pair_terms(W, lam, cost, error, terms), 0.0), 1).sum()
    return float(total) if np.isfinite(total) else np.inf


def pair_terms(W, lam, cost, error, terms) -> np.ndarray:
    """max h − h(w) of every pair, with the cost within its error that makes it smallest."""
    half = 0.5 * (lam[:, None] + lam[None])
    return rectangle_terms(W, half, cost, error, terms.prior, terms.strength, terms.upper)


def rectangle_terms(W, half, cost, error, prior, strength, upper) -> np.ndarray:
    error = error + 64.0 * np.finfo(np.float64).eps * (cost + half)
    t = (half - cost + strength * prior) / (1.0 + strength)
    t = np.clip(W, t - error / (1.0 + strength), t + error / (1.0 + strength))
    best = np.clip(t, 0.0, upper)
    return (1.0 + strength) * (W - best) * (W + best - 2.0 * t)


def node_terms(phi: str, d: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """φ(d) + λd − min over d, of each node."""
    if phi == "log":
        x = d * lam
        near = np.abs(x - 1.0) < 1e-4
        h = np.where(near, x - 1.0, 0.0)
        psi = np.where(near, h * h * (0.5 - h / 3.0 + h * h / 4.0), x - 1.0 - np.log(x))
        return np.where((lam > 0.0) & (d > 0.0), psi, np.inf)
    if phi == "l2":  # φ = d²/2, and the degrees add up to n: −λ stands for μ = 1 + mean(λ) − λ
        return 0.5 * (d - (1.0 + lam.mean() - lam)) ** 2
    least = degree_at(phi, lam)
    return (_phi(phi, d) + lam * d) - (_phi(phi, least) + lam * least)


def degree_at(phi: str, lam):
    """The d at which −φ′(d) = λ."""
    if phi == "hubs":  # λ = 1/d − 2d
        root = np.sqrt(lam**2 + 8.0)
        return np.where(lam > 0.0, 2.0 / (root + np.maximum(lam, 0.0)), 0.25 * (root - lam))
    return np.maximum(1.0 - 0.5 * lam, 0.0) if phi == "square" else 1.0 / lam


def lam_at(phi: str, d, mean: float = 0.0):
    """−φ′(d): the λ of a new node of degree d; `mean` is that of the fitted λ."""
    if phi == "hubs":
        return 1.0 / d - 2.0 * d
    if phi == "l2":
        return 1.0 + mean - d
    return 1.0 / d


def _phi(phi, d):
    return -np.log(d) + d**2


def objective(W, cost, terms) -> float:
    """P(w), the pairs of bridges left out."""
    i, j = np.triu_indices(len(W), 1)
    w, prior = W[i, j], np.broadcast_to(terms.prior, W.shape)[i, j]
    d = W.sum(axis=1)
    penalty = {"log": lambda: -np.log(d).sum(), "l2": lambda: 0.5 * (d**2).sum()}.get(terms.phi, lambda: _phi("", d).sum())()
    return float(np.sum(2.0 * np.where(w > 0.0, cost[i, j], 0.0) * w + w**2 + terms.strength * (w - prior) ** 2) + penalty)


def daitch_gap(X: np.ndarray, W: np.ndarray, lam: np.ndarray, mu: float | None) -> tuple[float, float]:
    """((P − D)/P, P) of Daitch's models, D being the best that multiples of λ and of LX + εX prove.

    (Y, λ) is feasible for the dual if 2(xᵢ − xⱼ)·(yᵢ − yⱼ) ≥ λᵢ + λⱼ for every pair; then D = Σλ − Σλ²/4μ − ‖Y‖². Multiples
    (aY, a·m·λ), m being the largest factor that is feasible, give at best D = (mΣλ)² / 4(‖Y‖² + m²Σλ²/4μ).
    """
    X = X - X.mean(axis=0)
    Y, d = W.sum(axis=1)[:, None] * X - W @ X, W.sum(axis=1)
    P = float((Y**2).sum()) + (0.0 if mu is None else mu * float((np.maximum(1.0 - d, 0.0) ** 2).sum()))
    if mu is None and d.min() < 1.0 - 1e-5:
        raise FaultError(f"a degree is {d.min():.6g}, less than 1")
    lam, i, j = np.maximum(lam, 0.0), *np.triu_indices(len(X), 1)
    ends, best = lam[i] + lam[j], 0.0
    for shift in (0.0, *10.0 ** np.arange(-9.0, 1.1, 0.5)):
        Z = Y + shift * X
        slopes = 2.0 * ((X[i] - X[j]) * (Z[i] - Z[j])).sum(axis=1)
        counted = ends > 1e-14 * ends.max(initial=0.0)
        m = float(np.min(slopes[counted] / ends[counted], initial=np.inf))
        if np.isfinite(m) and m > 0.0 and slopes[~counted].min(initial=0.0) >= 0.0:
            quadratic = float((Z**2).sum()) + (0.0 if mu is None else m**2 * float((lam**2).sum()) / (4.0 * mu))
            best = max(best, (m * float(lam.sum())) ** 2 / (4.0 * quadratic)) if quadratic > 0.0 else best
    z_mean = float((X**2).sum()) / len(X)
    unit = max(P, 1e-9 * z_mean * len(X))
    return (P - best) / unit if unit > 0.0 else 0.0, P  # all samples are equal: any graph is the optimum


def daitch_residual(X: np.ndarray, W: np.ndarray, lam: np.ndarray, mu: float | None) -> float:
    """The largest change of a weight, or of a degree, that the conditions of Daitch's models ask for, over all pairs.

    With rᵢⱼ = 2(xᵢ − xⱼ)·(yᵢ − yⱼ) − λᵢ − λⱼ and Y = LX it is the largest of |min(wᵢⱼ, rᵢⱼ/(4zᵢⱼ + λᵢ + λⱼ))| and of
    |min(dᵢ − 1 + λᵢ/2μ, λᵢ/λ̄)|. Differences of samples, so that near ones have their digits where others are far.
    """
    i, j = np.triu_indices(len(X), 1)
    apart, flow = X[i] - X[j], W[i, j][:, None] * (X[i] - X[j])
    Y = np.zeros_like(X)
    np.add.at(Y, i, flow)
    np.subtract.at(Y, j, flow)
    ends, d = lam[i] + lam[j], W.sum(axis=1)
    excess = 2.0 * (apart * (Y[i] - Y[j])).sum(axis=1) - ends
    scale = 4.0 * (apart**2).sum(axis=1) + ends
    wish = np.divide(excess, scale, out=np.zeros_like(excess), where=scale > 0.0)
    spare = d - 1.0 + (0.0 if mu is None else lam / (2.0 * mu))
    scaled = lam / lam.mean() if lam.any() else lam
    return float(max(np.abs(np.minimum(W[i, j], wish)).max(), np.abs(np.minimum(spare, scaled)).max()))


def check_nearest(W: np.ndarray, samples: Samples, k: int, weighting: str, mutual: bool, sigma: float | None) -> None:
    """A nearest-neighbour graph by brute force. Where distances are tied within rounding, either neighbour is right."""
    z = np.where(samples.allowed, samples.z, np.inf)
    kth = np.sort(z, axis=1)[:, k - 1]
    surely = z + samples.error < (kth - samples.error.max(axis=1, where=samples.allowed, initial=0.0))[:, None]
    maybe = z - samples.error <= (kth * (1 + 1e-5))[:, None] + samples.error
    must, may = (surely & surely.T, maybe & maybe.T) if mutual else (surely | surely.T, maybe | maybe.T)
    if np.any(must & (W == 0.0) & samples.allowed):
        raise FaultError("a pair of nearest neighbours has no edge")
    if np.any(~may & (W > 0.0)):
        raise FaultError("a pair that is not nearest has an edge")
    widths = np.sqrt(kth)
    if weighting == "binary":
        expected = np.ones_like(W)
    elif weighting == "gaussian":
        width = np.mean(kth) if sigma is None else sigma**2
        expected = np.exp(-samples.z / (2.0 * width)) if width > 0.0 else np.where(samples.z == 0.0, 1.0, 0.0)
    else:
        widths = np.where(widths > 0.0, widths, widths[widths > 0.0].min(initial=np.inf))
        expected = np.exp(-samples.z / (widths[:, None] * widths[None]))
    has = W > 0.0
    if not np.allclose(W[has], np.maximum(expected[has], np.finfo(np.float64).tiny), rtol=1e-3):
        raise FaultError("weights are not those of the definition")
