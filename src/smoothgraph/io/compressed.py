"""The bytes of a file, compressed or not, with a bound on what a compressed file expands to.

In: the path of an ordinary file. Out: a binary stream. A .gz or .bz2 of a few bytes can hold any number of them; a reader that
cannot know the size beforehand gives a bound, and gets an error at it in place of more bytes.
"""

import bz2
import gzip
import io
from pathlib import Path
from typing import IO, Any

from smoothgraph.io.door import BadFileError
from smoothgraph.memory import readable
from smoothgraph.messages import printable

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def opened(path: Path, most: float | None = None) -> Any:
    """The bytes of a file as a stream; of a compressed file, what it expands to, and an error after `most` bytes."""
    unpacked: Any = COMPRESSED.get(path.suffix.lower(), open)(path, "rb")
    return unpacked if most is None else io.BufferedReader(_Bounded(unpacked, path, most))


class _Bounded(io.RawIOBase):
    def __init__(self, file: IO[bytes], path: Path, most: float):
        self._file, self._path, self._left, self._most = file, path, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise BadFileError(
                f"{printable(str(self._path))} expands to more than {readable(self._most)}, which is more than fits into "
                "memory as a table. Read a part of it, or raise --max-memory."
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
