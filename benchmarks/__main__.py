"""Run the benchmarks named on the command line, or all that take minutes; print and write benchmarks/results/NAME.json.

`python -m benchmarks report` turns what was written last into docs/benchmarks.md.
"""

import datetime
import importlib
import json
import os
import platform
import sys

from benchmarks import report

NAMES = (
    "startup",
    "full",
    "neighbors",
    "solve",
    "million",
    "cold",
    "exact",
    "proof",
    "opponents",
    "l2",
    "daitch",
    "connect",
    "uses",
)
LONG = "field", "complete", "ten_million", "estimate"


def main():
    if sys.argv[1:] == ["report"]:
        report.write(NAMES + LONG)
        return
    chosen = sys.argv[1:] or NAMES
    unknown = set(chosen) - set(NAMES + LONG)
    if unknown:
        sys.exit(f"No benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES + LONG)}, and report.")
    folder = report.HERE / "results"
    folder.mkdir(exist_ok=True)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(machine)
    for name in chosen:
        result = {"machine": machine, "date": datetime.date.today().isoformat(), "rows": []}
        for row in importlib.import_module(f"benchmarks.{name}").run():
            result["rows"].append(row)
            print(f"\n{row['benchmark']}")
            for key, value in row.items():
                if key != "benchmark":
                    print(f"    {key:34} {report.shown(value)}", flush=True)
            (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
