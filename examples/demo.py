"""Learn a graph from a table of samples and show what came out: `python examples/demo.py [DATA] [--neighbors K]`.

DATA is a .npy file, or a .csv file of numbers; without it, the 1,797 handwritten digits that come with scikit-learn are used.
Writes graph.npz (scipy.sparse.load_npz reads it) and graph.png into demo_output/.
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.collections import LineCollection
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits
from sklearn.manifold import spectral_embedding

from smoothgraph import GraphLearner


def read_samples(path):
    """Samples and, for the digits, their labels."""
    if path is None:
        return load_digits(return_X_y=True)
    if path.suffix == ".npy":
        return np.load(path), None
    if path.suffix == ".csv":
        first = path.read_text(encoding="utf-8").split("\n", 1)[0]
        header = any(not _is_number(cell) for cell in first.split(","))
        return np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2), None
    raise ValueError(f"{path} is neither .npy nor .csv.")


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def summary(learner):
    """What was learned, a line each."""
    solution, bounds, n = learner.solution_, learner.theta_bounds_, learner.graph_.shape[0]
    yield "nodes", f"{n:,}"
    yield "edges", f"{learner.graph_.nnz // 2:,}"
    yield "neighbours per node", f"{learner.n_neighbors_:.3f} (wanted {learner.n_neighbors})"
    yield "θ", f"{learner.theta_:.6g} (bounds {bounds.lower:.6g} to {bounds.upper:.6g})"
    yield "relative duality gap", f"{solution.gap:.1e} ({solution.status})"
    yield "certified nodes", f"{n - learner.n_incomplete_:,} of {n:,} ({learner.neighbors_} neighbour search)"
    yield "connected components", f"{learner.n_components_:,}"
    yield "seconds", ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in learner.seconds_.items())


def draw(learner, labels, path):
    """The largest component over its spectral embedding, beside the degrees and the weights."""
    component = connected_components(learner.graph_)[1]
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    W = learner.graph_[nodes][:, nodes]
    place = spectral_embedding(W, n_components=2, random_state=0)
    place = place.argsort(axis=0).argsort(axis=0) / len(nodes)  # ranks: eigenvectors crowd most nodes into the corners
    edges = sp.triu(W).tocoo()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 6.2), width_ratios=[2.2, 1, 1], layout="constrained")
    lines = LineCollection(place[np.stack([edges.row, edges.col], axis=1)], colors="0.55", linewidths=0.8 * edges.data)
    left.add_collection(lines)
    colours = "tab:blue" if labels is None else labels[nodes]
    points = left.scatter(*place.T, c=colours, s=9, cmap="tab10", zorder=2)
    if labels is not None:
        left.legend(*points.legend_elements(), title="digit", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    left.set(title=f"{len(nodes):,} nodes, {edges.nnz:,} edges (largest component)", xticks=[], yticks=[])
    left.set(xlabel="first eigenvector (rank)", ylabel="second eigenvector (rank)")
    degrees = np.diff(learner.graph_.indptr)
    middle.hist(degrees, bins=np.arange(0.5, degrees.max() + 1.5), color="tab:blue")
    middle.axvline(degrees.mean(), color="black", linestyle="--", label=f"mean {degrees.mean():.2f}")
    middle.set(title="neighbours of a node", xlabel="neighbours", ylabel="nodes")
    middle.legend(frameon=False)
    right.hist(learner.graph_.data, bins=50, color="tab:orange")
    right.set(title="weights", xlabel="weight (at most 1)", ylabel="edge ends")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help=".npy or .csv file; the digits if left out")
    parser.add_argument("--neighbors", type=int, default=10, metavar="K", help="wanted neighbours per node (10)")
    parser.add_argument("--output", type=Path, default=Path("demo_output"), help="folder to write to (demo_output)")
    options = parser.parse_args(arguments)
    try:
        X, labels = read_samples(options.data)
        learner = GraphLearner(n_neighbors=options.neighbors, verbose=1).fit(X)
    except (ValueError, OSError) as error:
        sys.exit(f"smoothgraph demo: {error}")
    print()
    for name, value in summary(learner):
        print(f"  {name:21} {value}")
    options.output.mkdir(parents=True, exist_ok=True)
    sp.save_npz(options.output / "graph.npz", learner.graph_)
    draw(learner, labels, options.output / "graph.png")
    print(f"\nWrote {options.output / 'graph.npz'} and {options.output / 'graph.png'}.")
    print("Your own file:  make demo DATA=samples.csv K=10   (or .npy; rows are samples)")


if __name__ == "__main__":
    main()
