"""The work of a fit is bounded whatever the data: counted in visits of edges, not in seconds."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs, edges_of
from smoothgraph import GraphLearner
from smoothgraph.models import LogProblem
from smoothgraph.parallel import Threads
from smoothgraph.solvers import Status, interior, solve, work
from smoothgraph.solvers.nodewise import Nodewise


def test_ordinary_data_stays_far_below_the_bound(rng):
    solver, problem = Nodewise(), LogProblem(edges_of(blobs(2000, 5, rng), 20), 2.0)
    assert solver.ascend(problem, 1e-8, 1000).gap <= 1e-8
    assert solver.work.visits < 0.1 * (work.FREE_VISITS + work.VISITS_PER_EDGE * problem.edges.indptr[-1])


@pytest.mark.parametrize("sigma", [3.0, 6.0])
def test_hard_data_stops_at_the_bound(rng, monkeypatch, sigma):
    """Samples at all scales: without a bound they take any number of visits."""
    monkeypatch.setattr(work, "FREE_VISITS", 2e7)
    monkeypatch.setattr(work, "VISITS_PER_EDGE", 100)
    problem = LogProblem(edges_of(rng.lognormal(sigma=sigma, size=(1000, 4)), 15), 1.0)
    solver, entries = Nodewise(), problem.edges.indptr[-1]
    for _ in range(5):  # all solves of a fit together
        solver.ascend(problem, 1e-12, 1000)
    bound = work.FREE_VISITS + work.VISITS_PER_EDGE * entries
    leap = interior.MAX_STEPS * (interior.STEP_VISITS + interior.EDGE_VISITS * entries)
    one_more = 2 * leap + 5 * 25 * entries  # a leap is not cut in the middle, and each solve makes its first sweeps
    assert bound < solver.work.visits < bound + one_more


def test_what_was_reached_is_a_graph_with_its_true_gap(rng, monkeypatch):
    monkeypatch.setattr(work, "FREE_VISITS", 1e5)
    monkeypatch.setattr(work, "VISITS_PER_EDGE", 1)
    X = rng.lognormal(sigma=4.0, size=(300, 4))
    with pytest.warns(ConvergenceWarning, match="out of proportion.*locality=1"):
        learner = GraphLearner(5, theta=1.0, locality=0, connect=False, neighbors="all").fit(X)
    assert learner.solution_.status is Status.MAX_ITER
    assert np.diff(learner.graph_.indptr).min() > 0
    i, j = np.triu_indices(300, 1)
    z, w, lam = ((X[i] - X[j]) ** 2).sum(axis=1), np.asarray(learner.graph_[i, j]).ravel(), learner.solution_.dual
    t, x = 0.5 * (lam[i] + lam[j]) - z, np.asarray(learner.graph_.sum(axis=1)).ravel() * lam
    gap = np.sum(x - 1.0 - np.log(x)) + np.sum(np.where(t >= 0.0, (w - t) ** 2, w**2 + 2.0 * np.abs(t) * w))
    assert learner.solution_.gap == pytest.approx(gap / 300, rel=1e-6)


def test_a_solve_by_itself_is_bounded_as_well(rng):
    problem = LogProblem(edges_of(blobs(300, 3, rng), 10), 1.0)
    assert solve(problem, tol=1e-9).status is Status.CONVERGED


# --- small tables that once took long ---------------------------------------------------------------------------------------

MOST_CALLS = 3000  # of compiled loops, in a fit of thirty nodes; an ordinary one makes about 100


def tables_of_thirty():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[7] = 1e12
    equal = np.ones((30, 30)) - np.eye(30)
    return {
        "far": (X, {}),
        "equal": (equal, {"metric": "precomputed"}),
        "allowed": (sp.csr_matrix(equal), {"metric": "precomputed"}),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{}, {"locality": 0.0, "connect": False}, {"model": "l2"}], ids=["log", "paper", "l2"])
@pytest.mark.parametrize("name", tables_of_thirty())
def test_thirty_nodes_are_little_work(name, options, monkeypatch):
    calls: list = []
    rows = Threads.rows
    monkeypatch.setattr(Threads, "rows", lambda self, *given, **least: (calls.append(given[0]), rows(self, *given, **least))[1])
    X, how = tables_of_thirty()[name]
    try:
        learner = GraphLearner(5, **how, **options).fit(X)
    except ValueError as error:
        assert "Sample 7 is too far" in str(error)  # noqa: PT017
    else:
        assert learner.solution_.gap <= 1e-6
    assert len(calls) <= MOST_CALLS


def test_equal_distances_give_the_l2_model_equal_weights():
    """By symmetry: all pairs have the same weight, and they sum to n."""
    learner = GraphLearner(29, model="l2", metric="precomputed", tol=1e-9).fit(np.ones((30, 30)) - np.eye(30))
    np.testing.assert_allclose(learner.graph_.toarray(), (np.ones((30, 30)) - np.eye(30)) / 29.0, rtol=1e-6, atol=1e-9)
