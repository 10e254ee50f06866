"""Small random graphs out and back in every format: the same weights to the bit, ids, labels and metadata.

Another library reads the file too, and must see the same graph.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from torture.kinds import FaultError, Outcome

SUFFIXES = ".npz", ".parquet", ".csv", ".graphml", ".h5ad"
WITH_LABELS, WITH_METADATA = (".npz", ".graphml", ".h5ad"), (".npz", ".parquet", ".graphml", ".h5ad")
NAMES = [
    "a",
    "β",
    "ü ß",
    "日本",
    "😀",
    "a,b",
    'say "x"',
    "it's",
    " lead",
    "trail ",
    "1",
    "01",
    "1.0",
    "-1",
    "nan",
    "None",
    "true",
    "<&>",
    "=1+1",
    "@x",
    "e\u0301",
    "é",
    "a\tb",
    "\u202eabc",
    "x" * 300,
    "a\nb",
    "\x1b[2J",
    "a\\b",
    "%s",
    "NULL",
    "#",
    ";",
]


def case(rng: np.random.Generator) -> dict:
    n = int(rng.choice([0, 1, 2, 3, 5, 12]))
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < rng.uniform(0.0, 0.9)) * 10.0 ** rng.uniform(-300, 300), 1)
    i, j = np.nonzero(W)
    return {
        "suffix": str(rng.choice(SUFFIXES)),
        "n": n,
        "edges": [[int(a), int(b), float(W[a, b])] for a, b in zip(i, j, strict=True)],
        "ids": _names(rng, n),
        "labels": _labels(rng, n),
        "metadata": _metadata(rng),
        "dtype": str(rng.choice(["float64", "float64", "float32"])),
    }


def _names(rng, n):
    way = rng.integers(4)
    if way == 0:
        return None
    if way == 1:
        return [int(x) for x in rng.permutation(10 * n + 1)[:n] - n]
    if way == 2:
        return [f"n{x}" for x in rng.permutation(n)]
    return [str(x) for x in rng.permutation(NAMES)[:n]]


def _labels(rng, n):
    way = rng.integers(3)
    if way == 0:
        return None
    return [int(x) for x in rng.integers(-3, 3, size=n)] if way == 1 else [str(x) for x in rng.choice(NAMES, size=n)]


def _metadata(rng):
    values = [1, 2.5, None, True, "text", "日本 \x1b", [1, [2]], {"a": {"b": 1e-300}}, -0.1, 10**15, ""]
    return {str(rng.choice(NAMES)): values[rng.integers(len(values))] for _ in range(int(rng.integers(4)))}


def check(case: dict) -> Outcome:
    from smoothgraph.io import read_graph, write_graph

    W = graph_of(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"graph{case['suffix']}"
        try:
            write_graph(path, W, ids=case["ids"], labels=case["labels"], metadata=case["metadata"])
        except ValueError as error:
            if path.exists():
                raise FaultError("a graph was refused, but its file is there") from error
            return Outcome("refused")
        stored = read_graph(path)
        _compare(case, W, stored)
        _compare_weights(W, OTHERS[case["suffix"]](path, case), "another library")
        left = [entry.name for entry in Path(folder).iterdir()]
        if left != [path.name]:
            raise FaultError(f"writing leaves {left}")
    return Outcome("the same")


def graph_of(case) -> sp.csr_matrix:
    W = np.zeros((case["n"],) * 2, dtype=case["dtype"])
    for i, j, w in case["edges"]:
        W[i, j] = W[j, i] = np.clip(w, 1e-30, 1e30) if case["dtype"] == "float32" else w
    return sp.csr_matrix(W)


def _compare(case, W, stored) -> None:
    _compare_weights(W, stored.W, "read_graph")
    wanted = case["ids"]
    if case["suffix"] == ".csv" and wanted and all(str(name).isdecimal() and str(int(name)) == name for name in wanted):
        wanted = [int(name) for name in wanted]  # a csv does not say what is text: the page of graph files says so
    if wanted is not None and (stored.ids is None or stored.ids.tolist() != wanted):
        raise FaultError(f"ids {case['ids'][:5]} come back as {None if stored.ids is None else stored.ids.tolist()[:5]}")
    if case["ids"] is None and stored.ids is not None:
        raise FaultError(f"a graph without ids comes back with {stored.ids.tolist()[:5]}")
    labels = None if stored.labels is None else stored.labels.tolist()
    if case["suffix"] in WITH_LABELS and labels != case["labels"] and case["n"]:
        raise FaultError(f"labels {str(case['labels'])[:100]} come back as {str(labels)[:100]}")
    if case["suffix"] in WITH_METADATA and json.dumps(stored.metadata, sort_keys=True) != json.dumps(
        case["metadata"], sort_keys=True
    ):
        raise FaultError(f"metadata {case['metadata']} comes back as {stored.metadata}")


def _compare_weights(W, other, who) -> None:
    if other is None:
        return
    if other.shape != W.shape:
        raise FaultError(f"{who} sees a graph of shape {other.shape}, not {W.shape}")
    if not np.array_equal(other.toarray().astype(np.float64), W.toarray().astype(np.float64)):
        raise FaultError(f"{who} sees other weights")


def _by_pandas(path, case):
    """Edge lists, by pandas; nodes without an edge have a row of weight 0."""
    import pandas as pd

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, float_precision="round_trip")
    W = np.zeros((case["n"],) * 2)
    if len(frame):
        i, j = frame["source"].to_numpy(int), frame["target"].to_numpy(int)
        W[i, j] = W[j, i] = frame["weight"].to_numpy(float)
    return sp.csr_matrix(W)


def _by_networkx(path, case):
    import networkx

    G = networkx.read_graphml(path)
    return sp.csr_matrix(networkx.to_scipy_sparse_array(G)) if len(G) else None


def _by_anndata(path, case):
    import anndata

    return sp.csr_matrix(anndata.read_h5ad(path).obsp["connectivities"])


OTHERS = {
    ".npz": lambda path, case: sp.load_npz(path),
    ".parquet": _by_pandas,
    ".csv": _by_pandas,
    ".graphml": _by_networkx,
    ".h5ad": _by_anndata,
}


def smaller(case: dict):
    for name in ("labels", "ids"):
        if case[name] is not None:
            yield case | {name: None}
    if case["metadata"]:
        yield case | {"metadata": {}}
    if case["dtype"] != "float64":
        yield case | {"dtype": "float64"}
    for e in range(len(case["edges"])):
        yield case | {"edges": case["edges"][:e] + case["edges"][e + 1 :]}
    for node in range(case["n"]):
        if not any(node in edge[:2] for edge in case["edges"]):
            yield _without_node(case, node)


def _without_node(case, node):
    fewer = case | {"n": case["n"] - 1, "edges": [[a - (a > node), b - (b > node), w] for a, b, w in case["edges"]]}
    for name in ("ids", "labels"):
        if case[name] is not None:
            fewer[name] = case[name][:node] + case[name][node + 1 :]
    return fewer
