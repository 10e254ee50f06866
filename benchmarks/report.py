"""The results of earlier runs, benchmarks/results/*.json, as docs/benchmarks.md."""

import json
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `python -m benchmarks report` from the last run of each benchmark; do not edit. Each speed is a ratio between two
things timed in the same run. "wanted" is what we set out to reach, and "ok" says whether that run did.
"""


def shown(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write(names):
    lines = [HEAD]
    for name in names:
        path = HERE / "results" / f"{name}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text(encoding="utf-8"))
        lines += [f"## {name}", "", f"{result['machine']}, {result['date']}", ""]
        for row in result["rows"]:
            lines += [f"**{row['benchmark']}**", "", "| | |", "|---|---|"]
            lines += [f"| {key.replace('_', ' ')} | {shown(value)} |" for key, value in row.items() if key != "benchmark"]
            lines.append("")
    TARGET.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"Wrote {TARGET.name}.")
