"""Daitch's models over all pairs: the grown support gives the optimum that all pairs together give."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import at_edges, edges_of
from cvx import all_pairs, solve_daitch_model
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
