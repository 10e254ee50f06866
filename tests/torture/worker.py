"""A child process that checks one case after the other, and the parent's side of it.

The parent sends a case as a line of JSON and gets a line back: what came of it, or the fault. A child that crashes or does not
answer in time is replaced, and its last case is checked again in a fresh one: only then is it to blame. The time is CPU time,
since a busy machine is no fault of a case; a child that waits for ever and uses none is given up after a while, too.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from torture.kinds import KINDS, FaultError, Kind

MOST_TEXT = 400  # characters of a fault that are kept
STARTING = 90.0  # CPU seconds that the first case of a process may take longer, since loops are compiled
PATIENCE = 20.0  # times the CPU seconds of a case that it may take by the clock
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Workers:
    """The process that checks the cases of one kind; use it in a `with`."""

    def __init__(self, name: str):
        self.name, self.kind = name, KINDS[name]
        self._process: subprocess.Popen | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error) -> None:
        self._end()
        self._log.close()

    def check(self, case: dict) -> dict:
        """What came of a case: an outcome as a dict, or {"fault": text}. A crash counts if it comes twice."""
        found = self._ask(case)
        if found.get("crash"):
            self._end()
            again = self._ask(case)
            if not again.get("crash"):  # an earlier case had damaged the process, or the machine was busy
                return again | {"after": found["fault"]}
            self._end()
            return again
        return found

    def _ask(self, case):
        is_new = self._process is None
        process = self._process or self._start()
        process.stdin.write(json.dumps(case).encode() + b"\n")
        process.stdin.flush()
        seconds = self.kind.seconds + (STARTING if is_new else 0.0)
        if not _answers(process, seconds):
            return {"fault": f"no end within {seconds:.0f} s", "crash": True}
        line = process.stdout.readline()
        if line:
            return json.loads(line)
        return {"fault": f"crashed: {_ending(process.wait())}{self._last_words()}", "crash": True}

    def _start(self):
        self._log.seek(0)
        self._log.truncate()
        command = [sys.executable, "-X", "faulthandler", "-m", "torture.worker", self.name]
        path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, **ONE_CORE, **self.kind.environment, **_own_cache(self.kind)}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
        )
        return self._process

    def _end(self):
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None

    def _last_words(self):
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        told = [line.strip() for line in lines if "smoothgraph" in line and "File" in line]
        return f", in {told[0]}" if told else ""


def _answers(process, seconds: float) -> bool:
    """Wait for a line of the child; False if it takes more than so many CPU seconds, or much longer by the clock."""
    before, ends = cpu_seconds(process.pid), time.monotonic() + PATIENCE * seconds
    while True:
        if select.select([process.stdout], [], [], min(1.0, seconds))[0]:
            return True
        if cpu_seconds(process.pid) - before > seconds or time.monotonic() > ends:
            return False


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a child, and of its own children that have ended. It is running, or was not yet waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _own_cache(kind: Kind) -> dict[str, str]:
    """Loops that are compiled in another way must not be taken for those of the usual cache."""
    if "NUMBA_BOUNDSCHECK" not in kind.environment:
        return {}
    return {"NUMBA_CACHE_DIR": str(Path(tempfile.gettempdir()) / f"smoothgraph-bounds-{os.getuid()}")}


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def checked(module, case) -> dict:
    """The outcome of a case as a dict, or {"fault": text}."""
    try:
        return asdict(module.check(case))
    except FaultError as fault:
        return {"fault": str(fault)[:MOST_TEXT]}
    except Exception as error:
        place = [frame for frame in traceback.extract_tb(error.__traceback__) if "smoothgraph" in frame.filename]
        where = f" ({Path(place[-1].filename).name}, {place[-1].name})" if place else ""
        text = " ".join(str(error).split())
        return {"fault": f"{type(error).__name__}{where}: {text}"[:MOST_TEXT]}


def main(name: str) -> None:
    """Answer the parent until it closes the pipe. What the library prints does not get in the way."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    kind = KINDS[name]
    module = kind.load()
    if kind.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (kind.memory, kind.memory))
    for line in sys.stdin:
        started = time.perf_counter()
        found = checked(module, json.loads(line))
        print(json.dumps(found | {"seconds": time.perf_counter() - started}), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
