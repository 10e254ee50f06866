"""Graphs ↔ files.

In and out: a symmetric scipy CSR matrix, the ids and labels of its nodes if there are any, and metadata (how it was learned), a
dict of plain values that JSON can hold. The end of a file's name says its kind, and each kind has its module: npz, edge_lists
(csv and parquet), graphml, matrix_market (mtx, only read), h5ad. `stored` has the checks that all graphs pass, in both
directions.

A file is written under another name and then renamed: it is whole, or it is not there.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import smoothgraph
from smoothgraph.files import check_target, existing, replacing, suffix
from smoothgraph.io.door import MAX_METADATA, BadFileError, reading
from smoothgraph.io.edge_lists import read_csv, read_parquet, write_csv, write_parquet
from smoothgraph.io.graphml import read_graphml, write_graphml
from smoothgraph.io.h5ad import read_h5ad_graph, write_h5ad_graph
from smoothgraph.io.matrix_market import read_matrix_market
from smoothgraph.io.npz import read_npz, write_npz
from smoothgraph.io.stored import StoredGraph, checked_graph
from smoothgraph.messages import printable


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
        "proven": bool(learner.proven_),
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
    write = _writer(path)
    graph = checked_graph(StoredGraph(W, ids, labels, dict(metadata or {})))
    if len(json.dumps(graph.metadata)) > MAX_METADATA:
        raise ValueError(f"metadata has more than {MAX_METADATA:,} characters, which no file holds: leave the large parts out.")
    with replacing(path) as unfinished:
        write(unfinished, graph)


def check_graph_path(path) -> None:
    """Raise the error that `write_graph` would end in for this path; to be called before an hour of work is done."""
    _writer(Path(path))
    check_target(path)


def read_graph(path, *, max_memory: float | None = None) -> StoredGraph:
    """Read a graph: a file of `write_graph`, a scipy .npz, an .mtx, an edge list, GraphML, or an h5ad with connectivities.

    An edge list from elsewhere has columns source and target (node numbers from 0 on, or names), and may have a column weight.
    Whatever the file holds, the result is a graph: symmetric, with finite weights > 0, ids that differ, and one id and label
    for each node. A file that holds anything else ends in a ValueError of one line. A matrix (npz, mtx, h5ad) must be
    symmetric; an edge of an edge list may have one row, or one for each direction with the same weight.

    Parameters
    ----------
    path : the file; csv, tsv, mtx and graphml may be compressed (.gz, .bz2).
    max_memory : bytes that reading may take, by default all that there are. A file that needs more is refused.
    """
    path = existing(path)
    kind = suffix(path)
    if kind not in READERS:
        raise ValueError(f"{printable(str(path))} is not of a kind that holds a graph: use {_listed(READERS)}.")
    with reading(path, f"a graph of kind {kind}"):
        stored = READERS[kind](path, max_memory)
        try:
            return checked_graph(stored, printable(str(path)))
        except ValueError as error:
            raise BadFileError(str(error)) from None


def _writer(path):
    kind = path.suffix.lower()
    if kind not in WRITERS:
        raise ValueError(f"{path} does not say in which format to write the graph: end its name in {_listed(WRITERS)}.")
    return WRITERS[kind]


def _listed(kinds):
    *first, last = sorted(kinds)
    return f"{', '.join(first)} or {last}"


WRITERS: dict[str, Callable[[Path, StoredGraph], None]] = {
    ".npz": write_npz,
    ".parquet": write_parquet,
    ".csv": write_csv,
    ".graphml": write_graphml,
    ".h5ad": lambda path, graph: write_h5ad_graph(path, *graph),
}
READERS: dict[str, Callable[[Path, float | None], StoredGraph]] = {  # (path, limit of memory in bytes)
    ".npz": read_npz,
    ".mtx": lambda path, limit: StoredGraph(read_matrix_market(path, limit), None, None, {}),
    ".parquet": read_parquet,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".graphml": read_graphml,
    ".h5ad": lambda path, limit: StoredGraph(*read_h5ad_graph(path, limit)),
}
