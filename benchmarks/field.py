"""The field in one table: 15 neighbours of every sample, by our searches and by the libraries one would take instead.

Each library has a process of its own and all cores. Cold is this whole process, from its start over the file with the samples
to the file with the lists, with all that is imported and compiled on the way; memory is the peak of that. Warm is a second call
in the same process. Where a setting trades time for recall, the first of a few that reaches a recall of 0.95 is in the table,
or the last; what was tried before it is not counted. Recall is judged here, for all alike, from 500 rows that are compared with
every sample. A process that has not saved its lists after 100 seconds is given up. Our kernels are on disk, as after the first
fit on a machine; pynndescent compiles its own in every process.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.cold import GOOD_RECALL, PEAK, compile_ours
from benchmarks.neighbors import OURS, K, judged
from smoothgraph.distances import distances_of
from smoothgraph.neighbors.lists import RecallSample
from smoothgraph.parallel import Threads

SIZES = (
    ("mnist", 60_000),
    ("words_sample", 100_000),
    ("molecules", 1_000_000),
)
LIMIT = 100  # seconds
# The process waits for a line between the two calls, so that the second is made only where the first was good enough.
PROCESS = """
import json, signal, sys, time
signal.alarm(int(sys.argv[4]))
import numpy as np
X, K, setting = np.load(sys.argv[1]), int(sys.argv[3]), int(sys.argv[5])
def search():
{search}
    return lists
np.save(sys.argv[2], search())
print(json.dumps({{"saved_at": time.time(), "peak_gb": peak_gb()}}), flush=True)
signal.alarm(0)
if sys.stdin.readline():
    signal.alarm(int(sys.argv[4]))
    start = time.perf_counter()
    search()
    print(json.dumps(time.perf_counter() - start))
"""
# What a library is called with, and the settings to try: each has the name that the library has for it. Lists that begin with
# the sample itself are K + 1 long.
LIBRARIES = {
    "smoothgraph, approximate": (OURS.format(name="approximate"), "", [0]),
    "smoothgraph, exact": (OURS.format(name="exact"), "", [0]),
    "pynndescent": (
        """
from pynndescent import NNDescent
lists = NNDescent(X, n_neighbors=setting, random_state=0).neighbor_graph[0][:, : K + 1]
""",
        "n_neighbors",
        [K + 1, 30, 60],
    ),
    "faiss, IVF": (
        """
import faiss
index = faiss.index_factory(X.shape[1], f"IVF{int(4 * len(X) ** 0.5)},Flat")
index.train(X)
index.add(X)
index.nprobe = setting
lists = index.search(X, K + 1)[1]
""",
        "nprobe",
        [8, 16, 32, 64, 128],
    ),
    "faiss, NN-descent": (
        """
import faiss
index = faiss.IndexNNDescentFlat(X.shape[1], setting)
index.add(X)
lists = faiss.vector_to_array(index.nndescent.final_graph).reshape(len(X), setting)[:, :K]
""",
        "K",
        [K + 1, 32, 64],
    ),
    "usearch": (
        """
from usearch.index import Index
index = Index(ndim=X.shape[1], metric="l2sq", dtype="f32", expansion_search=setting)
index.add(np.arange(len(X)), X)
lists = index.search(X, K + 1).keys.astype(np.int64)
""",
        "expansion_search",
        [64, 128, 256],
    ),
    "hnswlib": (
        """
import hnswlib
index = hnswlib.Index("l2", X.shape[1])
index.init_index(len(X), M=16, ef_construction=200)
index.add_items(X)
index.set_ef(setting)
lists = index.knn_query(X, K + 1)[0].astype(np.int64)
""",
        "ef",
        [K + 1, 50, 100, 200],
    ),
    "pipnn": (
        """
from pipnn import self_knn_graph
lists = self_knn_graph(X, K, runs=setting)[0]
""",
        "runs",
        [1, 2, 4],
    ),
    "scikit-learn": (
        """
from sklearn.neighbors import NearestNeighbors
lists = NearestNeighbors(n_neighbors=K, n_jobs=-1).fit(X).kneighbors(return_distance=False)
""",
        "",
        [0],
    ),
}


def run():
    compile_ours()
    for name, n in SIZES:
        yield from rows(name.replace("_", " "), data.some(name, n))


def rows(name, X, libraries=LIBRARIES):
    """What each library does with these samples."""
    distances = distances_of(X)
    sampled = RecallSample(distances, K, threads=Threads())
    title = f"{name} {len(X):,} x {X.shape[1]}"
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        for library, (code, parameter, settings) in libraries.items():
            row = {"benchmark": f"{K} neighbours of every sample, {title}: {library}", "data": title, "library": library}
            yield row | cheapest(code, parameter, settings, Path(folder), lambda lists: judged(distances, sampled, lists))


def cheapest(code, parameter, settings, folder, judge):
    """What the first setting took that is good enough, or the last; or that it was given up."""
    for setting in settings:
        shown = {"setting": f"{parameter}={setting}"} if parameter else {}
        begin = time.time()
        with started(code, setting, folder) as process:
            first = process.stdout.readline()
            if not first:
                return shown | {"ended": why_ended(process, folder)}
            cold, recall = json.loads(first), judge(np.load(folder / "lists.npy"))
            if recall < GOOD_RECALL and setting != settings[-1]:
                process.communicate()
                continue
            second, _ = process.communicate("again\n")
        warm = {"warm_seconds": json.loads(second)} if second else {}
        return shown | {"cold_seconds": cold["saved_at"] - begin, **warm, "recall": recall, "peak_gb": cold["peak_gb"]}


def started(code, setting, folder):
    """The process of a library. What it says on stderr goes to a file, which cannot be full as a pipe can."""
    script = PEAK + PROCESS.format(search=code.replace("\n", "\n    "))
    files = str(folder / "X.npy"), str(folder / "lists.npy")
    command = [sys.executable, "-c", script, *files, str(K), str(LIMIT), str(setting)]
    with (folder / "stderr").open("w") as told:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True)


def why_ended(process, folder):
    """Why a process has no lists: it was given up, or it failed."""
    process.communicate()
    if process.returncode == -signal.SIGALRM:
        return f"given up after {LIMIT} s"
    return (folder / "stderr").read_text().strip().splitlines()[-1]
