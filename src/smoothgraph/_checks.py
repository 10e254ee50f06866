"""What the learner was given → the same, checked, or an error that names the value and the remedy.

What is allowed but seldom meant gets a warning.
"""

import sys
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp

from smoothgraph.copies import Copies
from smoothgraph.distances import MATRICES, METRICS, metric_names
from smoothgraph.float_range import least_certain, without_negatives
from smoothgraph.messages import warn
from smoothgraph.models import model_of, models_taking
from smoothgraph.sparse import check_unmasked, checked_csr
from smoothgraph.symmetry import TOLERANCE, check_symmetric

SMALL_TYPES = "bool", "uint8", "int8", "uint16", "int16", "float16", "float32"  # float32 holds each of them exactly
NOT_FOR_ALL = (
    "locality",
    "connect",
    "proof",
    "theta",
    "alpha",
    "beta",
    "max_weight",
    "prior",
)  # parameters that not every model takes
MATRIX_CALLS = {  # packages of graphs → what gives the matrix of a graph G, row i being node i
    "networkx": "nx.to_scipy_sparse_array(G, nodelist=range(n))",
    "igraph": "G.get_adjacency_sparse(attribute='weight')",
    "pygsp": "G.W",
    "networkit": "networkit.algebraic.adjacencyMatrix(G)",
}
LARGEST_SEED = 2**32  # seeds of NumPy's RandomState are below it
# The smallest `max_weight`, in units of δ. A degree is then as small, and λ, one over it, has digits for weights that small and
# for no smaller ones.
LEAST_MAX_WEIGHT = 1e-8
FEWEST_TO_CONNECT = 3  # neighbours; a tree has nearly 2 per node, so that with fewer most edges would be bridges
SAMPLED_ROWS, SAMPLED_VALUES = 2000, 2_000_000  # rows, and values in them, from which the share of a column is estimated
LEAST_SAMPLED_ROWS = 100  # that many rows of a wide table are looked at, however many values they have
MOST_OF_DISTANCE = 0.95  # share of the squared distances from which a single column is said to make up nearly all of them
SAMPLED_PAIRS = 100  # pairs for which the triangle inequality is looked at
MOST_VIOLATED = 0.25  # share of these pairs for which it may fail without a word: some measures that are no squares do that
ROUNDED = 1e-4  # relative difference of distances that rounding explains, of float32 ones too
TAIL = 0.05  # share of the values of a column at either end that may be outliers: they do not count in its share


def check_model(learner):
    """The model of a learner, checked: it, its own parameters, and what it is combined with."""
    model = model_of(learner.model)
    for name in NOT_FOR_ALL:
        value = getattr(learner, name)
        is_set = value is not None and value is not False and (sp.issparse(value) or not np.array_equal(value, 0.0))
        if is_set and name not in model.takes:
            shown = "a graph" if name == "prior" else repr(value)
            raise ValueError(
                f"{name}={shown} does not apply to model={model.name!r}, only to {models_taking(name)}: leave it out."
            )
    model.check(learner.metric, learner.neighbors)
    return model


def check_parameters(learner):
    """The model of the learner. Raises for a parameter that makes no sense whatever the data."""
    _check_kind_of_prior(learner.prior)
    model = check_model(learner)
    if learner.locality is not None and not (_is_number(learner.locality, Real, 0) and learner.locality <= 1):
        raise ValueError(f"locality={learner.locality!r} must be a number from 0 to 1, or None for what is recommended.")
    if not _is_number(learner.n_neighbors, Integral, 1):
        raise ValueError(f"n_neighbors={learner.n_neighbors!r} must be an integer of at least 1.")
    if not isinstance(learner.metric, str) or learner.metric not in (*METRICS, *MATRICES):
        raise ValueError(f"metric={learner.metric!r} is not known: use one of {metric_names()}.")
    if not _is_number(learner.oversampling, Real, 1):
        raise ValueError(f"oversampling={learner.oversampling!r} must be a number of at least 1; 2 is usual.")
    if learner.duplicates not in ("merge", "keep"):
        raise ValueError(f"duplicates={learner.duplicates!r} is not known: use 'merge' or 'keep'.")
    if not _is_number(learner.max_iter, Integral, 1):
        raise ValueError(f"max_iter={learner.max_iter!r} must be an integer of at least 1.")
    if learner.n_jobs is not None and not (_is_number(learner.n_jobs, Integral, 1) or learner.n_jobs == -1):
        raise ValueError(f"n_jobs={learner.n_jobs!r} must be None or -1 (all cores), or a positive integer.")
    seed = learner.random_state
    if isinstance(seed, int | np.integer) and not 0 <= seed < LARGEST_SEED:
        raise ValueError(f"random_state={seed!r} must be from 0 to 2**32 − 1, a RandomState, or None.")
    for name in ("theta", "alpha", "beta", "max_weight", "tol"):
        value = getattr(learner, name)
        if not (value is None and name != "tol") and not (_is_number(value, Real, 0) and value > 0):
            raise ValueError(f"{name}={value!r} must be a positive, finite number.")
    if learner.tol >= 1:
        raise ValueError(f"tol={learner.tol!r} asks for nothing: it is a relative gap, such as 1e-6, and must be below 1.")
    if learner.proof and not learner.complete:
        raise ValueError("proof=True proves that the graph is complete: it goes with complete=True, not with complete=False.")
    _check_theta_and_scale(learner, model)
    _check_prior_strength(learner.prior, learner.prior_strength)
    return model


def locality_and_connect(learner, model, is_given: bool) -> tuple[float, bool]:
    """The two as they were given; None is what the model recommends, or the paper's value where θ or the edges are given."""
    locality, connect = getattr(model, "recommended_locality", 0.0), getattr(model, "recommended_connect", False)
    if is_given:
        locality, connect = 0.0, False
    connect = connect and learner.n_neighbors >= FEWEST_TO_CONNECT
    return locality if learner.locality is None else learner.locality, connect if learner.connect is None else learner.connect


def check_n_neighbors(n_neighbors, n_samples: int) -> None:
    """Raise if there are not more samples than wanted neighbours."""
    if n_neighbors >= n_samples:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be less than the number of samples, n_samples = {n_samples}: a node has at most "
            "all the others as neighbours."
        )


def wanted_neighbors(n_neighbors: int, copies: Copies) -> int:
    """How many neighbours a distinct sample is to have: all others, with a warning, where copies leave fewer than wanted."""
    most = copies.n_distinct - 1
    if most >= n_neighbors:
        return n_neighbors
    if most == 0:
        raise ValueError(f"All {copies.n} rows are equal: there is one distinct sample, and no graph to learn of it.")
    warn(
        f"n_neighbors={n_neighbors}, but the {copies.n} rows are copies of {copies.n_distinct} distinct samples, which have "
        f"{most} neighbours at most: {most} it is."
    )
    return most


def keeps_by_group(learner, model) -> bool:
    """Whether copies that are kept can be learned as groups: of the log model, without a prior or lists of the user's own.

    All else goes over every row, as if copies were samples like others: a prior may have another weight for each copy, and
    given lists may hold nothing but copies.
    """
    return getattr(model, "counts_copies", False) and learner.prior is None and isinstance(learner.neighbors, str)


def lists_of_distinct(neighbors, copies):
    """What the user gave as `neighbors`; of a pair (indices, distances) the lists of the distinct samples."""
    if copies.n_distinct == 1:
        return "all"  # there is nothing to search for
    if not (isinstance(neighbors, tuple | list) and copies.any and len(neighbors) == 2):
        return neighbors
    indices = np.asarray(neighbors[0])
    if indices.ndim != 2 or len(indices) != copies.copy_of.size or indices.dtype.kind not in "iu":
        return neighbors  # the search says what is wrong
    if indices.size and not -1 <= indices.min() <= indices.max() < len(indices):
        return neighbors
    sample_of = np.append(copies.sample_of, -1)  # −1, a missing entry, stays
    return sample_of[indices[copies.first]], neighbors[1]


def _check_theta_and_scale(learner, model):
    by_alpha, scale = model.given_theta(learner.alpha, learner.beta), learner.scale
    if by_alpha is not None and not (0.0 < by_alpha < np.inf and 0.0 < learner._delta() < np.inf):
        seen = f"alpha={learner.alpha!r}, beta={learner.beta!r} give θ = {by_alpha:g} and δ = {learner._delta():g}"
        raise ValueError(f"{seen}: use numbers nearer to 1.")
    if learner.theta is not None and by_alpha is not None:
        raise ValueError("Give theta alone, or alpha and beta together, or none of them to have θ found for n_neighbors.")
    if not (scale is None or scale in ("sum", "laplacian") or (_is_number(scale, Real, 0) and scale > 0)):
        raise ValueError(f"scale={scale!r} is not understood: use None, a positive number, 'sum' or 'laplacian'.")
    if scale is not None and learner.beta is not None:
        raise ValueError("alpha and beta set the scale of the graph to √(α/β): leave scale=None, or give theta instead.")
    if learner.max_weight is not None and learner.max_weight < LEAST_MAX_WEIGHT * learner._delta():
        raise ValueError(
            f"max_weight={learner.max_weight!r} is too small for a graph with δ = {learner._delta():g}, an upper bound of its "
            f"weights: float64 has no digits for it below {LEAST_MAX_WEIGHT:g}·δ. Use a larger one, or a smaller scale."
        )
    if isinstance(scale, str) and learner.max_weight is not None:
        factor = "W.shape[0] / W.sum()" if scale == "sum" else "1 / (the largest eigenvalue of the Laplacian of W)"
        raise ValueError(
            f"max_weight={learner.max_weight!r} bounds the weights of the returned graph, but with scale={scale!r} its scale "
            "is known only when it is learned: leave scale out, or give a number, and multiply the graph W by "
            f"{factor} afterwards."
        )


def _check_prior_strength(prior, strength):
    if strength is not None and not _is_number(strength, Real, 0):
        raise ValueError(f"prior_strength={strength!r} must be a finite number of at least 0.")
    if prior is not None and strength is None:
        raise ValueError("prior has no effect without prior_strength: give how strongly to stay near it, such as 1.0.")
    if prior is None and strength:
        raise ValueError(f"prior_strength={strength!r} has no effect without prior: give the graph to stay near.")


def _check_kind_of_prior(prior):
    if prior is None or sp.issparse(prior):
        return
    packages = [base.__module__.split(".")[0] for base in type(prior).__mro__]
    package = next((name for name in packages if name in MATRIX_CALLS), None)
    if package is not None:
        raise TypeError(
            f"prior is a {type(prior).__name__} of {package}, but its matrix of weights is needed: for a graph G on n nodes "
            f"use {MATRIX_CALLS[package]}."
        )
    if np.ndim(prior) == 2 and np.asarray(prior).dtype.kind == "c":
        raise ValueError("prior has complex values, but weights are real: use prior.real, or np.abs(prior).")
    if np.ndim(prior) != 2 or np.asarray(prior).dtype.kind not in "biuf":
        raise TypeError(
            f"prior is a {type(prior).__name__}, but a sparse matrix or an array (n, n) of weights is needed; of a graph file "
            "it is smoothgraph.io.read_graph(path).W."
        )


def _is_number(value, kind, least) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_) and least <= value < np.inf


def float_type(X):
    """The dtypes to accept for X: what float32 holds exactly stays or becomes float32, the rest is float64."""
    kinds = getattr(X, "dtypes", getattr(X, "dtype", ""))  # a frame has one for each column
    names = [str(kind).removeprefix("torch.") for kind in np.ravel(np.asarray(kinds, dtype=object))]
    return np.float32 if all(name in SMALL_TYPES for name in names) else np.float64


def as_array(X):
    """X as it is, the array behind what only speaks DLPack, or a CSR matrix with sound arrays: nothing compiled reads others.

    Raises for masked values, which would count like others.
    """
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X)
    if sp.issparse(X):
        return checked_csr(X, "X")
    check_unmasked(
        X,
        "X",
        "fill them in, X.filled(value), or leave out their rows, X[~np.ma.getmaskarray(X).any(axis=1)]. Of distances, store "
        "those that are known in a sparse matrix",
    )
    return X


def frame_ids(X) -> np.ndarray | None:
    """The index of a pandas frame; None if it only counts the rows, and for what has no index."""
    index = getattr(X, "index", None)
    return None if not hasattr(X, "iloc") or type(index).__name__ == "RangeIndex" else np.asarray(index)


def check_matrix(X, metric: str):
    """A square, non-negative, symmetric matrix of distances or of their squares, dense or CSR. It is a copy.

    What differs by rounding is evened out.
    """
    name = "The matrix of distances" if metric == "precomputed" else "The matrix of squared distances"
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"metric={metric!r} needs a square matrix, not one of shape {X.shape}.")
    if not sp.issparse(X):
        X = _without_rounding(X)
        check_symmetric(X, name, "Use (X + X.T) / 2 if both mean the same distance.")
        _check_diagonal(X, metric, name)
        X = np.maximum(X, X.T)
        np.fill_diagonal(X, 0.0)
        return X
    X = X.copy()
    X.sum_duplicates()
    X.data = without_negatives(X.data)
    lists = "For k-nearest-neighbour lists use neighbors=(indices, distances) instead."
    check_symmetric(X, name, f"Allowed edges go both ways: store both, at the same distance. {lists}")
    X.data = np.maximum(X.data, X.T.tocsr().data)  # both have the same entries in the same order
    return X


def _without_rounding(Z):
    """A dense Z with 0 where rounding has left something below 0, as in ‖x‖² + ‖y‖² − 2x·y."""
    positive = without_negatives(Z)
    if positive is Z:
        return Z
    is_rounding = (Z < 0) | (Z.T < 0)  # the counterpart of such an entry may be as small, but above 0
    return np.where(is_rounding & (positive <= least_certain(Z)), 0.0, positive).astype(Z.dtype, copy=False)


def _check_diagonal(X, metric, name):
    """Warn if the diagonal is more than rounding: such a matrix may hold similarities."""
    at = int(np.argmax(X.diagonal()))
    certain = least_certain(X)
    if metric == "precomputed":
        certain = float(np.sqrt(certain) * np.sqrt(X.max()))  # the root of what is rounding in squares
    if X[at, at] > certain:
        warn(
            f"The diagonal of {name[0].lower() + name[1:]} is not 0: ({at}, {at}) holds {X[at, at]:.6g}. It is not used; but "
            "if the matrix holds similarities, the graph is wrong: turn them into distances first."
        )


def _warn_of_squares(X):
    """Warn if distances violate the triangle inequality where squared distances do.

    The distance to the farthest sample is compared with the ways over all others. One of these is shorter only if the entries
    are no distances of a metric. Squares mostly are so: dᵢₖ² > dᵢⱼ² + dⱼₖ² for every j inside the ball between i and k.
    """
    n_pairs = n_violated = 0
    example: tuple = ()
    for i in np.unique(np.linspace(0, X.shape[0] - 1, SAMPLED_PAIRS).astype(int)):
        others, to_i = _row(X, i)
        if not others.size:
            continue
        k, longest = int(others[np.argmax(to_i)]), float(to_i.max())
        others_k, to_k = _row(X, k)
        _, at_i, at_k = np.intersect1d(others, others_k, assume_unique=True, return_indices=True)
        if not at_i.size:
            continue
        ways = to_i[at_i].astype(np.float64) + to_k[at_k]
        best = int(np.argmin(ways))
        n_pairs += 1
        if ways[best] < (1.0 - ROUNDED) * longest:
            n_violated += 1
            example = example or (i, k, longest, int(others[at_i[best]]), float(ways[best]))
    if n_pairs and n_violated > MOST_VIOLATED * n_pairs:
        i, k, longest, j, way = example
        warn(
            f"These are no distances of a metric: ({i}, {k}) holds {longest:.6g}, but the way over {j} is {way:.6g}, and it is "
            f"so for {n_violated} of {n_pairs} pairs. Squared distances are like that: if these are, use "
            "metric='precomputed_squared'."
        )


def _row(X, i):
    """(columns, entries) of row i without the diagonal."""
    part = slice(*X.indptr[i : i + 2]) if sp.issparse(X) else slice(None)
    columns, entries = (X.indices[part], X.data[part]) if sp.issparse(X) else (np.arange(X.shape[1]), X[i])
    return columns[columns != i], entries[columns != i]


def check_prior(prior, n: int, Z=None) -> sp.csr_matrix:
    """A symmetric, non-negative weighted graph on n nodes; the diagonal is left out.

    If Z is a sparse matrix, the edges must be among its entries: nothing else is known of their distances.
    """
    prior = prior if sp.issparse(prior) else np.asanyarray(prior)
    check_unmasked(prior, "prior", "fill them in, with 0 where there is no edge: prior.filled(0)")
    if prior.shape != (n, n):
        raise ValueError(f"prior has shape {prior.shape}: a graph on the {n} samples, ({n}, {n}), is needed.")
    prior = checked_csr(prior, "prior").astype(np.float64)  # a copy: the diagonal is taken out of it
    if prior.nnz and not (np.isfinite(prior.data).all() and prior.data.min() >= 0):
        raise ValueError("prior has negative or non-finite weights: a graph has finite weights of at least 0.")
    prior = sp.csr_matrix(prior - sp.diags(prior.diagonal()))
    prior.eliminate_zeros()
    check_symmetric(prior, "prior", "Use prior.maximum(prior.T).")
    if sp.issparse(Z) and Z.shape == prior.shape:
        _check_is_allowed(prior, Z)
    return prior


def _check_is_allowed(prior, Z):
    stored = sp.csr_matrix((np.ones(Z.nnz), Z.indices, Z.indptr), shape=Z.shape)
    outside = sp.triu(prior.sign() > stored).tocoo()
    if outside.nnz:
        first = np.lexsort((outside.col, outside.row))[0]
        raise ValueError(
            f"prior has {outside.nnz} edges that are not allowed, since X stores no distance for them: the first is "
            f"({outside.row[first]}, {outside.col[first]}). Store their distances in X, or leave them out of the prior."
        )


def warn_of_table(X, metric: str, names) -> None:
    """Warn of samples that look like distances, distances that look like squares, and a column that outweighs all others."""
    if metric in MATRICES:
        if metric == "precomputed":
            _warn_of_squares(X)
    elif _looks_like_distances(X):
        warn(
            "X is square and symmetric with a diagonal of 0, as a matrix of distances is, but its rows are taken as samples. "
            "If these are distances, use metric='precomputed' (or 'precomputed_squared' if they are squared)."
        )
    elif not sp.issparse(X):
        rows = min(SAMPLED_ROWS, max(LEAST_SAMPLED_ROWS, SAMPLED_VALUES // X.shape[1]))
        _warn_of_large_column(METRICS[metric].prepare(X[:: 1 + (X.shape[0] - 1) // rows]), names)


def _looks_like_distances(X):
    """Whether X is symmetric with a diagonal of 0; the rest is looked at only where the diagonal is."""
    if X.shape[0] != X.shape[1] or X.shape[0] < 3 or X.diagonal().any():
        return False
    values = X.data if sp.issparse(X) else X
    if values.size == 0 or values.min() < 0 or not values.any():
        return False
    return bool(abs(X - X.T).max() <= TOLERANCE * values.max())


def _warn_of_large_column(sample, names):
    """Warn if one column makes up nearly all of the squared distances between typical samples.

    The mean squared distance in a column is twice its variance. Outliers are cut off before a column is named, since a few
    wrong values say nothing of its unit; and two more columns must vary, or there is nothing that it outweighs.
    """
    largest = float(np.abs(sample).max())
    if sample.shape[1] <= 2 or largest == 0.0:
        return
    sample = sample / np.float64(largest)  # so that squares do not overflow
    if _largest_share(sample)[1] <= MOST_OF_DISTANCE:
        return
    typical = np.clip(sample, *np.quantile(sample, [TAIL, 1.0 - TAIL], axis=0))
    column, share = _largest_share(typical)
    n_varying = int(np.count_nonzero(np.ptp(typical, axis=0)))
    if n_varying > 2 and share > MOST_OF_DISTANCE:
        name = f"{column} (counted from 0)" if names is None else repr(str(names[column]))
        percent = f"{100.0 * share:.1f} %" if share < 0.999 else "over 99.9 %"
        warn(
            f"Column {name} makes up {percent} of the squared distances between samples, and the other {n_varying - 1} hardly "
            "count. Leave it out if it only numbers or dates the samples; if the columns have different units, standardise "
            "them: make_pipeline(StandardScaler(), GraphLearner(…)), or --standardize in a shell."
        )


def _largest_share(sample):
    """(column, share) of the column with the largest share of the variance; the share is 0 if all are constant."""
    variances = np.var(sample, axis=0)
    column, total = int(np.argmax(variances)), float(variances.sum())
    return column, float(variances[column]) / total if total > 0.0 else 0.0


def check_place(learner) -> None:
    """Raise if scanpy's search for neighbours has called a learner: it would take weights for distances.

    Scanpy makes the calls that a pipeline makes, so that only the caller tells one from the other.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("smoothgraph", "sklearn"):
        frame = frame.f_back
    if frame.f_globals.get("__name__", "").startswith("scanpy."):
        raise TypeError(
            f"{type(learner).__name__} learns weights, and sc.pp.neighbors(transformer=…) needs distances. For the learned "
            f"graph use smoothgraph.io.neighbors(adata, {learner.n_neighbors}) in the place of sc.pp.neighbors; for our search "
            f"alone, transformer=smoothgraph.NeighborsTransformer({learner.n_neighbors})."
        )
