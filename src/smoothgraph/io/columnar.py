"""Parquet, Arrow and Feather files → Arrow tables.

In: a path and what is `Wanted`. Out: an Arrow table with the columns that are wanted (and, as of
every reader of frames, what is wanted of it, and how it was understood). What a file declares is held against the
memory, and the arrays that were read are validated before anything uses them: Arrow itself believes offsets in a file.
"""

from pathlib import Path
from typing import Any

from smoothgraph.io.door import check_declared, reading
from smoothgraph.io.frames import EXTRA, check_names
from smoothgraph.io.samples import Wanted
from smoothgraph.messages import printable
from smoothgraph.optional import need


def read_parquet_frame(path: Path, wanted: Wanted) -> tuple[Any, Wanted, str]:
    """The wanted columns of a parquet file."""
    pa, parquet = need("pyarrow", EXTRA), need("pyarrow.parquet", EXTRA)
    with reading(path, "a parquet file"):
        file = parquet.ParquetFile(path)
        names, rows = file.schema_arrow.names, file.metadata.num_rows
        check_names(names, printable(str(path)))
    needed = wanted.needed(names)
    with reading(path, "a parquet file"):
        if rows < 0:
            raise ValueError(f"it declares {rows} rows")
        check_declared(path, 8 * rows * len(needed), f"{rows} rows of {len(needed)} columns", wanted.limit)
        # A dictionary keeps a text that is repeated a million times as one text.
        special = [name for name in (wanted.id_column, wanted.label_column) if name]
        file = parquet.ParquetFile(path, read_dictionary=special)
        parts, count = [], 0
        for number in range(file.metadata.num_row_groups):
            part = file.read_row_group(number, columns=needed)
            part.validate(full=True)  # before even its size is asked for, as below
            parts.append(part)
            count += part.nbytes
            check_declared(path, count, "tables", wanted.limit)
        table = pa.concat_tables(parts) if parts else file.schema_arrow.empty_table().select(needed)
    return table, wanted._replace(columns=wanted.features(names), exclude=None), ""


def read_arrow_frame(path: Path, wanted: Wanted) -> tuple[Any, Wanted, str]:
    """The table of an Arrow file or stream. It is read, not mapped: a map of a file that changes ends the process."""
    pa = need("pyarrow", EXTRA)
    with reading(path, "an Arrow file"), pa.OSFile(str(path)) as source:
        try:
            opened = pa.ipc.open_file(source)
            parts = (opened.get_batch(number) for number in range(opened.num_record_batches))
        except pa.ArrowInvalid:
            source.seek(0)
            opened = pa.ipc.open_stream(source)
            parts = iter(opened)
        check_names(opened.schema.names, printable(str(path)))
        kept, count = [], 0
        for part in parts:
            part.validate(full=True)  # before anything else, even its size: Arrow follows offsets that lie out of its memory
            kept.append(part)
            count += part.nbytes
            check_declared(path, count, "tables", wanted.limit)
        table = pa.Table.from_batches(kept, opened.schema)
    return table, wanted, ""
