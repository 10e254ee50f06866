"""Graphs → the objects of other libraries.

In: a symmetric scipy CSR matrix W of weights, or a fitted learner where distances are needed too. Out: the same graph as an
object of the other library, with the nodes in the same order. Each of these libraries is optional, and imported where it is
used.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.optional import need
from smoothgraph.parallel import Threads
from smoothgraph.uses.graphs import components


def to_networkx(W, ids=None):
    """A `networkx.Graph` with an edge attribute `weight`. Nodes are called by their ids, or 0 to n − 1 without ids."""
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
    """Put the learned graph into an AnnData, where scanpy looks for it: leiden, umap and diffmap then use it.

    In place of `sc.pp.neighbors(adata, n_neighbors=15)`: `to_anndata(adata, GraphLearner(15).fit(adata.obsm["X_pca"]))`.

    Parameters
    ----------
    adata : the AnnData with the cells that the learner was fitted on, in the same order. It is changed, and returned.
    learner : a fitted GraphLearner.
    key_added : as in scanpy: the entries are called `key_added`, `key_added_connectivities` and `key_added_distances`, instead
        of neighbors, connectivities and distances.
    """
    W = learner.graph_
    if adata.n_obs != W.shape[0]:
        raise ValueError(f"adata has {adata.n_obs} cells, the learner was fitted on {W.shape[0]} samples.")
    prefix = "" if key_added is None else f"{key_added}_"
    entry = neighbors_entry({"parameters": learner.get_params(deep=False), "n_neighbors": learner.n_neighbors_}, prefix)
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
    """The distances (not squared) between the two samples of each edge, stored where the learned graph has its weights.

    With metric="cosine" they are between rows scaled to length 1. A distance of 0 is stored as an entry.
    """
    W, distances = learner.graph_, learner.distances_
    if not distances.can_search:
        raise ValueError("The learner was given allowed edges and does not keep their distances: take them from your matrix.")
    rows = np.repeat(np.arange(W.shape[0], dtype=np.int32), np.diff(W.indptr))
    sample_of = np.unique(learner.copy_of_, return_inverse=True)[1].astype(np.int32)
    z = distances.of_pairs(sample_of[rows], sample_of[W.indices], threads=Threads(learner.n_jobs))
    return sp.csr_matrix(
        (np.sqrt(z, dtype=np.float64) * np.sqrt(distances.z_unit), W.indices.copy(), W.indptr.copy()), shape=W.shape
    )


def umap_knn(X, n_neighbors: int = 15, *, metric: str = "euclidean", neighbors: Any = "auto", random_state=None):
    """Our neighbour lists as UMAP takes them: `UMAP(precomputed_knn=umap_knn(X))`.

    Out: (indices, distances), each (n, n_neighbors), where the first neighbour of a sample is the sample itself.
    """
    from sklearn.utils.validation import check_array

    from smoothgraph._checks import float_type
    from smoothgraph.distances import distances_of
    from smoothgraph.neighbors import find_neighbors

    X = check_array(X, accept_sparse="csr", dtype=float_type(X), order="C", ensure_min_samples=n_neighbors + 1)
    found = find_neighbors(distances_of(X, metric), n_neighbors - 1, neighbors, random_state=random_state, threads=Threads())
    lists: Any = found.by_rows()
    itself = np.arange(X.shape[0], dtype=np.int32)[:, None]
    indices = np.concatenate([itself, lists.indices], axis=1)
    return indices, np.concatenate([np.zeros(itself.shape, np.float32), np.sqrt(lists.distances).astype(np.float32)], axis=1)


def umap_embedding(W, n_components: int = 2, *, min_dist: float = 0.1, n_epochs: int | None = None, random_state=None):
    """UMAP's layout (n, n_components) of the graph W, which takes the place of UMAP's own graph of neighbours."""
    umap = need("umap.umap_", "umap-learn")
    from sklearn.utils import check_random_state

    a, b = umap.find_ab_params(1.0, min_dist)
    fuzzy = sp.coo_matrix(W, dtype=np.float32)
    fuzzy.data /= fuzzy.data.max()
    layout, _ = umap.simplicial_set_embedding(
        data=np.zeros((W.shape[0], 1), np.float32),  # UMAP needs samples only for a spectral layout of several components
        graph=fuzzy,
        n_components=n_components,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=n_epochs,
        init="random" if components(W)[0] > 1 else "spectral",
        random_state=check_random_state(random_state),
        metric="euclidean",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
    )
    return layout
