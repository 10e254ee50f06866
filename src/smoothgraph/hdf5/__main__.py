"""The process: a request from stdin, an answer to stdout, and the end."""

import os
import sys
from typing import Any, BinaryIO

from smoothgraph.hdf5 import write
from smoothgraph.hdf5.pipe import receive, receive_value, send
from smoothgraph.hdf5.read import READ_RATE, Reader, TooLargeError, UnreadableError, allow_seconds

OWN_MEMORY = 2 << 30  # bytes of address space that Python and its libraries take


def allow_memory(limit: float) -> None:
    """Bound the address space, and leave no core file behind."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = int(min(limit, 1e18)) + OWN_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def answer(request: dict[str, Any], source: BinaryIO, out: BinaryIO) -> None:
    """Do what is asked."""
    import h5py

    allow_memory(request["limit"])
    allow_seconds(0.0)
    if request["op"] in ("add", "create"):
        values = [receive_value(source, receive(source)) for _ in range(request["count"])]
        allow_seconds(request["bytes"] / READ_RATE)
        (write.add if request["op"] == "add" else write.create)(request["path"], request, values)
        return
    allow_seconds(os.path.getsize(request["path"]) / READ_RATE)
    with h5py.File(request["path"], "r") as file:
        reader = Reader(file, request["limit"], out)
        getattr(reader, request["op"])(*request["arguments"])


def main() -> None:
    source, out = sys.stdin.buffer, sys.stdout.buffer
    result: dict[str, Any]
    try:
        answer(receive(source), source, out)
        result = {"kind": "done"}
    except UnreadableError as error:
        result = {"kind": "unreadable", "text": str(error)}
    except TooLargeError as error:
        result = {"kind": "large", "bytes": error.args[0], "what": error.args[1]}
    except ImportError as error:
        result = {"kind": "missing", "text": str(error)}
    except MemoryError:
        result = {"kind": "memory"}
    except Exception as error:
        result = {"kind": "error", "text": str(error) or type(error).__name__, "errno": getattr(error, "errno", None)}
    send(out, result)
    out.flush()
    os._exit(0)  # closing what the library still holds may crash it


if __name__ == "__main__":
    main()
