"""Where the files of the data sets are. In: a `File`. Out: its path, after a download and a conversion if these are needed.

A file is looked for in the folder that SMOOTHGRAPH_DATA names, then in the user's cache. If it is in neither, it is downloaded
from its public source into the cache, its checksum is compared where one is known, and it is converted to the form that the
loaders read.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smoothgraph.optional import need


@dataclass(frozen=True)
class Download:
    """A public file: its address, its checksum as "sha256:…" or "md5:…" (None if none is published), its name in the cache."""

    url: str
    checksum: str | None
    name: str


@dataclass(frozen=True)
class File:
    """A file of a data set: its `path` below the folder of data, and the downloads that it is made from.

    `convert(downloads, target)` makes it from the downloads; None means that the only download is the file itself.
    """

    path: str
    downloads: tuple[Download, ...] = ()
    convert: Callable[[list[Path], Path], None] | None = None


def cache_folder() -> Path:
    """The folder where this operating system keeps files that can be downloaded again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "smoothgraph" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "smoothgraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smoothgraph"


def find(file: File) -> Path | None:
    """The file's path if it is on this machine, else None."""
    named = os.environ.get("SMOOTHGRAPH_DATA")
    folders = [Path(named)] if named else []
    return next((folder / file.path for folder in [*folders, cache_folder()] if (folder / file.path).is_file()), None)


def get(file: File) -> Path:
    """The file's path; the file is downloaded into the cache if it is not on this machine."""
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
    """The path of the downloaded file, its checksum compared. A file that the user put there by hand is taken as well."""
    path = _downloads() / download.name
    if not path.is_file():
        try:
            pooch = need("pooch", "smoothgraph[datasets]")
        except ImportError as error:
            raise FileNotFoundError(_missing(file, f"It cannot be downloaded. {error}.")) from error
        try:
            pooch.retrieve(download.url, download.checksum, fname=path.name, path=path.parent, progressbar=sys.stderr.isatty())
        except OSError as error:  # the errors of requests are OSErrors too
            path.unlink(missing_ok=True)
            raise FileNotFoundError(_missing(file, f"The download failed: {error}")) from error
    if download.checksum is not None:
        kind, wanted = download.checksum.split(":")
        with path.open("rb") as stream:
            seen = hashlib.file_digest(stream, kind).hexdigest()
        if seen != wanted:
            raise ValueError(f"{path} has the {kind} checksum {seen}, not {wanted}: delete it and get {download.url} again.")
    return path


def _downloads() -> Path:
    return cache_folder() / "downloads"


def _missing(file: File, reason: str) -> str:
    """What to tell a user who lacks the file: where it was looked for, and how to get it by hand."""
    named = os.environ.get("SMOOTHGRAPH_DATA")
    places = f"the folder that SMOOTHGRAPH_DATA names ({named or 'not set'}) nor in {cache_folder()}"
    lines = [f"{file.path} is neither in {places}. {reason}"]
    if file.downloads:
        lines.append("To download it by hand:")
        for download in file.downloads:
            lines.append(f"  get {download.url} ({download.checksum or 'no checksum is known'})")
            lines.append(f"  put it at {_downloads() / download.name}")
    lines.append(f"Or put the converted file at {cache_folder() / file.path}.")
    return "\n".join(lines)
