"""The ℓ2 model: CVXPY, the definition of its objective and dual, and relations judge the solver."""

import cvxpy as cp
import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs, candidates_of
from cvx import all_pairs, solve_accurately
from smoothgraph import GraphLearner
from smoothgraph.models import l2 as judge
from smoothgraph.solvers import Status, l2
from smoothgraph.solvers.l2 import L2Problem


def cvx_l2(i, j, z, n, alpha, fixed=0.0):
    """`fixed` is what every node has of edges whose weight is not in question."""
    edges, given = len(i), np.broadcast_to(fixed, n)
    S = np.zeros((n, edges))
    S[i, np.arange(edges)] = S[j, np.arange(edges)] = 1.0
    w = cp.Variable(edges, nonneg=True)
    energy = 2.0 * z @ w + 2.0 * alpha * cp.sum_squares(w) + alpha * cp.sum_squares(S @ w + given)
    solve_accurately(cp.Problem(cp.Minimize(energy), [2.0 * cp.sum(w) + given.sum() == n]))
    return w.value


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_cvxpy(seed):
    rng = np.random.default_rng(seed)
    n = 30
    X = blobs(n, 3, rng)
    i, j, z = all_pairs(X)
    theta = rng.choice([0.3, 1.0, 5.0]) / z.mean()
    solution = l2.solve(L2Problem(candidates_of(X, n - 1), theta), tol=1e-12)
    reference = cvx_l2(i, j, z, n, 0.5 / theta)
    found = solution.weights.toarray()[i, j]
    assert np.abs(found - reference).sum() < 1e-6 * n
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_cvxpy_where_some_weight_is_given(seed):
    """As joining edges give it. P at the weights found is the optimum, and the gap says so."""
    rng = np.random.default_rng(seed)
    n = 30
    X, fixed = blobs(n, 3, rng), rng.choice([0.0, 0.4, 1.5], size=n, p=[0.6, 0.3, 0.1])
    i, j, z = all_pairs(X)
    theta = 1.0 / z.mean()
    solution = l2.solve(L2Problem(candidates_of(X, n - 1), theta, fixed), tol=1e-12)
    reference = cvx_l2(i, j, z, n, 0.5 / theta, fixed)
    w = solution.weights.toarray()[i, j]
    assert np.abs(w - reference).sum() < 1e-6 * n
    assert abs(solution.weights.sum() + fixed.sum() - n) < 1e-9
    degree = fixed + np.bincount(i, w, n) + np.bincount(j, w, n)
    alpha = 0.5 / theta
    primal = 2.0 * z @ w + 2.0 * alpha * w @ w + alpha * degree @ degree
    assert solution.objective == pytest.approx(primal, rel=1e-9)
    assert solution.status is Status.CONVERGED


def test_objective_and_dual_are_those_of_the_definition(rng):
    X = blobs(60, 3, rng)
    i, j, z = all_pairs(X)
    alpha = z.mean()
    solution = l2.solve(L2Problem(candidates_of(X, 59), 0.5 / alpha), tol=1e-3)
    w = solution.weights.toarray()[i, j]
    assert abs(solution.weights.sum() - 60) < 1e-9
    assert solution.objective == pytest.approx(judge.objective(w, i, j, z, 60, alpha), rel=1e-12)
    assert solution.dual_objective == pytest.approx(judge.dual_objective(solution.dual, i, j, z, alpha), rel=1e-12)
    assert solution.dual_objective < solution.objective
    assert solution.gap == pytest.approx((solution.objective - solution.dual_objective) / solution.objective, rel=1e-6)


def test_the_start_leaves_newtons_method_little_to_do(rng):
    """The gap where it begins is some hundredths of what it is with the best λ that is the same for all."""
    edges = candidates_of(blobs(3000, 4, rng), 30)
    problem = L2Problem(edges, 4.0 / float(np.median(edges.z)))
    newton = l2._Newton(problem)
    uniform = min(newton.evaluate(np.full(3000, level)).gap for level in np.linspace(0.5, 4.0, 100))
    assert newton.evaluate(newton.start()).gap < 0.05 * uniform


def test_the_dual_is_a_bound_for_any_lambda(rng):
    """Weak duality, which the certificate rests on, by the definitions alone."""
    X = blobs(20, 2, rng)
    i, j, z = all_pairs(X)
    alpha = z.mean()
    least = judge.objective(cvx_l2(i, j, z, 20, alpha), i, j, z, 20, alpha)
    values = [judge.dual_objective(rng.normal(1.0, 1.0, size=20), i, j, z, alpha) for _ in range(200)]
    assert max(values) <= least * (1 + 1e-9)


@pytest.mark.parametrize("locality", [0.0, 1.0])
def test_learner_lands_and_certifies(locality):
    X = blobs(1000, 3, np.random.default_rng(0))
    learner = GraphLearner(6, model="l2", locality=locality).fit(X)
    assert learner.n_neighbors_ == pytest.approx(6, rel=0.01)
    assert learner.n_incomplete_ == 0
    assert abs(learner.graph_.sum() - 1000) < 1e-9
    full = GraphLearner(6, model="l2", locality=locality, theta=learner.theta_, neighbors="all").fit(X)
    assert abs(full.graph_ - learner.graph_).sum() < 5e-3 * 1000


def test_alpha_is_the_papers(rng):
    X = blobs(50, 3, rng)
    i, j, z = all_pairs(X)
    learner = GraphLearner(5, model="l2", alpha=z.mean(), neighbors="all", tol=1e-12).fit(X)
    assert np.abs(learner.graph_.toarray()[i, j] - cvx_l2(i, j, z, 50, z.mean())).sum() < 1e-6 * 50


def test_scaling_all_distances_changes_theta_alone(rng):
    X = blobs(300, 3, rng)
    one, ten = (GraphLearner(5, model="l2", tol=1e-10).fit(c * X) for c in (1.0, 10.0))
    assert ten.theta_ * 100 == pytest.approx(one.theta_, rel=1e-6)
    assert abs(one.graph_ - ten.graph_).sum() < 1e-4 * 300


def test_an_outlier_ends_without_an_edge_and_is_counted(rng):
    X = np.vstack([rng.normal(size=(300, 3)), [[100.0, 0.0, 0.0]]])
    learner = GraphLearner(6, model="l2").fit(X)
    assert learner.graph_[[300]].nnz == 0
    assert learner.n_isolated_ >= 1


def test_duplicates_and_two_far_groups_have_an_optimum(rng):
    X = np.vstack([np.repeat(rng.normal(size=(20, 2)), 3, axis=0), 1000.0 + rng.normal(size=(30, 2))])
    learner = GraphLearner(6, model="l2").fit(X)
    assert learner.solution_.gap <= 1e-6
    assert np.isfinite(learner.graph_.data).all()


def test_new_rows_solve_the_one_node_problem(rng):
    """A new node's λ + Σw = 1 + λ̄, w = max(0, (λ + λⱼ)/2 − θz): checked by the equations, over all fitted samples."""
    X, new = blobs(300, 3, rng), blobs(20, 3, rng)
    learner = GraphLearner(6, model="l2", tol=1e-10).fit(X)
    rows = learner.transform(new).toarray()
    lam = learner.solution_.dual
    z = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    own = 1.0 + lam.mean() - rows.sum(axis=1)
    np.testing.assert_allclose(rows, np.maximum(0.0, 0.5 * (own[:, None] + lam) - learner.theta_ * z), atol=1e-9)


def test_a_start_that_leaves_no_weight_is_mended(rng):
    """λ of a θ a hundred times as small: no edge would have weight."""
    edges = candidates_of(blobs(200, 3, rng), 10)
    near = l2.solve(L2Problem(edges, 0.01), tol=1e-10)
    far = L2Problem(edges, 1.0)
    cold, warm = l2.solve(far, tol=1e-12), l2.solve(far, tol=1e-12, lam=near.dual - near.dual.max())
    assert abs(cold.weights - warm.weights).sum() < 1e-6 * 200


def test_a_grid_of_equal_distances_has_a_graph():
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    learner = GraphLearner(4, model="l2", theta=0.3).fit(grid)
    assert learner.solution_.gap <= 1e-6
    assert abs(learner.graph_.sum() - 400) < 1e-9


def test_a_missed_tolerance_is_a_warning(rng):
    problem = L2Problem(candidates_of(blobs(200, 3, rng), 10), 0.1)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert l2.solve(problem, tol=1e-12, max_iter=1).status is Status.MAX_ITER


def test_the_same_bits_whatever_the_number_of_threads(rng):
    edges, fixed = candidates_of(blobs(5000, 3, rng), 10), rng.choice([0.0, 0.3], size=5000)
    before, found = numba.get_num_threads(), []
    try:
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            found.append(l2.solve(L2Problem(edges, 0.5, fixed), tol=1e-10))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0].dual, found[1].dual)
    np.testing.assert_array_equal(found[0].weights.data, found[1].weights.data)
    assert found[0].gap == found[1].gap
