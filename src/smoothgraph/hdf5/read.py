"""An open h5ad → the parts of it that were asked for, sent over the pipe.

No link is followed, nothing is unpickled, nothing is read that lies in another file, and what needs more memory than was
granted is refused before it is read.
"""

import json
from typing import Any, BinaryIO

import numpy as np

from smoothgraph.hdf5.pipe import send, send_array

BLOCK_BYTES = 1 << 25  # bytes of an array that are in the memory of this process at a time
TEXT_BYTES = 64  # memory for an entry of text, besides its letters
READ_RATE = 2e7  # bytes that even a slow machine unpacks in a second: what takes longer is a loop in a damaged file
LEAST_SECONDS = 5  # of computing before a part is given up: a small one takes milliseconds
MAX_LISTED = 10  # names that a message lists


class UnreadableError(Exception):
    """What is wrong with a file, as the end of a sentence that begins with its name."""


class TooLargeError(Exception):
    """(bytes, what): the file declares more than the memory that was granted."""


class Reader:
    """Sends parts of an open file, each within the limit of memory."""

    def __init__(self, file, limit: float, out: BinaryIO):
        self.file, self.limit, self.out = file, limit, out

    def table(self, key, id_column, label_column) -> None:
        """Send X, the ids and the labels."""
        self.matrix(self._chosen(key))
        obs = obs_of(self.file)
        for name in filter(None, (id_column, label_column)):
            if name not in names(obs):
                raise UnreadableError(f"has no column {name!r} in obs: it has {listed(columns(obs))}.")
        self.column(obs, id_column or index_name(obs))
        self.column(obs, label_column)

    def graph(self) -> None:
        """Send what smoothgraph wrote of the graph (JSON), the weights, the names of the nodes, and their labels if any."""
        obsp = child(self.file, "obsp")
        key = graph_key(names(obsp))
        entry = "neighbors" if key == "connectivities" else key.removesuffix("_connectivities")
        about = child(child(child(self.file, "uns"), entry), "smoothgraph")
        text = "{}" if about is None else self._text(about)
        label = label_column(text)
        send(self.out, {"kind": "text", "values": [text]})
        self.matrix(child(obsp, key))
        obs = obs_of(self.file)
        self.column(obs, index_name(obs))
        self.column(obs, label if label in names(obs) else None)

    def matrix(self, item) -> None:
        """Send a table of numbers: dense, sparse, or a frame of numeric columns."""
        kind = encoding(item)
        if is_dataset(item):
            self._dense(item)
        elif kind in ("csr_matrix", "csc_matrix"):
            self._sparse(item, kind)
        elif kind == "dataframe":
            columns_ = [self._numbers(child(item, name)) for name in columns(item)]
            send_array(self.out, np.column_stack(columns_))
        else:
            raise UnreadableError(f"has {item.name} of the kind {kind!r}, which is no table of numbers: choose another key.")

    def column(self, frame, name) -> None:
        """Send a column of a frame: numbers as an array, all else as text, "" where a value is missing."""
        if name is None:
            send(self.out, {"kind": "nothing"})
            return
        item = child(frame, name)
        values = self._categories(item) if is_categorical(item) else self._values(item)
        if isinstance(values, np.ndarray):
            send_array(self.out, values)
        else:
            send(self.out, {"kind": "text", "values": values})

    def _chosen(self, key):
        obsm, layers = child(self.file, "obsm"), child(self.file, "layers")
        there = [*names(layers), *names(obsm)]
        if key in (None, "X"):
            if child(self.file, "X") is None:
                raise UnreadableError(f"has no X: choose a layer or an obsm by its key, of {listed(there)}.")
            return child(self.file, "X")
        for group in (obsm, layers):
            if key in names(group):
                return child(group, key)
        raise UnreadableError(f"has no layer and no obsm {key!r}: it has X, {listed(there)}.")

    def _dense(self, dataset) -> None:
        kind = self._checked(dataset, "biuf").dtype.newbyteorder("=")
        rows = max(1, BLOCK_BYTES * len(dataset) // max(1, dataset.nbytes)) if dataset.ndim else 1
        parts = (dataset[begin : begin + rows].astype(kind) for begin in range(0, len(dataset), rows)) if dataset.ndim else ()
        send(self.out, {"kind": "array", "dtype": kind.str, "shape": dataset.shape}, parts)

    def _sparse(self, group, kind) -> None:
        shape = [int(length) for length in group.attrs.get("shape", group.attrs.get("h5sparse_shape", ()))]
        if len(shape) != 2 or min(shape) < 0:
            raise UnreadableError(f"is damaged: {group.name} has the shape {shape}.")
        if 8.0 * max(shape) > self.limit:
            raise TooLargeError(8.0 * max(shape), f"{group.name} of shape {shape[0]} × {shape[1]}")
        send(self.out, {"kind": kind[:3], "shape": shape})
        for name in ("data", "indices", "indptr"):
            self._dense(child(group, name))

    def _checked(self, dataset, kinds):
        """The dataset, if it holds one of the kinds of numbers, lies in this file, and fits in memory."""
        import h5py

        if not is_dataset(dataset):
            raise UnreadableError("is damaged: an array of it is missing.")
        if dataset.dtype.kind not in kinds and not (h5py.check_string_dtype(dataset.dtype) and "S" in kinds):
            raise UnreadableError(
                f"has {dataset.name} of the type {dataset.dtype}, but numbers are needed: choose another key."
            )
        if dataset.is_virtual or dataset.external:
            raise UnreadableError(f"has {dataset.name} in another file, which is not followed: write it into one file.")
        is_text = dataset.dtype.kind not in "biuf"
        needed = float(np.prod(dataset.shape, dtype=np.float64)) * (TEXT_BYTES if is_text else dataset.dtype.itemsize)
        if needed > self.limit:
            raise TooLargeError(needed, f"{dataset.name} of shape {' × '.join(map(str, dataset.shape))}")
        allow_seconds(needed / READ_RATE)
        return dataset

    def _numbers(self, dataset) -> np.ndarray:
        dataset = self._checked(dataset, "biuf")
        return dataset[()].astype(dataset.dtype.newbyteorder("="))

    def _text(self, dataset) -> Any:
        """Text of any shape."""
        import h5py

        self._checked(dataset, "SO")
        if not h5py.check_string_dtype(dataset.dtype):
            raise UnreadableError(f"has {dataset.name} of the type {dataset.dtype}, but text is needed.")
        values = dataset.asstr()[()]
        return values if isinstance(values, str) else values.ravel().tolist()

    def _values(self, item) -> Any:
        if is_dataset(item):
            return self._numbers(item) if item.dtype.kind in "biuf" else self._text(item)
        values, mask = child(item, "values"), child(item, "mask")
        if values is None or mask is None:
            raise UnreadableError(
                f"has a column {item.name} of the kind {encoding(item)!r}: only numbers, text and categories are read."
            )
        is_missing = self._numbers(mask).astype(bool)
        found = self._values(values)
        if isinstance(found, np.ndarray) and not is_missing.any():
            return found
        return ["" if gap else str(value) for value, gap in zip(found, is_missing, strict=True)]

    def _categories(self, item) -> Any:
        reference = item.attrs.get("categories") if is_dataset(item) else None  # as anndata 0.7 wrote them
        words = self.file[reference] if reference is not None else child(item, "categories")
        codes = self._numbers(item if reference is not None else child(item, "codes"))
        values = self._values(words)
        if codes.size and not -1 <= codes.min() <= codes.max() < len(values):
            raise UnreadableError(f"is damaged: the codes of {item.name} go from {codes.min()} to {codes.max()}.")
        if isinstance(values, np.ndarray) and not (codes < 0).any():
            return values[codes]
        words = [*map(str, values), ""]  # −1, a missing value, is the last
        return [words[code] for code in codes]


def child(group, name):
    """A part of a group; None if it is not there. Links are not followed: they may lead into any file."""
    import h5py

    if group is None or is_dataset(group) or "/" in name or name in (".", "") or name not in group:
        return None
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise UnreadableError(f"has a link in the place of {group.name.rstrip('/')}/{name}, which is not followed.")
    return group[name]


def obs_of(file):
    """The frame of the cells."""
    obs = child(file, "obs")
    if obs is None or is_dataset(obs) or child(obs, index_name(obs)) is None:
        raise UnreadableError("has no obs as AnnData writes it since 0.7: read it with anndata, and write it again.")
    return obs


def n_cells(file) -> int:
    obs = obs_of(file)
    index = child(obs, index_name(obs))
    return len(index if is_dataset(index) else child(index, "values"))


def names(group) -> list[str]:
    return [] if group is None or is_dataset(group) else list(group.keys())


def listed(there) -> str:
    more = len(there) - MAX_LISTED
    return ", ".join(map(repr, there[:MAX_LISTED])) + (f" and {more} more" if more > 0 else "")


def columns(frame) -> list[str]:
    """The columns of a frame, in their order, without the index."""
    order = [str(name) for name in frame.attrs.get("column-order", names(frame))]
    return [name for name in order if name != index_name(frame) and not name.startswith("__")]


def index_name(frame) -> str:
    return str(frame.attrs.get("_index", "_index"))


def label_column(about: str) -> str:
    """The column of obs that has the labels, by what smoothgraph wrote of a graph; the reader of the text checks all of it."""
    try:
        return str(json.loads(about)["label"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "label"


def graph_key(there: list[str]) -> str:
    """The graph among the entries of obsp: connectivities, or the only one that has such a name."""
    named = [name for name in there if name.endswith("_connectivities")]
    if "connectivities" in there:
        return "connectivities"
    if len(named) != 1:
        raise UnreadableError(f"holds no graph: obsp['connectivities'] is missing, obsp has [{listed(there)}].")
    return named[0]


def is_dataset(item) -> bool:
    return hasattr(item, "shape")


def is_categorical(item) -> bool:
    return "categories" in item.attrs if is_dataset(item) else encoding(item) == "categorical"


def encoding(item) -> str:
    """What AnnData says that a group is."""
    kind = item.attrs.get("encoding-type")
    if kind is None and "h5sparse_format" in item.attrs:
        kind = f"{item.attrs['h5sparse_format']}_matrix"
    return str(kind)


def allow_seconds(seconds: float) -> None:
    """Let this process compute for so many seconds more than the least; it is ended when they are over."""
    try:
        import resource
    except ImportError:  # Windows
        return
    spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(spent + LEAST_SECONDS + min(seconds, 1e8))
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
