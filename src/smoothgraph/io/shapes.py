"""How large the table in a file is, without reading all of it.

In: a file that `read_table` reads. Out: a `TableShape`: rows, features, and how the learner will hold them. Formats that state
their size are asked for it. The rows of a text file are counted in its first part, and the rest is taken to be alike.
"""

import bz2
import gzip
import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from smoothgraph.files import existing, suffix
from smoothgraph.io.door import reading
from smoothgraph.io.tables import read_table
from smoothgraph.optional import need

SAMPLED_BYTES = 1 << 20  # bytes of a text file from which the length of its lines is estimated
SMALL_TYPES = "float32", "float16", "halffloat", "float", "uint8", "int8", "uint16", "int16", "bool"  # float32 holds them


class TableShape(NamedTuple):
    """Rows, features and dtype of a table; `nnz` entries if it is sparse; `in_place` if it is read where it is, as npy is.

    `is_exact` is False where n is an estimate.
    """

    n: int
    d: int
    dtype: Any = np.dtype(np.float64)
    nnz: int | None = None
    in_place: bool = False
    is_exact: bool = True


def table_shape(path, columns=None, id_column=None, label_column=None, key=None) -> TableShape:
    """The shape of what `read_table` would return; the parameters are its own."""
    path = existing(path)
    kind = ".idx" if path.name.removesuffix(".gz").endswith("-ubyte") else suffix(path)
    with reading(path, f"a {kind} file"):
        if kind in FRAMES:
            n, types, is_exact = FRAMES[kind](path)
            names = columns or [name for name in types if name not in (id_column, label_column)]
            small = all(types.get(name, "double") in SMALL_TYPES for name in names)
            return TableShape(n, len(names), np.dtype(np.float32 if small else np.float64), is_exact=is_exact)
        if kind in ARRAYS:
            return ARRAYS[kind](path, key)
    X = read_table(path, id_column=id_column, label_column=label_column, key=key).X  # there is no shorter way
    return TableShape(X.shape[0], X.shape[1], X.dtype, X.nnz if hasattr(X, "nnz") else None)


# --- tables with named columns: rows, {column: type}, whether the rows were counted ----------------------------------------


def _csv(path):
    head, size = _head(path)
    lines = head.splitlines(keepends=True)
    lines = lines if len(head) >= size else lines[:-1]  # the last may be cut
    if not lines:
        raise ValueError("there is no line in it")
    text = lines[0].decode("utf-8", "replace").strip("\r\n")
    delimiter = "\t" if suffix(path) == ".tsv" else max(",;\t|", key=text.count)
    names = [name.strip().strip('"') for name in text.split(delimiter)]
    filled = sum(1 for line in lines[1:] if line.strip())
    share = size / sum(map(len, lines))
    return round(filled * share), dict.fromkeys(names, "double"), len(head) >= size


def _parquet(path):
    metadata = need("pyarrow.parquet", "smoothgraph[io]").read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    return metadata.num_rows, {field.name: str(field.type) for field in schema}, True


def _arrow(path):
    table = need("pyarrow.dataset", "smoothgraph[io]").dataset(path, format="ipc")
    return table.count_rows(), {field.name: str(field.type) for field in table.schema}, True


# --- arrays ----------------------------------------------------------------------------------------------------------------


def _npy(path, key):
    with path.open("rb") as stream:
        shape, dtype = _npy_header(stream)
    return TableShape(shape[0], int(np.prod(shape[1:])), dtype, in_place=dtype in (np.float32, np.float64))


def _npz(path, key):
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if {"indptr", "data", "shape"} <= set(names):
            with archive.open("shape.npy") as stream:
                n, d = np.lib.format.read_array(stream, allow_pickle=False).tolist()
            with archive.open("data.npy") as stream:
                (nnz,), dtype = _npy_header(stream)
            return TableShape(n, d, dtype, nnz)
        name = key or ("X" if "X" in names else names[0])
        if name not in names:
            raise ValueError(f"there is no array {name!r} in it")
        with archive.open(f"{name}.npy") as stream:
            shape, dtype = _npy_header(stream)
    return TableShape(shape[0], int(np.prod(shape[1:])), dtype)


def _npy_header(stream):
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if len(shape) == 0:
        raise ValueError("there is a single number in it, and no table")
    return shape, dtype


def _mtx(path, key):
    head, _ = _head(path)
    lines = iter(head.splitlines())
    kind = next(lines).lower()
    size = next(line for line in lines if line.strip() and not line.startswith(b"%"))
    n, d, *rest = (int(number) for number in size.split())
    entries = rest[0] * (2 if b"symmetric" in kind else 1) if rest else None
    return TableShape(n, d, nnz=entries)


def _libsvm(path, key):
    head, size = _head(path)
    lines = head.splitlines(keepends=True)
    lines = lines if len(head) >= size else lines[:-1]
    share = size / max(1, sum(map(len, lines)))
    columns = [int(entry.split(b":")[0]) for line in lines for entry in line.split(b"#")[0].split()[1:]]
    return TableShape(round(len(lines) * share), max(columns, default=1), nnz=round(len(columns) * share), is_exact=share == 1)


def _idx(path, key):
    head, _ = _head(path)
    axes = head[3]
    n, *rest = np.frombuffer(head, ">i4", axes, 4).tolist()
    return TableShape(n, int(np.prod(rest)), np.dtype(np.uint8 if head[2] == 8 else np.float64))


def _h5ad(path, key):
    with need("h5py", "smoothgraph[io]").File(path) as file:
        places = [f"obsm/{key}", f"layers/{key}"] if key not in (None, "X") else ["X"]
        found = next((file[place] for place in places if place in file), None)
        if found is None:
            raise ValueError(f"there is no {' and no '.join(places)} in it")
        if hasattr(found, "shape"):
            return TableShape(found.shape[0], int(np.prod(found.shape[1:])), found.dtype)
        n, d = (int(size) for size in found.attrs["shape"])
        return TableShape(n, d, found["data"].dtype, int(found["data"].shape[0]))


def _head(path: Path) -> tuple[bytes, float]:
    """The first bytes of what a file holds, uncompressed, and about how many there are in all."""
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower())
    with path.open("rb") as raw:
        stream: Any = raw if opener is None else opener(raw)
        head = stream.read(SAMPLED_BYTES)
        if len(head) < SAMPLED_BYTES:
            return head, len(head)
        if opener is None:
            return head, path.stat().st_size
        return head, len(head) * path.stat().st_size / max(1, raw.tell() - io.DEFAULT_BUFFER_SIZE)  # of what was unpacked


FRAMES = {".csv": _csv, ".tsv": _csv, ".parquet": _parquet, ".arrow": _arrow, ".feather": _arrow, ".ipc": _arrow}
ARRAYS = {
    ".npy": _npy,
    ".npz": _npz,
    ".mtx": _mtx,
    ".libsvm": _libsvm,
    ".svmlight": _libsvm,
    ".svm": _libsvm,
    ".idx": _idx,
    ".h5ad": _h5ad,
}
