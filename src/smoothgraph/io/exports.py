"""Graphs → the objects of other libraries.

In: a fitted learner, or a graph W: a symmetric matrix of weights (n, n), scipy sparse or dense, which is checked. Out: the same
graph as an object of the other library, with the nodes in the same order. `edge_distances` needs the learner, since a graph has
no distances, and `umap_knn` the samples. Each of these libraries is optional, and imported where it is used.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.optional import need
from smoothgraph.parallel import Threads
from smoothgraph.sparse import checked_csr
from smoothgraph.uses.graphs import check_graph, components, one_per_node


def to_networkx(W, ids=None):
    """A `networkx.Graph` with an edge attribute `weight`. Nodes are called by their ids, or 0 to n − 1 without ids."""
    networkx = need("networkx", "networkx")
    W = graph_of(W)
    names = list(range(W.shape[0])) if ids is None else _ids(ids, W)
    if len(set(names)) < len(names):
        raise ValueError("ids has names that occur twice: networkx would take their nodes for one.")
    edges = sp.triu(W).tocoo()
    G = networkx.Graph()
    G.add_nodes_from(names)
    ends = ((names[i], names[j]) for i, j in zip(edges.row.tolist(), edges.col.tolist(), strict=True))
    G.add_weighted_edges_from((i, j, w) for (i, j), w in zip(ends, edges.data.tolist(), strict=True))
    return G


def to_igraph(W, ids=None):
    """An `igraph.Graph` with an edge attribute `weight` and, with ids, a vertex attribute `name`."""
    igraph = need("igraph", "igraph")
    W = graph_of(W)
    names = None if ids is None else _ids(ids, W)
    edges = sp.triu(W).tocoo()
    G = igraph.Graph(n=W.shape[0], edges=np.column_stack([edges.row, edges.col]))
    G.es["weight"] = edges.data.tolist()
    if names is not None:
        G.vs["name"] = names
    return G


def to_networkit(W):
    """A weighted, undirected `networkit.Graph`."""
    networkit = need("networkit", "networkit")
    W = graph_of(W)
    edges = sp.triu(W).tocoo()
    ends = edges.row.astype(np.uint64), edges.col.astype(np.uint64)
    return networkit.GraphFromCoo((edges.data, ends), n=W.shape[0], weighted=True, directed=False)


def to_pyg(W, x=None, y=None):
    """A `torch_geometric.data.Data`: int64 `edge_index` (2, 2E) with each edge in both directions, float32 `edge_weight`.

    x (features, n rows) becomes float32. y (one row per node) keeps what it is: integers and booleans, labels, become int64;
    floating-point numbers, targets of a regression, stay as precise as they are.
    """
    torch, data = need("torch", "torch"), need("torch_geometric.data", "torch_geometric")
    W = graph_of(W)
    edges = W.tocoo()
    index = torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64))
    graph = data.Data(edge_index=index, edge_weight=torch.from_numpy(edges.data.astype(np.float32)), num_nodes=W.shape[0])
    if x is not None:
        graph.x = torch.as_tensor(_rows("x", x, W).astype(np.float32))
    if y is not None:
        y = _rows("y", y, W)
        graph.y = torch.as_tensor(y if y.dtype in (np.float32, np.float64) else y.astype(np.int64))
    return graph


def to_pygsp(W, coords=None):
    """A `pygsp.graphs.Graph`, with the nodes placed at `coords` (n, 2 or 3) if given."""
    graphs = need("pygsp.graphs", "pygsp")
    W = graph_of(W)
    return graphs.Graph(W, coords=None if coords is None else _rows("coords", coords, W))


def edge_distances(learner) -> sp.csr_matrix:
    """The distances (not squared) between the two samples of each edge, stored where the learned graph has its weights.

    With metric="cosine" they are between rows scaled to length 1. A distance of 0 is stored as an entry.
    """
    learner = fitted(learner, "edge_distances", "a graph has weights and no distances")
    W, distances = learner.graph_, searchable(learner)
    rows = np.repeat(np.arange(W.shape[0], dtype=np.int32), np.diff(W.indptr))
    sample_of = np.unique(learner.copy_of_, return_inverse=True)[1].astype(np.int32)
    z = distances.of_pairs(sample_of[rows], sample_of[W.indices], threads=Threads(learner.n_jobs))
    return sp.csr_matrix(
        (np.sqrt(z, dtype=np.float64) * np.sqrt(distances.z_unit), W.indices.copy(), W.indptr.copy()), shape=W.shape
    )


def umap_knn(X, n_neighbors: int = 15, *, metric: str = "euclidean", neighbors: str = "auto", random_state=None):
    """Our neighbour lists as UMAP takes them: `UMAP(precomputed_knn=umap_knn(X))`.

    Out: (indices, distances), each (n, n_neighbors), where the first neighbour of a sample is the sample itself. The distances
    are those of UMAP's metric of the same name. X are samples: for UMAP's layout of a graph there is `umap_embedding`.
    """
    from smoothgraph.transformer import NeighborsTransformer

    if _is_learner(X) or _looks_like_a_graph(X):
        what = "a learner" if _is_learner(X) else f"a graph on {X.shape[0]} nodes (a symmetric matrix with an empty diagonal)"
        raise ValueError(
            f"umap_knn got {what}, but it searches among samples: give the table X (n, d) that the graph was learned of, or "
            "use umap_embedding for UMAP's layout of the graph."
        )
    search = NeighborsTransformer(n_neighbors - 1, metric=metric, search=neighbors, random_state=random_state)
    found = search.fit_transform(X)
    shape = found.shape[0], n_neighbors
    return found.indices.reshape(shape), found.data.reshape(shape).astype(np.float32)


def umap_embedding(W, n_components: int = 2, *, min_dist: float = 0.1, n_epochs: int | None = None, random_state=None):
    """UMAP's layout (n, n_components) of the graph, which takes the place of UMAP's own graph of neighbours."""
    umap = need("umap.umap_", "umap-learn")
    from sklearn.utils import check_random_state

    W = graph_of(W)
    if W.nnz == 0:
        raise ValueError(f"W has {W.shape[0]} nodes and no edges: there is nothing to lay out.")
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


# --- a learner or a graph --------------------------------------------------------------------------------------------------


def graph_of(W) -> sp.csr_matrix:
    """The graph of a fitted learner, or a matrix of weights; checked in either case."""
    if _is_learner(W):
        return fitted(W, "this", "").graph_
    if not sp.issparse(W) and getattr(W, "dtype", None) is None and not isinstance(W, list | tuple):
        raise TypeError(f"W is a {type(W).__name__}: a fitted GraphLearner or a matrix of weights (n, n) is needed.")
    return check_graph(checked_csr(W, "W"))


def fitted(learner, function: str, reason: str):
    """The learner, if it is one and was fitted; the reason is why a graph is not enough."""
    if not _is_learner(learner):
        raise TypeError(f"{function} needs a fitted GraphLearner, not a {type(learner).__name__}: {reason}.")
    if not hasattr(learner, "graph_"):
        raise ValueError(f"This {type(learner).__name__} is not fitted: call fit first.")
    return learner


def searchable(learner):
    """The distances of a learner, if it keeps them for all pairs."""
    if not learner.distances_.can_search:
        raise ValueError("The learner was given allowed edges and does not keep their distances: take them from your matrix.")
    return learner.distances_


def _is_learner(thing) -> bool:
    return hasattr(thing, "get_params") and hasattr(thing, "fit")


def _ids(ids, W) -> list[Any]:
    return one_per_node("ids", ids, W.shape[0]).tolist()


def _rows(name, values, W) -> np.ndarray:
    """Numbers, one row of them for each node."""
    values = np.asarray(values)
    if values.ndim == 0 or values.shape[0] != W.shape[0]:
        raise ValueError(f"{name} has shape {values.shape}, but the graph has {W.shape[0]} nodes: {name} needs a row for each.")
    if values.dtype.kind not in "biuf":
        remedy = "number the classes, np.unique(y, return_inverse=True)[1]" if name == "y" else "use numbers"
        raise ValueError(f"{name} holds {values.dtype}, but a tensor holds numbers: {remedy}.")
    return values


def _looks_like_a_graph(X) -> bool:
    """Whether X is a square, symmetric, sparse matrix with an empty diagonal."""
    if not sp.issparse(X) or X.shape[0] != X.shape[1]:
        return False
    X = checked_csr(X, "X")
    return X.nnz > 0 and not X.diagonal().any() and abs(X - X.T).max() == 0
