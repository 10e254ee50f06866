"""Time against the number of allowed edges (supplement: MNIST computational time)."""

import numpy as np

from experiments.common import Claim, core_seconds, images, search
from smoothgraph.models import LogProblem
from smoothgraph.parallel import Threads
from smoothgraph.solvers import solve
from smoothgraph.theta import theta_for_degree

TITLE = "Time against the number of allowed edges"
CAPTION = (
    "MNIST. Seconds of one core to learn the weights on the allowed edges, three times as many as wanted, against their "
    "number, by the paper's scheme (primal-dual) and by our node-wise solver, to the same relative duality gap of 1e-4. The "
    "neighbour search is not counted."
)
ALWAYS = ()  # times are for the full size to judge
SIZES = {
    "small": {"n": 500, "lengths": [15, 45], "repeats": 1},
    "medium": {"n": 5000, "lengths": [9, 15, 30, 45, 60, 90], "repeats": 5},
    "full": {"n": 60_000, "lengths": [9, 15, 30, 45, 60, 90], "repeats": 5},
}
TOL = 1e-4


def run(n, lengths, repeats):
    X = images("mnist", n)[0]
    seconds, lists = core_seconds(lambda: search(X, max(lengths)))
    numbers = {"n": n, "seconds of the search": seconds, "points": []}
    solve(problem_of(lists, lengths[0]), tol=TOL)  # compiles
    for length in lengths:
        problem = problem_of(lists, length)
        point = {"length": length, "edges": problem.edges.n_edges}
        for solver in ("nodewise", "primal_dual"):
            runs = [core_seconds(lambda: solve(problem, solver=solver, tol=TOL, n_jobs=1)) for _ in range(repeats)]  # noqa: B023
            point[solver] = min(seconds for seconds, _ in runs)
            point[f"{solver} rounds"] = runs[0][1].n_iter
        numbers["points"].append(point)
    return numbers


def problem_of(lists, length):
    """A third of the list is wanted, as with r = 3."""
    first = lists.first(length)
    return LogProblem(first.edges(threads=Threads()), theta_for_degree(first.distances, length // 3))


def linear(numbers, solver):
    """R² of seconds per round as a linear function of the edges."""
    edges, seconds = np.array([[p["edges"], p[solver] / p[f"{solver} rounds"]] for p in numbers["points"]]).T
    return float(np.corrcoef(edges, seconds)[0, 1] ** 2)


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    edges = [point["edges"] / 1e6 for point in numbers["points"]]
    for solver, label, colour in (("primal_dual", "paper's scheme", "tab:orange"), ("nodewise", "ours", "tab:blue")):
        seconds = np.array([point[solver] for point in numbers["points"]])
        rounds = np.array([point[f"{solver} rounds"] for point in numbers["points"]])
        axes[0].plot(edges, seconds, "o-", color=colour, label=label)
        axes[1].plot(edges, 1000 * seconds / rounds, "o-", color=colour, label=label)
    axes[0].set(ylabel="seconds of one core to a gap of 1e-4", yscale="log", title=f"{numbers['n']:,} nodes")
    axes[1].set(ylabel="milliseconds per iteration or sweep", title="per round")
    for ax in axes:
        ax.set(xlabel="allowed edges (millions)")
        ax.legend()
    return figure


def claims(numbers):
    first, last = numbers["points"][0], numbers["points"][-1]
    fit = linear(numbers, "primal_dual")
    yield Claim(
        f"The time is linear in the number of allowed edges ({numbers['n']:,} nodes)",
        "linear, 60,000 nodes, 250 to 450 iterations to 1e-4",
        f"R² of time per round: paper's scheme {fit:.3f}, ours {linear(numbers, 'nodewise'):.3f}; iterations "
        f"{first['primal_dual rounds']}–{last['primal_dual rounds']}, our sweeps {first['nodewise rounds']}–"
        f"{last['nodewise rounds']}",
        fit > 0.9,
    )
    search, learning = numbers["seconds of the search"], max(point["nodewise"] for point in numbers["points"])
    yield Claim(
        "Learning the weights costs no more than the neighbour search",
        "20 s and 20 s, 60,000 nodes",
        f"search {search:.1f} s, learning at most {learning:.2f} s",
        learning <= search,
    )
