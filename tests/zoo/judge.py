"""The judge of a graph of the log model: NumPy and SciPy, and nothing of smoothgraph.

In: a fitted learner, the table it was fitted on, and what it warned of. Out: a `Verdict`.

    minimise P(w) = Σₑ 2θₑzₑwₑ + wₑ² − Σᵢ log dᵢ  over w ≥ 0 of all pairs e = (i, j),   θₑ = θ·sᵢsⱼ,

has the dual D(λ) = n + Σᵢ log λᵢ − Σₑ max(0, tₑ)², tₑ = (λᵢ+λⱼ)/2 − θₑzₑ. Any λ > 0 proves how far w is from the optimum:

    P(w) − D(λ) = Σᵢ ψ(dᵢλᵢ) + Σₑ [(wₑ − tₑ)² where tₑ ≥ 0, wₑ² + 2|tₑ|wₑ elsewhere],    ψ(x) = x − 1 − log x,

a sum of terms that are not negative, each 0 if and only if the optimality conditions of its node or pair hold. A bridge has a
given weight: it counts in the degrees, and its pair has no term. The distances are known to a relative rounding error, so each
pair is given the t that is best for the learner within that error; next to an outlier no more can be said in float64.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

BLOCK = 500  # rows whose distances to all others are held at a time
ALWAYS, MOST_WORK = (
    3_000,
    1e10,
)  # samples up to which all pairs are looked at; beyond, as long as n²·d is at most this (half a minute)
GAP_FACTOR = 2.0  # the gap over all pairs may be so many times the tolerance
BOUND_SLACK = 1e-3  # relative: a solve that ends at a gap of 10⁻⁶ may pass the bound of a weight by the square root of that
UNTIED_MISS = 0.05  # relative miss of the degree that is put down to ties that nodes alone do not have
SAME_THETA = 1e-6  # in log θ: edges that go within so little go at once
LEAST_SPREAD = 0.01  # of the definition of θᵢ: nearly equal distances count as if they differed by so much


@dataclass
class Verdict:
    """What is `wrong`: a false claim, or no graph of the model. What was `missed`: asked for, not reached, and said so.

    `gap` is (P − D)/n over all pairs; None where there were too many to look at.
    """

    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    gap: float | None = None
    degree: float = np.nan
    n_components: int = 0
    n_distinct: int = 0

    @property
    def is_right(self) -> bool:
        return not self.wrong and not self.missed

    def __str__(self) -> str:
        parts = [*(f"wrong: {text}" for text in self.wrong), *(f"missed: {text}" for text in self.missed)]
        return "; ".join(parts) or ("right" if self.gap is not None else "right, pairs not looked at")


def judge(learner, X, warned=()) -> Verdict:
    """The verdict on a fitted learner of the log model; `warned` are the texts of its warnings."""
    verdict = Verdict()
    graph = sp.csr_matrix(learner.graph_).astype(np.float64)
    if not np.isfinite(graph.data).all():
        verdict.wrong.append(f"{np.count_nonzero(~np.isfinite(graph.data))} weights are not finite")
        return verdict
    _judge_form(graph, verdict)
    first = _judge_copies(learner, X, graph, verdict)
    inner = (graph[first][:, first] / learner.scale_).tocsr()
    verdict.n_distinct = first.size
    verdict.degree = inner.nnz / first.size
    verdict.n_components = connected_components(graph, directed=False)[0]
    _judge_claims(learner, verdict)
    says = verdict.wrong if str(learner.solution_.status) == "converged" else verdict.missed
    alone = int(np.count_nonzero(np.diff(inner.indptr) == 0))
    if alone:
        says.append(f"{alone} nodes have no edge")
    largest = inner.data.max(initial=0.0)
    if largest > 1.0 + BOUND_SLACK:
        says.append(f"a weight is {largest:.3g} times its bound")
    _judge_degree(learner, verdict, warned)
    _judge_connected(learner, verdict, warned)
    _judge_gap(learner, X, first, inner, verdict)
    return verdict


def _judge_form(graph, verdict):
    """Positive, an empty diagonal, symmetric to the last bit."""
    if (graph.data <= 0.0).any():
        verdict.wrong.append(f"{np.count_nonzero(graph.data <= 0.0)} stored weights are not positive")
    if graph.diagonal().any():
        verdict.wrong.append("the diagonal is not empty")
    asymmetry = abs(graph - graph.T)
    if asymmetry.nnz:
        verdict.wrong.append(f"the graph is not symmetric: weights differ by up to {asymmetry.max():.1e}")


def _judge_copies(learner, X, graph, verdict):
    """The rows that are no copies of an earlier one. A copy has one edge, of the largest weight there is, to that row."""
    n = graph.shape[0]
    copy_of = getattr(learner, "copy_of_", None)
    if copy_of is None:
        return np.arange(n)
    copy_of = np.asarray(copy_of)
    copies = np.flatnonzero(copy_of != np.arange(n))
    true = first_rows(X) if learner.metric == "euclidean" else copy_of
    if not np.array_equal(copy_of, true):
        verdict.wrong.append(f"{np.count_nonzero(copy_of != true)} rows are not the copies that copy_of_ says")
    if learner.metric == "precomputed_squared" and np.any(np.asarray(X)[copies, copy_of[copies]] != 0.0):
        verdict.wrong.append("rows that are not at distance 0 are taken for copies")
    rows = graph[copies]
    one_edge = np.array_equal(np.diff(rows.indptr), np.ones(copies.size)) and np.array_equal(rows.indices, copy_of[copies])
    if not one_edge:
        verdict.wrong.append("copies have other edges than the one to the first of their group")
    elif not np.allclose(rows.data, learner.scale_, rtol=1e-9, atol=0.0):
        verdict.wrong.append(f"edges of copies have weights from {rows.data.min():.3g} to {rows.data.max():.3g}")
    return np.flatnonzero(copy_of == np.arange(n))


def first_rows(X) -> np.ndarray:
    """For each row the first that is equal to it."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    _, first, group = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)  # −0 is 0
    return first[group.ravel()]


def _judge_claims(learner, verdict):
    """What the learner says of its graph is true of the graph."""
    solution, tol = learner.solution_, learner.tol
    if abs(learner.n_neighbors_ - verdict.degree) > 1e-9 * verdict.degree:
        verdict.wrong.append(f"n_neighbors_ is {learner.n_neighbors_:.6g}, the graph has {verdict.degree:.6g}")
    if learner.n_components_ != verdict.n_components:
        verdict.wrong.append(f"n_components_ is {learner.n_components_}, the graph has {verdict.n_components}")
    if str(solution.status) == "converged" and not solution.gap <= tol:
        verdict.wrong.append(f"it says converged with a gap of {solution.gap:.1e}")
    if str(solution.status) != "converged":
        verdict.missed.append(f"it says {solution.status} with a gap of {solution.gap:.1e}")
    if learner.n_incomplete_:
        verdict.missed.append(f"{learner.n_incomplete_} nodes are not certified")
    if learner.alpha is not None and not np.isclose(learner.theta_, 1.0 / np.sqrt(learner.alpha * learner.beta), rtol=1e-9):
        verdict.wrong.append(f"theta_ is {learner.theta_:.6g}, not 1/√(αβ)")


def _judge_degree(learner, verdict, warned):
    """The degree to 1 %, or to an edge in all; or a sentence that says which degrees there are."""
    if learner.theta is not None or learner.alpha is not None:
        return
    miss = abs(verdict.degree - learner.n_neighbors)
    said = any(re.search(r"neighbours|degree", text) and re.search(r"\d", text) for text in warned)
    if miss > max(0.01 * learner.n_neighbors, 2.0 / verdict.n_distinct) * (1 + 1e-9) and not said:
        verdict.wrong.append(f"the degree is {verdict.degree:.4g}, {learner.n_neighbors} was asked for, and no word of it")


def _judge_unattainable(learner, rows, local_scale, verdict):
    """A degree can be out of reach only where distances are tied, or for one neighbour per node."""
    k = learner.n_neighbors
    if learner.theta is not None or learner.alpha is not None or k < 2 or k >= rows.n - 1:
        return
    miss = abs(verdict.degree - k)
    if miss > 0.01 * k:
        low, high = tied_degrees(rows, local_scale, k)
        if miss > UNTIED_MISS * k + 2.0 * (high - low):
            jump = f"nodes alone jump from {low:.4g} to {high:.4g}"
            ended = str(learner.solution_.status) == "converged"  # a solve that was cut short, and says so, claims nothing
            (verdict.wrong if ended else verdict.missed).append(
                f"the degree is {verdict.degree:.4g}, and no ties keep it from {k}: {jump}"
            )


def _judge_connected(learner, verdict, warned):
    asked = getattr(learner, "connect_", learner.connect)
    if asked and verdict.n_components > 1:
        said = any("components" in text for text in warned)
        (verdict.missed if said else verdict.wrong).append(f"connect left {verdict.n_components} components")


def _judge_gap(learner, X, first, inner, verdict):
    """The gap over all pairs is what the learner says, or less."""
    rows = Rows.of(X, first, learner.metric)
    if rows.n > ALWAYS and float(rows.n) ** 2 * rows.width > MOST_WORK:
        return
    locality = getattr(learner, "locality_", learner.locality)
    theta = rows.theta(learner.theta_, locality)
    length = max(int(np.ceil(learner.oversampling * learner.n_neighbors)), learner.n_neighbors + 1)
    local_scale = local_scales(rows, learner.n_neighbors, locality, length)
    _judge_unattainable(learner, rows, local_scale, verdict)
    bridges = np.searchsorted(first, np.asarray(learner.bridges_, int).reshape(-1, 2))
    dual = np.asarray(learner.solution_.dual, np.float64)
    dual = dual[first] if dual.size == len(learner.graph_.indptr) - 1 else dual
    verdict.gap = relative_gap(rows, theta, local_scale, inner, dual, bridges)
    if not verdict.gap <= GAP_FACTOR * learner.tol:  # any λ is a proof, and this one may be a better one
        with np.errstate(divide="ignore"):
            dual = 1.0 / np.asarray(inner.sum(axis=1)).ravel()
        verdict.gap = min(verdict.gap, relative_gap(rows, theta, local_scale, inner, dual, bridges))
    if not verdict.gap <= GAP_FACTOR * learner.tol:
        claimed = str(learner.solution_.status) == "converged" and not learner.n_incomplete_ and learner.recall_ == 1
        text = f"the gap over all pairs is {verdict.gap:.1e}, the learner says {learner.solution_.gap:.1e}"
        (verdict.wrong if claimed else verdict.missed).append(text)


class Rows:
    """Squared distances of rows to all rows, Σ(x − y)² in float64, of X·2^−shift; the squares of X may not be representable."""

    def __init__(self, X, is_matrix, shift, rounding):
        self.X, self.is_matrix, self.shift = X, is_matrix, shift
        self.n, self.width = X.shape[0], 1 if is_matrix else X.shape[1]
        self.rounding = rounding * (self.width + 64)  # relative error of a distance and of two local scales

    @classmethod
    def of(cls, X, first, metric):
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        small = X.dtype.kind in "biu" or X.dtype.itemsize < 8
        unit = 0.5 * float(np.finfo(np.float32 if small else np.float64).eps)
        if metric == "precomputed_squared":
            return cls(X[np.ix_(first, first)].astype(np.float64), True, 0, unit)
        X = X[first].astype(np.float64)
        if metric == "cosine":
            X /= np.sqrt((X**2).sum(axis=1))[:, None]
        exponent = int(np.frexp(np.abs(X).max())[1])
        shift = 8 * (exponent // 8) if abs(exponent) > 200 else 0  # a multiple of 8: 2·shift·(1 − locality) is an integer
        return cls(np.ldexp(X, -shift), False, shift, unit)

    def theta(self, theta, locality):
        """The θ of X as the θ of X·2^−shift: distances are 4^shift times as large, local scales 4^(−shift·locality/2) times."""
        power = 2.0 * self.shift * (1.0 - locality)
        return float(np.ldexp(theta, int(power))) if power == int(power) else float(theta * 2.0**power)

    def z(self, begin, end, columns_from=0):
        if self.is_matrix:
            return self.X[begin:end, columns_from:].copy()
        return cdist(self.X[begin:end], self.X[columns_from:], "sqeuclidean")


def local_scales(rows: Rows, k: int, locality: float, length: int) -> np.ndarray:
    """sᵢ = θᵢ^(locality/2), θᵢ being the θ at which node i alone has k neighbours: the geometric mean of its two bounds.

    With e the k-th distance for the one bound and the (k + 1)-th for the other, a bound is 1/(e·√Σⱼ(1 − zⱼ/e)) over the first
    k distances. Where these are nearly equal the sum is taken as 1 % of k; an e of 0 is replaced by the first that is not, in
    lists of `length`, and a node without such a one has the geometric mean of the others.
    """
    if locality == 0:
        return np.ones(rows.n)
    k, length = min(k, rows.n - 1), min(length, rows.n - 1)
    logs = np.empty(rows.n)
    for begin in range(0, rows.n, BLOCK):
        end = min(begin + BLOCK, rows.n)
        z = rows.z(begin, end)
        z[np.arange(end - begin), np.arange(begin, end)] = np.inf
        z = np.sort(np.partition(z, length - 1, axis=1)[:, :length], axis=1)
        logs[begin:end] = 0.5 * (_log_bound(z, k, k - 1) + _log_bound(z, k, min(k, length - 1)))
    known = np.isfinite(logs)
    return np.exp(0.5 * locality * np.where(known, logs, logs[known].mean()))


def _log_bound(z, k, at):
    edge = np.where(z[:, at] > 0.0, z[:, at], np.where(z > 0.0, z, np.inf).min(axis=1))
    with np.errstate(invalid="ignore"):
        spread = np.maximum(1.0 - z[:, :k] / edge[:, None], 0.0).sum(axis=1)
        logs = -np.log(edge) - 0.5 * np.log(np.maximum(spread, LEAST_SPREAD * k))
    return np.where(np.isfinite(edge), logs, np.nan)


def tied_degrees(rows: Rows, local_scale, k: int) -> tuple[float, float]:
    """The mean degrees next to k, below and above, of nodes that need not agree with their neighbours, as θ moves.

    Node i alone lets go of its j-th neighbour at θ = 1/(zⱼ·√Σ(1 − zₗ/zⱼ)), the sum being over the first j. So its neighbours at
    θ are those that it lets go of later, and the mean degree jumps where many go at once. Neighbours that are all equally near,
    or copies, it never lets go of: where these are more than k on average, there is no degree below, and any may be the least.
    """
    length = min(10 * k, rows.n - 1)
    logs = []
    for begin in range(0, rows.n, BLOCK):
        end = min(begin + BLOCK, rows.n)
        z = rows.z(begin, end) * local_scale[begin:end, None] * local_scale
        z[np.arange(end - begin), np.arange(begin, end)] = np.inf
        z = np.sort(np.partition(z, length - 1, axis=1)[:, :length], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.arange(1, length + 1) - np.cumsum(z, axis=1) / z
            never = (z == 0.0) | (spread < 1e-12 * length)
            logs.append(np.where(never, np.inf, -np.log(z) - 0.5 * np.log(spread)).ravel())
    logs = np.concatenate(logs)
    at = -np.partition(-logs, k * rows.n - 1)[k * rows.n - 1]
    if np.isinf(at):
        return 0.0, rows.n - 1.0
    return float(np.sum(logs > at + SAME_THETA) / rows.n), float(np.sum(logs >= at - SAME_THETA) / rows.n)


def relative_gap(rows: Rows, theta: float, local_scale, weights, lam, bridges=()) -> float:
    """(P(w) − D(λ))/n over all pairs of rows; inf for a λ that is not positive and finite."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    if not (np.isfinite(lam).all() and (lam > 0.0).all() and (degree > 0.0).all()):
        return np.inf
    total = float(np.sum(_psi(degree * lam)))
    bridges = np.asarray(bridges, int).reshape(-1, 2)
    given = sp.csr_matrix((np.ones(len(bridges)), np.sort(bridges, axis=1).T), shape=weights.shape)
    for begin in range(0, rows.n, BLOCK):
        end = min(begin + BLOCK, rows.n)
        cost = theta * local_scale[begin:end, None] * local_scale[begin:] * rows.z(begin, end, begin)
        half = 0.5 * (lam[begin:end, None] + lam[begin:])
        w = weights[begin:end, begin:].toarray()
        t, error = half - cost, rows.rounding * (cost + half)
        t = np.clip(w, t - error, t + error)
        terms = np.where(t >= 0.0, (w - t) ** 2, w * w + 2.0 * np.abs(t) * w)
        is_pair = np.arange(begin, rows.n) > np.arange(begin, end)[:, None]
        is_pair &= given[begin:end, begin:].toarray() == 0.0
        total += float(terms[is_pair].sum())
    return total / rows.n if np.isfinite(total) else np.inf


def _psi(x):
    """x − 1 − log x, without a loss of digits near 1."""
    near = np.abs(x - 1.0) < 1e-4
    h = np.where(near, x - 1.0, 0.0)
    return np.where(near, h * h * (0.5 - h / 3.0 + h * h / 4.0), x - 1.0 - np.log(x))
