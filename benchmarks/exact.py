"""Exact lists: by bounds, as `neighbors="exact"` makes them, against brute force in the same process.

Brute force is what it falls back to where bounds would not pay: uniform noise in 100 dimensions is the worst case, where trying
is all that it costs.
"""

import time

import numpy as np

from benchmarks import data
from smoothgraph.distances import distances_of
from smoothgraph.neighbors.exact import brute_force, search_exact
from smoothgraph.parallel import Threads

K = 30
WANTED = {"mnist": 0.4, "molecules": 0.25, "noise": 1.1}


def run():
    for name, n in (("mnist", 60_000), ("molecules", 150_000), ("noise", 50_000)):
        yield measure(name, noise(n) if name == "noise" else np.unique(data.some(name, n), axis=0))


def noise(n):
    return np.random.default_rng(0).random((n, 100), dtype=np.float32)


def measure(name, X):
    search_exact(distances_of(X[:25_000]), K, threads=Threads())  # so that loading our kernels is not measured
    ours, seconds, cpu = timed(search_exact, X)
    brute, brute_seconds, brute_cpu = timed(brute_force, X)
    same = np.array_equal(ours.by_rows().distances, brute.by_rows().distances)
    return {
        "benchmark": f"exact lists of {K}, {name} {len(X):,} x {X.shape[1]}",
        "seconds": seconds,
        "brute_force_seconds": brute_seconds,
        "ratio": seconds / brute_seconds,
        "cpu_ratio": cpu / brute_cpu,
        "same_distances": same,
        "wanted": f"ratio <= {WANTED[name]}, same distances",
        "ok": seconds <= WANTED[name] * brute_seconds and same,
    }


def timed(search, X):
    start, cpu = time.perf_counter(), time.process_time()
    lists = search(distances_of(X), K, threads=Threads())
    return lists, time.perf_counter() - start, time.process_time() - cpu
