"""Small fits that take the ordinary paths through the package, so that their kernels are compiled and stored.

There is no list of signatures that could be out of date: what is run here is what users run, on samples in every form in which
they may be given. A test names the kernels that are left out.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smoothgraph.learner import GraphLearner, degree_path
from smoothgraph.transformer import NeighborsTransformer
from smoothgraph.uses import diameter, hops, label_propagation, spectral_embedding

N, N_FEATURES, N_CLUSTERS = 6000, 6, 8  # of the samples: several cells of the approximate search, several blocks of a sweep
WIDE = 100_000  # features with which it is dear to compare nodes with every sample, so that lists are extended instead
K = 5  # neighbours per node
N_DISTANCES = 200  # samples of a matrix of distances, and of those models that take long
N_NEW = 40  # samples that rows are asked for


def run() -> Iterator[str]:
    """Run all, in parts: the name of each is said before it begins."""
    parts = {"samples": _forms, "distances": _distances, "models": _models, "parameters": _parameters, "uses": _uses}
    for name, part in parts.items():
        yield name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is compiled after a few rounds need not go on
            part()


def _samples(n: int = N, dtype: Any = np.float64) -> np.ndarray:
    """Clusters of different density, and an outlier far away."""
    rng = np.random.default_rng(0)
    member = np.arange(n) % N_CLUSTERS
    X = 4.0 * rng.standard_normal((N_CLUSTERS, N_FEATURES))[member]
    X += 2.0 ** -(member[:, None] % 3) * rng.standard_normal((n, N_FEATURES))
    X[-1] += 100.0
    return X.astype(dtype)


def _fit(X, **parameters) -> GraphLearner:
    return GraphLearner(K, random_state=0, **parameters).fit(X)


def _forms() -> None:
    for dtype in (np.float32, np.float64):
        X = _samples(dtype=dtype)
        read_only = X.copy()  # as a memory map is: a type of its own for the compiler
        read_only.flags.writeable = False
        for form in (X, read_only, sp.csr_matrix(np.where(X > 0, X, 0))):
            for neighbors in ("exact", "approximate"):
                _fit(form, neighbors=neighbors).transform(form[:N_NEW])
            _fit(form, neighbors="approximate", proof=True)
            NeighborsTransformer(K).fit(form).transform(form[:N_NEW])
        copied = X[np.arange(N) // 2]
        for parameters in ({}, {"duplicates": "keep"}, {"metric": "cosine"}):
            learner = _fit(copied, **parameters)
            learner.transform(X[:N_NEW])
            learner.transform(read_only[:N_NEW])


def _distances() -> None:
    X = _samples(N_DISTANCES)[:-1]  # without the outlier, which would have no allowed edge
    dense = np.linalg.norm(X[:, None] - X[None], axis=2)
    few = sp.csr_matrix(np.where(dense < np.median(dense), dense, 0))
    for dtype in (np.float32, np.float64):
        for Z in (dense.astype(dtype), few.astype(dtype)):
            _fit(Z, metric="precomputed")
        _fit(dense.astype(dtype), metric="precomputed").transform(dense[:N_NEW].astype(dtype))


def _models() -> None:
    few = _samples(N_DISTANCES)
    for name in ("knn", "knn-gaussian", "knn-self-tuning"):
        _fit(few, model=name)
    for name in ("hard", "soft"):
        _fit(few, model=name, max_iter=20)
    for dtype in (np.float32, np.float64):
        X = _samples(dtype=dtype)
        _fit(X, model="l2").transform(X[:N_NEW])


def _parameters() -> None:
    for dtype in (np.float32, np.float64):
        X = _samples(dtype=dtype)
        W = _fit(X, locality=0, connect=False).graph_  # the paper's
        _fit(X, max_weight=0.5).transform(X[:N_NEW])
        _fit(X, prior=W, prior_strength=1.0)
        _fit(X, theta=1.0)
        _fit(X[:N_DISTANCES], neighbors="all")
        list(degree_path(X, [K, 2 * K]))
    wide = sp.csr_matrix((X.ravel(), np.tile(np.arange(N_FEATURES), N), N_FEATURES * np.arange(N + 1)), shape=(N, WIDE))
    _fit(wide, neighbors="approximate", locality=0)


def _uses() -> None:
    W = _fit(_samples()).graph_
    y = np.full(N, -1)
    y[: 2 * N_CLUSTERS] = np.arange(2 * N_CLUSTERS) % N_CLUSTERS
    label_propagation(W, y)
    spectral_embedding(W, 2)
    diameter(W)
    hops(W, 0)
