"""15 neighbours of every sample in a cold process: our searches next to the libraries one would take instead.

Seconds are from the data in memory to the lists, with whatever a library imports and compiles on the way. Recall is judged
here, for all of them alike: from 500 rows held against every sample. `neighbors="auto"` takes the faster of our two. The
last row is of sparse samples, which few libraries take.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from smoothgraph.distances import distances_of
from smoothgraph.neighbors.lists import RecallSample
from smoothgraph.parallel import Threads

K = 15
SIZES = (("mnist", 60_000), ("forest_cover", 100_000), ("words_sample", 100_000), ("molecules", 150_000))
FRAME = """
import json, sys, time
import numpy as np
import scipy.sparse as sp
X, K = np.load(sys.argv[1]) if sys.argv[1].endswith(".npy") else sp.load_npz(sys.argv[1]), int(sys.argv[3])
start = time.perf_counter()
{search}
np.save(sys.argv[2], lists)
print(json.dumps(time.perf_counter() - start))
"""
OURS = """
from smoothgraph.distances import distances_of
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads
lists = find_neighbors(distances_of(X), K, "{name}", random_state=0, threads=Threads()).by_rows().indices
"""
SEARCHES = {  # lists that begin with the sample itself are K + 1 long
    "exact": OURS.format(name="exact"),
    "approximate": OURS.format(name="approximate"),
    "pynndescent": """
from pynndescent import NNDescent
lists = NNDescent(X, n_neighbors=K + 1, random_state=0).neighbor_graph[0]
""",
    "usearch": """
from usearch.index import Index
index = Index(ndim=X.shape[1], metric="l2sq", dtype="f32")
index.add(np.arange(len(X)), X)
lists = index.search(X, K + 1).keys.astype(np.int64)
""",
    "faiss": """
import faiss
index = faiss.index_factory(X.shape[1], f"IVF{int(4 * len(X) ** 0.5)},Flat")
index.train(X)
index.add(X)
index.nprobe = 32
lists = index.search(X, K + 1)[1]
""",
}
SPARSE_SEARCHES = {
    "approximate": SEARCHES["approximate"],
    "pynndescent": SEARCHES["pynndescent"],
    "brute": """
from sklearn.neighbors import NearestNeighbors
lists = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=-1).fit(X).kneighbors(return_distance=False)
""",
}


def run():
    for name, n in SIZES:
        yield measure(name, data.some(name, n), SEARCHES)
    yield measure("texts", data.texts(100_000), SPARSE_SEARCHES)


def measure(name, X, searches):
    row = {"benchmark": f"{K} neighbours in a cold process, {name} {X.shape[0]:,} x {X.shape[1]}"}
    distances = distances_of(X)
    sampled = RecallSample(distances, K, threads=Threads())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ("X.npz" if sp.issparse(X) else "X.npy")
        sp.save_npz(file, X) if sp.issparse(X) else np.save(file, X)
        for search, code in searches.items():
            row[f"{search}_seconds"], lists = cold(code, file)
            row[f"{search}_recall"] = judged(distances, sampled, lists)
    return row


def cold(code, file):
    """Seconds of the search of the samples in a file, and its lists."""
    found = file.with_name("lists.npy")
    command = [sys.executable, "-c", FRAME.format(search=code), str(file), str(found), str(K)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]), np.load(found)


def judged(distances, sampled, lists):
    """Recall of the sampled rows, from distances measured anew; the sample itself is no neighbour of its own."""
    own = lists[sampled.nodes].astype(np.int32)
    others = np.where(own == sampled.nodes[:, None], -1, own)
    z = distances.to_lists(distances.own(sampled.nodes), others, threads=Threads())
    return sampled.recall(np.sort(z, axis=1))
