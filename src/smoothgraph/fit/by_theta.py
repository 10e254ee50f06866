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

from smoothgraph.edges import Edges
from smoothgraph.fit.connect import connect
from smoothgraph.fit.solve_certified import solve_certified
from smoothgraph.fit.state import Asked, State, Support, Terms
from smoothgraph.fit.task import Learned, Task
from smoothgraph.new_samples import FittedGraph
from smoothgraph.parallel import Threads
from smoothgraph.solvers.problem import Solution, Solver
from smoothgraph.theta import ThetaBounds, node_thetas, theta_bounds


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
    prior = None if task.prior is None else numbering.graph_by_node(task.prior)
    with stage("edges") as say:
        edges = task.found.edges(threads=threads)
        if prior is not None and not task.found.is_given:
            edges = edges.add_graph(prior, distances, threads=threads)
        say(f"{edges.n_edges} allowed edges")
    with stage("theta") as say:
        local_scale = _local_scale(task)
        bounds = _theta_bounds(model, task, local_scale)
        theta = task.theta or float(np.sqrt(bounds.lower * bounds.upper))  # type: ignore[union-attr]
        say(f"θ {theta:.6g}" + (f", bounds {bounds.lower:.6g} to {bounds.upper:.6g}" if bounds else ""))
        is_exact = task.found.exact
        task.found.release()  # solving needs the memory
    started, asked = time.perf_counter(), _asked(model, task, distances, prior, is_exact)
    with stage("solve") as say:
        support = Support.of(edges, task.width, local_scale, threads=threads)
        del edges  # with locality the support has other distances
        may_scan = is_exact or not task.connect  # else nodes are scanned once, when the components are connected
        state = solve_certified(replace(asked, say=say), support, theta, may_scan=may_scan)
    if task.connect:
        with stage("connect") as say:
            state = connect(replace(asked, say=say), state)
    return _learned(model, task, asked, state, bounds, asked.solver.finish(state.problem, state.point, task.tol, started))


def _asked(model, task, distances, prior, is_exact) -> Asked:
    return Asked(
        model,
        model.solver(task.threads),
        distances,
        Terms(task.max_weight, prior, task.prior_strength),
        is_exact,
        task.n_neighbors if task.theta is None else None,
        task.complete,
        task.tol,
        task.max_iter,
        task.threads,
    )


def _local_scale(task: Task) -> np.ndarray | None:
    """θᵢ^(γ/2) of every node, γ = `locality`; None without it."""
    if task.locality == 0:
        return None
    z = task.found.nearest(task.n_neighbors + 1, threads=task.threads)
    return node_thetas(z, min(task.n_neighbors, z.shape[1])) ** (0.5 * task.locality)


def _theta_bounds(model, task: Task, local_scale) -> ThetaBounds | None:
    """θ bounds for the wanted degree; None where θ is given and the lists are too short to have any."""
    k, n, most = task.n_neighbors, task.distances.n, task.found.most_neighbors
    if task.theta is None and k > most:
        raise ValueError(
            f"n_neighbors={k}, but the allowed edges give a node {most:.4g} neighbours on average at most. Ask for "
            "fewer neighbours, allow more edges, or set theta."
        )
    z = task.found.nearest(k + 1, local_scale, threads=task.threads)
    if z.shape[1] < min(k + 1, n - 1):
        if task.theta is not None:
            return None
        raise ValueError(
            f"The neighbour lists have {z.shape[1]} entries, n_neighbors={k} needs at least {k + 1}; "
            f"{3 * k} leave the learner a choice. Give longer lists, or set theta."
        )
    return theta_bounds(z, k, model.theta_at)


def _learned(model, task: Task, asked: Asked, state: State, bounds, solution: Solution) -> Learned:
    """What was learned, for samples numbered by rows."""
    problem, numbering, bridges = state.problem, asked.distances.numbering, state.bridges
    if bridges.count:
        solution = replace(solution, weights=_with_bridges(solution.weights, bridges.graph(problem.n)))
    lam = solution.dual * problem.shrink
    fitted = FittedGraph(
        asked.distances,
        model.row_solver(problem, lam),
        state.theta,
        lam,
        task.n_neighbors,
        task.locality,
        state.support.local_scale,
        problem.shrink,
    )
    with task.progress.stage("graph"):
        weights = numbering.graph_by_row(solution.weights)
        solution = replace(solution, weights=weights, dual=numbering.values_by_row(solution.dual))
    return Learned(
        weights,
        solution,
        problem.theta,
        bounds,
        task.locality,
        int(state.failing.size),
        np.sort(numbering.rows(np.stack([bridges.i, bridges.j], axis=1)), axis=1),
        fitted.rows,
    )


def _with_bridges(weights, bridges):
    weights = sp.csr_matrix(weights + bridges)
    weights.sort_indices()
    return weights
