"""A fit that does not end leaves the learner as it was, an interrupt comes out as one, and nothing stays behind."""

import _thread
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info

import smoothgraph
from conftest import blobs
from smoothgraph import GraphLearner, degree_path, label_propagation, spectral_embedding
from smoothgraph.parallel import Threads
from smoothgraph.uses import hops

PACKAGE = str(Path(smoothgraph.__file__).parent)
FIRST = pd.DataFrame(blobs(60, 3, np.random.default_rng(0)), columns=list("abc"), index=[f"r{i}" for i in range(60)])
SECOND = blobs(90, 5, np.random.default_rng(1))


class Stop(BaseException):
    """What no `except Exception` catches."""


def blas_threads():
    return sorted((one["filepath"], one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas")


@pytest.fixture(autouse=True)
def others():
    """Threads that were there before the test: those of tests that ran before it in the same process."""
    BEFORE["threads"] = _thread._count()


BEFORE = {"threads": 0}


def our_threads():
    """The number of new threads that do not end by themselves at once; `threading` knows only those that it began itself."""
    for _ in range(100):
        found = _thread._count() - BEFORE["threads"]
        if found <= 0:
            return 0
        time.sleep(0.01)
    return found


class At:
    """A trace function that raises an error at the m-th line of the package that runs in this thread.

    It may come between the end of a `with` and its exit, where no signal can. So parallel.py, which has the locks, is left to
    the test with signals.
    """

    def __init__(self, line, error=Stop):
        self.left, self.error = line, error

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code.co_filename.endswith("parallel.py"):
            return None
        if event in ("call", "line"):
            self.left -= 1
            if self.left == 0:
                raise self.error
        return self

    def run(self, work):
        """Whether the error came."""
        before = sys.gettrace()
        try:
            sys.settrace(self)
            work()
        except self.error:
            return True
        finally:
            sys.settrace(before)
        return False


def lines_of(work):
    count = At(0)
    count.run(work)
    return -count.left


def same_objects(before, after):
    return before.keys() == after.keys() and all(before[name] is after[name] for name in before)


CASES = {
    "samples": ({}, SECOND),
    "sparse": ({}, sp.csr_matrix(SECOND)),
    "copies": ({"duplicates": "keep", "connect": False}, np.repeat(SECOND[:40], 2, axis=0)),
    "approximate": ({"neighbors": "approximate", "random_state": 0, "n_jobs": 2}, SECOND),
    "nearest": ({"model": "knn"}, SECOND),
}


# The error may come in a generator that is being closed, where Python can only report it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_fit_that_is_cut_short_anywhere_changes_nothing(case):
    options, X = CASES[case]
    learner = GraphLearner(4, **options).fit(FIRST)
    again = GraphLearner(4, **options).fit(X)  # what is compiled the first time is no part of the lines that are counted
    blas, total = blas_threads(), lines_of(lambda: again.fit(X))
    generator, came = random.Random(case), 0
    for at in sorted(generator.sample(range(1, total), 30)):
        before = dict(vars(learner))
        if not At(at).run(lambda: learner.fit(X)):  # threads share the lines, and this one had fewer
            continue
        came += 1
        assert same_objects(before, vars(learner)), at
        assert blas_threads() == blas, at
    assert came >= 20
    assert not our_threads()
    learner.fit(X)
    assert not hasattr(learner, "feature_names_in_")
    assert learner.ids_ is None
    assert learner.n_features_in_ == X.shape[1]
    assert abs(learner.graph_ - again.graph_).nnz == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_line_of_the_last_step_leaves_half_a_state():
    """The last lines of a fit one by one: all is as it was, or all is new."""
    learner, total = GraphLearner(4).fit(FIRST), lines_of(lambda: GraphLearner(4).fit(SECOND))
    seen, at, came = set(), total - 40, True
    while came:  # until the fit has ended before the line
        at += 1
        learner = GraphLearner(4).fit(FIRST)
        before = dict(vars(learner))
        came = At(at).run(lambda learner=learner: learner.fit(SECOND))
        is_old = same_objects(before, vars(learner))
        is_new = not any(before[name] is vars(learner).get(name) for name in ("graph_", "distances_", "solution_", "copy_of_"))
        assert is_old or (is_new and learner.n_features_in_ == 5 and not hasattr(learner, "feature_names_in_"))
        seen.add(is_old)
    assert seen == {True, False}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, ValueError, Stop])
def test_an_error_in_any_stage_changes_nothing(error):
    learner = GraphLearner(4).fit(FIRST)
    stages: list = []
    GraphLearner(4, verbose=lambda *said: stages.append(said)).fit(SECOND)
    before = {name: value for name, value in vars(learner).items() if name != "verbose"}
    for place in range(len(stages)):
        calls: list = []

        def listen(*said, calls=calls, place=place):
            calls.append(said)
            if len(calls) > place:
                raise error

        learner.set_params(verbose=listen)
        with pytest.raises(error):
            learner.fit(SECOND)
        assert same_objects(before, {name: value for name, value in vars(learner).items() if name != "verbose"})


def test_a_table_that_is_refused_changes_nothing():
    learner = GraphLearner(4).fit(FIRST)
    before = dict(vars(learner))
    for wrong in (np.full((20, 3), np.nan), SECOND[:3], [["a", "b"]], np.ones((20, 2))):
        with pytest.raises(ValueError, match=r"NaN|n_neighbors|convert|equal"):
            learner.fit(wrong)
        assert same_objects(before, vars(learner))


def interrupted_loop(*arguments):
    """What numba makes of an interrupt that comes in a compiled loop, at its worst."""
    try:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    except SystemError as error:
        raise SystemError("returned a result with an exception set") from error


@pytest.mark.parametrize(
    ("kernel", "work"),
    [
        ("smoothgraph._kernels.copies.hash_rows", lambda W: GraphLearner(4).fit(SECOND)),
        ("smoothgraph._kernels.lists.tidy_lists", lambda W: GraphLearner(4).fit(SECOND)),
        ("smoothgraph._kernels.lists.tidy_lists", lambda W: degree_path(SECOND, [3, 5])),
        ("smoothgraph._kernels.lists.keep_smallest", lambda W: FITTED.transform(SECOND[:5])),
        ("smoothgraph._kernels.systems.backward", lambda W: label_propagation(W, np.arange(90) % 3 - 1)),
        ("smoothgraph._kernels.systems.aggregate", lambda W: spectral_embedding(ring(600), 2)),
        ("smoothgraph._kernels.hops.hop_counts", lambda W: hops(W, 0)),
    ],
)
def test_an_interrupt_in_a_compiled_loop_is_an_interrupt(kernel, work, monkeypatch):
    blas = blas_threads()
    with monkeypatch.context() as patch:
        patch.setattr(kernel, interrupted_loop)
        with pytest.raises(KeyboardInterrupt):
            work(FITTED.graph_)
    assert blas_threads() == blas
    assert not our_threads()
    work(FITTED.graph_)


FITTED = GraphLearner(4).fit(SECOND)


def ring(n):
    return sp.csr_matrix((np.ones(2 * n), (np.r_[:n, :n], np.r_[1:n, 0, n - 1, : n - 1])), shape=(n, n))


def test_a_system_error_of_its_own_stays_one():
    with pytest.raises(SystemError, match="of its own"), Threads(1):
        raise SystemError("of its own")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_signals_at_any_moment():
    """Ctrl-C comes when it comes, in compiled loops too, with several threads at work."""
    X = blobs(2500, 8, np.random.default_rng(2))
    learner = GraphLearner(6, n_jobs=2).fit(FIRST)
    begin = time.perf_counter()
    expected = GraphLearner(6, n_jobs=2).fit(X).graph_
    seconds, blas, came = time.perf_counter() - begin, blas_threads(), 0
    generator = random.Random(0)
    before_handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(15):
            before = dict(vars(learner))
            try:
                signal.setitimer(signal.ITIMER_REAL, generator.uniform(0.001, seconds))
                learner.fit(X)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                came += 1
                assert same_objects(before, vars(learner)) or abs(learner.graph_ - expected).nnz == 0
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert blas_threads() == blas
            assert not our_threads()
    finally:
        signal.signal(signal.SIGALRM, before_handler)
    assert came
    assert abs(learner.fit(X).graph_ - expected).nnz == 0


INTERRUPTED = """
import _thread, random, signal, sys, time
import numpy as np
from threadpoolctl import threadpool_info
from smoothgraph import GraphLearner
from smoothgraph.parallel import Threads

def calls():
    with Threads(2) as threads:
        threads.waves(lambda *arguments: None, 5, 2)
        threads.map(lambda rows: None, 20, 1)
        threads.rows(lambda *arguments: None, 16, least=1)

def fit():
    GraphLearner(4, n_jobs=2).fit(X)

def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin

def interrupted(work, times):
    longest = min(seconds(work) for _ in range(5))
    for _ in range(times):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, generator.uniform(1e-6, longest))
                work()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            yield 1

X, generator = np.random.default_rng(0).normal(size=(300, 4)), random.Random(0)
fit()
blas, idle = [one["num_threads"] for one in threadpool_info()], _thread._count()
signal.signal(signal.SIGALRM, signal.default_int_handler)
came = sum(interrupted(calls, 3000)), sum(interrupted(fit, 200))
assert min(came) > 50, came
time.sleep(0.2)
assert _thread._count() == idle
assert [one["num_threads"] for one in threadpool_info()] == blas
busy = Threads(2).map(lambda rows: time.sleep(0.05) or _thread.get_ident(), 4, 1)
assert len(set(busy)) == 2, "threads are taken for busy that are not"
print("done")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_no_interrupt_among_thousands_leaves_threads_waiting():
    """An interrupt that comes between taking a lock and being bound to give it back would stop all threads for ever."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("done", 0), done.stderr


@pytest.mark.parametrize("call", ["rows", "map", "waves"])
def test_after_an_error_no_thread_begins_another_piece(call):
    begun: list = []
    fails = threading.Event()

    def work(*arguments):
        begun.append(arguments)
        if threading.current_thread() is threading.main_thread():
            fails.set()
            raise Stop
        fails.wait(30)
        time.sleep(0.05)  # the others get the time to see it

    threads = Threads(2)
    calls = {
        "rows": lambda: threads.rows(work, 16, least=1),
        "map": lambda: threads.map(work, 200, 1),
        "waves": lambda: threads.waves(work, 100, 2),
    }
    with pytest.raises(Stop), threads:
        calls[call]()
    assert len(begun) <= 2
    assert not our_threads()
