"""Wrong edges and label propagation with 1 % labels against the degree (Figure 4), for all models."""

from functools import partial

from experiments.common import COLOURS, FEW, PROJECTED, Claim, best_width, fuzzy_set, graphs, images, kept, quality

TITLE = "Edge quality and label propagation with 1 % of the labels"
CAPTION = (
    "MNIST. Left: share of the weight on edges between different digits. Right: nodes that get a wrong label or none, with 1 % "
    "of the labels; bars are standard deviations over draws, dashed lines the nodes that no label reaches. The horizontal axis "
    "is the mean degree obtained (a k-NN graph has more than k). The hard and soft models choose their own degree: they are "
    "drawn where they ended, on fewer samples if the table says so."
)
ALWAYS = "The log graph has", "The hard and soft models"
SIZES = {
    "small": {"n": 800, "n_daitch": 200, "degrees": [5, 12], "share": 0.03, "n_draws": 3},
    "medium": {"n": 4000, "n_daitch": 1000, "degrees": [3, 5, 8, 12, 20], "share": 0.01, "n_draws": 10},
    "full": {"n": 60_000, "n_daitch": 60_000, "degrees": [3, 5, 8, 10, 15, 20, 30], "share": 0.01, "n_draws": 10},
}
BEYOND = "k-NN, self-tuning", "UMAP", "log, joined", "log, joined, locality ¾"
OTHERS = "k-NN, best σ", "UMAP"
LEARNED = {
    "k-NN, self-tuning": {"model": "knn-self-tuning"},
    "ℓ2": {"model": "l2"},
    "log": {"model": "log"},
    "log, joined": {"model": "log", "connect": True},
    "log, joined, locality ¾": {"model": "log", "connect": True, "locality": 0.75},
}
MEANS = {kind: {"model": model, **FEW} for kind, model in PROJECTED.items()}
POWERS = 1, 4, 16  # exp(−z/2σ²) to the power p is a width of σ/√p


def run(n, n_daitch, degrees, share, n_draws):
    curves = {name: kept(f"propagation-{name}", curve, name, n, degrees, share, n_draws) for name in (*OTHERS, *LEARNED)}
    # The models of Daitch cost d times more: on a part of the samples, with more labels so that there are as many of them.
    share_of_few = min(0.5, share * n / n_daitch)
    for name in (*MEANS, "log"):
        few = kept(f"propagation-{name}-few", curve, name, n_daitch, degrees[1:3], share_of_few, n_draws)
        curves["log, as few samples" if name == "log" else name] = few
    return {"n": n, "n_daitch": n_daitch, "share": share, "curves": curves}


def curve(name, n, degrees, share, n_draws):
    """The points of one kind of graph over the degrees."""
    X, y = images("mnist", n)
    points = partial(points_of, y=y, share=share, n_draws=n_draws)
    if name == "k-NN, best σ":
        gaussian = graphs(X, "knn-gaussian", degrees)
        widths = [points([(k, W.power(power)) for k, W in gaussian]) for power in POWERS]
        return best_width([points(graphs(X, "knn", degrees)), *widths])
    if name == "UMAP":
        return points([(W.nnz / n, W) for W in (fuzzy_set(X, k) for k in degrees)])
    return points(graphs(X, degrees=degrees, **(LEARNED | MEANS)[name]))


def points_of(found, y, share, n_draws):
    return [quality(W, k, y, share, n_draws) for k, W in found]


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    for name, curve in numbers["curves"].items():
        if name not in COLOURS:
            continue
        k, wrong, error, deviation, unreached = (
            [point[key] for point in curve] for key in ("degree", "wrong", "error", "deviation", "unreached")
        )
        few = name in ("hard", "soft") and numbers["n_daitch"] < numbers["n"]
        label = f"{name} ({numbers['n_daitch']:,} samples)" if few else name
        left.plot(k, wrong, "s" if few else "o-", markersize=4, color=COLOURS[name], label=label)
        if not few:
            right.errorbar(k, error, deviation, marker="o", markersize=4, capsize=2, color=COLOURS[name], label=name)
            right.plot(k, unreached, "--", color=COLOURS[name], linewidth=1)
    left.set(xlabel="mean degree", ylabel="weight on wrong edges (%)", title="edges between different digits", ylim=(0, None))
    right.set(xlabel="mean degree", ylabel="nodes (%)", title=f"label propagation, {100 * numbers['share']:g} % labels")
    least = min(point["error"] for curve in numbers["curves"].values() for point in curve)
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100) if tick >= 0.4 * least]
    right.set(yscale="log", ylim=(ticks[0], 100))
    right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    right.minorticks_off()
    left.legend(fontsize=8)
    right.legend(fontsize=8, title="dashed: no label in reach", title_fontsize=8)
    return figure


def claims(numbers):
    curves = numbers["curves"]
    least = {name: min(curve, key=lambda point: point["error"]) for name, curve in curves.items()}
    wrong = {name: [point["wrong"] for point in curve] for name, curve in curves.items()}
    yield Claim(
        "The log graph has fewer wrong edges than the nearest-neighbour graph",
        "A-NN “has many wrong edges”; a curve",
        f"log {min(wrong['log']):.1f}–{max(wrong['log']):.1f} %, k-NN {min(wrong['k-NN, best σ']):.1f}–"
        f"{max(wrong['k-NN, best σ']):.1f} %",
        all(a < b for a, b in zip(wrong["log"], wrong["k-NN, best σ"], strict=True)),
    )
    yield Claim(
        "ℓ2 has fewer wrong edges than log",
        "“ℓ2 is more accurate than the log model”; a curve",
        f"ℓ2 {min(wrong['ℓ2']):.1f}–{max(wrong['ℓ2']):.1f} %, log {min(wrong['log']):.1f}–{max(wrong['log']):.1f} %",
        all(a < b for a, b in zip(wrong["ℓ2"], wrong["log"], strict=True)),
    )
    few = wrong["log, as few samples"]
    yield Claim(
        f"The hard and soft models have more wrong edges than log ({numbers['n_daitch']:,} samples)",
        "“many wrong edges”, A-NN more accurate than both",
        f"hard {min(wrong['hard']):.1f} %, soft {min(wrong['soft']):.1f} %, log {max(few):.1f} % on the same samples",
        min(wrong["hard"] + wrong["soft"]) > max(few),
    )
    opponent, log = least["k-NN, best σ"], least["log"]
    yield Claim(
        "Label propagation: the log model performs best, against the k-NN graph with its best width",
        "“the log model performs best”, a “small improvement”; a curve",
        f"least error log {log['error']:.1f} ± {log['deviation']:.1f} % (degree {log['degree']:.0f}), "
        f"k-NN {opponent['error']:.1f} ± {opponent['deviation']:.1f} % (degree {opponent['degree']:.0f}), "
        f"ℓ2 {least['ℓ2']['error']:.1f} %",
        log["error"] < min(opponent["error"], least["ℓ2"]["error"]),
        "Beyond the paper: " + ", ".join(f"{name} {one['error']:.1f} %" for name, one in least.items() if name in BEYOND),
    )
    unreached = {name: [point["unreached"] for point in curve] for name, curve in curves.items()}
    held = all(a <= b for name in ("k-NN, best σ", "ℓ2") for a, b in zip(unreached["log"], unreached[name], strict=True))
    second = {name: curve[min(1, len(curve) - 1)] for name, curve in curves.items()}
    sparse = {name: f"{one['unreached']:.1f} % at degree {one['degree']:.0f}" for name, one in second.items()}
    yield Claim(
        "Nodes that no label reaches occur much less in the log graph",
        "“much less in the log graph”; a curve",
        f"log {sparse['log']}, ℓ2 {sparse['ℓ2']}, k-NN {sparse['k-NN, best σ']}, joined {sparse['log, joined']}",
        held,
        ""
        if held
        else "The barrier forbids isolated nodes, not isolated pairs; our k-NN graph has hardly any. "
        "`connect=True` removes them.",
    )
    yield Claim(
        "The log graph has no isolated node",
        "0",
        f"log {max(p['isolated'] for p in curves['log'])}, ℓ2 up to {max(p['isolated'] for p in curves['ℓ2'])}",
        max(p["isolated"] for p in curves["log"]) == 0,
    )
