"""Arrays as nobody should give them, and the doors that they are given to.

A case is a value made anew by a function of a random generator, and its name. It may be sound after all: a door either answers
rightly or raises a ValueError or TypeError.
"""

import numpy as np
import scipy.sparse as sp

ROWS, COLUMNS = 14, 4


def table(rng, columns=COLUMNS):
    return rng.normal(size=(ROWS, columns))


def matrix(rng):
    """Symmetric, non-negative, with an empty diagonal: good as distances and as weights."""
    A = table(rng)
    return np.sqrt(((A[:, None] - A[None]) ** 2).sum(axis=2))


# --- dense values -------------------------------------------------------------------------------------------------------------

NO_ARRAYS = {
    "none": None,
    "text": "a table",
    "bytes": b"12",
    "number": 3.5,
    "dict": {"a": [1, 2]},
    "set": {1, 2, 3},
    "object": object(),
    "ragged": [[1.0, 2.0], [3.0]],
    "empty list": [],
    "list of empty lists": [[], []],
    "0-d": np.array(2.0),
    "1-d": np.arange(ROWS, dtype=float),
    "3-d": np.zeros((3, 3, 3)),
    "no rows": np.empty((0, COLUMNS)),
    "no columns": np.empty((ROWS, 0)),
    "many rows without columns": np.empty((10**9, 0)),
    "one row": np.ones((1, COLUMNS)),
    "one value": np.ones((1, 1)),
}
TYPES = [complex, object, "U8", "S8", "M8[s]", "V8", np.float16, np.longdouble, bool, np.int8, np.uint8, ">f4", ">f8", ">i2"]
VALUES = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 5e-324, -1.0, 0.0, 2.0**53, 1e160, 1e38]


def _read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


def _upper(A):
    return np.greater(A, np.median(A))


LAYOUTS = {
    "read-only": _read_only,
    "fortran": np.asfortranarray,
    "every other": lambda A: np.repeat(np.repeat(A, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda A: A[::-1, ::-1],
    "broadcast": lambda A: np.broadcast_to(A[:1], A.shape),
    "masked": lambda A: np.ma.masked_less(A, np.median(A)),
    "masked nowhere": lambda A: np.ma.array(A),
    "np.matrix": np.asmatrix,
    "list": lambda A: A.tolist(),
    "list of objects": lambda A: [[*row[:-1], None] for row in A.tolist()],
    "objects with text": lambda A: np.where(np.arange(A.shape[1]) == 1, "x", A.astype(object)),
    "transposed": lambda A: A.T,
    "cut": lambda A: A[:-1],
    "int64 beyond int32": lambda A: (1e12 * A).astype(np.int64),
    "largest int64": lambda A: np.where(_upper(A), np.iinfo(np.int64).max, 0),
    "largest uint64": lambda A: np.where(_upper(A), np.uint64(2**64 - 1), np.uint64(0)),
    "all equal": np.ones_like,
    "all zero": np.zeros_like,
}


def dense_cases(sound):
    """(name, function of rng → value), for a function that makes a sound dense array."""
    yield from ((f"dense {name}", lambda rng, value=value: value) for name, value in NO_ARRAYS.items())
    for kind in TYPES:
        yield f"dense of {kind}", lambda rng, kind=kind: _as_type(sound(rng), kind)
    for value in VALUES:
        yield f"dense with {value}", lambda rng, value=value: _with(sound(rng), rng, value)
        yield f"dense all {value}", lambda rng, value=value: np.full(sound(rng).shape, value)
    for name, change in LAYOUTS.items():
        yield f"dense {name}", lambda rng, change=change: change(sound(rng))


def _as_type(A, kind):
    return A.astype("i8").astype(kind) if kind in ("M8[s]", "V8") else A.astype(kind)


def _with(A, rng, value):
    i, j = rng.integers(A.shape[0]), rng.integers(A.shape[1])
    A[i, j] = value
    if A.shape[0] == A.shape[1]:
        A[j, i] = value
    return A


# --- sparse values ------------------------------------------------------------------------------------------------------------

FORMATS = "csr", "csc", "coo", "bsr", "dia", "lil", "dok"
INDICES = [-1, ROWS, 10**9, -(2**31), 2**31 - 1]


def _put(name, change):
    """Replace an array of a sparse matrix, without scipy's looking at it."""

    def changed(A):
        setattr(A, name, change(getattr(A, name)))
        return A

    return changed


def _at_random(value):
    return lambda values: np.where(np.arange(values.size) == values.size // 2, value, values).astype(values.dtype)


COMPRESSED = {
    **{f"index {i}": _put("indices", _at_random(i)) for i in INDICES},
    "all indices wrong": _put("indices", lambda p: p + 10**6),
    "indptr + 1": _put("indptr", lambda p: p + 1),
    "indptr negative": _put("indptr", lambda p: -p),
    "indptr short": _put("indptr", lambda p: p[:-1]),
    "indptr long": _put("indptr", lambda p: np.append(p, p[-1])),
    "indptr jumps": _put("indptr", _at_random(10**6)),
    "indptr falls": _put("indptr", lambda p: p[::-1].copy()),
    "indptr ends far": _put("indptr", lambda p: np.append(p[:-1], 10**9).astype(p.dtype)),
    "indptr ends early": _put("indptr", lambda p: np.minimum(p, p[-1] // 2)),
    "indptr float": _put("indptr", lambda p: p.astype(float)),
    "indptr 2-d": _put("indptr", lambda p: p[:, None]),
    "indptr empty": _put("indptr", lambda p: p[:0]),
    "indptr int64": _put("indptr", lambda p: p.astype(np.int64)),
    "indptr big-endian": _put("indptr", lambda p: p.astype(">i4")),
    "indptr unsigned": _put("indptr", lambda p: p.astype(np.uint32)),
    "indices int64": _put("indices", lambda p: p.astype(np.int64)),
    "indices int64 far": _put("indices", lambda p: p.astype(np.int64) + 2**40),
    "indices int8": _put("indices", lambda p: p.astype(np.int8)),
    "indices big-endian": _put("indices", lambda p: p.astype(">i4")),
    "indices NaN": _put("indices", lambda p: np.where(p == 1, np.nan, p)),
    "indices objects": _put("indices", lambda p: p.astype(object)),
    "indices short": _put("indices", lambda p: p[:-3]),
    "indices long": _put("indices", lambda p: np.append(p, [10**9, -1]).astype(p.dtype)),
    "indices 2-d": _put("indices", lambda p: p[None]),
    "indices read-only": _put("indices", _read_only),
    "indices every other": _put("indices", lambda p: np.repeat(p, 2)[::2]),
    "all in one column": _put("indices", np.zeros_like),
    "data short": _put("data", lambda v: v[:-3]),
    "data long": _put("data", lambda v: np.concatenate([v, v])),
    "data 2-d": _put("data", lambda v: v.reshape(1, -1)),
    "data none": _put("data", lambda v: None),
}
ANY_DATA = {
    **{f"data with {value}": _put("data", lambda v, value=value: _filled(v, value)) for value in VALUES},
    **{
        f"data of {kind}": _put("data", lambda v, kind=kind: _as_type(v, kind))
        for kind in (complex, object, "U8", bool, np.int8, np.longdouble, np.float16, ">f8")
    },
}
COORDINATES = {f"{part} {i}": _put(part, _at_random(i)) for part in ("row", "col") for i in INDICES} | {
    "row short": _put("row", lambda p: p[:-2]),
    "col short": _put("col", lambda p: p[:-2]),
    "data short": _put("data", lambda v: v[:-2]),
    "row of floats": _put("row", lambda p: p + 0.5),
    "col of objects": _put("col", lambda p: p.astype(object)),
}


def _filled(v, value):
    v = v.copy()
    v.reshape(-1)[:2] = value
    return v


def _lil_index(index):
    def changed(A):
        A.rows[2] = [index, *A.rows[2][1:]]
        return A

    return changed


def _dok_key(A):
    if hasattr(A, "_dict"):
        A._dict[(ROWS + 5, 0)] = 1.0
    return A


def sparse_cases(sound):
    """The same for sparse matrices; `sound` makes the dense array that they hold."""
    for form in FORMATS:
        changes = {"": lambda A: A}
        if form in ("csr", "csc", "bsr"):
            changes |= COMPRESSED
        if form in ("csr", "csc", "bsr", "coo", "dia"):
            changes |= ANY_DATA
        if form == "coo":
            changes |= COORDINATES
        if form == "lil":
            changes |= {f"index {i}": _lil_index(i) for i in INDICES}
        if form == "dok":
            changes |= {"key": _dok_key}
        if form == "dia":
            changes |= {f"offset {i}": _put("offsets", _at_random(i)) for i in INDICES}
        for name, change in changes.items():
            yield f"{form} {name}", lambda rng, form=form, change=change: change(_sparse(sound(rng), form))
    yield "csr array", lambda rng: sp.csr_array(sound(rng))
    yield "1-d coo array", lambda rng: sp.coo_array(np.arange(5.0))
    yield "coo with repeats", lambda rng: _repeats(sound(rng))
    yield "csr with repeats", lambda rng: _unsorted(sound(rng))
    yield "huge coo", lambda rng: sp.coo_matrix(([1.0], ([5], [7])), shape=(2**40, 2**40))
    yield "no rows", lambda rng: sp.csr_matrix((0, COLUMNS))
    yield "no columns", lambda rng: sp.csr_matrix((ROWS, 0))
    yield "no entries", lambda rng: sp.csr_matrix(sound(rng).shape)


def _sparse(A, form):
    return sp.bsr_matrix(A, blocksize=(2, 2)) if form == "bsr" else sp.csr_matrix(A).asformat(form, copy=True)


def _repeats(A):
    A = sp.coo_matrix(A)
    twice = np.r_[A.row, A.row], np.r_[A.col, A.col]
    return sp.coo_matrix((np.r_[A.data, A.data], twice), shape=A.shape)


def _unsorted(A):
    A = _repeats(A)
    order = np.argsort(A.row, kind="stable")[::-1]
    order = order[np.argsort(A.row[order], kind="stable")]
    indptr = np.r_[0, np.cumsum(np.bincount(A.row, minlength=A.shape[0]))]
    return sp.csr_matrix((A.data[order], A.col[order], indptr), shape=A.shape)


def cases(sound):
    return [*dense_cases(sound), *sparse_cases(sound)]
