"""Run the benchmarks named on the command line, or all; print a table and write benchmarks/results/NAME.json."""

import importlib
import json
import os
import platform
import sys
from pathlib import Path

NAMES = "startup", "full", "neighbors", "solve", "million"
RESULTS = Path(__file__).parent / "results"


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main():
    chosen = sys.argv[1:] or NAMES
    unknown = set(chosen) - set(NAMES)
    if unknown:
        sys.exit(f"No benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}.")
    RESULTS.mkdir(exist_ok=True)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in chosen:
        rows = []
        for row in importlib.import_module(f"benchmarks.{name}").run():
            rows.append(row)
            print(f"\n{row['benchmark']}")
            for key, value in row.items():
                if key != "benchmark":
                    print(f"    {key:26} {shown(value)}", flush=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
