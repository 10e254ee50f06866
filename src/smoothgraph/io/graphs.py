"""Graphs ↔ files.

In and out: a symmetric scipy CSR matrix, the ids and labels of its nodes if there are any, and metadata (how it was learned), a
dict of plain values that JSON can hold. The end of a file's name says its kind:

- npz: what `scipy.sparse.load_npz` reads, with `ids`, `labels` and `metadata` (JSON) as further arrays.
- parquet, csv: one row per edge: source, target (node numbers, source < target), weight; with ids, source_id and target_id. A
  node without edges has a row with itself as target and weight 0, so that no node is lost. Parquet has n and the metadata in
  its schema; csv has no place for metadata.
- graphml: nodes named by their ids, an edge attribute `weight`, a node attribute `label`, the metadata as JSON.
- h5ad: an AnnData with the graph where scanpy keeps it, and the ids and labels in obs (see h5ad.py).

A file is written under another name and then renamed: it is complete, or it is not there.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import smoothgraph
from smoothgraph.files import existing, replacing, suffix
from smoothgraph.io.exports import to_networkx
from smoothgraph.io.h5ad import read_h5ad_graph, write_h5ad_graph
from smoothgraph.io.tables import plain
from smoothgraph.optional import need
from smoothgraph.symmetry import check_symmetric
from smoothgraph.uses.graphs import one_per_node

EXTRA = "smoothgraph[io]"


class StoredGraph(NamedTuple):
    """A graph W, the ids and labels of its nodes (None if it has none), and its metadata."""

    W: sp.csr_matrix
    ids: np.ndarray | None
    labels: np.ndarray | None
    metadata: dict[str, Any]


def graph_metadata(learner) -> dict[str, Any]:
    """How a fitted learner got its graph, in plain values: version, parameters, θ, gap, recall, certified nodes, seconds.

    "parameters" are those of the learner, with the model by its name. "model_parameters" are those in which the model differs
    from the defaults: `smoothgraph.models.model_of(parameters["model"], **model_parameters)` makes it again.
    """
    model, model_parameters = _model_as_data(learner.model)
    parameters = learner.get_params(deep=False) | {"model": model}
    facts = {
        "smoothgraph": smoothgraph.__version__,
        "parameters": {name: _plain_value(value) for name, value in parameters.items() if name != "verbose"},
        "model_parameters": model_parameters,
        "n": learner.graph_.shape[0],
        "n_distinct": int(np.unique(learner.copy_of_).size),
        "locality": float(learner.locality_),
        "connect": bool(learner.connect_),
        "n_edges": learner.graph_.nnz // 2,
        "n_neighbors": float(learner.n_neighbors_),
        "n_components": int(learner.n_components_),
        "n_isolated": int(learner.n_isolated_),
        "neighbors": learner.neighbors_,
        "recall": float(learner.recall_),
        "scale": float(learner.scale_),
        "seconds": {stage: round(seconds, 4) for stage, seconds in learner.seconds_.items()},
    }
    if learner.solution_ is None:  # a nearest-neighbour graph: nothing was learned
        return facts
    bounds = learner.theta_bounds_
    return facts | {
        "theta": None if learner.theta_ is None else float(learner.theta_),
        "theta_bounds": None if bounds is None else [float(bounds.lower), float(bounds.upper)],
        "gap": float(learner.solution_.gap),
        "status": str(learner.solution_.status),
        "n_iter": int(learner.n_iter_),
        "n_incomplete": int(learner.n_incomplete_),
        "n_bridges": 0 if learner.bridges_ is None else len(learner.bridges_),
    }


def _model_as_data(model) -> tuple[str, dict[str, Any]]:
    """(name, parameters that differ from the defaults of the model with this name)."""
    from smoothgraph.models import model_of

    if isinstance(model, str):
        return model, {}
    try:
        defaults = model_of(model.name).get_params(deep=False)
    except ValueError:  # the name of a user's own model is no shorthand: all its parameters are written
        defaults = {}
    own = model.get_params(deep=False)
    return model.name, {
        name: _plain_value(value) for name, value in own.items() if name not in defaults or value != defaults[name]
    }


def _plain_value(value):
    """A value as JSON holds it; matrices and objects in words."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {value.shape}"
    return type(value).__name__


def write_graph(path, W, *, ids=None, labels=None, metadata: dict[str, Any] | None = None) -> None:
    """Write the graph W to a file: .npz, .parquet, .csv, .graphml or .h5ad.

    Parameters
    ----------
    W : symmetric sparse matrix.
    ids, labels : one for each node, integers or text. Edge lists (parquet, csv) have no place for labels.
    metadata : a dict of plain values, such as `graph_metadata(learner)`.

    Examples
    --------
    >>> import tempfile, pathlib, scipy.sparse as sp
    >>> from smoothgraph.io import read_graph, write_graph
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.npz"
    >>> write_graph(path, sp.csr_matrix([[0, 0.5], [0.5, 0]]), ids=["a", "b"], metadata={"theta": 2.0})
    >>> stored = read_graph(path)
    >>> stored.ids.tolist(), stored.metadata, sp.load_npz(path).nnz
    (['a', 'b'], {'theta': 2.0}, 2)
    """
    path = Path(path)
    W = _checked(W)
    ids, labels = (
        None if values is None else plain(one_per_node(name, values, W.shape[0]))
        for name, values in (("ids", ids), ("labels", labels))
    )
    write = _writer(path)
    with replacing(path) as unfinished:
        write(unfinished, StoredGraph(W, ids, labels, dict(metadata or {})))


def check_graph_path(path) -> None:
    """Raise the error that `write_graph` would end in for this path; to be called before an hour of work is done."""
    _writer(Path(path))
    if not Path(path).parent.is_dir() or not os.access(Path(path).parent, os.W_OK):
        raise FileNotFoundError(f"{Path(path).parent} is no folder that can be written to: make it, or name another.")


def read_graph(path) -> StoredGraph:
    """Read a graph: a file of `write_graph`, a scipy .npz, an .mtx, an edge list, GraphML, or an h5ad with connectivities.

    An edge list from elsewhere has columns source and target (node numbers from 0 on, or names), and may have a column weight.
    """
    path = existing(path)
    kind = suffix(path)
    if kind not in READERS:
        raise ValueError(f"{path} is not of a kind that holds a graph: use {_listed(READERS)}.")
    stored = READERS[kind](path)
    W = stored.W
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"{path} holds a matrix of shape {W.shape}: a graph is square. Is it a table of samples?")
    W.sort_indices()
    return stored._replace(W=W)


def _writer(path):
    kind = path.suffix.lower()
    if kind not in WRITERS:
        raise ValueError(f"{path} does not say in which format to write the graph: end its name in {_listed(WRITERS)}.")
    return WRITERS[kind]


def _listed(kinds):
    *first, last = sorted(kinds)
    return f"{', '.join(first)} or {last}"


def _checked(W):
    """W as CSR, square and symmetric, without stored zeros."""
    W = sp.csr_matrix(W)
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"W has shape {W.shape}: a graph is a square matrix.")
    if not W.has_canonical_format or (W.data == 0).any():
        W = W.copy()
        W.sum_duplicates()
        W.eliminate_zeros()
    check_symmetric(W, "W", "An undirected graph has each edge at both of its ends: use W.maximum(W.T).")
    return W


# --- npz -------------------------------------------------------------------------------------------------------------------


def _write_npz(path, graph):
    W = graph.W
    arrays = {"format": b"csr", "shape": W.shape, "data": W.data, "indices": W.indices, "indptr": W.indptr}
    more = {"ids": graph.ids, "labels": graph.labels, "metadata": json.dumps(graph.metadata)}
    np.savez(path, **arrays, **{name: value for name, value in more.items() if value is not None})


def _read_npz(path):
    with np.load(path) as arrays:
        if not {"format", "shape", "data"} <= set(arrays.files):
            raise ValueError(f"{path} holds no sparse matrix of scipy: it has the arrays {', '.join(arrays.files)}.")
        ids, labels = (arrays[name] if name in arrays.files else None for name in ("ids", "labels"))
        metadata = json.loads(str(arrays["metadata"])) if "metadata" in arrays.files else {}
    return StoredGraph(sp.csr_matrix(sp.load_npz(path)), ids, labels, metadata)


def _read_mtx(path):
    from scipy.io import mmread

    return StoredGraph(sp.csr_matrix(mmread(path)), None, None, {})


# --- edge lists ------------------------------------------------------------------------------------------------------------


def _edge_table(graph):
    pa = need("pyarrow", EXTRA)
    edges = sp.triu(graph.W, k=0).tocsr().tocoo()  # csr puts the edges in the order of their rows
    alone = np.flatnonzero(np.diff(graph.W.indptr) == 0)
    source, target = (np.concatenate([ends, alone]) for ends in (edges.row, edges.col))
    columns = {"source": source, "target": target, "weight": np.concatenate([edges.data, np.zeros(alone.size)])}
    if graph.ids is not None:
        columns |= {"source_id": graph.ids[source], "target_id": graph.ids[target]}
    return pa.table(columns)


def _write_parquet(path, graph):
    table = _edge_table(graph)
    described = {"n": str(graph.W.shape[0]), "smoothgraph": json.dumps(graph.metadata)}
    need("pyarrow.parquet", EXTRA).write_table(table.replace_schema_metadata(described), path)


def _read_parquet(path):
    table = need("pyarrow.parquet", EXTRA).read_table(path)
    described = table.schema.metadata or {}
    n = int(described[b"n"]) if b"n" in described else None
    return _from_edges(path, table, n)._replace(metadata=json.loads(described.get(b"smoothgraph", b"{}")))


def _write_csv(path, graph):
    need("pyarrow.csv", EXTRA).write_csv(_edge_table(graph), path)


def _read_csv(path):
    pa, csv = need("pyarrow", EXTRA), need("pyarrow.csv", EXTRA)
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t" if suffix(path) == ".tsv" else ","))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    return _from_edges(path, table, None)


def _from_edges(path, table, n):
    """A graph from rows (source, target, weight); an edge may have one row, or one for each direction."""
    if not {"source", "target"} <= set(table.column_names):
        raise ValueError(f"{path} is no edge list: it needs the columns source and target, but has {table.column_names}.")
    source, target = table["source"].to_numpy(), table["target"].to_numpy()
    weight = table["weight"].to_numpy().astype(np.float64) if "weight" in table.column_names else np.ones(len(source))
    ids = None
    if source.dtype.kind not in "iu":
        ids, numbers = np.unique(np.concatenate([source, target]).astype(str), return_inverse=True)
        source, target = np.split(numbers, 2)
    elif source.size and min(source.min(), target.min()) < 0:
        raise ValueError(f"{path} has negative node numbers: the first node is 0.")
    if n is None:
        n = 1 + max(source.max(initial=-1), target.max(initial=-1))
    if "source_id" in table.column_names:
        source_id, target_id = (plain(table[name].to_numpy()) for name in ("source_id", "target_id"))
        ids = np.empty(n, np.result_type(source_id, target_id))
        ids[source], ids[target] = source_id, target_id
    W = sp.csr_matrix((weight, (source, target)), shape=(n, n))
    W.eliminate_zeros()
    return StoredGraph(sp.csr_matrix(W.maximum(W.T)), ids, None, {})


# --- GraphML and h5ad ------------------------------------------------------------------------------------------------------


def _write_graphml(path, graph):
    G = to_networkx(graph.W, ids=graph.ids)
    kind = "none" if graph.ids is None else graph.ids.dtype.kind
    G.graph["smoothgraph"] = json.dumps({"ids": kind, "metadata": graph.metadata})
    if graph.labels is not None:
        for node, label in zip(G, graph.labels.tolist(), strict=True):
            G.nodes[node]["label"] = label
    need("networkx", EXTRA).write_graphml(G, path)


def _read_graphml(path):
    networkx = need("networkx", EXTRA)
    G = networkx.read_graphml(path)
    described = json.loads(G.graph.get("smoothgraph", "{}"))
    kind = described.get("ids", "U")
    ids = None if kind == "none" else np.array(list(G), dtype=np.int64 if kind == "i" else str)
    labels = [label for _, label in G.nodes(data="label")]
    W = sp.csr_matrix(networkx.to_scipy_sparse_array(G, dtype=np.float64))
    has_labels = bool(labels) and all(label is not None for label in labels)
    return StoredGraph(W.maximum(W.T), ids, plain(labels) if has_labels else None, described.get("metadata", {}))


def _write_h5ad(path, graph):
    write_h5ad_graph(path, graph.W, graph.ids, graph.labels, graph.metadata)


def _read_h5ad(path):
    W, ids, labels, metadata = read_h5ad_graph(path)
    return StoredGraph(W, ids, None if labels is None else plain(labels), metadata)


WRITERS = {
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".graphml": _write_graphml,
    ".h5ad": _write_h5ad,
}
READERS = {
    ".npz": _read_npz,
    ".mtx": _read_mtx,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".graphml": _read_graphml,
    ".h5ad": _read_h5ad,
}
