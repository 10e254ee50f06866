"""What the learner was given → the same, checked, or an error that names the value and the remedy."""

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp

from smoothgraph.distances import METRICS
from smoothgraph.models import model_of, models_taking
from smoothgraph.symmetry import check_symmetric

SMALL_TYPES = "bool", "uint8", "int8", "uint16", "int16", "float16", "float32"  # float32 holds each of them exactly
NOT_FOR_ALL = "locality", "connect", "theta", "alpha", "beta", "max_weight", "prior"  # parameters that not every model takes


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
    model = check_model(learner)
    if not (_is_number(learner.locality, Real, 0) and learner.locality <= 1):
        raise ValueError(f"locality={learner.locality!r} must be a number from 0 to 1.")
    if not _is_number(learner.n_neighbors, Integral, 1):
        raise ValueError(f"n_neighbors={learner.n_neighbors!r} must be an integer of at least 1.")
    if learner.metric not in (*METRICS, "precomputed"):
        names = ", ".join(repr(name) for name in METRICS)
        raise ValueError(f"metric={learner.metric!r} is not known: use {names} or 'precomputed'.")
    if not _is_number(learner.oversampling, Real, 1):
        raise ValueError(f"oversampling={learner.oversampling!r} must be a number of at least 1; 3 is usual.")
    if not _is_number(learner.max_iter, Integral, 1):
        raise ValueError(f"max_iter={learner.max_iter!r} must be an integer of at least 1.")
    if not _is_number(learner.prior_strength, Real, 0):
        raise ValueError(f"prior_strength={learner.prior_strength!r} must be a finite number of at least 0.")
    if learner.n_jobs is not None and not (_is_number(learner.n_jobs, Integral, 1) or learner.n_jobs == -1):
        raise ValueError(f"n_jobs={learner.n_jobs!r} must be None or -1 (all cores), or a positive integer.")
    for name in ("theta", "alpha", "beta", "max_weight", "tol"):
        value = getattr(learner, name)
        if not (value is None and name != "tol") and not (_is_number(value, Real, 0) and value > 0):
            raise ValueError(f"{name}={value!r} must be a positive, finite number.")
    _check_theta_and_scale(learner, model)
    return model


def _check_theta_and_scale(learner, model):
    by_alpha, scale = model.given_theta(learner.alpha, learner.beta), learner.scale
    if learner.theta is not None and by_alpha is not None:
        raise ValueError("Give theta alone, or alpha and beta together, or none of them to have θ found for n_neighbors.")
    if not (scale is None or scale in ("sum", "laplacian") or (_is_number(scale, Real, 0) and scale > 0)):
        raise ValueError(f"scale={scale!r} is not understood: use None, a positive number, 'sum' or 'laplacian'.")
    if scale is not None and learner.beta is not None:
        raise ValueError("alpha and beta set the scale of the graph to √(α/β): leave scale=None, or give theta instead.")


def _is_number(value, kind, least) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_) and least <= value < np.inf


def float_type(X):
    """The dtypes to accept for X: what float32 holds exactly stays or becomes float32, the rest is float64."""
    kind = str(getattr(X, "dtype", "")).removeprefix("torch.")
    return np.float32 if kind in SMALL_TYPES else np.float64


def as_array(X):
    """X as it is, or the array behind what only speaks DLPack."""
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X)
    return X


def frame_ids(X) -> np.ndarray | None:
    """The index of a pandas frame; None if it only counts the rows, and for what has no index."""
    index = getattr(X, "index", None)
    return None if not hasattr(X, "iloc") or type(index).__name__ == "RangeIndex" else np.asarray(index)


def check_squared_distances(Z):
    """A square, non-negative, symmetric matrix of squared distances, dense or CSR; what differs by rounding is evened out."""
    if Z.shape[0] != Z.shape[1]:
        raise ValueError(f"metric='precomputed' needs a square matrix of squared distances, not one of shape {Z.shape}.")
    values = Z.data if sp.issparse(Z) else Z
    if values.size and values.min() < 0:
        raise ValueError(f"Squared distances cannot be negative, but the smallest is {values.min():.6g}.")
    name = "The matrix of squared distances"
    if not sp.issparse(Z):
        check_symmetric(Z, name, "Use (Z + Z.T) / 2 if both mean the same distance.")
        return np.maximum(Z, Z.T)
    Z = Z.copy()
    Z.sum_duplicates()
    lists = "For k-nearest-neighbour lists use neighbors=(indices, distances) instead."
    check_symmetric(Z, name, f"Allowed edges go both ways: store both, at the same distance. {lists}")
    Z.data = np.maximum(Z.data, Z.T.tocsr().data)  # both have the same entries in the same order
    return Z


def check_prior(prior, n: int) -> sp.csr_matrix:
    """A symmetric, non-negative weighted graph on n nodes; the diagonal is left out."""
    prior = sp.csr_matrix(prior, dtype=np.float64)
    if prior.shape != (n, n):
        raise ValueError(f"prior has shape {prior.shape}: a graph on the {n} samples, ({n}, {n}), is needed.")
    if prior.nnz and not (np.isfinite(prior.data).all() and prior.data.min() >= 0):
        raise ValueError("prior has negative or non-finite weights: a graph has finite weights of at least 0.")
    prior.setdiag(0.0)
    prior.eliminate_zeros()
    check_symmetric(prior, "prior", "Use prior.maximum(prior.T).")
    return prior
