"""What was learned → the attributes of a fitted learner.

In: what a model learned of the distinct samples, and its task. Out: a dict of attributes: the graph has all rows of the table
again and is scaled, and θ is in the units of the table.
"""

from typing import Any

import numpy as np

from smoothgraph.copies import HANGING_WEIGHT, Copies
from smoothgraph.fit.task import Learned, Task
from smoothgraph.graph import count_components, scale_factor


def fitted_attributes(copies: Copies, learned: Learned, task: Task, scale: float | str) -> dict[str, Any]:
    """All attributes that a fit sets, but for those of the table: its ids, and the number and the names of its columns."""
    with task.progress.stage("graph") as say:
        hanging, own = min(HANGING_WEIGHT, task.max_weight or np.inf), learned.own_weights
        weights = copies.hung(learned.weights, hanging) if own is None else copies.spread(learned.weights, own)
        factor, n_components = scale_factor(weights, scale), count_components(weights)
        graph = weights * factor
        say(f"{weights.nnz // 2} edges, {n_components} components")
    counted = weights if copies.kept else learned.weights
    unit = task.distances.z_unit ** (1.0 - task.locality)  # the θ of single nodes have the rest
    return {
        "graph_": graph,
        "scale_": factor,
        "n_components_": n_components,
        "n_isolated_": int(np.count_nonzero(np.diff(weights.indptr) == 0)),
        "n_neighbors_": counted.nnz / counted.shape[0],
        "neighbors_": task.found.name,
        "recall_": task.found.recall,
        "solution_": copies.solution_of_rows(learned.solution, weights),
        "n_incomplete_": learned.n_incomplete,
        "proven_": _is_proven(learned, task),
        "locality_": task.locality,
        "connect_": task.connect,
        "theta_": None if learned.theta is None else learned.theta / unit,
        "theta_bounds_": None if learned.theta_bounds is None else learned.theta_bounds.times(1.0 / unit),
        "bridges_": None if learned.bridges is None else copies.pairs_of_rows(learned.bridges),
        "copy_of_": copies.copy_of,
        "group_sizes_": copies.sizes[copies.sample_of],
        "n_iter_": 0 if learned.solution is None else max(1, learned.solution.n_iter),  # to find that all is well is one
        "distances_": task.distances,
        "seconds_": task.progress.seconds,
        "_copies": copies,
        "_rows": learned.rows,
    }


def _is_proven(learned: Learned, task: Task) -> bool | None:
    """Whether the certificate of all nodes is proven; None for graphs that have none."""
    if learned.n_incomplete is None:
        return None
    return learned.n_incomplete == 0 and (task.found.exact or task.found.is_given or task.bounds is not None)
