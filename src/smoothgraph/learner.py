"""GraphLearner: from samples to a certified graph. The only module that knows the whole flow."""

import time
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from smoothgraph import _checks
from smoothgraph.candidates import Candidates, add_pairs, from_lists, from_matrix, nearest_allowed
from smoothgraph.certify import Support
from smoothgraph.graph import new_rows, scale_factor
from smoothgraph.neighbors import NeighborLists, choose_backend, find_neighbors
from smoothgraph.samples import ROWS, DistanceMatrix, Samples
from smoothgraph.settle import settle
from smoothgraph.solvers import nodewise
from smoothgraph.solvers.problem import Problem
from smoothgraph.theta import theta_bounds


class GraphLearner(TransformerMixin, BaseEstimator):
    """Learn the sparse weighted graph on which the samples are smooth.

    Say how many neighbours you want; get the optimum of the log model (Kalofolias & Perraudin 2019),

        min over W  ‖W∘Z‖₁,₁ − α Σᵢ log dᵢ + (β/2)‖W‖²_F,    Zᵢⱼ = ‖xᵢ − xⱼ‖²,

    as a symmetric sparse matrix, with a duality gap that proves how near the optimum it is, and the number of nodes for
    which it is not proven that the neighbour lists were long enough.

    Parameters
    ----------
    n_neighbors : int, default 10
        The wanted mean number of neighbours. The learned graph has it to within 1 % (from 1,000 samples on, if distances
        are not tied).
    metric : {"euclidean", "cosine", "precomputed"}
        "precomputed" takes squared distances: a sparse symmetric matrix, whose stored entries (0 too) are the allowed edges
        and all there are, or a dense one, where every pair is allowed.
    neighbors : "auto", "exact", "approximate", a k-neighbours transformer, or a pair (indices, distances)
        How to find the neighbour lists. "auto" takes exact search up to a measured amount of work; `neighbors_` says which
        it was. Only the indices of a pair are used: distances are measured anew.
    oversampling : float, default 3
        The lists have this many times `n_neighbors` entries to begin with.
    complete : bool, default True
        Give nodes that need it more neighbours until the graph is proven to be the optimum over all pairs of samples (with
        approximate lists: as far as the lists are right). There are limits: 20 rounds; 50 new pairs per node or ten million
        in all, in one round, which groups of duplicates exceed; and with approximate lists 16 times the first length, and
        some seconds of comparing nodes with every sample. `n_incomplete_` says how many nodes were left.
    theta : float, optional
        Set θ by hand; `n_neighbors` then only sets the length of the lists.
    alpha, beta : float, optional
        The paper's parameters, both or none, in place of `theta`: θ = 1/√(αβ), δ = √(α/β).
    tol : float, default 1e-6
        Relative duality gap (P − D)/n to stop at.
    max_iter : int, default 1000
        Sweeps of a solve.
    max_weight : float, optional
        Largest weight an edge of the returned graph may have.
    prior : sparse matrix (n, n), optional
        A graph W⁰ to stay near, by adding (c·β/2)‖W − W⁰‖²_F, c = `prior_strength`. Its edges are allowed.
    prior_strength : float, default 0
        c above.
    scale : None, float, "sum" or "laplacian"
        Scale of the returned graph: δ, an upper bound of the weights (None: 1, or √(α/β)); "sum": ‖W‖₁,₁ = n; "laplacian":
        the largest eigenvalue of the Laplacian is 1. `max_weight` and `prior` are in units of the returned graph for a
        number δ, and of the graph with δ = 1 otherwise.
    random_state : int or RandomState, optional
        For approximate neighbours. The solver uses no random numbers.
    n_jobs : int, optional
        Threads; None or −1 is all. The solver's result does not depend on it, to the last bit.
    verbose : int, default 0
        1 prints what each stage did.

    Attributes
    ----------
    graph_ : csr_matrix (n, n), symmetric, empty diagonal, no stored zeros.
    theta_, theta_bounds_ : the θ used, and the bounds it started from (a `ThetaBounds`; None with sparse precomputed
        distances of nodes that have too few allowed edges).
    solution_ : a `Solution`: the weights before scaling, λ, objective and dual objective, relative gap, status.
    n_neighbors_ : the mean degree reached.
    n_incomplete_ : nodes without a support certificate. 0 means that the graph is the optimum over all pairs of samples.
    n_components_ : connected components of the graph.
    n_iter_ : sweeps of the last solve.
    neighbors_ : the backend that found the lists: "exact", "approximate", "given lists", "allowed edges" or a class name.
    recall_ : the share of true neighbours in the lists: 1 if they are exact, else estimated from 500 rows.
    scale_ : the factor between `solution_.weights` and `graph_`.
    seconds_ : seconds per stage.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from smoothgraph import GraphLearner
    >>> learner = GraphLearner(n_neighbors=10).fit(load_digits().data)
    >>> learner.graph_.shape, round(learner.n_neighbors_), learner.n_incomplete_
    ((1797, 1797), 10, 0)
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        metric: str = "euclidean",
        neighbors: Any = "auto",
        oversampling: float = 3,
        complete: bool = True,
        theta: float | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_weight: float | None = None,
        prior: Any = None,
        prior_strength: float = 0.0,
        scale: float | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.neighbors = neighbors
        self.oversampling = oversampling
        self.complete = complete
        self.theta = theta
        self.alpha = alpha
        self.beta = beta
        self.tol = tol
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.prior = prior
        self.prior_strength = prior_strength
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None) -> "GraphLearner":
        """Learn the graph of the samples X (n, d), or of squared distances (n, n) with metric="precomputed".

        X may be a memory map of float32 or float64, `np.load(file, mmap_mode="r")`: it is then read a block at a time.
        """
        X = self._validated(X)
        with _threads(self.n_jobs):
            samples, lists = self._search(X)
            allowed = self._allow(samples, lists)
            del lists  # solving needs the memory
            return self._learn(samples, *allowed)

    def fit_transform(self, X, y=None) -> sp.csr_matrix:
        """Learn the graph of X and return it: `fit(X).graph_`."""
        return self.fit(X).graph_

    def transform(self, X) -> sp.csr_matrix:
        """Weights (n_new, n) between new samples and the fitted ones, in closed form, without learning anew.

        A new sample solves its own problem while the fitted λ stay; a fitted sample given again finds itself at distance 0.
        With metric="precomputed", X holds squared distances (n_new, n), sparse for allowed edges alone.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=self._samples.dtype, order="C", reset=False)
        with _threads(self.n_jobs):
            rows = new_rows(self._samples, self._samples.queries(X), *self._one_node, self.n_neighbors)
        rows.data *= self._row_scale
        return rows

    def _validated(self, X):
        _checks.check_parameters(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=_checks.float_type(X), order="C", ensure_min_samples=2)
        if self.n_neighbors >= X.shape[0]:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be less than the number of samples, n_samples = {X.shape[0]}: a node "
                "has at most all the others as neighbours."
            )
        return X

    def _width(self):
        """How many neighbours the lists have to begin with."""
        return max(int(np.ceil(self.oversampling * self.n_neighbors)), self.n_neighbors + 1)

    def _search(self, X):
        """Stage 1, neighbours: X → (samples, lists); the lists are the allowed edges themselves if those are given."""
        self.seconds_ = {}
        with self._stage("neighbors") as say:
            if self.metric == "precomputed":
                X = _checks.check_squared_distances(X)
                samples: Samples | DistanceMatrix = DistanceMatrix(X)
                if sp.issparse(X):
                    self.neighbors_, self.recall_ = "allowed edges", 1.0
                    say(f"{X.nnz // 2} allowed edges given")
                    return samples, from_matrix(X)
            else:
                samples = Samples(X, self.metric)
            backend = choose_backend(self.neighbors, samples, self.random_state)
            self.neighbors_ = backend.name
            say(f"{samples.n} samples, {samples.n_features} features: {backend.name} search, {self._width()} neighbours each")
            lists = find_neighbors(samples, self._width(), backend)
            self.recall_ = lists.recall
            say(f"recall {lists.recall:.4f}" + ("" if lists.exact else ", estimated"))
            return samples, lists

    def _allow(self, samples, lists):
        """Stages 2 and 3, allowed edges and θ: lists → (support, θ, its bounds, whether the lists are exact)."""
        with self._stage("candidates") as say:
            candidates = from_lists(lists) if isinstance(lists, NeighborLists) else lists
            if self.prior is not None:
                candidates = _allow_prior(candidates, _checks.check_prior(self.prior, samples.n), samples)
            say(f"{candidates.n_edges} allowed edges")
        with self._stage("theta") as say:
            bounds = self._bounds(lists, candidates)
            theta = self._given_theta() or float(np.sqrt(bounds.lower * bounds.upper))
            say(f"θ {theta:.6g}" + (f", bounds {bounds.lower:.6g} to {bounds.upper:.6g}" if bounds else ""))
        return Support(candidates, self._width()), theta, bounds, isinstance(lists, NeighborLists) and lists.exact

    def _learn(self, samples, support, theta, bounds, exact):
        """Stages 4 to 6: solve and certify, graph. The support's edges are taken over."""
        prior = None if self.prior is None else _checks.check_prior(self.prior, samples.n)
        delta = self._delta()

        def make_problem(candidates, theta):
            prior_weights = None if prior is None else _at_edges(prior, candidates) / delta
            max_weight = np.inf if self.max_weight is None else self.max_weight / delta
            return Problem(candidates, theta, max_weight, prior_weights, float(self.prior_strength))

        with self._stage("solve") as say:
            start = time.perf_counter()
            settled = settle(
                support,
                theta,
                None if self._given_theta() else self.n_neighbors,
                make_problem,
                samples=samples,
                exact=exact,
                complete=self.complete,
                tol=self.tol,
                max_iter=self.max_iter,
                say=say,
            )
            self.solution_ = nodewise.finish(settled.problem, settled.point, self.tol, start)
        with self._stage("graph") as say:
            weights = self.solution_.weights
            self.scale_ = scale_factor(weights, delta if self.scale is None else self.scale)
            self.graph_ = weights * self.scale_
            # Each edge is stored both ways: strongly connected is connected, and counting needs no transpose of the graph.
            self.n_components_ = int(connected_components(weights, connection="strong", return_labels=False))
            say(f"{weights.nnz // 2} edges, {self.n_components_} components")
        self.theta_, self.theta_bounds_ = settled.problem.theta, bounds
        self.n_neighbors_, self.n_iter_ = weights.nnz / samples.n, self.solution_.n_iter
        self.n_incomplete_ = int(settled.failing.size)
        *_, theta, upper = settled.problem.arrays
        self._samples, self._one_node = samples, (theta, upper, self.solution_.dual * settled.problem.shrink)
        self._row_scale = settled.problem.shrink * self.scale_
        return self

    def _bounds(self, lists, candidates):
        """θ bounds for the wanted degree; None where θ is given and the lists are too short to have any."""
        k, n = self.n_neighbors, candidates.n
        if isinstance(lists, NeighborLists):
            z = lists.distances
        else:
            z = nearest_allowed(candidates, k + 1)
            most = 2 * candidates.n_edges / n
            if self._given_theta() is None and k > most:
                raise ValueError(
                    f"n_neighbors={k}, but the allowed edges give a node {most:.4g} neighbours on average at most. Ask for "
                    "fewer neighbours, allow more edges, or set theta."
                )
        if z.shape[1] < min(k + 1, n - 1):
            if self._given_theta() is not None:
                return None
            raise ValueError(
                f"The neighbour lists have {z.shape[1]} entries, n_neighbors={k} needs at least {k + 1}; "
                f"{3 * k} leave the learner a choice. Give longer lists, or set theta."
            )
        return theta_bounds(z, k)

    def _given_theta(self) -> float | None:
        if self.alpha is not None and self.beta is not None:
            return 1.0 / float(np.sqrt(self.alpha * self.beta))
        return self.theta

    def _delta(self):
        """The scale of the returned graph as far as it is known before the solve."""
        if self.alpha is not None and self.beta is not None:
            return float(np.sqrt(self.alpha / self.beta))
        return 1.0 if self.scale is None or isinstance(self.scale, str) else float(self.scale)

    @contextmanager
    def _stage(self, name):
        """Time a stage; what it `say`s is printed if verbose."""
        start = time.perf_counter()

        def say(text):
            if self.verbose:
                print(f"[smoothgraph {time.perf_counter() - start:7.2f} s] {name:10}  {text}", flush=True)

        yield say
        self.seconds_[name] = time.perf_counter() - start

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


def learn_graph(X, n_neighbors: int = 10, **parameters) -> sp.csr_matrix:
    """The learned graph of X in one call: `GraphLearner(n_neighbors, **parameters).fit(X).graph_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from smoothgraph import learn_graph
    >>> learn_graph(load_iris().data, n_neighbors=5).shape
    (150, 150)
    """
    return GraphLearner(n_neighbors, **parameters).fit(X).graph_


def degree_path(X, n_neighbors: Iterable[int], **parameters) -> list[GraphLearner]:
    """Graphs of several densities from one neighbour search: a fitted learner for each wanted degree, in the order given.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from smoothgraph import degree_path
    >>> [round(learner.n_neighbors_) for learner in degree_path(load_digits().data, [5, 10, 20])]
    [5, 10, 20]
    """
    learners = [GraphLearner(k, **parameters) for k in n_neighbors]
    if not learners:
        raise ValueError("n_neighbors is empty: name at least one wanted degree.")
    widest = max(learners, key=lambda learner: learner.n_neighbors)
    X = widest._validated(X)
    with _threads(widest.n_jobs):
        samples, lists = widest._search(X)
        for learner in learners:
            learner._validated(X)
            learner.neighbors_, learner.recall_ = widest.neighbors_, widest.recall_
            learner.seconds_ = {"neighbors": widest.seconds_["neighbors"]}
            own = lists.first(learner._width()) if isinstance(lists, NeighborLists) else lists
            learner._learn(samples, *learner._allow(samples, own))
    return learners


@contextmanager
def _threads(n_jobs):
    """Run with as many threads in our kernels and in BLAS; None and −1 change nothing."""
    if n_jobs in (None, -1):
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(min(n_jobs, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(limits=int(n_jobs)):
            yield
    finally:
        numba.set_num_threads(before)


def _allow_prior(candidates: Candidates, prior: sp.csr_matrix, samples) -> Candidates:
    """Allow the prior's edges too, unless the allowed edges were given."""
    if isinstance(samples, DistanceMatrix) and samples.sparse:
        return candidates
    edges = sp.triu(prior, k=1).tocoo()
    i, j = edges.row.astype(np.int32), edges.col.astype(np.int32)
    blocks = (slice(s, s + ROWS) for s in range(0, i.size, ROWS))
    z = [samples.distances(samples.own(i[block]), j[block, None])[:, 0] for block in blocks]
    return add_pairs(candidates, i, j, np.concatenate(z)) if z else candidates


def _at_edges(prior: sp.csr_matrix, candidates: Candidates) -> np.ndarray:
    """The prior's weight at each entry of the allowed edges."""
    return np.asarray(prior[candidates.nodes, candidates.indices], dtype=np.float64).ravel()
