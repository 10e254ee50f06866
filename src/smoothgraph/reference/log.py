"""The log model, written as it is defined, in float64 NumPy: the judge of every solver.

In: the allowed edges as arrays i < j with squared distances z, weights w or a dual vector λ. Out: objective values.

    P(w) = Σₑ 2θzₑwₑ + wₑ² + c(wₑ − w⁰ₑ)²  −  Σᵢ log dᵢ
    D(λ) = n + Σᵢ log λᵢ − Σₑ max over 0 ≤ w ≤ u of ((λᵢ+λⱼ)w − 2θzₑw − w² − c(w − w⁰ₑ)²)
"""

import numpy as np


def objective(w, i, j, z, theta: float, n: int, prior=0.0, prior_strength: float = 0.0) -> float:
    """P(w); inf if a node has no weight."""
    degree = np.bincount(i, w, n) + np.bincount(j, w, n)
    with np.errstate(divide="ignore"):
        barrier = -np.log(degree).sum()
    return float(np.sum(2.0 * theta * z * w + w**2 + prior_strength * (w - prior) ** 2) + barrier)


def best_weights(lam, i, j, z, theta: float, max_weight=np.inf, prior=0.0, prior_strength: float = 0.0) -> np.ndarray:
    """The w that attains the inner maximum of the dual."""
    free = 0.5 * (lam[i] + lam[j]) - theta * z + prior_strength * prior
    return np.clip(free / (1.0 + prior_strength), 0.0, max_weight)


def dual_objective(lam, i, j, z, theta: float, max_weight=np.inf, prior=0.0, prior_strength: float = 0.0) -> float:
    """D(λ), for λ > 0: never above P at any feasible w."""
    w = best_weights(lam, i, j, z, theta, max_weight, prior, prior_strength)
    inner = (lam[i] + lam[j]) * w - 2.0 * theta * z * w - w**2 - prior_strength * (w - prior) ** 2
    return float(lam.size + np.log(lam).sum() - inner.sum())
