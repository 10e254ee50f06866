"""Graphs ↔ GraphML, the XML of Gephi, yEd, igraph and networkx.

In and out: a `StoredGraph`. Nodes are named by their ids, or 0 to n − 1; an edge attribute `weight` (1 where there is none), a
node attribute `label`, and the metadata as JSON in a graph attribute `smoothgraph`, with the kind of the ids. A document type
is refused before it is read: entities can stand for any file, and for gigabytes.
"""

import json
import re
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np
import scipy.sparse as sp

from smoothgraph.io.compressed import opened
from smoothgraph.io.door import bad, metadata_of, reading
from smoothgraph.io.samples import shown
from smoothgraph.io.stored import StoredGraph, text_array, weights_of_edges
from smoothgraph.memory import available_memory

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
GROWTH = 8  # bytes of memory for a byte of GraphML, of which the names of nodes and edges are kept as Python's texts
MAX_DEPTH = 64  # of elements within elements; a graph has four
BLOCK_BYTES = 1 << 20  # read at a time
WHOLE = ("int", "long")  # types of attributes that are whole numbers
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot hold in any form
WRITTEN_OUT = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;", '"': "&quot;"}  # XML would read these as spaces


def write_graphml(path: Path, graph: StoredGraph) -> None:
    """Write a GraphML file that any reader of GraphML takes."""
    n = graph.W.shape[0]
    names = [_text(str(name)) for name in (range(n) if graph.ids is None else graph.ids.tolist())]
    kind = "none" if graph.ids is None else graph.ids.dtype.kind
    described = _text(json.dumps({"ids": kind, "metadata": graph.metadata}))
    edges = sp.triu(graph.W).tocsr().tocoo()
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(f'<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="{NAMESPACE}">\n')
        file.write('<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n')
        file.write('<key id="smoothgraph" for="graph" attr.name="smoothgraph" attr.type="string"/>\n')
        if graph.labels is not None:
            of_labels = "long" if graph.labels.dtype.kind == "i" else "string"
            file.write(f'<key id="label" for="node" attr.name="label" attr.type="{of_labels}"/>\n')
        file.write(f'<graph edgedefault="undirected">\n<data key="smoothgraph">{described}</data>\n')
        if graph.labels is None:
            file.writelines(f'<node id="{name}"/>\n' for name in names)
        else:
            labels = (_text(str(label)) for label in graph.labels.tolist())
            nodes = zip(names, labels, strict=True)
            file.writelines(f'<node id="{name}"><data key="label">{label}</data></node>\n' for name, label in nodes)
        rows = zip(edges.row.tolist(), edges.col.tolist(), edges.data.tolist(), strict=True)
        file.writelines(
            f'<edge source="{names[i]}" target="{names[j]}"><data key="weight">{w!r}</data></edge>\n' for i, j, w in rows
        )
        file.write("</graph>\n</graphml>\n")


def _text(text):
    if NO_XML.search(text):
        raise ValueError(f"GraphML has no place for the characters in {shown(text)}: write .npz or .parquet, or change it.")
    return escape(text, WRITTEN_OUT)


def read_graphml(path: Path, limit: float | None = None) -> StoredGraph:
    """Read a GraphML file. Directed edges are taken as undirected ones."""
    most = (available_memory() if limit is None else limit) / GROWTH
    with reading(path, "a GraphML file"), opened(path, most) as file:
        found = _Reader(path)
        while block := file.read(BLOCK_BYTES):
            found.parser.Parse(block, False)
        found.parser.Parse(b"", True)
        return _graph(path, found, limit)


def _graph(path, found, limit):
    n = len(found.nodes)
    if n == 0:
        raise bad(path, "it holds no nodes.")
    for name in (*found.sources, *found.targets):
        if name not in found.nodes:
            raise bad(path, f"it has an edge to {name!r}, which is no node of it.")
    described = metadata_of(path, found.described) if found.described else {}
    source, target = (np.array([found.nodes[name] for name in ends], np.int64) for ends in (found.sources, found.targets))
    W = weights_of_edges(path, n, source, target, np.array(found.weights, np.float64), limit)
    kind = described.get("ids", "U")
    ids = None if kind == "none" else text_array(path, list(found.nodes), limit).astype(np.int64 if kind == "i" else str)
    metadata = described.get("metadata", {})
    if not isinstance(metadata, dict):
        raise bad(path, "its metadata is no dict.")
    return StoredGraph(W, ids, _labels(path, found, limit), metadata)


def _labels(path, found, limit):
    if any(label is None for label in found.labels):
        return None
    if found.has_whole_labels:
        return np.array([int(label) for label in found.labels], np.int64)
    return text_array(path, found.labels, limit)


class _Reader:
    """What the parser finds: nodes (name → number), edges, labels, weights, and the text that describes the graph."""

    def __init__(self, path):
        self.path = path
        self.nodes: dict[str, int] = {}
        self.labels: list[Any] = []
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.weights: list[float] = []
        self.described = ""
        self.keys: dict[str, dict[str, str]] = {}
        self.defaults: dict[tuple[str, str], str] = {}
        self.has_whole_labels = False
        self.has_graph = False
        self.inside: list[str] = []  # the elements that are open
        self.key = ""  # of the <data> or <key> that is open
        self.text: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append

    def doctype(self, *declared):
        raise bad(
            self.path, "it declares a document type, which a graph does not need and which could read other files: remove it."
        )

    def start(self, name, attributes):
        name = name.rpartition(" ")[2]
        self.inside.append(name)
        self.text.clear()
        if len(self.inside) > MAX_DEPTH:
            raise bad(self.path, f"its elements are nested in more than {MAX_DEPTH} levels.")
        if name == "hyperedge" or (name == "graph" and self.has_graph):
            raise bad(self.path, "it has hyperedges, or several graphs: a file with one simple graph is read.")
        self.has_graph = self.has_graph or name == "graph"
        if name == "key":
            self.key = self.needed(name, attributes, "id")
            self.keys[self.key] = {"attr.type": "string", "attr.name": "", "for": "all", **attributes}
        elif name == "data":
            self.key = self.needed(name, attributes, "key")
        elif name == "node":
            node = self.needed(name, attributes, "id")
            if node in self.nodes:
                raise bad(self.path, f"it has two nodes {node!r}: ids must differ.")
            self.nodes[node] = len(self.nodes)
            self.labels.append(self.defaults.get(("node", "label")))
        elif name == "edge":
            self.sources.append(self.needed(name, attributes, "source"))
            self.targets.append(self.needed(name, attributes, "target"))
            self.weights.append(float(self.defaults.get(("edge", "weight"), 1.0)))

    def end(self, name):
        name, holder = self.inside.pop(), self.inside[-1] if self.inside else ""
        if name not in ("data", "default") or self.key not in self.keys:
            return
        facts, text = self.keys[self.key], "".join(self.text)
        attribute = facts["attr.name"]
        if name == "default":
            holder = facts["for"]
            self.defaults[holder, attribute] = text
        elif (holder, attribute) == ("edge", "weight"):
            self.weights[-1] = float(text)
        elif (holder, attribute) == ("node", "label"):
            self.labels[-1] = text
        elif (holder, attribute) == ("graph", "smoothgraph"):
            self.described = text
        if (holder, attribute) == ("node", "label"):
            self.has_whole_labels = facts["attr.type"] in WHOLE

    def needed(self, element, attributes, name):
        if name not in attributes:
            raise bad(self.path, f"line {self.parser.CurrentLineNumber} has a <{element}> without {name}.")
        return attributes[name]
