"""Files and data frames → samples.

In: a file of one of the kinds in `FRAME_READERS` and `READERS`, or a data frame. Out: a `Table`: X (n, d), dense or CSR, with
the ids and labels of its rows if there are any. Rows are samples. A missing value is an error, or its row is left out; no value
is filled in.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph.files import existing, replacing, suffix
from smoothgraph.io.h5ad import read_h5ad_table
from smoothgraph.optional import need

EXTRA = "smoothgraph[io]"
BLOCK_ROWS = 1 << 16  # rows searched for missing values at a time: a memory map is then never in memory as a whole
CSV_BLOCK_BYTES = 1 << 24  # bytes that pyarrow reads at a time; the types of columns are guessed from the first such block
MAX_LISTED = 10  # names that a message lists
IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}  # the third byte of an idx file → its dtype


class Table(NamedTuple):
    """Samples X (n, d), the ids and labels of its rows, and the names of its columns (None if there are none)."""

    X: Any
    ids: np.ndarray | None = None
    labels: np.ndarray | None = None
    columns: list[str] | None = None


def read_table(
    path,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    key: str | None = None,
    missing: str = "error",
) -> Table:
    """Read samples from a file; the end of its name says what kind it is.

    The kinds are csv, tsv, parquet, arrow/feather; npy (memory-mapped), npz (of arrays, or of a scipy sparse matrix), mtx,
    libsvm/svmlight, idx (the format of MNIST), h5ad. Files of csv, tsv, libsvm, mtx and idx may be compressed (.gz).

    Parameters
    ----------
    path : the file.
    columns : the columns to use, in files that name their columns; by default all except those of ids and labels.
    id_column, label_column : columns (of an h5ad: of `obs`; of an npz: arrays) that name the rows and say their class.
    key : the array of an npz (default: X, or the only one there is), or the layer or obsm of an h5ad (default: X).
    missing : "error" raises an error for a missing value, "drop" leaves out its row.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from smoothgraph.io import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("name,length,width\\na,1.5,2\\nb,3,4.5\\n")
    >>> table = read_table(path, id_column="name")
    >>> table.X.tolist(), table.ids.tolist()
    ([[1.5, 2.0], [3.0, 4.5]], ['a', 'b'])
    """
    path = existing(path)
    if missing not in ("error", "drop"):
        raise ValueError(f"missing={missing!r} is not known: use 'error' or 'drop'.")
    kind = ".idx" if path.name.removesuffix(".gz").endswith("-ubyte") else suffix(path)
    if kind in FRAME_READERS:
        frame = FRAME_READERS[kind](path, columns, id_column, label_column)
        return from_frame(frame, columns=columns, id_column=id_column, label_column=label_column, missing=missing)
    if kind not in READERS:
        raise ValueError(f"{path} is not of a kind that can be read: use {', '.join(sorted([*FRAME_READERS, *READERS]))}.")
    if columns is not None:
        raise ValueError(f"{path} does not name its columns, so columns={list(columns)} cannot be chosen: leave columns out.")
    return _clean(READERS[kind](path, key, id_column, label_column), missing)


def from_frame(
    frame,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    missing: str = "error",
) -> Table:
    """Samples from a data frame: pandas, polars, an Arrow table, or anything else with the Arrow stream interface.

    The index of a pandas frame gives the ids, unless it is just 0, 1, 2, … or an `id_column` is named. The parameters are those
    of `read_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> from smoothgraph.io import from_frame
    >>> frame = pd.DataFrame({"length": [1.5, 3.0], "width": [2, 4], "kind": ["x", "y"]}, index=["a", "b"])
    >>> table = from_frame(frame, label_column="kind")
    >>> table.X.tolist(), table.ids.tolist(), table.labels.tolist()
    ([[1.5, 2.0], [3.0, 4.0]], ['a', 'b'], ['x', 'y'])
    """
    from smoothgraph._checks import frame_ids  # imported late: it brings numba, which files of graphs do not need

    pa = need("pyarrow", EXTRA)
    ids = frame_ids(frame)
    if hasattr(frame, "reset_index"):
        frame = frame.reset_index(drop=True)  # the index would become a column
    table = pa.table(frame)
    names = _chosen(table.column_names, columns, id_column, label_column)
    special = [_values(table[name]) if name else None for name in (id_column, label_column)]
    X = np.empty((table.num_rows, len(names)), _float_type(pa, table, names))
    for j, name in enumerate(names):
        X[:, j] = _numbers(pa, name, table[name])
    return _clean(Table(X, ids if special[0] is None else special[0], special[1], names), missing)


def plain(values) -> np.ndarray:
    """Ids or labels as integers or text, which every file format can hold."""
    values = np.asarray(values)
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    return values.astype(str)


def read_labels(path, ids, *, id_column: str = "id", label_column: str = "label") -> np.ndarray:
    """Labels for the nodes called `ids`, as text; "" for a node that has no label.

    The file is a table with a column of ids and one of labels, and need not list every node. Or it has only a column of labels,
    with a row for each node in the order of the nodes, empty for nodes that have no label.
    """
    path = existing(path)
    if suffix(path) not in FRAME_READERS:
        raise ValueError(f"{path} is no table with named columns: use {', '.join(sorted(FRAME_READERS))}.")
    frame = FRAME_READERS[suffix(path)](path, None, id_column, label_column)
    if label_column not in frame.column_names:
        raise ValueError(f"{path} has no column {label_column!r} of labels: the columns are {_listed(frame.column_names)}.")
    labels = _values(frame[label_column]).astype(str)
    if id_column not in frame.column_names:
        if labels.size != len(ids):
            raise ValueError(
                f"{path} has {labels.size} labels for {len(ids)} nodes, and no column {id_column!r} that says which nodes "
                "they belong to."
            )
        return labels
    number = {name: i for i, name in enumerate(map(str, ids))}
    found = np.full(len(ids), "", labels.dtype)
    for name, label in zip(_values(frame[id_column]).astype(str), labels, strict=True):
        if name not in number:
            raise ValueError(
                f"{path} has a label for {name!s}, which is no node of the graph. The nodes are {_listed(list(number))}."
            )
        found[number[name]] = label
    return found


def write_table(path, columns: dict[str, Any]) -> None:
    """Write named columns to a .csv or .parquet file."""
    pa, kind = need("pyarrow", EXTRA), suffix(Path(path))
    if kind not in (".csv", ".parquet"):
        raise ValueError(f"{path} does not say in which format to write the table: end its name in .csv or .parquet.")
    table = pa.table(columns)
    with replacing(path) as unfinished:
        if kind == ".csv":
            need("pyarrow.csv", EXTRA).write_csv(table, unfinished)
        else:
            need("pyarrow.parquet", EXTRA).write_table(table, unfinished)


# --- tables with named columns ---------------------------------------------------------------------------------------------


def _chosen(there, columns, id_column, label_column):
    """The names of the columns that hold the features."""
    for name in [*(columns or []), *filter(None, [id_column, label_column])]:
        if name not in there:
            raise ValueError(f"There is no column {name!r}: the columns are {_listed(there)}.")
    names = list(columns) if columns else [name for name in there if name not in (id_column, label_column)]
    if not names:
        raise ValueError("No column is left for the features: all are ids or labels.")
    return names


def _listed(names):
    more = len(names) - MAX_LISTED
    return ", ".join(map(repr, names[:MAX_LISTED])) + (f" and {more} more" if more > 0 else "")


def _float_type(pa, table, names):
    """float32 if it holds every column exactly, else float64."""
    kinds = pa.float32(), pa.float16(), pa.uint8(), pa.int8(), pa.uint16(), pa.int16(), pa.bool_()
    return np.float32 if all(table.schema.field(name).type in kinds for name in names) else np.float64


def _numbers(pa, name, column):
    """A column as floats, with NaN for a missing value."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        example = next((value for value in column.to_pylist() if value is not None), None)
        raise ValueError(
            f"Column {name!r} holds {kind}, such as {example!r}, but features are numbers. Choose other columns (--columns), "
            "or say that it names the rows or their classes: id_column, label_column (--id-column, --label-column)."
        )
    return column.cast(pa.float64()).to_numpy()


def _values(column):
    """A column of ids or labels, with empty text for a missing value."""
    if column.null_count == 0:
        return plain(column.to_numpy())
    return plain(["" if value is None else str(value) for value in column.to_pylist()])


def _read_csv(path, columns, id_column, label_column):
    """The table in a csv or tsv file. A first line of only numbers is data: the columns are then called 0, 1, 2, …"""
    pa, csv = need("pyarrow", EXTRA), need("pyarrow.csv", EXTRA)
    delimiter = "\t" if suffix(path) == ".tsv" else ","
    with gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else open(path, encoding="utf-8-sig") as file:
        first = file.readline().rstrip("\r\n").split(delimiter)
    if first == [""]:
        raise ValueError(f"{path} is empty.")
    names = [str(j) for j in range(len(first))] if all(map(_is_number, first)) else None
    reading = csv.ReadOptions(column_names=names, block_size=CSV_BLOCK_BYTES)
    parsing = csv.ParseOptions(delimiter=delimiter)
    try:
        with csv.open_csv(path, reading, parsing) as opened:
            schema = opened.schema
        if len(schema.names) != len(set(schema.names)):
            twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
            raise ValueError(f"{path} has several columns of the same name: {_listed(twice)}.")
        # The types are guessed from the first block. A column of integers, or an empty one, may have other numbers later on.
        unsure = [f for f in schema if f.name not in (id_column, label_column)]
        types = {f.name: pa.float64() for f in unsure if pa.types.is_integer(f.type) or pa.types.is_null(f.type)}
        return csv.read_csv(path, reading, parsing, csv.ConvertOptions(column_types=types))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path, columns, id_column, label_column):
    parquet = need("pyarrow.parquet", EXTRA)
    there = parquet.read_schema(path).names
    wanted = None if columns is None else [name for name in [*columns, id_column, label_column] if name in there]
    return parquet.read_table(path, columns=wanted)


def _read_arrow(path, columns, id_column, label_column):
    pa = need("pyarrow", EXTRA)
    with pa.memory_map(str(path)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(source).read_all()


# --- arrays ----------------------------------------------------------------------------------------------------------------


def _read_npy(path, key, id_column, label_column):
    _only_samples(path, id_column, label_column)
    return Table(_two_axes(np.load(path, mmap_mode="r"), path))


def _read_npz(path, key, id_column, label_column):
    with np.load(path) as arrays:
        if "metadata" in arrays.files:
            raise ValueError(f"{path} holds a graph that smoothgraph wrote, not samples.")
        if key is None and {"format", "shape", "data"} <= set(arrays.files):
            return Table(sp.csr_matrix(sp.load_npz(path)), *(_array(arrays, name, path) for name in (id_column, label_column)))
        if key is None:
            tables = [name for name in arrays.files if name not in (id_column, label_column)]
            key = "X" if "X" in tables or len(tables) != 1 else tables[0]
        X, ids, labels = (_array(arrays, name, path) for name in (key, id_column, label_column))
    return Table(_two_axes(X, path), ids, labels)


def _array(arrays, name, path):
    """The array of this name; None if no name is given."""
    if name is None:
        return None
    if name not in arrays.files:
        raise ValueError(f"{path} has no array {name!r}: it has {_listed(arrays.files)}.")
    return arrays[name]


def _read_mtx(path, key, id_column, label_column):
    from scipy.io import mmread

    _only_samples(path, id_column, label_column)
    X = mmread(path)
    return Table(sp.csr_matrix(X) if sp.issparse(X) else X)


def _read_libsvm(path, key, id_column, label_column):
    from sklearn.datasets import load_svmlight_file

    _only_samples(path, id_column, None)
    X, labels = load_svmlight_file(str(path))
    return Table(sp.csr_matrix(X), None, labels.astype(np.int64) if np.array_equal(labels, labels.astype(np.int64)) else labels)


def _read_idx(path, key, id_column, label_column):
    """The format of MNIST: two bytes 0, a byte for the type, one for the number of axes, their lengths, then the values."""
    _only_samples(path, id_column, label_column)
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in IDX_TYPES:
        raise ValueError(f"{path} is no idx file: it does not begin with two bytes 0 and a known type.")
    kind, axes = np.dtype(IDX_TYPES[data[2]]), data[3]
    shape = np.frombuffer(data, ">i4", axes, 4).tolist() if len(data) >= 4 + 4 * axes else [-1]
    if len(data) != 4 + 4 * axes + kind.itemsize * int(np.prod(shape)):
        raise ValueError(f"{path} is cut short, or too long: its {len(data)} bytes do not hold an array of shape {shape}.")
    X = np.frombuffer(data, kind, offset=4 + 4 * axes).reshape(shape)
    return Table(_two_axes(X.astype(kind.newbyteorder("=")), path))


def _read_h5ad(path, key, id_column, label_column):
    X, ids, labels = read_h5ad_table(path, key, id_column, label_column)
    return Table(X if sp.issparse(X) else _two_axes(X, path), ids, labels)


def _only_samples(path, id_column, label_column):
    for name, value in (("id_column", id_column), ("label_column", label_column)):
        if value is not None:
            raise ValueError(f"{path} holds only samples: there is no {name}={value!r} in it.")


def _two_axes(X, path):
    """X with one row for each sample: images are flattened."""
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{path} holds {X.dtype}, but features are numbers.")
    if X.ndim < 2:
        raise ValueError(f"{path} has shape {X.shape}: a table of samples has two axes.")
    return X if X.ndim == 2 else X.reshape(X.shape[0], -1)


# --- missing values --------------------------------------------------------------------------------------------------------


def _clean(table, missing):
    """The table without missing values, and with one id and one label for each row."""
    X, ids, labels, names = table
    for what, values in (("ids", ids), ("labels", labels)):
        if values is not None and np.shape(values) != (X.shape[0],):
            raise ValueError(f"There are {np.shape(values)} {what} for {X.shape[0]} samples.")
    ids, labels = (None if values is None else plain(values) for values in (ids, labels))
    gaps = _rows_with_gaps(X)
    if gaps.size and missing == "error":
        row = X[int(gaps[0])]
        column = int(np.flatnonzero(np.isnan(row.toarray().ravel() if sp.issparse(row) else row))[0])
        where = f"row {int(gaps[0])}" + ("" if ids is None else f" ({ids[int(gaps[0])]})")
        raise ValueError(
            f"{gaps.size} of {X.shape[0]} rows have missing values; the first is in {where}, column "
            f"{column if names is None else repr(names[column])}, counted from 0. Values are not guessed: fill them in, or "
            "leave those rows out with missing='drop' (--missing drop)."
        )
    if gaps.size:
        keep = np.delete(np.arange(X.shape[0]), gaps)
        if keep.size == 0:
            raise ValueError("Every row has a missing value, so that no row is left. Choose columns without missing values.")
        X, ids, labels = X[keep], None if ids is None else ids[keep], None if labels is None else labels[keep]
    if ids is not None and np.unique(ids).size < ids.size:
        values, counts = np.unique(ids, return_counts=True)
        raise ValueError(f"The id {str(values[counts.argmax()])!r} names {counts.max()} rows: ids must differ.")
    return Table(X, ids, labels, names)


def _rows_with_gaps(X):
    """The numbers of the rows that have a missing value."""
    if X.dtype.kind != "f":
        return np.empty(0, np.int64)
    if sp.issparse(X):
        return np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[np.isnan(X.data)])
    gaps = [np.isnan(X[begin : begin + BLOCK_ROWS]).any(axis=1) for begin in range(0, X.shape[0], BLOCK_ROWS)]
    return np.flatnonzero(np.concatenate(gaps)) if gaps else np.empty(0, np.int64)


FRAME_READERS = {  # tables with named columns
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".ipc": _read_arrow,
}
READERS = {  # arrays
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mtx": _read_mtx,
    ".libsvm": _read_libsvm,
    ".svmlight": _read_libsvm,
    ".svm": _read_libsvm,
    ".idx": _read_idx,
    ".h5ad": _read_h5ad,
}
