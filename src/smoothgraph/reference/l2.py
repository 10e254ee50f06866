"""The ℓ2 model as it is defined: objective and dual, on a list of edges. A judge for solvers, never used to solve.

P(w) = Σₑ 2zₑwₑ + 2αwₑ² + α Σᵢ dᵢ²,                                 w ≥ 0,  Σᵢ dᵢ = n
D(λ) = α·(n + 2 Σᵢ λᵢ − Σᵢ (λᵢ − λ̄)² − 2 Σₑ max(0, (λᵢ+λⱼ)/2 − zₑ/(2α))²),      λ any real numbers, λ̄ their mean
"""

import numpy as np


def degrees(w, i, j, n):
    """Sum of weights at each node."""
    return np.bincount(i, w, n) + np.bincount(j, w, n)


def objective(w, i, j, z, n, alpha):
    """P(w) for weights that sum to n over both ends."""
    return np.sum(2.0 * z * w + 2.0 * alpha * w**2) + alpha * np.sum(degrees(w, i, j, n) ** 2)


def dual_objective(lam, i, j, z, alpha):
    """D(λ): a lower bound of P for any λ."""
    w = np.maximum(0.0, 0.5 * (lam[i] + lam[j]) - z / (2.0 * alpha))
    return alpha * (lam.size + 2.0 * lam.sum() - np.sum((lam - lam.mean()) ** 2) - 2.0 * np.sum(w**2))
