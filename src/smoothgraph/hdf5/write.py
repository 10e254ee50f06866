"""A graph → an h5ad: into a file that is there, or into a new one.

Groups are written as the format of AnnData has them since 0.7. To import anndata itself would take a second.
"""

from typing import Any

import numpy as np

from smoothgraph.hdf5.read import UnreadableError, child, n_cells, names

DICT = ("dict", "0.1.0")


def add(path: str, request: dict[str, Any], values: list[Any]) -> None:
    """Add matrices to obsp, and an entry to uns, of a file that is there; all else in it stays as it is."""
    import h5py

    with h5py.File(path, "r+") as file:
        n = n_cells(file)
        if n != request["n"]:
            raise UnreadableError(f"has {n} cells, but the graph has {request['n']} nodes.")
        entry, learned_from = request["entry"], request["learned_from"]
        if learned_from == "X" or learned_from in names(child(file, "obsm")):
            entry["params"]["use_rep"] = learned_from
        _write_graph(file, request, values)


def create(path: str, request: dict[str, Any], values: list[Any]) -> None:
    """Write a new file: names and labels of the nodes, matrices, and an entry of uns."""
    import h5py

    index, labels, *matrices = values
    with h5py.File(path, "w") as file:
        _encode(file, "anndata", "0.1.0")
        _write_frame(file, "obs", index, {} if labels is None else {request["label"]: labels})
        _write_frame(file, "var", [], {})
        for name in ("layers", "obsm", "obsp", "uns", "varm", "varp"):
            _encode(file.create_group(name), *DICT)
        _write_graph(file, request, matrices)


def _write_graph(file, request, matrices):
    for name, (_, shape, *arrays) in zip(request["obsp"], matrices, strict=True):
        group = _new_group(_top_group(file, "obsp"), name, "csr_matrix", "0.1.0")
        group.attrs["shape"] = shape
        for part, array in zip(("data", "indices", "indptr"), arrays, strict=True):
            group[part] = array
    _write_entry(_top_group(file, "uns"), request["key"], request["entry"])


def _write_entry(group, name, value):
    if isinstance(value, dict):
        inner = _new_group(group, name, *DICT)
        for key, part in value.items():
            _write_entry(inner, key, part)
        return
    group[name] = value
    _encode(group[name], "string" if isinstance(value, str) else "numeric-scalar", "0.2.0")


def _write_frame(file, name, index, columns):
    frame = _new_group(file, name, "dataframe", "0.2.0")
    frame.attrs["_index"] = "_index"
    frame.attrs["column-order"] = _text(list(columns))
    _write_array(frame, "_index", index)
    for column, values in columns.items():
        _write_array(frame, column, values)


def _write_array(group, name, values):
    is_text = not isinstance(values, np.ndarray)
    group[name] = _text(values) if is_text else values
    _encode(group[name], "string-array" if is_text else "array", "0.2.0")


def _text(values):
    import h5py

    return np.array(values, dtype=h5py.string_dtype())


def _top_group(file, name):
    return child(file, name) or _new_group(file, name, *DICT)


def _new_group(parent, name, *encoding):
    if child(parent, name) is not None:
        del parent[name]
    group = parent.create_group(name)
    _encode(group, *encoding)
    return group


def _encode(item, kind, version):
    item.attrs["encoding-type"], item.attrs["encoding-version"] = kind, version
