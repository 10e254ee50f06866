"""The models: all that differs between them, one file each.

A model has a `name`; the parameters of the learner that it `takes`, of those that not every model has; whether it `learns` or
only weighs lists; `check(metric, neighbors)`, which raises for its own parameters and for what it cannot be combined with;
`given_theta(alpha, beta)`; and `learn(task)`. It may have a `recommended_locality` and `recommended_connect`, which are 0 and
False otherwise, and may say that it `counts_copies`: samples that stand for several rows (`Task.sizes`). A model that has a θ
states what `fit.by_theta.ThetaModel` lists and leaves `learn` to that module.
"""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from smoothgraph.models.daitch import Daitch
from smoothgraph.models.l2 import L2, L2Problem
from smoothgraph.models.log import Log, LogProblem
from smoothgraph.models.nearest import Nearest
from smoothgraph.models.penalty import Penalty, PenaltyProblem

__all__ = ["L2", "MODELS", "Daitch", "L2Problem", "Log", "LogProblem", "Nearest", "Penalty", "PenaltyProblem", "model_of"]

# The strings that stand for models with their default parameters.
MODELS: dict[str, Callable[..., Any]] = {
    "log": Log,
    "l2": L2,
    "hard": partial(Daitch, "hard"),
    "soft": partial(Daitch, "soft"),
    "knn": Nearest,
    "knn-gaussian": partial(Nearest, "gaussian"),
    "knn-self-tuning": partial(Nearest, "self-tuning"),
}


def model_of(model: Any, **parameters: Any) -> Any:
    """The model that a string stands for, with these parameters of its own; a model object is returned as it is."""
    if hasattr(model, "learn"):
        return model
    if not isinstance(model, str) or model not in MODELS:
        names = ", ".join(repr(name) for name in MODELS)
        raise ValueError(f"model={model!r} is not known: use one of {names}, or a model of smoothgraph.models.")
    known = signature(MODELS[model]).parameters
    for name, value in parameters.items():
        if name not in known:
            raise ValueError(f"{name}={value!r} does not apply to model={model!r}, only to {_having(name)}: leave it out.")
    return MODELS[model](**parameters)


def models_taking(parameter: str) -> str:
    """The names of the models that take a parameter of the learner, for a message."""
    return " and ".join(name for name, make in MODELS.items() if parameter in make().takes)


def _having(parameter):
    """The names of the models that have a parameter of their own, for a message."""
    return " and ".join(name for name, make in MODELS.items() if parameter in signature(make).parameters) or "no model"
