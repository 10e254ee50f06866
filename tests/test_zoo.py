"""A small part of the zoo: tables that scikit-learn has, and generated ones that are hard. `make zoo` runs all of it.

The judge itself is judged by CVXPY, and by graphs that were tampered with.
"""

import signal
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from cvx import all_pairs, solve_log_model
from smoothgraph import GraphLearner
from smoothgraph.theta import node_thetas
from zoo.judge import Rows, first_rows, judge, local_scales, relative_gap, tied_degrees
from zoo.one_fit import fit, verdict_of
from zoo.sources import MissingError, packaged
from zoo.tables import TABLES

# fmt: off
SMALL = [
    "iris", "wine", "wine-std", "digits", "copies-of-rows", "few-rows-many-copies", "binary-columns", "some-equal", "eye",
    "dead-sensors", "mask", "one-far-sample", "tiny-80", "tiny-150", "huge-100", "huge-150", "lognormal-3", "cauchy",
    "grid", "wine-k1", "three-rows", "two-far-clusters", "near-copies", "counts-with-ties", "sixteen-bit-sensors",
    "large-given-theta", "wrong-sign",
]
# fmt: on
MAY_REFUSE = {"one-far-sample"}  # where float64 has no digits for the weights, a sentence that says so is right


@contextmanager
def limited(seconds):
    """Interrupt what takes longer: a guard against a fit that does not end, not a measurement."""

    def stop(number, frame):
        raise TimeoutError(f"no end after {seconds} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("parameters", [{}, {"locality": 0, "connect": False}], ids=["default", "paper"])
@pytest.mark.parametrize("name", SMALL)
def test_the_graph_of_a_table_as_it_comes_is_right(name, parameters):
    X = TABLES[name].load()
    try:
        with limited(60):
            learner, caught = fit(X, {**TABLES[name].parameters, **parameters})
    except ValueError:
        if name not in MAY_REFUSE:
            raise
        return
    verdict = verdict_of(learner, X, caught)
    assert verdict.is_right, str(verdict)


def test_the_zoo_has_tables_of_all_kinds():
    kinds = {table.kind for table in TABLES.values()}
    assert len(TABLES) > 100
    assert kinds >= {"geography", "one-hot", "counts", "TF-IDF", "images", "time series", "audio", "survival", "census", "mesh"}
    with pytest.raises(MissingError, match="no_such_package is not installed"):
        packaged("no_such_package", "data.csv")


def test_the_judge_finds_no_gap_at_the_optimum_of_another_solver_and_one_elsewhere(rng):
    X, theta = rng.normal(size=(25, 3)), 0.7
    i, j, z = all_pairs(X)
    w = solve_log_model(i, j, z, len(X), theta)
    rows = Rows.of(X, np.arange(len(X)), "euclidean")

    def gap(weights):
        W = sp.csr_matrix((weights, (i, j)), shape=(len(X), len(X)))
        W = W + W.T
        return relative_gap(rows, theta, np.ones(len(X)), W, 1.0 / np.asarray(W.sum(axis=1)).ravel())

    assert gap(np.maximum(w, 0.0)) < 1e-6
    assert gap(1.01 * w) > 1e-5
    without = np.where(w == w.max(), 0.0, w)
    assert gap(without) > 1e-3
    denser = w + 1e-3
    assert gap(denser) > 1e-3


@pytest.mark.parametrize("parameters", [{"locality": 0.75}, {"connect": True}, {"locality": 1.0, "connect": True}])
def test_the_judge_knows_local_scales_and_bridges(rng, parameters):
    X = np.concatenate([rng.normal(size=(60, 3)), 30.0 + 5.0 * rng.normal(size=(40, 3))])
    learner = GraphLearner(5, **{"locality": 0.0, "connect": False, **parameters}).fit(X)
    gap = judge(learner, X).gap
    assert gap is not None
    assert gap <= 2.0 * learner.tol
    other = judge(_changed(learner, theta_=1.01 * learner.theta_), X)
    assert any("gap over all pairs" in text for text in other.wrong)


def test_the_local_scales_are_those_of_the_definition(rng):
    X = np.concatenate([rng.normal(size=(40, 3)), np.repeat(rng.normal(size=(1, 3)), 9, axis=0), np.eye(3)])
    rows = Rows.of(X, np.arange(len(X)), "euclidean")
    nearest = np.sort(rows.z(0, len(X)) + np.diag(np.full(len(X), np.inf)), axis=1)
    np.testing.assert_allclose(local_scales(rows, 5, 0.5, 15), node_thetas(nearest[:, :15], 5) ** 0.25, rtol=1e-12)


def test_the_judge_sees_what_was_tampered_with(rng):
    X = rng.normal(size=(80, 4))
    learner = GraphLearner(6, locality=0.0, connect=False).fit(X)
    assert judge(learner, X).is_right
    graph = learner.graph_.tolil()
    i, j = (int(end[0]) for end in graph.nonzero())
    for value, what in ((np.nan, "finite"), (-1.0, "positive"), (1.5, "bound"), (0.5, "gap over all pairs")):
        graph[i, j] = graph[j, i] = value
        assert what in str(judge(_changed(learner, graph_=graph.tocsr()), X))
    graph[i, j] = 0.25
    assert "symmetric" in str(judge(_changed(learner, graph_=graph.tocsr()), X))
    assert "asked for" in str(judge(_changed(learner, n_neighbors=7), X))
    assert "components" in str(judge(_changed(learner, n_components_=99), X))


def test_the_judge_believes_that_a_degree_is_out_of_reach_only_where_distances_are_tied(rng):
    X, warned = rng.normal(size=(80, 4)), ["Wanted 9 neighbours, the nearest degree that any θ gives is 6."]
    learner = GraphLearner(6, locality=0.0, connect=False).fit(X)
    assert "no ties" in str(judge(_changed(learner, n_neighbors=9), X, warned))
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    low, high = tied_degrees(Rows.of(grid, np.arange(144), "euclidean"), np.ones(144), 6)
    assert high - low > 2.0


def test_the_judge_takes_copies_as_nodes_that_hang_on_the_first_of_their_group(rng):
    X = rng.normal(size=(50, 3))
    learner = GraphLearner(5, locality=0.0, connect=False).fit(X)
    more = [3, 3, 17]
    all_rows, n = np.concatenate([X, X[more]]), len(X) + len(more)
    i, j = np.array(more), np.arange(len(X), n)
    hung = sp.csr_matrix((np.ones(6), (np.append(i, j), np.append(j, i))), shape=(n, n))
    graph = sp.block_diag([learner.graph_, sp.csr_matrix((3, 3))]).tocsr() + hung
    merged = _changed(learner, graph_=graph, copy_of_=first_rows(all_rows))
    assert judge(merged, all_rows).is_right
    assert "not the copies" in str(judge(merged, np.concatenate([X, X[[3, 3, 18]]])))
    assert "edges of copies" in str(judge(_changed(merged, graph_=graph - 0.5 * hung), all_rows))
    other = sp.csr_matrix(([0.1, 0.1], ([5, n - 1], [n - 1, 5])), shape=(n, n))
    assert "other edges" in str(judge(_changed(merged, graph_=graph + other), all_rows))


def test_the_judge_accepts_the_optimum_next_to_a_sample_that_is_far_away(rng):
    """A node whose nearest neighbour is at θz ≫ 1 has λ ≈ 2θz and one edge, of weight 1/(2θz); the others hardly notice."""
    X, far = rng.normal(size=(40, 3)), np.full((1, 3), 1.8e19)
    learner = GraphLearner(5, locality=0.0, connect=False).fit(X)
    weight = 1.0 / (2.0 * learner.theta_ * np.square(far - X).sum(axis=1).min())

    def gap(hung_by):
        edge = sp.csr_matrix(([hung_by], ([40], [7])), shape=(41, 41))
        W = sp.block_diag([learner.graph_, sp.csr_matrix((1, 1))]).tocsr() + edge + edge.T
        rows = Rows.of(np.concatenate([X, far]), np.arange(41), "euclidean")
        return relative_gap(rows, learner.theta_, np.ones(41), W, 1.0 / np.asarray(W.sum(axis=1)).ravel())

    assert gap(weight) < 2.0 * learner.tol
    assert gap(1.5 * weight) > 1e-3
    assert gap(1e-10) > 1e-3


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_the_judge_sees_the_same_gap_at_any_scale(rng, factor):
    X = rng.normal(size=(60, 3))
    learner = GraphLearner(5, locality=0.0, connect=False).fit(X)
    scaled = judge(_changed(learner, theta_=learner.theta_ / factor**2), factor * X)
    assert scaled.gap == pytest.approx(judge(learner, X).gap, rel=1e-3)


def _changed(learner, **attributes):
    return SimpleNamespace(**{**vars(learner), **attributes})
