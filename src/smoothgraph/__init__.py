"""smoothgraph: learn sparse weighted graphs from data, with a proof that they are optimal."""

from smoothgraph.learner import GraphLearner, degree_path, learn_graph
from smoothgraph.solvers import Solution, Status
from smoothgraph.theta import solve_one_node, theta_bounds, theta_for_degree

__version__ = "0.1.0"

__all__ = [
    "GraphLearner",
    "Solution",
    "Status",
    "degree_path",
    "learn_graph",
    "solve_one_node",
    "theta_bounds",
    "theta_for_degree",
]
