"""Small sound files of every kind that smoothgraph reads, written by the libraries that define them, to be damaged.

In: a random generator. Out: {name: bytes}; the name ends as the file's must. Those of h5ad and parquet are also made wrong on
purpose, since bytes that are changed at random seldom get past their checksums.
"""

import gzip
import io
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

GRAPHS = ".npz", ".parquet", ".csv", ".tsv", ".graphml", ".h5ad", ".mtx", ".csv.gz", ".mtx.gz"
TABLES = (
    ".csv",
    ".tsv",
    ".parquet",
    ".arrow",
    ".npy",
    ".npz",
    ".h5ad",
    ".mtx",
    ".libsvm",
    ".idx",
    ".csv.gz",
    ".mtx.gz",
    ".libsvm.gz",
    ".idx.gz",
)


@cache
def graph_files() -> dict[str, list[bytes]]:
    """Files of graphs, by the end of their name."""
    rng = np.random.default_rng(0)
    files: dict[str, list[bytes]] = {kind: [] for kind in GRAPHS}
    for ids, labels in ((None, None), (["a", "β", "c d", "e", "f", "g", "h"], ["x", "y", "x", "y", "x", "y", "z"])):
        W = random_graph(rng, 7)
        for kind in (".npz", ".parquet", ".csv", ".graphml", ".h5ad"):
            files[kind].append(_written(kind, W, ids, labels))
        files[".csv.gz"].append(gzip.compress(files[".csv"][-1]))
        files[".tsv"].append(files[".csv"][-1].replace(b",", b"\t"))
    for form in ("csr", "coo", "csc"):
        stream = io.BytesIO()
        sp.save_npz(stream, random_graph(rng, 6).asformat(form), compressed=form == "csc")
        files[".npz"].append(stream.getvalue())
    files[".csv"].append(b"source,target\na,b\nb,c\nc,d\n")
    files[".csv"].append(b"source,target,weight\n0,1,0.5\n1,2,0.25\n2,0,1\n")
    files[".mtx"] = _mtx_files(random_graph(rng, 6))
    files[".mtx.gz"] = [gzip.compress(data) for data in files[".mtx"]]
    return files


def _written(kind, W, ids, labels) -> bytes:
    from smoothgraph.io import write_graph

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"graph{kind}"
        write_graph(
            path, W, ids=ids, labels=labels, metadata={"theta": 2.0, "parameters": {"n_neighbors": 3}, "list": [1, "é"]}
        )
        return path.read_bytes()


def _mtx_files(W) -> list[bytes]:
    from scipy.io import mmwrite

    files = []
    for matrix, field, symmetry in (
        (W, "real", "symmetric"),
        (W, "real", "general"),
        ((W > 0).astype(int), "integer", "symmetric"),
        (W, "pattern", "symmetric"),
        (W.toarray(), "real", "general"),
    ):
        stream = io.BytesIO()
        mmwrite(stream, matrix, field=field, symmetry=symmetry)
        files.append(stream.getvalue())
    return files


@cache
def table_files() -> dict[str, list[bytes]]:
    """Files of samples, by the end of their name."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 3)).round(3)
    files: dict[str, list[bytes]] = {kind: [] for kind in TABLES}
    text = "name,length,width,kind\n" + "".join(f"n{i},{a},{b},{'xy'[i % 2]}\n" for i, (a, b, _) in enumerate(X))
    numbers = "".join(",".join(map(str, row)) + "\n" for row in X)
    files[".csv"] = [text.encode(), numbers.encode(), b"a,b\n" + numbers.encode().replace(b",", b".5,", 1)]
    files[".tsv"] = [data.replace(b",", b"\t") for data in files[".csv"]]
    table = pa.table({"length": X[:, 0], "width": X[:, 1].astype(np.float32), "count": np.arange(8), "kind": list("xyxyxyxy")})
    for columns in (table, table.drop_columns(["kind"])):
        stream = io.BytesIO()
        parquet.write_table(columns, stream)
        files[".parquet"].append(stream.getvalue())
        for new in (ipc.new_file, ipc.new_stream):
            stream = io.BytesIO()
            with new(stream, columns.schema) as writer:
                writer.write_table(columns)
            files[".arrow"].append(stream.getvalue())
    for array in (X, X.astype(np.float32), np.asfortranarray(X), rng.integers(9, size=(5, 2, 2)), X.astype(">f8")):
        stream = io.BytesIO()
        np.save(stream, array)
        files[".npy"].append(stream.getvalue())
    for arrays in ({"X": X, "y": np.arange(8)}, {"X": X.astype(np.float32)}):
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        files[".npz"].append(stream.getvalue())
    stream = io.BytesIO()
    sp.save_npz(stream, sp.random_array((8, 5), density=0.4, random_state=rng, format="csr"))
    files[".npz"].append(stream.getvalue())
    files[".mtx"] = _mtx_files(sp.csr_matrix(np.abs(X @ X.T).round(3)))
    files[".libsvm"] = [b"1 1:0.5 3:1.5\n-1 2:2\n1 1:1 2:1 3:1\n2 3:0.25\n", b"0 qid:1 1:1\n1 qid:1 2:1\n1 1:3\n"]
    files[".idx"] = [
        b"\0\0\x08\x02\0\0\0\x04\0\0\0\x03" + bytes(range(12)),
        b"\0\0\x0d\x02\0\0\0\x02\0\0\0\x02" + np.arange(4, dtype=">f4").tobytes(),
    ]
    files[".h5ad"] = [_h5ad(X, False), _h5ad(X, True)]
    for kind in (".csv", ".mtx", ".libsvm", ".idx"):
        files[f"{kind}.gz"] = [gzip.compress(data) for data in files[kind]]
    return files


def _h5ad(X, is_sparse) -> bytes:
    import anndata
    import pandas as pd

    obs = pd.DataFrame({"kind": list("xyxyxyxy")}, index=[f"cell{i}" for i in range(8)])
    adata = anndata.AnnData(sp.csr_matrix(X * (X > 0)) if is_sparse else X, obs=obs)
    adata.obsm["X_pca"] = X[:, :2].copy()
    adata.layers["counts"] = sp.csr_matrix(np.round(np.abs(X)))
    with tempfile.TemporaryDirectory() as folder:
        adata.write_h5ad(Path(folder) / "a.h5ad")
        return (Path(folder) / "a.h5ad").read_bytes()


def random_graph(rng, n: int) -> sp.csr_matrix:
    """A symmetric graph with weights of full precision; the last node has no edges."""
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
    W[:, -1] = 0.0
    return sp.csr_matrix(W + W.T)


# --- files that are wrong on purpose ----------------------------------------------------------------------------------------


def wrong_h5ad(rng, data: bytes) -> bytes:
    """An h5ad whose parts were changed by h5py: every checksum is right."""
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5ad"
        path.write_bytes(data)
        with h5py.File(path, "r+") as file:
            names: list[str] = []
            file.visit(names.append)
            for _ in range(int(rng.choice([1, 1, 2]))):
                _spoil_h5(rng, file, names[rng.integers(len(names))])
        return path.read_bytes()


def _spoil_h5(rng, file, name) -> None:
    import h5py

    if name not in file:
        return
    item, way = file[name], int(rng.integers(8))
    if way == 0:
        del file[name]
    elif way == 1:
        del file[name]
        file[name] = h5py.ExternalLink("/etc/passwd", "/") if rng.random() < 0.5 else h5py.SoftLink("/nowhere")
    elif way == 2:
        keys = list(item.attrs)
        if keys:
            key = keys[rng.integers(len(keys))]
            item.attrs[key] = [np.array([10**10, 3]), "csr_matrix", "array", 7, np.array([-1, -1]), "0.9.9"][rng.integers(6)]
    elif way == 3 and isinstance(item, h5py.Dataset):
        attributes = dict(item.attrs)
        del file[name]
        values = [
            np.array([-1, 10**9]),
            np.zeros((2, 2, 2)),
            "text",
            np.array([np.nan, np.inf]),
            np.array([], dtype="f8"),
            np.arange(3),
        ]
        file[name] = values[rng.integers(len(values))]
        file[name].attrs.update(attributes)
    elif way == 4 and isinstance(item, h5py.Dataset) and item.ndim == 1 and item.dtype.kind in "if" and len(item):
        item[int(rng.integers(len(item)))] = rng.choice([-1, 10**9, 2**31 - 1, -(2**31), 0, 1])
    elif way == 5 and isinstance(item, h5py.Dataset) and item.dtype.kind == "f" and item.size:
        item[(0,) * item.ndim] = rng.choice([np.nan, np.inf, -1.0, 1e300])
    elif way == 6 and isinstance(item, h5py.Dataset) and item.shape:
        attributes = dict(item.attrs)
        kind = "f8" if item.dtype.kind == "O" else item.dtype
        del file[name]
        file.create_dataset(name, shape=(10**11,), dtype=kind, chunks=(1024,), compression="gzip")  # large, and empty on disk
        file[name].attrs.update(attributes)
    elif isinstance(item, h5py.Group) and "\x1b[2Jmore" not in item:
        item["\x1b[2Jmore"] = np.zeros(3)


def wrong_parquet(rng) -> bytes:
    """An edge list or table with columns that make no sense, in a sound parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    n = int(rng.integers(0, 5))

    def column():
        ways = [
            lambda: pa.array(rng.integers(0, 4, size=n)),
            lambda: pa.array(rng.integers(-2, 10**9, size=n)),
            lambda: pa.array(rng.random(n)),
            lambda: pa.array([None, *rng.random(max(0, n - 1))][:n], pa.float64()),
            lambda: pa.array(rng.choice([np.nan, np.inf, -1.0, 0.5], size=n)),
            lambda: pa.array([["a"]] * n, pa.list_(pa.string())),
            lambda: pa.array(["\x1b[2J", "", "b", None, "é"][:n], pa.string()),
            lambda: pa.array([b"\xff\xfe"] * n, pa.binary()),
            lambda: pa.array([2**63] * n, pa.uint64()),
            lambda: pa.array([1] * n, pa.timestamp("ns")),
            lambda: pa.array([True] * n, pa.bool_()),
            lambda: pa.array([None] * n, pa.null()),
            lambda: pa.array([{"a": 1}] * n, pa.struct([("a", pa.int64())])),
            lambda: pa.array(["a"] * n).dictionary_encode(),
        ]
        return ways[rng.integers(len(ways))]()

    names = ["source", "target", "weight", "source_id", "target_id"][: int(rng.integers(2, 6))]
    columns = [column() for _ in names]
    if rng.random() < 0.5:
        columns[:2] = [pa.array(rng.integers(0, 4, size=n)), pa.array(rng.integers(0, 4, size=n))]
    if rng.random() < 0.1:
        names = ["a"] * len(names)
    table = pa.Table.from_arrays(columns, names=names)
    n_text = [b"4", b"-1", b"1000000000000", b"x", b"", b"0", b"2"][rng.integers(7)]
    said = [b"{}", b"[1]", b"{", json.dumps({"a": "\x1b[2J"}).encode(), b'{"parameters": 3}', b"[" * 3000, b"null"][
        rng.integers(7)
    ]
    table = table.replace_schema_metadata({b"n": n_text, b"smoothgraph": said})
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def wrong_npz(rng) -> bytes:
    """A scipy npz whose arrays lie, in a sound zip file."""
    W = random_graph(rng, 6)
    arrays = {"format": np.array(b"csr"), "shape": np.array(W.shape), "data": W.data, "indices": W.indices, "indptr": W.indptr}
    arrays |= {"ids": np.array(list("abcdef")), "labels": np.arange(6), "metadata": np.array('{"a": 1}')}
    names, integers = list(arrays), {"shape", "indices", "indptr", "labels"}
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        name = names[rng.integers(len(names))]
        values = [
            lambda name=name: np.array([-1, 10**9, 2]),
            lambda name=name: arrays[name][:-1] if arrays[name].ndim else arrays[name],
            lambda name=name: (
                np.where(np.arange(arrays[name].size) == 1, rng.choice([-1, 10**9, 6, 2**31 - 1]), arrays[name].ravel())
                if arrays[name].dtype.kind in "if"
                else arrays[name]
            ),
            lambda: np.array([np.nan, np.inf]),
            lambda: np.zeros((2, 2)),
            lambda: np.array("\x1b[2J"),
            lambda: np.array([10**10, 10**10]),
            lambda name=name: arrays[name].astype(np.complex128) if arrays[name].dtype.kind in "if" else np.array(b"coo"),
            lambda name=name: (
                arrays[name].astype(np.int64) if name in integers and arrays[name].dtype.kind == "i" else np.array(b"bsr")
            ),
            lambda name=name: np.flip(arrays[name]),
            lambda: np.array(["[" * 3000, '{"parameters": 3}', "null", "{", "[]", '{"a": NaN}'][rng.integers(6)]),
            lambda name=name: -arrays[name] if arrays[name].dtype.kind in "if" else np.array(b"dia"),
        ]
        arrays[name] = np.asarray(values[rng.integers(len(values))]())
    stream = io.BytesIO()
    np.savez(stream, **{name: arrays[name] for name in names})
    return stream.getvalue()
