"""What reading and writing files have in common: the kind of a file, and files that are complete or not there."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from smoothgraph.messages import printable


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


def check_output(path, inputs: Iterable) -> None:
    """Raise a ValueError if `path` is one of the files that are read, under whatever name; None among them is no file."""
    for given in inputs:
        with suppress(OSError):  # what does not exist is not the same file
            if given is not None and os.path.samefile(path, given):
                called = "" if str(given) == str(path) else f" (as {printable(str(given))})"
                raise ValueError(
                    f"{printable(str(path))} is also an input{called}, and would be replaced: give the output another name."
                )


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
