"""Label propagation: the labels of a few nodes and a graph → a label for every node that a label can reach.

The scores of a class are the harmonic function of Zhu, Ghahramani & Lafferty (2003): 1 on the nodes labelled with the class,
0 on the nodes labelled otherwise, and on every other node the weighted mean of its neighbours. With L = D − W, u the
unlabelled nodes and l the labelled ones, L_uu f_u = W_ul y_l.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from smoothgraph.messages import warn
from smoothgraph.parallel import Threads
from smoothgraph.uses.graphs import check_graph, components, degrees, one_per_node
from smoothgraph.uses.systems import multilevel

MAX_SUM_ERROR = 1e-3  # the scores of a node sum to 1; where their sum is farther from it, they have not converged
MAX_TOLERANCE = 1.0  # a larger `tol` would ask for nothing
MIN_TOLERANCE = 1e-16  # smallest useful `tol`: float64 has no more digits
TIGHTEN = 100.0  # `tol` is divided by this as long as some scores have not converged


class Propagation(NamedTuple):
    """What `label_propagation` found.

    Attributes
    ----------
    labels : (n,) of y's dtype: the given label where there is one, else the class of highest score; the mark of an unlabelled
        node where `reached` is false.
    scores : (n, n_classes): the score of each class. The scores of a node sum to 1; they are NaN where `reached` is false.
    classes : (n_classes,): the labels that occur in y, sorted; the columns of `scores`.
    reached : (n,) bool: whether the node's connected component has a label.
    n_iter : rounds of conjugate gradients.
    residual : the largest difference between a score and the mean over the node's neighbours.
    """

    labels: np.ndarray
    scores: np.ndarray
    classes: np.ndarray
    reached: np.ndarray
    n_iter: int
    residual: float


def label_propagation(W, y, *, tol: float = 1e-6, max_iter: int = 10_000) -> Propagation:
    """Labels for all nodes of a graph from the labels of some (harmonic functions, Zhu et al. 2003).

    Parameters
    ----------
    W : sparse or dense matrix (n, n): symmetric weights of at least 0.
    y : (n,): a label for each node. The mark of an unlabelled node is -1 among integers; -1 or NaN among floats; "" among
        strings; None, NaN or "" among objects. Unsigned integers and booleans have no mark: every node has a label.
    tol : float, default 1e-6
        Stop when no score differs from the mean of its neighbours by more than this.
    max_iter : int, default 10000
        Largest number of rounds of conjugate gradients. A `ConvergenceWarning` says if that was too few.

    Returns
    -------
    Propagation : a named tuple (labels, scores, classes, reached, n_iter, residual). A component without a label gets no
        guesses: `reached` is false for its nodes, and `labels` keeps the mark of an unlabelled node.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from smoothgraph import label_propagation, learn_graph
    >>> X, truth = load_digits(return_X_y=True)
    >>> y = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)  # one digit in twenty has a label
    >>> found = label_propagation(learn_graph(X, n_neighbors=10), y)
    >>> bool(found.reached.all()), bool((found.labels == truth).mean() > 0.9)
    (True, True)
    """
    W = check_graph(W)
    y = one_per_node("y", y, W.shape[0])
    _check(y, tol, max_iter)
    labelled, mark = ~_unlabelled(y), _mark(y)
    if not labelled.any():
        raise ValueError(f"y has no label: every entry is the mark of an unlabelled node, {mark!r}. Label at least one node.")
    try:
        classes, given = np.unique(y[labelled], return_inverse=True)
    except TypeError as error:
        raise ValueError("y mixes labels that cannot be sorted, such as numbers and strings: use one kind of label.") from error
    _, component = components(W)
    reached = np.isin(component, component[labelled])
    scores = np.full((W.shape[0], classes.size), np.nan)
    scores[labelled] = np.eye(classes.size)[given]
    asked = np.flatnonzero(reached & ~labelled)
    n_iter, residual = 0, 0.0
    if asked.size:
        with Threads() as threads:
            scores[asked], n_iter, residual = _harmonic(
                W, asked, labelled, scores[labelled], float(tol), int(max_iter), threads
            )
    labels = y.copy()
    labels[asked] = classes[scores[asked].argmax(axis=1)]
    if not reached.all():  # unsigned numbers have no mark, but then every node has a label
        labels[~reached] = mark
    return Propagation(labels, scores, classes, reached, n_iter, residual)


def _check(y, tol, max_iter):
    if y.dtype.kind not in "biufUO":
        raise ValueError(f"y has dtype {y.dtype}: labels are numbers, strings or objects.")
    if not (isinstance(tol, int | float | np.number) and 0 < tol < MAX_TOLERANCE):
        raise ValueError(f"tol={tol!r} must be a positive number below {MAX_TOLERANCE:g}: scores are from 0 to 1.")
    if not (isinstance(max_iter, int | np.integer) and 1 <= max_iter <= np.iinfo(np.int64).max):
        raise ValueError(f"max_iter={max_iter!r} must be an integer of at least 1.")


def _mark(y) -> Any:
    """The value that the result has where a node has no label."""
    return {"f": np.nan, "U": "", "O": None}.get(y.dtype.kind, -1)


def _unlabelled(y) -> np.ndarray:
    """Which nodes have no label."""
    if y.dtype.kind == "f":
        return np.isnan(y) | (y == -1)
    if y.dtype.kind == "O":
        return np.array([_is_missing(label) for label in y])
    return np.zeros(y.shape, bool) if y.dtype.kind in "bu" else y == _mark(y)


def _is_missing(label) -> bool:
    """Whether an object is None, NaN, "" or the NA of pandas, which is neither equal to itself nor not."""
    if label is None or type(label).__name__ == "NAType":
        return True
    try:
        return bool(label == "" or label != label)
    except ValueError as error:  # an array has no truth value
        raise ValueError(f"y has an entry of type {type(label).__name__}: labels are numbers or strings.") from error


def _harmonic(W, asked, labelled, given, tol, max_iter, threads):
    """(scores, rounds, residual) of the nodes `asked`, from the scores `given` of the nodes `labelled`."""
    rows = W[asked]
    to_labelled = rows[:, np.flatnonzero(labelled)]
    system = multilevel(rows[:, asked], degrees(to_labelled), threads=threads)
    right = (to_labelled @ given)[system.order]
    x = np.zeros_like(right)
    n_iter, residual, error = 0, np.inf, np.inf
    # A cluster with only tiny weights to the rest hardly shows in the residual. But its scores then do not sum to 1.
    while error > MAX_SUM_ERROR and n_iter < max_iter and tol > MIN_TOLERANCE:
        made, residual = system.solve(right, x, tol, max_iter - n_iter)
        n_iter, error = n_iter + made, _sum_errors(x).max()
        if residual > tol:  # rounding errors allow no further progress
            break
        tol /= TIGHTEN
    if error > MAX_SUM_ERROR:
        count = int((_sum_errors(x) > MAX_SUM_ERROR).sum())
        warn(
            f"The scores of {count} nodes have not converged after {n_iter} rounds: their paths to labelled nodes have very "
            "small weights, or are very long. Raise max_iter, or label a node near them.",
            ConvergenceWarning,
        )
    np.clip(x, 0.0, None, out=x)
    x /= np.maximum(x.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    scores = np.empty_like(x)
    scores[system.order] = x
    return scores, n_iter, residual


def _sum_errors(x) -> np.ndarray:
    """By how much the scores of each node miss the sum 1."""
    return np.abs(x.sum(axis=1) - 1.0)
