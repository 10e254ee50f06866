"""Words for people: warnings that point at the line of the user's own code, and text that is safe on a terminal."""

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parent)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the first line outside of this package (and of packages that may stand between) as the place."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _is_inside(path: str) -> bool:
    return path.startswith(PACKAGE) or "sklearn" in path or "numba" in path


def one_line(text: str) -> str:
    """The text with its lines joined, printable.

    >>> one_line("bad file:\\n  it ends\\n")
    'bad file: it ends'
    """
    return printable(" ".join(line.strip() for line in text.splitlines() if line.strip()))


def printable(text: str) -> str:
    """The text in one line, without characters that move a cursor or change colours: they are written out, as \\x1b.

    >>> printable("a\\x1b[2Jb\\n")
    'a\\\\x1b[2Jb\\\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
