"""The graph in other libraries: the graph read back from each is equal, or the library can use it.

networkx, igraph, pandas and scikit-learn are small and always tested. Tests of the other libraries, which are large, are marked
`interop`: `make test-interop` installs these libraries and runs the tests.
"""

import warnings
from importlib.util import find_spec

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smoothgraph import GraphLearner, NeighborsTransformer
from smoothgraph.io import (
    edge_distances,
    from_frame,
    neighbors,
    to_anndata,
    to_igraph,
    to_networkit,
    to_networkx,
    to_pyg,
    to_pygsp,
    umap_embedding,
    umap_knn,
)

X, y = (part[:600] for part in load_digits(return_X_y=True))
IDS = [f"digit-{i}" for i in range(len(X))]


@pytest.fixture(scope="module")
def learner():
    return GraphLearner(12, random_state=0).fit(X)


def heavy(package):
    """Mark a test that needs a large package; it is skipped where the package is missing."""
    missing = find_spec(package) is None
    skip = pytest.mark.skipif(missing, reason=f"{package} is not installed: make test-interop installs it")
    return lambda test: pytest.mark.interop(skip(test))


def same(A, B, rtol=0.0):
    """Whether two graphs are equal; weights may differ by rtol where the other library has fewer digits."""
    A, B = sp.csr_matrix(A), sp.csr_matrix(B)
    return A.shape == B.shape and ((A != 0) != (B != 0)).nnz == 0 and abs(A - B).max() <= rtol * abs(A).max()


def from_pairs(n, i, j, w):
    upper = sp.csr_matrix((w, (i, j)), shape=(n, n))
    return upper + upper.T


def test_networkx(learner):
    G = to_networkx(learner.graph_, ids=IDS)
    assert list(G) == IDS
    assert same(nx.to_scipy_sparse_array(G, nodelist=IDS), learner.graph_)
    assert nx.number_connected_components(G) == learner.n_components_
    assert same(nx.to_scipy_sparse_array(to_networkx(learner.graph_)), learner.graph_)


def test_igraph(learner):
    G = to_igraph(learner.graph_, ids=IDS)
    assert G.vs["name"] == IDS
    assert not G.is_directed()
    i, j = np.transpose(G.get_edgelist())
    assert same(from_pairs(G.vcount(), i, j, G.es["weight"]), learner.graph_)
    assert len(G.connected_components()) == learner.n_components_
    assert isinstance(G, igraph.Graph)


def test_scikit_learn(learner):
    """Pipelines, clones, and what takes a precomputed affinity."""
    piped = make_pipeline(StandardScaler(), GraphLearner(12)).fit_transform(X)
    assert same(piped, GraphLearner(12).fit(StandardScaler().fit_transform(X)).graph_)
    assert same(clone(learner).fit(X).graph_, learner.graph_)
    connected = learner.graph_ + 1e-6 * sp.csr_matrix(np.ones((600, 600)))  # these two want a connected graph
    found = SpectralClustering(10, affinity="precomputed", random_state=0, assign_labels="cluster_qr").fit_predict(connected)
    assert adjusted_rand_score(y, found) > 0.6
    assert SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(connected).shape == (600, 2)


def test_pandas_frames(learner):
    frame = pd.DataFrame(X, index=IDS, columns=[f"pixel {j}" for j in range(64)])
    fitted = GraphLearner(12).fit(frame)
    assert same(fitted.graph_, learner.graph_)
    assert fitted.ids_.tolist() == IDS
    assert from_frame(frame).ids.tolist() == IDS


def test_dask_arrays_and_frames(learner):
    import dask.array
    import dask.dataframe

    in_blocks = GraphLearner(12, random_state=0).fit(dask.array.from_array(X, chunks=(250, 64)))
    np.testing.assert_array_equal(in_blocks.graph_.toarray(), learner.graph_.toarray())
    names = sorted(IDS)  # a Dask frame is sorted by its index
    frame = dask.dataframe.from_pandas(pd.DataFrame(X, index=names).rename(columns=str), npartitions=3)
    framed = GraphLearner(12, random_state=0).fit(frame)
    np.testing.assert_array_equal(framed.graph_.toarray(), learner.graph_.toarray())
    assert framed.ids_.tolist() == names


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_edge_distances_are_distances(metric):
    learner = GraphLearner(12, metric=metric).fit(X)
    D = edge_distances(learner)
    i, j = learner.graph_.nonzero()
    rows = X if metric == "euclidean" else X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(D[i, j]).ravel(), np.linalg.norm(rows[i] - rows[j], axis=1), rtol=1e-6)
    assert D.nnz == learner.graph_.nnz


def test_edge_distances_of_matrices(learner):
    """A dense matrix of squared distances has them, with copies at 0; a sparse one is not kept."""
    twice = np.vstack([X[:30], X[:2]])
    Z = ((twice[:, None] - twice) ** 2).sum(axis=2)
    D = edge_distances(GraphLearner(4, metric="precomputed_squared").fit(Z))
    i, j = D.nonzero()
    np.testing.assert_allclose(np.asarray(D[i, j]).ravel(), np.sqrt(Z[i, j]))
    assert (D.data == 0.0).any()
    allowed = sp.csr_matrix(learner.graph_.multiply(learner.graph_))
    with pytest.raises(ValueError, match="allowed edges and does not keep their distances"):
        edge_distances(GraphLearner(2, theta=1.0, metric="precomputed_squared").fit(allowed))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_lists_for_umap_are_true_neighbours(metric):
    indices, distances = umap_knn(X, 15, metric=metric)
    true, _ = NearestNeighbors(n_neighbors=15, metric=metric, algorithm="brute").fit(X).kneighbors(X)
    np.testing.assert_allclose(distances, true, rtol=1e-4, atol=1e-5)
    assert (indices[:, 0] == np.arange(600)).all()


# --- one convention: a learner or a graph, checked ---------------------------------------------------------------------------

LARGE = {to_networkit: "networkit", to_pyg: "torch_geometric", to_pygsp: "pygsp", umap_embedding: "umap"}


def exports():
    yield from (to_networkx, to_igraph)
    for export, package in LARGE.items():
        missing = pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")
        yield pytest.param(export, marks=[pytest.mark.interop, missing])


@pytest.mark.parametrize("export", list(exports()))
def test_every_export_checks_its_graph(learner, export):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the other libraries
        W = learner.graph_
        out_of_range = W.copy()
        out_of_range.indices[7] = 10**6
        nan, negative = W.copy(), W.copy()
        nan.data[3], negative.data[:] = np.nan, -1.0
        bad = {"damaged": out_of_range, "NaN": nan, "negative": negative, "symmetric": sp.triu(W), r"\(600, 64\)": X}
        for words, given in bad.items():
            with pytest.raises(ValueError, match=words):
                export(given)
        with pytest.raises(TypeError, match="a fitted GraphLearner or a matrix of weights"):
            export("graph.npz")
        with pytest.raises(ValueError, match="not fitted"):
            export(GraphLearner(5))


def test_a_learner_is_exported_as_its_graph(learner):
    assert nx.utils.graphs_equal(to_networkx(learner), to_networkx(learner.graph_))
    assert to_igraph(learner).get_edgelist() == to_igraph(learner.graph_.toarray()).get_edgelist()


def test_ids_of_the_wrong_length_are_refused(learner):
    for export in (to_networkx, to_igraph):
        with pytest.raises(ValueError, match=r"ids has shape \(3,\), but the graph has 600 nodes"):
            export(learner.graph_, ids=["a", "b", "c"])
    with pytest.raises(ValueError, match="occur twice"):
        to_networkx(learner.graph_, ids=["a"] * 600)


def test_what_needs_the_learner_or_the_samples_says_so(learner):
    with pytest.raises(TypeError, match="edge_distances needs a fitted GraphLearner, not a csr_matrix"):
        edge_distances(learner.graph_)
    for given, words in ((learner.graph_, "got a graph on 600 nodes"), (learner, "got a learner")):
        with pytest.raises(ValueError, match=f"{words}.*umap_embedding"):
            umap_knn(given)


# --- AnnData -----------------------------------------------------------------------------------------------------------------


def adata_of(X, **obsm):
    import anndata

    adata = anndata.AnnData(X.astype(np.float32), obs=pd.DataFrame({"digit": y[: len(X)].astype(str)}, index=IDS[: len(X)]))
    for key, values in obsm.items():
        adata.obsm[key] = values
    return adata


def test_an_adata_of_other_cells_is_refused(learner):
    with pytest.raises(ValueError, match="adata has 3 cells, the learner was fitted on 600"):
        to_anndata(adata_of(np.zeros((3, 2))), learner)
    with pytest.raises(TypeError, match="to_anndata needs a fitted GraphLearner, not a csr_matrix"):
        to_anndata(adata_of(X), learner.graph_)
    with pytest.raises(ValueError, match="use_rep='X_scVI' is not there"):
        to_anndata(adata_of(X), learner, use_rep="X_scVI")


def test_neighbors_says_what_was_done():
    adata = adata_of(X, X_scVI=X[:, :10], X_pca=X[:, :20])
    assert neighbors(adata, 12, use_rep="X_scVI", n_pcs=8, metric="cosine", locality=0.5) is None
    expected = GraphLearner(12, metric="cosine", locality=0.5, random_state=0).fit(X[:, :8])
    assert same(adata.obsp["connectivities"], expected.graph_)
    params = {
        "n_neighbors": 12,
        "method": "smoothgraph",
        "metric": "cosine",
        "random_state": 0,
        "use_rep": "X_scVI",
        "n_pcs": 8,
    }
    assert adata.uns["neighbors"]["params"] == params
    D = np.sort(pairwise_distances(X[:, :8], metric="cosine"), axis=1)[:, 1:12]
    found = adata.obsp["distances"].data.reshape(600, 11)
    np.testing.assert_allclose(found, D, atol=1e-6)

    again = neighbors(adata, 12, random_state=None, key_added="learned", copy=True)
    assert "learned" not in adata.uns
    assert again.uns["learned"]["params"] == {"n_neighbors": 12, "method": "smoothgraph", "metric": "euclidean"}
    assert same(again.obsp["learned_connectivities"], GraphLearner(12).fit(X[:, :20]).graph_)  # X_pca: there are 64 variables
    neighbors(adata, 12, n_pcs=0)
    assert adata.uns["neighbors"]["params"]["use_rep"] == "X"
    assert same(adata.obsp["connectivities"], GraphLearner(12).fit(adata.X).graph_)


def test_neighbors_takes_the_representation_that_scanpy_takes():
    few = adata_of(X[:, :50], X_pca=X[:, :2])
    neighbors(few, 8)
    assert same(few.obsp["connectivities"], GraphLearner(8).fit(few.X).graph_)
    assert "use_rep" not in few.uns["neighbors"]["params"]
    view = adata_of(X, X_pca=X[:, :20])[:300]
    neighbors(view, 8, n_pcs=5)
    assert view.uns["neighbors"]["params"]["n_pcs"] == 5
    assert same(view.obsp["connectivities"], GraphLearner(8).fit(X[:300, :5]).graph_)
    with pytest.raises(ValueError, match="n_pcs=30, but X_pca has 20 columns"):
        neighbors(adata_of(X, X_pca=X[:, :20]), 8, n_pcs=30)
    with pytest.raises(ValueError, match="use_rep='X_scVI' is not there: adata has X, 'X_pca'"):
        neighbors(adata_of(X, X_pca=X), 8, use_rep="X_scVI")
    if find_spec("scanpy") is None:
        with pytest.raises(ImportError, match=r"64 variables and no 'X_pca'.*run sc.pp.pca"):
            neighbors(adata_of(X), 8)


def test_copies_of_cells_have_as_many_distances_as_others():
    adata = adata_of(np.vstack([X[:40, :30]] * 3 + [np.zeros((60, 30))]))
    neighbors(adata, 6)
    distances = adata.obsp["distances"]
    assert set(np.diff(distances.indptr)) == {5}
    assert distances.diagonal().sum() == 0
    true = np.sort(pairwise_distances(adata.X.astype(np.float64)), axis=1)[:, 1:6]
    np.testing.assert_allclose(distances.data.reshape(180, 5), true, rtol=1e-5, atol=1e-5)
    rows = distances.indices.reshape(180, 5)
    assert not (rows == np.arange(180)[:, None]).any()
    assert all(len(set(row)) == 5 for row in rows.tolist())


# --- the large libraries -----------------------------------------------------------------------------------------------------


@heavy("polars")
def test_polars_frames(learner):
    import polars as pl

    frame = pl.DataFrame(X, schema=[f"pixel {j}" for j in range(64)])
    fitted = GraphLearner(12).fit(frame)
    assert same(fitted.graph_, learner.graph_)
    assert fitted.feature_names_in_.tolist() == frame.columns
    table = from_frame(frame.with_columns(name=pl.Series(IDS), kind=pl.Series(y)), id_column="name", label_column="kind")
    assert table.ids.tolist() == IDS
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.labels, y)


@heavy("torch")
def test_torch_tensors(learner):
    import torch

    assert same(GraphLearner(12).fit(torch.from_numpy(X)).graph_, learner.graph_)
    small = GraphLearner(12).fit(torch.from_numpy(X.astype(np.float32)))
    assert small.distances_.dtype == np.float32
    assert same(small.graph_, learner.graph_, rtol=1e-4)


@heavy("networkit")
def test_networkit(learner):
    import networkit as nk

    G = to_networkit(learner.graph_)
    assert G.isWeighted()
    assert not G.isDirected()
    i, j, w = np.transpose(list(G.iterEdgesWeights()))
    assert same(from_pairs(G.numberOfNodes(), i.astype(int), j.astype(int), w), learner.graph_)
    components = nk.components.ConnectedComponents(G)
    components.run()
    assert components.numberOfComponents() == learner.n_components_


@heavy("torch_geometric")
def test_pytorch_geometric(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses functions that torch deprecates
        import torch
        from torch_geometric.nn import GCNConv
        from torch_geometric.utils import to_scipy_sparse_matrix

    data = to_pyg(learner.graph_, x=X, y=y)
    assert data.validate()
    assert data.is_undirected()
    assert data.edge_index.dtype == torch.int64
    assert data.num_edges == learner.graph_.nnz
    back = to_scipy_sparse_matrix(data.edge_index, data.edge_weight, num_nodes=data.num_nodes)
    assert same(back, learner.graph_.astype(np.float32))
    out = GCNConv(64, 8)(data.x, data.edge_index, data.edge_weight)
    assert torch.isfinite(out).all()
    np.testing.assert_array_equal(data.y.numpy(), y)
    for targets, kind in ((X[:, 20], torch.float64), (X[:, 20].astype(np.float32), torch.float32), (y > 4, torch.int64)):
        data = to_pyg(learner, y=targets)
        assert data.y.dtype == kind
        np.testing.assert_array_equal(data.y.numpy(), targets)
    for wrong, words in (({"y": y[:5]}, "y has shape"), ({"x": X[:5]}, "x has shape"), ({"y": IDS}, "number the classes")):
        with pytest.raises(ValueError, match=words):
            to_pyg(learner, **wrong)


@heavy("pygsp")
def test_pygsp(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses functions that other libraries deprecate
        G = to_pygsp(learner.graph_)
        assert same(G.W, learner.graph_)
        G.compute_laplacian("combinatorial")
        energy = float(X[:, 20] @ (G.L @ X[:, 20]))
    i, j = learner.graph_.nonzero()
    weights = np.asarray(learner.graph_[i, j]).ravel()
    assert energy == pytest.approx(0.5 * np.sum(weights * (X[i, 20] - X[j, 20]) ** 2))


@pytest.fixture(scope="module")
def sc():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import scanpy
    return scanpy


@heavy("scanpy")
@pytest.mark.filterwarnings("ignore")
def test_every_tool_of_scanpy_runs(sc, tmp_path):
    adata = adata_of(X)
    sc.pp.pca(adata, n_comps=30)
    neighbors(adata, 12)
    theirs = sc.pp.neighbors(adata, 12, copy=True)
    assert set(theirs.uns["neighbors"]) <= set(adata.uns["neighbors"])
    assert set(adata.uns["neighbors"]["params"]) == set(theirs.uns["neighbors"]["params"])
    ours, scanpys = adata.obsp["distances"], theirs.obsp["distances"]
    assert np.unique(np.diff(ours.indptr)).tolist() == np.unique(np.diff(scanpys.indptr)).tolist() == [11]
    np.testing.assert_allclose(ours.data.reshape(600, 11), np.sort(scanpys.data.reshape(600, 11), axis=1), rtol=1e-3, atol=1e-3)
    before = adata.obsm["X_pca"].copy()
    sc.tl.leiden(adata, flavor="igraph", n_iterations=2, directed=False, random_state=0)
    sc.tl.leiden(adata, flavor="leidenalg", n_iterations=2, random_state=0, key_added="leidenalg")
    sc.tl.umap(adata, random_state=0, maxiter=50)
    sc.tl.diffmap(adata, n_comps=5)
    adata.uns["iroot"] = 0
    sc.tl.dpt(adata, n_dcs=5)
    for model in ("v1.2", "v1.0"):
        sc.tl.paga(adata, groups="leiden", model=model)
        assert adata.uns["paga"]["connectivities"].nnz > 0
    sc.tl.draw_graph(adata, layout="fr", niter=3)
    assert adjusted_rand_score(y, adata.obs["leiden"]) > 0.6
    assert adjusted_rand_score(y, adata.obs["leidenalg"]) > 0.6
    assert adata.obsm["X_umap"].shape == (600, 2)
    assert adata.obsm["X_diffmap"].shape == (600, 5)
    assert np.isfinite(adata.obs["dpt_pseudotime"]).all()
    assert (adata.obsm["X_pca"] == before).all()  # nobody computed another one
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = sc.read_h5ad(tmp_path / "cells.h5ad")
    assert same(back.obsp["connectivities"], adata.obsp["connectivities"])
    assert back.uns["neighbors"]["params"] == adata.uns["neighbors"]["params"]


@heavy("scanpy")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use_rep", [None, "X"])
def test_ingest_maps_new_cells(sc, use_rep):
    """New cells get the labels of their neighbours, and places in the umap, where ingest runs after sc.pp.neighbors too."""
    reference, new = adata_of(X[:500]), adata_of(X[500:])
    del new.obs["digit"]
    sc.pp.pca(reference, n_comps=30)
    sc.pp.neighbors(reference, 12, use_rep=use_rep)
    sc.tl.umap(reference, random_state=0, maxiter=50)
    theirs = new.copy()
    try:
        sc.tl.ingest(theirs, reference, obs="digit")
    except TypeError as error:
        pytest.skip(f"the ingest of this scanpy does not run with this pynndescent: {error}")
    neighbors(reference, 12, use_rep=use_rep)
    sc.tl.umap(reference, random_state=0, maxiter=50)
    sc.tl.ingest(new, reference, obs="digit")
    assert np.mean(new.obs["digit"] == theirs.obs["digit"]) > 0.95
    assert new.obsm["X_umap"].shape == (100, 2)


@heavy("scanpy")
@pytest.mark.filterwarnings("ignore")
def test_scanpy_looks_at_what_the_graph_was_learned_of(sc):
    """Without the record of use_rep, umap would compute principal components of X."""
    adata = adata_of(X, X_scVI=X[:, :10])
    neighbors(adata, 12, use_rep="X_scVI", connect=False)
    sc.tl.umap(adata, random_state=0, maxiter=5)
    assert "X_pca" not in adata.obsm
    other = adata_of(X, X_scVI=X[:, :10])
    to_anndata(other, GraphLearner(12, connect=False).fit(X[:, :10]), use_rep="X_scVI")
    assert "random_state" not in other.uns["neighbors"]["params"]
    assert other.uns["neighbors"]["params"]["use_rep"] == "X_scVI"
    sc.tl.umap(other, random_state=0, maxiter=5)
    assert "X_pca" not in other.obsm
    to_anndata(other, GraphLearner(12).fit(X[:, :10]), "learned", use_rep="X_scVI")
    sc.tl.leiden(other, neighbors_key="learned", flavor="igraph", n_iterations=2, random_state=0)
    sc.tl.paga(other, groups="leiden", neighbors_key="learned")


@heavy("scanpy")
def test_missing_components_are_computed_by_scanpy(sc):
    adata = adata_of(X)
    with pytest.warns(UserWarning, match="64 variables and no 'X_pca', so sc.pp.pca computes it"):
        neighbors(adata, 12, n_pcs=20)
    assert adata.obsm["X_pca"].shape == (600, 20)


@heavy("scanpy")
@pytest.mark.filterwarnings("ignore")
def test_our_search_in_scanpy(sc):
    """With the same neighbours scanpy's graph is the same; a learner of weights in that place is refused."""
    untied = adata_of(X + 0.01 * np.random.default_rng(0).normal(size=X.shape))
    ours = sc.pp.neighbors(untied, use_rep="X", transformer=NeighborsTransformer(15), copy=True)
    theirs = sc.pp.neighbors(untied, 15, use_rep="X", copy=True)
    assert abs(ours.obsp["connectivities"] - theirs.obsp["connectivities"]).max() < 1e-3
    assert ours.uns["neighbors"]["params"]["n_neighbors"] == 15
    with pytest.raises(TypeError, match=r"smoothgraph.io.neighbors\(adata, 15\).*NeighborsTransformer\(15\)"):
        sc.pp.neighbors(untied, use_rep="X", transformer=GraphLearner(15))


@heavy("scanpy")
@pytest.mark.filterwarnings("ignore")
def test_scanpy_reads_what_the_command_line_writes(sc, tmp_path):
    from smoothgraph.__main__ import main

    adata_of(X, X_pca=X[:, :20]).write_h5ad(tmp_path / "cells.h5ad")
    pd.DataFrame(X[:, 18:28], columns=list("abcdefghij")).to_csv(tmp_path / "digits.csv", index=False)
    for data, key in (("cells.h5ad", ["--key", "X_pca"]), ("digits.csv", [])):
        out = tmp_path / f"{data}.h5ad"
        with pytest.raises(SystemExit) as ended:
            main(["learn", str(tmp_path / data), *key, "-k", "10", "-q", "-o", str(out)])
        assert not ended.value.code
        adata = sc.read_h5ad(out)
        sc.tl.leiden(adata, flavor="igraph", n_iterations=2, directed=False, random_state=0)
        sc.tl.umap(adata, random_state=0, maxiter=5)
        sc.tl.diffmap(adata, n_comps=5)
        sc.tl.paga(adata, groups="leiden")
        assert adata.obsm["X_umap"].shape == (600, 2)


@heavy("hdbscan")
@pytest.mark.filterwarnings("ignore")
def test_hdbscan():
    """Our distances in the place of its own: the same clusters as from those of scikit-learn."""
    import hdbscan
    from sklearn.neighbors import KNeighborsTransformer

    untied = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    labels = []
    for search in (NeighborsTransformer(60), KNeighborsTransformer(n_neighbors=60)):
        D = search.fit_transform(untied)
        D.setdiag(0.0)
        D.eliminate_zeros()
        labels.append(hdbscan.HDBSCAN(min_cluster_size=10, metric="precomputed").fit_predict(D.maximum(D.T)))
    assert adjusted_rand_score(*labels) > 0.99
    assert len(set(labels[0])) > 5


@heavy("umap")
def test_umap(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap import UMAP

        untied = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
        ours = UMAP(n_neighbors=15, precomputed_knn=umap_knn(untied, 15), random_state=0, n_epochs=1).fit(untied)
        cosine = {"n_neighbors": 15, "metric": "cosine", "random_state": 0, "n_epochs": 1}
        angles = [UMAP(**cosine, precomputed_knn=umap_knn(untied, 15, metric="cosine")).fit(untied), UMAP(**cosine).fit(untied)]
        alone = UMAP(n_neighbors=15, random_state=0, n_epochs=1).fit(untied)
        layout = umap_embedding(learner.graph_, random_state=0, n_epochs=100)
    assert abs(ours.graph_ - alone.graph_).max() < 1e-3  # UMAP searches small data exactly too
    assert abs(angles[0].graph_ - angles[1].graph_).max() < 1e-3
    assert layout.shape == (600, 2)
    # Samples that are near in the layout have the same class: the layout shows our graph.
    _, near = NearestNeighbors(n_neighbors=6).fit(layout).kneighbors(layout)
    assert np.mean(y[near[:, 1:]] == y[:, None]) > 0.9
