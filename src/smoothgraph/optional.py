"""Packages that may be missing: the one place that imports them, in the function that needs them and not before."""

from importlib import import_module
from typing import Any


def need(package: str, extra: str) -> Any:
    """The imported package or module; an ImportError that says what to install if it is missing.

    `extra` is the name to give to pip install, such as "smoothgraph[io]".
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        raise ImportError(f"This needs {name}, which is not installed: pip install {extra!r}") from error
