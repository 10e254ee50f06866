"""`learn --dry-run`: about how long it takes and how much memory, from the size of the table alone.

In: the options of `learn`, and the learner that they ask for. Out: facts and lines to show. Beside what the fit takes, the
command has packages for files, and what it reads is in memory where the format cannot be used where it is.
"""

from pathlib import Path
from typing import Any

from smoothgraph.memory import available_memory, readable

PACKAGES_BYTES = 70e6  # the command line, Arrow and pandas, beside what a fit in Python has
FRAME_KINDS = ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc"


def dry_run(options: dict[str, Any], learner) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What the command would take, as facts for scripts and as lines for people."""
    import numpy as np

    from smoothgraph.files import suffix
    from smoothgraph.io.shapes import table_shape

    columns = None if options["columns"] is None else options["columns"].split(",")
    path = Path(options["data"])
    shape = table_shape(path, columns, options["id_column"], options["label_column"], options["key"])
    needed = learner.estimate(shape.n, shape.d, shape.dtype, shape.nnz)
    held = float(shape.n) * shape.d * np.dtype(shape.dtype).itemsize if shape.nnz is None else 12.0 * shape.nnz
    reading = 2.0 * held if suffix(path) in FRAME_KINDS else held  # a table of columns, and X made of it
    memory = max(needed.memory + (0.0 if options["standardize"] == "none" else held), reading) + PACKAGES_BYTES
    facts = {
        "samples": shape.n,
        "features": shape.d,
        "samples_counted": shape.is_exact,
        "seconds": round(needed.seconds, 1),
        "memory_bytes": round(memory),
        "available_bytes": round(min(available_memory(), 2.0**63)),
        "search": needed.search,
    }
    lines = [
        ("samples", f"{'' if shape.is_exact else 'about '}{shape.n:,} × {shape.d:,} features"),
        ("search", needed.search),
        ("time", f"about {needed.seconds:.2g} s on this machine (by a factor of 2), if the kernels are compiled"),
        ("memory", f"about {readable(memory)}, of {readable(facts['available_bytes'])} there are"),
    ]
    return facts, lines
