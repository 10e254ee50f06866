"""What the two processes say to each other.

A message is its length in 8 bytes, and JSON. An array follows in blocks, each with its length before it; if it cannot be read
to its end, BROKEN and an error follow. A value is one of: nothing, text, an array, or a sparse matrix, which is its shape and
three arrays.
"""

import json
import struct
from typing import Any, BinaryIO

import numpy as np

VALUES = "nothing", "text", "array", "csr", "csc"  # kinds of messages that bring a value
BROKEN = (1 << 64) - 1  # in the place of a length: there will be no further block


class BrokenError(Exception):
    """An array that could not be read to its end; its argument is the error that was sent."""


def send(stream: BinaryIO, header: dict[str, Any], blocks=()) -> None:
    """Send a message; `blocks` are the parts of an array, in the order of its rows."""
    text = json.dumps(header).encode()
    stream.write(struct.pack("<Q", len(text)) + text)
    try:
        for block in blocks:
            data = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
            if len(data):  # of an array without entries no block is waited for
                stream.write(struct.pack("<Q", len(data)))
                stream.write(data)
    except Exception:
        stream.write(struct.pack("<Q", BROKEN))
        raise


def receive(stream: BinaryIO) -> dict[str, Any]:
    """The JSON of the next message; EOFError if the other side has gone."""
    return json.loads(_exactly(stream, _length(stream)))


def receive_array(stream: BinaryIO, header: dict[str, Any]) -> np.ndarray:
    """The array of a message."""
    array = np.empty(header["shape"], np.dtype(header["dtype"]))
    rest = array.reshape(-1).view(np.uint8).data
    while len(rest):
        length = _length(stream)
        if length == BROKEN:
            raise BrokenError(receive(stream))
        if stream.readinto(rest[:length]) < length:  # type: ignore[attr-defined]
            raise EOFError
        rest = rest[length:]
    return array


def send_array(stream: BinaryIO, array: np.ndarray) -> None:
    send(stream, {"kind": "array", "dtype": array.dtype.str, "shape": array.shape}, [array])


def send_sparse(stream: BinaryIO, kind: str, shape, arrays) -> None:
    send(stream, {"kind": kind, "shape": [int(length) for length in shape]})
    for array in arrays:
        send_array(stream, array)


def receive_value(stream: BinaryIO, header: dict[str, Any]) -> Any:
    """A value that was sent: None, a list of text, an array, or (format, shape, data, indices, indptr) of a sparse matrix."""
    kind = header["kind"]
    if kind == "array":
        return receive_array(stream, header)
    if kind in ("csr", "csc"):
        return kind, tuple(header["shape"]), *(receive_array(stream, receive(stream)) for _ in range(3))
    return None if kind == "nothing" else header["values"]


def _length(stream):
    return struct.unpack("<Q", _exactly(stream, 8))[0]


def _exactly(stream, count):
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
