"""Where the files of the data sets are: a file's name → its path, downloaded and converted if it must be.

A file is looked for in the folder named by SMOOTHGRAPH_DATA, then in the user's cache; then it is downloaded from its public
source into the cache, its checksum compared where one is known, and brought into the layout that the loaders read.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Download:
    """A public file: its address, its checksum as "sha256:…" or "md5:…" (None where none is published), its name here."""

    url: str
    checksum: str | None
    name: str


@dataclass(frozen=True)
class File:
    """A file of a data set: `path` in the layout, and what it is made from.

    `convert(downloads, target)` writes the layout's file; None means that the one download is the file itself.
    """

    path: str
    downloads: tuple[Download, ...] = ()
    convert: Callable[[list[Path], Path], None] | None = None


def cache_folder() -> Path:
    """Where this system's users keep what can be downloaded again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "smoothgraph" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "smoothgraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smoothgraph"


def find(file: File) -> Path | None:
    """The file's path if it is on this machine."""
    named = os.environ.get("SMOOTHGRAPH_DATA")
    folders = [Path(named)] if named else []
    return next((folder / file.path for folder in [*folders, cache_folder()] if (folder / file.path).is_file()), None)


def get(file: File) -> Path:
    """The file's path; downloads it into the cache if need be."""
    here = find(file)
    if here is not None:
        return here
    if not file.downloads:
        raise FileNotFoundError(_missing(file, "It has no public source."))
    raw = [_download(file, download) for download in file.downloads]
    target = cache_folder() / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name("unfinished-" + target.name)
    if file.convert is None:
        raw[0].replace(target)
        return target
    try:
        file.convert(raw, unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    for path in raw:
        path.unlink()
    return target


def _download(file: File, download: Download) -> Path:
    """The downloaded file, with the right checksum. One that somebody put there by hand is taken as well."""
    path = _downloads() / download.name
    if not path.is_file():
        try:
            import pooch
        except ImportError as error:
            reason = "Downloading needs pooch: pip install 'smoothgraph[datasets]'."
            raise FileNotFoundError(_missing(file, reason)) from error
        try:
            pooch.retrieve(download.url, download.checksum, fname=path.name, path=path.parent, progressbar=sys.stderr.isatty())
        except OSError as error:  # what requests raises is one
            path.unlink(missing_ok=True)
            raise FileNotFoundError(_missing(file, f"Downloading failed: {error}")) from error
    if download.checksum is not None:
        kind, wanted = download.checksum.split(":")
        with path.open("rb") as stream:
            seen = hashlib.file_digest(stream, kind).hexdigest()
        if seen != wanted:
            raise ValueError(f"{path} has the {kind} checksum {seen}, not {wanted}: delete it and fetch {download.url} again.")
    return path


def _downloads() -> Path:
    return cache_folder() / "downloads"


def _missing(file: File, reason: str) -> str:
    named = os.environ.get("SMOOTHGRAPH_DATA")
    lines = [
        f"{file.path} is neither in the folder named by SMOOTHGRAPH_DATA ({named or 'not set'}) nor in {cache_folder()}. {reason}"
    ]
    if file.downloads:
        lines.append("To fetch it by hand:")
        for download in file.downloads:
            lines.append(f"  get {download.url} ({download.checksum or 'no checksum known'})")
            lines.append(f"  put it at {_downloads() / download.name}")
    lines.append(f"Or put a finished file at {cache_folder() / file.path}.")
    return "\n".join(lines)
