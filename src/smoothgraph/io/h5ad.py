"""h5ad, the files of AnnData: samples and graphs out of them, graphs into them.

In: a path, or a graph. Out: arrays that were checked, or a file in which everything but the graph is as it was. The HDF5
library never reads or writes a file in this process: `smoothgraph.hdf5` is a process of its own for that, which a damaged file
or a full disk may end, and sends arrays over a pipe.

A graph is where scanpy keeps it: obsp["connectivities"], obsp["distances"] and uns["neighbors"], or the same with the name that
`key_added` gives. How it was learned is JSON in uns["neighbors"]["smoothgraph"]; so it goes when another graph is put there.
"""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import smoothgraph
from smoothgraph.files import replacing
from smoothgraph.hdf5 import pipe
from smoothgraph.io.door import BadFileError, check_declared, metadata_of, reading
from smoothgraph.memory import available_memory
from smoothgraph.messages import printable
from smoothgraph.sparse import checked_csr

EXTRA = "smoothgraph[io]"
KIND = "an h5ad"
NOT_THE_FILE = errno.ENOENT, errno.EACCES, errno.EPERM  # errors of the system that say nothing of what the file holds
PIPE_BYTES = 1 << 20  # that a pipe holds, where it can be chosen: fewer turns between the processes than with the usual 64 kB


def read_h5ad_table(path, key=None, id_column=None, label_column=None, limit: float | None = None):
    """(X, ids, labels): X, a layer or an obsm, dense or CSR; the ids are the names of the cells unless a column is named."""
    with reading(path, KIND):
        X, ids, labels = _read(path, "table", [key, id_column, label_column], limit)
        return _checked_matrix(X, "X"), np.asarray(ids), None if labels is None else np.asarray(labels)


def read_h5ad_graph(path, limit: float | None = None):
    """(W, ids, labels, metadata) of obsp["connectivities"], or of the only other graph that there is."""
    with reading(path, KIND):
        (text,), W, ids, labels = _read(path, "graph", [], limit)
        about = metadata_of(path, text)
        kind = about.get("ids", "U")
        ids = None if kind == "none" else np.asarray(ids).astype(np.int64 if kind == "i" else str)
        labels = None if labels is None else np.asarray(labels)
        return checked_csr(_checked_matrix(W, "the graph"), "the graph"), ids, labels, about.get("metadata", {})


def write_h5ad_graph(path, W, ids=None, labels=None, metadata: dict[str, Any] | None = None, distances=None, key_added=None):
    """Write a new h5ad with a graph and nothing else. `path` is written to as it is: the caller renames it when all is well."""
    metadata = metadata or {}
    index, kind = (np.arange(W.shape[0]), "none") if ids is None else (ids, ids.dtype.kind)
    label = metadata.get("label_column") or "label"
    about = json.dumps({"ids": kind, "label": label, "metadata": metadata})
    prefix = "" if key_added is None else f"{key_added}_"
    matrices = {f"{prefix}connectivities": W} | ({} if distances is None else {f"{prefix}distances": distances})
    request: dict[str, Any] = {"op": "create", "label": label, "key": key_added or "neighbors"}
    params = params_of({"n_neighbors": W.nnz / max(1, W.shape[0])} | metadata)
    request["entry"] = neighbors_entry(params, about, key_added, has_distances=distances is not None)
    _write(path, request, [index.astype(str), labels], matrices)


def add_h5ad_graph(source, path, matrices: dict[str, Any], key: str, entry: dict[str, Any], learned_from: str) -> None:
    """A copy of the h5ad `source` in `path`, or in its own place, with a graph added; everything else in it is untouched.

    `matrices` go to obsp, and `entry` to uns[key], with `use_rep` if the graph was learned from X or an obsm: scanpy has no
    word for a layer.
    """
    with replacing(path) as unfinished:
        shutil.copyfile(source, unfinished)
        request = {"op": "add", "key": key, "entry": entry, "learned_from": learned_from, "source": str(source)}
        _write(unfinished, request, [], matrices)


def params_of(metadata: dict[str, Any], **more) -> dict[str, Any]:
    """What scanpy keeps in uns["neighbors"]["params"], as far as it is known; what is None is left out."""
    parameters = metadata.get("parameters", {})
    seed = parameters.get("random_state")
    params = {
        "n_neighbors": int(parameters.get("n_neighbors", round(metadata.get("n_neighbors", 0)))),
        "method": "smoothgraph",
        "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
        "metric": parameters.get("metric", "euclidean"),
    } | more
    return {name: value for name, value in params.items() if value is not None}


def neighbors_entry(params: dict[str, Any], about: str, key_added: str | None = None, *, has_distances: bool = True):
    """What scanpy keeps in uns[key_added or "neighbors"], with what smoothgraph has to say about the graph."""
    prefix = "" if key_added is None else f"{key_added}_"
    entry = {"connectivities_key": f"{prefix}connectivities", "params": params, "smoothgraph": about}
    return entry | ({"distances_key": f"{prefix}distances"} if has_distances else {})


def _checked_matrix(value, name):
    if not isinstance(value, tuple):
        return value
    kind, shape, *arrays = value
    return checked_csr((sp.csr_matrix if kind == "csr" else sp.csc_matrix)(tuple(arrays), shape=shape), name)


# --- the other process -------------------------------------------------------------------------------------------------------


def _read(path, op: str, arguments: list[Any], limit: float | None) -> list[Any]:
    """The values that the other process finds in the file."""
    memory = available_memory() if limit is None else limit
    request = {"op": op, "path": os.path.abspath(path), "arguments": arguments, "limit": min(memory, 1e18)}
    values: list[Any] = []

    def died(how):
        return BadFileError(
            f"{printable(str(path))} cannot be read as {KIND}: the HDF5 library {how}. The file is damaged: get it anew."
        )

    with _process(died) as process:
        pipe.send(process.stdin, request)
        process.stdin.close()
        try:
            while (header := pipe.receive(process.stdout))["kind"] in pipe.VALUES:
                values.append(pipe.receive_value(process.stdout, header))
        except pipe.BrokenError as error:
            header = error.args[0]
    if header["kind"] == "large":
        check_declared(path, header["bytes"], header["what"], memory)
    _raise(header, path)
    return values


def _write(path, request: dict[str, Any], others: list[Any], matrices: dict[str, Any]) -> None:
    """Have the other process write. `others` are None or lists of text or numbers, `matrices` go to obsp."""
    graphs = {name: sp.csr_matrix(matrix) for name, matrix in matrices.items()}
    about = {"path": os.path.abspath(path), "limit": 1e18, "count": len(others) + len(graphs), "obsp": list(graphs)}
    about["n"] = next(iter(graphs.values())).shape[0]
    about["bytes"] = sum(W.data.nbytes + W.indices.nbytes + W.indptr.nbytes for W in graphs.values())

    def died(how):
        return OSError(f"the HDF5 library {how} while it wrote, as on a full disk")

    with _process(died) as process:
        with suppress(BrokenPipeError):  # it has stopped listening: its last message says why, or there is none
            pipe.send(process.stdin, request | about)
            for value in others:
                _send_other(process.stdin, value)
            for W in graphs.values():
                pipe.send_sparse(process.stdin, "csr", W.shape, (W.data, W.indices, W.indptr))
            process.stdin.close()
        header = pipe.receive(process.stdout)
    if header["kind"] == "error":
        text, in_words = header["text"].splitlines()[0], re.search(r"errno = (\d+)", header["text"])
        code = header["errno"] or (int(in_words[1]) if in_words else None)
        raise OSError(code, os.strerror(code)) if code else OSError(f"HDF5: {printable(text)}")
    _raise(header, request.get("source", path))


def _send_other(stream, value):
    if value is None:
        pipe.send(stream, {"kind": "nothing"})
    elif np.asarray(value).dtype.kind in "biuf":
        pipe.send_array(stream, np.asarray(value))
    else:
        pipe.send(stream, {"kind": "text", "values": np.asarray(value).astype(str).tolist()})


def _raise(header, path):
    """Raise the error that a message tells of, if it does."""
    kind, name = header["kind"], printable(str(path))
    if kind == "unreadable":
        raise BadFileError(f"{name} {printable(header['text'])}")
    if kind == "missing":
        raise ImportError(f"This needs h5py and anndata ({header['text']}): pip install {EXTRA!r}")
    if kind == "memory":
        raise MemoryError
    if kind == "error" and header["errno"] in NOT_THE_FILE:
        raise OSError(header["errno"], os.strerror(header["errno"]), str(path))
    if kind == "error":
        raise RuntimeError(header["text"])


@contextmanager
def _process(died: Callable[[str], Exception]) -> Iterator[Any]:
    """The process of smoothgraph.hdf5, which is gone afterwards. If it dies, `died` makes the error that says how it did."""
    here = str(Path(smoothgraph.__file__).parents[1])  # it must find the same package, and no module of the current folder
    paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1", "PYTHONPATH": paths}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    pipes["pipesize"] = PIPE_BYTES
    process: Any = subprocess.Popen([sys.executable, "-P", "-m", "smoothgraph.hdf5"], env=environment, **pipes)
    try:
        yield process
    except (EOFError, BrokenPipeError):
        code = process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        raise died("took far too long" if code == -getattr(signal, "SIGXCPU", 0) else how) from None
    finally:
        process.kill()
        process.wait()
        for end in (process.stdin, process.stdout):
            with suppress(OSError):
                end.close()
