"""θ, the one number that sets how sparse the graph is.

In: squared distances, sorted, self left out. Out: the solution of the one-node problem (Theorem 1), the interval of θ that
gives a node k neighbours (Theorem 3), and a θ for a wanted mean degree. Every number returned is finite and positive.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from smoothgraph.sparse import check_real, check_unmasked

BLOCK_ROWS = 1 << 16  # nodes whose distances are held in float64 at a time
LEAST_SPREAD = (
    0.01  # mean of 1 − zⱼ/z over the first distances below which they count as tied (it is about 2/d in d dimensions)
)
LARGEST_PRODUCT = 1e150  # of θ and the sum of the distances of one node: the solution has its square
ALL_ZERO = (
    "All distances in the neighbour lists are 0, and pairs at distance 0 are connected whatever θ is. Merge copies "
    "(duplicates='merge'); and if this is a matrix of distances, see that it holds distances and no mask."
)


class OneNode(NamedTuple):
    """The optimum of one node alone: its weights in the order of the distances, λ* and the number of neighbours."""

    weights: np.ndarray
    lam: float
    k: int


class ThetaBounds(NamedTuple):
    """θ in [lower, upper) gives about k neighbours: means over the nodes, and the interval of each node."""

    lower: float
    upper: float
    node_lower: np.ndarray
    node_upper: np.ndarray

    def times(self, factor: float) -> "ThetaBounds":
        """The same bounds for distances that are so many times smaller."""
        lower, upper, node_lower, node_upper = self
        return ThetaBounds(lower * factor, upper * factor, node_lower * factor, node_upper * factor)


def solve_one_node(z, theta: float) -> OneNode:
    """Minimise θ·wᵀz − log(wᵀ1) + ½‖w‖² over w ≥ 0: the log model for one node that need not agree with its neighbours.

    Algorithm 1 of the paper, with its test the right way round: stop at the first λᵢ ≤ θzᵢ₊₁; if there is none, every
    neighbour is used.

    Parameters
    ----------
    z : array of squared distances to the other nodes, in any order.
    theta : positive number; the larger, the sparser.

    Examples
    --------
    >>> from smoothgraph import solve_one_node
    >>> solution = solve_one_node([1.0, 1.5, 9.0], theta=1.0)
    >>> solution.k, solution.weights.round(3).tolist()
    (2, [0.569, 0.069, 0.0])
    """
    z = _real(z).astype(np.float64)
    if z.ndim != 1 or z.size == 0 or not np.isfinite(z).all() or z.min() < 0:
        raise ValueError(f"z has shape {z.shape}: a non-empty vector of finite, non-negative squared distances is needed.")
    if not (isinstance(theta, int | float | np.number) and 0 < theta < np.inf):
        raise ValueError(f"theta={theta!r} must be a positive, finite number.")
    if float(theta) * float(z.max()) * z.size > LARGEST_PRODUCT:
        raise ValueError(
            f"theta={theta!r} is too large for squared distances up to {z.max():.3g}: float64 does not hold the sums."
        )
    # λ is counted from an offset, θz₁ of the nearest, so that small weights are no differences of large numbers: s = λ − offset
    # solves (i·s − b)(offset + s) = 1, b being the sum of the first i shifted distances.
    offset = theta * z.min()
    shifted = theta * (z - z.min())
    ordered = np.sort(shifted)
    i, b = np.arange(1, z.size + 1), np.cumsum(ordered)
    p, root = i * offset - b, np.sqrt((i * offset + b) ** 2 + 4.0 * i)
    s = np.where(p > 0.0, 2.0 * (b * offset + 1.0) / (np.abs(p) + root), (root - p) / (2.0 * i))
    ended = np.flatnonzero(s[:-1] <= ordered[1:])
    k = int(ended[0]) + 1 if ended.size else z.size
    return OneNode(np.maximum(0.0, s[k - 1] - shifted), float(offset + s[k - 1]), k)


def log_theta_at(first: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """The θ at which λ* of the first k distances (rows of `first`) meets θ·edge: 1/√(k·e² − b·e) = 1/(e·√Σ(1 − zᵢ/e)).

    It is inf, or NaN, where the distances are tied.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return 1.0 / (edge * np.sqrt(np.sum(1.0 - first / edge[:, None], axis=1)))


def theta_bounds(z, k: int, theta_at: Callable[[np.ndarray, np.ndarray], np.ndarray] = log_theta_at) -> ThetaBounds:
    """The interval of θ in which a node has k neighbours (Theorem 3), for every node and on average (equation 14).

    A node has no finite bound where its first k (or k + 1) distances are equal, where k = 1 (no upper bound: any larger θ
    leaves one neighbour), and where its list has no (k + 1)-th entry. Means are over the nodes that have one, and stand in
    where a node has none. If no node has: the upper bound is twice the lower, the lower half the upper; and if distances
    are tied everywhere, both come from the scale θ = 1 / (√k · mean distance).

    Parameters
    ----------
    z : array (n, K) of squared distances to each node's nearest, ascending, self left out (inf where there is no entry).
    k : the wanted number of neighbours.
    theta_at : the θ at which the (k + 1)-th neighbour comes in, of another model than the log model.
    """
    z = _real(z)
    _check_lists(z, k)
    n = z.shape[0]
    node_lower, node_upper = np.full(n, np.inf), np.full(n, np.inf)
    for begin in range(0, n, BLOCK_ROWS):
        rows = slice(begin, begin + BLOCK_ROWS)
        first = z[rows, : k + 1].astype(np.float64)
        node_upper[rows] = _or_inf(theta_at(first[:, :k], first[:, k - 1]))
        if first.shape[1] > k:
            node_lower[rows] = _or_inf(theta_at(first[:, :k], first[:, k]))
    # A bound of 0 comes from the inf that stands for a missing entry.
    has_lower, has_upper = (np.isfinite(bound) & (bound > 0) for bound in (node_lower, node_upper))
    if has_lower.any() or has_upper.any():
        lower = node_lower[has_lower].mean() if has_lower.any() else node_upper[has_upper].mean() / 2.0
        upper = node_upper[has_upper].mean() if has_upper.any() else 2.0 * lower
    else:
        positive = z[np.isfinite(z) & (z > 0)]
        if positive.size == 0:
            raise ValueError(ALL_ZERO)
        with np.errstate(over="ignore"):
            scale = 1.0 / (np.sqrt(k) * positive.mean(dtype=np.float64))
        lower, upper = scale / np.sqrt(2.0), scale * np.sqrt(2.0)
    if not np.isfinite(upper):
        raise ValueError(
            f"Squared distances up to {z[np.isfinite(z)].max():.3g} are too small for θ to be a number: rescale them."
        )
    node_lower[~has_lower], node_upper[~has_upper] = lower, upper
    return ThetaBounds(float(lower), float(upper), node_lower, node_upper)


def theta_for_degree(z, k: int) -> float:
    """A θ for which the graph has about k neighbours per node: the geometric mean of the two bounds, as in the paper."""
    bounds = theta_bounds(z, k)
    return float(np.sqrt(bounds.lower) * np.sqrt(bounds.upper))


def node_thetas(z, k: int) -> np.ndarray:
    """θᵢ of every node: that at which its one-node problem has k neighbours, the geometric mean of its two bounds.

    z is an array (n, K) of squared distances, ascending, self left out. Where all of the first k are nearly the same
    distance away, θᵢ is what it would be if they differed by 1 % or so; a node with k or more duplicates takes the first
    distance that is not 0 in place of the k-th and (k + 1)-th, and one that has no such distance the geometric mean of
    the others' θᵢ. So every θᵢ is positive and finite, and changes with the scale of the node's distances alone.
    """
    z = _real(z)
    _check_lists(z, k)
    logs = np.empty(z.shape[0])
    for begin in range(0, z.shape[0], BLOCK_ROWS):
        rows = z[begin : begin + BLOCK_ROWS].astype(np.float64)
        logs[begin : begin + BLOCK_ROWS] = 0.5 * (_log_theta(rows, k, k - 1) + _log_theta(rows, k, min(k, z.shape[1] - 1)))
    known = np.isfinite(logs)
    if not known.any():
        raise ValueError(ALL_ZERO)
    return np.exp(np.where(known, logs, logs[known].mean()))


def _log_theta(z, k, at):
    """log 1/(e·√Σⱼ(1 − zⱼ/e)) over the first k, with e the distance at place `at`, or the first positive one after it."""
    positive = (z > 0) & np.isfinite(z)
    place = np.maximum(at, np.argmax(positive, axis=1))
    place = np.minimum(place, positive.shape[1] - 1 - np.argmax(positive[:, ::-1], axis=1))  # the last, of a short row
    edge = np.take_along_axis(z, place[:, None], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.maximum(1.0 - z[:, :k] / edge, 0.0).sum(axis=1)
        logs = -np.log(edge[:, 0]) - 0.5 * np.log(np.maximum(spread, LEAST_SPREAD * k))
    return np.where(positive.any(axis=1), logs, np.nan)


def _or_inf(theta):
    return np.where(np.isnan(theta), np.inf, theta)


def _real(z):
    """z as an array of real numbers."""
    check_unmasked(z, "z", "fill them in, with inf where there is no entry")
    z = np.asarray(z)
    check_real(z.dtype, "z")
    return z if z.dtype in (np.float32, np.float64) else z.astype(np.float64)


def _check_lists(z, k):
    if z.ndim != 2 or z.size == 0:
        raise ValueError(f"The distances have shape {z.shape}: an array (n, K) is needed.")
    if not (isinstance(k, int | np.integer) and 1 <= k <= z.shape[1]):
        raise ValueError(f"k={k!r} must be an integer from 1 to the length of the neighbour lists, which is {z.shape[1]}.")
    if not (z[:, 0].min() >= 0 and (z[:, 1:] >= z[:, :-1]).all()):  # comparisons with NaN are false
        raise ValueError("The squared distances in a row must be at least 0 and ascend: sort them, z.sort(axis=1).")
