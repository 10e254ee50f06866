"""What a command prints cannot make it fail: not an encoding without θ, not a full disk, not a pipe that nobody reads.

In: `sys.stdout` and `sys.stderr` as the process got them. Out: the same streams, which write what they can; what could not be
written is known at the end, by `lost_output`.
"""

import codecs
import io
import os
import sys

# What stands for a letter where the encoding of the output does not have it; a question mark for all others.
PLAIN = {
    "θ": "theta", "λ": "lambda", "α": "alpha", "β": "beta", "σ": "sigma", "φ": "phi", "μ": "mu", "Σ": "sum ", "√": "sqrt ",
    "×": "x", "−": "-", "–": "-", "…": "...", "²": "2", "½": "1/2", "≥": ">=", "≤": "<=", "≈": "~", "→": "->", "·": "*",
    "‘": "'", "’": "'", "“": '"', "”": '"', "│": "|", "─": "-",
}  # fmt: skip


class Forgiving(io.FileIO):
    """A file descriptor that takes everything; `lost` is the first error of what it could not write."""

    lost: OSError | None = None

    def write(self, data):
        try:
            return super().write(data)
        except OSError as error:
            self.lost = self.lost or error
            return len(data)


def prepare() -> None:
    """Make the streams of this process forgiving, unless somebody has replaced them."""
    _open_closed_ones()
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # it was closed
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, _forgiving(stream))


def lost_output() -> OSError | None:
    """Why something that was printed did not reach its reader, or None."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.lost if isinstance(raw, Forgiving) else None


def as_printed(text: str) -> str:
    """The text as stdout will show it, so that its width is known: with "theta" where the encoding has no θ."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "smoothgraph.plain").decode(encoding)


def _open_closed_ones():
    """Give closed descriptors to /dev/null: otherwise the next file that is opened gets their numbers, and what is printed."""
    while True:
        number = os.open(os.devnull, os.O_RDWR)  # the lowest one that is free
        if number > 2:
            os.close(number)
            return


def _forgiving(stream):
    if os.name == "nt":  # a Windows console is more than a file descriptor
        stream.reconfigure(errors="smoothgraph.plain")
        return stream
    stream.flush()
    raw = Forgiving(stream.fileno(), "w", closefd=False)
    at_once = stream.line_buffering or stream.write_through
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors="smoothgraph.plain", line_buffering=at_once
    )


def _plain(error):
    """The handler of letters that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


codecs.register_error("smoothgraph.plain", _plain)
