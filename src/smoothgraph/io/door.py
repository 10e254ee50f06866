"""The door for files that nobody vouches for: whatever a file holds, reading it ends in data or in one line that helps.

In: a path, and code that reads it. Out: what the code returns, or a `BadFileError` that names the file, what is wrong, and the
remedy. Sizes that a file declares are compared with the limit of memory before anything of that size is allocated.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from smoothgraph.memory import check_memory
from smoothgraph.messages import printable

LONGEST_REASON = 300  # characters of another library's message that are shown


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
        if error.errno is not None:
            raise
        raise BadFileError(_line(path, kind, error)) from error
    except Exception as error:
        raise BadFileError(_line(path, kind, error)) from error


def check_declared(path, count: float, what: str, limit: float | None = None) -> None:
    """Raise a `BadFileError` if what a file declares ("a matrix of 10⁹ × 3") needs more bytes than the limit."""
    try:
        check_memory(
            count, f"{printable(str(path))} declares {what}, which needs", "Read a part of it, or raise --max-memory.", limit
        )
    except ValueError as error:
        raise BadFileError(str(error)) from None


def _line(path, kind, error):
    lines = str(error).strip().splitlines()
    reason = printable(lines[0] if lines else type(error).__name__)
    reason = reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON] + " …"
    remedy = "Is it complete, and of the kind that its name says?"
    return f"{printable(str(path))} cannot be read as {kind}: {reason.rstrip('.')}. {remedy}"
