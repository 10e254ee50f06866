"""Coverage-guided fuzzing of the readers: `python -m torture.fuzz SECONDS` with atheris installed; `make fuzz` calls it.

The first byte of an input chooses the reader and the kind of file, the rest is the file. The corpus begins with the sound files
of seeds.py, and stays in a folder of the system's temporary one between runs.
"""

import base64
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torture import files, ledger, report, seeds
from torture.kinds import FaultError

KINDS = [("graph", suffix) for suffix in seeds.GRAPHS] + [("table", suffix) for suffix in seeds.TABLES]
FOLDER = Path(tempfile.gettempdir()) / f"smoothgraph-fuzz-{os.getuid()}"
LARGEST_INPUT = 20_000  # bytes


def case_of(data: bytes) -> dict:
    reader, suffix = KINDS[data[0] % len(KINDS)]
    return {"reader": reader, "suffix": suffix, "data": base64.b64encode(data[1:]).decode()}


def one_input(data: bytes) -> None:
    if data:
        files.check(case_of(data))


def write_corpus(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (reader, suffix) in enumerate(KINDS):
        there = (seeds.graph_files() if reader == "graph" else seeds.table_files())[suffix]
        for which, data in enumerate(there):
            (folder / f"{reader}{suffix.replace('.', '-')}-{which}").write_bytes(bytes([number]) + data)


def fuzz(seconds: int) -> None:
    """In this process until the time is up or something is found: libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["smoothgraph", "networkx", "anndata"]):
        import smoothgraph.io
        import smoothgraph.io.graphs
        import smoothgraph.io.tables  # noqa: F401
    arguments = [
        f"-max_total_time={seconds}",
        f"-max_len={LARGEST_INPUT}",
        "-timeout=20",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *arguments, f"-artifact_prefix={FOLDER}/found-", str(FOLDER / "corpus")], one_input)
    atheris.Fuzz()


def main(seconds: int) -> int:
    """Fuzz in child processes until the time is up; what is found goes into the ledger like the faults of other kinds."""
    from torture.driver import keep_case

    write_corpus(FOLDER / "corpus")
    ends, executions, faults = time.monotonic() + seconds, 0, []
    while (left := int(ends - time.monotonic())) > 0:
        for old in FOLDER.glob("found-*"):
            old.unlink()
        command = [sys.executable, "-m", "torture.fuzz", "child", str(left)]
        said = subprocess.run(command, capture_output=True, text=True, errors="replace").stderr
        executions += sum(
            int(line.split()[-1]) for line in said.splitlines() if line.startswith("stat::number_of_executed_units")
        )
        found = [(path, _fault(path.read_bytes())) for path in FOLDER.glob("found-*")]
        for path, text in found:
            faults.append({"text": text, "count": 1, "case": keep_case("files", case_of(path.read_bytes()), {"fault": text})})
            print(f"fuzz: {text}", flush=True)
        if not found:
            break
    verdicts = {"without a fault": executions - len(faults)} | ({"fault": len(faults)} if faults else {})
    session = {
        "seed": 0,
        "trials": executions,
        "verdicts": verdicts,
        "figures": {},
        "faults": faults,
        "seconds": float(seconds),
    }
    ledger.add("fuzz", session)
    report.write()
    print(f"fuzz: {report.one_line(session)}")
    return 1 if faults else 0


def _fault(data: bytes) -> str:
    try:
        one_input(data)
    except FaultError as fault:
        return str(fault)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    return "a crash, or no end in time"


if __name__ == "__main__":
    if sys.argv[1] == "child":
        fuzz(int(sys.argv[2]))
    else:
        sys.exit(main(int(sys.argv[1])))
