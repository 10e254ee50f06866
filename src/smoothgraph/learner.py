"""GraphLearner: from samples to a certified graph. The only module that knows the whole flow:

X ─► copies ─► distances ─► neighbors ─► model.learn: edges ─► θ ─► solve ◄─► certify ─► connect ─► graph
"""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from smoothgraph import _checks
from smoothgraph.copies import Copies, distinct_samples, no_copies
from smoothgraph.distances import MATRICES, distances_of
from smoothgraph.estimate import Estimate, check_fits, estimate
from smoothgraph.fit.task import Task
from smoothgraph.fitted import fitted_attributes
from smoothgraph.neighbors import find_neighbors, find_proven
from smoothgraph.new_samples import rows_of_new
from smoothgraph.parallel import Threads
from smoothgraph.progress import Progress


class GraphLearner(TransformerMixin, BaseEstimator):
    """Learn the sparse weighted graph on which the samples are smooth.

    Say how many neighbours you want; get the optimum of the log model (Kalofolias & Perraudin 2019),

        min over W  ‖W∘Z‖₁,₁ − α Σᵢ log dᵢ + (β/2)‖W‖²_F,    Zᵢⱼ = ‖xᵢ − xⱼ‖²,

    as a symmetric sparse matrix, with a duality gap that proves how near the optimum it is, and the number of nodes for
    which it is not proven that the neighbour lists were long enough.

    Parameters
    ----------
    n_neighbors : int, default 15
        The wanted mean number of neighbours, which the graph has to within 1 % (from 1,000 samples on, without ties).
    model : str or a model of `smoothgraph.models`, default "log"
        What is learned. "log" is the above. "l2" has α‖W1‖² + α‖W‖²_F in place of the last two terms, and ‖W‖₁,₁ = n. "hard"
        and "soft", that is `Daitch("soft", mu=…)`, hold each sample near the weighted mean of its neighbours. "knn",
        "knn-gaussian" and "knn-self-tuning", that is `Nearest("gaussian", sigma=…)`, are nearest-neighbour graphs to compare
        with: nothing is learned. `Penalty(phi, degree)` is a degree penalty of your own. Strings stand for models with their
        default parameters; parameters of a model object go by names such as `model__mu` in a grid search.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_squared"}
        "precomputed" takes distances, as in scikit-learn, "precomputed_squared" their squares: a sparse symmetric matrix, whose
        stored entries (0 too) are all the allowed edges, or a dense one, where every pair is allowed. The diagonal is not used.
    neighbors : "auto", "exact", "approximate", "all", a k-neighbours transformer, or a pair (indices, distances)
        How to find the neighbour lists. "auto" takes exact search up to a measured amount of work. "all" makes no lists: every
        pair is an allowed edge, which takes n² memory and is the graph that "exact" with `complete` finds in less. Only the
        indices of a pair are used: distances are measured anew.
    oversampling : float, default 2
        The lists have this many times `n_neighbors` entries at first.
    duplicates : {"merge", "keep"}, default "merge"
        What becomes of copies, rows that are equal. "merge": the graph is learned of the distinct samples, and every further
        copy gets one edge, to the first of its group, of weight δ (or `max_weight`). "keep" is the model to the letter: all
        copies are connected with each other, whatever θ is (a bridge of `connect` takes all copies of its ends; `locality`
        looks at distinct samples). Allowed edges that are given are never merged.
    locality : float from 0 to 1, optional
        How far θ follows the density of the samples: node i has its own θᵢ, at which it alone would have `n_neighbors`
        neighbours, and the distance of a pair counts (θᵢθⱼ)^(locality/2) times. 0 is the model of the paper, one θ for
        all, which leaves samples in sparse regions few edges; at 1 degrees are even. For models with a θ. None is what is
        recommended: 1 for the log model, 0 for others and where θ, α, β or the allowed edges are given.
    complete : bool, default True
        Give nodes that need it more neighbours until the graph is the optimum over all pairs of samples (with approximate
        lists: as far as these are right). There are limits: 20 rounds; 50 new pairs per node or ten million in all, in one
        round; and with approximate lists 16 times the first length, and about ten seconds of comparing with all samples.
        The models "hard" and "soft" look at all pairs up to 10,000 samples; beyond that no node is certified.
    proof : bool, default False
        Prove the certificate over all pairs also where lists are not exact: bounds rule out, for certain, that any other pair
        has weight, and what they find is added and solved for. It takes the time of a few fits. For models with a θ.
    connect : bool, optional
        Connect the components of the graph, at the least cost: a few edges, `bridges_`, get the smaller of the mean weights
        that their two ends had, and everything else is optimal given that. For models with a θ. None is what is recommended:
        True for the log model, False for others, for fewer than 3 neighbours, and where θ, α, β or the allowed edges are given.
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
        Largest weight an edge of the returned graph may have. Its scale must be known before: `scale` is None or a number.
    prior : sparse matrix (n, n), optional
        A graph W⁰ to stay near, by adding (c·β/2)‖W − W⁰‖²_F, c = `prior_strength`. Its edges are allowed; of a sparse matrix
        of distances they must be among the entries.
    prior_strength : float, optional
        c above; needed with `prior`.
    scale : None, float, "sum" or "laplacian"
        Scale of the returned graph: δ, an upper bound of the weights (None: 1, or √(α/β)); "sum": ‖W‖₁,₁ = n; "laplacian":
        the largest eigenvalue of the Laplacian is 1. `prior` is in units of the returned graph for a number δ, and of the
        graph with δ = 1 for "sum" and "laplacian".
    random_state : int or RandomState, optional
        For approximate neighbours.
    n_jobs : int, optional
        Threads; None or −1 is all. The solver's result does not depend on it, to the last bit.
    verbose : int or callable, default 0
        1 prints what each stage did. A callable is called with (stage, text), the text being empty when a stage begins.

    Attributes
    ----------
    Nearest-neighbour graphs have no θ, solution or certificate: those are None. n_features_in_ is as in scikit-learn.

    graph_ : csr_matrix (n, n), symmetric, empty diagonal, no stored zeros.
    locality_, connect_ : the values used.
    theta_, theta_bounds_ : the θ used, and the bounds it started from (a `ThetaBounds`; None with sparse precomputed
        distances of nodes that have too few allowed edges).
    solution_ : a `Solution`: the weights before scaling, λ, objective and dual objective, relative gap, status; of the
        distinct samples, in the order of their first rows; of all rows with duplicates="keep".
    n_neighbors_ : the mean number of neighbours reached, of distinct samples; of all rows with duplicates="keep".
    copy_of_ : array (n,) of the row that each row is a copy of: its own number if it is distinct, or the first of its group.
    group_sizes_ : array (n,) of the number of rows that are equal to each row, itself included.
    n_incomplete_ : nodes without a support certificate. 0 means that the graph is the optimum over all pairs of samples.
    proven_ : whether it is 0 for certain, by exact lists or `proof`; else it is as far as the lists are right (`recall_`).
    n_components_, n_isolated_ : connected components of the graph, and nodes without an edge (the log model has none).
    bridges_ : array (m, 2) of the edges that `connect` added.
    neighbors_ : the backend that found the lists: "exact", "approximate", "given lists", "allowed edges" or a class name.
    recall_ : the share of true neighbours in the lists: 1 if they are exact, else estimated from 500 rows.
    scale_ : the factor between `solution_.weights` and `graph_`.
    distances_ : the squared distances between the distinct samples, a `Distances` of `smoothgraph.distances`.
    seconds_, n_iter_ : seconds per stage, and sweeps of the last solve.
    ids_ : the index of a pandas frame, if it is more than a count of the rows; else None.

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
        n_neighbors: int = 15,
        *,
        model: Any = "log",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        oversampling: float = 2,
        duplicates: str = "merge",
        locality: float | None = None,
        complete: bool = True,
        proof: bool = False,
        connect: bool | None = None,
        theta: float | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_weight: float | None = None,
        prior: Any = None,
        prior_strength: float | None = None,
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
        self.duplicates = duplicates
        self.locality = locality
        self.complete = complete
        self.proof = proof
        self.connect = connect
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
        """Learn the graph of the samples X (n, d), or of distances (n, n) with metric="precomputed" or "precomputed_squared".

        X may be a memory map of float32 or float64, `np.load(file, mmap_mode="r")`: it is then read a block at a time. A fit
        that does not end, by an error or an interrupt, leaves the learner as it was.
        """
        fitted = self._unfitted()
        (model, X), progress = fitted._checked(X), Progress(self.verbose)
        with Threads(self.n_jobs) as threads:
            copies, X = fitted._distinct(model, X, threads, progress)  # what was only checked, and is not the user's, is freed
            distances, found, bounds = fitted._search(model, copies, X, threads, progress)
            fitted._learn(model, copies, distances, found, bounds, threads, progress)
        self.__dict__ = fitted.__dict__  # all at once: no interrupt can come between two attributes
        return self

    def fit_transform(self, X, y=None) -> sp.csr_matrix:
        """Learn the graph of X and return it: `fit(X).graph_`."""
        _checks.check_place(self)
        return self.fit(X).graph_

    def transform(self, X) -> sp.csr_matrix:
        """Weights (n_new, n) between new samples and the fitted ones, in closed form, without learning anew.

        A new sample solves its own problem while the fitted λ stay; a fitted sample given again finds itself at distance 0.
        X may be sparse or dense, whatever was fitted. A matrix of distances is (n_new, n), sparse for allowed edges alone.
        """
        check_is_fitted(self)
        if self._rows is None:
            raise ValueError(f"model={self.model!r} says nothing of new samples: fit it on all of them, or use model='log'.")
        X = validate_data(self, _checks.as_array(X), accept_sparse="csr", dtype=self.distances_.dtype, order="C", reset=False)
        X = self._copies.distinct_columns(X) if self.metric in MATRICES else X
        with Threads(self.n_jobs) as threads:
            rows = rows_of_new(X, self.distances_, self._rows, threads=threads)
        return self._copies.columns_of_rows(rows) * self.scale_

    def estimate(self, n: int, d: int, dtype: Any = np.float64, nnz: int | None = None) -> Estimate:
        """About the seconds and the memory that `fit` takes for n rows and d columns; `nnz` entries if X is sparse."""
        return estimate(self, n, d, dtype, nnz)

    def _unfitted(self) -> "GraphLearner":
        """A learner with the same parameters and nothing of an earlier fit."""
        learner = copy.copy(self)
        learner.__dict__ = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        return learner

    def _checked(self, X):
        """The model and X, or an error that says what is wrong with which parameter."""
        model = _checks.check_parameters(self)
        self.ids_ = _checks.frame_ids(X)
        X = check_fits(self, _checks.as_array(X))
        X = validate_data(self, X, accept_sparse="csr", dtype=_checks.float_type(X), order="C", ensure_min_samples=2)
        _checks.check_n_neighbors(self.n_neighbors, X.shape[0])
        if self.prior is not None:  # before the search, which may take long
            _checks.check_prior(self.prior, X.shape[0], X if self.metric in MATRICES else None)
        return model, X

    def _distinct(self, model, X, threads, progress):
        """X → copies, and X without them."""
        with progress.stage("copies") as say:
            if self.metric in MATRICES:
                X = _checks.check_matrix(X, self.metric)
            _checks.warn_of_table(X, self.metric, getattr(self, "feature_names_in_", None))
            keep = self.duplicates == "keep"
            if keep and not _checks.keeps_by_group(self, model):
                return no_copies(X.shape[0]), X
            copies, X = distinct_samples(X, self.metric, keep, threads=threads)
            say(f"{copies.n_distinct} distinct samples of {copies.n}")
            return copies, X

    def _search(self, model, copies: Copies, X, threads, progress):
        """X → distances → neighbours, and the bounds that prove more where their lists are not exact."""
        with progress.stage("neighbors") as say:
            distances, neighbors = distances_of(X, self.metric), _checks.lists_of_distinct(self.neighbors, copies)
            width, how = self._width(model), {"random_state": self.random_state, "threads": threads, "say": say}
            if self.proof:  # local scales, which are part of the problem, come from the first entries of lists
                return distances, *find_proven(distances, width, neighbors, self.n_neighbors + 1, **how)
            return distances, find_neighbors(distances, width, neighbors, **how), None

    def _learn(self, model, copies: Copies, distances, found, bounds, threads, progress) -> None:
        """Neighbours → the graph."""
        prior = None if self.prior is None else _checks.check_prior(self.prior, copies.n)
        theta = self.theta if self.alpha is None else model.given_theta(self.alpha, self.beta)
        locality, connect = _checks.locality_and_connect(self, model, theta is not None or found.is_given)
        task = Task(
            distances=distances,
            first_rows=copies.first,
            found=found,
            n_neighbors=self.n_neighbors if copies.kept else _checks.wanted_neighbors(self.n_neighbors, copies),
            width=self._width(model),
            locality=locality,
            complete=self.complete,
            connect=connect,
            theta=None if theta is None else theta * distances.z_unit ** (1.0 - locality),
            max_weight=None if self.max_weight is None else self.max_weight / self._delta(),
            prior=None if prior is None else copies.distinct_pairs(prior) / self._delta(),
            prior_strength=float(self.prior_strength or 0.0),
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            threads=threads,
            progress=progress,
            sizes=copies.sizes if copies.kept and copies.any else None,
            bounds=bounds,
        )
        scale = self._delta() if self.scale is None else self.scale
        self.__dict__.update(fitted_attributes(copies, model.learn(task), task, scale))

    def _width(self, model):
        """How many neighbours the lists have to begin with."""
        if not model.learns:
            return self.n_neighbors
        return max(int(np.ceil(self.oversampling * self.n_neighbors)), self.n_neighbors + 1)

    def _delta(self):
        """The scale of the returned graph as far as it is known before the solve."""
        if self.alpha is not None and self.beta is not None:
            return float(np.sqrt(self.alpha)) / float(np.sqrt(self.beta))
        return 1.0 if self.scale is None or isinstance(self.scale, str) else float(self.scale)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric in MATRICES
        return tags


def learn_graph(X, n_neighbors: int = 15, **parameters) -> sp.csr_matrix:
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
    models = [learner._checked(X)[0] for learner in learners]
    model, checked = widest._checked(X)
    with Threads(widest.n_jobs) as threads:
        progress = Progress(widest.verbose)
        copies, checked = widest._distinct(model, checked, threads, progress)
        distances, found, bounds = widest._search(model, copies, checked, threads, progress)
        for learner, own in zip(learners, models, strict=True):
            lists = found.first(learner._width(own))
            learner._learn(own, copies, distances, lists, bounds, threads, Progress(learner.verbose, progress.seconds))
    return learners
