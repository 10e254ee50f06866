"""Files of arrays → samples: npy, npz, mtx, h5ad, libsvm and idx.

In: a path and what is `Wanted`. Out: a `Table`, not yet cleaned: X with two axes, dense or CSR, of real numbers. Columns
have no names. Sizes that a file declares are held against its own size and against the memory before anything is allocated.
"""

import math
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from smoothgraph.io.compressed import opened
from smoothgraph.io.door import BadFileError, check_declared, check_rows, reading
from smoothgraph.io.h5ad import read_h5ad_table
from smoothgraph.io.matrix_market import read_matrix_market
from smoothgraph.io.npy import TEXTS, Archive, read_npy
from smoothgraph.io.samples import Table, Wanted
from smoothgraph.memory import available_memory
from smoothgraph.messages import printable
from smoothgraph.sparse import checked_csr

IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}  # the third byte of an idx file → its dtype
LIBSVM_GROWTH = 8  # bytes of memory for a byte of text: "1:1 " becomes a float64 and an int64, which numpy doubles as it grows


def read_npy_table(path: Path, wanted: Wanted) -> Table:
    """The array of an npy file; images are flattened."""
    _only_samples(path, wanted.id_column, wanted.label_column)
    return Table(_two_axes(read_npy(path, wanted.limit), path))


def read_npz_table(path: Path, wanted: Wanted) -> Table:
    """An array of an npz, or the sparse matrix that scipy wrote, with ids and labels from other arrays."""
    with Archive(path, wanted.limit) as archive:
        if "metadata" in archive.names:
            raise ValueError(f"{path} holds a graph that smoothgraph wrote, not samples.")
        ids, labels = (None if name is None else archive.read(name, TEXTS) for name in (wanted.id_column, wanted.label_column))
        if wanted.key is None and archive.is_sparse:
            return Table(archive.sparse(), ids, labels)
        key = wanted.key
        if key is None:
            tables = [name for name in archive.names if name not in (wanted.id_column, wanted.label_column)]
            key = "X" if "X" in tables or len(tables) != 1 else tables[0]
        return Table(_two_axes(archive.read(key), path), ids, labels)


def read_mtx_table(path: Path, wanted: Wanted) -> Table:
    """The matrix of an mtx file: CSR, or dense if the file is an array."""
    _only_samples(path, wanted.id_column, wanted.label_column)
    return Table(read_matrix_market(path, wanted.limit))


def read_cells_table(path: Path, wanted: Wanted) -> Table:
    """X, a layer or an obsm of an h5ad, with ids and labels from the columns of obs."""
    X, ids, labels = read_h5ad_table(path, wanted.key, wanted.id_column, wanted.label_column, wanted.limit)
    return Table(X if sp.issparse(X) else _two_axes(X, path), ids, labels)


def read_libsvm_table(path: Path, wanted: Wanted) -> Table:
    """The samples of a libsvm file, with the first number of each line as labels."""
    from sklearn.datasets import load_svmlight_file

    _only_samples(path, wanted.id_column, None)
    most = (available_memory() if wanted.limit is None else wanted.limit) / LIBSVM_GROWTH
    with reading(path, "a libsvm file"), opened(path, most) as file:
        X, labels = load_svmlight_file(file)
        X = checked_csr(X, "its matrix")
        # Some steps have a number for each column: a single index of a billion must not ask for gigabytes.
        check_rows(path, X.shape[1], X.nnz, "Its largest index is the number of features: is it right?")
        whole = np.isfinite(labels).all() and np.array_equal(labels, np.trunc(labels)) and (np.abs(labels) < 2**53).all()
        return Table(X, None, labels.astype(np.int64) if whole else labels)


def read_idx_table(path: Path, wanted: Wanted) -> Table:
    """The format of MNIST: two bytes 0, a byte for the type, one for the number of axes, their lengths, then the values."""
    _only_samples(path, wanted.id_column, wanted.label_column)
    with reading(path, "an idx file"), opened(path) as file:
        begin = file.read(4)
        if len(begin) < 4 or begin[:2] != b"\0\0" or begin[2] not in IDX_TYPES:
            raise BadFileError(f"{printable(str(path))} is no idx file: it does not begin with two bytes 0 and a known type.")
        kind, axes = np.dtype(IDX_TYPES[begin[2]]), begin[3]
        lengths = file.read(4 * axes)
        shape = np.frombuffer(lengths, ">u4", len(lengths) // 4).tolist()
        count = kind.itemsize * math.prod(shape)
        check_declared(path, count, f"an array of shape {shape}", wanted.limit)
        data = _exactly(file, count)
        if len(shape) != axes or data is None:
            raise BadFileError(
                f"{printable(str(path))} is cut short, or too long: it does not hold an array of shape {shape} of {kind}."
            )
        X = np.frombuffer(data, kind).reshape(shape)
    return Table(_two_axes(X.astype(kind.newbyteorder("="), copy=False), path))


def _exactly(file, count):
    """The next bytes of a stream, if it has this many and ends then; what is not there is not allocated either."""
    parts, left = [], count
    while left and (data := file.read(min(left, 1 << 24))):
        parts.append(data)
        left -= len(data)
    return None if left or file.read(1) else b"".join(parts)


def _only_samples(path, id_column, label_column):
    for name, value in (("id_column", id_column), ("label_column", label_column)):
        if value is not None:
            raise ValueError(f"{path} holds only samples: there is no {name}={value!r} in it.")


def _two_axes(X, path):
    """X with one row for each sample: images are flattened."""
    if X.ndim < 2:
        raise ValueError(f"{path} has shape {X.shape}: a table of samples has two axes.")
    return X if X.ndim == 2 else X.reshape(X.shape[0], math.prod(X.shape[1:]))
