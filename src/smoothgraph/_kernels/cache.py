"""Compiled kernels on disk: what one process has compiled, the next one loads.

In: a dispatcher of numba. Out: the same, with a cache that never fails: whatever the folders and their files are like, a
kernel is loaded as it was compiled, or it is compiled again.

A file holds one kernel for one signature behind its checksum, which covers the version of numba and the sources of all
kernels as well: machine code that is damaged or out of date is never run. Files are written whole or not at all, and none
refers to another, so that processes need not wait for each other.

A kernel is loaded from the first folder that has it and stored in the first folder that takes it. With NUMBA_CACHE_DIR that
is the folder it names, otherwise `__pycache__` beside the sources, then the user's cache; the last resort is a folder for
temporary files that belongs to this user alone. numba's own cache stops with an error in most of these cases, runs whatever
machine code it finds, and gives code without bounds checks to a process that asks for them.
"""

import hashlib
import os
import pickle
import secrets
import stat
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numba

import smoothgraph
from smoothgraph.messages import warn

SOURCES = Path(__file__).parent
CHECKSUM = 32  # bytes at the beginning of a file
WITHOUT_EFFECT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"}  # settings that change no machine code
COMPILING = "compiling the kernels, once: later runs load them"

_lock = threading.Lock()
_told = False  # whether this process has said where kernels go that have no lasting place
_listener: Callable[[str], None] | None = None
_counts: Counter["Event"] = Counter()  # what this process has done so far


class Event(NamedTuple):
    """What was done with a kernel for one signature: "loaded" from a place, or "compiled" and stored in one (None: in none)."""

    what: str
    place: "Place | None"


def counts() -> Counter[Event]:
    """How many kernels this process has loaded from where, and compiled and stored where."""
    return _counts.copy()


def with_cache(dispatcher):
    """The dispatcher of a kernel, with this cache; with numba's own where a later numba has no place for this one."""
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT: it is the Python function itself
        return dispatcher
    if hasattr(dispatcher, "_cache"):
        dispatcher._cache = KernelCache(dispatcher.py_func)
    else:
        dispatcher.enable_caching()
    return dispatcher


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """`listener` is called with a text when the first kernel is compiled, before that begins."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


class KernelCache:
    """The cache of one kernel, with the methods that a dispatcher of numba calls. None of them raises an error."""

    def __init__(self, function):
        self.function = function

    def load_overload(self, signature, target_context):
        """The compiled kernel for these types, or None."""
        target_context.refresh()  # numba's own cache does this here, and compilation relies on it
        for place in places():
            try:
                kernel = self._read(place, signature, target_context)
            except Exception:  # not there, not readable, damaged, out of date: all mean the next place, then compilation
                continue
            _count("loaded", place)
            return kernel
        _announce()
        return None

    def save_overload(self, signature, compiled):
        """Store a compiled kernel where the next process finds it."""
        content = self._content(signature, compiled)
        place = None if content is None else _store(self._file_name(signature, compiled.codegen), content)
        _count("compiled", place)

    def _content(self, signature, compiled):
        """What the file of a kernel holds; None if it cannot be written down, and is compiled again by the next process."""
        try:
            if compiled.library.has_dynamic_globals:  # addresses of this process
                return None
            body = numba.core.serialize.dumps((signature, compiled._reduce()))
        except Exception:
            return None
        return _checksum(body) + body

    def _read(self, place, signature, target_context):
        """The kernel in a file; an error if it is not exactly what was compiled."""
        with open(place.folder / self._file_name(signature, target_context.codegen()), "rb") as file:
            if place.is_private and not _is_ours(os.fstat(file.fileno())):
                raise PermissionError
            content = file.read()
        body = content[CHECKSUM:]
        if content[:CHECKSUM] != _checksum(body):
            raise ValueError
        types, reduced = pickle.loads(body)
        if types != signature:
            raise ValueError
        return numba.core.compiler.CompileResult._rebuild(target_context, *reduced)

    def _file_name(self, signature, codegen):
        """The name of the file: all that makes the code of a kernel another one on the same machine, but for its sources."""
        settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in WITHOUT_EFFECT)
        what = str((signature, sys.implementation.cache_tag, codegen.magic_tuple(), settings))
        function = f"{self.function.__module__.rpartition('.')[2]}.{self.function.__qualname__}"
        return f"{function}-{hashlib.sha256(what.encode()).hexdigest()[:24]}.kernel"

    @property
    def cache_path(self):
        """For numba's statistics: the folder that kernels are stored in if it can be written to."""
        return str(places()[0].folder)

    def enable(self):
        """Part of numba's interface: this cache is always on."""

    disable = flush = enable


class Place(NamedTuple):
    """A folder for kernels; `is_private` if others could have made it, so that it is used only if it is this user's own."""

    folder: Path
    is_private: bool
    is_lasting: bool = True


@cache
def places() -> list[Place]:
    """Where kernels are looked for and stored, in this order."""
    install = f"smoothgraph-{hashlib.sha256(str(SOURCES).encode()).hexdigest()[:16]}"  # installations do not share files
    named = getattr(numba.config, "CACHE_DIR", "")
    ordered = [Place(Path(named) / install, False)] if named else [Place(SOURCES / "__pycache__", False)]
    if not named:
        from smoothgraph.datasets.files import cache_folder

        try:
            ordered.append(Place(cache_folder() / install, True))
        except RuntimeError:  # this user has no home
            pass
    try:
        user = os.getuid() if hasattr(os, "getuid") else "user"
        ordered.append(Place(Path(tempfile.gettempdir()) / f"{install}-{user}", True, is_lasting=False))
    except OSError:  # no folder for temporary files can be written to
        pass
    return ordered


def processor() -> str:
    """The kind of processor that kernels are compiled for, as LLVM calls it."""
    return numba.core.registry.cpu_target.target_context.codegen().magic_tuple()[1]


def _store(name, content) -> Place | None:
    """Write a file into the first place that takes it, and return it. Say so if that is not a lasting one, or none."""
    reasons = []
    for place in places():
        try:
            place.folder.mkdir(mode=0o700 if place.is_private else 0o777, parents=True, exist_ok=True)
            found = place.folder.lstat()
            if place.is_private and not (stat.S_ISDIR(found.st_mode) and _is_ours(found) and not found.st_mode & 0o022):
                raise PermissionError(f"{place.folder} can be written to by others")
            _write(place.folder / name, content)
        except Exception as error:
            reasons.append(f"{place.folder}: {getattr(error, 'strerror', None) or error}")
            continue
        if not place.is_lasting:
            _tell(f"Compiled kernels are kept in {place.folder}, because the usual place does not take them", reasons)
        return place
    _tell("Compiled kernels cannot be stored, and every process compiles them anew, which takes many seconds", reasons)
    return None


def _write(path, content) -> None:
    """Write a file that others see whole or not at all. It need not survive a power cut: its checksum would tell."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with open(unfinished, "xb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()


@cache
def _stamp() -> bytes:
    """What compiled kernels depend on besides their types: numba, and the sources of all kernels, for they call each other."""
    stamp = hashlib.sha256(f"{numba.__version__} {smoothgraph.__version__}".encode())
    for path in sorted(SOURCES.glob("*.py")):
        stamp.update(path.read_bytes())
    return stamp.digest()


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, key=_stamp(), digest_size=CHECKSUM).digest()


def _count(what: str, place: Place | None) -> None:
    with _lock:
        _counts[Event(what, place)] += 1


def _announce() -> None:
    global _listener
    with _lock:
        listener, _listener = _listener, None
    if listener is not None:
        listener(COMPILING)


def _tell(text: str, reasons: list[str]) -> None:
    global _told
    with _lock:
        told, _told = _told, True
    if not told:
        warn(f"{text} ({'; '.join(reasons)}). NUMBA_CACHE_DIR can name another folder.")
