"""From a data file to a saved graph in a cold process: the learned graph against pynndescent's 15-NN graph of the same data."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data
from smoothgraph.distances import distances_of
from smoothgraph.neighbors.lists import RecallSample
from smoothgraph.parallel import Threads

K, LIST = 15, 15
# The peak of this process alone: what getrusage says is at least the memory of the process that started it.
PEAK = """
def peak_gb():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1e6
"""
OURS = """
import json, sys, time
import numpy as np
import scipy.sparse as sp
from smoothgraph import GraphLearner
X = np.load(sys.argv[1], mmap_mode="r")
learner = GraphLearner(int(sys.argv[3]), random_state=0).fit(X)
sp.save_npz(sys.argv[2], learner.graph_, compressed=False)
print(json.dumps({"recall": learner.recall_, "search": learner.neighbors_, "degree": learner.n_neighbors_,
    "gap": learner.solution_.gap, "nodes_not_certified": learner.n_incomplete_, "stages": learner.seconds_,
    "cpu_seconds": time.process_time(), "peak_gb": peak_gb()}))
"""
THEIRS = """
import json, sys
import numpy as np
from pynndescent import NNDescent
X = np.load(sys.argv[1])
lists, distances = NNDescent(X, n_neighbors=int(sys.argv[3]) + 1, random_state=0).neighbor_graph
np.savez(sys.argv[2], lists=lists, distances=distances)
print(json.dumps({"peak_gb": peak_gb()}))
"""


def run():
    for name, n in (("mnist", 60_000), ("forest_cover", 100_000), ("molecules", 1_000_000)):
        with tempfile.TemporaryDirectory() as folder:
            yield measure(name.replace("_", " "), data.some(name, n), Path(folder))


def measure(name, X, folder):
    np.save(folder / "X.npy", X)
    ours, ours_seconds = cold(OURS, folder, K)
    theirs, theirs_seconds = cold(THEIRS, folder, LIST)
    sampled = RecallSample(distances_of(X), LIST, threads=Threads())
    with np.load(folder / "graph.npz") as file:  # lists that begin with the sample itself
        recall = sampled.recall(np.square(file["distances"][sampled.nodes, 1:]) * (1 - 1e-6))
    own_recall = sampled.recall(data.lists_of(X, 2 * K).distances[sampled.nodes])
    return {
        "benchmark": f"data file to saved graph, cold process, {name} {X.shape[0]:,} x {X.shape[1]}, k={K}",
        "seconds": ours_seconds,
        "pynndescent_seconds": theirs_seconds,
        "ratio": ours_seconds / theirs_seconds,
        **ours,
        "recall_of_15_nearest": own_recall,
        "pynndescent_recall": recall,
        "pynndescent_peak_gb": theirs["peak_gb"],
        "wanted": "ratio <= 1.0, recall no lower",
        "ok": ours_seconds <= theirs_seconds and own_recall >= recall,
    }


def cold(script, folder, k, *more):
    """What the process printed, and the seconds from its start to its end, by the clock."""
    start = time.perf_counter()
    command = [sys.executable, "-c", PEAK + script, str(folder / "X.npy"), str(folder / "graph.npz"), str(k), *more]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]), time.perf_counter() - start
