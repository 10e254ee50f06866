"""Text in cells of csv files that a spreadsheet opens without running it.

In: ids or labels. Out: the same, where texts that begin like a formula have an apostrophe in front, which spreadsheets take for
"this is text"; `from_cells` takes it away again. A text that begins with an apostrophe gets another one, so that none is lost.
"""

import numpy as np

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # what a text begins with that a spreadsheet runs
MARKED = tuple("'" + begin for begin in (*FORMULAS, "'"))


def to_cells(values: np.ndarray) -> np.ndarray:
    """Text that is safe in a spreadsheet; numbers stay as they are.

    >>> to_cells(np.array(["=1+1", "a"])).tolist()
    ["'=1+1", 'a']
    """
    if values.dtype.kind not in "UO":
        return values
    return np.array([_marked(value) for value in values.tolist()], dtype=values.dtype.kind)


def _marked(value):
    return "'" + value if isinstance(value, str) and value.startswith((*FORMULAS, "'")) else value


def from_cells(texts: list[str]) -> list[str]:
    """The texts that `to_cells` was given."""
    return [text[1:] if text.startswith(MARKED) else text for text in texts]
