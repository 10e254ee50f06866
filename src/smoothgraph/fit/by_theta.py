"""The flow of the models that have a θ: lists → allowed edges → θ → solve ◄─► certify → connect → solution.

In: a model with the methods of `ThetaModel`, and a task. Out: what was learned. The search may number the samples anew; this
module goes to those numbers at its beginning, and back to the rows of the table at its end.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smoothgraph.edges import Edges
from smoothgraph.fit.connect import connect
from smoothgraph.fit.solve_certified import solve_certified
from smoothgraph.fit.state import Asked, Bridges, State, Support, Terms, mean_neighbors
from smoothgraph.fit.task import Learned, Task
from smoothgraph.messages import warn
from smoothgraph.neighbors.bounds import Bounds
from smoothgraph.new_samples import FittedGraph
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import Solution, Solver
from smoothgraph.theta import ALL_ZERO, ThetaBounds, node_thetas, theta_bounds

# Largest θz of a node's nearest neighbour. The weights of such a node are near 1/(2θz), and are found from λ near 2θz: with
# offsets two of the 16 digits that float64 has are left for them.
LARGEST_COST = 1e14
PROMISED_DEGREE = 0.01  # relative error of the number of neighbours from which on there is a warning
BEYOND_BOUNDS = 10.0  # a search for θ goes this factor beyond the bounds of single nodes, since nodes are not alone


class ThetaModel(Protocol):
    """What a model states: w = clip((λᵢ+λⱼ)/2 − θz, 0, max_weight), and what λ has to be."""

    def theta_at(self, first: np.ndarray, edge: np.ndarray) -> np.ndarray:
        """The θ at which a node alone, with k neighbours at the distances `first`, would take in one at `edge`."""
        ...

    def problem(self, edges: Edges, theta: float, terms: Terms, fixed: np.ndarray | None) -> Any:
        """Its problem on allowed edges; `fixed` is the weight that each node has of bridges."""
        ...

    def solver(self, threads: Threads) -> Solver: ...

    def row_solver(self, problem: Any, lam: np.ndarray) -> Callable[[np.ndarray, Threads], tuple[np.ndarray, np.ndarray]]:
        """solve_rows(a, threads): λ and weights of new nodes with costs a, the fitted λ staying."""
        ...


def learn_by_theta(model: ThetaModel, task: Task) -> Learned:
    """Learn the graph of a model that has a θ."""
    numbering, threads, stage = task.found.numbering, task.threads, task.progress.stage
    distances = task.distances.numbered(numbering)
    if task.sizes is not None and task.theta is None:
        _check_attainable(task.n_neighbors, task.sizes)
    prior = None if task.prior is None else numbering.graph_by_node(task.prior)
    with stage("edges") as say:
        edges = task.found.edges(threads=threads)
        if prior is not None and not task.found.is_given:
            edges = edges.add_graph(prior, distances, threads=threads)
        say(f"{edges.n_edges} allowed edges")
    with stage("theta") as say:
        local_scale = _local_scale(task)
        z = task.found.nearest(task.n_neighbors + 1, local_scale, threads=threads)
        bounds = _theta_bounds(model, task, z)
        theta = task.theta or float(np.sqrt(bounds.lower) * np.sqrt(bounds.upper))  # type: ignore[union-attr]
        nearest = z[:, 0].copy()
        del z  # solving needs the memory, that of the lists too
        most = _largest_theta(task, nearest, theta)
        theta_range = None if bounds is None else _theta_range(task, bounds, nearest, most)
        say(f"θ {theta:.6g}" + (f", bounds {bounds.lower:.6g} to {bounds.upper:.6g}" if bounds else ""))
        is_exact = task.found.exact
        task.found.release()
    started, asked = time.perf_counter(), _asked(model, task, distances, prior, is_exact, theta_range)
    with stage("solve") as say:
        support = Support.of(edges, task.width, local_scale, threads=threads)
        del edges  # with locality the support has other distances
        may_scan = is_exact or not task.connect  # else nodes are scanned once, when the components are connected
        state = solve_certified(replace(asked, say=say), support, theta, may_scan=may_scan)
    if task.connect:
        with stage("connect") as say:
            state = connect(replace(asked, say=say), state)
    if task.bounds is not None:
        with stage("proof") as say:
            state = _proven(replace(asked, say=say, proof=True, bounds=task.bounds), state, task.connect)
    solution = asked.solver.finish(state.problem, state.point, task.tol, started)
    _warn_of_degree(asked, state, solution)
    fitted, bridges = _fitted(model, task, asked, state, solution), state.bridges
    theta, n_incomplete = state.problem.theta, int(state.failing.size)
    del state, asked  # the allowed edges, and the bounds: the graph is copied, and needs the memory
    with stage("graph"):
        solution = _by_rows(solution, bridges, numbering)
    own_weights = None if task.sizes is None else np.minimum(solution.dual, task.max_weight or np.inf)
    ends = np.sort(numbering.rows(np.stack([bridges.i, bridges.j], axis=1)), axis=1)
    return Learned(solution.weights, solution, theta, bounds, n_incomplete, ends, fitted.rows, own_weights)


def _proven(asked: Asked, state: State, connected: bool) -> State:
    """The same with a certificate that does not rest on the lists: every pair that may have weight becomes an allowed edge."""
    support = replace(state.support, edges=state.support.edges.without_reach(), scanned=None, scan_limits=None)
    state = solve_certified(asked, support, state.problem.theta, bridges=state.bridges, start=state)
    return connect(asked, state) if connected else state


def _asked(model, task, distances, prior, is_exact, theta_range) -> Asked:
    asked = Asked(
        model=model,
        solver=model.solver(task.threads),
        distances=distances,
        terms=Terms(task.max_weight, prior, task.prior_strength, task.node_sizes),
        is_exact=is_exact,
        complete=task.complete,
        bounds=Bounds(distances, threads=task.threads) if distances.has_bounds else None,
        tol=task.tol,
        max_iter=task.max_iter,
        threads=task.threads,
    )
    return asked if task.theta is not None else replace(asked, degree=task.n_neighbors, theta_range=theta_range)


def _local_scale(task: Task) -> np.ndarray | None:
    """θᵢ^(γ/2) of every node, γ = `locality`; None without it."""
    if task.locality == 0:
        return None
    most = task.distances.n - 1  # kept copies may leave fewer others than wanted neighbours
    z = task.found.nearest(min(task.n_neighbors + 1, most), threads=task.threads)
    return node_thetas(z, min(task.n_neighbors, z.shape[1])) ** (0.5 * task.locality)


def _theta_bounds(model, task: Task, z) -> ThetaBounds | None:
    """θ bounds for the wanted degree; None where θ is given and the lists are too short to have any.

    z has the squared distances of each node's nearest, as the problem counts them.
    """
    k, n, most = task.n_neighbors, task.distances.n, task.found.most_neighbors
    if task.sizes is not None:  # bounds of distinct samples, to begin with
        return None if n == 1 else theta_bounds(z, min(k, n - 1), model.theta_at)
    if task.theta is None and k > most:
        raise ValueError(
            f"n_neighbors={k}, but the allowed edges give a node {most:.4g} neighbours on average at most. Ask for "
            "fewer neighbours, allow more edges, or set theta."
        )
    if z.shape[1] < min(k + 1, n - 1):
        if task.theta is not None:
            return None
        raise ValueError(
            f"The neighbour lists have {z.shape[1]} entries, n_neighbors={k} needs at least {k + 1}; "
            f"{3 * k} leave the learner a choice. Give longer lists, or set theta."
        )
    return theta_bounds(z, k, model.theta_at)


def _check_attainable(k: int, sizes: np.ndarray) -> None:
    """Raise if copies alone have more neighbours than are wanted. A row without copies has one neighbour at the least."""
    least = float(np.sum(sizes * np.maximum(sizes - 1.0, 1.0)) / sizes.sum())
    if sizes.size == 1:
        raise ValueError(ALL_ZERO)
    if least > k:
        raise ValueError(
            f"n_neighbors={k}, but with duplicates='keep' a row has {least:.4g} neighbours on average at the least, since "
            "copies are neighbours whatever θ is. Ask for more neighbours, set theta, or use duplicates='merge'."
        )


def _largest_theta(task: Task, nearest, theta) -> float:
    """The largest θ for which float64 has the digits of every weight. Raises if θ itself is larger.

    `nearest` has the squared distance of each node's nearest neighbour, as the problem counts it.
    """
    nearest = np.where(np.isfinite(nearest), nearest, 0.0)  # a node without any neighbour
    if task.node_sizes is not None:
        nearest = np.where(task.node_sizes > 1, 0.0, nearest)  # a copy is the nearest
    node = int(np.argmax(nearest))
    most = LARGEST_COST / max(float(nearest[node]), LARGEST_COST * np.finfo(np.float64).tiny)
    if theta <= most:
        return most
    if task.theta is not None:
        raise ValueError(
            f"θ={task.theta:.3g} is too large for these distances: θ times the squared distance of neighbours is up to "
            f"{task.theta * nearest[node]:.3g}, and float64 has no digits for weights beyond {LARGEST_COST:.0e}. Use a smaller "
            "theta (that is a larger alpha·beta), rescale the features, or leave θ to be found for n_neighbors."
        )
    row = int(task.first_rows[task.found.numbering.rows(np.array([node]))][0])
    raise ValueError(
        f"Sample {row} is too far from all others: its nearest neighbour is {np.sqrt(theta * nearest[node]):.1e} times as far "
        "away as neighbours are in this table, and float64 has no digits for its weights. Is it a wrong value, or a code for a "
        "missing one? Remove or clip it, or rescale the features."
    )


def _theta_range(task: Task, bounds: ThetaBounds, nearest, most: float) -> tuple[float, float]:
    """Where θ is searched for: beyond the bounds of every node alone, nodes no longer change their neighbours.

    If a sample has m rows, λ and with it θ are smaller by √m at most; and λ of copies is at most 1, so that they have no
    neighbours but each other once θz > 1 to the nearest other sample.
    """
    nodes = np.concatenate([bounds.node_lower, bounds.node_upper])
    least, largest = nodes.min(), nodes.max()
    if task.sizes is not None:
        least, largest = least / np.sqrt(task.sizes.max()), max(largest, 1.0 / nearest[nearest > 0.0].min(initial=np.inf))
    return least / BEYOND_BOUNDS, min(largest * BEYOND_BOUNDS, most)


def _warn_of_degree(asked: Asked, state: State, solution: Solution) -> None:
    """Warn if the graph has not the number of neighbours that was asked for, and say which numbers there are.

    A solve that was cut short has more edges in the end than its point: see `Nodewise.finish`.
    """
    n, wanted, reached = state.problem.n, asked.degree, mean_neighbors(state.point, state.bridges)
    if asked.terms.sizes is None:
        reached += (solution.weights.nnz - float(state.point.n_neighbors.sum())) / n
    one_edge = 2.0 / asked.terms.n_rows(n)
    if wanted is None or abs(reached - wanted) <= max(PROMISED_DEGREE * wanted, one_edge):
        return
    connected = f" {state.bridges.count} bridges were needed for one component." if state.bridges.count else ""
    why = "" if state.jump is None else f": {state.jump}"
    warn(f"Wanted {wanted} neighbours per node, the graph has {reached:.4g}{why}.{connected}", ConvergenceWarning)


def _fitted(model, task: Task, asked: Asked, state: State, solution: Solution) -> FittedGraph:
    """What rows for new samples need."""
    problem = state.problem
    lam = solution.dual * problem.shrink
    return FittedGraph(
        asked.distances,
        model.row_solver(problem, lam),
        state.theta,
        lam,
        task.n_neighbors,
        task.locality,
        state.support.local_scale,
        problem.shrink,
        asked.terms.sizes,
    )


def _by_rows(solution: Solution, bridges: Bridges, numbering: Numbering) -> Solution:
    """The solution, for samples numbered by rows, with the bridges in its graph."""
    weights = solution.weights
    if bridges.count:
        weights = sp.csr_matrix(weights + bridges.graph(weights.shape[0]))
        weights.sort_indices()
    return replace(solution, weights=numbering.graph_by_row(weights), dual=numbering.values_by_row(solution.dual))
