"""What reading and writing files have in common: the kind of a file, and files that are complete or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def suffix(path: Path) -> str:
    """The kind of a file by its name, such as ".csv"; the .gz or .bz2 of a compressed file does not count."""
    stem = path.with_suffix("") if path.suffix.lower() in (".gz", ".bz2") else path
    return stem.suffix.lower()


def existing(path) -> Path:
    """The path of a file, which must exist."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file.")
    return path


@contextmanager
def replacing(path) -> Iterator[Path]:
    """A new file in the folder of `path`. It is renamed to `path` when all is written, and deleted if anything fails."""
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
