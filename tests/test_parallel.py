"""Threads: the same result for any number of them, no deadlock, and nothing left changed."""

import pickle
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from smoothgraph.parallel import Threads, blocks


def squares(first, last, values, out):
    for i in range(first, last):
        out[i] = values[i] * values[i]


def cells(first_wave, last_wave, first_lane, last_lane, table):
    """Each cell of a wave is one more than the largest of the wave before, which must be there."""
    for wave in range(first_wave, last_wave):
        before = 0 if wave == 0 else table[wave - 1].max()
        for lane in range(first_lane, last_lane):
            table[wave, lane] = before + 1


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_rows_blocks_and_waves_are_those_of_one_thread(n_jobs, rng):
    threads, values = Threads(n_jobs), rng.normal(size=10_007)
    out = np.full(values.size, np.nan)
    threads.rows(squares, values.size, values, out, least=100)
    np.testing.assert_array_equal(out, values * values)
    parts = threads.map(lambda rows: values[rows].sum(), values.size, 1000)
    assert len(parts) >= n_jobs
    assert np.sum(parts) == pytest.approx(values.sum())
    table = np.zeros((40, 16), int)
    threads.waves(cells, 40, 16, table)
    np.testing.assert_array_equal(table, np.repeat(np.arange(1, 41)[:, None], 16, axis=1))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_few_rows_and_none(n):
    out = np.zeros(n)
    Threads(3).rows(squares, n, np.full(n, 2.0), out)
    assert (out == 4.0).all()
    covered = Threads(3).map(lambda rows: list(range(n))[rows], n, 2)
    assert [row for part in covered for row in part] == list(range(n))
    assert [row for part in blocks(n, 2) for row in range(part.start, part.stop)] == list(range(n))


def test_work_inside_work_runs_and_does_not_wait_for_itself():
    threads, out = Threads(2), np.zeros((8, 1000))

    def inner(rows):
        threads.rows(squares, 1000, np.full(1000, 3.0), out[rows.start], least=10)
        threads.waves(cells, 5, 16, np.zeros((5, 16), int))
        return threads.map(lambda part: part.start, 10, 1)

    done: list = []
    caller = threading.Thread(target=lambda: done.append(threads.map(inner, 8, 1)), daemon=True)
    caller.start()
    caller.join(timeout=60)
    assert done, "threads wait for each other"
    assert (out == 9.0).all()


@pytest.mark.parametrize("call", ["rows", "map", "waves"])
def test_an_error_in_any_thread_reaches_the_caller_and_harms_nothing(call):
    threads = Threads(3)

    def failing(*arguments):
        where = arguments[0].start if call == "map" else arguments[2 if call == "waves" else 0]
        if where > 0:
            raise ZeroDivisionError("in a thread")

    size = {"rows": (10_000,), "map": (100, 10), "waves": (4, 16)}[call]
    with pytest.raises((ZeroDivisionError, threading.BrokenBarrierError)):
        getattr(threads, call)(failing, *size, **({"least": 10} if call == "rows" else {}))
    out = np.zeros(10_000)
    threads.rows(squares, out.size, np.full(out.size, 2.0), out, least=10)
    assert (out == 4.0).all()


def test_a_pickled_object_has_threads_of_its_own():
    threads = Threads(2)
    threads.map(lambda rows: None, 10, 1)
    again, out = pickle.loads(pickle.dumps(threads)), np.zeros(1000)
    again.rows(squares, 1000, np.full(1000, 2.0), out, least=10)
    assert again.count == 2
    assert (out == 4.0).all()


def test_blas_has_its_threads_back_when_the_last_caller_leaves():
    def counts():
        return sorted((info["filepath"], info["num_threads"]) for info in threadpool_info() if info["user_api"] == "blas")

    before, inside = counts(), []

    def caller(seed):
        A = np.random.default_rng(seed).normal(size=(60, 60))
        for _ in range(20):
            Threads(2).map(lambda rows: A[rows] @ A, 60, 10)
            inside.append(1)

    callers = [threading.Thread(target=caller, args=(seed,)) for seed in range(6)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert len(inside) == 120
    assert counts() == before
    within = Threads(2).map(lambda rows: max(count for _, count in counts()), 2, 1)
    assert set(within) == {1}
