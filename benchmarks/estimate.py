"""What `GraphLearner.estimate` says against the peak of a process that opens X as a memory map and fits: memory within 25 %."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import data
from smoothgraph import GraphLearner

SCRIPT = """
import json, sys, time
import numpy as np
begin = time.perf_counter()
from smoothgraph import GraphLearner
X = np.load(sys.argv[1], mmap_mode="r")
learner = GraphLearner(**json.loads(sys.argv[2]), random_state=0).fit(X)
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print(json.dumps({"peak": peak, "search": learner.neighbors_, "seconds": time.perf_counter() - begin}))
"""
CASES = (  # kind of samples, n, d, dtype, parameters
    ("mixture", 1_000, 10, "float64", {}),
    ("mixture", 20_000, 3000, "float32", {}),
    ("mixture", 10_000, 3000, "float64", {"n_neighbors": 5}),
    ("mixture", 100_000, 2, "float64", {"n_neighbors": 10}),
    ("mixture", 50_000, 20, "float32", {"n_neighbors": 30, "neighbors": "exact"}),
    ("mixture", 100_000, 68, "float32", {"n_neighbors": 15}),
    ("mixture", 100_000, 68, "float64", {"n_neighbors": 30}),
    ("mixture", 200_000, 10, "float64", {"n_neighbors": 5, **data.PAPER}),
    ("mixture", 100_000, 50, "float32", {"n_neighbors": 10, "model": "l2"}),
    ("mixture", 100_000, 50, "float32", {"n_neighbors": 10, "model": "knn"}),
    ("noise", 8_000, 3000, "float32", {"neighbors": "exact"}),  # distances are nearly equal: many pairs are let in at the end
    ("noise", 8_000, 3000, "float64", {"neighbors": "exact"}),
    ("molecules", 1_000_000, 68, "float32", {"n_neighbors": 5, **data.PAPER}),
    ("molecules", 1_000_000, 68, "float32", {"n_neighbors": 15}),
)
BLOCK = 20_000  # samples that are made at a time


def write(path, kind, n, d, dtype):
    """Samples as an npy: molecules; noise; or 30 clusters that have 8 dimensions each, and a little noise in the others."""
    if kind == "molecules":
        np.save(path, data.some("molecules", n).astype(dtype))
        return
    if kind == "noise":
        np.save(path, np.random.default_rng(0).normal(size=(n, d)).astype(dtype))
        return
    rng, inner = np.random.default_rng(0), min(d, 8)
    centres, axes = 2.0 * rng.normal(size=(30, d)), rng.normal(size=(30, inner, d)) / np.sqrt(inner)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(n, d))
    for begin in range(0, n, BLOCK):
        block = X[begin : begin + BLOCK]
        cluster = rng.integers(30, size=len(block))
        for one in range(30):
            rows = np.flatnonzero(cluster == one)
            block[rows] = centres[one] + rng.normal(size=(rows.size, inner)) @ axes[one] + 0.1 * rng.normal(size=(rows.size, d))
    X.flush()


def run():
    for kind, n, d, dtype, parameters in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            write(path, kind, n, d, dtype)
            command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(parameters)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        seen, said = json.loads(done.stdout.splitlines()[-1]), GraphLearner(**parameters).estimate(n, d, dtype)
        yield {
            "benchmark": f"estimate, {kind} {n:,} x {d} {dtype}, {json.dumps(parameters)}",
            "search": seen["search"],
            "peak_gb": seen["peak"] / 1e9,
            "estimated_gb": said.memory / 1e9,
            "memory_ratio": said.memory / seen["peak"],
            "seconds": seen["seconds"],
            "estimated_seconds": said.seconds,
            "wanted": "memory_ratio from 0.75 to 1.25; seconds within a factor of 2 where nothing else runs",
            "ok": 0.75 <= said.memory / seen["peak"] <= 1.25 and said.search == seen["search"],
        }
