"""Beyond the paper: which graph is the best that a user gets who sets nothing? The evidence for the defaults.

Two kinds of task on every data set of `labelled.py`. Label propagation: five labels per class, the same draws for every
method, and a node that gets a wrong label or none is an error. Clustering, where there are four classes or more: Leiden at the
true number of clusters; its error is 100·(1 − normalised mutual information).

The rule, fixed before the numbers were seen. The excess of a method on a task is its error above that of the best method there,
in percentage points; the mean over the tasks of each kind, then over the two kinds, is what counts. The defaults of `locality`,
`connect` and `n_neighbors` are those of the least mean excess. Settings are tied with it if they are within one standard error
of the difference, paired over tasks; of these, the one that loses the fewest tasks by more than two points to the best untuned
opponent is taken, and of equals the one of the least mean excess.
"""

import random
from itertools import chain

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from experiments.common import Claim, fuzzy_set, graphs, kept, nearest
from experiments.decision import (
    DENSER,
    FEW_CLASSES,
    KINDS,
    KS,
    MATCHED,
    OPPONENTS,
    OURS,
    RIVALS,
    SCANPY,
    decide,
    difference,
    excesses,
    lost,
    mean_excess,
    tasks_of,
)
from experiments.labelled import SETS, kind, load
from experiments.remedies import REMEDIES, far_samples, far_weight, on_distinct, remedied
from experiments.task_tables import SHOWN, table
from smoothgraph import label_propagation
from smoothgraph.optional import need

TITLE = "Beyond the paper: untuned graphs on real tasks, and the defaults"
CAPTION = (
    "A bar is a task: error of the opponent minus error of the recommended learned graph, in percentage points. Blue bars are "
    "tasks where the learned graph has less error, red bars those where it has more. Pale: label propagation, five labels per "
    "class, wrong or unreached nodes; dark: Leiden at the true number of clusters, 100·(1 − normalised mutual information)."
)
N_LABELS = 5  # per class
MATCHED_DEGREE = 10  # the mean number of neighbours that degree-matched opponents come nearest to
MODELS = {"k-NN": "knn", "Gaussian": "knn-gaussian", "self-tuning": "knn-self-tuning"}
__all__ = ["ALWAYS", "CAPTION", "SIZES", "TITLE", "claims", "draw", "run", "table"]  # what report.py reads
ALWAYS = ()  # the paper says nothing of these
SIZES = {
    "small": {"n": 300, "n_draws": 3, "n_seeds": 1, "sets": ["digits", "USPS", "breast cancer"]},
    "medium": {"n": 500, "n_draws": 5, "n_seeds": 2, "sets": "all"},
    "full": {"n": 2000, "n_draws": 10, "n_seeds": 10, "sets": "all"},
}


def run(n, n_draws, n_seeds, sets):
    """{data set: what `scores` found}."""
    numbers = {}
    for name in SETS if sets == "all" else sets:
        numbers[name] = kept(f"tasks-{name}", scores, name, n, n_draws, n_seeds)
        print(f"    {name}", flush=True)
    return numbers


def scores(name, n, n_draws, n_seeds):
    """What the data set is, and for every method the error of each draw and seed, the mean degree and the nodes not reached."""
    X, y = load(name, n)
    record = {
        "kind": kind(name),
        "n": len(X),
        "features": X.shape[1],
        "classes": int(y.max()) + 1,
        "copies": len(X) - len(np.unique(X, axis=0)),
        "labels": {},
        "clusters": {},
        "degree": {},
        "unreached": {},
        "far": {},  # percent of the weight of far samples that is between them
    }
    is_far = far_samples(X)
    for method, W in candidates(X, kind(name)):
        record["degree"][method] = round(W.nnz / len(X), 2)
        record["far"][method] = far_weight(W, is_far)
        record["labels"][method], record["unreached"][method] = label_errors(W, y, n_draws)
        if record["classes"] > FEW_CLASSES:
            record["clusters"][method] = [cluster_error(W, y, seed) for seed in range(n_seeds)]
    return record


def candidates(X, kind):
    """(method, graph) of everything that is compared."""
    for (locality, connect), methods in OURS.items():
        for method, (_, W) in zip(methods.values(), learned(X, methods, locality, connect), strict=True):
            yield method, W
    for method, (_, W) in zip(DENSER.values(), learned(X, DENSER, 1.0, True), strict=True):
        yield method, W
    yield from zip(chain(*REMEDIES.values()), on_distinct(X, remedied), strict=True)
    length = matched_length(X)
    for name, model in MODELS.items():
        for k, method in zip((*KS, length), (*OPPONENTS[name], MATCHED[name]), strict=True):
            yield method, graphs(X, model, [k], n_jobs=1)[0][1]
    # UMAP counts the sample itself as its first neighbour.
    for k, method in zip((*KS, length + 1), (*OPPONENTS["UMAP"], MATCHED["UMAP"]), strict=True):
        yield method, fuzzy_set(X, k)
    if kind == "cells":
        yield from scanpy_graphs(X)


def learned(X, ks, locality, connect):
    """[(mean degree, graph)] of the log model."""
    return graphs(X, "log", list(ks), locality=locality, connect=connect, n_jobs=1)


def matched_length(X):
    """The length of lists whose nearest-neighbour graph has a mean degree nearest to the degree to be matched."""
    near, _ = nearest(X, MATCHED_DEGREE)
    off = []
    for k in range(2, MATCHED_DEGREE + 1):
        rows = np.repeat(np.arange(len(X)), k)
        W = sp.csr_matrix((np.ones(rows.size), (rows, near[:, :k].ravel())), shape=(len(X), len(X)))
        off.append(abs(W.maximum(W.T).nnz / len(X) - MATCHED_DEGREE))
    return 2 + int(np.argmin(off))


def scanpy_graphs(X):
    """(method, graph) of scanpy's two weightings, with its own search and default number of neighbours, and with 10."""
    scanpy, anndata = need("scanpy", "smoothgraph[experiments]"), need("anndata", "smoothgraph[experiments]")
    for (weighting, k), method in SCANPY.items():
        table = anndata.AnnData(obsm={"X_pca": X}, shape=(len(X), 0))
        scanpy.pp.neighbors(table, n_neighbors=k, method=weighting, use_rep="X_pca", random_state=0)
        yield method, sp.csr_matrix(table.obsp["connectivities"])


def label_errors(W, y, n_draws):
    """(percent of wrong or unreached nodes for each draw, mean percent of nodes that no label reaches)."""
    errors, unreached = [], []
    for given in label_draws(y, n_draws):
        found, asked = label_propagation(W, given), given == -1
        errors.append(round(100.0 * float(np.mean(found.labels[asked] != y[asked])), 3))
        unreached.append(100.0 * float(np.mean(~found.reached[asked])))
    return errors, round(float(np.mean(unreached)), 3)


def label_draws(y, n_draws):
    """Labels of five samples of every class, −1 elsewhere."""
    rng = np.random.default_rng(0)
    for _ in range(n_draws):
        given = np.full(y.size, -1)
        for c in range(y.max() + 1):
            given[rng.choice(np.flatnonzero(y == c), N_LABELS, replace=False)] = c
        yield given


def cluster_error(W, y, seed, n_trials=25):
    """100·(1 − NMI) of Leiden's clusters and the classes, at the resolution that gives as many clusters as classes.

    A graph with more components than classes has no such resolution: then the nearest number of clusters counts.
    """
    igraph = need("igraph", "smoothgraph[experiments]")
    upper = sp.triu(W, 1).tocoo()
    graph = igraph.Graph(W.shape[0], list(zip(upper.row.tolist(), upper.col.tolist(), strict=True)))
    igraph.set_random_number_generator(random.Random(seed))
    wanted, low, high = int(y.max()) + 1, np.log(1e-4), np.log(1e3)
    best, off = None, np.inf
    for _ in range(n_trials):
        middle = 0.5 * (low + high)
        found = graph.community_leiden("modularity", weights=upper.data, resolution=np.exp(middle), n_iterations=4)
        if abs(len(found) - wanted) < off:
            best, off = found.membership, abs(len(found) - wanted)
        if off == 0:
            break
        low, high = (middle, high) if len(found) < wanted else (low, middle)
    return round(100.0 * (1.0 - float(normalized_mutual_info_score(y, best))), 3)


def draw(numbers):
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    chosen, _ = decide(numbers)
    shown = [method for method in SHOWN if not method.startswith("Gaussian")]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.9 * len(shown), 5.0), layout="constrained", sharex=True)
    for ax, method in zip(axes, shown, strict=True):
        gains = sorted(
            (difference(name, task, method, chosen).mean, kind, name)
            for kind in KINDS
            for name, task in tasks_of(numbers, kind).items()
        )
        draw_gains(ax, gains)
        rival, k = method.split(", k=")
        ax.set_title({"UMAP": "UMAP's graph", "k-NN": "k-NN, weights 0/1"}.get(rival, f"{rival} weights") + f" ({k})")
    axes[0].set_xlim(1.1 * axes[0].get_xlim()[0], 1.7 * axes[0].get_xlim()[1])  # room for the words beside the bars
    figure.suptitle(f"Untuned graphs on {len(gains)} real tasks: the learned one ({chosen}) against three others")
    words = {"labels": "label propagation", "clusters": "clustering"}
    handles = [
        Patch(color=colour, label=f"{words[kind]}, ours has {'less' if better else 'more'} error")
        for (kind, better), colour in SHADES.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(SHADES), fontsize=8.5)
    return figure


def draw_gains(ax, gains, n_named=4):
    """A bar for each (gain, kind, name), the least at the bottom; the largest of both ends are named in the free corners."""
    values = np.array([gain for gain, _, _ in gains])
    colours = [SHADES[kind, gain > 0] for gain, kind, _ in gains]
    ax.barh(range(values.size), values, color=colours, height=1.0, edgecolor="white", linewidth=0.4)
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.set(yticks=[], xlabel="its error − ours (points)")
    ax.spines["left"].set_visible(False)
    named = {"best": gains[: -n_named - 1 : -1], "worst": [one for one in gains[:n_named] if one[0] < 0]}
    lines = {end: [f"{name}, {kind} {gain:+.0f}" for gain, kind, name in ones] for end, ones in named.items()}
    summary = f"less error on {np.sum(values > 0)} of {values.size},\nmean gain {values.mean():.1f} points"
    corner = {"transform": ax.transAxes, "fontsize": 7.8, "linespacing": 1.3}
    ax.text(0.0, 0.99, summary, **(corner | {"fontsize": 9, "weight": "bold"}), va="top")
    ax.text(0.0, 0.83, "\n".join(["most gained:", *lines["best"]]), **corner, va="top", color=SHADES["clusters", True])
    ax.text(1.0, 0.02, "\n".join(["most lost:", *lines["worst"]]), **corner, ha="right", color=SHADES["clusters", False])


SHADES = {  # kind of task and whether the learned graph has less error → colour
    ("labels", True): "#8db8e0",
    ("clusters", True): "#1f5fa8",
    ("labels", False): "#f0a58f",
    ("clusters", False): "#b8331f",
}


def claims(numbers):
    chosen, _ = decide(numbers)
    n = sum(len(tasks_of(numbers, kind)) for kind in KINDS)
    rivals = {m: mean_excess(numbers, m) for m in RIVALS if m not in SCANPY.values()}
    best = min(rivals, key=rivals.get)
    yield Claim(
        f"Beyond the paper: has the learned graph less error than every opponent over {n} tasks, untuned?",
        "—",
        f"mean error above the best, in points: {chosen} {mean_excess(numbers, chosen):.1f}; "
        + "; ".join(f"{m} {value:.1f}" for m, value in rivals.items()),
        mean_excess(numbers, chosen) < rivals[best],
    )
    found = lost(numbers, chosen)
    yield Claim(
        "Beyond the paper: does it lose no task by more than two points to the best opponent of that task?",
        "—",
        f"{len(found)} of {n}, the worst by {found[0].mean:.1f} ({found[0].task})" if found else f"0 of {n}",
        not found,
    )
    means = {m: excesses(numbers, m, "clusters").mean() for m in (chosen, *OPPONENTS["UMAP"])}
    yield Claim(
        "Beyond the paper: is it no worse than UMAP's graph for clustering?",
        "—",
        "mean excess of clustering: " + "; ".join(f"{m} {value:.1f}" for m, value in means.items()),
        means[chosen] <= min(list(means.values())[1:]),
    )
