"""Connectivity per digit (Figure 3; supplement: hard and soft models, label frequencies and distances inside classes)."""

import numpy as np

from experiments.common import FEW, PROJECTED, Claim, graphs, images, kept
from smoothgraph.uses import weight_between_classes

TITLE = "Connectivity across the classes of MNIST"
CAPTION = (
    "Share of the weight between samples of each digit, all graphs scaled to ‖W‖₁,₁ = 1; the last bars are the wrong edges, "
    "between different digits. Right: how frequent the digits are, and the mean squared distance inside a class."
)
ALWAYS = "Digits “1”", "This effect becomes smaller"
SIZES = {
    "small": {"n": 800, "n_daitch": 200, "degrees": [5, 15]},
    "medium": {"n": 5000, "n_daitch": 1000, "degrees": [5, 10, 30]},
    "full": {"n": 60_000, "n_daitch": 60_000, "degrees": [5, 10, 30]},
}
GRAPHS = {
    "k-NN": {"model": "knn"},
    "ℓ2": {"model": "l2"},
    "log": {"model": "log"},
    "hard": {"model": PROJECTED["hard"], **FEW},
    "soft": {"model": PROJECTED["soft"], **FEW},
    "log, locality ¾": {"model": "log", "locality": 0.75},
}


def run(n, n_daitch, degrees):
    X, y = images("mnist", n)
    classes = [X[y == digit].astype(np.float64) for digit in range(10)]
    numbers = {
        "n": n,
        "n_daitch": n_daitch,
        "frequency": [len(one) / n for one in classes],
        "distance": [2.0 * float(one.var(axis=0, ddof=1).sum()) for one in classes],  # mean of ‖x − x'‖² over pairs
        "graphs": {},
    }
    for name in GRAPHS:
        rows = n_daitch if name in ("hard", "soft") else n
        numbers["graphs"][name] = kept(f"classes-{name}", curve, rows, degrees, name)
    return numbers


def curve(n, degrees, name):
    """The shares of one kind of graph over the degrees."""
    X, y = images("mnist", n)
    return [shares(W, y, k) for k, W in graphs(X, degrees=degrees, **GRAPHS[name])]


def shares(W, y, degree):
    """Percent of the weight inside each digit, and between digits."""
    _, M = weight_between_classes(W, y)
    inside = 100.0 * np.diag(M) / M.sum()
    return {"degree": degree, "inside": inside.tolist(), "wrong": float(100.0 - inside.sum())}


def evenness(one, but=None):
    """Weight of the digit with the most over that with the least, one digit left out."""
    inside = [share for digit, share in enumerate(one["inside"]) if digit != but]
    return max(inside) / max(min(inside), 1e-9)


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(15, 6.6), layout="constrained", height_ratios=[1, 1])
    panels = dict(zip(numbers["graphs"], [*axes[0, :3], *axes[1, :3]], strict=True))
    for name, ax in panels.items():
        curves = numbers["graphs"][name]
        for at, one in enumerate(curves):
            place = np.arange(11) + 0.8 * (at - (len(curves) - 1) / 2) / len(curves)
            ax.bar(place, [*one["inside"], one["wrong"]], 0.8 / len(curves), label=f"degree {one['degree']:.1f}")
        few = name in ("hard", "soft")
        ax.set(title=f"{name}, {numbers['n_daitch' if few else 'n']:,} samples", ylabel="share of the weight (%)")
        ax.set_xticks(range(11), [*map(str, range(10)), "wrong"], fontsize=8)
        ax.set(xlabel="digit")
        ax.legend(fontsize=8)
    for ax, key, label in (
        (axes[0, 3], "frequency", "share of the samples"),
        (axes[1, 3], "distance", "mean squared distance"),
    ):
        ax.bar(range(10), numbers[key], color="0.5")
        ax.set(
            xlabel="digit",
            ylabel=label,
            xticks=range(10),
            title="label frequency" if key == "frequency" else "pairs inside a class",
        )
    top = max(ax.get_ylim()[1] for ax in panels.values())
    for ax in panels.values():
        ax.set_ylim(0, min(top, 60.0))
    return figure


def claims(numbers):
    graphs = numbers["graphs"]
    distance = numbers["distance"]
    yield Claim(
        "Digits “1” are much nearer to each other than other digits",
        "“significantly smaller”; a bar chart",
        f"{distance[1]:.0f}, the others {min(distance[:1] + distance[2:]):.0f}–{max(distance):.0f}",
        distance[1] < 0.7 * min(distance[:1] + distance[2:]),
    )
    sparse = {name: curve[0] for name, curve in graphs.items()}
    yield Claim(
        "ℓ2 gives most of its weight to the digit “1” and neglects others",
        "“most of its connectivity” to 1, neglects 2 and 8",
        f"{sparse['ℓ2']['inside'][1]:.0f} % of the weight on 1, {min(sparse['ℓ2']['inside']):.1f} % on the least, at degree "
        f"{sparse['ℓ2']['degree']:.0f}",
        sparse["ℓ2"]["inside"][1] > 50,
        f"The next digit has {sorted(sparse['ℓ2']['inside'])[-2]:.0f} %.",
    )
    yield Claim(
        "The log model gives consistent connectivity to all digits, even at degree 5",
        "“consistent connectivities for all digits”; bars",
        f"most over least weight of a digit: log {evenness(sparse['log']):.1f}, k-NN {evenness(sparse['k-NN']):.1f}, "
        f"ℓ2 {evenness(sparse['ℓ2']):.0f}",
        evenness(sparse["log"]) < 3,
        "We say “consistent” below a ratio of 3. "
        f"Without “1” it is log {evenness(sparse['log'], 1):.1f}, ℓ2 {evenness(sparse['ℓ2'], 1):.1f}: log neglects no digit, "
        f"but favours “1” as ℓ2 does. With locality ¾ the ratio is {evenness(sparse['log, locality ¾']):.1f}.",
    )
    yield Claim(
        "This effect becomes smaller when ℓ2 graphs are denser",
        "smaller at 30 than at 5",
        ", ".join(f"{one['inside'][1]:.0f} % on “1” at degree {one['degree']:.0f}" for one in graphs["ℓ2"]),
        graphs["ℓ2"][-1]["inside"][1] < graphs["ℓ2"][0]["inside"][1],
    )
