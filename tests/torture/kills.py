"""The real command line in a child process, writing over a file, killed at a random moment.

Afterwards the file is the old or the new one, and whole; the exit code is the conventional one; and after the next run nothing
is left in the folder that was not there before. A case is a command and some shots: a signal and a moment, as a share of the
time that the command takes. A cold case has an empty compilation cache.

How long a command takes to end is judged by its CPU seconds: by the clock it depends on the share of the machine that it gets.
A process of low priority beside four others was seen to take 11 s to end after SIGTERM, and 6 s after SIGKILL.
"""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

from torture.kinds import FaultError, Outcome
from torture.worker import cpu_seconds

COMMANDS = {
    "learn csv": ["learn", "table.csv", "-k", "5", "-q", "-o", "out.csv"],
    "learn npz": ["learn", "table.csv", "-k", "5", "-q", "-o", "out.npz"],
    "convert": ["convert", "graph.npz", "out.parquet", "-q"],
    "convert h5ad": ["convert", "graph.npz", "out.h5ad", "-q"],
    "propagate": ["propagate", "graph.npz", "labels.csv", "-q", "-o", "out.csv"],
    "embed": ["embed", "graph.npz", "-q", "-o", "out.csv"],
}
SIGNALS = "SIGKILL", "SIGTERM", "SIGINT"
OLD = b"what was there before\n" * 200
PATIENCE = 60.0  # seconds after which a child that was told to end has not
MOST_CPU = 1.0  # CPU seconds that a command may take to end when it is told to
COLD_SECONDS = 12.0  # compilation takes longer than this; shots at cold commands are within


def case(rng: np.random.Generator) -> dict:
    command, is_cold = str(rng.choice(list(COMMANDS))), bool(rng.random() < 0.06)
    command = "learn csv" if is_cold else command
    shots = [[str(rng.choice(SIGNALS)), _moment(rng)] for _ in range(2 if is_cold else 8)]
    return {"command": command, "shots": shots, "cold": is_cold}


def _moment(rng) -> float:
    """Anywhere, or near the end, where the file is written."""
    return float(rng.uniform(0.0, 1.15) if rng.random() < 0.6 else rng.normal(0.95, 0.07))


def check(case: dict) -> Outcome:
    words = COMMANDS[case["command"]]
    new, seconds = reference(case["command"])
    output = words[words.index("-o") + 1] if "-o" in words else words[2]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(folder)
        before = sorted(os.listdir(folder))
        for number, moment in case["shots"]:
            (folder / output).write_bytes(OLD)
            if case["cold"]:
                seen = _shoot(words, folder, number, moment * COLD_SECONDS, {"NUMBA_CACHE_DIR": str(folder / "cache")})
            else:
                seen = _shoot(words, folder, number, moment * seconds, {})
            figures |= {name: max(value, figures.get(name, 0.0)) for name, value in seen.items()}
            there = (folder / output).read_bytes() if (folder / output).exists() else None
            if there != OLD and (there is None or content(output, there) != new):
                raise FaultError(f"after {number} the output is neither the old nor the new one")
        if not case["cold"]:
            _run(words, folder)
            left = sorted(set(os.listdir(folder)) - {*before, output})
            if left:
                raise FaultError(f"after the next run there are still {left}")
    return Outcome("old or new", count=len(case["shots"]), figures=figures)


def _shoot(words, folder, name, after, environment) -> dict[str, float]:
    """Start the command, and send the signal after some seconds. Returns how long it took to end."""
    number = signal.Signals[name]
    cpu = _cpu_of_children()
    process = _start(words, folder, environment)
    try:
        code = process.wait(timeout=after)
        told = None
    except subprocess.TimeoutExpired:
        cpu += cpu_seconds(process.pid)
        told = time.perf_counter()
        process.send_signal(number)
        try:
            code = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise FaultError(f"{name} did not end the command within {PATIENCE:.0f} s") from None
    cpu = _cpu_of_children() - cpu
    took = 0.0 if told is None else time.perf_counter() - told
    errors = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    if told is None:
        if code:
            raise FaultError(f"the command ended with exit code {code}: {errors[-300:]!r}")
        return {}
    _check_end(name, number, code, errors)
    if name == "SIGKILL":
        return {"seconds from SIGKILL to the end, which is the system's alone": took}
    if cpu > MOST_CPU:
        raise FaultError(f"after {name} the command took {cpu:.1f} CPU seconds to end with exit code {code}")
    return {"CPU seconds from SIGINT or SIGTERM to the end": cpu, "seconds from SIGINT or SIGTERM to the end": took}


def _cpu_of_children() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _check_end(name, number, code, errors) -> None:
    if code not in (0, -number, 128 + number):
        raise FaultError(f"after {name} the exit code is {code}: {errors[-200:]!r}")
    lines = errors.splitlines()
    if "Traceback" in errors and not any("smoothgraph" in line for line in lines):
        return  # Python itself was still starting
    if "Traceback" in errors or len(lines) > 1:
        raise FaultError(f"after {name} standard error has {len(lines)} lines: {errors[-200:]!r}")


def _start(words, folder, environment):
    command = [sys.executable, "-m", "smoothgraph", *words]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def _run(words, folder) -> float:
    """The command to its end; how many seconds it took."""
    started = time.perf_counter()
    process = _start(words, folder, {})
    errors = process.communicate()[1].decode(errors="replace")
    if process.returncode not in (0, 3):
        raise FaultError(f"{' '.join(words)} ended with exit code {process.returncode}: {errors[-300:]!r}")
    return time.perf_counter() - started


def _prepare(folder: Path) -> None:
    from smoothgraph.io import write_graph

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(4)
    (folder / "table.csv").write_text("a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in X))
    os.utime(folder / "table.csv", (1e9, 1e9))  # a graph says when its table was last changed
    z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    W = np.exp(-z) * (z < np.sort(z, axis=1)[:, [8]])
    write_graph(folder / "graph.npz", np.maximum(W, W.T) - np.diag(np.diag(W)), metadata={"theta": 1.0})
    (folder / "labels.csv").write_text("id,label\n0,x\n1,y\n2,x\n")


@cache
def reference(command: str) -> tuple[object, float]:
    """(what the command writes when nobody disturbs it, how many seconds it takes when its loops are compiled)."""
    words = COMMANDS[command]
    output = words[words.index("-o") + 1] if "-o" in words else words[2]
    with tempfile.TemporaryDirectory() as name:
        _prepare(Path(name))
        _run(words, Path(name))
        seconds = _run(words, Path(name))
        return content(output, (Path(name) / output).read_bytes()), seconds


def content(name: str, data: bytes) -> object:
    """What a file says, without the seconds that a fit took. It raises, or differs, where the file is not whole."""
    if name.endswith(".npz"):
        try:
            with np.load(io.BytesIO(data)) as arrays:
                found = {key: arrays[key].tobytes() for key in arrays.files if key != "metadata"}
                metadata = json.loads(str(arrays["metadata"]))
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            return f"not whole: {error}"
        metadata.pop("seconds", None)
        return found, json.dumps(metadata, sort_keys=True)
    if name.endswith(".h5ad"):
        import h5py

        try:
            with h5py.File(io.BytesIO(data)) as file:
                return {key: file[f"obsp/connectivities/{key}"][:].tobytes() for key in ("data", "indices", "indptr")}
        except (OSError, KeyError) as error:
            return f"not whole: {error}"
    return data


def smaller(case: dict):
    """Each shot alone."""
    if len(case["shots"]) > 1:
        for shot in case["shots"]:
            yield case | {"shots": [shot]}
