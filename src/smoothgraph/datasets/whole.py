"""Is a file whole? In: a path, perhaps a checksum. Out: None, or what is wrong, as words that follow the name of the file.

Servers answer with a page of HTML where a file was, and connections end early. The kind of a file is what its name says: zip
and npz archives, gz and bz2 streams, HDF5. A file of another kind must have a checksum to be known as whole; without one it
must at least not be empty, and no page.
"""

import bz2
import gzip
import hashlib
import lzma
import zipfile
import zlib
from pathlib import Path

PAGE_STARTS = b"<!doctype", b"<html", b"<?xml"  # what a page begins with, in lower case
MAGIC = {".zip": b"PK", ".npz": b"PK", ".gz": b"\x1f\x8b", ".bz2": b"BZh", ".h5": b"\x89HDF\r\n\x1a\n"}
HEAD_BYTES = 512  # bytes that tell a page from a file
CHUNK = 1 << 20  # bytes that are decompressed at a time
CUT = "is cut short or damaged"


def quick_damage(path: Path, name: str | None = None) -> str | None:
    """What is wrong as far as the beginning of the file and, of an archive, its table of contents tell. Takes milliseconds."""
    kind = Path(name or path.name).suffix.lower()
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if not head:
        return "is empty"
    if head.lstrip().lower().startswith(PAGE_STARTS):
        return "is a web page, and no data"
    if kind in MAGIC and not head.startswith(MAGIC[kind]):
        return f"does not begin as a {kind} file does"
    if kind in (".zip", ".npz") and not zipfile.is_zipfile(path):
        return f"{CUT}: its table of contents is missing"
    return None


def damage(path: Path, checksum: str | None = None, name: str | None = None) -> str | None:
    """What is wrong, after all of the file was read. `name` says its kind where its path does not."""
    why = quick_damage(path, name)
    if why is not None or checksum is None:
        return why or _damage_inside(path, Path(name or path.name).suffix.lower())
    kind, wanted = checksum.split(":")
    with path.open("rb") as stream:
        seen = hashlib.file_digest(stream, kind).hexdigest()
    return None if seen == wanted else f"has the {kind} checksum {seen}, not {wanted}"


def _damage_inside(path, kind):
    """Whether all that is packed in the file can be unpacked."""
    try:
        if kind in (".zip", ".npz"):
            with zipfile.ZipFile(path) as archive:
                bad = archive.testzip()
            return None if bad is None else f"{CUT}: {bad} in it has a wrong checksum"
        if kind in (".gz", ".bz2"):
            with gzip.open(path) if kind == ".gz" else bz2.open(path) as stream:
                while stream.read(CHUNK):
                    pass
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        return f"{CUT} ({error})"
    return None
