"""Fit the tables named on the command line, or all; `make zoo` calls it. Results go to docs/zoo.json and docs/zoo.md.

`python -m zoo report` writes the page anew from what is there. Each fit runs in a process of its own, one after the other.
"""

import json
import os
import signal
import subprocess
import sys

from zoo import report
from zoo.one_fit import SECONDS, SETTINGS
from zoo.tables import TABLES

PATIENCE = 1800  # seconds by the clock after which a process is ended that others keep from its CPU time
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main(chosen: list[str]) -> None:
    unknown = set(chosen) - set(TABLES) - {"report"}
    if unknown:
        sys.exit(f"No table is called {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}, and report.")
    results = report.read()
    for name in [] if chosen == ["report"] else chosen or TABLES:
        for setting in SETTINGS:
            found = run(name, setting)
            results.setdefault(name, {})[setting] = {"kind": TABLES[name].kind, **found}
            report.save(results)
            print(f"{name:22} {setting:8} {report.one_line(found)}", flush=True)
    report.write(results)


def run(name: str, setting: str) -> dict:
    """What a process of its own says of one fit, or how it ended."""
    command = [sys.executable, "-m", "zoo.one_fit", name, setting]
    try:
        done = subprocess.run(command, env={**os.environ, **ONE_CORE}, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"verdict": "wrong", "why": f"no end after {PATIENCE} s by the clock"}
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0:
        return said[-1]
    known = said[-1] if said else {}
    if done.returncode == -signal.SIGXCPU:
        return {**known, "seconds": SECONDS, "verdict": "wrong", "why": f"no end within {SECONDS} s"}
    last = (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]
    return {**known, "verdict": "wrong", "why": f"crashed: {last[:200]}"}


if __name__ == "__main__":
    main(sys.argv[1:])
