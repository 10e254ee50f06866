"""The results of earlier runs, benchmarks/results/*.json, as docs/benchmarks.md and as the table in the README."""

import json
import math
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from benchmarks import field

HERE = Path(__file__).parent
TARGET = HERE.parent / "docs" / "benchmarks.md"
PICTURE = "images/opponents.png"
README, TABLE = HERE.parent / "README.md", re.compile(r"(?<=<!-- cold -->\n).*?(?=<!-- /cold -->)", re.DOTALL)
HEAD = """# Benchmarks

Written by `python -m benchmarks report` from the last run of each benchmark; do not edit. Each speed is a ratio between two
things timed in the same run. "wanted" is what we set out to reach, and "ok" says whether that run did.
"""


def shown(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw(rows):
    """Seconds over n, a line for each that was timed."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    names = dict.fromkeys(key.removesuffix("_seconds") for row in rows for key in row if key.endswith("_seconds"))
    for name in names:
        if name == "cpu":
            continue
        points = [(row["n"], row[f"{name}_seconds"]) for row in rows if f"{name}_seconds" in row]
        axes.loglog(
            *zip(*points, strict=True), "o-", linewidth=2.5 if name == "smoothgraph" else 1.2, label=name.replace("_", "-")
        )
    axes.set(xlabel="samples", ylabel="seconds, cold process, file to file", title="Molecules x 68, two cores")
    axes.set_yticks([2, 5, 10, 20, 50, 100], [2, 5, 10, 20, 50, 100])
    axes.set_xticks([row["n"] for row in rows], [f"{row['n']:,}" for row in rows])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(TARGET.parent / PICTURE, dpi=150)


def write(names):
    """Sections of benchmarks that were run here are written anew; those of others stay as they are."""
    parts = re.split(r"^## (\w+)$", TARGET.read_text(encoding="utf-8"), flags=re.MULTILINE)
    before = dict(zip(parts[1::2], parts[2::2], strict=True))
    sections = {name: section(name) or before.get(name) for name in names}
    text = HEAD + "".join(f"\n## {name}\n\n{text.strip()}\n" for name, text in sections.items() if text)
    TARGET.write_text(text, encoding="utf-8")
    if (HERE / "results" / "cold.json").exists():
        README.write_text(TABLE.sub(lambda _: cold_table(), README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Wrote {TARGET.name} and the table in {README.name}.")


def section(name):
    """What the last run of a benchmark saw; None if there was none here."""
    path = HERE / "results" / f"{name}.json"
    if not path.exists():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = [f"{result['machine']}, {result['date']}", ""]
    if name == "field":
        return "\n".join(lines + field_tables(result["rows"]))
    for row in result["rows"]:
        lines += [f"**{row['benchmark']}**", "", "| | |", "|---|---|"]
        lines += [f"| {key.replace('_', ' ')} | {shown(value)} |" for key, value in row.items() if key != "benchmark"]
        lines.append("")
    if name == "opponents":
        draw(result["rows"])
        lines += [f"![Seconds from a data file to a saved graph, over the number of samples]({PICTURE})", ""]
    return "\n".join(lines)


def field_tables(rows):
    """What the benchmark `field` saw: a table for each data set, the fastest cold process first."""
    lines = [field.__doc__.strip().partition("\n")[2].strip(), ""]
    for data in dict.fromkeys(row["data"] for row in rows):
        lines += [f"**{data}**", "", "| library | setting | cold | warm | recall | peak memory |", "|---|---|---|---|---|---|"]
        of_data = [row for row in rows if row["data"] == data]
        for row in sorted(of_data, key=lambda row: row.get("cold_seconds", math.inf)):
            setting = row.get("setting", "")
            if "ended" in row:
                lines.append(f"| {row['library']} | {setting} | {row['ended']} | | | |")
                continue
            warm = f"{row['warm_seconds']:.1f} s" if "warm_seconds" in row else ""
            lines.append(
                f"| {row['library']} | {setting} | {row['cold_seconds']:.1f} s | {warm} | {row['recall']:.4f} "
                f"| {row['peak_gb']:.2f} GB |"
            )
        lines.append("")
    return lines


def cold_table():
    """What the benchmark `cold` saw, in a few columns."""
    result = json.loads((HERE / "results" / "cold.json").read_text(encoding="utf-8"))
    lines = [
        "| data | learned graph | k-NN graph (pynndescent) | ratio | recall of both | gap | not certified | peak memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        data = row["benchmark"].split("cold process, ")[1].split(", k=")[0].replace("_", " ").replace(" x ", " × ")
        theirs = f"{row['pynndescent_seconds']:.1f} s"
        if "pynndescent_warm_seconds" in row:
            theirs += f" (warm {row['pynndescent_warm_seconds']:.1f} s)"
        recalls = f"{row['recall_of_15_nearest']:.4f}, {row['pynndescent_recall']:.4f}"
        lines.append(
            f"| {data} | {row['seconds']:.1f} s | {theirs} | {row['ratio']:.2f} | {recalls} | {row['gap']:.0e} "
            f"| {row['nodes_not_certified']} nodes | {row['peak_gb']:.2f} GB |"
        )
    return "\n".join([*lines, ""])
