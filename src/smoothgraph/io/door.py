"""The door for files that nobody vouches for: whatever a file holds, reading it ends in data or in one line that helps.

In: a path, and code that reads it. Out: what the code returns, or a `BadFileError` that names the file, what is wrong, and the
remedy. Sizes that a file declares are compared with the limit of memory before anything of that size is allocated.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from smoothgraph.memory import check_memory
from smoothgraph.messages import printable

READ_A_PART = "Read a part of it, or raise --max-memory."
LONGEST_REASON = 300  # characters of another library's message that are shown
SPARE_ROWS = 1_000_000  # rows (or nodes) that a file may declare beyond those that its entries explain: they cost megabytes
ROWS_PER_ENTRY = 100  # rows (or nodes) that one entry explains: gaps are common, a billion nodes for three edges is a mistake
MAX_METADATA = 1 << 24  # characters of metadata; how a graph was learned takes about a thousand
MAX_DEPTH = 64  # levels of lists and dicts in metadata; it has three


class BadFileError(ValueError):
    """A file that cannot be read as what its name says. The message is complete: file, place, remedy."""


@contextmanager
def reading(path, kind: str) -> Iterator[None]:
    """Errors of the libraries beneath become a `BadFileError` of one line; `kind` is what the file should be: "an npz".

    Errors of the operating system (no such file, no permission) and missing packages keep their own words.
    """
    try:
        yield
    except (BadFileError, ImportError):
        raise
    except MemoryError as error:
        raise BadFileError(
            f"{printable(str(path))} needs more memory than there is. Read a part of it, or use a larger machine."
        ) from error
    except OSError as error:
        if error.errno is not None:  # a failing disk, for one, does not say which file it was
            raise (error if error.filename else OSError(error.errno, error.strerror, str(path))) from None
        raise BadFileError(_line(path, kind, error)) from error
    except Exception as error:
        raise BadFileError(_line(path, kind, error)) from error


def bad(path, text: str) -> BadFileError:
    """The error that says what is wrong in a file: "edges.csv: row 3 has no target. …"."""
    return BadFileError(f"{printable(str(path))}: {_cut(printable(text), 2 * LONGEST_REASON)}")


def check_declared(path, count: float, what: str, limit: float | None = None, remedy: str = READ_A_PART) -> None:
    """Raise a `BadFileError` if what a file declares ("a matrix of 10⁹ × 3") needs more bytes than the limit."""
    try:
        check_memory(count, f"{printable(str(path))} declares {what}, which needs", remedy, limit)
    except ValueError as error:
        raise BadFileError(str(error)) from None


def check_rows(path, rows: int, entries: int, remedy: str) -> None:
    """Raise a `BadFileError` if a file of so many entries (edges, values) declares far more rows (nodes) than it can need."""
    if rows > SPARE_ROWS + ROWS_PER_ENTRY * entries:
        raise bad(path, f"{rows:,} rows, columns or nodes are too many for {entries:,} entries. {remedy}")


def metadata_of(path, text: str | bytes) -> dict[str, Any]:
    """The metadata that a file has as JSON: a dict of bounded size and depth."""
    if len(text) > MAX_METADATA:
        raise bad(path, f"its metadata has {len(text):,} characters: at most {MAX_METADATA:,} are read.")
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad(path, f"its metadata is no JSON: {str(error).splitlines()[0]}.") from error
    if not isinstance(metadata, dict) or not depth_fits(metadata):
        raise bad(path, f"its metadata is no dict of at most {MAX_DEPTH} levels.")
    return metadata


def depth_fits(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Whether lists and dicts are nested in at most so many levels."""
    if not isinstance(value, dict | list | tuple):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(depth_fits(v, levels - 1) for v in inner)


def _cut(text, length):
    return text if len(text) <= length else text[:length] + " …"


def _line(path, kind, error):
    lines = str(error).strip().splitlines()
    reason = printable(lines[0] if lines else type(error).__name__)
    reason = _cut(reason, LONGEST_REASON)
    remedy = "Is it complete, and of the kind that its name says?"
    return f"{printable(str(path))} cannot be read as {kind}: {reason.rstrip('.')}. {remedy}"
