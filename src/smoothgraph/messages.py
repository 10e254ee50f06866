"""Warnings that point at the line of the user's own code."""

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parent)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the first line outside of this package (and of scikit-learn, which may stand between) as the place."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and (frame.f_code.co_filename.startswith(PACKAGE) or "sklearn" in frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
