"""GraphLearner: from samples to a certified graph. The only module that knows the whole flow."""

import time
from collections.abc import Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from smoothgraph import _checks, _kernels, baselines
from smoothgraph.candidates import Candidates, add_graph, from_all_pairs, from_lists, from_matrix
from smoothgraph.certify import Support
from smoothgraph.connect import connect
from smoothgraph.graph import Fitted, by_nodes, new_rows, scale_factor, solution_by_rows
from smoothgraph.neighbors import NeighborLists, choose_backend, ordered_neighbors
from smoothgraph.recipe import Recipe
from smoothgraph.samples import DistanceMatrix, Samples
from smoothgraph.settle import settle
from smoothgraph.solvers import daitch, l2
from smoothgraph.solvers.nodewise import Scratch
from smoothgraph.solvers.problem import Solution
from smoothgraph.theta import nearest_distances, node_thetas, theta_bounds


class _Allowed(NamedTuple):
    """What is left of the neighbour lists for the solve. Node i is sample order[i], or i if that is None."""

    support: Support
    order: np.ndarray | None
    samples: Any
    exact: bool = False
    recipe: Any = None
    theta: Any = None
    bounds: Any = None


class _Solved(NamedTuple):
    """What was learned, for nodes as `_Allowed` has them. `rows` are the weights of new samples, as a function of them."""

    solution: Solution
    n_incomplete: int
    order: np.ndarray | None = None
    theta: Any = None
    bounds: Any = None
    joining_edges: Any = None
    rows: Any = None


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
    model : {"log", "l2", "hard", "soft", "knn", "knn-gaussian", "knn-self-tuning"}, default "log"
        What is learned. "log" is the above. "l2" (Hu 2013, Dong 2016) has α‖W1‖² + α‖W‖²_F in place of the last two terms, and
        ‖W‖₁,₁ = n; nodes may end without an edge. "hard" and "soft" (Daitch 2009) have each sample near the weighted mean of
        its neighbours, ‖LX‖²_F, with degrees of at least 1, or at a price below that; there `n_neighbors` only sets the
        length of the lists, and how many neighbours a node has is up to the model. The others are nearest-neighbour graphs
        to compare with, with weights 1, exp(−z/(2σ²)) or exp(−z/(σᵢσⱼ)): there `n_neighbors` is the length of the lists,
        and nothing is learned.
    metric : {"euclidean", "cosine", "precomputed"}
        "precomputed" takes squared distances: a sparse symmetric matrix, whose stored entries (0 too) are the allowed edges
        and all there are, or a dense one, where every pair is allowed.
    neighbors : "auto", "exact", "approximate", "all", a k-neighbours transformer, or a pair (indices, distances)
        How to find the neighbour lists. "auto" takes exact search up to a measured amount of work; `neighbors_` says which
        it was. "all" makes no lists: every pair of samples is an allowed edge, which takes n² memory and is the same graph
        that "exact" with `complete` finds in less. Only the indices of a pair are used: distances are measured anew.
    oversampling : float, default 3
        The lists have this many times `n_neighbors` entries to begin with.
    locality : float from 0 to 1, default 0
        How far θ follows the density of the samples: node i has its own θᵢ, at which it alone would have `n_neighbors`
        neighbours, and the distance of a pair counts (θᵢθⱼ)^(locality/2) times. 0 is the model of the paper, one θ for
        all, which leaves samples in sparse regions few edges; at 1 degrees are even. For the log and ℓ2 models.
    complete : bool, default True
        Give nodes that need it more neighbours until the graph is proven to be the optimum over all pairs of samples (with
        approximate lists: as far as the lists are right). There are limits: 20 rounds; 50 new pairs per node or ten million
        in all, in one round, which groups of duplicates exceed; and with approximate lists 16 times the first length, and
        some seconds of comparing nodes with every sample. `n_incomplete_` says how many nodes were left. The models "hard"
        and "soft" look at all pairs up to 10,000 samples; beyond that they stay with the lists, and no node is certified.
    connect : bool, default False
        Join the parts of the graph into one, at the least cost: a few edges, `joining_edges_`, get the smaller of the
        mean weights that their two ends had, and everything else is optimal given that. For the log and ℓ2 models.
    theta : float, optional
        Set θ by hand; `n_neighbors` then only sets the length of the lists, and the neighbours that `locality` looks at.
    alpha, beta : float, optional
        The paper's parameters, both or none, in place of `theta`: θ = 1/√(αβ), δ = √(α/β). The ℓ2 model has α alone:
        θ = 1/(2α).
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
    mu : float, optional
        The price of model="soft", μ Σᵢ max(1 − dᵢ, 0)²; ten times the mean squared distance of allowed edges if None.
    projection : int, optional
        For "hard" and "soft": project the samples to so many features first, at random (the lists are made before).
    sigma : float, optional
        The width of model="knn-gaussian"; the root of the mean squared distance to the last neighbour if None.
    mutual : bool, default False
        For nearest-neighbour graphs: keep an edge only if each end lists the other.
    scale : None, float, "sum" or "laplacian"
        Scale of the returned graph: δ, an upper bound of the weights (None: 1, or √(α/β)); "sum": ‖W‖₁,₁ = n; "laplacian":
        the largest eigenvalue of the Laplacian is 1. `max_weight` and `prior` are in units of the returned graph for a
        number δ, and of the graph with δ = 1 otherwise.
    random_state : int or RandomState, optional
        For approximate neighbours. The solver uses no random numbers.
    n_jobs : int, optional
        Threads; None or −1 is all. The solver's result does not depend on it, to the last bit.
    verbose : int or callable, default 0
        1 prints what each stage did. A callable is called with (stage, text) instead, and with an empty text when a stage
        begins.

    Attributes
    ----------
    Nearest-neighbour graphs have no θ, solution or certificate: those are None.

    graph_ : csr_matrix (n, n), symmetric, empty diagonal, no stored zeros.
    theta_, theta_bounds_ : the θ used, and the bounds it started from (a `ThetaBounds`; None with sparse precomputed
        distances of nodes that have too few allowed edges).
    solution_ : a `Solution`: the weights before scaling, λ, objective and dual objective, relative gap, status.
    n_neighbors_ : the mean degree reached.
    n_incomplete_ : nodes without a support certificate. 0 means that the graph is the optimum over all pairs of samples.
    n_components_, n_isolated_ : connected components of the graph, and nodes without an edge (the log model has none).
    joining_edges_ : array (m, 2) of the pairs that `connect` joined parts at.
    n_iter_ : sweeps of the last solve.
    neighbors_ : the backend that found the lists: "exact", "approximate", "given lists", "allowed edges" or a class name.
    recall_ : the share of true neighbours in the lists: 1 if they are exact, else estimated from 500 rows.
    scale_ : the factor between `solution_.weights` and `graph_`.
    seconds_ : seconds per stage.
    ids_ : the index of a pandas frame, if it is more than a count of the rows; else None.
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
        model: str = "log",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        oversampling: float = 3,
        locality: float = 0.0,
        complete: bool = True,
        connect: bool = False,
        theta: float | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_weight: float | None = None,
        prior: Any = None,
        prior_strength: float = 0.0,
        mu: float | None = None,
        projection: int | None = None,
        sigma: float | None = None,
        mutual: bool = False,
        scale: float | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: Any = 0,
    ):
        self.n_neighbors = n_neighbors
        self.model = model
        self.metric = metric
        self.neighbors = neighbors
        self.oversampling = oversampling
        self.locality = locality
        self.complete = complete
        self.connect = connect
        self.theta = theta
        self.alpha = alpha
        self.beta = beta
        self.tol = tol
        self.max_iter = max_iter
        self.max_weight = max_weight
        self.prior = prior
        self.prior_strength = prior_strength
        self.mu = mu
        self.projection = projection
        self.sigma = sigma
        self.mutual = mutual
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
            self._samples, lists = self._search(X)
            if self.model in baselines.MODELS:
                return self._weigh_lists(lists)
            allowed = self._allow(lists)
            del lists  # solving needs the memory
            solved = self._solve(allowed)
            del allowed
            return self._keep(solved)

    def fit_transform(self, X, y=None) -> sp.csr_matrix:
        """Learn the graph of X and return it: `fit(X).graph_`."""
        return self.fit(X).graph_

    def transform(self, X) -> sp.csr_matrix:
        """Weights (n_new, n) between new samples and the fitted ones, in closed form, without learning anew.

        A new sample solves its own problem while the fitted λ stay; a fitted sample given again finds itself at distance 0.
        With metric="precomputed", X holds squared distances (n_new, n), sparse for allowed edges alone.
        """
        check_is_fitted(self)
        if self._rows is None:
            raise ValueError(f"model={self.model!r} says nothing of new samples: fit it on all of them, or use model='log'.")
        X = _checks.as_array(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=self._samples.dtype, order="C", reset=False)
        with _threads(self.n_jobs):
            return self._rows(self._samples.queries(X)) * self.scale_

    def _validated(self, X):
        _checks.check_parameters(self)
        self.ids_ = _checks.frame_ids(X)
        X = _checks.as_array(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=_checks.float_type(X), order="C", ensure_min_samples=2)
        if self.n_neighbors >= X.shape[0]:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be less than the number of samples, n_samples = {X.shape[0]}: a node "
                "has at most all the others as neighbours."
            )
        return X

    def _width(self):
        """How many neighbours the lists have to begin with."""
        if self.model in baselines.MODELS:
            return self.n_neighbors
        return max(int(np.ceil(self.oversampling * self.n_neighbors)), self.n_neighbors + 1)

    def _search(self, X):
        """Stage 1, neighbours: X → (samples, lists); the lists are the allowed edges themselves if those are given."""
        self.seconds_ = {}
        with self._stage("neighbors") as say:
            if self.metric == "precomputed":
                X = _checks.check_squared_distances(X)
                samples: Samples | DistanceMatrix = DistanceMatrix(X)
                if sp.issparse(X):
                    if self.model in baselines.MODELS:
                        raise ValueError(f"model={self.model!r} needs samples, or a dense matrix of squared distances.")
                    self.neighbors_, self.recall_ = "allowed edges", 1.0
                    say(f"{X.nnz // 2} allowed edges given")
                    return samples, from_matrix(X)
            else:
                samples = Samples(X, self.metric)
            if isinstance(self.neighbors, str) and self.neighbors == "all":
                self.neighbors_, self.recall_ = "all pairs", 1.0
                say(f"{samples.n} samples, {samples.n_features} features: all pairs")
                return samples, from_all_pairs(samples)
            backend = choose_backend(self.neighbors, samples, self.random_state)
            self.neighbors_ = backend.name
            say(f"{samples.n} samples, {samples.n_features} features: {backend.name} search, {self._width()} neighbours each")
            lists = ordered_neighbors(samples, self._width(), backend)
            self.recall_ = lists.recall
            say(f"recall {lists.recall:.4f}" + ("" if lists.exact else ", estimated"))
            return samples, lists

    def _weigh_lists(self, lists):
        """The nearest-neighbour graphs: nothing is learned."""
        with self._stage("graph") as say:
            lists = lists.by_rows()
            width = baselines.widths(lists, self.model, self.sigma)
            self._describe(baselines.knn_graph(lists, self.model, width, self.mutual), say)
        self.solution_ = self.theta_ = self.theta_bounds_ = self.n_incomplete_ = self.joining_edges_ = None
        self.n_iter_ = 0
        k = lists.indices.shape[1]
        self._rows: Any = partial(baselines.new_rows, self._samples, k=k, model=self.model, width=width)
        return self

    def _allow(self, lists) -> "_Allowed":
        """Stages 2 and 3, allowed edges and θ."""
        with self._stage("candidates") as say:
            if self.model in daitch.MODELS and isinstance(lists, NeighborLists):
                lists = lists.by_rows()
            candidates, order = (from_lists(lists), lists.order) if isinstance(lists, NeighborLists) else (lists, None)
            samples = self._samples.numbered(order)
            prior = None if self.prior is None else _checks.check_prior(self.prior, candidates.n)
            if prior is not None:
                prior = prior if order is None else by_nodes(prior, order)
                if self.neighbors_ != "allowed edges":
                    candidates = add_graph(candidates, prior, samples)
            say(f"{candidates.n_edges} allowed edges")
        if self.model in daitch.MODELS:
            return _Allowed(Support(candidates, self._width()), order, samples)
        with self._stage("theta") as say:
            stretch = self._stretch(lists)
            bounds = self._bounds(lists, stretch)
            theta = self._given_theta() or float(np.sqrt(bounds.lower * bounds.upper))
            say(f"θ {theta:.6g}" + (f", bounds {bounds.lower:.6g} to {bounds.upper:.6g}" if bounds else ""))
        delta = self._delta()
        recipe = Recipe(
            self.model,
            stretch,
            max_weight=np.inf if self.max_weight is None else self.max_weight / delta,
            prior=None if prior is None else prior / delta,
            prior_strength=float(self.prior_strength),
        )
        exact = isinstance(lists, NeighborLists) and lists.exact
        return _Allowed(Support(candidates, self._width(), stretch), order, samples, exact, recipe, theta, bounds)

    def _solve(self, allowed: _Allowed) -> _Solved:
        """Stages 4 and 5, solve and certify. The allowed edges are taken over."""
        return self._fit_means(allowed) if self.model in daitch.MODELS else self._settle(allowed)

    def _fit_means(self, allowed):
        """The models of Daitch: each sample near the weighted mean of its neighbours."""
        X, n, candidates = self._samples.X, self._samples.n, allowed.support.candidates
        with self._stage("solve") as say:
            if self.projection is not None:
                X = daitch.project(X, self.projection, self.random_state)
            mu = None if self.model == "hard" else self.mu or daitch.default_mu(X, candidates)
            if self.complete and n <= daitch.MOST_COMPLETE:
                solution, _, n_incomplete = daitch.solve_complete(X, candidates, mu, self.tol, self.max_iter)
            else:
                solution, n_incomplete = daitch.solve(X, candidates, mu, self.tol, self.max_iter), n
            say(f"gap {solution.gap:.1e}, {n - n_incomplete} nodes certified")
        return _Solved(solution, n_incomplete)

    def _settle(self, allowed):
        """The log and ℓ2 models: solve and certify, join parts."""
        recipe, start = allowed.recipe, time.perf_counter()

        wanted = self.n_neighbors if self._given_theta() is None else None
        common = {"samples": allowed.samples, "exact": allowed.exact, "max_iter": self.max_iter, "scratch": Scratch()}

        def resettle(settled, recipe, changed, certify):
            theta, degree = settled.problem.theta, wanted if changed is None else None
            if degree is not None:
                theta *= recipe.mean_degree(settled.point) / degree  # about where it will land
            complete, tol = self.complete and certify, self.tol
            where = settled.support, theta, degree
            return settle(*where, recipe, start=settled, changed=changed, complete=complete, tol=tol, say=say, **common)

        with self._stage("solve") as say:
            compare, tol = allowed.exact or not self.connect, self.tol  # else it is done once, when the parts are joined
            where = allowed.support, allowed.theta, wanted
            settled = settle(*where, recipe, complete=self.complete, compare=compare, tol=tol, say=say, **common)
        if self.connect:
            with self._stage("connect") as say:
                settled, recipe = connect(settled, recipe, allowed.samples, wanted, resettle, say)
        problem = settled.problem
        solution = recipe.finish(problem, settled.point, self.tol, start)
        fitted = self._fitted(problem, solution.dual, recipe.stretch, allowed.samples)
        joining_edges = allowed.samples.rows(np.stack([recipe.joints.i, recipe.joints.j], axis=1))
        return _Solved(
            solution,
            int(settled.failing.size),
            allowed.order,
            problem.theta,
            allowed.bounds,
            np.sort(joining_edges, axis=1),
            partial(new_rows, fitted, ratio=problem.shrink),
        )

    def _keep(self, solved: _Solved) -> "GraphLearner":
        """Stage 6, graph: nodes become samples again."""
        with self._stage("graph") as say:
            self.solution_ = solution_by_rows(solved.solution, solved.order)
            self._describe(self.solution_.weights, say)
        self.theta_, self.theta_bounds_ = solved.theta, solved.bounds
        self.n_iter_, self.n_incomplete_ = self.solution_.n_iter, solved.n_incomplete
        self.joining_edges_, self._rows = solved.joining_edges, solved.rows
        return self

    def _describe(self, weights, say):
        """The graph, scaled, and what it looks like."""
        self.scale_ = scale_factor(weights, self._delta() if self.scale is None else self.scale)
        self.graph_ = weights * self.scale_
        self.n_components_ = int(_kernels.parts(weights.indptr, weights.indices).max()) + 1
        self.n_isolated_ = int(np.count_nonzero(np.diff(weights.indptr) == 0))
        self.n_neighbors_ = weights.nnz / weights.shape[0]
        say(f"{weights.nnz // 2} edges, {self.n_components_} components")

    def _fitted(self, problem, dual, stretch, samples):
        """What rows for new samples need."""
        lam = dual * problem.shrink
        if self.model == "l2":
            solve_rows = partial(l2.new_rows, level=1.0 + float(lam.mean()))
        else:
            solve_rows = partial(_kernels.new_rows, upper=problem.arrays[-1])
        return Fitted(samples, solve_rows, problem.theta * problem.shrink, lam, self.n_neighbors, self.locality, stretch)

    def _stretch(self, among):
        """θᵢ^(γ/2) of every node, γ = `locality`; None without it."""
        if self.locality == 0:
            return None
        z = nearest_distances(among, self.n_neighbors + 1)
        return node_thetas(z, min(self.n_neighbors, z.shape[1])) ** (0.5 * self.locality)

    def _bounds(self, among, stretch):
        """θ bounds for the wanted degree; None where θ is given and the lists are too short to have any."""
        k, n = self.n_neighbors, self._samples.n
        if isinstance(among, Candidates) and self._given_theta() is None and k > (most := 2 * among.n_edges / n):
            raise ValueError(
                f"n_neighbors={k}, but the allowed edges give a node {most:.4g} neighbours on average at most. Ask for "
                "fewer neighbours, allow more edges, or set theta."
            )
        z = nearest_distances(among, k + 1, stretch)
        if z.shape[1] < min(k + 1, n - 1):
            if self._given_theta() is not None:
                return None
            raise ValueError(
                f"The neighbour lists have {z.shape[1]} entries, n_neighbors={k} needs at least {k + 1}; "
                f"{3 * k} leave the learner a choice. Give longer lists, or set theta."
            )
        return theta_bounds(z, k, self.model)

    def _given_theta(self) -> float | None:
        if self.alpha is None:
            return self.theta
        return 0.5 / self.alpha if self.beta is None else 1.0 / float(np.sqrt(self.alpha * self.beta))

    def _delta(self):
        """The scale of the returned graph as far as it is known before the solve."""
        if self.alpha is not None and self.beta is not None:
            return float(np.sqrt(self.alpha / self.beta))
        return 1.0 if self.scale is None or isinstance(self.scale, str) else float(self.scale)

    @contextmanager
    def _stage(self, name):
        """Time a stage; what it `say`s is printed if verbose, or told to whom `verbose` is."""
        start = time.perf_counter()

        def say(text):
            if callable(self.verbose):
                self.verbose(name, text)
            elif self.verbose and text:
                print(f"[smoothgraph {time.perf_counter() - start:7.2f} s] {name:10}  {text}", flush=True)

        say("")
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
            learner.ids_ = widest.ids_
            learner.neighbors_, learner.recall_ = widest.neighbors_, widest.recall_
            learner.seconds_ = {"neighbors": widest.seconds_["neighbors"]}
            learner._samples = samples
            own = lists.first(learner._width()) if isinstance(lists, NeighborLists) else lists
            if learner.model in baselines.MODELS:
                learner._weigh_lists(own)
            else:
                learner._keep(learner._solve(learner._allow(own)))
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
