"""Models as objects: strings that stand for them, their parameters, and what they may be combined with."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from conftest import blobs
from smoothgraph import GraphLearner
from smoothgraph.models import L2, MODELS, Daitch, Log, Nearest, model_of, models_taking

OBJECTS = {
    "log": Log(),
    "l2": L2(),
    "hard": Daitch("hard"),
    "soft": Daitch("soft"),
    "knn": Nearest(),
    "knn-gaussian": Nearest("gaussian"),
    "knn-self-tuning": Nearest("self-tuning"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_string_is_the_model_with_its_defaults_to_the_bit(rng, name):
    X = blobs(150, 4, rng)
    by_name, by_object = (GraphLearner(5, model=model).fit(X).graph_ for model in (name, OBJECTS[name]))
    np.testing.assert_array_equal(by_name.toarray(), by_object.toarray())
    assert model_of(name).name == OBJECTS[name].name == name
    assert model_of(name).get_params() == OBJECTS[name].get_params()
    assert model_of(OBJECTS[name]) is OBJECTS[name]


def test_a_string_takes_parameters_of_its_model_only():
    assert model_of("soft", mu=2.0).mu == 2.0
    assert model_of("knn", mutual=True).mutual
    for name, parameters, word in (
        ("log", {"mu": 1.0}, "mu=1.0 does not apply to model='log', only to hard and soft"),
        ("knn", {"projection": 3}, "projection=3 does not apply to model='knn', only to hard and soft"),
        ("l2", {"width": 3}, "width=3 does not apply to model='l2', only to no model"),
        ("nearest", {}, "model='nearest' is not known: use one of 'log', 'l2'"),
        (7, {}, "model=7 is not known"),
    ):
        with pytest.raises(ValueError, match=word):
            model_of(name, **parameters)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"model": "nearest"}, "model='nearest' is not known"),
        ({"model": "knn", "locality": 0.5}, "locality=0.5 does not apply to model='knn', only to log and l2"),
        ({"model": "knn-gaussian", "connect": True}, "connect=True does not apply to model='knn-gaussian', only to log and l2"),
        ({"model": "l2", "max_weight": 0.1}, "max_weight=0.1 does not apply to model='l2', only to log"),
        ({"model": "l2", "alpha": 1.0, "beta": 1.0}, "beta=1.0 does not apply to model='l2', only to log"),
        ({"model": "l2", "prior": np.zeros((30, 30)) + 1.0}, "prior=a graph does not apply to model='l2', only to log"),
        ({"model": "hard", "theta": 1.0}, "theta=1.0 does not apply to model='hard'"),
        ({"locality": 1.5}, "locality=1.5"),
        ({"locality": -0.1}, "locality=-0.1"),
    ],
)
def test_parameters_that_a_model_does_not_take_are_named(rng, options, word):
    with pytest.raises(ValueError, match=word):
        GraphLearner(5, **options).fit(rng.normal(size=(30, 2)))


def test_what_a_model_takes_is_found_for_a_message():
    assert models_taking("locality") == "log and l2"
    assert models_taking("prior") == "log"


# --- scikit-learn ---------------------------------------------------------------------------------------------------------


def test_nested_parameters_are_got_set_and_cloned(rng):
    X = blobs(80, 4, rng)
    learner = GraphLearner(5, model=Daitch("soft", mu=2.0))
    assert learner.get_params()["model__mu"] == 2.0
    assert "model__mu" not in GraphLearner(5, model="soft").get_params()
    copy = clone(learner).set_params(model__mu=50.0, n_neighbors=4)
    assert (copy.model.mu, copy.n_neighbors) == (50.0, 4)
    assert (learner.model.mu, learner.n_neighbors) == (2.0, 5), "the original changed with its clone"
    direct = GraphLearner(4, model=Daitch("soft", mu=50.0)).fit(X).graph_
    np.testing.assert_array_equal(copy.fit(X).graph_.toarray(), direct.toarray())
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        copy.set_params(model__sigma=1.0)


def test_a_fit_does_not_change_the_model(rng):
    learner = GraphLearner(5, model=Daitch("soft"))
    before = learner.get_params()
    learner.fit(blobs(80, 4, rng))
    assert learner.get_params() == before
    assert learner.model.mu is None


def test_a_grid_search_goes_through_parameters_of_the_model(rng):
    X, grid = blobs(90, 4, rng), {"model__mu": [1.0, 30.0, 1000.0]}

    def total_weight(learner, X, y=None):
        return learner.graph_.sum()

    search = GridSearchCV(GraphLearner(4, model=Daitch("soft")), grid, scoring=total_weight, cv=2, refit=True).fit(X)
    assert search.best_params_ == {"model__mu": 1000.0}
    assert search.best_estimator_.model.mu == 1000.0
    by_hand = [GraphLearner(4, model=Daitch("soft")).set_params(**point).fit(X).graph_.sum() for point in ParameterGrid(grid)]
    assert by_hand == sorted(by_hand)
    assert search.best_estimator_.graph_.sum() == by_hand[-1]
