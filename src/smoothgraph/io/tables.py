"""Files and data frames → samples.

In: a file of one of the kinds in `FRAME_READERS` and `ARRAY_READERS`, or a data frame. Out: a `Table`: X (n, d), dense or CSR,
with the ids and labels of its rows if there are any. Rows are samples. A missing value is an error, or its row is left out; no
value is filled in.

Files are untrusted: what they declare is held against their size and the memory before it is allocated, and whatever is wrong
with one ends in an error of one line.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from smoothgraph.files import check_target, existing, replacing, suffix
from smoothgraph.io.arrays import (
    read_cells_table,
    read_idx_table,
    read_libsvm_table,
    read_mtx_table,
    read_npy_table,
    read_npz_table,
)
from smoothgraph.io.cells import to_cells
from smoothgraph.io.columnar import read_arrow_frame, read_parquet_frame
from smoothgraph.io.frames import EXTRA, arrow_of, flat_name, samples_of
from smoothgraph.io.samples import Table, Wanted, clean, listed
from smoothgraph.io.text import read_text_frame
from smoothgraph.messages import one_line
from smoothgraph.optional import need

MAX_NAMES_KEPT = 1000  # names of columns that the metadata of a graph keeps


def read_table(
    path,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    key: str | None = None,
    missing: str = "error",
    encoding: str | None = None,
    max_memory: float | None = None,
) -> Table:
    """Read samples from a file; the end of its name says what kind it is.

    The kinds are csv, tsv, parquet, arrow/feather; npy, npz (of arrays, or of a scipy sparse matrix), mtx, libsvm/svmlight, idx
    (the format of MNIST), h5ad. Files of csv, tsv, libsvm, mtx and idx may be compressed (.gz, .bz2). An npy file that is
    large beside the memory is mapped, not read.

    Of a text table the first lines say whether commas, semicolons, tabs or bars are between the columns, and whether numbers
    have decimal points or commas. A first column without a name gives the ids, as pandas and R write the names of rows.

    Parameters
    ----------
    path : the file.
    columns : the columns to use, in files that name their columns; by default all except those of ids and labels.
    exclude : columns to leave out.
    id_column, label_column : columns (of an h5ad: of `obs`; of an npz: arrays) that name the rows and say their class.
    key : the array of an npz (default: X, or the only one there is), or the layer or obsm of an h5ad (default: X).
    missing : "error" raises an error for a missing value, "drop" leaves out its row; `n_dropped` of the table says how many,
        and rows that have no ids are then called by their numbers in the file, counted from 0.
    encoding : of a text table, such as "latin-1"; by default UTF-8, or UTF-16 if the file begins with its mark.
    max_memory : bytes; a table that needs more is refused before it is allocated. By default what the machine has.

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
    wanted = Wanted(_names(columns), _names(exclude), id_column, label_column, key, encoding, max_memory)
    kind = _kind(path)
    if kind in FRAME_READERS:
        frame, wanted, read_as = FRAME_READERS[kind](path, wanted)
        return clean(samples_of(frame, wanted)._replace(read_as=read_as), missing, max_memory)
    if kind not in ARRAY_READERS:
        kinds = ", ".join(sorted([*FRAME_READERS, *ARRAY_READERS]))
        raise ValueError(f"{path} is not of a kind that can be read: use {kinds}.")
    for name, value in (("columns", columns), ("exclude", exclude)):
        if value is not None:
            raise ValueError(f"{path} does not name its columns, so {name}={list(value)} cannot be chosen: leave {name} out.")
    return clean(ARRAY_READERS[kind](path, wanted), missing, max_memory)


def from_frame(
    frame,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    missing: str = "error",
) -> Table:
    """Samples from a data frame: pandas, polars, an Arrow table, or anything else with the Arrow stream interface.

    The index of a pandas frame gives the ids, unless it is just 0, 1, 2, … or an `id_column` is named. The levels of columns
    that have several are joined by points: a.b. The parameters are those of `read_table`.

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

    ids = frame_ids(frame)
    id_name, label_name = (None if name is None else flat_name(name) for name in (id_column, label_column))
    wanted = Wanted(_names(columns), _names(exclude), id_name, label_name)
    table = samples_of(arrow_of(frame), wanted)
    return clean(table._replace(ids=ids if table.ids is None else table.ids), missing)


def source_of(path, table: Table, key: str | None = None) -> dict[str, Any]:
    """Where a table came from, in plain values for the metadata of a graph. The folder of the file is nobody's business."""
    status = Path(path).stat()
    names = table.columns
    n = table.X.shape[0]
    facts: dict[str, Any] = {
        "file": Path(path).name,
        "bytes": status.st_size,
        "modified": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds"),
        "rows": n + table.n_dropped,
        "rows_used": n,
        "rows_dropped": table.n_dropped,
        "n_columns": table.X.shape[1],
    }
    if names is not None and len(names) <= MAX_NAMES_KEPT:
        facts["columns"] = names
    return facts | {name: value for name, value in (("key", key), ("read_as", table.read_as)) if value}


def _names(names):
    """Names of columns as text; None stays None."""
    if names is None:
        return None
    return [flat_name(name) for name in ([names] if isinstance(names, str) else names)]


def _kind(path):
    """The kind of a file by its name, such as ".csv"; the files of MNIST have no suffix."""
    return ".idx" if path.name.lower().removesuffix(".gz").endswith("-ubyte") else suffix(path)


def check_table_path(path) -> None:
    """Raise the error that `write_table` would end in for this path; to be called before the work is done."""
    if suffix(Path(path)) not in (".csv", ".parquet"):
        raise ValueError(f"{path} does not say in which format to write the table: end its name in .csv or .parquet.")
    check_target(path)


def write_table(path, columns: dict[str, Any]) -> None:
    """Write named columns to a .csv or .parquet file. Texts in a csv that begin like formulas get an apostrophe in front."""
    check_table_path(path)
    pa, kind = need("pyarrow", EXTRA), suffix(Path(path))
    if kind == ".csv":
        columns = {name: to_cells(np.asarray(values)) for name, values in columns.items()}
    try:
        texts = {name: np.asarray(values) for name, values in columns.items() if np.asarray(values).dtype.kind == "U"}
        # As Python's texts: Arrow ends those of numpy at their first NUL.
        table = pa.table(columns | {name: pa.array(values.tolist()) for name, values in texts.items()})
    except (pa.ArrowException, ValueError, TypeError) as error:  # columns of several lengths, complex numbers, odd objects
        raise ValueError(
            f"The columns {listed(list(columns))} are no table of numbers and texts: {one_line(str(error))}"
        ) from error
    with replacing(path) as unfinished:
        if kind == ".csv":
            need("pyarrow.csv", EXTRA).write_csv(table, unfinished)
        else:
            need("pyarrow.parquet", EXTRA).write_table(table, unfinished)


FRAME_READERS = {  # tables with named columns
    ".csv": read_text_frame,
    ".tsv": read_text_frame,
    ".parquet": read_parquet_frame,
    ".arrow": read_arrow_frame,
    ".feather": read_arrow_frame,
    ".ipc": read_arrow_frame,
}
ARRAY_READERS = {
    ".npy": read_npy_table,
    ".npz": read_npz_table,
    ".mtx": read_mtx_table,
    ".libsvm": read_libsvm_table,
    ".svmlight": read_libsvm_table,
    ".svm": read_libsvm_table,
    ".idx": read_idx_table,
    ".h5ad": read_cells_table,
}
