"""Pictures of graphs and of how they were learned.

In: a graph W, as `check_graph` takes it, or a fitted learner; labels and places of the nodes where they are wanted. Out: the
matplotlib Axes that was drawn on, which is `ax` if it was given. Graphs of more than MAX_DRAWN_NODES nodes are drawn by
datashader.
"""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.optional import need
from smoothgraph.uses.graphs import check_graph, components, one_per_node
from smoothgraph.uses.quality import weight_between_classes

EXTRA = "smoothgraph[plot]"
MAX_DRAWN_NODES = 50_000  # drawn one by one up to here; larger graphs are shaded, pixel by pixel
MAX_CLASSES = 20  # classes that get colours of their own, and numbers in the matrix of classes: more cannot be distinguished
MAX_BARS = 200  # bars of a histogram
MAX_EMBEDDED_NODES = 200_000  # nodes of a component that is placed by exact eigenvectors, in about 10 s; else by rough ones
MAX_COMPONENTS = 12  # components that a picture of a graph shows
MIN_COMPONENT = 0.002  # share of the nodes that a component needs to be shown: smaller ones would be specks
GAP = 0.06  # space between components, where the largest is 1 wide
MAX_BOUND_NODES = 2000  # nodes that the bounds on θ are averaged over
EDGE, NODE = "0.6", "tab:blue"  # colours: grey, blue


# --- pictures of a graph ------------------------------------------------------------------------------------------------------


def neighbor_counts(W, ax=None):
    """How many neighbours the nodes have: a histogram, with the mean."""
    counts = np.diff(check_graph(W).indptr)
    ax = _axes(ax)
    step = max(1, -(-int(counts.max(initial=1)) // MAX_BARS))
    ax.hist(counts, bins=np.arange(-0.5, counts.max(initial=1) + step + 0.5, step), color=NODE)
    ax.axvline(counts.mean(), color="black", linestyle="--", label=f"mean {counts.mean():.2f}")
    ax.set(title="neighbours of a node", xlabel="neighbours", ylabel="nodes", xlim=(-0.5, None))
    ax.legend(frameon=False)
    return ax


def weights(W, ax=None):
    """How large the weights of the edges are: a histogram."""
    values = sp.triu(check_graph(W), k=1).data
    ax = _axes(ax)
    ax.hist(values, bins=50, color="tab:orange")
    ax.set(title="weights of the edges", xlabel="weight", ylabel="edges", xlim=(0, None))
    return ax


def class_connectivity(W, labels, ax=None):
    """How much of the weight of each class goes to each class, in percent; a row sums to 100."""
    W = check_graph(W)
    classes, between = weight_between_classes(W, one_per_node("labels", labels, W.shape[0]))
    share = 100.0 * between / np.maximum(between.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    ax = _axes(ax)
    image = ax.imshow(share, cmap="Blues", vmin=0.0, vmax=100.0)
    if classes.size <= MAX_CLASSES:
        size = 9 if classes.size <= 10 else 6
        for (a, b), value in np.ndenumerate(share):
            ax.text(b, a, _percent(value), ha="center", va="center", fontsize=size, color="white" if value > 60 else "black")
        ax.set_xticks(range(classes.size), classes, rotation=45 if max(map(len, map(str, classes))) > 3 else 0)
        ax.set_yticks(range(classes.size), classes)
    within = 100.0 * np.trace(between) / between.sum() if between.sum() else 0.0
    ax.set(title=f"{within:.1f} % of the weight is inside classes", xlabel="to class", ylabel="of the weight of class")
    ax.figure.colorbar(image, ax=ax, label="percent", shrink=0.8)
    return ax


def graph(W, place=None, labels=None, ax=None):
    """The graph, its nodes at the places (n, 2) and coloured by their labels.

    Without places the largest components are drawn, each over its spectral embedding: at the ranks of the first two
    eigenvectors, because the eigenvectors themselves put most nodes into corners.
    """
    W = check_graph(W)
    labels = None if labels is None else one_per_node("labels", labels, W.shape[0])
    ax = _axes(ax)
    shown = ""
    if place is None:
        nodes, place = spectral_place(W)
        shown = "" if nodes.size == W.shape[0] else f" ({nodes.size / W.shape[0]:.1%}, in the largest components)"
        W, labels = W[nodes][:, nodes], None if labels is None else labels[nodes]
        ax.set(xlabel="first eigenvector (rank)", ylabel="second eigenvector (rank)")
    place = np.asarray(place, dtype=np.float64)
    if place.shape != (W.shape[0], 2) or not np.isfinite(place).all():
        raise ValueError(f"place has shape {place.shape}: a point for each node, ({W.shape[0]}, 2), is needed, without NaN.")
    (_shade if W.shape[0] > MAX_DRAWN_NODES else _draw)(W, place, labels, ax)
    ax.set(title=f"{W.shape[0]:,} nodes, {W.nnz // 2:,} edges{shown}", xticks=[], yticks=[])
    return ax


def neighborhood(W, node: int, hops: int = 2, labels=None, ids=None, most: int = 60, ax=None):
    """The nodes within some hops of one node, in rings around it. The larger a weight, the wider its line.

    Nodes are called by their ids and coloured by their labels, if given. If there are more than `most` nodes, nodes with fewer
    hops come first, and of a ring the nodes with the largest weights to the ring before it.
    """
    W = check_graph(W)
    if not (isinstance(node, Integral) and 0 <= node < W.shape[0]):
        raise ValueError(f"node={node!r}: the nodes are 0 to {W.shape[0] - 1}.")
    ids = None if ids is None else one_per_node("ids", ids, W.shape[0])
    nodes, hop, parent = _rings(W, node, hops, most)
    place = _ring_places(hop, parent)
    edges = sp.triu(W[nodes][:, nodes]).tocoo()
    ax = _axes(ax)
    ax.add_collection(_lines(place, edges, 0.5 + 4.0 * edges.data / W.data.max(initial=1e-300)))
    names = nodes if ids is None else ids[nodes]
    colours, legend = _colours(None if labels is None else one_per_node("labels", labels, W.shape[0])[nodes])
    pale = 0.5 + 0.5 * np.asarray(_rgb(colours))  # so that names can be read on them
    size, rim = np.where(hop == 0, 420, 260), np.where(hop == 0, 2.0, 0.8)
    ax.scatter(*place.T, c=pale, s=size, edgecolors=colours, linewidths=rim, zorder=2)
    for (x, y), name in zip(place, names, strict=True):
        ax.annotate(str(name), (x, y), ha="center", va="center", fontsize=7, zorder=3)
    _legend(ax, legend)
    ax.set(title=f"{len(nodes) - 1} nodes within {hops} hops of {names[0]}", aspect="equal")
    ax.set_axis_off()
    ax.margins(0.08)
    return ax


def overview(W, labels=None):
    """A figure of the graph, its numbers of neighbours and its weights, and of the classes if there are labels."""
    classes = labels is not None
    figure = _matplotlib("pyplot").figure(figsize=(17 if classes else 13, 6.5), layout="constrained")
    grid = figure.add_gridspec(2, 3 if classes else 2, width_ratios=[2.0, 1.0, 1.5] if classes else [2.0, 1.0])
    graph(W, labels=labels, ax=figure.add_subplot(grid[:, 0]))
    neighbor_counts(W, ax=figure.add_subplot(grid[0, 1]))
    weights(W, ax=figure.add_subplot(grid[1, 1]))
    if classes:
        class_connectivity(W, labels, ax=figure.add_subplot(grid[:, 2]))
    return figure


# --- pictures of how a graph was learned: they search and solve again what the learner did ------------------------------------


def theta_bounds(learner, most: int | None = None, ax=None):
    """The interval of θ that gives a node k neighbours, for k up to `most`, and the point where the fitted learner is.

    The bounds are means over at most 2,000 nodes. `most` is twice the wanted number of neighbours by default.
    """
    from smoothgraph.neighbors.queries import nearest_to_new
    from smoothgraph.parallel import Threads
    from smoothgraph.theta import theta_bounds as bounds

    _only_plain("Bounds of θ", learner)
    distances = learner.distances_
    most = min(most or 2 * learner.n_neighbors, distances.n - 2)
    nodes = np.linspace(0, distances.n - 1, min(MAX_BOUND_NODES, distances.n)).astype(np.int32)
    _, z, _ = nearest_to_new(distances, distances.own(nodes), most + 2, threads=Threads(learner.n_jobs))
    z = np.sort(z, axis=1)[:, 1 : most + 2]  # the first entry is the node itself
    k = np.arange(2, most + 1)  # k = 1 has no upper bound
    lower, upper = np.transpose([bounds(z, int(wanted))[:2] for wanted in k]) / distances.z_unit
    ax = _axes(ax)
    ax.fill_between(k, lower, upper, color=NODE, alpha=0.3, label="bounds for k neighbours", linewidth=0)
    ax.plot(k, np.sqrt(lower) * np.sqrt(upper), color=NODE, label="their geometric mean")
    ax.plot(learner.n_neighbors_, learner.theta_, "o", color="tab:red", label=f"learned: θ = {learner.theta_:.3g}", zorder=3)
    ax.set(title="θ and the number of neighbours", xlabel="neighbours k", ylabel="θ", yscale="log")
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False)
    return ax


def convergence(learner, solvers=("nodewise",), ax=None):
    """How the duality gap falls from round to round, when the fitted problem is solved again on its first neighbour lists.

    `solvers` may name "primal_dual" too, which takes much longer.
    """
    ax = _axes(ax)
    problem = _problem_again(learner)
    for solver in solvers:
        rounds, gaps = _gaps(problem, solver, learner.tol)
        ax.plot(rounds, gaps, marker="o", markersize=4, label=solver)
    ax.axhline(learner.tol, color="black", linestyle="--", linewidth=1, label=f"tol = {learner.tol:g}")
    ax.set(title=f"convergence, {problem.n:,} nodes", xlabel="rounds", ylabel="relative duality gap", yscale="log")
    if len(solvers) > 1:  # their numbers of rounds differ by orders of magnitude
        ticker = _matplotlib("ticker")
        ax.set(xscale="log")
        ax.xaxis.set(major_locator=ticker.LogLocator(subs=(1.0, 2.0, 5.0)), major_formatter=ticker.ScalarFormatter())
        ax.xaxis.set_minor_formatter("")
    ax.legend(frameon=False)
    return ax


def _only_plain(what, learner):
    """Raise an error unless the learner's problem is the log model on plain distances, with distances that are kept."""
    from smoothgraph.models import model_of

    values = {"model": model_of(learner.model).name, "locality": learner.locality_, "connect": learner.connect_}
    for name, plain in (("model", "log"), ("locality", 0), ("connect", False)):
        if values[name] != plain:
            remedy = "GraphLearner(…, locality=0, connect=False) learns a graph it can be drawn for"
            raise ValueError(f"{what} can be drawn for {name}={plain!r} only, not for {name}={values[name]!r}: {remedy}.")
    if learner.prior is not None:
        raise ValueError(f"{what} can be drawn without a prior only.")
    if learner._copies.kept and learner._copies.any:
        raise ValueError(
            f"{what} cannot be drawn for copies that are kept: duplicates='merge' learns a graph it can be drawn for."
        )
    if not learner.distances_.can_search:
        raise ValueError(f"{what} cannot be drawn for given allowed edges: the learner does not keep their distances.")


def _problem_again(learner):
    """The problem that the learner solved first, before any node got a longer list."""
    from smoothgraph._checks import lists_of_distinct
    from smoothgraph.models import LogProblem
    from smoothgraph.neighbors import find_neighbors
    from smoothgraph.parallel import Threads

    _only_plain("Convergence", learner)
    width = max(int(np.ceil(learner.oversampling * learner.n_neighbors)), learner.n_neighbors + 1)
    threads, neighbors = Threads(learner.n_jobs), lists_of_distinct(learner.neighbors, learner._copies)
    how = {"neighbors": neighbors, "random_state": learner.random_state, "threads": threads}
    edges = find_neighbors(learner.distances_, width, **how).edges(threads=threads)
    delta = 1.0 if isinstance(learner.scale, str) else learner.scale_
    theta = learner.theta_ * learner.distances_.z_unit
    return LogProblem(edges, theta, None if learner.max_weight is None else learner.max_weight / delta)


def _gaps(problem, solver, tol):
    """Rounds and gaps of solves to ever smaller gaps, until one is at most `tol`."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from smoothgraph.solvers import solve

    gaps: dict[int, float] = {}
    for goal in np.append(10.0 ** np.arange(-1.0, np.log10(tol), -0.5), tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve(problem, solver=solver, tol=float(goal))
        gaps[solution.n_iter] = min(solution.gap, gaps.get(solution.n_iter, np.inf))
    return list(gaps), list(gaps.values())


# --- where nodes are drawn, and how -------------------------------------------------------------------------------------------


def spectral_place(W):
    """The nodes of the largest components, and where to draw them: at the ranks of the first two eigenvectors of each.

    The largest component fills the unit square. The next ones stand beside it, in squares with areas that are as their numbers
    of nodes.
    """
    W = check_graph(W)
    _, component = components(W)
    sizes = np.bincount(component)
    shown = np.flatnonzero(sizes[:MAX_COMPONENTS] >= MIN_COMPONENT * W.shape[0])
    nodes, places, column, row, width = [], [], 0.0, 0.0, 0.0
    for c in shown:
        members, side = np.flatnonzero(component == c), np.sqrt(sizes[c] / sizes[0])
        if row + side > 1.0:
            column, row, width = column + width + GAP, 0.0, 0.0
        nodes.append(members)
        places.append(side * _ranks(W[members][:, members]) + [column, row])
        row, width = row + side + GAP, max(width, side)
    return np.concatenate(nodes), np.concatenate(places)


def _ranks(W):
    """The first two eigenvectors of a connected graph, as ranks from 0 to 1."""
    from smoothgraph.uses.embedding import rough_eigenvectors, spectral_embedding

    n = W.shape[0]
    if n < 4:
        return np.column_stack([np.arange(n), np.arange(n) % 2]) / max(n - 1, 1)
    place = spectral_embedding(W, 2).coordinates if n <= MAX_EMBEDDED_NODES else rough_eigenvectors(W)
    return place.argsort(axis=0).argsort(axis=0) / (n - 1)


def _matplotlib(module: str) -> Any:
    return need(f"matplotlib.{module}", EXTRA)


def _axes(ax):
    return _matplotlib("pyplot").subplots(layout="constrained")[1] if ax is None else ax


def _percent(value):
    """A number from 0 to 100 in at most three letters; nothing if it rounds to 0."""
    return "" if value < 0.05 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _colours(labels):
    """A colour for each node, and (name, colour) of the classes for a legend."""
    if labels is None:
        return NODE, []
    colormaps = need("matplotlib", EXTRA).colormaps
    classes, number = np.unique(labels, return_inverse=True)
    palette = colormaps["tab10" if classes.size <= 10 else "tab20"](np.arange(MAX_CLASSES))[:, :3]
    if classes.size > MAX_CLASSES:
        return colormaps["turbo"](np.linspace(0.0, 1.0, classes.size))[number, :3], []
    return palette[number], [(str(name), palette[c]) for c, name in enumerate(classes)]


def _rgb(colours):
    return _matplotlib("colors").to_rgba_array(colours)[:, :3]


def _legend(ax, legend):
    if legend:
        line = _matplotlib("lines").Line2D
        marks = [line([], [], marker="o", linestyle="", color=colour, label=name) for name, colour in legend]
        ax.legend(handles=marks, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _lines(place, edges, widths):
    """A line for each edge."""
    collections = _matplotlib("collections")
    return collections.LineCollection(place[np.stack([edges.row, edges.col], axis=1)], colors=EDGE, linewidths=widths, zorder=1)


def _draw(W, place, labels, ax):
    """A line for each edge and a dot for each node; both are smaller the more nodes there are."""
    edges = sp.triu(W, k=1).tocoo()
    thin = min(1.5, 60.0 / np.sqrt(W.shape[0]))
    ax.add_collection(_lines(place, edges, thin * edges.data / W.data.max(initial=1e-300)))
    colours, legend = _colours(labels)
    ax.scatter(*place.T, c=colours, s=np.clip(15_000 / W.shape[0], 1.0, 40.0), zorder=2)
    _legend(ax, legend)


def _shade(W, place, labels, ax, pixels=600):
    """Edges in shades of grey; above them nodes, each pixel in the colour of its most frequent class, darker for many nodes."""
    ds, pd = need("datashader", EXTRA), need("pandas", EXTRA)
    low, high = place.min(axis=0), place.max(axis=0)
    canvas = ds.Canvas(pixels, pixels, x_range=(low[0], high[0]), y_range=(low[1], high[1]))
    edges = sp.triu(W, k=1).tocoo()
    ends = pd.DataFrame(
        {"x0": place[edges.row, 0], "x1": place[edges.col, 0], "y0": place[edges.row, 1], "y1": place[edges.col, 1]}
    )
    edge_counts = canvas.line(ends, x=["x0", "x1"], y=["y0", "y1"], axis=1, agg=ds.count()).to_numpy()
    legend = _colours(labels)[1]
    classes = pd.Categorical(np.zeros(W.shape[0], int) if labels is None else labels)
    points = pd.DataFrame({"x": place[:, 0], "y": place[:, 1], "class": classes})
    counts = canvas.points(points, "x", "y", agg=ds.count_cat("class")).to_numpy()
    image = 1.0 - 0.5 * _shades(edge_counts)[:, :, None] * np.ones(3)
    total = counts.sum(axis=2)
    has_node = total > 0
    colour_of = _rgb(NODE if labels is None else _colours(classes.categories)[0])
    cover = 0.3 + 0.7 * np.log1p(total[has_node]) / np.log1p(total.max())
    image[has_node] += cover[:, None] * (colour_of[counts.argmax(axis=2)[has_node]] - image[has_node])
    ax.imshow(image, origin="lower", extent=(low[0], high[0], low[1], high[1]), aspect="auto", interpolation="nearest")
    _legend(ax, legend)


def _shades(counts):
    """Counts as shades from 0 to 1, by rank: by value nearly all would be 0, since a few pixels have most of the edges."""
    shades = np.zeros(counts.shape)
    some = counts > 0
    values, number = np.unique(counts[some], return_inverse=True)
    shades[some] = (number + 1) / max(values.size, 1)
    return shades


def _rings(W, node, hops, most):
    """(nodes, hops, parents): the nodes around `node`, nearest first, and which of them each was reached from.

    A parent is a place in the list of nodes. If several nodes reach another, the one with the largest weight is its parent.
    """
    nodes, hop, parent = [node], [0], [-1]
    ring = [0]
    for h in range(1, hops + 1):
        reached: dict[int, tuple[float, int]] = {}
        for at in ring:
            row = slice(W.indptr[nodes[at]], W.indptr[nodes[at] + 1])
            for j, w in zip(W.indices[row].tolist(), W.data[row].tolist(), strict=True):
                if w > reached.get(j, (0.0, 0))[0]:
                    reached[j] = (w, at)
        new = sorted((at, -w, j) for j, (w, at) in reached.items() if j not in set(nodes))
        new = sorted(sorted(new, key=lambda one: one[1])[: max(0, most - len(nodes))])
        ring = list(range(len(nodes), len(nodes) + len(new)))
        nodes += [j for _, _, j in new]
        hop += [h] * len(new)
        parent += [at for at, _, _ in new]
    return np.array(nodes), np.array(hop), np.array(parent)


def _ring_places(hop, parent):
    """Places on rings. A node has a sector inside the sector of its parent, as wide as the number of its descendants needs."""
    size = np.ones(hop.size)
    for at in range(hop.size - 1, 0, -1):
        size[parent[at]] += size[at]
    begin, taken = np.zeros(hop.size), np.zeros(hop.size)
    width = np.full(hop.size, 2.0 * np.pi)
    for at in range(1, hop.size):
        up = parent[at]
        width[at] = width[up] * size[at] / (size[up] - 1.0)
        begin[at] = begin[up] + taken[up]
        taken[up] += width[at]
    angle = begin + width / 2.0
    return hop[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
