"""Files of Matrix Market (mtx) → matrices. scipy's own reader follows malicious files out of its memory; this one cannot.

In: a path. Out: a CSR matrix if the file lists coordinates, an array if it lists all values, of float64. What is true of both:
the shape is that of the header, every index was in range, and symmetric files are complete, with both triangles. Entries at the
same place are added, as scipy does. Values are as the file has them: NaN and negative numbers are for the caller to judge.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph.io.compressed import opened
from smoothgraph.io.door import bad, check_declared, check_rows, reading
from smoothgraph.memory import available_memory
from smoothgraph.optional import need

EXTRA = "smoothgraph[io]"
GROWTH = 6  # bytes of memory for a byte of text, as measured
BYTES_PER_ENTRY = 200  # of memory, as measured for a symmetric matrix: the lines, both triangles, and the matrix
LONGEST_LINE = 1 << 16  # bytes of a line in the header
LARGEST_SIZE = 1 << 40  # a number of rows or entries in the header: larger ones are refused before anything is computed
FIELDS = ("real", "integer", "pattern", "double")  # "double" is how some programs write real
SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # of the other triangle
UNEVEN = (b"  ", b"\t", b"\n ", b" \n", b" \r")  # anything but single spaces between the numbers of a line


class _Header(NamedTuple):
    """What the file says of itself; `entries` is the number of lines that follow."""

    has_coordinates: bool
    has_values: bool
    sign: int
    rows: int
    columns: int
    entries: int


def read_matrix_market(path: Path, limit: float | None = None) -> Any:
    """The matrix in an mtx file: CSR, or dense if the file is an array; it may be compressed (.gz, .bz2)."""
    most = (available_memory() if limit is None else limit) / GROWTH
    with reading(path, "a Matrix Market file"), opened(path, most) as file:
        header = _header(path, file)
        check_declared(path, BYTES_PER_ENTRY * header.entries, f"{header.entries:,} entries", limit)
        body = file.read()
        if header.has_coordinates:
            check_rows(path, header.rows, header.entries, "Is the size in its header right?")
            return _from_coordinates(path, header, body)
        return _from_values(path, header, body)


def _header(path, file):
    words = file.readline(LONGEST_LINE).decode("latin-1").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise bad(path, 'it does not begin with "%%MatrixMarket matrix coordinate real general", or the like.')
    if words[3] not in FIELDS or words[4] not in SIGNS or (words[2] == "array" and words[3] == "pattern"):
        raise bad(
            path, f"a {words[2]} of {words[3]} {words[4]} cannot be read: real, integer or pattern, general or symmetric can."
        )
    line = b"%"
    while line.startswith(b"%") or line.isspace():
        line = file.readline(LONGEST_LINE)
    sizes = [int(number) if number.isdigit() and len(number) < 20 else -1 for number in line.split()]
    has_coordinates, sign = words[2] == "coordinate", SIGNS[words[4]]
    if len(sizes) != 2 + has_coordinates or min(sizes) < 0 or max(sizes) > LARGEST_SIZE:
        raise bad(path, f"its sizes should be {2 + has_coordinates} numbers, but are {line[:100].decode('latin-1').strip()!r}.")
    if sign and sizes[0] != sizes[1]:
        raise bad(path, f"it is {words[4]}, but has {sizes[0]} rows and {sizes[1]} columns.")
    count = sizes[2] if has_coordinates else sizes[0] * sizes[1] if not sign else sizes[0] * (sizes[0] + sign) // 2
    return _Header(has_coordinates, words[3] != "pattern", sign, sizes[0], sizes[1], count)


def _from_coordinates(path, header, body):
    row, column, *values = _columns(path, header, body, 2, header.has_values)
    value = values[0] if values else np.ones(row.size)
    for name, index, length in (("row", row, header.rows), ("column", column, header.columns)):
        if index.size and not (index.min() >= 1 and index.max() <= length):
            wrong = int(index.min() if index.min() < 1 else index.max())
            raise bad(path, f"it has an entry in {name} {wrong}, and {name}s go from 1 to {length}.")
    row, column = row - 1, column - 1
    if header.sign:
        other = row != column
        if (row < column).any() and (row > column).any():
            raise bad(path, "it is symmetric, so entries are on one side of the diagonal, but these are on both.")
        if header.sign < 0 and not other.all():
            raise bad(path, "it is skew-symmetric, but has entries on the diagonal.")
        row, column = np.concatenate([row, column[other]]), np.concatenate([column, row[other]])
        value = np.concatenate([value, header.sign * value[other]])
    return sp.csr_matrix((value, (row, column)), shape=(header.rows, header.columns))


def _from_values(path, header, body):
    """An array: its columns one after the other, of a symmetric one from the diagonal on."""
    (values,) = _columns(path, header, body, 0, True)
    if not header.sign:
        return np.ascontiguousarray(values.reshape(header.columns, header.rows).T)
    A = np.zeros((header.rows, header.columns))
    column, row = np.triu_indices(header.rows, k=int(header.sign < 0))
    A[row, column] = values
    A[column, row] = header.sign * values if header.sign < 0 else values
    return A


def _columns(path, header, body, n_indices, has_values):
    """The columns of the lines below the header: so many of indices, and one of values."""
    shortest = 2 * (n_indices + has_values)  # bytes of a line: a digit and what ends it for each number
    if shortest * header.entries > len(body) + 1:
        raise bad(
            path, f"its header promises {header.entries:,} entries, and {len(body):,} bytes cannot hold them. Is it complete?"
        )
    if not header.entries and not body.strip():
        return [np.empty(0, np.int64)] * n_indices + [np.empty(0)] * has_values
    pa, csv = need("pyarrow", EXTRA), need("pyarrow.csv", EXTRA)
    if body.startswith(b" ") or any(space in body for space in UNEVEN):
        body = re.sub(rb" ?\r?\n ?", b"\n", re.sub(rb"[ \t]+", b" ", body)).strip()
    kinds = [pa.int64()] * n_indices + [pa.float64()] * has_values
    names = [str(j) for j in range(len(kinds))]
    table = csv.read_csv(
        pa.BufferReader(body),
        csv.ReadOptions(column_names=names, block_size=1 << 24),
        csv.ParseOptions(delimiter=" ", quote_char=False, escape_char=False),
        csv.ConvertOptions(column_types=dict(zip(names, kinds, strict=True)), null_values=[]),
    )
    if table.num_rows != header.entries:
        raise bad(path, f"its header promises {header.entries:,} entries, but there are {table.num_rows:,}. Is it complete?")
    return [table[name].to_numpy() for name in names]
