"""Random problems over all models and options, against the judge, CVXPY, and another way to the same graph.

A case has the samples as numbers, the parameters of the learner, and the second look that is taken at it (`also`).
"""

import warnings

import numpy as np
import scipy.sparse as sp

from torture import judge, problem_cases
from torture.kinds import FaultError, Outcome
from torture.problem_cases import given, is_float32, points, smaller  # noqa: F401  (the driver calls it)
from zoo.judge import first_rows

case = problem_cases.random_case
CVXPY_SLACK = 1e-6  # Clarabel's own relative error of the objective, generously
ROW_GAP = 1e-9  # P − D of a row for a new sample, whose equation is solved to rounding


def check(case: dict) -> Outcome:
    """Fit, judge, and take the second look."""
    learner, warned = fit(case)
    if learner is None:
        return Outcome("refused")
    figures = judged(case, learner, warned)
    also = LOOKS.get(case["also"])
    figures |= {} if also is None else also(case, learner)
    return Outcome("missed" if _missed(learner) else "right", figures=figures)


def fit(case: dict, **changes):
    """(the fitted learner, its warnings); (None, the error) if it refuses the table in a sentence. Accidents are raised."""
    from smoothgraph import GraphLearner

    X, parameters = given(case)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            learner = GraphLearner(**{"n_jobs": 1, "random_state": 0, **parameters, **changes}).fit(X)
        except ValueError as error:
            if len(str(error)) <= 40:
                raise
            return None, [str(error)]
    accidents = [str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)]
    if accidents:
        raise FaultError(f"NumPy warned: {accidents[0]}")
    return learner, [str(one.message) for one in caught]


def _missed(learner) -> bool:
    return learner.solution_ is not None and (str(learner.solution_.status) != "converged" or bool(learner.n_incomplete_))


def has_converged(learner) -> bool:
    return str(learner.solution_.status) == "converged"


def proves_its_gap(learner) -> bool:
    """Whether the learner says that its gap is that over all pairs; of approximate lists it says less."""
    return not learner.n_incomplete_ and learner.neighbors_ != "approximate" and learner.recall_ == 1


def claims_optimum(learner) -> bool:
    """Whether the learner says that its graph is the optimum over all pairs."""
    return has_converged(learner) and proves_its_gap(learner)


def judged(case, learner, warned) -> dict:
    """The figures of a graph that is right; raises a `FaultError` otherwise."""
    W = learner.graph_.toarray().astype(np.float64)
    judge.check_form(W)
    _check_counts(learner, W)
    model = case["model"]["name"]
    samples = samples_of(case)
    first = _first(case, learner, W)
    if model.startswith("knn"):
        options = case["model"]
        k = min(case["parameters"]["n_neighbors"], first.size - 1)
        inner = W[np.ix_(first, first)] / learner.scale_
        judge.check_nearest(
            inner, samples.of(first), k, options["weighting"], options.get("mutual", False), options.get("sigma")
        )
        return {}
    if model in ("hard", "soft"):
        return _judged_daitch(case, learner, W, first)
    _check_degree(case, learner, warned, first)
    return _judged_by_gap(case, learner, W, first, samples)


def _check_counts(learner, W) -> None:
    """What the learner says of its graph is true of it."""
    from scipy.sparse.csgraph import connected_components

    n_components = connected_components(sp.csr_matrix(W), directed=False)[0]
    if learner.n_components_ != n_components:
        raise FaultError(f"n_components_ is {learner.n_components_}, the graph has {n_components}")
    isolated = int((W.sum(axis=1) == 0.0).sum())
    if learner.n_isolated_ != isolated:
        raise FaultError(f"n_isolated_ is {learner.n_isolated_}, {isolated} nodes have no edge")
    if not 0.0 < learner.scale_ < np.inf:
        raise FaultError(f"scale_ is {learner.scale_}")
    if learner.solution_ is not None and learner.solution_.gap < -1e-9:
        raise FaultError(f"the gap is negative: {learner.solution_.gap:.1e}")


def samples_of(case) -> judge.Samples:
    X, metric = points(case), case["parameters"].get("metric", "euclidean")
    if case["form"] == "points":
        return judge.samples_of(X, metric, is_float32(case))
    return judge.samples_of(X**2 if metric == "precomputed" else X, "squared", is_float32(case))


def _first(case, learner, W) -> np.ndarray:
    """The rows that are nodes of the problem. Copies that are merged hang on the first of their group, by one edge."""
    n = len(W)
    copy_of = np.asarray(learner.copy_of_)
    if case["form"] == "points" and case["parameters"].get("metric", "euclidean") == "euclidean":
        true = first_rows(points(case))
        known = case["parameters"].get("duplicates") != "keep" or learner.group_sizes_.max() > 1
        if known and not np.array_equal(copy_of, true):
            raise FaultError(f"{np.count_nonzero(copy_of != true)} rows are not the copies that copy_of_ says")
    if case["parameters"].get("duplicates") == "keep":
        return np.arange(n)
    copies = np.flatnonzero(copy_of != np.arange(n))
    hanging = min(1.0, case["parameters"].get("max_weight", np.inf) / _delta(case)) * learner.scale_
    for row in copies:
        if np.flatnonzero(W[row]).tolist() != [copy_of[row]] or not np.isclose(W[row].sum(), hanging, rtol=1e-9):
            raise FaultError("a copy has other edges than one, of the largest weight, to the first of its group")
    return np.flatnonzero(copy_of == np.arange(n))


def _delta(case) -> float:
    parameters = case["parameters"]
    if "beta" in parameters:
        return float(np.sqrt(parameters["alpha"] / parameters["beta"]))
    scale = parameters.get("scale")
    return scale if isinstance(scale, float) else 1.0


def _check_degree(case, learner, warned, first) -> None:
    """The degree is what n_neighbors_ says, and what was asked for to 1 %, or to an edge; or a warning says which it is."""
    rows = np.arange(learner.graph_.shape[0]) if case["parameters"].get("duplicates") == "keep" else first
    degree = learner.graph_[rows][:, rows].nnz / rows.size
    if abs(degree - learner.n_neighbors_) > 1e-9 * degree:
        raise FaultError(f"n_neighbors_ is {learner.n_neighbors_:.6g}, the graph has {degree:.6g}")
    wanted = case["parameters"]["n_neighbors"]
    if {"theta", "alpha"} & set(case["parameters"]) or warned:
        return
    if abs(degree - wanted) > max(0.01 * wanted, 2.0 / rows.size) * (1 + 1e-9):
        raise FaultError(f"the degree is {degree:.4g}, {wanted} was asked for, and no word of it")


def _judged_by_gap(case, learner, W, first, samples) -> dict:
    """The proof that the graph is the optimum over all pairs, or within the lists if it says no more."""
    inner, nodes = W[np.ix_(first, first)] / learner.scale_, samples.of(first)
    cost, error, terms = problem_of(case, learner, first, samples)
    dual = np.asarray(learner.solution_.dual, np.float64)
    if dual.size != first.size:
        raise FaultError(f"solution_.dual has {dual.size} entries for {first.size} nodes")
    if inner.max(initial=0.0) > terms.upper * (1 + 1e-9):
        raise FaultError(f"a weight is {inner.max() / terms.upper:.9g} times max_weight")
    if case["parameters"].get("scale") == "sum" and not np.isclose(W.sum(), len(W), rtol=1e-9):
        raise FaultError(f"with scale='sum' the weights add up to {W.sum():.9g}, not to {len(W)}")
    of = len(inner) if terms.phi != "l2" else judge.objective(inner, cost, terms)
    if terms.phi == "l2" and not np.isclose(inner.sum(), len(inner), rtol=1e-6):
        raise FaultError(f"the weights of the ℓ2 model add up to {inner.sum():.9g}, not to n = {len(inner)}")
    duals = [dual] if terms.phi == "l2" else [dual, judge.lam_at(terms.phi, np.maximum(inner.sum(axis=1), 1e-300))]
    total = min(judge.gap(inner, lam, cost, error, terms, nodes.allowed) for lam in duals)
    relative, tol = total / of, case["parameters"].get("tol", 1e-6)
    if not proves_its_gap(learner):
        is_known = learner.neighbors_ == "approximate" and has_converged(learner) and np.isfinite(relative)
        return {"gap of approximate lists, where the solve converged": relative} if is_known else {}
    said = learner.solution_.gap  # also true where the solver stopped before it was small
    if relative > judge.SLACK * max(tol, said) + judge.LEAST_GAP or (said > tol and has_converged(learner)):
        raise FaultError(f"the gap over all pairs is {relative:.1e}, the learner says {said:.1e} with tol={tol:.0e}")
    if not has_converged(learner):
        return {}
    return {"gap in units of tol": relative / tol, f"gap at tol={tol:.0e}": relative}


def problem_of(case, learner, first, samples):
    """(costs, their errors, terms) of the problem over the nodes `first`, as the definition has it."""
    parameters, theta = case["parameters"], learner.theta_
    k, n = parameters["n_neighbors"], len(points(case))
    distinct = np.flatnonzero(np.asarray(learner.copy_of_) == np.arange(n))
    length = max(int(np.ceil(parameters.get("oversampling", 2) * k)), k + 1)
    scale = np.ones(n)
    scale[distinct] = judge.scales_of(samples.of(distinct), k, learner.locality_, length)
    scale = scale[learner.copy_of_][first]
    factor = theta * scale[:, None] * scale[None]
    nodes = samples.of(first)
    rounding = 64.0 * np.finfo(np.float32 if is_float32(case) else np.float64).eps * (learner.locality_ > 0)
    cost = factor * nodes.z
    prior, delta = prior_of(case, learner, first), _delta(case)
    terms = judge.Terms(
        phi={"l2": "l2", "penalty": "hubs"}.get(case["model"]["name"], "log"),
        upper=parameters.get("max_weight", np.inf) / delta,
        prior=0.0 if prior is None else prior / delta,
        strength=parameters.get("prior_strength", 0.0),
        bridges=np.searchsorted(first, np.asarray(learner.bridges_, int).reshape(-1, 2)),
    )
    # θᵢ goes with the distances of a node's nearest, and is off as they are; differences of them make it more.
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(nodes.z > 0.0, nodes.error / nodes.z, 0.0)
    nearest = np.argsort(np.where(nodes.allowed, nodes.z, np.inf), axis=1)[:, : k + 1]
    off = 4.0 * learner.locality_ * np.take_along_axis(relative, nearest, axis=1).max(axis=1)
    return cost, factor * nodes.error + (rounding + 0.5 * (off[:, None] + off[None])) * cost, terms


def prior_of(case, learner, first):
    """The prior among the nodes: of several edges of two samples it has the largest."""
    if "prior" not in case:
        return None
    W, n = np.zeros((len(points(case)),) * 2), len(points(case))
    for i, j, w in case["prior"]:
        W[i, j] = W[j, i] = w
    group = np.searchsorted(first, np.asarray(learner.copy_of_)) if first.size < n else np.arange(n)
    merged = np.zeros((first.size,) * 2)
    np.maximum.at(merged, (group[:, None], group[None]), W)
    np.fill_diagonal(merged, 0.0)
    return merged


def _judged_daitch(case, learner, W, first) -> dict:
    X, is_cosine = points(case)[first], case["parameters"].get("metric") == "cosine"
    X = judge.unit_rows(X) if is_cosine else X
    inner, mu, lam = W[np.ix_(first, first)] / learner.scale_, case["model"].get("mu"), np.asarray(learner.solution_.dual)
    scaled = X / np.abs(X - X.mean(axis=0)).max() if mu is None else X
    gap, P = judge.daitch_gap(scaled, inner, lam.astype(np.float64), mu)
    if not claims_optimum(learner) or gap <= 1e-3 or len(X) > 25 or is_float32(case):
        return {"gap of Daitch's models": gap} if claims_optimum(learner) and gap <= 1e-3 else {}
    said, tol = learner.solution_.gap, case["parameters"].get("tol", 1e-6)
    if said > tol and not is_cosine:  # then it ended because the residual was small; one of unit rows is rounding where z is
        residual = judge.daitch_residual(X, inner, lam * learner.distances_.z_unit, mu)
        if residual > 10.0 * tol * (1 + 1e-3):
            raise FaultError(f"the gap is {said:.1e} and the KKT residual {residual:.1e} with tol={tol:.0e}")
    _check_daitch_against_cvxpy(scaled, inner, mu, P, said, is_cosine)
    return {}


def _check_daitch_against_cvxpy(X, W, mu, P, said, is_cosine) -> None:
    """P is above the optimum of Clarabel by the gap that the learner says at most: a residual of 10·tol bounds no objective."""
    import cvxpy as cp

    from cvx import all_pairs, solve_daitch_model

    unit = np.abs(X - X.mean(axis=0)).max() or 1.0  # Clarabel wants numbers near 1; all rows may be the same
    i, j, _ = all_pairs(X / unit)
    try:
        best = unit**2 * solve_daitch_model((X - X.mean(axis=0)) / unit, i, j, None if mu is None else mu / unit**2)[0]
    except cp.error.SolverError:  # Clarabel gives up, and proves nothing
        return
    # Rows of length 1 are off by rounding, the learner's in another way than ours, and LX by that times the weights.
    length = np.sqrt((X**2).sum(axis=1)).max()  # of the rows, in the unit of P
    off = judge.apart_error(X.shape[1], np.finfo(np.float64).eps) * length * is_cosine
    Y_off = off * float(np.sqrt((W.sum(axis=1) ** 2).sum()))
    rounding = 2.0 * Y_off * np.sqrt(P) + Y_off**2
    if best + (1e-3 + said) * P + 1e-6 * unit**2 * len(X) + rounding < P:
        raise FaultError(f"P is {P:.6g}, CVXPY finds {best:.6g}, the learner says that the gap is {said:.1e}")


# --- second looks ----------------------------------------------------------------------------------------------------------


def _against_cvxpy(case, learner) -> dict:
    """The optimum of Clarabel is not below ours by more than the tolerance."""
    import cvxpy as cp

    from cvx import solve_l2_model, solve_log_model

    if case["model"]["name"] not in ("log", "l2") or len(learner.bridges_) or not claims_optimum(learner):
        return {}
    first = _first(case, learner, learner.graph_.toarray())
    samples = samples_of(case)
    cost, _, terms = problem_of(case, learner, first, samples)
    allowed = samples.of(first).allowed
    i, j = np.nonzero(np.triu(allowed, 1))
    if len(i) > 800 or np.where(allowed, cost, np.inf).min(axis=1).max() > 1e3:  # too many, or too far for Clarabel's digits
        return {}
    prior = None if not terms.strength else np.broadcast_to(terms.prior, cost.shape)[i, j]
    upper = None if np.isinf(terms.upper) else terms.upper
    try:
        if terms.phi == "log":
            w = solve_log_model(i, j, cost[i, j], first.size, 1.0, upper, prior, terms.strength)
        else:
            w = solve_l2_model(i, j, cost[i, j], first.size, 0.5)
    except cp.error.SolverError:  # Clarabel gives up: it says nothing, and the gap has judged already
        return {}
    if w is None:
        return {}
    theirs = np.zeros_like(cost)
    theirs[i, j] = theirs[j, i] = np.clip(w, 0.0, terms.upper)
    if terms.phi == "l2":
        theirs *= first.size / theirs.sum()
    ours = learner.graph_.toarray()[np.ix_(first, first)] / learner.scale_
    P, best = judge.objective(ours, cost, terms), judge.objective(theirs, cost, terms)
    slack = 2.0 * case["parameters"].get("tol", 1e-6) * first.size * (1.0 if terms.phi == "log" else abs(best))
    rounding = 1e-3 if is_float32(case) else CVXPY_SLACK
    if P - best > slack + rounding * (abs(best) + first.size):
        raise FaultError(f"the objective is {P:.9g}, CVXPY finds {best:.9g}")
    figures = {"objective above CVXPY's, relative": max(0.0, (P - best) / (abs(best) + first.size))}
    if case["parameters"].get("tol", 1e-6) <= 1e-6 and not is_float32(case):
        figures["ℓ1 distance to CVXPY at tol=1e-06, relative"] = float(np.abs(ours - theirs).sum() / theirs.sum())
    return figures


def _with_two_threads(case, learner) -> dict:
    other, _ = fit(case, n_jobs=2)
    same = other is not None and all(
        np.array_equal(getattr(learner.graph_, name), getattr(other.graph_, name)) for name in ("data", "indices", "indptr")
    )
    if not same:
        raise FaultError("the graph of two threads has other bits than that of one")
    return {}


def _by_another_way(case, learner, changes) -> dict:
    """Another fit at the same θ: both are within their proofs of the same optimum."""
    if case["model"]["name"] not in ("log", "l2") or not claims_optimum(learner) or learner.theta_ is None:
        return {}
    fixed = {"theta": learner.theta_, "alpha": None, "beta": None, "locality": learner.locality_, "connect": False}
    if "beta" in case["parameters"]:
        fixed["scale"] = _delta(case)
    graphs, radius = [], 0.0
    for more in ({}, changes):
        fitted, _ = fit({**case, **more.get("case", {})}, **fixed, **more.get("parameters", {}))
        if fitted is None or not claims_optimum(fitted):
            return {}
        graphs.append(fitted.graph_.toarray() / fitted.scale_)
        gap = max(fitted.solution_.gap, 0.0) * len(graphs[-1]) * judge.SLACK
        if case["model"]["name"] == "l2":
            gap *= abs(fitted.solution_.objective) * (2.0 * fitted.theta_ if fitted.theta_ else 1.0) / len(graphs[-1])
        radius += np.sqrt(gap)
    first = _first(case, learner, learner.graph_.toarray())
    samples = samples_of(case)
    _, error, _ = problem_of(case, learner, first, samples)
    inner = [graph[np.ix_(first, first)] for graph in graphs]
    support = (inner[0] > 0.0) | (inner[1] > 0.0)
    radius += np.sqrt((error[support] ** 2).sum()) + 1e-9
    apart = np.sqrt(0.5 * ((inner[0] - inner[1]) ** 2).sum())
    if apart > radius:
        raise FaultError(f"graphs by {changes} are {apart:.1e} apart, their proofs allow {radius:.1e}")
    return {}


def _other_lists(case, learner) -> dict:
    if case["form"] == "sparse":
        return {}
    return _by_another_way(case, learner, {"parameters": {"neighbors": case["lists"]}})


def _other_float(case, learner) -> dict:
    """Numbers that float32 holds exactly, as float32 and as float64."""
    if not is_float32(case):
        return {}
    return _by_another_way(case, learner, {"case": {"dtype": "float64"}})


def _by_primal_dual(case, learner) -> dict:
    """The log model over all pairs, node by node and by the scheme of the paper."""
    from smoothgraph.distances import distances_of
    from smoothgraph.edges import edges_of_all_pairs
    from smoothgraph.models import LogProblem
    from smoothgraph.parallel import Threads
    from smoothgraph.solvers import solve

    X = first_distinct(points(case))
    if case["form"] != "points" or len(X) < 3 or len(X) > 30:
        return {}
    X = (X - X.mean(axis=0)) / np.abs(X - X.mean(axis=0)).max()
    edges = edges_of_all_pairs(distances_of(X), threads=Threads(1))
    problem = LogProblem(edges, 10.0 ** case["log_theta"], max_weight=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both = [solve(problem, solver=name, tol=1e-5, n_jobs=1) for name in (None, "primal_dual")]
    if str(both[0].status) != "converged":
        raise FaultError(f"node by node ended with a gap of {both[0].gap:.1e}")
    if str(both[1].status) != "converged":
        return {}
    apart = np.sqrt(0.5 * ((both[0].weights - both[1].weights).toarray() ** 2).sum())
    radius = sum(np.sqrt(len(X) * max(one.gap, 0.0)) for one in both) + 1e-9
    if apart > radius:
        raise FaultError(f"the two solvers are {apart:.1e} apart, their gaps allow {radius:.1e}")
    return {}


def first_distinct(X) -> np.ndarray:
    return X[np.flatnonzero(first_rows(X) == np.arange(len(X)))]


def _rows_of_new(case, learner) -> dict:
    """Rows for new samples solve their own equation while the fitted λ stay."""
    if case["model"]["name"] not in ("log", "l2", "penalty") or case["form"] != "points" or not claims_optimum(learner):
        return {}
    X, metric = points(case), case["parameters"].get("metric", "euclidean")
    new = np.array(case["new"], dtype=case["dtype"]).astype(np.float64)
    if metric == "cosine" and not np.abs(new).max(axis=1).all():
        return {}
    given_new = new.astype(case["dtype"])
    rows = learner.transform(sp.csr_matrix(given_new) if case["sparse"] else given_new).toarray()
    first = _first(case, learner, learner.graph_.toarray())
    kept = case["parameters"].get("duplicates") == "keep"
    samples = judge.samples_of(np.concatenate([X, new]), metric, is_float32(case))
    _, _, terms = problem_of(case, learner, first, samples_of(case))
    n, lam, k = len(X), np.asarray(learner.solution_.dual, np.float64), case["parameters"]["n_neighbors"]
    distinct = np.flatnonzero(np.asarray(learner.copy_of_) == np.arange(n))
    length = max(int(np.ceil(case["parameters"].get("oversampling", 2) * k)), k + 1)
    own = np.ones(n)
    own[distinct] = judge.scales_of(samples.of(distinct), k, learner.locality_, length)
    own = own[learner.copy_of_][first]
    if not kept and np.any(np.delete(rows, first, axis=1) != 0.0):
        raise FaultError("a new sample has an edge to a copy")
    worst = 0.0
    for r, row in enumerate(rows):
        w, z, error = row[first] / learner.scale_, samples.z[n + r][first], samples.error[n + r][first]
        if not (np.isfinite(w).all() and (w >= 0.0).all()):
            raise FaultError("a row for a new sample has weights that are negative or not finite")
        factor = learner.theta_ * own * judge.scale_of_new(samples.z[n + r][distinct], k, learner.locality_)
        if w.sum() == 0.0 and terms.phi == "l2":
            continue
        own_lam = judge.lam_at(terms.phi, w.sum(), lam.mean())
        half, cost = 0.5 * (own_lam + lam), factor * z
        unit = np.finfo(np.float32 if is_float32(case) else np.float64).eps
        room = factor * error + 256.0 * unit * (cost + half)
        gap = float(judge.rectangle_terms(w, half, cost, room, 0.0, terms.strength, terms.upper).sum())
        worst = max(worst, gap / max(1.0, float(w.sum()) ** 2))  # weights of 10⁵ have no digits for a gap of 1
    if worst > ROW_GAP * max(1.0, float(np.max(lam)) ** -2):
        raise FaultError(f"a row for a new sample has a gap of {worst:.1e}")
    return {"gap of rows for new samples": worst}


LOOKS = {
    "cvxpy": _against_cvxpy,
    "threads": _with_two_threads,
    "lists": _other_lists,
    "float": _other_float,
    "primal-dual": _by_primal_dual,
    "new": _rows_of_new,
}
