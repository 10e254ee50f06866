"""Malformed arrays through every public function: a right answer, or a ValueError or TypeError.

A case names a call of `CALLS` and has a spec (malformed.py) for each of its arguments; usually one of them is wrong.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from torture import malformed
from torture.files import check_csr
from torture.kinds import FaultError, Outcome
from torture.malformed import N

ALLOWED = {("from_frame", "a dict"), ("plot graph", "None")}  # columns by name are a table; places may be left out
REFUSALS = (ValueError, TypeError, ImportError)  # an ImportError is that of an optional package


def case(rng: np.random.Generator) -> dict:
    name = str(rng.choice(list(CALLS)))
    roles = CALLS[name][1]
    wrong = int(rng.integers(len(roles)))
    specs = [malformed.random_spec(rng, role, is_sound=i != wrong) for i, role in enumerate(roles)]
    return {"call": name, "specs": specs}


def check(case: dict) -> Outcome:
    call = CALLS[case["call"]][0]
    arguments = [malformed.made(spec) for spec in case["specs"]]
    broken = [spec for spec in case["specs"] if malformed.must_refuse(spec) and (case["call"], spec["lie"]) not in ALLOWED]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(*arguments)
        except REFUSALS as error:
            if not str(error).strip():
                raise FaultError(f"a {type(error).__name__} that says nothing") from error
            return Outcome("refused")
    if broken:
        spec = broken[0]
        raise FaultError(f"{case['call']} takes {spec['form']} {spec['role']} with {spec['lie']!r}")
    check_result(result)
    return Outcome("answered")


def check_result(result) -> None:
    """What an answer must be, whatever was asked."""
    if hasattr(result, "graph_"):
        W = result.graph_
        check_csr(W, "graph_")
        if not np.isfinite(W.data).all() or (W.data <= 0.0).any() or (W != W.T).nnz or W.diagonal().any():
            raise FaultError("graph_ is not symmetric, positive and finite with an empty diagonal")
    elif sp.issparse(result):
        check_csr(result.tocsr(), "the result")
        if not np.isfinite(result.tocsr().data).all():
            raise FaultError("the result is not finite")
    elif hasattr(result, "coordinates"):
        if not np.isfinite(result.coordinates[result.embedded]).all():
            raise FaultError("coordinates are not finite")
    elif hasattr(result, "scores"):
        scores = result.scores[result.reached]
        if not (np.isfinite(scores).all() and scores.min(initial=0.0) >= -1e-6 and scores.max(initial=0.0) <= 1 + 1e-6):
            raise FaultError("scores are not from 0 to 1")
    elif isinstance(result, float) and not np.isfinite(result):
        raise FaultError(f"the result is {result}")


def smaller(case: dict):
    """Sound arguments where the fault does not need wrong ones."""
    for i, spec in enumerate(case["specs"]):
        if spec["lie"] != "none":
            yield case | {"specs": [{**one, "lie": "none"} if j == i else one for j, one in enumerate(case["specs"])]}
        if spec["form"] not in ("dense", "csr"):
            yield case | {"specs": [{**one, "form": "csr"} if j == i else one for j, one in enumerate(case["specs"])]}


# --- every public function -------------------------------------------------------------------------------------------------


def _learner(**parameters):
    from smoothgraph import GraphLearner

    return GraphLearner(**{"n_neighbors": 3, "n_jobs": 1, "random_state": 0, **parameters})


def _table(rng=0):
    return np.random.default_rng(rng).normal(size=(N, 3))


def _fitted(made=[]):  # noqa: B006  (fitted once)
    if not made:
        made.append(_learner().fit(_table()))
    return made[0]


class _Transformer:
    """A k-neighbours transformer that returns what it was given."""

    def __init__(self, matrix):
        self.matrix = matrix

    def fit_transform(self, X):
        return self.matrix


def _from(module, name):
    """The function, imported when it is called."""

    def call(*arguments, **more):
        from importlib import import_module

        return getattr(import_module(module), name)(*arguments, **more)

    return call


def _drawn(name, needs_learner=False):
    """A picture, which is thrown away."""

    def call(*arguments):
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        try:
            _from("smoothgraph.plots", name)(*arguments)
        finally:
            pyplot.close("all")

    return call


def _written(suffix):
    def call(W, ids, labels):
        from smoothgraph.io import read_graph, write_graph

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"graph{suffix}"
            write_graph(path, W, ids=ids, labels=labels)
            return read_graph(path).W

    return call


def _table_written(values, more):
    from smoothgraph.io import write_table

    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "table.csv", {"a": values, "b": more})


def _labels_read(ids):
    from smoothgraph.io import read_labels

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.csv"
        path.write_text("id,label\nn1,x\n")
        return read_labels(path, ids)


def _to_anndata(X, learner_of):
    import anndata

    from smoothgraph.io import to_anndata

    return to_anndata(anndata.AnnData(np.zeros((N, 2))), _learner().fit(X)) and None


def _neighbors(X, k):
    """Into an AnnData, whose own checks may refuse X first."""
    import anndata

    from smoothgraph.io import neighbors

    adata = anndata.AnnData(np.zeros((N, 2)))
    try:
        adata.obsm["X_own"] = X
    except Exception as error:
        raise ValueError("AnnData itself does not take it") from error
    neighbors(adata, k, use_rep="X_own", n_jobs=1)
    return adata.obsp["connectivities"]


def _transformer(k=3):
    from smoothgraph import NeighborsTransformer

    return NeighborsTransformer(k)


def _solved(z):
    """The problems of single nodes, one for each row."""
    from smoothgraph import solve_one_node

    rows = list(z) if getattr(z, "ndim", 1) == 2 and len(z) else [z]
    return max(float(solve_one_node(row, 1.0).lam) for row in rows)


CALLS = {
    "fit": (lambda X: _learner().fit(X), ["X"]),
    "fit l2": (lambda X: _learner(model="l2").fit(X), ["X"]),
    "fit hard": (lambda X: _learner(model="hard").fit(X), ["X"]),
    "fit knn": (lambda X: _learner(model="knn-self-tuning").fit(X), ["X"]),
    "fit cosine": (lambda X: _learner(metric="cosine").fit(X), ["X"]),
    "fit keep": (lambda X: _learner(duplicates="keep", neighbors="all").fit(X), ["X"]),
    "fit precomputed": (lambda Z: _learner(metric="precomputed").fit(Z), ["Z"]),
    "fit squared": (lambda Z: _learner(metric="precomputed_squared").fit(Z), ["Z"]),
    "fit prior": (lambda X, W: _learner(prior=W, prior_strength=1.0).fit(X), ["X", "W"]),
    "fit lists": (lambda X, z: _learner(neighbors=(z, z)).fit(X), ["X", "lists"]),
    "fit index lists": (lambda X, s: _learner(neighbors=(_index_lists(s), None)).fit(X), ["X", "scalar"]),
    "fit transformer": (lambda X, W: _learner(neighbors=_Transformer(W)).fit(X), ["X", "W"]),
    "fit n_neighbors": (lambda X, k: _learner(n_neighbors=k).fit(X), ["X", "scalar"]),
    "fit theta": (lambda X, t: _learner(theta=t).fit(X), ["X", "scalar"]),
    "fit alpha": (lambda X, a, b: _learner(alpha=a, beta=b).fit(X), ["X", "scalar", "scalar"]),
    "fit max_weight": (lambda X, m: _learner(max_weight=m).fit(X), ["X", "scalar"]),
    "fit locality": (lambda X, m: _learner(locality=m).fit(X), ["X", "scalar"]),
    "fit oversampling": (lambda X, m: _learner(oversampling=m).fit(X), ["X", "scalar"]),
    "fit scale": (lambda X, m: _learner(scale=m).fit(X), ["X", "scalar"]),
    "fit tol": (lambda X, m: _learner(tol=m, max_iter=50).fit(X), ["X", "scalar"]),
    "fit max_iter": (lambda X, m: _learner(max_iter=m).fit(X), ["X", "scalar"]),
    "fit random_state": (lambda X, m: _learner(neighbors="approximate", random_state=m).fit(X), ["X", "scalar"]),
    "fit mu": (lambda X, m: _learner(model=_from("smoothgraph.models", "Daitch")("soft", mu=m)).fit(X), ["X", "scalar"]),
    "fit projection": (
        lambda X, m: _learner(model=_from("smoothgraph.models", "Daitch")("hard", projection=m)).fit(X),
        ["X", "scalar"],
    ),
    "fit sigma": (
        lambda X, m: _learner(model=_from("smoothgraph.models", "Nearest")("gaussian", sigma=m)).fit(X),
        ["X", "scalar"],
    ),
    "fit_transform": (lambda X: _learner().fit_transform(X), ["X"]),
    "transform": (lambda X: _fitted().transform(X), ["X"]),
    "transform precomputed": (lambda Z: _fitted_matrix().transform(Z), ["Z"]),
    "NeighborsTransformer": (lambda X: _transformer().fit_transform(X), ["X"]),
    "NeighborsTransformer transform": (lambda X: _transformer().fit(_table()).transform(X), ["X"]),
    "NeighborsTransformer n": (lambda X, k: _transformer(k).fit_transform(X), ["X", "scalar"]),
    "learn_graph": (lambda X: _from("smoothgraph", "learn_graph")(X, 3, n_jobs=1), ["X"]),
    "degree_path": (lambda X, k: _from("smoothgraph", "degree_path")(X, [2, k], n_jobs=1)[-1], ["X", "scalar"]),
    "solve_one_node": (_solved, ["lists"]),
    "solve_one_node theta": (lambda t: float(_from("smoothgraph", "solve_one_node")([1.0, 2.0], t).lam), ["scalar"]),
    "theta_bounds": (lambda z, k: float(_from("smoothgraph", "theta_bounds")(z, k).lower), ["lists", "scalar"]),
    "theta_for_degree": (lambda z: _from("smoothgraph", "theta_for_degree")(z, 3), ["lists"]),
    "label_propagation": (_from("smoothgraph", "label_propagation"), ["W", "y"]),
    "label_propagation tol": (lambda W, y, t: _from("smoothgraph", "label_propagation")(W, y, tol=t), ["W", "y", "scalar"]),
    "spectral_embedding": (_from("smoothgraph", "spectral_embedding"), ["W"]),
    "spectral_embedding n": (_from("smoothgraph", "spectral_embedding"), ["W", "scalar"]),
    "diameter": (lambda W: _from("smoothgraph.uses", "diameter")(W) and None, ["W"]),
    "hops": (lambda W, node: _from("smoothgraph.uses", "hops")(W, node) is None, ["W", "scalar"]),
    "hops n": (lambda W, most: _from("smoothgraph.uses", "hops")(W, 0, most) is None, ["W", "scalar"]),
    "relative_l1": (_from("smoothgraph.uses", "relative_l1"), ["W", "W"]),
    "weight_between_classes": (
        lambda W, y: float(_from("smoothgraph.uses", "weight_between_classes")(W, y)[1].sum()),
        ["W", "y"],
    ),
    "wrong_weight": (_from("smoothgraph.uses", "wrong_weight"), ["W", "y"]),
    "to_networkx": (lambda W, ids: _from("smoothgraph.io", "to_networkx")(W, ids) and None, ["W", "ids"]),
    "to_igraph": (lambda W, ids: _from("smoothgraph.io", "to_igraph")(W, ids) and None, ["W", "ids"]),
    "to_networkit": (lambda W: _from("smoothgraph.io", "to_networkit")(W) and None, ["W"]),
    "to_pyg": (lambda W, X, y: _from("smoothgraph.io", "to_pyg")(W, X, y) and None, ["W", "X", "y"]),
    "to_pygsp": (lambda W, X: _from("smoothgraph.io", "to_pygsp")(W, X) and None, ["W", "X"]),
    "to_anndata": (_to_anndata, ["X", "scalar"]),
    "neighbors": (lambda X: _neighbors(X, 3), ["X"]),
    "neighbors n": (_neighbors, ["X", "scalar"]),
    "edge_distances": (lambda X: _from("smoothgraph.io", "edge_distances")(_learner().fit(X)), ["X"]),
    "edge_distances of": (_from("smoothgraph.io", "edge_distances"), ["W"]),
    "graph_metadata": (lambda X: _from("smoothgraph.io", "graph_metadata")(_learner().fit(X)) and None, ["X"]),
    "umap_knn": (lambda X, k: _from("smoothgraph.io", "umap_knn")(X, 3) and None, ["X", "scalar"]),
    "umap_knn n": (lambda X, k: _from("smoothgraph.io", "umap_knn")(X, k) and None, ["X", "scalar"]),
    "from_frame": (lambda X: _from("smoothgraph.io", "from_frame")(X).X is None, ["X"]),
    "read_labels": (lambda ids: _labels_read(ids) is None, ["ids"]),
    "write_table": (_table_written, ["y", "ids"]),
    "write_graph npz": (_written(".npz"), ["W", "ids", "y"]),
    "write_graph csv": (_written(".csv"), ["W", "ids", "y"]),
    "write_graph parquet": (_written(".parquet"), ["W", "ids", "y"]),
    "write_graph graphml": (_written(".graphml"), ["W", "ids", "y"]),
    "write_graph h5ad": (_written(".h5ad"), ["W", "ids", "y"]),
    "plot graph": (_drawn("graph"), ["W", "X", "y"]),
    "plot graph embedded": (lambda W, y: _drawn("graph")(W, None, y), ["W", "y"]),
    "plot neighbor_counts": (_drawn("neighbor_counts"), ["W"]),
    "plot weights": (_drawn("weights"), ["W"]),
    "plot class_connectivity": (_drawn("class_connectivity"), ["W", "y"]),
    "plot neighborhood": (_drawn("neighborhood"), ["W", "scalar"]),
    "plot overview": (_drawn("overview"), ["W", "y"]),
    "plot theta_bounds": (lambda X: _drawn("theta_bounds")(_learner(locality=0.0, connect=False).fit(X)), ["X"]),
    "plot convergence": (lambda X: _drawn("convergence")(_learner(locality=0.0, connect=False).fit(X)), ["X"]),
    "model_of": (lambda name: _from("smoothgraph.models", "model_of")(name) and None, ["scalar"]),
}


def _index_lists(value):
    """Lists of neighbours, one of which is the value."""
    lists = np.arange(N)[:, None] + np.arange(1, 6)
    lists = (lists % N).tolist()
    lists[2][1] = value
    return np.array(lists) if not isinstance(value, list | str) and value is not None else lists


def _fitted_matrix(made=[]):  # noqa: B006  (fitted once)
    if not made:
        X = _table()
        made.append(_learner(metric="precomputed").fit(((X[:, None] - X[None]) ** 2).sum(axis=2)))
    return made[0]
