"""Arrow tables → samples.

In: an Arrow table and what is `Wanted`, or a frame of pandas or another library. Out: a `Table`, not yet cleaned: X dense, of
float32 if that holds every column exactly, else of float64, with NaN for a missing value.
"""

from decimal import Decimal
from typing import Any

import numpy as np

from smoothgraph.io.door import BadFileError
from smoothgraph.io.samples import Table, Wanted, listed, plain, shown
from smoothgraph.memory import check_memory
from smoothgraph.optional import need

EXTRA = "smoothgraph[io]"
OTHER_COLUMNS = (
    "Leave it out (--exclude), or say that it names the rows or their classes: id_column, label_column (--id-column, "
    "--label-column)."
)


def samples_of(table: Any, wanted: Wanted) -> Table:
    """The features, ids and labels of an Arrow table."""
    pa = need("pyarrow", EXTRA)
    check_names(table.column_names)
    names = wanted.features(table.column_names)
    place = {name: j for j, name in enumerate(table.column_names)}  # Arrow itself looks through all names for each
    special = ((wanted.id_column, "ids"), (wanted.label_column, "labels"))
    ids, labels = (None if name is None else values_of(table.column(place[name]), what, wanted.limit) for name, what in special)
    features = [table.column(place[name]) for name in names]
    dtype = _float_type(pa, features)
    check_memory(
        np.dtype(dtype).itemsize * table.num_rows * len(names),
        f"The table has {table.num_rows} rows and {len(names)} columns of numbers, which need",
        "Use fewer columns (--columns, --exclude), or an npy file, which can be mapped.",
        wanted.limit,
    )
    X = np.empty((table.num_rows, len(names)), dtype)
    for j, name in enumerate(names):
        X[:, j] = _numbers(pa, name, features[j])
    return Table(X, ids, labels, names)


def arrow_of(frame: Any) -> Any:
    """An Arrow table of a frame of pandas or polars, or of what else has the Arrow stream interface."""
    pa = need("pyarrow", EXTRA)
    if not hasattr(frame, "reset_index"):
        try:
            return pa.table(frame)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise ValueError(f"A {type(frame).__name__} cannot be read as a table: {_first_line(error)}.") from error
    names = [flat_name(name) for name in frame.columns]
    check_names(names)
    arrays = [_arrow_column(pa, name, frame.iloc[:, j]) for j, name in enumerate(names)]
    return pa.table(arrays, names=names)


def check_names(names: list[str], where: str = "The table") -> None:
    """Raise if two columns have the same name: which of them is meant would be a guess."""
    if len(set(names)) < len(names):
        found, twice = set(), {}  # a dict keeps the order
        for name in names:
            if name in found:
                twice[name] = True
            found.add(name)
        raise BadFileError(f"{where} has several columns of the same name: {listed(list(twice))}. Rename them.")


def values_of(column: Any, what: str = "ids", limit: float | None = None) -> np.ndarray:
    """A column of ids or labels, with empty text for a missing value."""
    pa = need("pyarrow", EXTRA)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise ValueError(f"A column of {kind} cannot be used for {what}: text or whole numbers can.")
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return plain(column.to_numpy(), what, limit)
    return plain(np.array([text for chunk in column.chunks for text in _texts(pa, chunk)], dtype=object), what, limit)


def _texts(pa, chunk):
    """The values of an array as texts; one that a dictionary repeats is in memory once."""
    if not pa.types.is_dictionary(chunk.type):
        return ["" if value is None else str(value) for value in chunk.to_pylist()]
    texts = _texts(pa, chunk.dictionary)
    return ["" if code is None else texts[code] for code in chunk.indices.to_pylist()]


def flat_name(name):
    """The name of a column as text; the levels of a MultiIndex are joined: ("a", "b") is called a.b."""
    return ".".join(str(level) for level in name if level != "") if isinstance(name, tuple) else str(name)


def _arrow_column(pa, name, series):
    try:
        return pa.Array.from_pandas(series)
    except (TypeError, ValueError, pa.ArrowException) as error:
        number = [isinstance(value, int | float | Decimal | np.number) for value in series]
        if number and all(good or value is None for good, value in zip(number, series, strict=True)):
            return pa.array([None if value is None else float(value) for value in series])  # Decimals among floats
        bad = next((value for good, value in zip(number, series, strict=True) if not good), None)
        reason = f"such as {shown(bad)}, a {type(bad).__name__}" if bad is not None else _first_line(error)
        raise ValueError(
            f"Column {shown(name)} holds {series.dtype}, {reason}, but features are numbers. {OTHER_COLUMNS}"
        ) from error


def _first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _float_type(pa, columns):
    """float32 if it holds every column exactly, else float64."""
    kinds = pa.float32(), pa.float16(), pa.uint8(), pa.int8(), pa.uint16(), pa.int16(), pa.bool_()
    return np.float32 if all(column.type in kinds for column in columns) else np.float64


def _numbers(pa, name, column):
    """A column as floats, with NaN for a missing value."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        raise ValueError(_no_numbers(pa, name, column))
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy()


def _no_numbers(pa, name, column):
    """A sentence for a column that holds no numbers: it shows the first value that is none."""
    kind = column.type
    if pa.types.is_temporal(kind):
        remedy = "Make numbers of it, such as days since the first, or leave it out (--exclude)."
        return f"Column {shown(name)} holds dates or times ({kind}), but features are numbers. {remedy}"
    if pa.types.is_nested(kind):
        remedy = "Write a column for each of its parts, or leave it out (--exclude)."
        return f"Column {shown(name)} holds {shown(str(kind))[1:-1]}, but features are numbers. {remedy}"
    values = [value for value in column.to_pylist() if value is not None]
    bad = [value for value in values if not is_number(str(value))]
    if values and not bad:
        return f"Column {shown(name)} holds numbers as text, such as {shown(values[0])}: write it as numbers."
    example = f", such as {shown(bad[0])}" if bad else ""
    return f"Column {shown(name)} holds {kind}{example}, but features are numbers. {OTHER_COLUMNS}"


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number with this decimal point."""
    if decimal != ".":
        text = text.replace(".", "_").replace(decimal, ".")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
