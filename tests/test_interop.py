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
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smoothgraph import GraphLearner
from smoothgraph.io import (
    edge_distances,
    from_frame,
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
    unit = X if metric == "euclidean" else X / np.linalg.norm(X, axis=1, keepdims=True)
    true, _ = NearestNeighbors(n_neighbors=15).fit(unit).kneighbors(unit)
    np.testing.assert_allclose(distances, true, rtol=1e-4, atol=1e-4)
    assert (indices[:, 0] == np.arange(600)).all()


def test_an_adata_of_other_cells_is_refused(learner):
    import anndata

    with pytest.raises(ValueError, match="adata has 3 cells, the learner was fitted on 600"):
        to_anndata(anndata.AnnData(np.zeros((3, 2))), learner)


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


@heavy("scanpy")
def test_scanpy(learner, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import anndata
        import scanpy as sc

        adata = anndata.AnnData(X.astype(np.float32), obs=pd.DataFrame({"digit": y.astype(str)}, index=IDS))
        to_anndata(adata, learner)
        assert same(adata.obsp["connectivities"], learner.graph_)
        sc.tl.leiden(adata, flavor="igraph", n_iterations=2, directed=False, random_state=0)
        sc.tl.umap(adata, random_state=0, maxiter=50)
        sc.tl.diffmap(adata, n_comps=5)
        to_anndata(adata, learner, key_added="learned")
        sc.tl.leiden(adata, neighbors_key="learned", key_added="again", flavor="igraph", n_iterations=2, random_state=0)
        adata.write_h5ad(tmp_path / "cells.h5ad")
    assert adjusted_rand_score(y, adata.obs["leiden"]) > 0.6
    assert (adata.obs["again"] == adata.obs["leiden"]).all()
    assert adata.obsm["X_umap"].shape == (600, 2)
    assert adata.obsm["X_diffmap"].shape == (600, 5)


@heavy("umap")
def test_umap(learner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap import UMAP

        untied = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
        ours = UMAP(n_neighbors=15, precomputed_knn=umap_knn(untied, 15), random_state=0, n_epochs=1).fit(untied)
        alone = UMAP(n_neighbors=15, random_state=0, n_epochs=1).fit(untied)
        layout = umap_embedding(learner.graph_, random_state=0, n_epochs=100)
    assert abs(ours.graph_ - alone.graph_).max() < 1e-3  # UMAP searches small data exactly too
    assert layout.shape == (600, 2)
    # Samples that are near in the layout have the same class: the layout shows our graph.
    _, near = NearestNeighbors(n_neighbors=6).fit(layout).kneighbors(layout)
    assert np.mean(y[near[:, 1:]] == y[:, None]) > 0.9
