"""Random problems as data: numbers, parameters, a second look. Nothing is fitted here."""

from typing import Any

import numpy as np
import scipy.sparse as sp

SHAPES = "normal", "blobs", "integers", "one-hot", "line", "lognormal", "uniform"
LOOKS = "cvxpy", "threads", "lists", "float", "primal-dual", "new", "none"
LOOK_SHARES = 0.1, 0.1, 0.15, 0.15, 0.1, 0.3, 0.1
MATRICES = "precomputed", "precomputed_squared"  # metrics that take a matrix: of distances, of their squares


def random_case(rng: np.random.Generator) -> dict:
    """A problem of 3 to 60 samples."""
    n, d = int(np.exp(rng.uniform(np.log(3), np.log(61)))), int(rng.integers(1, 9))
    model = _model(rng)
    dtype = "float32" if rng.random() < 0.35 else "float64"
    X = _samples(rng, n, d).astype(dtype).astype(np.float64)
    d = X.shape[1]
    form = "points" if model["name"] in ("hard", "soft") or rng.random() < 0.8 else str(rng.choice(["dense", "sparse"]))
    if form == "sparse" and model["name"].startswith("knn"):
        form = "dense"
    case: dict[str, Any] = {
        "model": model,
        "dtype": dtype,
        "form": form,
        "sparse": bool(form == "points" and rng.random() < 0.12),
        "also": str(rng.choice(LOOKS, p=LOOK_SHARES)),
        "log_theta": float(rng.uniform(-1, 1.5)),
        "lists": str(rng.choice(["exact", "approximate", "all"])),
    }
    spread = _median_distance(X)
    if form == "points":
        near = X[rng.integers(n, size=3)] + rng.normal(size=(3, d)) * np.sqrt(spread / d) * rng.choice(
            [0.0, 0.3, 3.0], size=(3, 1)
        )
        case["new"] = near.astype(dtype).astype(np.float64).tolist()
        case["X"] = X.tolist()
    case["parameters"] = _parameters(rng, n, spread, model, case)
    if form != "points":
        case["X"] = _matrix(rng, X, dtype, form, case["parameters"]["metric"])
    if case["parameters"].get("prior_strength"):
        case["prior"] = _prior(rng, n, case)
    if model["name"] == "soft":
        model["mu"] = float(spread * 10.0 ** rng.uniform(-1, 2))
    return case


def _model(rng) -> dict:
    name = str(rng.choice(["log", "l2", "hard", "soft", "penalty", "knn"], p=[0.6, 0.14, 0.05, 0.05, 0.06, 0.1]))
    if name != "knn":
        return {"name": name}
    options = {"name": "knn", "weighting": str(rng.choice(["binary", "gaussian", "self-tuning"]))}
    return options | ({"mutual": True} if rng.random() < 0.3 else {})


def _samples(rng, n, d) -> np.ndarray:
    shape = str(rng.choice(SHAPES))
    X = {
        "normal": lambda: rng.normal(size=(n, d)),
        "blobs": lambda: (
            5.0 * rng.normal(size=(3, d))[rng.integers(3, size=n)] + rng.normal(size=(n, d)) * rng.choice([0.1, 1.0], (n, 1))
        ),
        "integers": lambda: rng.integers(0, 4, size=(n, d)).astype(float),
        "one-hot": lambda: np.eye(d + 1)[rng.integers(d + 1, size=n)] + (rng.random((n, d + 1)) < 0.1),
        "line": lambda: np.linspace(0.0, 1.0, n)[:, None] * rng.normal(size=(1, d)),
        "lognormal": lambda: np.exp(rng.uniform(0.5, 3.0) * rng.normal(size=(n, d))),
        "uniform": lambda: rng.random((n, d)),
    }[shape]()
    if rng.random() < 0.3:
        copies = rng.integers(n, size=(2, int(rng.integers(1, 1 + n // 2))))
        X[copies[0]] = X[copies[1]]
    if rng.random() < 0.15:
        X[rng.integers(n)] *= 10.0 ** rng.uniform(1, 6)
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 3)
    return X * (10.0 ** rng.uniform(-8, 8) if rng.random() < 0.6 else 1.0)


def _median_distance(X) -> float:
    z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return float(np.median(z[z > 0.0])) if (z > 0.0).any() else 1.0


def _matrix(rng, X, dtype, form, metric) -> list:
    """Distances, squared if the metric says so; None where no edge is allowed."""
    z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    z = (np.sqrt(z) if metric == "precomputed" else z).astype(dtype).astype(np.float64)
    z = np.maximum(z, z.T)
    if form == "dense":
        return z.tolist()
    n = len(X)
    keep = rng.random((n, n)) < rng.uniform(0.3, 1.0)
    keep[np.arange(n), (np.arange(n) + 1) % n] = True  # every node has an allowed edge
    keep |= keep.T
    keep &= ~np.eye(n, dtype=bool)
    return [
        [value if there else None for value, there in zip(*both, strict=True)] for both in zip(z.tolist(), keep, strict=True)
    ]


def _parameters(rng, n, spread, model, case) -> dict:
    """Parameters that may be combined."""
    name, own = model["name"], {"n_neighbors": int(rng.integers(1, max(2, min(n - 1, 16))))}
    if case["form"] != "points":
        own["metric"] = str(rng.choice(MATRICES))
    elif rng.random() < 0.15:
        own["metric"] = "cosine"
    if rng.random() < 0.3:
        own["duplicates"] = "keep"
    if name != "knn" and rng.random() < 0.2:
        own["tol"] = float(rng.choice([1e-3, 1e-4, 1e-8]))
    if case["form"] == "points" and rng.random() < 0.25:
        own["neighbors"] = str(rng.choice(["exact", "approximate"] + ["all"] * (name != "knn")))
    if name != "knn" and rng.random() < 0.1:
        own["oversampling"] = float(rng.choice([1.0, 1.5, 3.0]))
    if rng.random() < 0.15:
        own["scale"] = [2.5, 1e-3, "sum", "laplacian"][rng.integers(4)]
    if name in ("log", "l2", "penalty"):
        _theta_parameters(rng, spread, name, own, case)
    if name == "log":
        _log_parameters(rng, own)
    return own


def _theta_parameters(rng, spread, name, own, case) -> None:
    if case["form"] != "sparse" and rng.random() < 0.5:
        own["locality"] = float(rng.choice([0.0, 0.5, 1.0]))
    if rng.random() < 0.3:
        own["connect"] = bool(rng.random() < 0.5)
    spread = 1.0 if own.get("metric") == "cosine" else spread
    theta = float(10.0 ** rng.uniform(-1.5, 2.5) / spread)
    way = rng.random()
    if way < 0.15:
        own["theta"] = theta
    elif way < 0.3 and name == "log" and "scale" not in own:
        ratio = float(10.0 ** rng.uniform(-2, 2))
        own["alpha"], own["beta"] = ratio / theta, 1.0 / (ratio * theta)
    elif way < 0.3 and name == "l2":
        own["alpha"] = 0.5 / theta


def _log_parameters(rng, own) -> None:
    if rng.random() < 0.15 and not isinstance(own.get("scale"), str):
        delta = np.sqrt(own["alpha"] / own["beta"]) if "beta" in own else own.get("scale", 1.0)
        own["max_weight"] = float(delta * 10.0 ** rng.uniform(-1.5, 0.3))
    if rng.random() < 0.15:
        own["prior_strength"] = float(10.0 ** rng.uniform(-2, 2))
        if own.get("duplicates") == "keep":
            own["locality"] = 0.0  # rows that are copies have no definite scale of their own


def _prior(rng, n, case) -> list:
    own = case["parameters"]
    delta = np.sqrt(own["alpha"] / own["beta"]) if "beta" in own else own.get("scale", 1.0)
    delta = 1.0 if isinstance(delta, str) else float(delta)
    pairs = [(i, j) for i in range(n) for j in range(i) if case["form"] != "sparse" or case["X"][i][j] is not None]
    chosen = rng.permutation(len(pairs))[: int(rng.integers(1, n + 1))]
    return [[*pairs[e], float(delta * rng.uniform(0.01, 1.0))] for e in chosen]


# --- a case as the learner takes it ----------------------------------------------------------------------------------------


def points(case) -> np.ndarray:
    """The numbers of a case in float64; NaN where no edge is allowed."""
    return np.array(case["X"], dtype=np.float64)


def is_float32(case) -> bool:
    return case["dtype"] == "float32"


def given(case):
    """(X, parameters) for a GraphLearner."""
    X, parameters = points(case).astype(case["dtype"]), dict(case["parameters"])
    if case["form"] == "sparse":
        i, j = np.nonzero(~np.isnan(X))
        X = sp.csr_matrix((X[i, j], (i, j)), shape=X.shape)
    elif case["sparse"]:
        X = sp.csr_matrix(X)
    if "prior" in case:
        i, j, w = np.array(case["prior"], dtype=float).reshape(-1, 3).T
        n = X.shape[0]
        prior = sp.csr_matrix((w, (i.astype(int), j.astype(int))), shape=(n, n))
        parameters["prior"] = prior + prior.T
    return X, parameters | {"model": model_of(case["model"])}


def model_of(options: dict):
    from smoothgraph.models import Daitch, Nearest

    own = {name: value for name, value in options.items() if name != "name"}
    if options["name"] == "knn":
        return Nearest(own.pop("weighting"), **own)
    if options["name"] in ("hard", "soft"):
        return Daitch(options["name"], **own)
    return _penalty() if options["name"] == "penalty" else options["name"]


def _penalty(made=[]):  # noqa: B006  (compiled once)
    """−log d + d²: it costs something to be a hub."""
    from numba import njit

    from smoothgraph.models import Penalty

    if not made:

        @njit
        def phi(d):
            return -np.log(d) + d**2 if d > 0.0 else np.inf

        @njit
        def degree(lam):
            root = np.sqrt(lam**2 + 8.0)  # written in two ways, since a difference of nearly equal numbers has no digits
            return 2.0 / (root + lam) if lam > 0.0 else 0.25 * (root - lam)

        made.append(Penalty(phi, degree))
    return made[0]


# --- smaller cases ---------------------------------------------------------------------------------------------------------


def smaller(case):
    """Cases with fewer rows, columns and options."""
    n = len(case["X"])
    for size in (n // 2, n // 4, n // 8, 1):
        if size:
            for begin in range(0, n, size):
                yield from _without_rows(case, range(begin, min(begin + size, n)))
    if case["form"] == "points":
        for column in range(len(case["X"][0]) * (len(case["X"][0]) > 1)):
            cut = {name: [row[:column] + row[column + 1 :] for row in case[name]] for name in ("X", "new")}
            yield case | cut
    for name in case["parameters"]:
        if name not in ("n_neighbors", "metric", "alpha", "beta", "prior_strength"):
            yield case | {"parameters": {key: value for key, value in case["parameters"].items() if key != name}}
    if case["sparse"]:
        yield case | {"sparse": False}
    if case["also"] != "none":
        yield case | {"also": "none"}
    for digits in (1, 2, 4):
        rounded = [[None if x is None else float(f"{x:.{digits}g}") for x in row] for row in case["X"]]
        if rounded != case["X"] and case["dtype"] == "float64":
            yield case | {"X": rounded}


def _without_rows(case, rows):
    keep = [i for i in range(len(case["X"])) if i not in rows]
    if len(keep) < 3:
        return
    X = [case["X"][i] for i in keep]
    if case["form"] != "points":
        X = [[row[i] for i in keep] for row in X]
    fewer = case | {"X": X, "parameters": dict(case["parameters"])}
    fewer["parameters"]["n_neighbors"] = min(case["parameters"]["n_neighbors"], len(keep) - 1)
    if "prior" in case:
        place = {old: new for new, old in enumerate(keep)}
        fewer["prior"] = [[place[i], place[j], w] for i, j, w in case["prior"] if i in place and j in place]
    yield fewer
