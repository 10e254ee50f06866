"""Arrays of NumPy's own files, npy and npz, of which nothing is believed.

In: a path. Out: an array, or the arrays of an archive by their names. The headers are read first: the type must be one that is
asked for (no Python objects, which are pickles and could run any code), and the shape must fit the bytes that are there and the
memory. Nothing is decompressed or allocated before.
"""

import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph.io.door import BadFileError, check_declared, check_rows, reading
from smoothgraph.io.samples import listed, shown
from smoothgraph.memory import available_memory
from smoothgraph.messages import printable
from smoothgraph.sparse import checked_csr

MAX_READ_SHARE = 0.25  # a file is read into memory up to this share of it, and mapped beyond
MAX_AXES = 32  # of an array, as NumPy had it for long
BLOCK = 1 << 24  # bytes read from an archive at a time
ZIP_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # how np.savez and np.savez_compressed store arrays
NUMBERS, TEXTS = "fiub", "fiubSU"  # kinds of types: of features, and of ids, labels and descriptions
KINDS = {  # what other kinds of types are, and what to do about them
    "O": "Python objects, which are not read because a pickle can run any code: save numbers, X.astype(float)",
    "V": "records of several fields: save one array of numbers, with a column for each field",
    "c": "complex numbers, but features are real: save the real and the imaginary parts as columns",
    "M": "dates, but features are numbers: save, for example, days since the first of them",
    "m": "spans of time, but features are numbers: save X / np.timedelta64(1, 's')",
    "S": "text, but features are numbers: save X.astype(float), or name it as ids or labels",
    "U": "text, but features are numbers: save X.astype(float), or name it as ids or labels",
}


class Header(NamedTuple):
    """What an npy file says of its array, and how many bytes the header has."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path, limit: float | None = None) -> np.ndarray:
    """The array of an npy file of numbers: in memory if it is small beside it, else a memory map.

    What is in memory cannot change. A program that shortens a file while it is mapped ends every process that reads what is
    gone (SIGBUS): `check_unchanged` sees it between two stages, but nothing can while a stage runs.
    """
    with reading(path, "an npy file"), open(path, "rb") as file:
        header = _header(file, path, NUMBERS)
        size = os.fstat(file.fileno()).st_size
        _check_size(path, header, size)
        limit = available_memory() if limit is None else limit
        if header.nbytes > MAX_READ_SHARE * limit:
            order: Any = "F" if header.fortran else "C"
            return np.memmap(path, header.dtype, "r", header.offset, header.shape, order)
        flat = np.fromfile(file, header.dtype, math.prod(header.shape))
        _check_size(path, header, header.offset + flat.nbytes)
    return _shaped(flat, header)


def check_unchanged(X: Any) -> None:
    """Raise if X is a memory map of a file that is now shorter than X."""
    if isinstance(X, np.memmap) and X.filename is not None:
        size, needed = os.stat(X.filename).st_size, X.offset + X.nbytes
        if size < needed:
            raise BadFileError(
                f"{printable(str(X.filename))} became shorter while it was read: it has {size} bytes, and had {needed}. "
                "Begin again when nothing writes to it."
            )


def _header(file: IO[bytes], path, kinds: str, name: str = "") -> Header:
    """The header at the beginning of a stream; `kinds` are the kinds of types that are wanted."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    else:  # version 3 has names of fields beyond latin-1, and so only records
        raise ValueError(f"its header has version {version[0]}.{version[1]}, and 1.0 or 2.0 hold arrays of numbers")
    what = printable(str(path)) + (f": the array {shown(name)}" if name else "")
    if dtype.kind not in kinds or dtype.hasobject:
        kind = "O" if dtype.hasobject else dtype.kind
        raise BadFileError(f"{what} holds {KINDS.get(kind, f'{dtype}, but features are numbers')}.")
    if len(shape) > MAX_AXES or any(length < 0 for length in shape) or dtype.itemsize == 0:
        raise BadFileError(f"{what} is damaged: its shape is {shown(str(shape))}, of {dtype}.")
    return Header(tuple(map(int, shape)), fortran, dtype, file.tell())


def _check_size(path, header, size, name=""):
    """An array is as long as its header says: one that is cut short, or has more behind it, is not what was saved."""
    if header.offset + header.nbytes != size:
        what = printable(str(path)) + (f": the array {shown(name)}" if name else "")
        raise BadFileError(
            f"{what} is cut short, or too long: its {size} bytes are not those of an array of {header.dtype} of shape "
            f"{header.shape}."
        )


def _shaped(flat, header):
    """The array of these values in the byte order of this machine."""
    array = flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape)
    return array.astype(header.dtype.newbyteorder("="), copy=False)


class Archive:
    """The arrays of an npz file, to be used in a `with` statement."""

    def __init__(self, path: Path, limit: float | None = None):
        self.path, self.limit = path, limit

    def __enter__(self) -> "Archive":
        with reading(self.path, "an npz file"):
            self._zip = zipfile.ZipFile(self.path)
            members = [info for info in self._zip.infolist() if info.filename.endswith(".npy")]
        self._members = {info.filename.removesuffix(".npy"): info for info in members}
        self.names = list(self._members)
        return self

    def __exit__(self, *error) -> None:
        self._zip.close()

    def read(self, name: str, kinds: str = NUMBERS) -> np.ndarray:
        """The array of this name, if its type is of these kinds."""
        if name not in self._members:
            raise BadFileError(f"{printable(str(self.path))} has no array {shown(name)}: it has {listed(self.names)}.")
        info = self._members[name]
        if info.compress_type not in ZIP_WAYS:
            raise BadFileError(f"{printable(str(self.path))} is compressed in a way that np.savez does not use: save it again.")
        with reading(self.path, "an npz file"), self._zip.open(info) as file:
            header = _header(file, self.path, kinds, name)
            _check_size(self.path, header, info.file_size, name)
            check_declared(self.path, header.nbytes, f"an array {shown(name)} of shape {header.shape}", self.limit)
            flat = np.empty(math.prod(header.shape), header.dtype)
            _fill(flat, file)
        return _shaped(flat, header)

    def text(self, name: str) -> str:
        """The text that an array without axes holds."""
        array = self.read(name, TEXTS)
        if array.size != 1:
            raise BadFileError(
                f"{printable(str(self.path))}: the array {shown(name)} should be one text, and has {array.shape}."
            )
        value = array.item()
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    @property
    def is_sparse(self) -> bool:
        """Whether the arrays are those of a matrix that `scipy.sparse.save_npz` wrote."""
        return {"format", "shape", "data"} <= set(self.names)

    def sparse(self) -> sp.csr_matrix:
        """The matrix that `scipy.sparse.save_npz` wrote."""
        with reading(self.path, "a sparse npz file"):
            kind, shape = self.text("format"), self.read("shape", "iu").ravel().tolist()
            if len(shape) != 2 or min(shape) < 0:
                raise ValueError(f"its shape is {shape}")
            check_declared(self.path, 8 * (shape[0] + 1), f"a sparse matrix of shape {tuple(shape)}", self.limit)
            data = self.read("data")
            if kind in ("csr", "csc", "bsr"):
                make = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "bsr": sp.bsr_matrix}[kind]
                check_declared(self.path, 8 * (shape[kind == "csc"] + 1), f"a matrix of shape {tuple(shape)}", self.limit)
                matrix = make((data, self.read("indices", "iu"), self.read("indptr", "iu")), shape=shape)
            elif kind == "coo":
                check_rows(self.path, max(shape), data.size, "Is its shape right?")
                matrix = sp.coo_matrix((data, (self.read("row", "iu"), self.read("col", "iu"))), shape=shape)
            elif kind == "dia":
                check_rows(self.path, max(shape), data.size, "Is its shape right?")
                matrix = _of_diagonals(data, self.read("offsets", "iu"), shape)
            else:
                raise ValueError(f"it is of the format {shown(kind)}: csr, csc, coo, bsr and dia are read")
            return checked_csr(matrix, "its matrix")


def _of_diagonals(data: np.ndarray, offsets: np.ndarray, shape: list[int]) -> sp.coo_matrix:
    """The matrix whose entry (j − offset, j) is entry j of the diagonal with this offset, as scipy stores diagonals."""
    if data.ndim != 2 or offsets.shape != (data.shape[0],) or len(set(offsets.tolist())) < offsets.size:
        raise ValueError(f"its diagonals have shape {data.shape}, and offsets {offsets.shape}, which must differ")
    near = (offsets > -shape[0]) & (offsets < shape[1])  # other diagonals are not in the matrix, and could overflow
    data, offsets = data[near], offsets[near].astype(np.int64)
    diagonal, column = np.nonzero(data)
    row = column - offsets[diagonal]
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    return sp.coo_matrix((data[diagonal, column][inside], (row[inside], column[inside])), shape=shape)


def _fill(flat: np.ndarray, file: IO[bytes]) -> None:
    """Read the bytes of an array from a stream; the end of the stream is read too, which compares the checksum."""
    view = flat.view(np.uint8) if flat.nbytes else np.empty(0, np.uint8)
    begin = 0
    while begin < len(view):
        data = file.read(min(BLOCK, len(view) - begin))
        if not data:
            raise ValueError("an array ends too early")
        view[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        begin += len(data)
    if file.read(1):
        raise ValueError("an array is longer than its header says")
