"""Graphs → the objects of other libraries.

In: a symmetric scipy CSR matrix W of weights, or a fitted learner where distances are wanted too. Out: the same graph as the
other library has it, nodes in the same order. Each of these packages is optional and imported where it is used.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.io._files import need

BLOCK = 1 << 16  # edges whose distances are measured together


def to_networkx(W, ids=None):
    """A `networkx.Graph` with an attribute `weight` of its edges. Nodes are called by their ids, or 0 to n − 1."""
    networkx = need("networkx", "networkx")
    names = list(range(W.shape[0])) if ids is None else np.asarray(ids).tolist()
    edges = sp.triu(W).tocoo()
    G = networkx.Graph()
    G.add_nodes_from(names)
    ends = ((names[i], names[j]) for i, j in zip(edges.row.tolist(), edges.col.tolist(), strict=True))
    G.add_weighted_edges_from((i, j, w) for (i, j), w in zip(ends, edges.data.tolist(), strict=True))
    return G


def to_igraph(W, ids=None):
    """An `igraph.Graph` with an edge attribute `weight` and, with ids, a vertex attribute `name`."""
    igraph = need("igraph", "igraph")
    edges = sp.triu(W).tocoo()
    G = igraph.Graph(n=W.shape[0], edges=np.column_stack([edges.row, edges.col]))
    G.es["weight"] = edges.data.tolist()
    if ids is not None:
        G.vs["name"] = np.asarray(ids).tolist()
    return G


def to_networkit(W):
    """A weighted, undirected `networkit.Graph`."""
    networkit = need("networkit", "networkit")
    edges = sp.triu(W).tocoo()
    ends = edges.row.astype(np.uint64), edges.col.astype(np.uint64)
    return networkit.GraphFromCoo((edges.data.astype(np.float64), ends), n=W.shape[0], weighted=True, directed=False)


def to_pyg(W, x=None, y=None):
    """A `torch_geometric.data.Data`: int64 `edge_index` (2, 2E) with each edge in both directions, float32 `edge_weight`.

    x (features) and y (labels), if given, become float32 and int64 tensors.
    """
    torch, data = need("torch", "torch"), need("torch_geometric.data", "torch_geometric")
    edges = sp.csr_matrix(W).tocoo()
    index = torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64))
    graph = data.Data(edge_index=index, edge_weight=torch.from_numpy(edges.data.astype(np.float32)), num_nodes=W.shape[0])
    if x is not None:
        graph.x = torch.as_tensor(np.asarray(x), dtype=torch.float32)
    if y is not None:
        graph.y = torch.as_tensor(np.asarray(y), dtype=torch.int64)
    return graph


def to_pygsp(W, coords=None):
    """A `pygsp.graphs.Graph`, with the nodes placed at `coords` (n, 2 or 3) if given."""
    graphs = need("pygsp.graphs", "pygsp")
    return graphs.Graph(sp.csr_matrix(W), coords=coords)


def to_anndata(adata, learner, key_added: str | None = None):
    """Give an AnnData the learned graph where scanpy looks for it: leiden, umap, diffmap then run on it.

    In place of `sc.pp.neighbors(adata, n_neighbors=15)`: `to_anndata(adata, GraphLearner(15).fit(adata.obsm["X_pca"]))`.

    Parameters
    ----------
    adata : the AnnData whose cells the learner was fitted on, in the same order. It is changed, and returned.
    learner : a fitted GraphLearner.
    key_added : as in scanpy: entries are called `key_added`, `key_added_connectivities`, `key_added_distances`, instead of
        neighbors, connectivities, distances.
    """
    W = learner.graph_
    if adata.n_obs != W.shape[0]:
        raise ValueError(f"adata has {adata.n_obs} cells, the learner was fitted on {W.shape[0]} samples.")
    prefix = "" if key_added is None else f"{key_added}_"
    entry = neighbors_entry({"parameters": learner.get_params(), "n_neighbors": learner.n_neighbors_}, prefix)
    adata.obsp[f"{prefix}connectivities"] = W.copy()
    adata.obsp[f"{prefix}distances"] = edge_distances(learner)
    adata.uns[key_added or "neighbors"] = entry
    return adata


def neighbors_entry(metadata: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """What scanpy keeps in uns["neighbors"]."""
    parameters = metadata.get("parameters", {})
    params = {
        "method": "smoothgraph",
        "metric": parameters.get("metric", "euclidean"),
        "n_neighbors": int(parameters.get("n_neighbors", round(metadata.get("n_neighbors", 0)))),
        "random_state": parameters.get("random_state") if isinstance(parameters.get("random_state"), int) else 0,
    }
    return {"connectivities_key": f"{prefix}connectivities", "distances_key": f"{prefix}distances", "params": params}


def edge_distances(learner) -> sp.csr_matrix:
    """The distances (not squared) of the samples that an edge joins, stored where the learned graph has its weights.

    With metric="cosine" they are between rows scaled to length 1. A distance of 0 is stored as one.
    """
    W, samples = learner.graph_, learner._samples
    if getattr(samples, "sparse", False):
        raise ValueError("The learner was given allowed edges and does not keep their distances: take them from your matrix.")
    rows = np.repeat(np.arange(W.shape[0], dtype=np.int32), np.diff(W.indptr))
    columns = W.indices.astype(np.int32)
    z = np.empty(W.nnz, samples.dtype)
    for begin in range(0, W.nnz, BLOCK):
        part = slice(begin, begin + BLOCK)
        z[part] = samples.distances(samples.own(rows[part]), columns[part, None])[:, 0]
    return sp.csr_matrix((np.sqrt(z, dtype=np.float64), W.indices.copy(), W.indptr.copy()), shape=W.shape)


def umap_knn(X, n_neighbors: int = 15, *, metric: str = "euclidean", neighbors: Any = "auto", random_state=None):
    """Our neighbour lists as UMAP takes them, (indices, distances) with self first: `UMAP(precomputed_knn=umap_knn(X))`."""
    from sklearn.utils.validation import check_array

    from smoothgraph._checks import float_type
    from smoothgraph.neighbors import choose_backend, find_neighbors
    from smoothgraph.samples import Samples

    X = check_array(X, accept_sparse="csr", dtype=float_type(X), order="C", ensure_min_samples=n_neighbors + 1)
    samples = Samples(X, metric)
    lists = find_neighbors(samples, n_neighbors - 1, choose_backend(neighbors, samples, random_state))
    itself = np.arange(samples.n, dtype=np.int32)[:, None]
    indices = np.concatenate([itself, lists.indices], axis=1)
    return indices, np.concatenate([np.zeros(itself.shape, np.float32), np.sqrt(lists.distances).astype(np.float32)], axis=1)


def umap_embedding(W, n_components: int = 2, *, min_dist: float = 0.1, n_epochs: int | None = None, random_state=None):
    """UMAP's layout (n, n_components) of the graph W, taken as its fuzzy set of neighbours in place of UMAP's own."""
    umap = need("umap.umap_", "umap-learn")
    from sklearn.utils import check_random_state

    a, b = umap.find_ab_params(1.0, min_dist)
    fuzzy = sp.coo_matrix(W, dtype=np.float32)
    fuzzy.data /= fuzzy.data.max()
    layout, _ = umap.simplicial_set_embedding(
        data=np.zeros((W.shape[0], 1), np.float32),  # it is looked at only where the graph falls into parts
        graph=fuzzy,
        n_components=n_components,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=n_epochs,
        init="random" if _parts(W) > 1 else "spectral",
        random_state=check_random_state(random_state),
        metric="euclidean",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
    )
    return layout


def _parts(W):
    from scipy.sparse.csgraph import connected_components

    return connected_components(W, directed=False, return_labels=False)
