"""Time against n (Figure 1): graphs of words with every model, and of many rows of 68 counts with the scalable ones."""

from functools import partial

import numpy as np

from experiments.common import FEW, PAPER, PROJECTED, Claim, core_seconds, kept
from smoothgraph import GraphLearner, datasets
from smoothgraph.distances import distances_of
from smoothgraph.edges import edges_of_all_pairs
from smoothgraph.models import LogProblem
from smoothgraph.parallel import Threads
from smoothgraph.solvers import solve

TITLE = "Time against the number of samples"
CAPTION = (
    "Left: GloVe vectors of the most frequent words (100 features; hard and soft on 20 random projections). Right: molecule "
    "counts, 68 features, in place of the US census. Seconds of one core for the whole graph with its search, k = 5. "
    "“log, all pairs” is the original model: every pair is allowed, 500 iterations of the paper's scheme. “hard” and “soft” "
    "look at all pairs, “scaled” ones only at 15 neighbours."
)
ALWAYS = ()  # times are for the full size to judge
SIZES = {
    "small": {"words": [200, 400], "most": {"log, all pairs": 400, "hard": 0, "soft": 200}, "counts": [2000]},
    "medium": {
        "words": [500, 1000, 2000, 5000, 10_000],
        "most": {"log, all pairs": 2000, "hard": 500, "soft": 500, "hard, scaled": 1000, "soft, scaled": 2000},
        "counts": [10_000, 30_000, 100_000],
    },
    "full": {
        "words": [500, 1000, 2000, 5000, 10_000],
        "counts": [10_000, 100_000, 300_000, 1_000_000],
    },
}
K, ITERATIONS = 5, 500
COLOURS = {
    "log, all pairs": "tab:blue",
    "hard": "tab:red",
    "soft": "tab:green",
    "hard, scaled": "tab:red",
    "soft, scaled": "tab:green",
    "ours (log)": "tab:purple",
    "A-NN": "tab:gray",
}


def run(words, counts, most=None):
    X, rows = datasets.words().X, datasets.molecules().X
    models = {
        "A-NN": lambda X: GraphLearner(K, model="knn", random_state=0, **PAPER).fit(X),
        "ours (log)": lambda X: GraphLearner(K, random_state=0, **PAPER).fit(X),
        "log, all pairs": partial(original, theta=GraphLearner(K, **PAPER).fit(X[:500]).theta_),
        "soft, scaled": lambda X: daitch(X, "soft", complete=False),
        "hard, scaled": lambda X: daitch(X, "hard", complete=False),
        "soft": lambda X: daitch(X, "soft", complete=True),
        "hard": lambda X: daitch(X, "hard", complete=True),
    }
    numbers = {"words": {}, "counts": {}}
    for name, learn in models.items():
        sizes = [n for n in words if n <= (most or {}).get(name, max(words))]
        numbers["words"][name] = kept(f"scaling-words-{name}", partial(timed, learn, X), sizes)
    for name in ("A-NN", "ours (log)"):
        numbers["counts"][name] = kept(f"scaling-counts-{name}", partial(timed, models[name], rows), counts)
    return numbers


def timed(learn, X, sizes):
    """[[n, seconds of one core]] of the first n samples; a run before, on few, compiles."""
    if sizes:
        learn(X[:100].astype(np.float32))
    found = []
    for n in sizes:
        found.append([n, core_seconds(lambda: learn(X[:n].astype(np.float32)))[0]])  # noqa: B023
    return found


def original(X, theta):
    """The log model over all pairs by the paper's scheme."""
    edges = edges_of_all_pairs(distances_of(X), threads=Threads(1))
    return solve(LogProblem(edges, theta), solver="primal_dual", tol=1e-12, max_iter=ITERATIONS, n_jobs=1)


def daitch(X, model, complete):
    return GraphLearner(K, model=PROJECTED[model], **(PAPER | FEW | {"complete": complete})).fit(X)


def slope(points):
    """The power of n that the time grows with, from the last two sizes."""
    (n, a), (m, b) = points[-2:]
    return float(np.log(b / a) / np.log(m / n))


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for ax, part in zip(axes, ("words", "counts"), strict=True):
        for name, points in numbers[part].items():
            if points:
                style = "o--" if "scaled" in name or name == "A-NN" else "o-"
                ax.plot(*np.transpose(points), style, color=COLOURS[name], markersize=4, label=name)
        ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel="seconds of one core")
        ax.set_title("words" if part == "words" else "molecules × 68 counts")
        ax.legend(fontsize=8)
    return figure


def claims(numbers):
    words, counts = numbers["words"], numbers["counts"]
    full, ours = words["log, all pairs"], words["ours (log)"]
    if len(full) > 1 and len(ours) > 1:
        yield Claim(
            "The cost is almost linear for the scaled model, quadratic for the original",
            "n log n and n²",
            f"time grows with n^{slope(ours):.1f} and n^{slope(full):.1f} at the largest sizes",
            slope(full) > 1.5 and slope(ours) < slope(full),
            "Up to 10,000 words our neighbour search is exact, which is quadratic too, with a small constant.",
        )
    n, seconds = full[-1]
    same = dict(map(tuple, ours))[n]
    yield Claim(
        f"The scaled model is much faster than the original ({n:,} words)",
        "a curve",
        f"{seconds:.1f} s against {same:.2f} s, {seconds / same:.0f} times",
        seconds > 2 * same,
    )
    n, total = counts["ours (log)"][-1]
    search = counts["A-NN"][-1][1]
    yield Claim(
        "A graph of 1,000,000 samples × 68 features is learned in minutes",
        "16 minutes, US census",
        f"{n:,} molecules in {total:.0f} s; an A-NN graph of as few neighbours takes {search:.0f} s",
        n >= 1_000_000 and total < 960,
        "" if n >= 1_000_000 else "A million is for the full size.",
    )
