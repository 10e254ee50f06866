"""smoothgraph: learn sparse weighted graphs from data, with a proof that they are optimal."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smoothgraph.learner import GraphLearner, degree_path, learn_graph
    from smoothgraph.solvers import Solution, Status
    from smoothgraph.theta import solve_one_node, theta_bounds, theta_for_degree
    from smoothgraph.transformer import NeighborsTransformer
    from smoothgraph.uses import label_propagation, spectral_embedding

__version__ = "0.1.0"

__all__ = [
    "GraphLearner",
    "NeighborsTransformer",
    "Solution",
    "Status",
    "degree_path",
    "label_propagation",
    "learn_graph",
    "solve_one_node",
    "spectral_embedding",
    "theta_bounds",
    "theta_for_degree",
]

# Where each public name lives. It is imported when it is first used: scikit-learn and numba take more than a second.
_HOME = {
    "GraphLearner": "learner",
    "degree_path": "learner",
    "learn_graph": "learner",
    "NeighborsTransformer": "transformer",
    "Solution": "solvers",
    "Status": "solvers",
    "solve_one_node": "theta",
    "theta_bounds": "theta",
    "theta_for_degree": "theta",
    "label_propagation": "uses",
    "spectral_embedding": "uses",
}


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'smoothgraph' has no attribute {name!r}; it has {', '.join(__all__)}.")
    globals()[name] = value = getattr(import_module(f"smoothgraph.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
