"""In and out of smoothgraph: files of samples, files of graphs, and the objects of other libraries."""

from smoothgraph.io.anndata import neighbors, to_anndata
from smoothgraph.io.exports import (
    edge_distances,
    to_igraph,
    to_networkit,
    to_networkx,
    to_pyg,
    to_pygsp,
    umap_embedding,
    umap_knn,
)
from smoothgraph.io.graphs import StoredGraph, graph_metadata, read_graph, write_graph
from smoothgraph.io.labels import read_labels
from smoothgraph.io.samples import Table
from smoothgraph.io.tables import from_frame, read_table, write_table

__all__ = [
    "StoredGraph",
    "Table",
    "edge_distances",
    "from_frame",
    "graph_metadata",
    "neighbors",
    "read_graph",
    "read_labels",
    "read_table",
    "to_anndata",
    "to_igraph",
    "to_networkit",
    "to_networkx",
    "to_pyg",
    "to_pygsp",
    "umap_embedding",
    "umap_knn",
    "write_graph",
    "write_table",
]
