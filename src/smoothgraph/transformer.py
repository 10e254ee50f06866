"""NeighborsTransformer: our neighbour search for those who want neighbours and no graph.

In: samples X (n, d), dense or CSR. Out: a sparse matrix of distances as scikit-learn's KNeighborsTransformer makes it, with the
same number of entries in every row, sorted by distance, the sample itself first.
"""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from smoothgraph import _checks
from smoothgraph.copies import distinct_samples
from smoothgraph.distances import METRICS, Distances, distances_of
from smoothgraph.neighbors.rows import nearest_rows, rows_near_new
from smoothgraph.parallel import Threads
from smoothgraph.sparse import check_structure


class NeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Nearest neighbours as a sparse matrix of distances, found by the search of smoothgraph.

    It takes the place of scikit-learn's `KNeighborsTransformer`, wherever neighbours can be computed beforehand: in
    `sc.pp.neighbors(transformer=…)` of scanpy, in front of TSNE, Isomap, DBSCAN or KNeighborsClassifier with
    metric="precomputed", and as `neighbors=` of `GraphLearner`.

    Parameters
    ----------
    n_neighbors : int, default 15
        The number of neighbours of each sample.
    mode : {"distance", "connectivity"}
        "distance": every row has n_neighbors + 1 entries, since a sample is its own first neighbour, at distance 0.
        "connectivity": every row has n_neighbors entries of 1, the sample itself among them. Both are what scikit-learn does.
    metric : {"euclidean", "cosine"}
        "cosine" is 1 − cos, as in scikit-learn.
    search : {"auto", "exact", "approximate"}
        "auto" is exact up to a measured amount of work. `transform` always compares new samples with all that were fitted.
    random_state : int or RandomState, optional
        For approximate search.
    n_jobs : int, optional
        Threads; None or −1 is all.

    Attributes
    ----------
    recall_ : the share of true neighbours that `fit_transform` found: 1 if its search was exact, else estimated from 500 rows.
    search_ : the search that it made: "exact" or "approximate".
    n_samples_fit_ : the number of samples fitted.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from smoothgraph import NeighborsTransformer
    >>> distances = NeighborsTransformer(n_neighbors=5).fit_transform(load_digits().data)
    >>> distances.shape, distances[0].nnz
    ((1797, 1797), 6)
    """

    def __init__(
        self,
        n_neighbors: int = 15,
        *,
        mode: str = "distance",
        metric: str = "euclidean",
        search: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.mode = mode
        self.metric = metric
        self.search = search
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y=None) -> "NeighborsTransformer":
        """Take up the samples X (n, d) that neighbours are searched among."""
        self._check_parameters()
        if sp.issparse(X):
            check_structure(X, "X")
        X = _checks.as_array(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=_checks.float_type(X), order="C")
        copies, distinct = distinct_samples(X, self.metric, threads=Threads(self.n_jobs))
        self._copies, self._distances, self.n_samples_fit_ = copies, distances_of(distinct, self.metric), X.shape[0]
        return self

    def fit_transform(self, X, y=None) -> sp.csr_matrix:
        """Distances (n, n) between each sample and its nearest, itself among them."""
        self.fit(X)
        how = {"random_state": self.random_state, "threads": Threads(self.n_jobs)}
        rows, z, found = nearest_rows(self._distances, self._copies, self._width(), self.search, **how)
        self.recall_: float = 1.0 if found is None else found.recall
        self.search_: str = "exact" if found is None else found.name
        return self._matrix(rows, z)

    def transform(self, X) -> sp.csr_matrix:
        """Distances (n_new, n) between each new sample and the nearest that were fitted, found exactly.

        A sample that was fitted finds itself. There is one neighbour more than asked for unless mode="connectivity", as in
        scikit-learn.
        """
        check_is_fitted(self)
        if sp.issparse(X):
            check_structure(X, "X")
        kept = self._distances
        X = validate_data(self, _checks.as_array(X), accept_sparse="csr", dtype=kept.dtype, order="C", reset=False)
        if sp.issparse(X) != sp.issparse(kept.X):
            X = X.toarray() if sp.issparse(X) else sp.csr_matrix(X)
        queries, threads = kept.queries(X), Threads(self.n_jobs)
        return self._matrix(*rows_near_new(kept, self._copies, queries, self._width(), threads=threads))

    def _check_parameters(self):
        k = self.n_neighbors
        if not isinstance(k, Integral) or isinstance(k, bool | np.bool_) or k < 1:
            raise ValueError(f"n_neighbors={k!r} must be an integer of at least 1.")
        choices = {"mode": ("distance", "connectivity"), "metric": tuple(METRICS), "search": ("auto", "exact", "approximate")}
        for name, known in choices.items():
            value = getattr(self, name)
            if not (isinstance(value, str) and value in known):
                raise ValueError(f"{name}={value!r} is not known: use {' or '.join(map(repr, known))}.")

    def _width(self) -> int:
        """The number of entries of a row."""
        width, n = self.n_neighbors + (self.mode == "distance"), self.n_samples_fit_
        if width > n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} with mode={self.mode!r} takes {width} samples, but n_samples_fit = {n}: a "
                "sample has at most all the others as neighbours."
            )
        return width

    def _matrix(self, rows, z) -> sp.csr_matrix:
        is_distance = self.mode == "distance"
        values = metric_distances(self._distances, z, self.metric) if is_distance else np.ones(rows.shape)
        indptr = np.arange(0, rows.size + 1, rows.shape[1])
        return sp.csr_matrix((values.ravel(), rows.ravel(), indptr), shape=(len(rows), self.n_samples_fit_))

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def metric_distances(distances: Distances, z, metric: str) -> np.ndarray:
    """Squared distances as the metric has them elsewhere: their root, or 1 − cos, half the square between unit rows."""
    if metric == "cosine":
        return z.astype(np.float64) / 2.0
    return np.sqrt(z, dtype=np.float64) * np.sqrt(distances.z_unit)
