"""Daitch's models over all pairs: the grown support gives the optimum that all pairs together give."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import at_edges, edges_of
from cvx import all_pairs, solve_daitch_model
from smoothgraph._kernels import daitch as kernels
from smoothgraph.parallel import Threads
from smoothgraph.reference import daitch as judge
from smoothgraph.solvers import Status, multipliers
from smoothgraph.solvers.all_pairs import solve_over_all_pairs


@pytest.mark.parametrize("times", [None, 3.0])
def test_the_grown_support_gives_the_optimum_over_all_pairs(rng, times):
    X = rng.normal(size=(60, 12))
    few, every = edges_of(X, 3), edges_of(X, 59)
    mu = None if times is None else times * float(every.z.mean())
    on_few, full = (multipliers.solve(X, edges, mu, tol=1e-7) for edges in (few, every))
    inside = set(zip(few.nodes.tolist(), few.indices.tolist(), strict=True))
    solution, violated = solve_over_all_pairs(X, few, mu, tol=1e-7)
    assert violated == 0
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(full.objective, rel=1e-6)
    assert on_few.objective > full.objective * 1.01
    weighted = set(zip(*(ends.tolist() for ends in solution.weights.nonzero()), strict=True))
    assert weighted - inside, "no pair was let in"
    with pytest.raises(RuntimeError, match="consumed"):
        few.indices  # noqa: B018


@pytest.mark.parametrize("times", [None, 3.0])
def test_its_certificate_holds_over_all_pairs(rng, times):
    """CVXPY's optimum over all pairs (five digits) lies between D and P; the optimality conditions hold for every pair."""
    X = rng.normal(size=(30, 8))
    i, j, z = all_pairs(X)
    mu = None if times is None else times * float(z.mean())
    solution, violated = solve_over_all_pairs(X, edges_of(X, 3), mu, tol=1e-8)
    best, _, _ = solve_daitch_model(X, i, j, mu)
    assert violated == 0
    assert solution.dual_objective <= best * (1 + 1e-5)
    assert solution.objective >= best * (1 - 1e-5)
    assert judge.kkt_residual(at_edges(solution.weights, i, j), solution.dual, i, j, X, mu) < 1e-4


@pytest.mark.parametrize("times", [None, 3.0])
def test_the_dual_value_is_not_above_the_primal_where_a_rounding_of_a_slope_weighs_millions(times):
    """One sample far from others on a line: weights of 10⁶ lift D by as many times what a slope is too small by."""
    X = np.array([[10.0], [6.04e6], [12.0], [13.0], [14.0], [15.0]])
    mu = None if times is None else times * multipliers.default_mu(X, edges_of(X, 2))
    with pytest.warns(ConvergenceWarning, match="gap"):
        solution, violated = solve_over_all_pairs(X, edges_of(X, 2), mu)
    assert solution.dual_objective <= solution.objective
    assert solution.gap >= 0.0
    assert violated > 0


@pytest.mark.parametrize("far", [1.0, 1e3, 1e6])
def test_what_a_dual_point_keeps_of_its_multipliers_is_feasible_in_exact_arithmetic(rng, far):
    """The slopes are 0.6‖xᵢ − xⱼ‖², sums of terms that are 10⁵ times as large and cancel; λ is so large that many are tight."""
    X = rng.normal(size=(12, 3)) * np.where(np.arange(12) == 5, far, 1.0)[:, None]
    Y = X @ (0.3 * np.eye(3) + 1e5 * np.cross(np.eye(3), [1.0, -2.0, 3.0]))
    lam = 0.5 * judge.slopes(Y, *np.triu_indices(12, 1), X).max() * rng.random(12)
    shifts, everywhere = np.array([0.0, 1e-9, 1.0]), np.empty((12, 3))
    kernels.feasible_shares_of_all(0, 12, X, Y, lam, shifts, everywhere)
    indptr, indices = 11 * np.arange(13), np.concatenate([np.delete(np.arange(12), i) for i in range(12)])
    by_rows = np.empty((12, 3))
    kernels.feasible_shares(0, 12, indptr, indices, X, Y, lam, shifts, by_rows)
    np.testing.assert_array_equal(by_rows, everywhere)
    assert (everywhere > 0.0).all()
    assert (everywhere < 1.0).any()
    exact_X, exact_Y = (np.vectorize(Fraction, otypes=[object])(part) for part in (X, Y))
    for eps, share in zip(shifts, everywhere.T, strict=True):
        kept = [Fraction(one) for one in multipliers.SHARE_OFF * share * lam]
        Z = exact_Y + Fraction(eps) * exact_X
        assert all(
            2 * ((exact_X[i] - exact_X[j]) * (Z[i] - Z[j])).sum() >= kept[i] + kept[j] for i in range(12) for j in range(i)
        )


def test_the_same_bits_for_any_number_of_threads(rng):
    X = rng.normal(size=(400, 10))
    one, three = (solve_over_all_pairs(X, edges_of(X, 8), None, 1e-4, threads=Threads(count))[0] for count in (1, 3))
    np.testing.assert_array_equal(one.weights.toarray(), three.weights.toarray())
    np.testing.assert_array_equal(one.dual, three.dual)


def test_work_has_a_bound_and_violated_pairs_are_counted(rng):
    X = rng.normal(size=(200, 10))
    with pytest.warns(ConvergenceWarning, match="5 rounds"):
        solution, violated = solve_over_all_pairs(X, edges_of(X, 2), max_iter=5)
    assert solution.n_iter == 5
    assert violated > 0
