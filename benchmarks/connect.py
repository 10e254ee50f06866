"""A connected graph: what `connect=True` costs next to the solve, and what it adds."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from benchmarks import data
from smoothgraph import GraphLearner
X = data.some(sys.argv[1], 1_000_000)
GraphLearner(5, neighbors="approximate", connect=True, random_state=0).fit(X[:30_000])  # loads the kernels
learner = GraphLearner(5, connect=True, random_state=0).fit(X)
print(json.dumps({
    "solve_seconds": learner.seconds_["solve"],
    "connect_seconds": learner.seconds_["connect"],
    "joining_edges": len(learner.joining_edges_),
    "components": learner.n_components_,
    "degree": learner.n_neighbors_,
    "gap": learner.solution_.gap,
    "nodes_not_certified": learner.n_incomplete_,
}))
"""


def run():
    for name in ("mnist", "molecules"):
        done = subprocess.run([sys.executable, "-c", SCRIPT, name], check=True, capture_output=True, text=True)
        result = json.loads(done.stdout.splitlines()[-1])
        ratio = result["connect_seconds"] / result["solve_seconds"]
        yield {"benchmark": f"joining the parts, {name}, k=5", "ratio": ratio, **result}
