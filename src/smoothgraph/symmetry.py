"""Is a matrix symmetric, up to rounding? The one check for graphs, priors and matrices of squared distances.

In: a square matrix, a dense array or a scipy sparse matrix, and the words for the message. Out: nothing, or a ValueError.
"""

import numpy as np
import scipy.sparse as sp

TOLERANCE = 1e-5  # relative difference of the entries (i, j) and (j, i) that rounding explains, in float32 matrices too


def check_symmetric(A, name: str, remedy: str) -> None:
    """Raise a ValueError unless A, a square matrix, is symmetric up to rounding.

    The message is "{name} is not symmetric: (i, j) holds …, (j, i) holds …. {remedy}", for the pair of entries that differ
    most. In a sparse matrix a stored 0 is an entry: its counterpart must be stored too.

    Examples
    --------
    >>> from smoothgraph.symmetry import check_symmetric
    >>> check_symmetric([[0, 1.0], [1.0 + 1e-7, 0]], "W", "Use W.maximum(W.T).")
    >>> check_symmetric([[0, 1], [3, 0]], "W", "Use W.maximum(W.T).")
    Traceback (most recent call last):
    ValueError: W is not symmetric: (0, 1) holds 1, (1, 0) holds 3. Use W.maximum(W.T).
    """
    found = _sparse_difference(A) if sp.issparse(A) else _dense_difference(np.asarray(A))
    if found is not None:
        i, j, there, back = found
        raise ValueError(f"{name} is not symmetric: ({i}, {j}) holds {there}, ({j}, {i}) holds {back}. {remedy}")


def _dense_difference(A):
    """(i, j, entry (i, j), entry (j, i)) of the pair that differs most, the entries as text; None if all agree."""
    if _agree(A, A.T).all():
        return None
    i, j = np.unravel_index(_largest(A, A.T), A.shape)
    return int(i), int(j), _text(A[i, j]), _text(A[j, i])


def _sparse_difference(A):
    """The same for a sparse matrix."""
    A = sp.csr_matrix(A)
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    back = A.T.tocsr()
    if not (np.array_equal(A.indptr, back.indptr) and np.array_equal(A.indices, back.indices)):
        return _one_way_entry(A)
    if _agree(A.data, back.data).all():
        return None
    at = _largest(A.data, back.data)
    i = int(np.searchsorted(A.indptr, at, side="right")) - 1
    return i, int(A.indices[at]), _text(A.data[at]), _text(back.data[at])


def _one_way_entry(A):
    """The largest of the entries that are stored while their counterparts are not."""
    stored = sp.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    one_way = sp.coo_matrix(stored > stored.T)
    values = np.asarray(A[one_way.row, one_way.col]).ravel()
    at = int(np.argmax(np.abs(values)))
    return int(one_way.row[at]), int(one_way.col[at]), _text(values[at]), "nothing"


def _agree(there, back):
    return np.isclose(there, back, rtol=TOLERANCE, atol=0.0)


def _largest(there, back):
    """The place of the largest difference among the entries that do not agree."""
    return int(np.argmax(np.where(_agree(there, back), 0.0, np.abs(np.subtract(there, back, dtype=np.float64)))))


def _text(value):
    return f"{float(value):.6g}"
