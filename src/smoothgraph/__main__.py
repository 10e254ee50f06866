"""The command `smoothgraph`, or `python -m smoothgraph`: the process around the commands of `cli`.

Whatever happens inside, the process ends with an exit code and, if it is not 0, one line on stderr that says why.
"""

import atexit
import errno
import os
import sys
import traceback
import warnings
from typing import Any

from smoothgraph import signals, streams
from smoothgraph.messages import one_line
from smoothgraph.optional import need

WRITING = "learn", "demo", "convert", "plot", "propagate", "embed", "compile"  # their result is a file, not what they print


def main(arguments: list[str] | None = None) -> None:
    """Run a command and end with its exit code. Without arguments it is that of this process, which is made ready for it.

    A program that calls this with arguments keeps its streams, its warnings and its answers to signals.
    """
    if arguments is not None:
        sys.exit(_run(arguments))
    streams.prepare()
    warnings.showwarning = _show_warning
    code = signals.run(lambda: _run(sys.argv[1:]))
    _leave(_checked_output(code, sys.argv[1:]))


def _run(arguments: list[str]) -> Any:
    """The exit code of a command."""
    try:
        for package in ("typer", "rich"):
            need(package, "smoothgraph[io]")
        from smoothgraph.cli import app

        app(arguments, prog_name="smoothgraph")
    except SystemExit as end:
        return end.code
    except Exception as error:
        if os.environ.get("SMOOTHGRAPH_DEBUG"):
            traceback.print_exc()
        _complain(_message(error))
        return 1
    return 0


def _message(error: Exception) -> str:
    """What a user is told of an error."""
    text = str(error)
    if isinstance(error, MemoryError):
        return f"There is not enough memory{': ' if text else ''}{text}. Use fewer samples or columns, or a larger machine."
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}."
    if isinstance(error, (ValueError, OSError, ImportError)) and text:
        return text
    kind = type(error).__name__
    return f"This is a bug: {kind}: {text or 'no message'}. Please report it; SMOOTHGRAPH_DEBUG=1 shows where it happened."


def _checked_output(code: Any, arguments: list[str]) -> Any:
    """The exit code, given what became of the output. A reader that has closed its pipe has all that it wanted."""
    lost = streams.lost_output()
    if code or lost is None or lost.errno == errno.EPIPE:
        return code
    if arguments[:1] and arguments[0] in WRITING:
        _complain(f"The result is written, but what was to be printed is lost: {lost.strerror}.")
        return code
    _complain(f"The result could not be printed: {lost.strerror}.")
    return 1


def _leave(code: Any) -> None:
    """End the process with this exit code, all that was printed being out.

    Python is not taken down first: a thread of Arrow that lets go of a file while that happens is ended in the middle of its
    C++ code, and the process with it (SIGABRT), though all was done.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    """A warning of the library, or of one below it, as one line."""
    print(f"warning: {one_line(str(message))}", file=sys.stderr)


def _complain(text: str) -> None:
    print(f"smoothgraph: {one_line(text)}", file=sys.stderr)


if __name__ == "__main__":
    main()
