"""Arrays that are not what they say: a spec, which JSON can hold, → the object. `must_refuse` says where no answer is right.

A spec has a `role` (what the argument should be), a `form` (which object it comes in), a `lie` (what is wrong with it) and a
`seed`.
"""

import numpy as np
import scipy.sparse as sp

N = 9  # nodes or samples
COMPRESSED_LIES = (
    "index -1",
    "index n",
    "index 1e9",
    "indptr falls",
    "indptr beyond",
    "indptr short",
    "indptr -1",
    "data short",
    "indices short",
)
COO_LIES = "row -1", "col n", "col 1e9", "row 1e9", "data short"
SPARSE_FORMS = {
    "csr": COMPRESSED_LIES,
    "csc": COMPRESSED_LIES,
    "bsr": COMPRESSED_LIES,
    "coo": COO_LIES,
    "lil": ("index n", "index -1", "data short"),
    "csr_array": COMPRESSED_LIES,
    "dok": ("none",),
    "dia": ("none",),
}
VALUE_LIES = (
    *(
        "nan",
        "inf",
        "-inf",
        "negative",
        "asymmetric",
        "huge",
        "tiny",
        "zeros",
        "none",
        "none",
        "not square",
        "one row",
        "empty",
        "diagonal",
    ),
    *("complex", "text", "object", "bool", "int8", "uint64", "float16", "datetime", "longdouble", "big-endian"),
)
DENSE_LIES = (
    "1-d",
    "3-d",
    "0-d",
    "masked",
    "fortran",
    "strided",
    "readonly",
    "ragged",
    "None",
    "a string",
    "a dict",
    "a frame",
    "np.matrix",
)
SCALARS = [None, -1, 0, 1, 3, 1.5, float("nan"), float("inf"), -0.5, "3", 10**20, -(10**20), [1], True, 1e-300, 1e300]
REFUSED_VALUES = {"complex", "nan", "inf", "-inf"}  # no graph, table or distance has these
REFUSED_SHAPES = {"1-d", "3-d", "0-d", "ragged", "None", "a string", "a dict"}


def random_spec(rng: np.random.Generator, role: str, is_sound: bool) -> dict:
    """A spec for an argument of this role."""
    spec = {"role": role, "seed": int(rng.integers(1 << 30)), "lie": "none", "form": "dense"}
    if role == "scalar":
        return spec | {"at": int(rng.integers(len(SCALARS)))}
    if role in ("y", "ids"):
        lies = [
            "none",
            "short",
            "long",
            "2-d",
            "nan",
            "object",
            "None",
            "uint8",
            "bool",
            "complex",
            "mixed",
            "bytes",
            "datetime",
            "empty",
            "a string",
        ]
        return spec | {"lie": "none" if is_sound else str(rng.choice(lies))}
    if rng.random() < (1.0 if is_sound else 0.8 if role == "W" else 0.4) * (role in ("W", "X", "Z")):
        spec["form"] = str(rng.choice(list(SPARSE_FORMS)))
    if is_sound:
        return spec
    own = SPARSE_FORMS.get(spec["form"], DENSE_LIES)
    return spec | {"lie": str(rng.choice(own if rng.random() < 0.6 else VALUE_LIES))}


def must_refuse(spec: dict) -> bool:
    """Whether nothing but an error can be right."""
    if spec["role"] in ("scalar", "y", "ids"):
        return False
    if spec["form"] in SPARSE_FORMS and spec["lie"] in SPARSE_FORMS[spec["form"]]:
        return spec["lie"] != "none"
    if spec["role"] == "lists" and spec["lie"] == "1-d":
        return False  # the distances of one node
    return spec["lie"] in REFUSED_VALUES or (spec["form"] == "dense" and spec["lie"] in REFUSED_SHAPES)


def made(spec: dict):
    """The object of a spec."""
    rng, role, lie = np.random.default_rng(spec["seed"]), spec["role"], spec["lie"]
    if role == "scalar":
        return SCALARS[spec["at"]]
    if role in ("y", "ids"):
        return _labels(rng, lie, role)
    A = _with_values(rng, _sound(rng, role), lie)
    if spec["form"] == "dense":
        return _dense(A, lie)
    if A.dtype.kind not in "biufc" or A.dtype.itemsize in (2, 16) or A.dtype.byteorder == ">" or A.ndim != 2:
        A = (
            A.astype(np.complex128 if A.dtype.kind == "c" else np.float64)
            if A.dtype.kind in "biufc"
            else np.nan_to_num(np.ones(A.shape))
        )
    return _lying(rng, _sparse(A, spec["form"]), lie)


def _sound(rng, role):
    if role == "W":
        W = np.triu(rng.random((N, N)) * (rng.random((N, N)) < 0.7), 1) + np.diag(np.full(N - 1, 0.1), 1)
        return W + W.T
    X = rng.normal(size=(N, 3))
    if role == "Z":
        return ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.sort(((X[:, None] - X[None]) ** 2).sum(axis=2), axis=1)[:, 1:] if role == "lists" else X


def _with_values(rng, A, lie):
    A, at = A.copy(), tuple(rng.integers(length) for length in A.shape)
    values = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "negative": -5.0, "asymmetric": 7.0, "huge": 1e308, "tiny": 5e-324}
    if lie in values:
        A[at] = values[lie]
    kinds = {
        "bool": bool,
        "int8": np.int8,
        "uint64": np.uint64,
        "float16": np.float16,
        "longdouble": np.longdouble,
        "object": object,
    }
    if lie in kinds:
        return np.abs(A).astype(kinds[lie])
    return {
        "zeros": lambda: np.zeros_like(A),
        "not square": lambda: A[:-2],
        "one row": lambda: A[:1],
        "empty": lambda: A[:0],
        "diagonal": lambda: A + np.eye(*A.shape),
        "complex": lambda: A + 1j,
        "text": lambda: A.astype(str),
        "datetime": lambda: np.abs(A).astype("datetime64[s]"),
        "big-endian": lambda: A.astype(">f8"),
    }.get(lie, lambda: A)()


def _dense(A, lie):
    import pandas as pd

    if lie == "readonly":
        A.flags.writeable = False
        return A
    return {
        "1-d": lambda: A.ravel(),
        "3-d": lambda: A[None],
        "0-d": lambda: np.array(3.0),
        "masked": lambda: np.ma.masked_array(A, mask=np.arange(A.size).reshape(A.shape) == 1),
        "fortran": lambda: np.asfortranarray(A),
        "strided": lambda: np.repeat(np.repeat(A, 2, axis=0), 2, axis=1)[::-2, ::-2],
        "ragged": lambda: [[1.0, 2.0], [3.0]],
        "None": lambda: None,
        "a string": lambda: "matrix.npz",
        "a dict": lambda: {"a": [1.0, 2.0]},
        "a frame": lambda: pd.DataFrame(A),
        "np.matrix": lambda: np.asmatrix(A),
    }.get(lie, lambda: A)()


def _sparse(A, form):
    if form == "bsr":
        size = next((k for k in (3, 1) if A.shape[0] % k == 0 and A.shape[1] % k == 0), 1)
        return sp.bsr_matrix(A, blocksize=(size, size))
    return sp.csr_array(A) if form == "csr_array" else sp.coo_matrix(A).asformat(form)


def _lying(rng, A, lie):
    """The matrix with arrays that do not fit together. scipy looks at them only when a matrix is made."""
    if A.format in ("csr", "csc", "bsr"):
        A.indptr, A.indices = A.indptr.copy(), A.indices.copy()
        wide = lie == "index 1e9" and rng.random() < 0.5
        A.indices = A.indices.astype(np.int64) if wide else A.indices
        count, n = len(A.indices), max(A.shape)
        if not count:
            return A
        at = int(rng.integers(count))
        if lie.startswith("index"):
            A.indices[at] = {"index -1": -1, "index n": n, "index 1e9": 10**9}[lie]
        elif lie == "indptr falls":
            A.indptr[1], A.indptr[2] = A.indptr[-1], 0
        elif lie == "indptr beyond":
            A.indptr[-1] = count + 1000
        elif lie == "indptr short":
            A.indptr = A.indptr[:-2]
        elif lie == "indptr -1":
            A.indptr[0] = -1
        elif lie == "data short":
            A.data = A.data[: count // 2]
        elif lie == "indices short":
            A.indices = A.indices[: count // 2]
    elif A.format == "coo" and A.nnz:
        row, col = A.row.copy(), A.col.copy()
        at = int(rng.integers(len(row)))
        if lie.startswith("row"):
            row[at] = {"row -1": -1, "row 1e9": 10**9}[lie]
        elif lie.startswith("col"):
            col[at] = {"col n": A.shape[1], "col 1e9": 10**9}[lie]
        A.row, A.col = row, col  # before scipy 1.13 there are no `coords`
        if lie == "data short":
            A.data = A.data[: len(row) // 2]
    elif A.format == "lil" and lie != "none" and A.nnz:
        if lie == "data short":
            A.data[0] = A.data[0][:-1] if len(A.data[0]) else [1.0]
        else:
            A.rows[0] = [-1 if lie == "index -1" else A.shape[1], *A.rows[0][1:]]
            A.data[0] = [1.0, *A.data[0][1:]]
    return A


def _labels(rng, lie, role):
    good = [f"n{i}" for i in range(N)] if role == "ids" else rng.choice(["a", "b", ""], size=N).tolist()
    return {
        "short": lambda: good[:-1],
        "long": lambda: [*good, "z"],
        "2-d": lambda: np.array([good, good]),
        "nan": lambda: np.array([np.nan, *range(N - 1)]),
        "object": lambda: np.array([None, 3, *good[2:]], dtype=object),
        "None": lambda: None,
        "uint8": lambda: (np.arange(N) % 3 + 253).astype(np.uint8),
        "bool": lambda: np.arange(N) % 2 == 0,
        "complex": lambda: np.arange(N) + 1j,
        "mixed": lambda: [1, "a", 2.5, *good[3:]],
        "bytes": lambda: np.array([name.encode() for name in good]),
        "datetime": lambda: np.arange(N).astype("datetime64[D]"),
        "empty": lambda: [],
        "a string": lambda: "label",
    }.get(lie, lambda: good)()
