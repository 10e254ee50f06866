"""Copies: hashes of rows (equal rows have equal hashes, and other rows hardly ever do), and graphs that copies hang on."""

import numpy as np

from smoothgraph._kernels.decorators import exact


@exact
def _mixed(state, value, place):
    """A hash that one more number, at a place of the row, is part of."""
    bits = np.float64(value + 0.0).view(np.uint64) ^ (np.uint64(place) * np.uint64(0x9E3779B97F4A7C15))  # −0 becomes 0
    state = (state ^ bits) * np.uint64(0xFF51AFD7ED558CCD)
    return state ^ (state >> np.uint64(32))


@exact
def hash_rows(first, last, X, hashes):
    """The hash of every row."""
    for i in range(first, last):
        state = np.uint64(0)
        for c in range(X.shape[1]):
            if X[i, c] != 0.0:
                state = _mixed(state, X[i, c], c)
        hashes[i] = state


@exact
def hash_sparse_rows(first, last, indptr, indices, data, hashes):
    """The same of CSR rows that are sorted and have no stored zeros."""
    for i in range(first, last):
        state = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            state = _mixed(state, data[e], indices[e])
        hashes[i] = state


@exact
def hang_copies(indptr, indices, data, first_rows, copies, copy_of, weight, out, columns, values):
    """A graph of distinct samples into the CSR rows `out` of all rows of the table, with an edge from each copy to its first.

    The edges of copies stand last in the row of their first.
    """
    for s in range(first_rows.size):
        shift = out[first_rows[s]] - indptr[s]
        for e in range(indptr[s], indptr[s + 1]):
            columns[e + shift], values[e + shift] = first_rows[indices[e]], data[e]
    n_hung = np.zeros(out.size, np.int64)
    for row in copies:
        top = copy_of[row]
        columns[out[row]], values[out[row]] = top, weight
        n_hung[top] += 1
        columns[out[top + 1] - n_hung[top]], values[out[top + 1] - n_hung[top]] = row, weight
