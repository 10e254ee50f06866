"""From a data file to a saved graph in a cold process, over n: the learned graph against what a user would take instead.

Molecules x 68. Nearest-neighbour graphs (15 neighbours): pynndescent, UMAP's fuzzy set, scikit-learn. Learned graphs: the log
model of graph-structure-learning, which holds all pairs, up to 1,000 samples. The report draws the seconds over n.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.cold import LIST, OURS, THEIRS, K, cold

SIZES = 1_000, 10_000, 100_000
SAVED = """
sp.save_npz(sys.argv[2], sp.csr_matrix(graph), compressed=False)
print(json.dumps({"peak_gb": peak_gb()}))
"""
HEAD = """
import json, sys
import numpy as np
import scipy.sparse as sp
X = np.load(sys.argv[1])
"""
UMAP = HEAD + "from umap.umap_ import fuzzy_simplicial_set\n"
UMAP += "graph = fuzzy_simplicial_set(X, int(sys.argv[3]), np.random.RandomState(0), 'euclidean')[0]" + SAVED
SCIKIT_LEARN = HEAD + "from sklearn.neighbors import kneighbors_graph\n"
SCIKIT_LEARN += "graph = kneighbors_graph(X, int(sys.argv[3]), mode='distance', n_jobs=-1)" + SAVED
LOG_MODEL = HEAD + "sys.path.insert(0, sys.argv[4])\nfrom graph_learn.smooth_learning import LogModel\n"
LOG_MODEL += "graph = LogModel(int(sys.argv[3])).fit(X.T.astype(np.float64)).weights_" + SAVED
LEARNED_SIZE = 1_000


def run():
    with tempfile.TemporaryDirectory() as packages:
        # It asks for an older numpy than ours, and works with this one.
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages]
        subprocess.run([*install, "graph-structure-learning==0.1.3"], check=True)
        for n in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                yield measure(data.some("molecules", n), Path(folder), packages)


def measure(X, folder, packages):
    np.save(folder / "X.npy", X)
    ours, seconds = cold(OURS, folder, K, "{}")
    row = {
        "benchmark": f"what a user would take instead, cold process, molecules {len(X):,} x {X.shape[1]}, k={K}",
        "n": len(X),
        "smoothgraph_seconds": seconds,
        **ours,
    }
    opponents = {"pynndescent": (THEIRS, LIST), "umap": (UMAP, LIST), "scikit_learn": (SCIKIT_LEARN, LIST)}
    if len(X) <= LEARNED_SIZE:
        opponents["graph_structure_learning"] = LOG_MODEL, K
    for name, (script, k) in opponents.items():
        result, taken = cold(script, folder, k, packages)
        row |= {f"{name}_seconds": taken, f"ratio_to_{name}": seconds / taken, f"{name}_peak_gb": result["peak_gb"]}
    fastest = min(row[f"{name}_seconds"] for name in opponents)
    return row | {"wanted": "faster than each", "ok": seconds <= fastest}
