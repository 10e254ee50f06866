"""Whole processes: how long `import smoothgraph` takes, and whether a second process compiles anything."""

import json
import subprocess
import sys
import time

FIT = """
import json, time
start = time.perf_counter()
from sklearn.datasets import load_digits
from smoothgraph import GraphLearner, _kernels
X = load_digits().data
first = time.perf_counter()
learner = GraphLearner(10).fit(X)
learner.transform(X[:10])
second = time.perf_counter()
GraphLearner(10).fit(X)
kernels = [k for k in vars(_kernels).values() if hasattr(k, "stats")]
print(json.dumps({
    "seconds_first_fit": second - first,
    "seconds_second_fit": time.perf_counter() - second,
    "compiled": sum(sum(k.stats.cache_misses.values()) for k in kernels),
    "loaded": sum(sum(k.stats.cache_hits.values()) for k in kernels),
}))
"""


def run():
    seconds = best_of_five("import smoothgraph")
    yield {
        "benchmark": "import smoothgraph, best of 5 processes",
        "seconds": seconds,
        "seconds_of_python_alone": best_of_five("pass"),
        "seconds_with_GraphLearner": best_of_five("from smoothgraph import GraphLearner"),
        "seconds_of_scikit_learn_and_numba": best_of_five("import sklearn.base, numba, scipy.sparse.csgraph"),
        "wanted": "seconds < 1",
        "ok": seconds < 1.0,
    }
    subprocess.run([sys.executable, "-c", FIT], check=True, capture_output=True)
    result = json.loads(subprocess.run([sys.executable, "-c", FIT], check=True, capture_output=True, text=True).stdout)
    yield {
        "benchmark": "a second process, digits",
        **result,
        "wanted": "compiled = 0",
        "ok": result["compiled"] == 0 and result["loaded"] > 0,
    }


def best_of_five(code):
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
