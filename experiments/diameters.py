"""Diameters against degree (Figure 9): small spherical maps with many and with few signals, and words."""

import numpy as np

from experiments.common import COLOURS, Claim, graphs, spherical
from smoothgraph import datasets
from smoothgraph.uses import diameter
from smoothgraph.uses.graphs import components

TITLE = "Graph diameters"
CAPTION = (
    "Longest shortest path, in hops, of the largest connected part; hollow where more than 2 % of the nodes are not in "
    "it. Dotted: a grid with 4 and with 8 neighbours. Spherical maps are simulated; words are 100-dimensional GloVe vectors "
    "(the paper: 300-dimensional word2vec)."
)
ALWAYS = "With few signals", "Words: the log graph"
SIZES = {
    "small": {"side": 16, "n_maps": 4, "nside": 128, "few": 10, "n_words": 500, "degrees": [4, 8]},
    "medium": {"side": 64, "n_maps": 40, "nside": 1024, "few": 40, "n_words": 5000, "degrees": [3, 4, 5, 6, 7, 8, 10, 12]},
    "full": {
        "side": 64,
        "n_maps": 40,
        "nside": 1024,
        "few": 40,
        "n_words": 10_000,
        "degrees": [3, 4, 5, 6, 7, 8, 10, 12, 16, 20],
    },
}
APART = 0.02  # share of the nodes outside the largest part
MODELS = {"k-NN": "knn", "ℓ2": "l2", "log": "log"}


def run(side, n_maps, nside, few, n_words, degrees):
    X = spherical(side, n_maps, nside)
    chosen = np.random.default_rng(0).permutation(X.shape[1])[:few]
    data = {
        f"{side}×{side} grid, {X.shape[1]:,} signals": X,
        f"{side}×{side} grid, {few} signals": np.ascontiguousarray(X[:, chosen]),
        f"{n_words:,} words": datasets.words().X[:n_words],
    }
    numbers = {"side": side, "curves": {}}
    for name, samples in data.items():
        numbers["curves"][name] = {
            model: [measure(W, k) for k, W in graphs(samples, called, degrees)] for model, called in MODELS.items()
        }
    return numbers


def measure(W, degree):
    longest = diameter(W, max_searches=W.shape[0]).lower  # so many searches make it exact
    outside = float(np.mean(components(W)[1] != 0))
    return {"degree": degree, "diameter": longest, "outside": outside, "isolated": int((np.diff(W.indptr) == 0).sum())}


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for ax, (name, models) in zip(axes, numbers["curves"].items(), strict=True):
        for model, curve in models.items():
            k, hops, outside = (np.array([point[key] for point in curve]) for key in ("degree", "diameter", "outside"))
            ax.plot(k, hops, "o-", markersize=5, color=COLOURS[model], label=model)
            apart = outside > APART
            ax.plot(k[apart], hops[apart], "o", markersize=5, color=COLOURS[model], markerfacecolor="white")
        if "grid" in name:
            for ideal in (2 * (numbers["side"] - 1), numbers["side"] - 1):
                ax.axhline(ideal, color="0.7", linestyle=":", zorder=0)
        ax.set(title=name, xlabel="mean degree", ylabel="diameter (hops)", ylim=(0, None))
        ax.legend()
    return figure


def near(curve, degree):
    return min(curve, key=lambda point: abs(point["degree"] - degree))


def against(models):
    """[(degree, log, k-NN)]: diameters at the degrees of whole log graphs, that of k-NN graphs read off between two of them."""
    degree, knn = np.array([[point["degree"], point["diameter"]] for point in models["k-NN"]]).T
    whole = [point for point in models["log"] if point["outside"] <= 0.1 and degree[0] <= point["degree"] <= degree[-1]]
    return [(point["degree"], point["diameter"], float(np.interp(point["degree"], degree, knn))) for point in whole]


def claims(numbers):
    many, few, words = numbers["curves"].values()
    ideal4, ideal8 = 2 * (numbers["side"] - 1), numbers["side"] - 1
    at4, at8 = near(many["log"], 4), near(many["log"], 8)
    yield Claim(
        "With enough signals the learned graphs reach the diameters of the ideal grids at degrees 4 and 8 (simulated maps)",
        "127 and 63 on 64×64 (a grid with 4 neighbours has 126)",
        f"log {at4['diameter']} at degree {at4['degree']:.1f} (grid {ideal4}), {at8['diameter']} at degree {at8['degree']:.1f} "
        f"(grid {ideal8})",
        abs(at4["diameter"] / ideal4 - 1) < 0.1 and abs(at8["diameter"] / ideal8 - 1) < 0.1,
    )
    for claim, paper, models in (
        ("With few signals the learned graphs have a larger diameter than A-NN (simulated maps)", "“higher”, 40 signals", few),
        ("Words: the log graph has a significantly larger diameter than k-NN", "“significantly larger”, 10,000 words", words),
    ):
        pairs = against(models)
        yield Claim(
            claim,
            f"{paper}; a curve",
            "; ".join(f"{log} against {knn:.1f} at degree {k:.0f}" for k, log, knn in pairs) or "no log graph hangs together",
            bool(pairs) and all(log > knn for _, log, knn in pairs),
        )
    isolated = min(point["isolated"] for point in words["ℓ2"])
    yield Claim(
        "Words: ℓ2 graphs always have many disconnected nodes",
        "“always giving many disconnected nodes”",
        f"{isolated} nodes without an edge at the best degree, {max(p['isolated'] for p in words['ℓ2'])} at the worst",
        isolated >= 10,
        "" if isolated >= 10 else "Many in sparse graphs, few in the densest.",
    )
