"""Daitch's models through the learner: what they reach, what they do not determine, what does not apply to them."""

import numpy as np
import pytest

from conftest import edges_of
from smoothgraph import GraphLearner, Status
from smoothgraph.models import Daitch
from smoothgraph.solvers.multipliers import default_mu


def low_dimensional(rng):
    """Samples whose weights the models do not determine."""
    x, y = np.meshgrid(np.arange(12.0), np.arange(12.0))
    swiss = rng.uniform(1.0, 3.0, size=150)
    return {
        "line": np.sort(rng.normal(size=(100, 1)), axis=0),
        "plane": rng.uniform(size=(60, 2)),
        "space": rng.normal(size=(150, 3)),
        "grid": np.stack([x.ravel(), y.ravel()], axis=1),
        "roll": np.stack([swiss * np.cos(5 * swiss), swiss * np.sin(5 * swiss), rng.uniform(size=150)], axis=1),
        "duplicates": np.repeat(rng.normal(size=(50, 2)), 3, axis=0),
        "two points": np.repeat(rng.normal(size=(2, 3)), 20, axis=0),
    }


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("name", low_dimensional(np.random.default_rng(0)))
def test_samples_in_few_dimensions(rng, kind, name):
    learner = GraphLearner(5, model=Daitch(kind), duplicates="keep").fit(low_dimensional(rng)[name])
    assert learner.solution_.status is Status.CONVERGED
    assert learner.n_incomplete_ == 0
    if kind == "hard":
        assert np.asarray(learner.graph_.sum(axis=1)).min() > 1 - 1e-8


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_all_pairs_and_lists_alone(rng, kind):
    X = rng.normal(size=(150, 12))
    learner = GraphLearner(5, model=Daitch(kind)).fit(X)
    assert learner.n_incomplete_ == 0
    assert learner.solution_.status is Status.CONVERGED
    on_lists = GraphLearner(5, model=Daitch(kind), complete=False).fit(X)
    assert on_lists.n_incomplete_ == 150
    assert on_lists.solution_.objective > learner.solution_.objective * (1 - 1e-6)
    mu = None if kind == "hard" else default_mu(X, edges_of(X, int(5 * learner.oversampling)))
    every = GraphLearner(5, model=Daitch(kind, mu=mu), complete=False, neighbors="all").fit(X)
    assert every.solution_.objective == pytest.approx(learner.solution_.objective, rel=1e-5)
    if kind == "hard":
        assert np.asarray(learner.graph_.sum(axis=1)).min() > 1 - 1e-8
    with pytest.raises(ValueError, match="new samples"):
        learner.transform(X[:3])


def test_a_larger_price_leaves_less_shortfall(rng):
    X = rng.normal(size=(100, 8))
    graphs = [GraphLearner(5, model=Daitch("soft", mu=mu)).fit(X).graph_ for mu in (1.0, 10.0, 1000.0)]
    short = [np.maximum(1.0 - np.asarray(graph.sum(axis=1)), 0.0).sum() for graph in graphs]
    assert short[0] > short[1] > short[2] > 0


def test_a_projection_is_taken_for_the_solve(rng):
    X = rng.normal(size=(120, 30))
    learner = GraphLearner(5, model=Daitch(projection=4), complete=False, random_state=0).fit(X)
    plain = GraphLearner(5, model=Daitch(), complete=False).fit(X)
    assert learner.solution_.status is Status.CONVERGED
    assert abs(learner.graph_ - plain.graph_).max() > 0.01


def test_what_makes_no_sense_is_named(rng):
    X = rng.normal(size=(120, 30))
    for model, options, word in (
        (Daitch("hard", mu=1.0), {}, "mu=1.0 does not apply to model='hard', only to soft"),
        (Daitch("soft", mu=-1.0), {}, "mu=-1.0 must be"),
        (Daitch("soft", projection=0), {}, "projection=0"),
        (Daitch("soft", projection=31), {}, "31"),
        (Daitch("firm"), {}, r"Daitch\('firm'\)"),
        (Daitch(), {"locality": 1.0}, "locality=1.0 does not apply"),
        (Daitch(), {"metric": "precomputed_squared"}, "precomputed"),
    ):
        with pytest.raises(ValueError, match=word):
            GraphLearner(5, model=model, **options).fit(X)


def test_a_very_large_mu_is_the_hard_model():
    """A shortfall of a degree by rounding would cost more than all the rest."""
    X = np.array([[1299.68, 3682.07, 11154.97], [26.27, 219.87, 68208.57], [803.01, 376.33, 277.94]])
    hard = GraphLearner(1, model="hard", metric="cosine").fit(X).solution_
    for mu in (1e6, 2.5e10, 1e14):
        soft = GraphLearner(1, model=Daitch("soft", mu=mu), metric="cosine").fit(X).solution_
        assert soft.objective <= hard.objective * (1 + 1e-6)
        assert soft.objective >= hard.dual_objective * (1 - 1e-3)
        assert soft.gap < 1e-4
