"""Commands that can be ended at any moment: Ctrl-C and `kill` are answered within a second.

In: a function that does the work of a command. Out: what it returns or raises, or, after a signal, the end of the process
with one line on stderr and the exit code 128 + the number of the signal.

Python answers signals in the main thread alone, between two instructions of its own: a compiled loop, or the compiler, holds
the answer up until it is done. So the work is done in a second thread, and the main thread waits for it or for a signal.
"""

import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from smoothgraph.files import remove_unfinished

ENDINGS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
WAIT = 0.2  # seconds: where a wait cannot be interrupted, as on Windows, signals are answered after it
CLEAR_AND_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"  # the status of the running command had hidden the cursor


def run(work: Callable[[], Any]) -> Any:
    """Do the work so that signals end the process; they still do so afterwards, while the process ends."""
    if threading.current_thread() is not threading.main_thread():
        return work()  # whoever owns the main thread answers signals
    owner = os.getpid()
    for name, ending in ENDINGS.items():
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # Those that nohup ignores, or that somebody else answers, stay as they are.
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, partial(_end, ending, owner))
    return _in_a_thread(work)


def _in_a_thread(work):
    result: list[Any] = []
    errors: list[BaseException] = []

    def attempt():
        try:
            result.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, name="smoothgraph command", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(WAIT)
    if errors:
        raise errors[0]
    return result[0]


def _end(ending: str, owner: int, number: int, frame) -> None:
    """Tidy up and end. Nothing here waits for the thread that works, which may hold any lock."""
    signal.signal(number, signal.SIG_DFL)  # if tidying up hangs, a second signal ends the process
    if os.getpid() != owner:  # a forked child ends as if nobody answered
        os.kill(os.getpid(), number)
        return
    try:
        remove_unfinished()
        line = f"smoothgraph: {ending}\n".encode()
        has_cursor = os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"
        os.write(2, CLEAR_AND_SHOW_CURSOR + line if has_cursor else line)
    finally:
        os._exit(128 + number)
