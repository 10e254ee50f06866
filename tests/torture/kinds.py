"""The kinds of torture, and what each of them is.

A kind is a module with `case(rng)`, a random case as a dict that JSON can hold; `check(case)`, which returns an `Outcome` or
raises; and `smaller(case)`, which yields cases that are simpler. Whatever `check` raises is a fault that was found: a
`FaultError` says what is wrong, and any other exception is an accident of the library. A case runs in a child process
(worker.py), so that a crash or a fit without an end is a fault like others.
"""

from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType


class FaultError(Exception):
    """What the library did wrong, in a sentence."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: a `verdict` such as "right", how many trials it was, and figures, of which the largest count."""

    verdict: str
    count: int = 1
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A module of cases, with the CPU seconds that one case may take, and the memory and the environment of its process."""

    module: str
    seconds: float = 60.0
    memory: int | None = None  # bytes of address space
    environment: dict[str, str] = field(default_factory=dict)

    def load(self) -> ModuleType:
        return import_module(f"torture.{self.module}")


LITTLE_MEMORY = 4 << 30  # bytes: what a small file or array declares must not be allocated

KINDS = {
    "problems": Kind("problems"),
    "files": Kind("files", seconds=20.0, memory=LITTLE_MEMORY),
    "arrays": Kind("arrays", seconds=30.0, memory=LITTLE_MEMORY),
    "bounds": Kind("arrays", seconds=60.0, memory=LITTLE_MEMORY, environment={"NUMBA_BOUNDSCHECK": "1"}),
    "kills": Kind("kills", seconds=180.0),
    "refits": Kind("refits"),
    "endurance": Kind("endurance", seconds=3600.0),
    "formats": Kind("formats"),
}
