"""A graph as files hold it, and the checks that every such graph passes, on its way in and on its way out.

In: matrices, edges and names, from a file or from a user. Out: weights as a CSR matrix of floats, square, symmetric up to
rounding, finite, at least 0, without stored zeros, with sorted indices; ids that differ and labels, one for each node, whole
numbers or text. Or a ValueError with the value seen and the remedy.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph.io.door import MAX_DEPTH, bad, check_declared, check_rows, depth_fits
from smoothgraph.messages import printable
from smoothgraph.sparse import checked_csr
from smoothgraph.symmetry import TOLERANCE, check_symmetric
from smoothgraph.uses.graphs import one_per_node

LARGEST_NODE = 2**31 - 1  # node numbers that fit the indices of a sparse matrix, and whose pairs fit an int64
BYTES_PER_EDGE = 200  # of memory, as measured: the list, its order, and the matrix with both directions
FAR_APART = (
    "If node numbers are names, put a letter in front of them (n1000), or have names in source_id and target_id and numbers "
    "from 0 on in source and target."
)


class StoredGraph(NamedTuple):
    """A graph W, the ids and labels of its nodes (None if it has none), and its metadata."""

    W: sp.csr_matrix
    ids: np.ndarray | None
    labels: np.ndarray | None
    metadata: dict[str, Any]


def checked_graph(graph: StoredGraph, path: str = "") -> StoredGraph:
    """The graph, checked; `path` is the file that it was read from, if any, for the messages."""
    before = f"{path}: " if path else ""
    W = _checked_weights(graph.W, path or "W")
    ids, labels = (
        None if values is None else _checked_names(before + name, values, W.shape[0])
        for name, values in (("ids", graph.ids), ("labels", graph.labels))
    )
    if ids is not None:
        _check_differ(before + "ids", ids)
    if not isinstance(graph.metadata, dict) or not depth_fits(graph.metadata):
        raise ValueError(f"{before}metadata is no dict of at most {MAX_DEPTH} levels.")
    return StoredGraph(W, ids, labels, graph.metadata)


def _checked_weights(W: Any, name: str) -> sp.csr_matrix:
    """The weights of a graph, checked; W itself is not changed."""
    W = checked_csr(W, name)
    if W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise ValueError(
            f"{name} holds a matrix of shape {W.shape}: a graph is square, with a row for each node. Is it a table of samples?"
        )
    if W.dtype not in (np.float32, np.float64):
        W = W.astype(np.float64)
    if not W.has_canonical_format or (W.data == 0).any():
        W = W.copy()
        W.sum_duplicates()
        W.eliminate_zeros()
    wrong = ~(np.isfinite(W.data) & (W.data > 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        i = int(np.searchsorted(W.indptr, at, side="right")) - 1
        raise ValueError(
            f"{name} has the weight {W.data[at]:.6g} between nodes {i} and {W.indices[at]}: weights are finite and at least 0."
        )
    check_symmetric(W, name, "An undirected graph has each edge at both of its ends: use W.maximum(W.T).")
    back = W.T.tocsr()
    if not np.array_equal(W.data, back.data):  # the two ends of an edge differ by rounding: the larger weight counts
        W = sp.csr_matrix((np.maximum(W.data, back.data), W.indices, W.indptr), shape=W.shape)
    return W


def _checked_names(name: str, values: Any, n: int) -> np.ndarray:
    """Ids or labels of n nodes, as int64 or text that every file can hold. A message calls them `name`."""
    values = one_per_node(name, values, n)
    if values.dtype.kind in "iub":
        if values.dtype.kind == "u" and values.size and values.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{name} has {values.max()}, which is too large for a whole number of 64 bits: make it text.")
        return values.astype(np.int64)
    if values.dtype.kind == "U" and values.size:
        _check_characters(name, values)  # before anything makes Python's text of them
    try:
        values = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values.astype(str)
    except UnicodeDecodeError:
        raise ValueError(f"{name} has text that is no Unicode: files are UTF-8.") from None
    if values.size:
        _check_characters(name, values)
    return values


def _check_differ(name: str, ids: np.ndarray) -> None:
    """Raise a ValueError if a node has an empty id, which edge lists cannot tell from a missing one, or two have the same."""
    if ids.dtype.kind == "U" and (ids == "").any():
        raise ValueError(f"{name} has an empty text for node {int(np.argmax(ids == ''))}: every node needs an id, or none has.")
    values, counts = np.unique(ids, return_counts=True)
    if values.size < ids.size:
        twice = printable(str(values[counts.argmax()]))[:60]
        raise ValueError(f"{name} has {twice!r} for {counts.max()} nodes: ids must differ.")


def _check_characters(name, values):
    codes = np.ascontiguousarray(values).view(np.uint32).reshape(values.size, -1)
    codes = codes if values.dtype.isnative else codes.byteswap()
    wrong = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))
    if wrong.any():
        raise ValueError(f"{name} has text that is no Unicode, at node {int(np.argmax(wrong.any(axis=1)))}: files are UTF-8.")


def text_array(path, values: list[str], limit: float | None) -> np.ndarray:
    """Text as an array, in which every entry takes as much as the longest: one long text among many is refused."""
    longest = max(map(len, values), default=0)
    check_declared(path, 4 * longest * len(values), f"{len(values):,} names, of up to {longest:,} characters", limit)
    return np.array(values, dtype=str)


def weights_of_edges(path, n: int, source: np.ndarray, target: np.ndarray, weight: np.ndarray, limit: float | None):
    """The matrix of a list of edges. An edge has one row or more, in one direction or both, which must agree on its weight.

    A weight of 0 is no edge. Node numbers and weights are checked here; errors name the row, counted from 0.
    """
    check_rows(path, n, source.size, FAR_APART)
    check_declared(path, 16 * n + BYTES_PER_EDGE * source.size, f"{n:,} nodes and {source.size:,} edges", limit)
    for name, ends in (("source", source), ("target", target)):
        if ends.size and not (ends.min() >= 0 and ends.max() < min(n, LARGEST_NODE)):
            row = int(ends.argmin() if ends.min() < 0 else ends.argmax())
            raise bad(path, f"row {row} has the {name} {ends[row]}, and nodes go from 0 to {n - 1}. Rows are counted from 0.")
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise bad(
            path, f"row {row} has the weight {weight[row]:.6g}: weights are finite and at least 0. Rows are counted from 0."
        )
    pair = np.minimum(source, target).astype(np.int64) * n + np.maximum(source, target)
    order = np.argsort(pair, kind="stable")
    pair, weight = pair[order], weight[order]
    again = pair[1:] == pair[:-1]
    differ = again & ~np.isclose(weight[1:], weight[:-1], rtol=TOLERANCE, atol=0.0)
    if differ.any():
        at = int(np.argmax(differ))
        raise bad(
            path,
            f"rows {order[at]} and {order[at + 1]} give one edge the weights {weight[at]:.6g} and {weight[at + 1]:.6g}: keep "
            "one of them, or give both the same weight. Rows are counted from 0.",
        )
    keep = np.concatenate([[True], ~again])[: pair.size] & (weight > 0)
    (low, high), weight = np.divmod(pair[keep], n), weight[keep]
    two = low != high
    rows, columns = np.concatenate([low, high[two]]), np.concatenate([high, low[two]])
    return sp.csr_matrix((np.concatenate([weight, weight[two]]), (rows, columns)), shape=(n, n))
