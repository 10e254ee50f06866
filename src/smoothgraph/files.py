"""What reading and writing files have in common: the kind of a file, and files that are whole or not there.

In: a path. Out of `replacing`: a path to write to, in a folder of its own beside the target, which nobody can guess, share or
plant a link in. When all is written the file takes the name of the target in one step: whoever reads sees the old file or the
new one, also while many write. The folder is locked while it is in use, so that the next write knows a dead run by its free
lock.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from smoothgraph.messages import printable

try:
    import fcntl
except ImportError:  # Windows has no such locks: files of dead runs stay there
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".smoothgraph-unfinished-"  # begins the name of a folder with a file that is being written
_unfinished: set[Path] = set()  # such folders of this process

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unfinished.clear)  # what a parent writes is not for its children to delete


def suffix(path: Path) -> str:
    """The kind of a file by its name, such as ".csv"; the .gz or .bz2 of a compressed file does not count."""
    stem = path.with_suffix("") if path.suffix.lower() in (".gz", ".bz2") else path
    return stem.suffix.lower()


def existing(path) -> Path:
    """The path of a file, which must exist."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{printable(str(path))} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{printable(str(path))} is a folder: name a file.")
    if not path.is_file():
        raise ValueError(f"{printable(str(path))} is a pipe or a device: name a file.")
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


def check_target(path) -> Path:
    """The file that takes the place of `path`, where links lead; an error if there can be no new file."""
    name = printable(str(path))
    try:
        target = Path(os.path.realpath(path))
    except FileNotFoundError:
        raise FileNotFoundError(f"{name} cannot be written: the current folder was deleted. Go to another (cd).") from None
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {printable(str(Path(path).parent))} does not exist: make it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"The folder {printable(str(Path(path).parent))} cannot be written to: name another.")
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{name} is a folder: name a file.")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{name} is a pipe or a device, and output is a file that is whole or not there: name a file.")
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(f"{name} is read-only: name another file, or allow writing (chmod u+w).")
    return target


@contextmanager
def replacing(path) -> Iterator[Path]:
    """A new file that takes the place of `path` when all is written, and is deleted if anything fails.

    The file keeps the mode of the one that it replaces, and a symbolic link stays a link: its target is replaced.
    """
    target = check_target(path)
    _remove_dead(target.parent)
    try:
        folder, lock = _own_folder(target.parent)
        try:
            written = folder / Path(path).name  # libraries look at the end of the name
            yield written
            _put_in_place(written, target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            _unfinished.discard(folder)
            _close(lock)
    except OSError as error:
        if error.errno is None and type(error) is not OSError:  # the words of another part of this package
            raise
        reason = str(error).split("\n")[0] if error.errno is None else os.strerror(error.errno)
        text = f"{printable(str(path))} was not written, and nothing was changed: {printable(reason)}."
        raise (OSError(text) if error.errno is None else OSError(error.errno, text)) from error


def remove_unfinished() -> None:
    """Delete what this process has begun to write and not finished: for the handler of a signal that ends the process."""
    for folder in tuple(_unfinished):
        shutil.rmtree(folder, ignore_errors=True)


def _own_folder(parent):
    """(a new folder that only this user can enter, the handle that holds its lock)."""
    while True:
        folder = parent / f"{UNFINISHED}{secrets.token_hex(16)}"
        _unfinished.add(folder)  # before it exists, so that a signal in between leaves nothing
        try:
            os.mkdir(folder, 0o700)
        except BaseException:
            _unfinished.discard(folder)
            raise
        with suppress(FileNotFoundError):  # another process took it for that of a dead run before it was locked
            lock = _locked(folder, wait=True)
            if folder.is_dir():
                return folder, lock
            _close(lock)
        _unfinished.discard(folder)


def _locked(folder, wait):
    """A handle that holds the lock of a folder until it is closed; None where there are no locks, as on Windows."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if not wait:
            os.close(handle)
            raise
        # Some file systems of networks have no locks of folders. Then nobody can take the lock, and nobody deletes it.
    return handle


def _close(lock):
    if lock is not None:
        os.close(lock)


def _remove_dead(parent):
    """Delete the unfinished files of runs that were killed: their locks are free."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        dead = [entry.path for entry in entries if entry.name.startswith(UNFINISHED)]
        for folder in dead:
            with suppress(OSError):  # it is in use, not ours, or gone
                lock = _locked(folder, wait=False)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _put_in_place(written, target):
    """Rename in one step; the file and its new name are on the disk when this returns, so that a power cut loses neither."""
    _sync(written)
    with suppress(FileNotFoundError):
        there = os.stat(target)
        if hasattr(os, "chown"):
            with suppress(PermissionError):  # only root may give a file to others
                os.chown(written, there.st_uid, there.st_gid)
        os.chmod(written, stat.S_IMODE(there.st_mode) & 0o777)
    os.replace(written, target)
    with suppress(OSError):  # the file is there: a file system that cannot sync a folder does not change that
        _sync(target.parent)


def _sync(path):
    if os.name == "nt":  # which syncs only what is open for writing, and no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
