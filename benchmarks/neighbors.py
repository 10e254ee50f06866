"""Exact against approximate search in a new process: where `neighbors="auto"` should change from one to the other."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys, time
import numpy as np
from smoothgraph import datasets
from smoothgraph.neighbors import choose_backend, find_neighbors
from smoothgraph.samples import Samples
X = getattr(datasets, sys.argv[1])().X
some = np.random.default_rng(0).permutation(len(X))[:int(sys.argv[2])]
samples = Samples(X[some].astype(np.float32))
start = time.perf_counter()
lists = find_neighbors(samples, 15, choose_backend(sys.argv[3], samples, random_state=0))
print(json.dumps({"seconds": time.perf_counter() - start, "recall": lists.recall}))
"""
SIZES = (("mnist", 30_000), ("forest_cover", 100_000), ("words_sample", 100_000), ("molecules", 150_000))


def run():
    for name, n in SIZES:
        exact, approximate = (cold(name, n, backend) for backend in ("exact", "approximate"))
        yield {
            "benchmark": f"15 neighbours in a cold process, {name} {n:,}",
            "exact_seconds": exact["seconds"],
            "approximate_seconds": approximate["seconds"],
            "approximate_recall": approximate["recall"],
            "ratio": exact["seconds"] / approximate["seconds"],
        }


def cold(name, n, backend):
    done = subprocess.run([sys.executable, "-c", SCRIPT, name, str(n), backend], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)
