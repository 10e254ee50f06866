"""How a fit tells where it is: seconds per stage, and lines for whoever listens.

In: the learner's `verbose`. Out: `seconds`, a dict by stage, in order.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Times the stages of one fit. `verbose` prints what they say if it is 1, or is called with (stage, text)."""

    def __init__(self, verbose: Any = 0, seconds: dict[str, float] | None = None):
        self.verbose = verbose
        self.seconds: dict[str, float] = dict(seconds or {})

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[str], None]]:
        """A stage; what is called with a text tells it. Listeners get an empty text when the stage begins."""
        begin = time.perf_counter()

        def say(text: str) -> None:
            if callable(self.verbose):
                self.verbose(name, text)
            elif self.verbose and text:
                print(f"[smoothgraph {time.perf_counter() - begin:7.2f} s] {name:10}  {text}", flush=True)

        say("")
        yield say
        self.seconds[name] = time.perf_counter() - begin
