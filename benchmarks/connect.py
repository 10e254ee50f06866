"""A connected graph: what `connect=True` costs next to the solve, and what it adds.

The cost is what a fit with it takes longer in the stages from the solve on: some of the work moves from one to the other.
Medians of fits with and without it, in turns.
"""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from statistics import median
from benchmarks import data
from smoothgraph import GraphLearner
X = data.some(sys.argv[1], 1_000_000)
GraphLearner(5, neighbors="approximate", random_state=0, **data.PAPER | {"connect": True}).fit(X[:30_000])  # loads the kernels
plain, connected = [], []
for _ in range(int(sys.argv[2])):
    plain.append(GraphLearner(5, random_state=0, **data.PAPER).fit(X).seconds_["solve"])
    learner = GraphLearner(5, random_state=0, **data.PAPER | {"connect": True}).fit(X)
    connected.append(learner.seconds_["solve"] + learner.seconds_["connect"])
print(json.dumps({
    "solve_seconds": median(plain),
    "seconds_with_connect": median(connected),
    "bridges": len(learner.bridges_),
    "components": learner.n_components_,
    "degree": learner.n_neighbors_,
    "gap": learner.solution_.gap,
    "nodes_not_certified": learner.n_incomplete_,
    "fit_seconds": sum(learner.seconds_.values()),
}))
"""


def run():
    for name in ("mnist", "molecules"):
        done = subprocess.run([sys.executable, "-c", SCRIPT, name, "3"], check=True, capture_output=True, text=True)
        result = json.loads(done.stdout.splitlines()[-1])
        ratio = result["seconds_with_connect"] / result["solve_seconds"] - 1.0
        yield {"benchmark": f"connecting the components, {name}, k=5", "ratio": ratio, **result}
