"""What several experiments need: data, labels, graphs, and how well labels spread on them."""

import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from smoothgraph import datasets, degree_path, label_propagation
from smoothgraph.distances import distances_of
from smoothgraph.models import Daitch
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads
from smoothgraph.uses import wrong_weight

CACHE = Path(__file__).parent / ".cache"
COLOURS = {
    "k-NN": "tab:gray",
    "k-NN, best σ": "tab:gray",
    "A-NN": "tab:brown",
    "k-NN, self-tuning": "tab:olive",
    "UMAP": "tab:pink",
    "ℓ2": "tab:orange",
    "log": "tab:blue",
    "log, joined": "tab:cyan",
    "log, joined, locality ¾": "tab:purple",
    "hard": "tab:red",
    "soft": "tab:green",
}

# The paper's own graph: one θ for all nodes, no bridges, and copies as the model has them.
PAPER = {"locality": 0.0, "connect": False, "duplicates": "keep"}
# The models of Daitch, made as cheap as the paper made them: on the lists, on 20 random projections.
FEW = {"complete": False, "random_state": 0, "tol": 1e-3, "max_iter": 100}
PROJECTED = {kind: Daitch(kind, projection=20) for kind in ("hard", "soft")}


class Claim(NamedTuple):
    """A claim of the paper: what it says, the paper's figure, ours, whether it held, and a remark."""

    claim: str
    paper: str
    ours: str
    held: bool
    remark: str = ""


def images(name: str, n: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(X, y) of a labelled data set, float32 with images in [0, 1]; n of its samples drawn at random."""
    data = getattr(datasets, name)()
    rows = slice(None) if n is None or n >= len(data.X) else np.sort(np.random.default_rng(seed).permutation(len(data.X))[:n])
    X = data.X[rows]
    return (X.astype(np.float32) / 255.0 if X.dtype == np.uint8 else X.astype(np.float32)), np.unique(
        data.y[rows], return_inverse=True
    )[1]


def spherical(side: int, n_maps: int = 40, nside: int = 1024) -> np.ndarray:
    """Simulated maps, a node per row; kept in a file, since simulating takes minutes. The corner of a larger patch will do."""
    for kept in sorted(CACHE.glob(f"spherical-*-{n_maps}-{nside}.npy"), key=lambda path: path.stat().st_size):
        whole = int(kept.name.split("-")[1])
        if whole >= side:
            X = np.load(kept, mmap_mode="r").reshape(whole, whole, -1)
            return np.ascontiguousarray(X[:side, :side].reshape(side * side, -1))
    CACHE.mkdir(exist_ok=True)
    X = datasets.spherical_maps(side, n_maps=n_maps, nside=nside).X
    np.save(CACHE / f"spherical-{side}-{n_maps}-{nside}.npy", X)
    return X


def search(X, k):
    """Neighbour lists without the sample itself."""
    return find_neighbors(distances_of(X), min(k, len(X) - 1), random_state=0, threads=Threads()).by_rows()


def nearest(X, k):
    """(indices, distances) from one search that many graphs share."""
    lists = search(X, k)
    return lists.indices, np.sqrt(lists.distances)


def graphs(X, model, degrees, **parameters):
    """[(mean degree, graph)] of one model over several densities, as in the paper where the parameters do not say otherwise."""
    return [(learner.n_neighbors_, learner.graph_) for learner in degree_path(X, degrees, model=model, **PAPER | parameters)]


def kept(name: str, work, *parameters):
    """What `work(*parameters)` returns; kept in a file until the experiment is done, so that a stopped run goes on."""
    path = CACHE / f"{name}.json"
    if path.exists() and (record := json.loads(path.read_text(encoding="utf-8")))["parameters"] == list(parameters):
        return record["value"]
    value = work(*parameters)
    CACHE.mkdir(exist_ok=True)
    path.write_text(json.dumps({"parameters": parameters, "value": value}), encoding="utf-8")
    return value


def core_seconds(work):
    """(seconds of all cores together, result) of a function: what else the machine does counts little."""
    with threadpool_limits(limits=1):
        start = time.process_time()
        result = work()
        return time.process_time() - start, result


def fuzzy_set(X, k):
    """UMAP's graph: its fuzzy set of the k nearest neighbours, the sample itself counted as the first as UMAP does."""
    from umap.umap_ import fuzzy_simplicial_set

    near, distances = nearest(X, k - 1)
    itself = np.arange(len(X))[:, None]
    near, distances = np.hstack([itself, near]), np.hstack([np.zeros((len(X), 1)), distances]).astype(np.float32)
    state = np.random.RandomState(0)  # UMAP takes one; with lists given it draws nothing
    return fuzzy_simplicial_set(X, k, state, "euclidean", knn_indices=near, knn_dists=distances)[0].tocsr()


def label_draws(y, share, n_draws, seed=0):
    """Labels of a share of the samples, −1 elsewhere; every class has one at least."""
    rng = np.random.default_rng(seed)
    for _ in range(n_draws):
        order = rng.permutation(y.size)
        first = order[np.unique(y[order], return_index=True)[1]]
        rest = order[~np.isin(order, first)]
        shown = np.concatenate([first, rest[: max(0, round(share * y.size) - first.size)]])
        given = np.full(y.size, -1)
        given[shown] = y[shown]
        yield given


def spread(W, y, share, n_draws):
    """Percent of unlabelled nodes that get a wrong label or none, and that no label reaches: mean and deviation over draws."""
    errors, unreached = [], []
    for given in label_draws(y, share, n_draws):
        found, asked = label_propagation(W, given), given == -1
        errors.append(100.0 * np.mean(found.labels[asked] != y[asked]))
        unreached.append(100.0 * np.mean(~found.reached[asked]))
    return {
        "error": float(np.mean(errors)),
        "deviation": float(np.std(errors, ddof=1)) if n_draws > 1 else 0.0,
        "unreached": float(np.mean(unreached)),
    }


def quality(W, degree, y, share, n_draws):
    """A point of a curve: degree, wrong weight, isolated nodes, and how labels spread."""
    isolated = int(np.count_nonzero(np.diff(W.indptr) == 0))
    return {"degree": degree, "wrong": 100.0 * wrong_weight(W, y), "isolated": isolated, **spread(W, y, share, n_draws)}


def best_width(curves):
    """Of the curves of one graph with several widths, the point of least error at each density."""
    return [min(points, key=lambda point: point["error"]) for points in zip(*curves, strict=True)]
