"""Several fits at once, in threads and in forked children: the graphs are those of one fit alone, to the bit."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from smoothgraph import GraphLearner

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
