"""Labels of nodes from a file.

In: a table with named columns, and the ids of the nodes. Out: a label for each node, as text, "" where there is none. Labels of
rows that are no nodes are left out with a warning: a table of labels is often that of all samples.
"""

import numpy as np

from smoothgraph.files import existing, suffix
from smoothgraph.io.cells import from_cells
from smoothgraph.io.frames import values_of
from smoothgraph.io.samples import Wanted, listed, shown
from smoothgraph.io.tables import FRAME_READERS
from smoothgraph.messages import printable, warn


class _WantedLabels(Wanted):
    """The column of labels, and that of ids if it is there; no features."""

    def features(self, there):
        return []

    def needed(self, there):
        if self.label_column not in there:
            raise ValueError(f"There is no column {shown(self.label_column)} of labels: the columns are {listed(there)}.")
        return [name for name in (self.id_column, self.label_column) if name in there]


def read_labels(
    path,
    ids,
    *,
    id_column: str = "id",
    label_column: str = "label",
    encoding: str | None = None,
    max_memory: float | None = None,
) -> np.ndarray:
    """Labels for the nodes called `ids`, as text; "" for a node that has no label.

    The file is a table with a column of ids and one of labels, and need not list every node. Or it has only a column of labels,
    with a row for each node in the order of the nodes, empty for nodes that have no label. Rows whose id is no node, such as
    those that had a missing value when the graph was learned, are left out with a warning; if no row is of a node, that is an
    error, and so are two labels for one node.
    """
    path = existing(path)
    if suffix(path) not in FRAME_READERS:
        raise ValueError(f"{path} is no table with named columns: use {', '.join(sorted(FRAME_READERS))}.")
    wanted = _WantedLabels(id_column=id_column, label_column=label_column, encoding=encoding, limit=max_memory)
    frame, _, _ = FRAME_READERS[suffix(path)](path, wanted)
    labels = values_of(frame[label_column], "labels", max_memory).astype(str)
    if suffix(path) == ".csv":
        labels = np.array(from_cells(labels.tolist()), dtype=str)
    if id_column not in frame.column_names:
        if labels.size != len(ids):
            raise ValueError(
                f"{path} has {labels.size} labels for {len(ids)} nodes, and no column {id_column!r} that says which nodes "
                "they belong to."
            )
        return labels
    return _placed(path, values_of(frame[id_column], "ids", max_memory).astype(str), labels, ids)


def _placed(path, names, labels, ids):
    """The labels in the order of the nodes."""
    number = {name: i for i, name in enumerate(map(str, ids))}
    found = np.full(len(ids), "", labels.dtype)
    strangers = []
    for name, label in zip(names.tolist(), labels.tolist(), strict=True):
        name = name if name in number else from_cells([name])[0]
        if name not in number:
            strangers.append(name)
        elif label and found[number[name]] not in ("", label):
            raise ValueError(f"{path} has two labels for {shown(name)}: {shown(str(found[number[name]]))} and {shown(label)}.")
        elif label:
            found[number[name]] = label
    if strangers and len(strangers) == len(names):
        raise ValueError(
            f"{path} has labels for {listed(strangers)}, and none of them is a node of the graph. The nodes are "
            f"{listed(list(number))}."
        )
    if strangers:
        warn(
            f"{len(strangers)} of {len(names)} labels of {printable(path.name)} belong to no node of the graph, such as "
            f"{shown(strangers[0])}: rows that were left out have no node."
        )
    return found
