"""Degree penalties of the user's own, against CVXPY and against the solvers that are made for one."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
from numba import njit
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from conftest import at_edges, blobs, edges_of, relative_l1
from cvx import all_pairs, solve_penalty_model
from smoothgraph import GraphLearner
from smoothgraph.models import LogProblem, Penalty, PenaltyProblem
from smoothgraph.solvers import solve


@njit
def log_phi(d):
    return -np.log(d) if d > 0.0 else np.inf


@njit
def log_degree(lam):
    return 1.0 / lam if lam > 0.0 else np.inf


@njit
def hub_phi(d):
    return -np.log(d) + d**2 if d > 0.0 else np.inf


@njit
def hub_degree(lam):
    root = np.sqrt(lam**2 + 8.0)
    return 2.0 / (root + lam) if lam > 0.0 else 0.25 * (root - lam)


@njit
def target_phi(d):
    return 4.0 * (d - 1.0) ** 2


@njit
def target_degree(lam):
    return 1.0 - lam / 8.0


CASES = {
    "hubs": (hub_phi, hub_degree, lambda d: -cp.sum(cp.log(d)) + cp.sum_squares(d)),
    "target": (target_phi, target_degree, lambda d: 4.0 * cp.sum_squares(d - 1.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_cvxpy(name):
    phi, degree, term = CASES[name]
    X = blobs(25, 2, np.random.default_rng(2))
    i, j, z = all_pairs(X)
    theta = 2.0 / z.mean()
    solution = solve(PenaltyProblem(edges_of(X, 24), theta, phi, degree), tol=1e-12)
    w, optimum = solve_penalty_model(i, j, z, 25, theta, term)
    assert relative_l1(at_edges(solution.weights, i, j), w) < 1e-5
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.dual_objective <= solution.objective


def test_the_logarithm_is_the_log_model(rng):
    """With and without weight that bridges give."""
    edges = edges_of(blobs(300, 3, rng), 10)
    theta = 2.0 / edges.z.mean()
    for fixed in (None, rng.choice([0.0, 0.3], size=300)):
        own = solve(PenaltyProblem(edges, theta, log_phi, log_degree, fixed), tol=1e-10)
        default = solve(LogProblem(edges, theta, fixed=fixed), tol=1e-12)
        assert relative_l1(own.weights, default.weights) < 1e-4
        assert own.objective == pytest.approx(default.objective, rel=1e-8)


# --- through the learner --------------------------------------------------------------------------------------------------

LOGARITHM = Penalty(log_phi, log_degree)  # its sweeps know no leaps: of samples without far outliers they make a graph soon


@pytest.mark.parametrize("options", [{"locality": 0.0}, {"locality": 1.0}])
def test_a_learner_with_the_logarithm_learns_the_graph_of_the_log_model(rng, options):
    """The degree is reached and the support certified, as for a model of the package."""
    X = blobs(300, 3, rng, outliers=0.0)
    own, default = (GraphLearner(5, model=model, connect=False, tol=1e-9, **options).fit(X) for model in (LOGARITHM, "log"))
    assert own.n_neighbors_ == pytest.approx(5, rel=0.01)
    assert own.n_incomplete_ == 0
    assert own.solution_.gap <= 1e-9
    assert own.theta_bounds_.lower == default.theta_bounds_.lower
    again = GraphLearner(5, theta=own.theta_, tol=1e-9, **options).fit(X)
    assert relative_l1(own.graph_, again.graph_) < 1e-3
    np.testing.assert_allclose(own.solution_.dual, again.solution_.dual, rtol=1e-3)


def test_its_support_grows_to_the_optimum_over_all_pairs(rng):
    X = blobs(60, 2, rng, outliers=0.0)
    learner = GraphLearner(4, model=LOGARITHM, oversampling=1, tol=1e-11).fit(X)
    i, j, z = all_pairs(X)
    w, _ = solve_penalty_model(i, j, z, 60, learner.theta_, lambda d: -cp.sum(cp.log(d)))
    assert learner.n_incomplete_ == 0
    assert relative_l1(at_edges(learner.graph_, i, j), w) < 1e-5


def test_its_components_are_connected_as_those_of_the_log_model(rng):
    X = blobs(300, 3, rng, outliers=0.0)
    own, default = (GraphLearner(3, model=model, theta=2.0, connect=True, tol=1e-10).fit(X) for model in (LOGARITHM, "log"))
    assert GraphLearner(3, theta=2.0).fit(X).n_components_ > 1
    assert own.n_components_ == connected_components(own.graph_, directed=False)[0] == 1
    assert {tuple(pair) for pair in own.bridges_.tolist()} == {tuple(pair) for pair in default.bridges_.tolist()}
    assert relative_l1(own.graph_, default.graph_) < 1e-4
    assert own.n_incomplete_ == 0


def test_its_rows_for_new_samples_are_those_of_the_log_model(rng):
    X, new = blobs(300, 3, rng, outliers=0.0), blobs(20, 3, rng)
    own, default = (GraphLearner(5, model=model, theta=0.5, tol=1e-10).fit(X) for model in (LOGARITHM, "log"))
    assert relative_l1(own.transform(new), default.transform(new)) < 1e-4


@pytest.mark.parametrize("far", [1e3, 1e5, 1e7])
def test_a_far_new_sample_has_a_weight_with_all_its_digits(far):
    """Its λ is nearly the cost of its nearest neighbour: half the difference, the weight, would be rounding and nothing else.

    Its one edge solves 4w = 1/w − a.
    """
    X = np.linspace(0.0, 1.0, 30)[:, None]
    learner = GraphLearner(3, model=Penalty(hub_phi, hub_degree), theta=20.0, locality=0.0, connect=False).fit(X)
    row = learner.transform(np.array([[far]])).toarray()[0]
    a = 2.0 * 20.0 * (far - 1.0) ** 2 - learner.solution_.dual[-1]
    assert np.flatnonzero(row).tolist() == [29]
    assert row[-1] == pytest.approx(2.0 / (a + np.sqrt(a**2 + 16.0)), rel=1e-12, abs=0.0)


def test_it_is_cloned_and_pickled(rng):
    X = blobs(100, 3, rng)
    learner = clone(GraphLearner(5, model=Penalty(hub_phi, hub_degree))).fit(X)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.transform(X[:5]).toarray(), learner.transform(X[:5]).toarray())
    assert float(learner.graph_.sum(axis=1).max()) < 1.0  # φ′ = −1/d + 2d is 0 at 1/√2, beyond which no weight pays


def test_a_degree_that_does_not_belong_to_phi_is_refused(rng):
    """The proof rests on it: with another degree the sweeps end elsewhere, and the gap they see is too small."""

    @njit
    def too_large(lam):
        return 1.01 * hub_degree(lam)

    X = blobs(50, 3, rng)
    with pytest.raises(ValueError, match="−φ′"):
        GraphLearner(5, model=Penalty(hub_phi, too_large)).fit(X)


def test_a_degree_without_digits_at_the_lambda_of_a_new_sample_is_refused():
    """A new sample at a node of large λ has a λ of −10⁷, where the usual formula of the root subtracts all its digits away.

    With the other formula its one edge solves 4w = λⱼ − 2θz + 1/w.
    """

    @njit
    def careless(lam):
        return 2.0 / (lam + np.sqrt(lam**2 + 8.0))

    X = np.concatenate([np.linspace(0.0, 1.0, 30), [1000.0]])[:, None]
    new, theta = np.array([[999.999]]), 20.0
    learner = GraphLearner(3, model=Penalty(hub_phi, careless), theta=theta, locality=0.0, connect=False, tol=1e-3).fit(X)
    with pytest.raises(ValueError, match="lose them"):
        learner.transform(new)
    learner = GraphLearner(3, model=Penalty(hub_phi, hub_degree), theta=theta, locality=0.0, connect=False, tol=1e-3).fit(X)
    row = learner.transform(new).toarray()[0]
    w, a = row[-1], learner.solution_.dual[-1] - 2.0 * theta * 1e-6
    assert np.flatnonzero(row).tolist() == [30]
    assert 4.0 * w == pytest.approx(a + 1.0 / w, rel=1e-12)


def test_what_is_not_compiled_or_does_not_apply_is_named(rng):
    X = blobs(50, 3, rng)
    for model, options, word in (
        (Penalty(lambda d: d, log_degree), {}, "phi is not compiled"),
        (Penalty(log_phi, np.log), {}, "degree is not compiled"),
        (LOGARITHM, {"max_weight": 0.1}, "max_weight=0.1 does not apply to model='penalty', only to log"),
        (LOGARITHM, {"alpha": 1.0, "beta": 1.0}, "alpha=1.0 does not apply"),
    ):
        with pytest.raises(ValueError, match=word):
            GraphLearner(5, model=model, **options).fit(X)
