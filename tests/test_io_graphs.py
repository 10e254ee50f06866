"""Graphs that are written, and read back by us and by the libraries that the formats come from."""

import json

import anndata
import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from smoothgraph import GraphLearner
from smoothgraph.io import graph_metadata, read_graph, write_graph, write_table
from smoothgraph.models import L2, Daitch, Log, Nearest, model_of

KINDS = ["npz", "parquet", "csv", "graphml", "h5ad"]


def random_graph(seed, n=25, density=0.15):
    upper = sp.triu(sp.random(n, n, density, random_state=np.random.default_rng(seed)), k=1)
    return sp.csr_matrix(upper + upper.T)


def same(A, B):
    return A.shape == B.shape and (A != B).nnz == 0


ids_of = {
    "none": lambda n: None,
    "numbers": lambda n: 7 * np.arange(n)[::-1],
    "names": lambda n: [f"né <{i}>" for i in range(n)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", ids_of)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 30))
def test_what_is_written_is_read(tmp_path_factory, kind, ids, seed, n):
    W, ids = random_graph(seed, n), ids_of[ids](n)
    labels = np.arange(n) % 3
    metadata = {
        "theta": 0.1,
        "parameters": {"random_state": seed, "metric": "cosine"},
        "theta_bounds": [1e-3, 2.5],
        "none": None,
    }
    path = tmp_path_factory.mktemp("graphs") / f"graph.{kind}"
    write_graph(path, W, ids=ids, labels=labels, metadata=metadata)
    stored = read_graph(path)
    assert isinstance(stored.W, sp.csr_matrix)
    assert same(stored.W, W)  # nodes without edges too
    assert (stored.ids is None) if ids is None else stored.ids.tolist() == list(ids)
    assert stored.metadata == ({} if kind == "csv" else metadata)
    if kind in ("npz", "graphml", "h5ad"):
        assert stored.labels.tolist() == labels.tolist()
    assert list(path.parent.iterdir()) == [path]


X = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture
def learned():
    learner = GraphLearner(4, random_state=3).fit(X)
    return learner, [f"s{i}" for i in range(60)]


def test_others_read_what_we_write(tmp_path, learned):
    learner, ids = learned
    W = learner.graph_
    paths = {kind: tmp_path / f"graph.{kind}" for kind in KINDS}
    for path in paths.values():
        write_graph(path, W, ids=ids, metadata=graph_metadata(learner))
    assert same(sp.load_npz(paths["npz"]), W)
    for frame in (pd.read_parquet(paths["parquet"]), pd.read_csv(paths["csv"], float_precision="round_trip")):
        upper = sp.csr_matrix((frame["weight"], (frame["source"], frame["target"])), shape=W.shape)
        assert same(sp.csr_matrix(upper + upper.T), W)
        assert (frame["source_id"] == "s" + frame["source"].astype(str)).all()
    assert pq.read_schema(paths["parquet"]).metadata[b"n"] == b"60"
    G = nx.read_graphml(paths["graphml"])
    assert same(sp.csr_matrix(nx.to_scipy_sparse_array(G, nodelist=ids, format="csr")), W)
    adata = anndata.read_h5ad(paths["h5ad"])
    assert same(sp.csr_matrix(adata.obsp["connectivities"]), W)
    assert adata.obs_names.tolist() == ids


def test_metadata_says_how_the_graph_was_learned(learned):
    learner, _ = learned
    metadata = graph_metadata(learner)
    assert json.loads(json.dumps(metadata)) == metadata
    again = GraphLearner(**metadata["parameters"])
    assert again.get_params(deep=False) | {"verbose": 0} == learner.get_params(deep=False) | {"verbose": 0}
    assert metadata["n_edges"] == learner.graph_.nnz // 2
    assert metadata["gap"] == learner.solution_.gap <= learner.tol
    assert metadata["theta"] == learner.theta_
    assert metadata["n_bridges"] == 0
    assert sum(metadata["seconds"].values()) > 0
    near = GraphLearner(2, prior=learner.graph_, prior_strength=0.1, neighbors="exact").fit(X)
    assert "csr_matrix of shape (60, 60)" in graph_metadata(near)["parameters"]["prior"]


@pytest.mark.parametrize(
    ("model", "name", "parameters"),
    [
        (Log(), "log", {}),
        (L2(), "l2", {}),
        (Daitch("soft", mu=100.0, projection=2), "soft", {"mu": 100.0, "projection": 2}),
        (Daitch("hard"), "hard", {}),
        (Nearest("binary", mutual=True), "knn", {"mutual": True}),
        (Nearest("gaussian", sigma=2.0), "knn-gaussian", {"sigma": 2.0}),
        ("knn-self-tuning", "knn-self-tuning", {}),
    ],
)
def test_a_model_is_written_as_plain_data_from_which_it_can_be_made_again(model, name, parameters):
    learner = GraphLearner(4, model=model, random_state=0).fit(X)
    metadata = json.loads(json.dumps(graph_metadata(learner)))
    assert metadata["parameters"]["model"] == name
    assert metadata["model_parameters"] == parameters
    again = metadata["parameters"] | {"model": model_of(name, **parameters)}
    assert same(GraphLearner(**again).fit(X).graph_, learner.graph_)


def test_bridges_are_counted():
    apart = np.vstack([X, X + 100.0])
    learner = GraphLearner(4, connect=True).fit(apart)
    metadata = graph_metadata(learner)
    assert metadata["n_components"] == 1
    assert metadata["n_bridges"] == len(learner.bridges_) > 0


class Unwritable:
    """Metadata that JSON refuses."""


@pytest.mark.parametrize("kind", ["npz", "parquet", "graphml", "h5ad"])
def test_a_failed_write_leaves_what_was_there(tmp_path, kind):
    path = tmp_path / f"graph.{kind}"
    write_graph(path, random_graph(0))
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_graph(path, random_graph(1), metadata={"bad": Unwritable()})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_edge_lists_of_others(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\nbob,al,2\ncy,bob,3\n")
    stored = read_graph(path)
    assert stored.ids.tolist() == ["al", "bob", "cy"]
    assert stored.W.toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]
    path.write_text("source,target\n0,2\n2,0\n")  # both directions, no weights
    assert read_graph(path).W.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_errors_say_what_is_wrong(tmp_path):
    W = random_graph(0)
    with pytest.raises(ValueError, match=r"end its name in .csv, .graphml, .h5ad, .npz or .parquet"):
        write_graph(tmp_path / "graph.txt", W)
    with pytest.raises(ValueError, match=r"W is not symmetric: .* holds nothing"):
        write_graph(tmp_path / "graph.npz", sp.triu(W))
    with pytest.raises(ValueError, match="ids has shape"):
        write_graph(tmp_path / "graph.npz", W, ids=["a"])
    with pytest.raises(FileNotFoundError, match="make it first"):
        write_graph(tmp_path / "no" / "graph.npz", W)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_graph(tmp_path / "graph.npz")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no edge list: it needs the columns source and target"):
        read_graph(tmp_path / "table.csv")
    np.savez(tmp_path / "arrays.npz", X=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="holds no sparse matrix of scipy"):
        read_graph(tmp_path / "arrays.npz")
    sp.save_npz(tmp_path / "table.npz", sp.csr_matrix(np.ones((3, 2))))
    with pytest.raises(ValueError, match=r"shape \(3, 2\): a graph is square"):
        read_graph(tmp_path / "table.npz")
    anndata.AnnData(np.zeros((3, 2))).write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(ValueError, match=r"obsp\['connectivities'\] is missing"):
        read_graph(tmp_path / "cells.h5ad")


def test_a_zero_that_is_stored_on_one_side_is_no_edge(tmp_path):
    W = sp.csr_matrix(([0.0, 2.0, 2.0], ([0, 1, 2], [1, 2, 1])), shape=(3, 3))
    write_graph(tmp_path / "graph.npz", W)
    assert read_graph(tmp_path / "graph.npz").W.nnz == 2
    assert W.nnz == 3


@pytest.mark.parametrize("kind", ["npz", "parquet", "csv"])
def test_ids_with_control_characters_come_back_whole(tmp_path, kind):
    ids = ["\x00b", "a\x00c", "\x1b[2J"]
    write_graph(tmp_path / f"g.{kind}", sp.csr_matrix(np.ones((3, 3)) - np.eye(3)), ids=ids)
    assert read_graph(tmp_path / f"g.{kind}").ids.tolist() == ids


def test_a_table_keeps_texts_whole(tmp_path):
    write_table(tmp_path / "t.parquet", {"id": np.array(["\x00b", "c"]), "x": np.arange(2)})
    assert pq.read_table(tmp_path / "t.parquet")["id"].to_pylist() == ["\x00b", "c"]


def test_a_graph_that_is_symmetric_up_to_rounding_is_read_as_symmetric(tmp_path):
    sp.save_npz(tmp_path / "g.npz", sp.csr_matrix([[0.0, 0.5, 0.25], [0.5000001, 0.0, 0.0], [0.25, 0.0, 0.0]]))
    W = read_graph(tmp_path / "g.npz").W
    assert abs(W - W.T).max() == 0.0
    assert W[0, 1] == 0.5000001
