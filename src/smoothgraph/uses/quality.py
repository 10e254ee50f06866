"""How good a graph is: by the labels of its nodes, and against another graph.

In: a graph, as `check_graph` takes it. Out: numbers and small arrays.
"""

import numpy as np
import scipy.sparse as sp

from smoothgraph.uses.graphs import check_graph, one_per_node


def weight_between_classes(W, y) -> tuple[np.ndarray, np.ndarray]:
    """(classes, M): M[a, b] is the sum of the weights Wᵢⱼ over i of class a, j of class b; all of M sums to ‖W‖₁,₁.

    Examples
    --------
    >>> from smoothgraph.uses import weight_between_classes
    >>> classes, M = weight_between_classes([[0, 2, 0], [2, 0, 1], [0, 1, 0]], ["a", "a", "b"])
    >>> classes.tolist(), M.tolist()
    (['a', 'b'], [[4.0, 1.0], [1.0, 0.0]])
    """
    W = check_graph(W)
    n = W.shape[0]
    try:
        classes, code = np.unique(one_per_node("y", y, n), return_inverse=True)
    except TypeError as error:
        raise ValueError("y mixes labels that cannot be sorted, such as numbers and strings: use one kind of label.") from error
    member = sp.csr_matrix((np.ones(n), (code, np.arange(n))), shape=(classes.size, n))
    return classes, (member @ W @ member.T).toarray()


def wrong_weight(W, y) -> float:
    """The share of the weight that is on edges between nodes of different classes.

    Examples
    --------
    >>> from smoothgraph.uses import wrong_weight
    >>> wrong_weight([[0, 3, 0], [3, 0, 1], [0, 1, 0]], [0, 0, 1])
    0.25
    """
    _, M = weight_between_classes(W, y)
    total = M.sum()
    if total == 0.0:
        raise ValueError("W has no edges: there is no weight to take a share of.")
    return float(1.0 - np.trace(M) / total)


def relative_l1(W, reference) -> float:
    """‖W − reference‖₁,₁ / ‖reference‖₁,₁: how far a graph is from another on the same nodes.

    Examples
    --------
    >>> from smoothgraph.uses import relative_l1
    >>> relative_l1([[0, 1], [1, 0]], [[0, 4], [4, 0]])
    0.75
    """
    W, reference = check_graph(W), check_graph(reference, "reference")
    if W.shape != reference.shape:
        raise ValueError(
            f"W has {W.shape[0]} nodes, reference has {reference.shape[0]}: only graphs on the same nodes can be compared."
        )
    if reference.nnz == 0:
        raise ValueError("reference has no edges: a difference relative to it is not defined.")
    with np.errstate(over="ignore"):
        difference = float(abs(W - reference).sum() / reference.sum())
    if not np.isfinite(difference):
        raise ValueError(f"The weights of reference, up to {reference.max():.3g}, are too small for those of W: rescale both.")
    return difference
