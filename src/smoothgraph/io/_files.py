"""What reading and writing have in common: kinds of files, files that are whole or not there, packages that may be missing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


def need(package: str, extra: str) -> Any:
    """The imported package, or an error that says which extra brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        raise ImportError(f"This needs {name}, which is not installed: pip install {extra!r}") from error


def suffix(path: Path) -> str:
    """The kind of a file by its name, without the .gz or .bz2 of compressed ones."""
    stem = path.with_suffix("") if path.suffix.lower() in (".gz", ".bz2") else path
    return stem.suffix.lower()


def existing(path) -> Path:
    """The path of a file that can be read."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file.")
    return path


@contextmanager
def replacing(path) -> Iterator[Path]:
    """A new file beside `path` that takes its place when all is written, and is gone if anything fails."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: make it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file.")
    unfinished = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
