"""Text tables, csv and tsv → Arrow tables.

In: a path and what is `Wanted`. Out: an Arrow table of the wanted columns, numbers as float64, ids and labels as text or whole
numbers, and a few words on how the text was understood. The first lines say which delimiter and decimal point there are. Every
error names the line, and shows the value that is wrong, not one that is right.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from smoothgraph.files import suffix
from smoothgraph.io.compressed import opened
from smoothgraph.io.door import BadFileError, check_declared, reading
from smoothgraph.io.frames import EXTRA, OTHER_COLUMNS, check_names, is_number
from smoothgraph.io.samples import Wanted, listed, shown
from smoothgraph.messages import printable
from smoothgraph.optional import need

BLOCK_BYTES = 1 << 24  # bytes that Arrow reads at a time; the types of columns are guessed from the first such block
SAMPLE_BYTES = 1 << 18  # bytes from which delimiter, decimal point and header are found out
MAX_LINE_BYTES = 1 << 26  # of the first line: 64 MB without an end are no header
MAX_COLUMNS = 100_000  # Arrow needs 13 kB for a column of text however few rows there are
SAMPLE_LINES = 50  # lines that are looked at to find out the delimiter
DELIMITERS = "\t;|, "  # a delimiter that comes first is preferred to those behind it: commas also stand in numbers and texts
MARKS = ["", "NA", "N/A", "n/a", "na", "N.A.", "n.a.", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "-NaN", "NULL", "null"]
MARKS += [
    "Null",
    "None",
    "none",
    "NONE",
    "?",
    ".",
    "-",
    "--",
    "missing",
    "nil",
    "1.#QNAN",
    "-1.#IND",
    "1.#IND",
    "-1.#QNAN",
    "NaT",
]
MISSING = frozenset(MARKS) | {" " + mark for mark in MARKS}  # of "1, NA" the mark begins with a space
TRUTHS = ("true", "false")
FEWER = "Use fewer columns (--columns, --exclude), or write it as npy, which can be mapped."
ENCODING_REMEDY = "say its encoding (--encoding latin-1, or cp1252), or convert it: iconv -f latin1 -t utf-8"


class Dialect(NamedTuple):
    """How the text is written.

    `names` are those of the columns, and `n_blank` empty lines come before the first that is not. If `has_row_names`, the first
    column had no name.
    """

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    n_blank: int
    has_header: bool
    has_row_names: bool

    def __str__(self) -> str:
        words = [] if self.delimiter == "," else [f"delimiter {self.delimiter!r}"]
        words += ["decimal commas"] if self.decimal == "," else []
        words += [f"encoding {self.encoding}"] if self.encoding != "utf-8" else []
        return ", ".join(words)


def read_text_frame(path: Path, wanted: Wanted) -> tuple[Any, Wanted, str]:
    """(the Arrow table of a csv or tsv file, what is wanted of it, how the text was understood).

    A first line of only numbers is data: the columns are then called 0, 1, 2, … A first column without a name, as pandas and R
    write their row names, gives the ids.
    """
    with reading(path, "a text table"):
        dialect = _dialect(path, wanted.encoding)
        check_names(dialect.names, printable(str(path)))
    wanted = _with_row_names(dialect, wanted)
    features = wanted.features(dialect.names)
    with reading(path, "a text table"):
        types = _types(path, dialect, wanted, features)
        table = _read(path, dialect, types, wanted.limit)
        for name in (wanted.id_column, wanted.label_column):
            if name in types and name not in features:
                table = table.set_column(table.column_names.index(name), name, whole_numbers(table[name]))
    if dialect.has_row_names and wanted.id_column == dialect.names[0] and _only_counts(table[dialect.names[0]]):
        wanted = wanted._replace(id_column=None)
    return table, wanted._replace(columns=features, exclude=None), str(dialect)


def _with_row_names(dialect, wanted):
    """A first column without a name is no feature: it gives the ids, if no other column does."""
    first = dialect.names[0]
    if not dialect.has_row_names or first in (wanted.columns or []) or first in (wanted.exclude or []):
        return wanted
    if wanted.id_column is None:
        return wanted._replace(id_column=first)
    if first in (wanted.id_column, wanted.label_column) or wanted.columns is not None:
        return wanted
    return wanted._replace(exclude=[*(wanted.exclude or []), first])


# --- how is it written? ------------------------------------------------------------------------------------------------------


def _dialect(path, encoding):
    data, is_whole = _beginning(path)
    if not data.strip(b"\r\n\t \xef\xbb\xbf\xff\xfe\0"):
        raise BadFileError(f"{printable(str(path))} is empty.")
    encoding = _encoding(path, data, encoding)
    text = _decoded(path, data, encoding, is_whole)
    lines = text.splitlines(keepends=True)
    n_blank = next(i for i, line in enumerate(lines) if line.strip("\r\n\t "))
    lines = lines[n_blank:] if is_whole or len(lines) < n_blank + 2 else lines[n_blank:-1]  # the last may be cut
    delimiter = _delimiter(lines[:SAMPLE_LINES], "\t" if suffix(path) in (".tsv", ".tab") else ",")
    rows = _rows(lines[: SAMPLE_LINES + 1], delimiter)
    first = [field.strip().strip('"') for field in rows[0]]
    if len(first) > MAX_COLUMNS:
        raise BadFileError(
            f"{printable(str(path))} has {len(first)} columns, and a text table may have {MAX_COLUMNS}. Are the samples its "
            "columns? Transpose it, or write it as npy or parquet."
        )
    if is_whole and len([row for row in rows if row]) < 2 and not all(map(is_number, first)):
        raise BadFileError(f"{printable(str(path))} has a header, but no rows.")
    has_header = not all(is_number(field) or is_number(field, ",") for field in first)
    decimal = _decimal(delimiter, rows[has_header:])
    row_names = has_header and first[0] in ("", "Unnamed: 0") and len(first) > 1
    names = [name or str(j) for j, name in enumerate(first)] if has_header else [str(j) for j in range(len(first))]
    return Dialect(encoding, delimiter, decimal, names, n_blank, has_header, row_names)


def _beginning(path):
    """(the first bytes of a file, with at least one whole line, whether that is all of it)."""
    with opened(path) as file:
        data = file.read(SAMPLE_BYTES)
        while b"\n" not in data and b"\r" not in data and len(data) < MAX_LINE_BYTES and (more := file.read(SAMPLE_BYTES)):
            data += more
        is_whole = not file.read(1)
    if b"\n" not in data and b"\r" not in data and not is_whole:
        raise BadFileError(
            f"{printable(str(path))} has no end of a line in its first {len(data) >> 20} MB: is it a text table?"
        )
    return data, is_whole


def _encoding(path, data, encoding):
    """The encoding that is asked for, or that the first bytes say, or UTF-8."""
    if encoding is not None:
        try:
            return codecs.lookup(encoding).name
        except LookupError:
            raise BadFileError(f"encoding={encoding!r} is not known: use a name such as utf-8, latin-1 or utf-16.") from None
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if b"\0" in data:
        raise BadFileError(
            f"{printable(str(path))} is no text: it has a byte 0 at {data.index(0)}. If it is UTF-16, use --encoding utf-16."
        )
    return "utf-8"


def _decoded(path, data, encoding, is_whole):
    """The text of the first bytes; a character that is cut at their end is left out."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data, is_whole)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadFileError(_wrong_encoding(path, line, data[error.start], encoding)) from None
    return text.removeprefix("\ufeff")


def _wrong_encoding(path, line, byte, encoding):
    name = "UTF-8" if encoding == "utf-8" else encoding
    return f"{printable(str(path))} is not {name}: line {line} has the byte 0x{byte:02x}. If it is text, {ENCODING_REMEDY}."


def _delimiter(lines, default):
    """The delimiter that gives all first lines the same number of fields, at least two; the default if none does."""
    found = []
    for delimiter in DELIMITERS:
        rows = [row for row in _rows(lines, delimiter) if row]
        is_even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
        if is_even and (delimiter != " " or all(is_number(field) for row in rows[1:] for field in row)):
            found.append(delimiter)
    if not found:  # lines of different lengths: the error names the first
        return max(default + DELIMITERS.strip(" "), key=lines[0].count)
    return default if default in found and not set(found) - {default, ",", " "} else found[0]


def _decimal(delimiter, rows):
    """The decimal point: a comma if a field can be read in no other way, or if semicolons, which come with it, are between."""
    fields = [field.strip() for row in rows for field in row]
    commas = [field for field in fields if "," in field and is_number(field, ",")]
    points = [field for field in fields if "." in field and is_number(field)]
    if delimiter == "," or not commas or points:
        return "."
    thousands = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")  # 1,234 may be a thousand
    return "," if delimiter == ";" or not all(map(thousands.fullmatch, commas)) else "."


def _rows(lines, delimiter):
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return [line.rstrip("\r\n").split(delimiter) for line in lines]


# --- reading -----------------------------------------------------------------------------------------------------------------


def _types(path, dialect, wanted, features):
    """The types of the columns that are read, guessed from the first block. Numbers are float64: 1 may become 1.5 later."""
    pa = need("pyarrow", EXTRA)
    types = {name: pa.string() for name in wanted.needed(dialect.names)}
    try:
        with opened(path) as file, _reader(file, dialect, types, frozenset(features)) as reader:
            schema = reader.schema
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise BadFileError(_explained(path, dialect, types, error)) from error
    kinds = dict(zip(schema.names, schema.types, strict=True))
    others = [name for name in features if not _is_numeric(pa, kinds[name])]
    if others:
        raise BadFileError(_bad_value(path, dialect, others))
    return types | {name: pa.bool_() if pa.types.is_boolean(kinds[name]) else pa.float64() for name in features}


def _is_numeric(pa, kind):
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return is_number or pa.types.is_boolean(kind) or pa.types.is_null(kind)


def _reader(file, dialect, types, guessed=frozenset()):
    """A reader of the columns of these types; the types of the guessed ones are to be found out."""
    arrow = need("pyarrow.csv", EXTRA)
    how = arrow.ReadOptions(
        column_names=dialect.names,
        skip_rows=dialect.n_blank,
        skip_rows_after_names=int(dialect.has_header),
        block_size=BLOCK_BYTES,
        encoding=dialect.encoding,
    )
    # In a table of one column an empty line is a missing value; elsewhere it is no row.
    empty_lines = {"ignore_empty_lines": len(dialect.names) > 1}
    parsing = arrow.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, **empty_lines)
    converting = arrow.ConvertOptions(
        include_columns=list(types),
        column_types={name: kind for name, kind in types.items() if name not in guessed},
        null_values=sorted(MISSING),
        decimal_point=dialect.decimal,
    )
    return arrow.open_csv(file, how, parsing, converting)


def _read(path, dialect, types, limit):
    """The columns of these types, a block at a time, so that what expands beyond the limit is refused on the way."""
    pa = need("pyarrow", EXTRA)
    batches, count, file = [], 0, _CountedQuotes(opened(path))
    try:
        with file, _reader(file, dialect, types) as reader:
            for batch in reader:
                count += batch.nbytes
                check_declared(path, 2 * count, "a table", limit, FEWER)
                batches.append(batch)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise BadFileError(_explained(path, dialect, types, error)) from error
    if file.count % 2:
        _check_last_quote(path, dialect)
    if not count:
        raise BadFileError(f"{printable(str(path))} has a header, but no rows.")
    return pa.Table.from_batches(batches)


class _CountedQuotes(io.RawIOBase):
    """A stream that counts the quotes that pass: if their number is odd, the last may be one that is never closed."""

    def __init__(self, file: Any):
        self._file, self.count = file, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.count += data.count(b'"')
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


def whole_numbers(column):
    """A column of text as whole numbers, if it can be written back as it was: 007 and 1.0 stay text."""
    pa = need("pyarrow", EXTRA)
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(pa.string()).equals(column) else column


def _only_counts(column):
    """Whether ids are 0, 1, 2, …, as pandas writes the index of a frame that has none."""
    pa = need("pyarrow", EXTRA)
    return pa.types.is_integer(column.type) and bool((column.to_numpy() == range(len(column))).all())


# --- what is wrong? ----------------------------------------------------------------------------------------------------------


def _lines(path, dialect) -> Iterator[tuple[int, list[str]]]:
    """(the number of its line, its fields) for each row, by Python's own reader. Bytes that are no text become surrogates."""
    with io.TextIOWrapper(opened(path), dialect.encoding, "surrogateescape", newline="") as text:
        rows = csv.reader(iter(lambda: text.readline(MAX_LINE_BYTES), ""), delimiter=dialect.delimiter)
        line = 1
        try:
            for number, row in enumerate(rows):
                if number >= dialect.n_blank + dialect.has_header and row:
                    yield line, row
                line = rows.line_num + 1
        except csv.Error as error:
            raise BadFileError(f"{printable(str(path))}, line {line}: {error}. Is a quote not closed?") from None
        except UnicodeError as error:
            raise BadFileError(f"{printable(str(path))}, near line {line}: {error}. {ENCODING_REMEDY}.") from None


def _explained(path, dialect, types, error):
    """What is wrong with a text that Arrow did not read, and in which line."""
    pa = need("pyarrow", EXTRA)
    numbers = [dialect.names.index(name) for name, kind in types.items() if pa.types.is_floating(kind)]
    truths = [dialect.names.index(name) for name, kind in types.items() if pa.types.is_boolean(kind)]
    needed = [dialect.names.index(name) for name in types]
    width = len(dialect.names)
    for line, row in _lines(path, dialect):
        if len(row) != width:
            return (
                f"{printable(str(path))}, line {line}: there are {len(row)} fields, and the first line has {width}. "
                f"The delimiter is taken to be {dialect.delimiter!r}."
            )
        bad = next((j for j in numbers if not _is_value(row[j], dialect)), None)
        bad = next((j for j in truths if not _is_value(row[j], dialect, TRUTHS)), bad)
        wrong = next((j for j in needed if not row[j].isascii() and _byte_of(row[j])), None)
        if wrong is not None:
            return _wrong_encoding(path, line, _byte_of(row[wrong]), dialect.encoding)
        if bad is not None:
            return _no_number(path, dialect, line, dialect.names[bad], row[bad])
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{printable(str(path))} cannot be read as a text table: {shown(reason)[1:-1]}."


def _bad_value(path, dialect, names):
    """The sentence for columns that are not of numbers, with the first value of the first that is none."""
    number = need("pyarrow", EXTRA).float64()
    text = _explained(path, dialect, {names[0]: number}, f"column {shown(names[0])} is not of numbers")
    return text + (f" Other columns without numbers: {listed(names[1:])}." if len(names) > 1 else "")


def _is_value(field, dialect, words=()):
    """Whether a field is a number, or a mark of a missing one, or one of these words."""
    return field in MISSING or is_number(field.strip(), dialect.decimal) or field.strip().lower() in words


def _byte_of(field):
    """The first byte of a field that could not be decoded; 0 if there is none."""
    return next((ord(letter) - 0xDC00 for letter in field if "\udc80" <= letter <= "\udcff"), 0)


def _no_number(path, dialect, line, name, value):
    remedy = OTHER_COLUMNS
    if "\n" in value:
        remedy = "Is a quote not closed?"
    elif re.fullmatch(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?", value.strip()):
        remedy = "Make numbers of dates, such as days since the first, or leave them out (--exclude)."
    elif len(value.split()) > 1 and all(map(is_number, value.split())):
        remedy = "Are there several spaces between its columns? Write commas, semicolons or tabs."
    elif is_number(value.strip(), "," if dialect.decimal == "." else "."):
        remedy = f"Decimal points are taken to be {dialect.decimal!r}: write all numbers in the same way."
    elif is_number(value.strip().strip("%$€£ ").replace(" ", "").replace(",", "")):
        remedy = "Write it without units and separators."
    where = f"in line {line} of {printable(path.name)}"
    return f"Column {shown(name)} holds {shown(value)} {where}, but features are numbers. {remedy}"


def _check_last_quote(path, dialect):
    """Raise if the text ends within quotes: what follows the quote would be one value, and its rows lost."""
    begin = 1
    with io.TextIOWrapper(opened(path), dialect.encoding, "replace", newline="") as text:
        rows = csv.reader(iter(lambda: text.readline(MAX_LINE_BYTES), ""), delimiter=dialect.delimiter, strict=True)
        try:
            for _ in rows:
                begin = rows.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error) or "field larger" in str(error):
                raise BadFileError(
                    f"{printable(str(path))}, line {begin}: a quote is not closed, so that all that follows would be one value."
                ) from None
