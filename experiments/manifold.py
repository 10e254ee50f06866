"""Manifold recovery on the spherical maps (Figures 5 and 8): spectral embeddings of three graphs, and how square they are."""

import numpy as np
from scipy.spatial import procrustes

from experiments.common import PAPER, Claim, graphs, search, spherical
from smoothgraph import GraphLearner, degree_path, spectral_embedding

TITLE = "Manifold recovery, spherical maps (simulated)"
CAPTION = (
    "Above: the true grid and its recovery from the first two eigenvectors of graphs of the degrees named; green and blue "
    "are the nodes of the middle and of a corner of the true grid. Below: the edges among those nodes, at their true places. "
    "The Procrustes error is 0 for a perfect grid. Maps are simulated."
)
ALWAYS = ("ℓ2 and log recover",)
SIZES = {
    "small": {"side": 16, "n_maps": 4, "nside": 128, "detail": 6},
    "medium": {"side": 128, "n_maps": 40, "nside": 1024, "detail": 14},
    "full": {"side": 512, "n_maps": 40, "nside": 1024, "detail": 14},
}
DEGREE = 4.7
DRAWN = 6000  # points of a figure, besides the two areas


def run(side, n_maps, nside, detail):
    X = spherical(side, n_maps, nside)
    row, column = np.divmod(np.arange(side * side), side)
    grid = np.column_stack([column, row]).astype(float)
    half = (side - detail) // 2
    areas = {
        "middle": (np.abs(row - half - detail / 2 + 0.5) < detail / 2)
        & (np.abs(column - half - detail / 2 + 0.5) < detail / 2),
        "corner": (row < detail) & (column < detail),
    }
    searched = search(X, 3 * (int(DEGREE) + 1))
    lists = searched.indices, np.sqrt(searched.distances)
    numbers = {"side": side, "n": side * side, "signals": X.shape[1], "detail": detail, "recall": searched.recall, "graphs": {}}
    found = {
        "k-NN": graphs(X, "knn", [4], neighbors=lists)[0],
        "ℓ2": near_degree(X, "l2", DEGREE, lists),
        "log": near_degree(X, "log", DEGREE, lists),
    }
    for name, (k, W) in found.items():
        numbers["graphs"][name] = {"degree": k, **look(W, grid, areas)}
    return numbers


def near_degree(X, model, degree, lists):
    """A learned graph of that mean degree. Whole numbers can be asked for: θ is searched between the two next to it."""
    fixed = {"model": model, "neighbors": lists, **PAPER}
    low, high = (one.theta_ for one in degree_path(X, [int(degree) + 1, int(degree)], **fixed))
    for _ in range(5):
        theta = (low * high) ** 0.5
        learner = GraphLearner(int(degree) + 1, theta=theta, **fixed).fit(X)
        low, high = (theta, high) if learner.n_neighbors_ > degree else (low, theta)
    return learner.n_neighbors_, learner.graph_


def look(W, grid, areas):
    """The embedding, its Procrustes error, what is not in it, and the edges among the nodes of each area."""
    embedding = spectral_embedding(W, 2)
    inside = embedding.embedded
    error = float(procrustes(grid[inside], embedding.coordinates[inside])[2])
    some = np.arange(len(grid)) % max(1, round(len(grid) / DRAWN)) == 0
    shown = np.flatnonzero(inside & (some | areas["middle"] | areas["corner"]))
    found = {
        "procrustes": error,
        "outside": int((~inside).sum()),
        "isolated": int((np.diff(W.indptr) == 0).sum()),
        "nodes": shown.tolist(),
        "places": np.round(1000.0 * embedding.coordinates[shown] / np.abs(embedding.coordinates[shown]).max(), 1).tolist(),
        "areas": {},
    }
    for name, chosen in areas.items():
        nodes = np.flatnonzero(chosen)
        part = W[nodes][:, nodes].tocoo()
        once = part.row < part.col
        pairs = nodes[np.column_stack([part.row[once], part.col[once]])]
        length = np.abs(grid[pairs[:, 0]] - grid[pairs[:, 1]]).max(axis=1)
        found["areas"][name] = {
            "pairs": pairs.tolist(),
            "unconnected": int(nodes.size - np.unique(pairs).size),
            "longer": float(np.mean(length > 1)),
        }
    return found


def draw(numbers):
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    side, detail = numbers["side"], numbers["detail"]
    figure, axes = plt.subplots(2, 4, figsize=(15, 7.6), layout="constrained")
    grid = np.column_stack(np.divmod(np.arange(side * side), side)[::-1])
    corner = grid.max(axis=1) < detail
    middle = np.abs(grid - (side - 1) / 2).max(axis=1) < detail / 2
    colours = np.where(corner, "tab:blue", np.where(middle, "tab:green", "0.75"))
    axes[0, 0].scatter(*grid.T, c=colours, s=1)
    axes[0, 0].set(title=f"true grid, {side}×{side}", aspect="equal")
    for ax, (name, one) in zip(axes[0, 1:], numbers["graphs"].items(), strict=True):
        order = np.argsort(colours[one["nodes"]] != "0.75")
        ax.scatter(*np.array(one["places"])[order].T, c=colours[one["nodes"]][order], s=1)
        ax.set_title(
            f"{name}, degree {one['degree']:.2f}\nProcrustes error {one['procrustes']:.3f}, {one['outside']} nodes left out"
        )
    axes[1, 0].set_visible(False)
    start = (side - detail) // 2
    beside = {"corner": ("tab:blue", corner, [0, 0]), "middle": ("tab:green", middle, [detail + 2 - start, -start])}
    for ax, (name, one) in zip(axes[1, 1:], numbers["graphs"].items(), strict=True):
        for area, (colour, chosen, shift) in beside.items():
            places = grid + shift
            ax.add_collection(LineCollection(places[np.array(one["areas"][area]["pairs"])], colors=colour, linewidths=0.8))
            ax.scatter(*places[chosen].T, color=colour, s=6)
        lonely = sum(one["areas"][area]["unconnected"] for area in beside)
        ax.set(title=f"{name}: corner and middle, {lonely} nodes without an edge", aspect="equal")
        ax.title.set_fontsize(9)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
    for ax in axes[0, 1:]:
        ax.set(xlabel="first eigenvector", ylabel="second eigenvector")
    return figure


def claims(numbers):
    graphs, size = numbers["graphs"], f"{numbers['n']:,} nodes, {numbers['signals']:,} simulated signals"
    error = {name: one["procrustes"] for name, one in graphs.items()}
    text = ", ".join(f"{name} {value:.3f}" for name, value in error.items())
    yield Claim(
        f"ℓ2 and log recover an almost perfect square ({size})",
        "“almost perfectly square”; no number",
        f"Procrustes error {text}",
        max(error["ℓ2"], error["log"]) < 0.1,
    )
    poor = error["k-NN"] > 2 * error["log"]
    yield Claim(
        f"The nearest-neighbour graph performs very poorly ({size})",
        "“very poorly”; no number",
        f"Procrustes error {text}",
        poor,
        ""
        if poor
        else f"Our lists have {100 * numbers['recall']:.1f} % of the nearest neighbours; how many the paper's search "
        "had, an approximate one, it does not say.",
    )
    yield Claim(
        f"ℓ2 leaves nodes out, the log graph is connected ({size})",
        "46 nodes of 262,144; 0",
        f"ℓ2 {graphs['ℓ2']['outside']} out of the largest part ({graphs['ℓ2']['isolated']} isolated), log "
        f"{graphs['log']['outside']} ({graphs['log']['isolated']} isolated)",
        graphs["log"]["outside"] == 0 and graphs["ℓ2"]["outside"] > 0,
        "" if graphs["ℓ2"]["outside"] else "At this size both are connected.",
    )
