"""Graphs ↔ edge lists: csv, tsv and parquet with one row for each edge.

In and out: a `StoredGraph`. Columns are source and target, node numbers from 0 on or names, and may be weight (1 where there is
none), source_id and target_id. We write each edge once, with source < target; a node without edges has a row with itself as
target and weight 0, so that no node is lost. Parquet has n and the metadata in its schema; csv has no place for them, nor for
what is text and what is a number: ids that are all whole numbers are numbers. Labels have no place in either.
"""

import csv
import json
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from smoothgraph.io.cells import from_cells, to_cells
from smoothgraph.io.compressed import opened
from smoothgraph.io.door import bad, check_declared, metadata_of, reading
from smoothgraph.io.stored import LARGEST_NODE, StoredGraph, text_array, weights_of_edges
from smoothgraph.io.text import whole_numbers
from smoothgraph.memory import available_memory
from smoothgraph.messages import printable
from smoothgraph.optional import need

EXTRA = "smoothgraph[io]"
COLUMNS = ["source", "target", "weight", "source_id", "target_id"]
DELIMITERS = ",;\t| "
GROWTH = 8  # bytes of memory for a byte of csv, as measured
LONGEST_HEADER = 1 << 16  # bytes of the first line
BLOCK_BYTES = 1 << 24  # bytes of csv that Arrow parses at a time


def write_parquet(path: Path, graph: StoredGraph) -> None:
    """Write a parquet edge list."""
    table = _edge_table(graph, graph.ids)
    described = {"n": str(graph.W.shape[0]), "smoothgraph": json.dumps(graph.metadata)}
    need("pyarrow.parquet", EXTRA).write_table(table.replace_schema_metadata(described), path)


def write_csv(path: Path, graph: StoredGraph) -> None:
    """Write a csv edge list. Ids that begin like a formula have an apostrophe in front, so that no spreadsheet runs them."""
    ids = None if graph.ids is None else to_cells(graph.ids)
    # The decimals of a float32 would be read as another float64.
    need("pyarrow.csv", EXTRA).write_csv(_edge_table(graph._replace(W=graph.W.astype(np.float64)), ids), path)


def _edge_table(graph, ids):
    pa = need("pyarrow", EXTRA)
    edges = sp.triu(graph.W, k=0).tocsr().tocoo()  # csr puts the edges in the order of their rows
    alone = np.flatnonzero(np.diff(graph.W.indptr) == 0)
    source, target = (np.concatenate([ends, alone]) for ends in (edges.row, edges.col))
    columns = {"source": source, "target": target, "weight": np.concatenate([edges.data, np.zeros(alone.size)])}
    if ids is not None:
        names = pa.array(ids.tolist())  # as Python's texts: Arrow ends those of numpy at their first NUL
        columns |= {"source_id": names.take(pa.array(source)), "target_id": names.take(pa.array(target))}
    return pa.table(columns)


def read_parquet(path: Path, limit: float | None = None) -> StoredGraph:
    """Read a parquet edge list.

    Arrow opens the file itself: its threads let go of what they read from a file of Python's after the table is there, and
    where the process ends at that moment, it is aborted.
    """
    pa, parquet = need("pyarrow", EXTRA), need("pyarrow.parquet", EXTRA)
    with reading(path, "a parquet file"), pa.OSFile(os.fsencode(path)) as file:
        stored = parquet.ParquetFile(file)
        names, n_rows = stored.schema_arrow.names, stored.metadata.num_rows
        _check_columns(path, names)
        wanted = [name for name in COLUMNS if name in names]
        groups = [stored.metadata.row_group(i) for i in range(stored.metadata.num_row_groups)]
        size = sum(max(group.total_byte_size, 0) for group in groups) + 8 * len(wanted) * max(n_rows, 0)
        check_declared(path, size, f"{n_rows:,} edges", limit)
        described = stored.schema_arrow.metadata or {}
        texts = [field.name for field in stored.schema_arrow if str(field.type) in ("string", "large_string")]
        # A dictionary keeps a text that a million edges repeat as one text.
        table = parquet.ParquetFile(file, read_dictionary=[name for name in wanted if name in texts]).read(columns=wanted)
        table.validate(full=True)
        n = int(described[b"n"]) if b"n" in described else None
        graph = _from_edges(path, table, n, limit)
    return graph._replace(metadata=metadata_of(path, described.get(b"smoothgraph", b"{}")))


def read_csv(path: Path, limit: float | None = None) -> StoredGraph:
    """Read a csv edge list; the first line names the columns, and says which delimiter there is."""
    pa, arrow_csv = need("pyarrow", EXTRA), need("pyarrow.csv", EXTRA)
    most = (available_memory() if limit is None else limit) / GROWTH
    with reading(path, "an edge list"), opened(path, most) as file:
        delimiter, names = _header(path, file.readline(LONGEST_HEADER))
        wanted = [name for name in COLUMNS if name in names]
        table = arrow_csv.read_csv(
            file,
            arrow_csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types={name: pa.float64() if name == "weight" else pa.string() for name in wanted},
            ),
        )
        for pair in (COLUMNS[:2], COLUMNS[3:]):
            table = _with_numbers(pa, table, pair)
        return _from_edges(path, table, None, limit, from_cells)


def _header(path, line):
    """(the delimiter, the names of the columns) from the first line."""
    text = line.decode("utf-8-sig")
    if not text.strip():
        raise bad(path, "it is empty: an edge list begins with a line source,target,weight.")
    splits = [(delimiter, next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter))) for delimiter in DELIMITERS]
    delimiter, names = max(splits, key=lambda split: (len(set(COLUMNS) & set(split[1])), len(split[1])))
    _check_columns(path, names)
    return delimiter, names


def _check_columns(path, names):
    if not {"source", "target"} <= set(names):
        there = ", ".join(printable(str(name))[:40] for name in names[:10]) + (", …" if len(names) > 10 else "")
        raise bad(path, f"it is no edge list: it needs the columns source and target, but has {there}.")
    if ("source_id" in names) != ("target_id" in names):
        raise bad(path, "it has one of the columns source_id and target_id: it needs both or neither.")
    if any(names.count(name) > 1 for name in COLUMNS):
        raise bad(path, "it has several columns of the same name.")


def _with_numbers(pa, table, pair):
    """The table with these two columns as integers, if all their texts are whole numbers as we would write them."""
    if pair[0] not in table.column_names:
        return table
    numbers = {name: whole_numbers(table[name]) for name in pair}
    if not all(pa.types.is_integer(values.type) for values in numbers.values()):
        return table
    for name, values in numbers.items():
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _from_edges(path, table, n, limit, unmarked=list):
    """A graph from an Arrow table of edges; `unmarked` makes ids of the texts in source_id and target_id."""
    pa = need("pyarrow", EXTRA)
    for name in table.column_names:
        _check_filled(path, table[name], name)
    weight = table["weight"].cast(pa.float64()).to_numpy() if "weight" in table.column_names else np.ones(table.num_rows)
    ids = None
    if all(pa.types.is_integer(table[name].type) or pa.types.is_floating(table[name].type) for name in COLUMNS[:2]):
        source, target = (table[name].cast(pa.int64()).to_numpy() for name in COLUMNS[:2])
        largest = int(max(source.max(initial=-1), target.max(initial=-1)))
        n = 1 + largest if n is None else n
    else:
        (source, target), values = _codes(path, table, COLUMNS[:2], limit)
        ids, number = np.unique(values, return_inverse=True)
        source, target, n = number[source], number[target], ids.size
    if n < 1 or n > LARGEST_NODE:
        raise bad(path, f"it has {n:,} nodes: a graph has at least 1, and at most {LARGEST_NODE:,}.")
    W = weights_of_edges(path, n, source, target, weight, limit)
    if "source_id" in table.column_names:
        codes, values = _codes(path, table, COLUMNS[3:], limit, unmarked)
        ids = _ids(path, n, np.concatenate([source, target]), np.concatenate(codes), values)
    return StoredGraph(W, ids, None, {})


def _check_filled(path, column, name):
    """No node, id or weight may be missing."""
    if column.null_count:
        row = need("pyarrow.compute", EXTRA).index(column.is_null(), True).as_py()
        raise bad(path, f"row {row} has no {name}: every edge needs one. Rows are counted from 0.")


def _codes(path, table, pair, limit, unmarked=list):
    """(a number for each entry of the two columns, the values that these numbers stand for: integers or text)."""
    pa = need("pyarrow", EXTRA)
    coded = []
    for name in pair:
        column = table[name]
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        coded.append(column.unify_dictionaries().combine_chunks())
    values = [part.dictionary for part in coded]
    codes = [part.indices.to_numpy().astype(np.int64) for part in coded]
    if all(pa.types.is_integer(part.type) for part in values):
        names = np.concatenate([part.cast(pa.int64()).to_numpy() for part in values])
    else:
        texts = [part.cast(pa.string()).to_pylist() for part in values]
        for name, numbers, known in zip(pair, codes, texts, strict=True):
            if not all(known) and (empty := np.isin(numbers, [i for i, text in enumerate(known) if not text])).any():
                raise bad(path, f"row {int(np.argmax(empty))} has no {name}: every edge needs one. Rows are counted from 0.")
        names = text_array(path, unmarked([text or "" for text in texts[0] + texts[1]]), limit)
    return (codes[0], codes[1] + len(values[0])), names


def _ids(path, n, node, code, values):
    """The id of each node, if every node has exactly one."""
    values, same = np.unique(values, return_inverse=True)
    code = same[code]
    of_node = np.full(n, -1, np.int64)
    of_node[node] = code
    if (of_node[node] != code).any():
        at = int(np.argmax(of_node[node] != code))
        raise bad(path, f"node {node[at]} has two ids, {values[code[at]]!s} and {values[of_node[node[at]]]!s}.")
    if (of_node < 0).any():
        missing = int(np.argmax(of_node < 0))
        raise bad(path, f"node {missing} has no id, because it is in no row: number the nodes 0 to n − 1, without gaps.")
    return values[of_node]
