"""Words: two hops from "use" in three graphs (Figure 10), and the weights of "glucose" and "academy" (Table 1)."""

import numpy as np

from experiments.common import PAPER, Claim
from smoothgraph import GraphLearner, datasets, plots
from smoothgraph.uses import hops

TITLE = "The graph of words"
CAPTION = (
    "Words within two hops of “use” in three graphs of about five neighbours per word; the widest lines are the heaviest "
    "edges. At most 45 words are shown; the title says how many there are. Vectors are GloVe, 100-dimensional "
    "(the paper: word2vec, 300)."
)
ALWAYS = ("The learned weights",)
SIZES = {
    "small": {"n": 1500, "words": ["use"], "k": 5},
    "medium": {"n": 10_000, "words": ["glucose", "academy"], "k": 5},
}
SIZES["full"] = SIZES["medium"]
SHOWN = 45


def run(n, words, k):
    data = datasets.words()
    X, names = data.X[:n], data.names[:n]
    # Made symmetric, lists of k − 2 neighbours give about k per word.
    learners = {
        "A-NN": GraphLearner(k - 2, model="knn-gaussian", neighbors="approximate", random_state=0, **PAPER),
        "k-NN": GraphLearner(k - 2, model="knn-gaussian", neighbors="exact", **PAPER),
        "log": GraphLearner(k, **PAPER),
    }
    numbers = {"n": n}
    for name, learner in learners.items():
        W = learner.fit(X).graph_
        use = int(np.flatnonzero(names == "use")[0])
        within = np.flatnonzero(hops(W, use, 2) >= 0)
        part = np.append(use, within[within != use])
        some = np.random.default_rng(0).permutation(n)[:300]
        numbers[name] = {
            "typical": float(np.mean([np.count_nonzero(hops(W, int(word), 2) > 0) for word in some])),
            "degree": learner.n_neighbors_,
            "recall": learner.recall_,
            "words": names[part].tolist(),
            "edges": [[int(i), int(j), float(w)] for i, j, w in zip(*coo(W[part][:, part]), strict=True)],
            "near": {word: neighbours(W, names, word) for word in words},
        }
    return numbers


def coo(W):
    W = W.tocoo()
    return W.row, W.col, W.data


def neighbours(W, names, word):
    row = W[int(np.flatnonzero(names == word)[0])]
    order = np.argsort(-row.data)
    return [[float(row.data[at]), str(names[row.indices[at]])] for at in order]


def draw(numbers):
    import matplotlib.pyplot as plt
    import scipy.sparse as sp

    figure, axes = plt.subplots(1, 3, figsize=(19, 6.6), layout="constrained")
    for ax, name in zip(axes, ("A-NN", "k-NN", "log"), strict=True):
        one = numbers[name]
        i, j, w = zip(*one["edges"], strict=True)
        n = len(one["words"])
        plots.neighborhood(sp.csr_matrix((w, (i, j)), shape=(n, n)), 0, ids=one["words"], most=SHOWN, ax=ax)
        ax.set_title(f"{name}, degree {one['degree']:.1f}: {n - 1} words within 2 hops of “use”")
    return figure


def table(numbers):
    """The weights of the words, as rows of Markdown."""
    yield "| word | A-NN | k-NN | log |"
    yield "|---|---|---|---|"
    for word in numbers["log"]["near"]:
        cells = (
            "<br>".join(f"{w:.4f} {other}" for w, other in numbers[name]["near"][word][:6]) for name in ("A-NN", "k-NN", "log")
        )
        yield f"| {word} | " + " | ".join(cells) + " |"


def claims(numbers):
    reached = {name: len(numbers[name]["words"]) - 1 for name in ("A-NN", "k-NN", "log")}
    yield Claim(
        "Nearest-neighbour graphs span a larger part of the graph within two hops of “use” than the log graph",
        "NN graphs span more, A-NN most (degrees: A-NN 5.4, k-NN 5.0, log 5.7)",
        ", ".join(f"{name} {count} words (degree {numbers[name]['degree']:.1f})" for name, count in reached.items()),
        reached["log"] < min(reached["A-NN"], reached["k-NN"]),
        "Mean over 300 words: " + ", ".join(f"{name} {numbers[name]['typical']:.0f}" for name in reached) + ".",
    )
    spread = {
        name: float(np.mean([one[0][0] / np.mean([w for w, _ in one]) for one in numbers[name]["near"].values()]))
        for name in ("A-NN", "k-NN", "log")
    }
    yield Claim(
        "The learned weights tell near words from far ones",
        "glucose: insulin 0.57, next 0.04; k-NN 0.12, next 0.02",
        "largest over mean weight of a word: " + ", ".join(f"{name} {value:.1f}" for name, value in spread.items()),
        spread["log"] > max(spread["A-NN"], spread["k-NN"]),
        "Gaussian weights with the default width; a narrower one would tell them apart more.",
    )
