"""How much is lost when only r·k neighbours are allowed (Figure 6: approximation error against r), and with our certificate."""

import numpy as np

from experiments.common import PAPER, Claim, images, kept
from smoothgraph import GraphLearner
from smoothgraph.distances import distances_of
from smoothgraph.fit.solve_certified import solve_certified
from smoothgraph.fit.state import Asked, Support
from smoothgraph.models import Log
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads
from smoothgraph.uses import relative_l1

TITLE = "Error of the restricted model"
CAPTION = (
    "MNIST. Relative ℓ1 distance from the graph learned over all pairs, against r, the allowed edges being r·k exact nearest "
    "neighbours; means over runs, bars are standard deviations. Squares: our certified support, at as many times k as it "
    "needed (its error is that of the solver's tolerance)."
)
ALWAYS = "The restricted model", "Ours: the certified support"
SIZES = {
    "small": {"n": 300, "ks": [5], "ratios": [1.5, 3, 6], "n_runs": 2},
    "medium": {"n": 1000, "ks": [5, 10], "ratios": [1, 1.5, 2, 3, 5, 10], "n_runs": 3},
    "full": {"n": 1000, "ks": [5, 10, 20], "ratios": [1, 1.5, 2, 3, 4, 5, 7, 10], "n_runs": 10},
}
TOL = 1e-10


def run(n, ks, ratios, n_runs):
    numbers = {}
    for k in ks:
        runs = [kept(f"support-{k}-{seed}", one_run, n, seed, k, ratios) for seed in range(n_runs)]
        numbers[str(k)] = {
            "ratios": ratios,
            "errors": [[errors[at] for errors, _, _ in runs] for at in range(len(ratios))],
            "certified errors": [error for _, error, _ in runs],
            "certified ratios": [edges / (k * n / 2) for _, _, edges in runs],
            "all pairs": (n - 1) / k,
        }
    return numbers


def one_run(n, seed, k, ratios):
    """Errors over r; the error of the certified graph, and the edges it was allowed in the end."""
    X = images("mnist", n, seed)[0].astype(np.float64)
    full = GraphLearner(k, neighbors="all", tol=TOL, **PAPER).fit(X)
    fixed = {"theta": full.theta_, "neighbors": "exact", "tol": TOL, **PAPER}
    restricted = [GraphLearner(k, oversampling=r, complete=False, **fixed).fit(X).graph_ for r in ratios]
    distances, threads = distances_of(X), Threads()
    edges = find_neighbors(distances, 3 * k, "exact", threads=threads).edges(threads=threads)
    asked = Asked(Log(), Log().solver(threads), distances, is_exact=True, tol=TOL, threads=threads)
    state = solve_certified(asked, Support.of(edges, 3 * k, threads=threads), full.theta_)
    certified = GraphLearner(k, **fixed).fit(X)
    assert certified.n_incomplete_ == state.failing.size == 0
    errors = [relative_l1(W, full.graph_) for W in restricted]
    return errors, relative_l1(certified.graph_, full.graph_), state.support.edges.n_edges


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for (k, one), colour in zip(numbers.items(), ("tab:blue", "tab:orange", "tab:green"), strict=False):
        errors = 100.0 * np.array(one["errors"])
        ax.errorbar(
            one["ratios"], errors.mean(axis=1), errors.std(axis=1), marker="o", capsize=2, color=colour, label=f"k = {k}"
        )
        needed = np.mean(one["certified ratios"])
        error = 100.0 * np.mean(one["certified errors"])
        ax.plot(needed, error, "s", color=colour, markersize=10, markerfacecolor="none", label=f"k = {k}, certified")
    ax.set(xlabel="r = allowed neighbours / k (squares: allowed edges / wanted edges)", ylabel="relative ℓ1 error (%)")
    ax.set_ylim(bottom=-0.5)
    ax.legend()
    return figure


def claims(numbers):
    for k, one in numbers.items():
        errors = 100.0 * np.mean(one["errors"], axis=1)
        falls = bool((np.diff(errors) <= 1e-9).all())
        at = int(np.argmin(np.abs(np.array(one["ratios"]) - 3)))
        yield Claim(
            f"The restricted model approaches the full one as r grows, k = {k}",
            "a curve, mean of 10 runs",
            f"{errors[0]:.1f} % at r = {one['ratios'][0]:g}, {errors[at]:.1f} % at {one['ratios'][at]:g}, "
            f"{errors[-1]:.2g} % at {one['ratios'][-1]:g}",
            falls,
        )
        worst = max(one["certified errors"])
        yield Claim(
            f"Ours: the certified support has no error, k = {k}",
            "—",
            f"at most {100 * worst:.1g} %, with {np.mean(one['certified ratios']):.1f} times the wanted edges allowed "
            f"(all pairs: {one['all pairs']:.0f} times)",
            worst < 1e-4,
        )
