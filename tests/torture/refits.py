"""Refits that are interrupted: the learner is afterwards as it was, and can be fitted again.

A case has the sizes of two tables, the model, the moment, and how the fit is interrupted: by an exception from the callback of
`verbose`, by a signal whose handler raises, or by an exception that another thread sends.
"""

import ctypes
import pickle
import signal
import threading
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_info

from torture.kinds import FaultError, Outcome

MODELS = "log", "log", "log", "l2", "soft", "knn"
WAYS = "callback", "signal", "thread"


class _StopError(BaseException):
    """What interrupts a fit, as KeyboardInterrupt does."""


def case(rng: np.random.Generator) -> dict:
    return {
        "seed": int(rng.integers(1 << 30)),
        "first": int(rng.integers(20, 400)),
        "second": int(rng.integers(20, 1500)),
        "model": str(rng.choice(MODELS)),
        "way": str(rng.choice(WAYS)),
        "moment": float(rng.random()),
        "n_jobs": int(rng.integers(1, 3)),
    }


def check(case: dict) -> Outcome:
    from smoothgraph import GraphLearner

    rng = np.random.default_rng(case["seed"])
    first, second = rng.normal(size=(case["first"], 4)), rng.normal(size=(case["second"], 3))
    learner = GraphLearner(6, model=case["model"], n_jobs=case["n_jobs"], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(first)
        before, pools = state(learner), _pools()
        started = time.perf_counter()
        calls = _calls_of(learner, second)
        learner.set_params(verbose=0)
        if state(learner) != before:
            raise FaultError("a fit of a clone changed the learner")
        seconds = time.perf_counter() - started
        if not _interrupted(learner, second, case, seconds, calls):
            return Outcome("ended before it was interrupted", count=0)
        learner.set_params(verbose=0)
        after = state(learner)
        if after != before:
            changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            raise FaultError(f"after a fit that was interrupted ({case['way']}) these differ: {', '.join(changed)}")
        if _pools() != pools:
            raise FaultError("after a fit that was interrupted the limits of BLAS differ")
        again = GraphLearner(6, model=case["model"], n_jobs=case["n_jobs"], random_state=0).fit(second).graph_
        if (learner.fit(second).graph_ != again).nnz:
            raise FaultError("a fit after one that was interrupted gives another graph")
    return Outcome("as it was")


def state(learner) -> dict[str, bytes]:
    """Everything a learner has, as bytes; the functions of a model by what they hold."""
    return {name: _bytes(value) for name, value in vars(learner).items() if name != "verbose"}


def _bytes(value) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # what cannot be pickled is the same if it is the same object
        return str(id(value)).encode()


def _pools():
    return sorted((pool["filepath"], pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas")


def _calls_of(learner, X) -> int:
    """How often a fit of X calls back."""
    from sklearn.base import clone

    calls = []
    clone(learner).set_params(verbose=lambda stage, text: calls.append(stage)).fit(X)
    return len(calls)


def _interrupted(learner, X, case, seconds, calls) -> bool:
    """Whether the fit was interrupted; if not, it had ended before."""
    if case["way"] == "callback":
        return _by_callback(learner, X, int(case["moment"] * calls))
    after = max(1e-4, case["moment"] * seconds)
    return (_by_signal if case["way"] == "signal" else _by_thread)(learner, X, after)


def _by_callback(learner, X, number) -> bool:
    calls = []

    def listen(stage, text):
        calls.append(stage)
        if len(calls) > number:
            raise _StopError

    try:
        learner.set_params(verbose=listen).fit(X)
    except _StopError:
        return True
    return False


def _by_signal(learner, X, after) -> bool:
    def stop(number, frame):
        raise _StopError

    old = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        learner.fit(X)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except _StopError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return False


def _by_thread(learner, X, after) -> bool:
    main, has_ended = threading.get_ident(), threading.Event()

    def send():
        if not has_ended.wait(after):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(_StopError))

    thread = threading.Thread(target=send)
    was_stopped, fitted = False, False
    try:
        thread.start()
        learner.fit(X)
        fitted = True
        has_ended.set()
        thread.join()
        for _ in range(1000):  # an exception that was sent comes between two steps of the interpreter
            pass
    except _StopError:
        was_stopped = not fitted
    finally:
        has_ended.set()
        thread.join()
    return was_stopped


def smaller(case: dict):
    for name in ("first", "second"):
        if case[name] > 20:
            yield case | {name: max(20, case[name] // 2)}
    if case["way"] != "callback":
        yield case | {"way": "callback"}
