"""Tables with random damage. Reading one ends in samples that an independent check passes, or in an error of one line.

`python tests/mutated_tables.py 1000 --seed 3` reads a thousand files of each kind in child processes, where a crash or
too much memory is counted; files that end in anything else are kept in --folder.
"""

import gzip
import struct
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import scipy.sparse as sp
from scipy.io import mmwrite
from sklearn.datasets import dump_svmlight_file

import mutated
from smoothgraph.io import read_table

ADDRESS_SPACE = 12e9  # bytes that a child process may ask for: far more than a file of kilobytes needs, with its libraries
LIMIT = 5e8  # bytes of memory that a mutated file may ask for
NAMED = ".csv", ".tsv", ".gz", ".parquet", ".arrow", ".feather"


def sources(folder: Path) -> dict[str, bytes]:
    """Sound files of every kind, by their names. Tables have columns a to d of numbers, and "id" and "kind" of text."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(20, 4)), 3)
    ids, kinds = [f"n{i}" for i in range(20)], [["x", "y", "z"][i % 3] for i in range(20)]
    table = pa.table(
        {name: X[:, j] for j, name in enumerate("abcd")} | {"id": ids, "kind": pa.array(kinds).dictionary_encode()}
    )
    rows = [["a", "b", "c", "d", "id", "kind"], *([*map(str, X[i]), ids[i], kinds[i]] for i in range(20))]
    texts = {mark: "\n".join(mark.join(row) for row in rows) + "\n" for mark in ",;\t"}
    (folder / "a.csv").write_text(texts[","])
    (folder / "b.csv").write_text(texts[";"].replace(".", ","))
    (folder / "c.csv").write_bytes(texts[","].encode("utf-16"))
    (folder / "a.tsv").write_text(texts["\t"].replace("n1", '"n,1"'))
    (folder / "a.csv.gz").write_bytes(gzip.compress(texts[","].encode(), mtime=0))
    parquet.write_table(table, folder / "a.parquet")
    parquet.write_table(table, folder / "b.parquet", compression="zstd", use_dictionary=False, row_group_size=7)
    feather.write_feather(table, folder / "a.feather", compression="lz4")
    feather.write_feather(table, folder / "b.feather", compression="uncompressed")
    with pa.ipc.new_stream(folder / "a.arrow", table.schema) as stream:
        stream.write_table(table)
    np.save(folder / "a.npy", X)
    np.save(folder / "b.npy", np.asfortranarray(X.astype(">f4")))
    np.savez(folder / "a.npz", X=X, y=np.array(kinds))
    np.savez_compressed(folder / "b.npz", X=X.astype(np.float32))
    sp.save_npz(folder / "c.npz", sp.csr_matrix(np.where(X > 0, X, 0)))
    mmwrite(folder / "a.mtx", sp.coo_matrix(np.where(X > 0, X, 0)))
    dump_svmlight_file(np.where(X > 0, X, 0), np.arange(20) % 3, str(folder / "a.libsvm"), zero_based=False)
    images = struct.pack(">HBBiii", 0, 8, 3, 20, 3, 2) + bytes(range(120))
    (folder / "a.idx").write_bytes(images)
    (folder / "t-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def faults(path: Path) -> str:
    """What is wrong with how `read_table` ends for this file; "" if nothing is."""
    named = path.name.endswith(NAMED) and "ubyte" not in path.name
    options = {"id_column": "id", "label_column": "kind"} if named else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning of a library beneath is no line for people either
            table = read_table(path, missing="drop", max_memory=LIMIT, **options)
    except (ValueError, OSError) as error:
        text = str(error)
        return "" if text and text.isprintable() and len(text) < 2000 else f"a message of many lines: {text!r}"
    except BaseException:
        return traceback.format_exc()
    return unsound(table)


def unsound(table) -> str:
    """What is wrong with a table that was read. It shares no code with the checks of the package."""
    X = table.X
    n, d = X.shape
    if sp.issparse(X):
        if len(X.indptr) != n + 1 or X.indptr[0] != 0 or (np.diff(X.indptr) < 0).any() or X.indptr[-1] != len(X.data):
            return "indptr"
        if len(X.indices) != len(X.data) or any(not 0 <= j < d for j in X.indices.tolist()):
            return "indices"
        X = X.data
    elif not isinstance(X, np.ndarray) or X.ndim != 2:
        return "X is no table"
    if n == 0 or d == 0 or X.dtype.kind not in "fiub" or any(value != value for value in X.ravel().tolist()):
        return "X is empty, or holds what is no number"
    for values in (table.ids, table.labels):
        if values is not None and (len(values) != n or values.dtype.kind not in "iU"):
            return "ids or labels"
    if table.ids is not None and len(set(table.ids.tolist())) != n:
        return "ids are not unique"
    return "" if table.columns is None or len(set(table.columns)) == d else "columns"


def bounded_faults(path: Path) -> str:
    """The same, in a process that may not ask for much memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (int(ADDRESS_SPACE), resource.RLIM_INFINITY))
    return faults(path)


if __name__ == "__main__":
    sys.exit(mutated.main(__file__, sources, bounded_faults))
