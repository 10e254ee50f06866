"""Diameters against degree (Figure 9): small spherical maps with many and with few signals, and words."""

import numpy as np

from experiments.common import COLOURS, Claim, graphs, spherical
from smoothgraph import datasets
from smoothgraph.uses import diameter
from smoothgraph.uses.graphs import parts

TITLE = "Graph diameters"
CAPTION = (
    "Longest shortest path, in hops, of the largest connected part, which has all nodes but the share written beside a point. "
    "Dotted: a grid with 4 and with 8 neighbours. Spherical maps are simulated; words are 100-dimensional GloVe vectors "
    "(the paper: 300-dimensional word2vec)."
)
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
    low, high = diameter(W)
    outside = float(np.mean(parts(W) != 0))
    return {"degree": degree, "lower": low, "upper": high, "outside": outside, "isolated": int((np.diff(W.indptr) == 0).sum())}


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for ax, (name, models) in zip(axes, numbers["curves"].items(), strict=True):
        for model, curve in models.items():
            k, low, high = (np.array([point[key] for point in curve]) for key in ("degree", "lower", "upper"))
            ax.errorbar(k, (low + high) / 2, (high - low) / 2, marker="o", markersize=4, color=COLOURS[model], label=model)
            for point in curve:
                if point["outside"] >= 0.02:
                    text, at = f"−{100 * point['outside']:.0f} %", (point["degree"], point["upper"])
                    ax.annotate(text, at, (0, 5), textcoords="offset points", fontsize=7, ha="center", color=COLOURS[model])
        if "grid" in name:
            for ideal in (2 * (numbers["side"] - 1), numbers["side"] - 1):
                ax.axhline(ideal, color="0.7", linestyle=":", zorder=0)
        ax.set(title=name, xlabel="mean degree", ylabel="diameter (hops)", ylim=(0, None))
        ax.legend()
    return figure


def near(curve, degree):
    return min(curve, key=lambda point: abs(point["degree"] - degree))


def claims(numbers):
    many, few, words = numbers["curves"].values()
    ideal4, ideal8 = 2 * (numbers["side"] - 1), numbers["side"] - 1
    at4, at8 = near(many["log"], 4), near(many["log"], 8)
    yield Claim(
        "With enough signals the learned graphs reach the diameters of the ideal grids at degrees 4 and 8 (simulated maps)",
        "127 and 63 on 64×64 (a grid with 4 neighbours has 126)",
        f"log {at4['lower']} at degree {at4['degree']:.1f} (grid {ideal4}), {at8['lower']} at degree {at8['degree']:.1f} "
        f"(grid {ideal8})",
        abs(at4["lower"] / ideal4 - 1) < 0.1 and abs(at8["lower"] / ideal8 - 1) < 0.1,
    )
    joined = [point for point in few["log"] if point["outside"] < 0.1]
    longer = [point["upper"] > near(few["k-NN"], point["degree"])["upper"] for point in joined]
    yield Claim(
        "With few signals the learned graphs have a larger diameter than A-NN (simulated maps)",
        "“higher”, 40 signals; a curve",
        f"at {sum(longer)} of {len(longer)} degrees where nine tenths of the log graph hang together",
        bool(longer) and all(longer),
    )
    joined = [point for point in words["log"] if point["outside"] < 0.1]
    pairs = [(point, near(words["k-NN"], point["degree"])) for point in joined]
    yield Claim(
        "Words: the log graph has a significantly larger diameter than k-NN",
        "“significantly larger”, 10,000 words; a curve",
        "; ".join(f"{a['lower']} against {b['lower']} at degree {a['degree']:.0f}" for a, b in pairs)
        or "no connected log graph",
        bool(pairs) and all(a["lower"] > b["upper"] for a, b in pairs),
    )
    isolated = min(point["isolated"] for point in words["ℓ2"])
    yield Claim(
        "Words: ℓ2 graphs always have many disconnected nodes",
        "“always giving many disconnected nodes”",
        f"{isolated} nodes without an edge at the best degree, {max(p['isolated'] for p in words['ℓ2'])} at the worst",
        isolated > 0,
    )
