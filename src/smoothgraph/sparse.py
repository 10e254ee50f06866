"""Is a sparse matrix what it says it is? The one check before anything compiled reads its arrays.

scipy does not look at the arrays that it is given: an index of −1 or of a billion, or an `indptr` that lies, makes its own
compiled functions, and ours, read and write memory that is not theirs.

In: a scipy sparse matrix or array of any format, or a dense matrix. Out: a CSR matrix of real numbers whose arrays can be
trusted, or a ValueError. Values are not looked at: NaN, negative numbers and asymmetry are for the caller to judge.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.memory import check_memory

ARRAYS = {  # what a matrix of each format is made of
    "csr": ("indptr", "indices", "data"),
    "csc": ("indptr", "indices", "data"),
    "bsr": ("indptr", "indices", "data"),
    "coo": ("data",),
    "dia": ("data", "offsets"),
    "lil": ("rows", "data"),
    "dok": (),
}


def checked_csr(A: Any, name: str) -> sp.csr_matrix:
    """A as a CSR matrix with sound arrays. It shares them with A where it can; `name` is what a message calls it."""
    if not sp.issparse(A):
        check_unmasked(A, name, f"fill them in, with 0 where there is no entry: {name}.filled(0)")
        dense = np.asarray(A)
        check_real(dense.dtype, name)
        if dense.ndim != 2:
            raise ValueError(f"{name} has {dense.ndim} axes: a matrix has two.")
        return sp.csr_matrix(dense)
    check_structure(A, name)
    return _plain(sp.csr_matrix(A))


def _plain(A: sp.csr_matrix) -> sp.csr_matrix:
    """A with no values behind its last row, and with indices of the machine's byte order, of 32 bits where they fit."""
    count = int(A.indptr[-1])
    kind = np.int32 if max(count, A.shape[1]) <= np.iinfo(np.int32).max else np.int64
    if A.indices.dtype == A.indptr.dtype == kind and len(A.indices) == len(A.data) == count:
        return A
    plain = sp.csr_matrix(A.shape, dtype=A.dtype)
    plain.data, plain.indices, plain.indptr = A.data[:count], A.indices[:count].astype(kind), A.indptr.astype(kind)
    return plain


def check_structure(A: Any, name: str) -> None:
    """Raise a ValueError if the arrays of a sparse matrix do not fit together, or are not of real numbers."""
    for part in ARRAYS[A.format]:
        if not isinstance(getattr(A, part, None), np.ndarray):
            raise ValueError(f"{name} is damaged: its {part} is no array.")
    check_real(A.dtype, name)
    if len(A.shape) != 2:
        raise ValueError(f"{name} has shape {A.shape}: a matrix has two axes.")
    if A.format != "csr":
        remedy = "Leave out the rows that have no entries."
        check_memory(8.0 * A.shape[0], f"The index of the {A.shape[0]} rows of {name} needs", remedy)
    if A.format in ("csr", "csc"):
        rows, columns = A.shape if A.format == "csr" else A.shape[::-1]
        _check_compressed(name, A.indptr, A.indices, A.data, rows, columns)
    elif A.format == "coo":
        _check_length(name, "col", A.col, len(A.row))
        _check_length(name, "data", A.data, len(A.row))
        _check_range(name, "row", A.row, A.shape[0])
        _check_range(name, "col", A.col, A.shape[1])
    elif A.format == "bsr":
        height, width = A.blocksize
        if height < 1 or width < 1 or A.shape[0] % height or A.shape[1] % width:
            raise ValueError(f"{name} has blocks of {A.blocksize}, which do not divide its shape {A.shape}.")
        _check_compressed(name, A.indptr, A.indices, A.data, A.shape[0] // height, A.shape[1] // width)
    elif A.format == "lil":
        for row, values in zip(A.rows, A.data, strict=True):
            _check_length(name, "data of a row", values, len(row))
            _check_range(name, "index", np.asarray(row, dtype=np.int64), A.shape[1])
    # dia and dok have no indices that compiled code follows without asking.


def check_unmasked(A: Any, name: str, remedy: str) -> None:
    """Raise a ValueError if A is a masked array with masked values: they would count like others."""
    count = np.ma.count_masked(A) if isinstance(A, np.ma.MaskedArray) else 0
    if count:
        raise ValueError(f"{name} has masked values, {count} of {A.size}. Values are not guessed: {remedy}.")


def check_real(dtype, name: str) -> None:
    """Raise a ValueError unless the type is one of real numbers."""
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"{name} holds {np.dtype(dtype)}, but real numbers are needed: use {name}.astype(float).")


def _check_compressed(name, indptr, indices, data, rows, columns):
    for part, values in (("indptr", indptr), ("indices", indices)):
        if np.asarray(values).ndim != 1 or np.asarray(values).dtype.kind not in "iu":
            raise ValueError(f"{name} is damaged: its {part} is no array of integers with one axis.")
    if len(indptr) != rows + 1:
        raise ValueError(f"{name} is damaged: its indptr has {len(indptr)} entries, and its {rows} rows need {rows + 1}.")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{name} is damaged: its indptr must begin with 0 and never fall.")
    count = int(indptr[-1])
    for part, values in (("indices", indices), ("data", data)):
        if len(values) < count:
            raise ValueError(f"{name} is damaged: its indptr ends at {count}, but there are {len(values)} {part}.")
    _check_range(name, "index", indices[:count], columns)


def _check_length(name, part, values, length):
    if len(values) != length:
        raise ValueError(f"{name} is damaged: there are {len(values)} entries in its {part} for {length} indices.")


def _check_range(name, part, values, length):
    if len(values) and not ((least := int(np.min(values))) >= 0 and (most := int(np.max(values))) < length):
        wrong = least if least < 0 else most
        raise ValueError(f"{name} is damaged: {part} {wrong} occurs, and only 0 to {length - 1} are there.")
