"""Several fits at once, in threads and in forked children: the graphs are those of one fit alone, to the bit."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from smoothgraph import GraphLearner
from smoothgraph.parallel import Threads, one_blas_thread, thread_count

TIMEOUT = 240  # seconds after which a process that hangs has failed; it takes a few

COMMON = """
import sys
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from smoothgraph import GraphLearner

def fit(seed):
    X = np.random.default_rng(seed).normal(size=(3000, 6))
    return GraphLearner(5, neighbors="approximate", random_state=0, connect=True).fit(X).graph_

def same(A, B):
    return np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices) and np.array_equal(A.data, B.data)
"""
FORK = (
    COMMON
    + """
import os
here = fit(0)
child = os.fork()
if child == 0:
    os._exit(0 if same(fit(0), here) else 1)
_, status = os.waitpid(child, 0)
assert same(fit(0), here)
print("child", os.waitstatus_to_exitcode(status))
"""
)
AT_ONCE = (
    COMMON
    + """
alone = [fit(seed) for seed in range(2)]
with ThreadPoolExecutor(2) as pool:
    together = list(pool.map(fit, range(2)))
print("same", all(same(a, b) for a, b in zip(alone, together, strict=True)))
"""
)


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def assert_same(A, B):
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(A, name), getattr(B, name))


def test_eight_fits_at_once():
    tables = [np.random.default_rng(seed).normal(size=(400, 4)) for seed in range(8)]
    options = [{}, {"connect": True}, {"model": "l2"}, {"locality": 1.0}] * 2

    def fit(case):
        return GraphLearner(4, n_jobs=2, **options[case]).fit(tables[case]).graph_

    alone = [fit(case) for case in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(fit, range(8)))
    for A, B in zip(alone, together, strict=True):
        assert_same(A, B)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_after_a_fit_can_fit_too():
    assert run(FORK) == "child 0"


def test_two_fits_at_once_where_numba_has_only_its_own_threads():
    assert run(AT_ONCE, NUMBA_THREADING_LAYER="workqueue") == "same True"


@pytest.mark.parametrize(
    "options",
    [{"connect": True}, {"model": "l2", "connect": True}, {"locality": 0.75}, {"neighbors": "approximate", "random_state": 0}],
)
@pytest.mark.parametrize("threaded_nodes", [80_000, 2000])
def test_the_number_of_threads_changes_no_bit(options, threaded_nodes, rng, monkeypatch):
    """Above 5,000 nodes sweeps go by blocks; from `threaded_nodes` on these run in threads with barriers between the waves."""
    monkeypatch.setattr("smoothgraph.solvers.sweeps.THREADED_NODES", threaded_nodes)
    X = rng.normal(size=(6000, 3))
    one = GraphLearner(4, n_jobs=1, **options).fit(X)
    for n_jobs in (2, 3):
        several = GraphLearner(4, n_jobs=n_jobs, **options).fit(X)
        assert_same(several.graph_, one.graph_)
        np.testing.assert_array_equal(several.solution_.dual, one.solution_.dual)
        assert several.theta_ == one.theta_


# --- pools of others --------------------------------------------------------------------------------------------------------


def fit_seed(seed):
    """A graph as arrays, which pools can send back, and the number of threads that a fit takes there."""
    W = GraphLearner(4).fit(np.random.default_rng(seed).normal(size=(300, 4))).graph_
    return W.indptr, W.indices, W.data, thread_count(None)


def assert_as_alone(results):
    for seed, result in enumerate(results):
        for found, expected in zip(result[:3], fit_seed(seed)[:3], strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend):
    results = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(fit_seed)(seed) for seed in range(4))
    assert_as_alone(results)
    if backend == "loky":
        assert sum(result[3] for result in results[:2]) <= max(2, joblib.cpu_count())


def threads_in_a_process(seeds):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(fit_seed, seeds))


def test_threads_inside_processes():
    halves = joblib.Parallel(n_jobs=2)(joblib.delayed(threads_in_a_process)(part) for part in ([0, 1], [2, 3]))
    assert_as_alone(halves[0] + halves[1])


DASK = (
    COMMON
    + """
from dask.distributed import Client, LocalCluster

def arrays(seed):
    from smoothgraph.parallel import thread_count
    W = fit(seed)
    return W.indptr, W.indices, W.data, thread_count(None)

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            found = client.gather(client.map(arrays, range(2)))
    for seed in range(2):
        W = fit(seed)
        assert all(np.array_equal(a, b) for a, b in zip((W.indptr, W.indices, W.data), found[seed]))
    print("same", [one[3] for one in found])
"""
)


def test_dask_with_processes(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "dask_fits.py"
    script.write_text(DASK)
    done = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout.strip() == "same [1, 1]", done.stderr  # dask sets OMP_NUM_THREADS for its workers


@pytest.mark.parametrize(
    ("setting", "count"), [("1", 1), ("1,2", 1), ("999", joblib.cpu_count()), ("none", joblib.cpu_count())]
)
def test_the_environment_bounds_the_threads(setting, count, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert thread_count(None) == thread_count(-1) == count
    assert thread_count(3) == 3


def test_fits_at_once_share_the_threads():
    """Never more threads of ours at work than one fit alone may have, besides those that called."""
    callers, at_work, most = set(), set(), []

    def work(rows):
        thread = threading.get_ident()
        if thread not in callers:
            at_work.add(thread)
            most.append(len(at_work))
        time.sleep(0.001)
        at_work.discard(thread)

    def caller(_):
        callers.add(threading.get_ident())
        with Threads(3) as threads:
            for _ in range(10):
                threads.map(work, 12, 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(caller, range(8)))
    assert 1 <= max(most) <= 2


# --- limits of BLAS ---------------------------------------------------------------------------------------------------------


def blas_threads():
    return sorted((one["filepath"], one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas")


@pytest.fixture
def two_blas_threads():
    """As on a machine with two cores, wherever the tests run."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield blas_threads()


@pytest.mark.parametrize("order", ["theirs ends first", "ours ends first", "nested"])
def test_limits_of_others_that_overlap_ours_are_not_undone(two_blas_threads, order):
    """scikit-learn limits BLAS too, in other threads, and puts back what it saw."""
    if order == "nested":
        with threadpool_limits(limits=1, user_api="blas"), one_blas_thread:
            pass
    elif order == "theirs ends first":
        theirs = threadpool_limits(limits=1, user_api="blas")
        with one_blas_thread:
            theirs.restore_original_limits()
    else:
        with one_blas_thread, threadpool_limits(limits=1, user_api="blas"):
            pass
    assert blas_threads() == two_blas_threads


@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_a_limit_around_calls_that_overlap_brings_the_number_back(two_blas_threads, who):
    """A limit that begins in another one and ends after it puts back what it saw: the guide asks for one around all."""
    with threadpool_limits(limits=1, user_api="blas"):
        with contextlib.ExitStack() as first:
            first.enter_context(one_blas_thread if who == "ours" else threadpool_limits(limits=1, user_api="blas"))
            second = threadpool_limits(limits=1, user_api="blas")
        second.restore_original_limits()
        assert {count for _, count in blas_threads()} == {1}
    assert blas_threads() == two_blas_threads


def test_limits_come_back_whatever_the_order_in_which_fits_end(two_blas_threads):
    """Every order in which four callers can enter and leave, with errors."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        steps = [threading.Event() for _ in range(8)]
        done = [threading.Event() for _ in range(8)]
        first = rng.permutation(8)
        times = [sorted(pair) for pair in first.reshape(4, 2)]

        def caller(enter, leave, steps=steps, done=done):
            steps[enter].wait()
            try:
                with Threads(1), one_blas_thread:
                    done[enter].set()
                    steps[leave].wait()
                    raise ZeroDivisionError
            except ZeroDivisionError:
                done[leave].set()

        callers = [threading.Thread(target=caller, args=pair) for pair in times]
        for one in callers:
            one.start()
        for step, ended in zip(steps, done, strict=True):
            step.set()
            ended.wait()
        for one in callers:
            one.join()
        assert blas_threads() == two_blas_threads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_during_a_fit_can_fit(tmp_path):
    """The child has none of the threads that held locks and limits, and waits for none of them."""
    script = (
        COMMON
        + """
import os, threading, time, warnings
from threadpoolctl import threadpool_info
from smoothgraph.parallel import one_blas_thread
expected, blas = fit(0), [one["num_threads"] for one in threadpool_info()]
inside, leave = threading.Event(), threading.Event()
def hold():
    with one_blas_thread, one_blas_thread._lock:
        inside.set()
        leave.wait()
holder = threading.Thread(target=hold)
holder.start()
inside.wait()
child = os.fork()
if child == 0:
    os._exit(0 if same(fit(0), expected) and [one["num_threads"] for one in threadpool_info()] == blas else 1)
_, status = os.waitpid(child, 0)
leave.set()
holder.join()
print("child", os.waitstatus_to_exitcode(status), [one["num_threads"] for one in threadpool_info()] == blas)
"""
    )
    assert run(script) == "child 0 True"
