"""Where the files of the data sets are. In: a `File`. Out: its path, after a download and a conversion if these are needed.

A file is looked for in the folder that SMOOTHGRAPH_DATA names, then in the user's cache. If it is in neither, it is downloaded
from its public source, its checksum is compared where one is known, and it is converted to the form that the loaders read.

What enters the cache is whole: a download is checked under a name of its own (see whole.py) and then renamed, and so is a
conversion. Several processes that want the same file do this side by side, and all end with a whole file. What is found damaged
in the cache, after a fault of the disk or by an earlier version, is removed with a warning, and fetched again.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smoothgraph.datasets.whole import damage, quick_damage
from smoothgraph.files import replacing
from smoothgraph.messages import warn
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
    if here is not None and not _is_damaged(here):
        return here
    if not file.downloads:
        raise FileNotFoundError(_missing(file, "It has no public source."))
    target = cache_folder() / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        raw = [_download(file, download) for download in file.downloads]
        if file.convert is None:
            raw[0].replace(target)
        else:
            _convert(file, raw, target)
    except FileNotFoundError:  # perhaps another process that did the same was faster, and has removed the downloads
        if find(file) is None:
            raise
    for download in file.downloads:
        (_downloads() / download.name).unlink(missing_ok=True)
    return find(file) or target


def _is_damaged(path: Path) -> bool:
    """Whether a file cannot be what its name says. It is then removed, unless it is in the folder of the user's own."""
    why = quick_damage(path)
    if why is None:
        return False
    if not path.is_relative_to(cache_folder()):
        raise ValueError(f"{path} {why}: put a whole file there, or remove it to have it downloaded into the cache.")
    path.unlink(missing_ok=True)
    warn(f"{path} {why}, and was removed. It is fetched again.")
    return True


def _convert(file: File, raw: list[Path], target: Path) -> None:
    """Make the file from its downloads. Where these are not known to be the right ones, and do not serve, they are removed."""
    unsure = [path for path, download in zip(raw, file.downloads, strict=True) if download.checksum is None]
    try:
        with replacing(target) as unfinished:
            file.convert(raw, unfinished)  # type: ignore[misc]
    except (OSError, ImportError, MemoryError):  # a full disk, or a missing package: the downloads are not to blame
        raise
    except Exception as error:
        if not unsure:
            raise
        for path in unsure:
            path.unlink(missing_ok=True)
        why = f"What was downloaded does not hold what was expected ({type(error).__name__}: {error}), and was removed."
        raise ValueError(_missing(file, why)) from error


def _download(file: File, download: Download) -> Path:
    """The path of the downloaded file, which is whole. A file that the user put there by hand is taken as well."""
    path = _downloads() / download.name
    if path.is_file():
        why = damage(path, download.checksum)
        if why is None:
            return path
        path.unlink(missing_ok=True)
        warn(f"{path} {why}, and was removed. It is downloaded again from {download.url}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        _fetch(file, download, unfinished)
        why = damage(unfinished, download.checksum, name=path.name)
        if why is not None:
            raise ValueError(_missing(file, f"What {download.url} sent {why}, and was not kept: try again later."))
    return path


def _fetch(file: File, download: Download, target: Path) -> None:
    """What the public address sends, as it is."""
    try:
        pooch = need("pooch", "smoothgraph[datasets]")
    except ImportError as error:
        raise FileNotFoundError(_missing(file, f"It cannot be downloaded. {error}.")) from error
    try:
        pooch.HTTPDownloader(progressbar=sys.stderr.isatty())(download.url, str(target), None)
    except OSError as error:  # the errors of requests are OSErrors too
        raise FileNotFoundError(_missing(file, f"The download failed: {error}")) from error


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
