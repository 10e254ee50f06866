"""What reading a table asks for and returns, and the last check of what was read.

In: what the caller asks for (`Wanted`), and the samples as a reader found them. Out: a `Table` whose rows have no missing
value, whose ids differ, and which says how many rows were left out. No value is filled in.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph.memory import check_memory
from smoothgraph.messages import printable

BLOCK_ROWS = 1 << 16  # rows searched for missing values at a time: a memory map is then never in memory as a whole
MAX_LISTED = 10  # names that a message lists
LONGEST_SHOWN = 60  # characters of a value or a name that a message shows


class Table(NamedTuple):
    """Samples X (n, d), the ids and labels of its rows, and the names of its columns (None if there are none).

    `n_dropped` rows of the file are not here, because a value was missing. `read_as` says how a text was understood where that
    had to be found out: "delimiter ';', decimal commas".
    """

    X: Any
    ids: np.ndarray | None = None
    labels: np.ndarray | None = None
    columns: list[str] | None = None
    n_dropped: int = 0
    read_as: str = ""


class Wanted(NamedTuple):
    """What a caller of `read_table` asks for; `limit` is the memory in bytes that may be used, None for what there is."""

    columns: list[str] | None = None
    exclude: list[str] | None = None
    id_column: str | None = None
    label_column: str | None = None
    key: str | None = None
    encoding: str | None = None
    limit: float | None = None

    def features(self, there: Sequence[str]) -> list[str]:
        """The names of the columns that hold the features, of those that are there."""
        known = set(there)
        for name in [*(self.columns or []), *(self.exclude or []), *filter(None, [self.id_column, self.label_column])]:
            if name not in known:
                raise ValueError(f"There is no column {shown(name)}: the columns are {listed(there)}.")
        left_out = {self.id_column, self.label_column, *(self.exclude or [])}
        names = [name for name in there if name not in left_out] if self.columns is None else list(self.columns)
        both = sorted(set(names) & set(self.exclude or []))
        if both:
            raise ValueError(f"The column {shown(both[0])} is both asked for and left out: name it once.")
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"The column {shown(twice)} is asked for twice: name it once.")
        if not names:
            raise ValueError(f"No column is left for the features: there are {len(there)} columns, of ids, labels or left out.")
        return names

    def needed(self, there: Sequence[str]) -> list[str]:
        """The names of all columns that have to be read."""
        features = self.features(there)
        special = [name for name in (self.id_column, self.label_column) if name and name not in features]
        return list(dict.fromkeys([*features, *special]))


def shown(value: Any) -> str:
    """A value or a name as a message shows it: on one line, and cut where it is long."""
    text = printable(str(value))
    text = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
    return f"'{text}'" if isinstance(value, str) else text


def listed(names: Sequence[Any]) -> str:
    """The first of the names, for a message."""
    more = len(names) - MAX_LISTED
    return ", ".join(map(shown, names[:MAX_LISTED])) + (f" and {more} more" if more > 0 else "")


def plain(values: Any, what: str = "ids", limit: float | None = None) -> np.ndarray:
    """Ids or labels as integers or text, which every file format can hold.

    NumPy gives every text the room of the longest, so that one long text among many rows could ask for any amount of memory.
    """
    values = np.asarray(values)
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    if values.dtype.kind in "OT":
        values = np.array([str(value) for value in values.ravel()], dtype=object).reshape(values.shape)
        longest = max(map(len, values.ravel()), default=0)
        needs = f"The longest of the {values.size} {what} has {longest} characters; with room for it in every row they need"
        check_memory(4 * longest * values.size, needs, "Use shorter texts, or another column.", limit)
    return values.astype(str)


def clean(table: Table, missing: str, limit: float | None = None) -> Table:
    """The table without missing values, with one id and one label for each row.

    Where rows are dropped from a table without ids, the ids are the numbers of the rows in the file, counted from 0: else
    nobody could say which row a node came from.
    """
    X, ids, labels, names = table[:4]
    n = X.shape[0]
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # entries of one place add up, as scipy has it
    if n == 0 or X.shape[1] == 0:
        raise ValueError(f"There are no samples: the table has {n} rows and {X.shape[1]} columns of features.")
    for what, values in (("ids", ids), ("labels", labels)):
        if values is not None and np.shape(values) != (n,):
            raise ValueError(f"There are {np.shape(values)} {what} for {n} samples.")
    ids, labels = None if ids is None else plain(ids, "ids", limit), None if labels is None else plain(labels, "labels", limit)
    gaps = _rows_with_gaps(X)
    if gaps.size and missing == "error":
        raise ValueError(_missing_text(X, ids, names, gaps))
    if gaps.size:
        keep = np.delete(np.arange(n), gaps)
        if keep.size == 0:
            raise ValueError(f"Every row has a missing value, so that no row is left. {_emptiest(X, names)}")
        X, labels = X[keep], None if labels is None else labels[keep]
        ids = keep if ids is None else ids[keep]
    if ids is not None:
        _check_ids_differ(ids)
    return table._replace(X=X, ids=ids, labels=labels, n_dropped=int(gaps.size))


def _rows_with_gaps(X):
    """The numbers of the rows that have a missing value."""
    if X.dtype.kind != "f":
        return np.empty(0, np.int64)
    if sp.issparse(X):
        return np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[np.isnan(X.data)])
    gaps = [np.isnan(X[begin : begin + BLOCK_ROWS]).any(axis=1) for begin in range(0, X.shape[0], BLOCK_ROWS)]
    return np.flatnonzero(np.concatenate(gaps))


def _missing_text(X, ids, names, gaps):
    row = X[int(gaps[0])]
    column = int(np.flatnonzero(np.isnan(row.toarray().ravel() if sp.issparse(row) else row))[0])
    where = f"row {int(gaps[0])}" + ("" if ids is None else f" ({shown(str(ids[int(gaps[0])]))})")
    remedy = "leave those rows out with missing='drop' (--missing drop)"
    if gaps.size == X.shape[0]:
        remedy = "use other columns"
    more = f" {_emptiest(X, names)}" if gaps.size == X.shape[0] else ""
    return (
        f"{gaps.size} of {X.shape[0]} rows have missing values; the first is in {where}, column "
        f"{column if names is None else shown(names[column])}, counted from 0. Values are not guessed: "
        f"fill them in, or {remedy}.{more}"
    )


def _emptiest(X, names):
    """A sentence that names the columns with the most missing values."""
    if sp.issparse(X) or names is None:
        return "No column is without them."
    counts = sum(np.isnan(X[begin : begin + BLOCK_ROWS]).sum(axis=0) for begin in range(0, X.shape[0], BLOCK_ROWS))
    worst = [j for j in np.argsort(-counts, kind="stable")[:MAX_LISTED] if counts[j]]
    columns = ", ".join(f"{shown(names[j])} ({counts[j]} of {X.shape[0]})" for j in worst)
    return f"Most are missing in {columns}: leave columns out with exclude (--exclude)."


def _check_ids_differ(ids):
    if ids.dtype.kind == "U" and (ids == "").any():
        row = int(np.argmax(ids == ""))
        raise ValueError(f"Row {row}, counted from 0, has no id: give every row one, or name another column for them.")
    values, counts = np.unique(ids, return_counts=True)
    if values.size < ids.size:
        raise ValueError(
            f"The id {shown(str(values[counts.argmax()]))} names {counts.max()} rows: ids must differ. Name another column "
            "(--id-column), or none."
        )
