"""Many fits in one process: memory, threads and open handles stay flat, and every graph has the bits of the first of its kind.

A case is a number of fits of some fixed problems in a random order. The figures are the slope of a line through the memory of
the later half, and how many threads and handles there are more than when the first half had ended.

An allocator takes and returns some megabytes now and then, in an order that depends on threads: one such step looks like
growth. What really grows goes on growing: so where memory grew, as many fits again are made, twice at most, and judged alone.
"""

import contextlib
import os
import warnings
from pathlib import Path

import numpy as np

from torture.kinds import FaultError, Outcome

SETUPS = [  # (samples, features, parameters)
    (30, 2, {}),
    (60, 3, {"locality": 0.0, "connect": False}),
    (200, 5, {}),
    (400, 8, {"n_jobs": 2}),
    (150, 4, {"model": "l2"}),
    (60, 3, {"model": "hard"}),
    (80, 3, {"model": "knn-self-tuning"}),
    (300, 20, {"neighbors": "approximate", "random_state": 0}),
    (100, 3, {"metric": "cosine", "duplicates": "keep"}),
    (120, 3, {"max_weight": 0.2}),
]
MOST_GROWTH = 2048.0  # bytes per fit: a thousand fits may leave two megabytes, what an allocator does in a thousand steps
TIMES = 3  # that memory has to grow, in as many fits each time
PAGE = os.sysconf("SC_PAGE_SIZE")


def case(rng: np.random.Generator) -> dict:
    return {"seed": int(rng.integers(1 << 30)), "fits": 1000}


def check(case: dict) -> Outcome:
    rng = np.random.default_rng(case["seed"])
    tables = [rng.normal(size=(n, d)) for n, d, _ in SETUPS]
    first: dict[int, tuple] = {}
    made = 0
    for _ in range(TIMES):
        memory, threads, handles = _later_half(case["fits"], tables, rng, first)
        made += case["fits"]
        slope = float(np.polyfit(np.arange(memory.size), memory, 1)[0]) if memory.size > 2 else 0.0
        if slope <= MOST_GROWTH or case["fits"] < 500:
            break
    else:
        raise FaultError(f"memory grows by {slope:.0f} bytes per fit, also after {made} fits")
    figures = {
        "bytes of memory per fit": slope,
        "threads more": threads[-1] - threads[0],
        "handles more": handles[-1] - handles[0],
    }
    if figures["threads more"] > 0 or figures["handles more"] > 0:
        more = f"{threads[-1] - threads[0]:.0f} threads and {handles[-1] - handles[0]:.0f} handles more"
        raise FaultError(f"after {made} fits there are {more}")
    return Outcome("with the bits of the first", count=made, figures=figures)


def _later_half(fits: int, tables, rng, first: dict[int, tuple]) -> np.ndarray:
    """Memory, threads and handles (3, fits/2) after each fit of the later half; `first` has the graphs that were seen first."""
    seen = []
    for fit in range(fits):
        which = fit % len(SETUPS) if fit < len(SETUPS) else int(rng.integers(len(SETUPS)))
        graph = _bits(tables[which], SETUPS[which][2])
        if first.setdefault(which, graph) != graph:
            raise FaultError(f"fit {fit} of {SETUPS[which]} has other bits than the first")
        seen.append((_memory(), _count("task"), _count("fd")))
    return np.array(seen, dtype=float)[len(seen) // 2 :].T


def _bits(X, parameters) -> tuple:
    """A graph as what can be compared; before it a fit fails on purpose, since that must leave nothing behind either."""
    from smoothgraph import GraphLearner

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ValueError):
            GraphLearner(10**6).fit(X)
        W = GraphLearner(**{"n_neighbors": 6, "n_jobs": 1, **parameters}).fit(X).graph_
    return W.indptr.tobytes(), W.indices.tobytes(), W.data.tobytes()


def _memory() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def _count(what) -> int:
    """Threads ("task") or open handles ("fd") of this process."""
    return len(os.listdir(f"/proc/self/{what}"))


def smaller(case: dict):
    if case["fits"] > 20:
        yield case | {"fits": case["fits"] // 2}
