"""Graphs ↔ npz, the archives of NumPy.

In and out: a `StoredGraph`. The arrays are those of `scipy.sparse.save_npz`, which scipy and we read from each other; `ids`,
`labels` and `metadata` (JSON) are further arrays.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from smoothgraph.io.door import bad, metadata_of
from smoothgraph.io.npy import TEXTS, Archive
from smoothgraph.io.stored import StoredGraph


def write_npz(path: Path, graph: StoredGraph) -> None:
    """Write an npz that `scipy.sparse.load_npz` reads, too."""
    W = graph.W
    arrays: dict[str, Any] = {"format": b"csr", "shape": W.shape, "data": W.data, "indices": W.indices, "indptr": W.indptr}
    arrays |= {"ids": graph.ids, "labels": graph.labels, "metadata": json.dumps(graph.metadata)}
    with open(path, "wb") as file:  # by its name, np.savez would call "graph.NPZ" "graph.NPZ.npz"
        np.savez(file, **{name: value for name, value in arrays.items() if value is not None})


def read_npz(path: Path, limit: float | None = None) -> StoredGraph:
    """Read a graph that we or scipy wrote."""
    with Archive(path, limit) as archive:
        if not archive.is_sparse:
            raise bad(path, f"it holds no sparse matrix of scipy: it has the arrays {', '.join(archive.names[:10])}.")
        W = archive.sparse()
        ids, labels = (archive.read(name, TEXTS) if name in archive.names else None for name in ("ids", "labels"))
        metadata = metadata_of(path, archive.text("metadata")) if "metadata" in archive.names else {}
    return StoredGraph(W, ids, labels, metadata)
