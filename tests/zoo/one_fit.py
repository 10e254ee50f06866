"""One fit of one table in a process of its own: `python -m zoo.one_fit TABLE SETTING` prints what happened as a line of JSON.

The fit has one core, a limit of CPU seconds and one of memory: a process that passes the first is ended by the system.
"""

import json
import math
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from zoo.judge import Verdict, first_rows, judge
from zoo.sources import MissingError
from zoo.tables import TABLES

SECONDS = 60  # CPU time that a fit may take
MEMORY = 8 << 30  # bytes of address space; the libraries alone reserve one or two gigabytes
SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "paper": {"locality": 0, "connect": False}}


def main(name: str, setting: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    table = TABLES[name]
    try:
        X = table.load()
    except MissingError as reason:
        print(json.dumps({"skipped": str(reason)}))
        return
    parameters = {**table.parameters, **SETTINGS[setting]}
    shape = {"n": X.shape[0], "d": X.shape[1], "copies": float(np.mean(first_rows(X) != np.arange(X.shape[0])))}
    print(json.dumps(shape), flush=True)  # what is known if the fit does not end
    warm_up(X, parameters)
    limit_cpu(SECONDS)
    print(json.dumps({**shape, **outcome(X, parameters)}))


def outcome(X, parameters) -> dict:
    """What a fit of X gave, and what the judge says of it."""
    started = time.process_time()
    try:
        learner, caught = fit(X, parameters)
    except Exception as error:  # whatever it is, it is to be seen on the page
        verdict = "refused" if is_refusal(error) else "wrong"
        return {"seconds": time.process_time() - started, "verdict": verdict, "why": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - started
    limit_cpu(None)
    verdict = verdict_of(learner, X, caught)
    warned = list(dict.fromkeys(str(one.message) for one in caught))
    return {"seconds": seconds, "warned": warned, **said(learner), **judged(verdict)}


def fit(X, parameters):
    """The fitted learner and the warnings."""
    from smoothgraph import GraphLearner

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return GraphLearner(**{"n_jobs": 1, "random_state": 0, **parameters}).fit(X), caught


def verdict_of(learner, X, caught) -> Verdict:
    """What the judge says; arithmetic that went wrong on the way, which NumPy warns of, is wrong too."""
    verdict = judge(learner, X, [str(one.message) for one in caught])
    accidents = {str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)}
    verdict.wrong.extend(f"NumPy warned: {text}" for text in sorted(accidents))
    return verdict


def is_refusal(error) -> bool:
    """Whether an error is a sentence to the user, not an accident."""
    return type(error) is ValueError and len(str(error)) > 40


def said(learner) -> dict:
    """What the learner says of its graph."""
    solution = learner.solution_
    return {
        "theta": learner.theta_,
        "status": str(solution.status),
        "claimed_gap": _number(solution.gap),
        "incomplete": learner.n_incomplete_,
        "bridges": len(learner.bridges_),
        "search": learner.neighbors_,
        "locality": getattr(learner, "locality_", learner.locality),
        "connect": bool(getattr(learner, "connect_", learner.connect)),
    }


def judged(verdict) -> dict:
    return {
        "degree": _number(verdict.degree),
        "components": verdict.n_components,
        "distinct": verdict.n_distinct,
        "gap": None if verdict.gap is None else _number(verdict.gap),
        "verdict": "wrong" if verdict.wrong else "missed" if verdict.missed else "right",
        "why": "" if verdict.is_right else str(verdict),
    }


def _number(value):
    """JSON has no inf."""
    return float(value) if math.isfinite(value) else str(value)


def warm_up(X, parameters) -> None:
    """A small fit of the same kind, so that what is compiled, or read from where it was, is not counted."""
    small = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32 if X.dtype.itemsize < 8 else np.float64)
    small = sp.csr_matrix(small) if sp.issparse(X) else small
    if parameters.get("metric") == "precomputed_squared":
        small = ((small[:, None] - small[None]) ** 2).sum(axis=2)
    fit(small, {**parameters, "n_neighbors": 5})


def limit_cpu(seconds: int | None) -> None:
    """Let the system end this process after so many more seconds of CPU time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = resource.RLIM_INFINITY if seconds is None else math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
