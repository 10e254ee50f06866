"""The models of Daitch, Kelner and Spielman (2009), written as they are defined, in float64 NumPy: the judge of their solver.

In: samples X, edges as arrays i < j, weights w, multipliers λ; `mu` is None for the hard model. Out: values and residuals.

    hard   P(w) = ‖LX‖²_F               subject to w ≥ 0, d ≥ 1
    soft   P(w) = ‖LX‖²_F + μ Σᵢ max(1 − dᵢ, 0)²      subject to w ≥ 0
    both   D(Y, λ) = Σᵢ (λᵢ − λᵢ²/4μ) − ‖Y‖²_F        subject to λ ≥ 0, 2(xᵢ − xⱼ)·(yᵢ − yⱼ) ≥ λᵢ + λⱼ for every edge,

with 1/μ = 0 in the hard model. At the optimum Y = LX, and λᵢ = 2μ max(1 − dᵢ, 0) in the soft one.
"""

import numpy as np


def degrees(w, i, j, n: int) -> np.ndarray:
    return np.bincount(i, w, n) + np.bincount(j, w, n)


def laplacian_product(w, i, j, X) -> np.ndarray:
    """Y = LX."""
    X = np.asarray(X, np.float64)
    Y = np.zeros_like(X)
    flow = w[:, None] * (X[i] - X[j])
    np.add.at(Y, i, flow)
    np.subtract.at(Y, j, flow)
    return Y


def slopes(Y, i, j, X) -> np.ndarray:
    """2(xᵢ − xⱼ)·(yᵢ − yⱼ) of every edge."""
    X = np.asarray(X, np.float64)
    return 2.0 * np.sum((X[i] - X[j]) * (Y[i] - Y[j]), axis=1)


def objective(w, i, j, X, mu: float | None = None) -> float:
    """P(w). Whether the degrees are at least 1 is for the caller to see."""
    value = np.sum(laplacian_product(w, i, j, X) ** 2)
    return float(value if mu is None else value + mu * np.sum(np.maximum(1.0 - degrees(w, i, j, len(X)), 0.0) ** 2))


def dual_objective(Y, lam, i, j, X, mu: float | None = None) -> float:
    """D(Y, λ), or −inf where a constraint is violated: never above P at any feasible w."""
    if lam.min() < 0.0 or np.any(slopes(Y, i, j, X) < lam[i] + lam[j]):
        return -np.inf
    return float(np.sum(lam) - np.sum(Y**2) - (0.0 if mu is None else np.sum(lam**2) / (4.0 * mu)))


def kkt_residual(w, lam, i, j, X, mu: float | None = None) -> float:
    """The largest violation of the optimality conditions, as a change of a weight or of a degree; 0 at the optimum.

    With rₑ = 2(xᵢ − xⱼ)·(yᵢ − yⱼ) − λᵢ − λⱼ, Y = LX, it is the largest of |min(wₑ, rₑ/hₑ)|, hₑ = 4zₑ + λᵢ + λⱼ (4z is the
    second derivative of ‖LX‖² in one weight); of |min(dᵢ − 1 + λᵢ/2μ, λᵢ/λ̄)|, λ̄ the mean; and of −w and −λ/λ̄. It stays the
    same when X is multiplied by a number (and μ by its square).
    """
    d, mean = degrees(w, i, j, len(X)), max(float(np.mean(lam)), np.finfo(float).tiny)
    r = slopes(laplacian_product(w, i, j, X), i, j, X) - lam[i] - lam[j]
    h = 2.0 * slopes(np.asarray(X, np.float64), i, j, X) + lam[i] + lam[j]
    edge_residual = np.abs(np.minimum(w, np.divide(r, h, out=np.zeros_like(r), where=h > 0.0)))
    slack = d - 1.0 + (0.0 if mu is None else lam / (2.0 * mu))
    node_residual = np.abs(np.minimum(slack, lam / mean))
    return float(max(edge_residual.max(), node_residual.max(), -w.min(), -lam.min() / mean))
