"""Every compiled loop of smoothgraph: free functions on arrays, in modules by what they work on.

What the arguments mean everywhere:

- `indptr, indices, z`: the graph of allowed edges. Each edge is stored at both of its ends, so that everything a node needs
  stands in its row. `z` is a squared distance and may be float32; all arithmetic is float64.
- `upper`: the largest weight an edge may take, inf for none.
- `lam`: the dual λ, less `base`, which is 0 but for far outliers; z is less by what it adds, so that (λᵢ+λⱼ)/2 − θz is the
  same and no digits are lost in it.
- `given`: weight that a node has besides, from edges that are not in question.

A loop that runs in several threads writes each result in one place and sums in a fixed order: the bits do not depend on the
number of threads.
"""

from smoothgraph._kernels.daitch import (
    descend_edges,
    edge_rows,
    edge_slopes,
    end_sums,
    feasible_shares,
    laplacian_product,
    row_sums,
)
from smoothgraph._kernels.dual import (
    NEVER,
    conjugate_gradients,
    evaluate,
    evaluate_again,
    largest_partners,
    live_edges,
    lost_weight,
    mark_touched,
    mean_psi,
    mixed_rows,
    new_rows,
    node_dual,
    pair_weights,
    start_dual,
    sweep,
    weight_is_new,
    weighted_edges,
)
from smoothgraph._kernels.edges import (
    edges_between,
    fill_rows,
    mark_new_edges,
    move_rows,
    rows_with,
    smallest_of_rows,
    stretch_edges,
)
from smoothgraph._kernels.graphs import (
    aggregate,
    cholesky_solve,
    hop_counts,
    incomplete_cholesky,
    parts,
    small_parts,
    solve_laplacian,
    spanning_forest,
    weighted_parts,
)
from smoothgraph._kernels.l2 import (
    evaluate_l2,
    start_l2,
    sweep_l2,
    values_l2,
)
from smoothgraph._kernels.lists import (
    came_in,
    keep_smallest,
    list_distances,
    near_new,
    near_pairs,
    sparse_list_distances,
    tidy_lists,
    two_hops,
)
from smoothgraph._kernels.schemes import (
    penalties,
    penalty_sweep,
    primal_dual_step,
    primal_dual_values,
)

__all__ = [
    "NEVER",
    "aggregate",
    "came_in",
    "cholesky_solve",
    "conjugate_gradients",
    "descend_edges",
    "edge_rows",
    "edge_slopes",
    "edges_between",
    "end_sums",
    "evaluate",
    "evaluate_again",
    "evaluate_l2",
    "feasible_shares",
    "fill_rows",
    "hop_counts",
    "incomplete_cholesky",
    "keep_smallest",
    "laplacian_product",
    "largest_partners",
    "list_distances",
    "live_edges",
    "lost_weight",
    "mark_new_edges",
    "mark_touched",
    "mean_psi",
    "mixed_rows",
    "move_rows",
    "near_new",
    "near_pairs",
    "new_rows",
    "node_dual",
    "pair_weights",
    "parts",
    "penalties",
    "penalty_sweep",
    "primal_dual_step",
    "primal_dual_values",
    "row_sums",
    "rows_with",
    "small_parts",
    "smallest_of_rows",
    "solve_laplacian",
    "spanning_forest",
    "sparse_list_distances",
    "start_dual",
    "start_l2",
    "stretch_edges",
    "sweep",
    "sweep_l2",
    "tidy_lists",
    "two_hops",
    "values_l2",
    "weight_is_new",
    "weighted_edges",
    "weighted_parts",
]
