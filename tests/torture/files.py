"""Damaged files through every reader and through the command line.

What must come of a file: data that plain NumPy finds nothing wrong with, or an error of one printable line. A case is the file
itself (base64), the end of its name, and who reads it.
"""

import base64
import contextlib
import io
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from torture import mutations, seeds
from torture.kinds import FaultError, Outcome

READERS = "graph", "table", "info", "convert", "embed", "learn"
READER_SHARES = 0.36, 0.36, 0.07, 0.07, 0.07, 0.07
OUTPUTS = ".npz", ".parquet", ".csv", ".graphml", ".h5ad"
REFUSALS = (ValueError, OSError, ImportError)  # what a reader may raise
H5AD_SHARE = (
    0.3  # how many h5ad files there are for one of another kind: each is read in a process of its own, which takes long
)
LONGEST_LINE = 2000  # characters of an error: a line that goes on for pages is no help


def case(rng: np.random.Generator) -> dict:
    """A damaged file, and who reads it."""
    reader = str(rng.choice(READERS, p=READER_SHARES))
    files = seeds.table_files() if reader in ("table", "learn") else seeds.graph_files()
    shares = np.array([H5AD_SHARE if suffix == ".h5ad" else 1.0 for suffix in files])
    suffix = str(rng.choice(list(files), p=shares / shares.sum()))
    seed = files[suffix][rng.integers(len(files[suffix]))]
    case = {"reader": reader, "suffix": suffix, "data": base64.b64encode(_damaged(rng, suffix, seed, files)).decode()}
    return case | ({"output": str(rng.choice(OUTPUTS))} if reader in ("convert", "learn") else {})


def _damaged(rng, suffix, seed, files) -> bytes:
    way = rng.random()
    if suffix == ".h5ad" and way < 0.6:
        return seeds.wrong_h5ad(rng, seed)
    if suffix == ".parquet" and way < 0.5:
        return seeds.wrong_parquet(rng)
    if suffix == ".npz" and way < 0.35:
        return seeds.wrong_npz(rng)
    if (suffix == ".npz" or suffix.endswith(".gz")) and way < 0.75:
        return mutations.damaged_inside(rng, seed, files[suffix])
    others = files[suffix] if rng.random() < 0.8 else files[str(rng.choice(list(files)))]
    return mutations.damaged(rng, seed, others)


def check(case: dict) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"file{case['suffix']}"
        path.write_bytes(base64.b64decode(case["data"]))
        if case["reader"] in ("graph", "table"):
            return _read(case["reader"], path)
        return _command(case, path)


def _read(reader, path) -> Outcome:
    from smoothgraph.io import read_graph, read_table

    try:
        found = read_graph(path) if reader == "graph" else read_table(path)
    except REFUSALS as error:
        check_line(str(error), type(error).__name__)
        return Outcome("refused")
    if reader == "graph":
        check_graph(*found[:4])
    else:
        check_table(*found[:3])
    return Outcome("read")


def check_line(text: str, what: str) -> None:
    """An error is one line that can be printed."""
    if not text.strip():
        raise FaultError(f"{what} says nothing")
    if "\n" in text or not text.isprintable():
        raise FaultError(f"{what} is not one printable line: {text[:100]!r}")
    if len(text) > LONGEST_LINE:
        raise FaultError(f"{what} has {len(text)} characters")


def check_csr(A, name: str) -> None:
    """The arrays of a CSR matrix fit together."""
    rows, columns = A.shape
    indptr, indices = np.asarray(A.indptr, np.int64), np.asarray(A.indices, np.int64)
    if len(indptr) != rows + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] > min(len(indices), len(A.data)):
        raise FaultError(f"{name} has an indptr that lies")
    count = indptr[-1]
    if count and not (indices[:count].min() >= 0 and indices[:count].max() < columns):
        raise FaultError(f"{name} has indices out of range")
    keys = np.repeat(np.arange(rows), np.diff(indptr)) * max(columns, 1) + indices[:count]
    if np.unique(keys).size != count:
        raise FaultError(f"{name} has entries twice")


def check_graph(W, ids, labels, metadata) -> None:
    """A graph that can be worked with."""
    if not (sp.issparse(W) and W.format == "csr" and W.dtype.kind in "biuf"):
        raise FaultError(f"the graph is a {type(W).__name__} of {getattr(W, 'dtype', None)}")
    check_csr(W, "the graph")
    if W.shape[0] != W.shape[1]:
        raise FaultError(f"the graph has shape {W.shape}")
    if not np.isfinite(W.data).all():
        raise FaultError("the graph has weights that are not finite")
    if (W.data < 0).any():
        raise FaultError("the graph has negative weights")
    if abs(W.astype(float) - W.T.astype(float)).sum() > 1e-6 * abs(W.astype(float)).sum():
        raise FaultError("the graph is not symmetric")
    _check_names(W.shape[0], ids, labels)
    if not isinstance(metadata, dict):
        raise FaultError(f"the metadata is a {type(metadata).__name__}")


def _check_names(n, ids, labels) -> None:
    for name, values in (("ids", ids), ("labels", labels)):
        if values is not None and np.shape(values) != (n,):
            raise FaultError(f"there are {np.shape(values)} {name} for {n} rows")
    if ids is not None and len({str(name) for name in ids}) != n:
        raise FaultError("ids occur twice")


def check_table(X, ids, labels) -> None:
    """Samples that can be worked with."""
    if len(X.shape) != 2 or X.dtype.kind not in "biuf":
        raise FaultError(f"the table has shape {X.shape} and type {X.dtype}")
    if sp.issparse(X):
        check_csr(sp.csr_matrix(X) if X.format != "csr" else X, "the table")
    values = X.data if sp.issparse(X) else np.asarray(X)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise FaultError("the table has missing values")
    _check_names(X.shape[0], ids, labels)


def _command(case, path) -> Outcome:
    """The real command line in this process."""
    output = path.with_name(f"output{case.get('output', '.csv')}")
    words = {
        "info": ["info", path],
        "convert": ["convert", path, output],
        "embed": ["embed", path, "-o", output],
        "learn": ["learn", path, "-k", "2", "-o", output],
    }[case["reader"]]
    code, said, errors = run_command([str(word) for word in words])
    if code not in (0, 1, 3):
        raise FaultError(f"{words[0]} ended with exit code {code}: {errors[-200:]!r}")
    if code == 1:
        lines = [line for line in errors.splitlines() if line.startswith("smoothgraph: ")]
        if len(lines) != 1 or not errors.rstrip("\n").endswith(lines[0]):
            raise FaultError(f"{words[0]} ended with {errors[-300:]!r}, not with one line")
        check_line(lines[0], f"the error of {words[0]}")
        if output.exists():
            raise FaultError(f"{words[0]} ended with exit code 1, but wrote its output")
        return Outcome("refused by a command")
    bad = re.search(r"[^\n\r\t -~\u00a0-\uffff\U00010000-\U0010ffff]", said)
    if bad:
        raise FaultError(f"{words[0]} prints the control character {bad.group()!r}")
    if case["reader"] in ("convert", "learn"):
        from smoothgraph.io import read_graph

        check_graph(*read_graph(output)[:4])
    return Outcome("read by a command")


def run_command(words: list[str]) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of `smoothgraph` with these arguments, in this process."""
    from smoothgraph.__main__ import main

    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        try:
            main(words)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return code, said.getvalue(), errors.getvalue()


def smaller(case: dict):
    """Shorter files, and the reader alone instead of a command."""
    data = base64.b64decode(case["data"])
    if case["reader"] not in ("graph", "table"):
        yield {"reader": "table" if case["reader"] == "learn" else "graph", "suffix": case["suffix"], "data": case["data"]}
    size = len(data) // 2
    while size >= 1 and len(data) < 20_000:
        for begin in range(0, len(data), size):
            yield case | {"data": base64.b64encode(data[:begin] + data[begin + size :]).decode()}
        size //= 4
