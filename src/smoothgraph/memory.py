"""How much memory there is, and an error before more is asked for.

In: bytes that something will need. Out: nothing, or a ValueError with the remedy. What cannot fit is refused before it is
allocated: an operating system may grant it, and end the process when the memory is touched.
"""

import os
import re
from pathlib import Path

CGROUP_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)  # of a container: version 2, version 1


def available_memory() -> float:
    """Bytes that this process may use: what the machine has, or the limit of its container or shell if that is less."""
    return min([_physical(), *_container_limits(), *_process_limits()])


def check_memory(needed: float, what_needs: str, remedy: str, limit: float | None = None) -> None:
    """Raise if more bytes are needed than the limit, which is by default all the memory that there is."""
    memory = available_memory() if limit is None else limit
    if needed > memory:
        there = f"this machine has {readable(memory)}" if limit is None else f"the limit is {readable(memory)}"
        raise ValueError(f"{what_needs} about {readable(needed)} of memory, and {there}. {remedy}")


def readable(count: float) -> str:
    """A number of bytes as people read it.

    >>> readable(1_530_000_000), readable(2e5)
    ('1.53 GB', '0.2 MB')
    """
    return f"{count / 1e9:.3g} GB" if count >= 1e8 else f"{count / 1e6:.3g} MB"


def bytes_of(text: str) -> float:
    """The number of bytes that a text such as "4GB" or "512 MiB" says; a number alone counts bytes.

    >>> bytes_of("4GB"), bytes_of("0.5 KiB")
    (4000000000.0, 512.0)
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]?)(i?)b?\s*", str(text), re.IGNORECASE)
    if found is None or float(found[1]) == 0:
        raise ValueError(f"{text!r} is no amount of memory: write it as 4GB, 512MB or 2GiB.")
    return float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " ")


def _physical() -> float:
    if not hasattr(os, "sysconf"):  # Windows
        return float("inf")
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")


def _container_limits():
    for path in CGROUP_LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # "max" is no limit
            yield float(text)


def _process_limits():
    """The limit that `ulimit -v` sets."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield float(soft)
