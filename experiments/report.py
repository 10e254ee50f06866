"""The numbers of the last run of each experiment, experiments/results/*.json, as docs/results.md."""

import importlib
import json
import re
from pathlib import Path

from experiments.task_tables import front

HERE = Path(__file__).parent
FRONT_PAGES = HERE.parent / "README.md", HERE.parent / "docs" / "index.md"
FRONT_TABLE = re.compile(r"(?<=<!-- tasks -->\n).*?(?=<!-- /tasks -->)", re.DOTALL)
IMAGES = HERE.parent / "docs" / "images" / "results"
TARGET = HERE.parent / "docs" / "results.md"
HEAD = """# What the paper claims, and what we saw

Written by `python -m experiments report` from the last run of each experiment; do not edit. `make reproduce` runs all of them
at the sizes of the paper, `python -m experiments` at a medium size, `make reproduce-small` at one for continuous integration.
The paper is *Large Scale Graph Learning from Smooth Signals* (Kalofolias & Perraudin, ICLR 2019); we had its text, not its
figures, so its column quotes the text and says "a curve" where there is no number in it. Spherical maps are simulated from the
published spectra, words are GloVe vectors and molecule counts stand in for the US census, since the originals cannot be had by
everyone. The search behind "k-NN" is exact for small sets and approximate for large ones (60,000 digits, 262,144 nodes of a
map), as the paper's A-NN is. Times are seconds of one core, since others used the machine at the same time.

What was run:

"""


def write(names):
    modules = {name: importlib.import_module(f"experiments.{name}") for name in names}
    records = {name: record for name in names if (record := read(name))}
    lines = [f"- {modules[name].TITLE} ([{name}](#{name})): {ran(record)}" for name, record in records.items()]
    lines += [f"- {modules[name].TITLE}: **not run yet**" for name in names if name not in records]
    lines += ["", "## Claims", "", "| claim | the paper | ours | held |", "|---|---|---|---|"]
    for name, record in records.items():
        lines += [row(claim) for claim in modules[name].claims(record["numbers"])]
    for name, record in records.items():
        lines += ["", f"## {name}", "", f"**{modules[name].TITLE}.** {modules[name].CAPTION}", ""]
        lines += [f"![{modules[name].TITLE}](images/results/{name}.png)", "", f"{ran(record)}."]
        if hasattr(modules[name], "table"):
            lines += ["", *modules[name].table(record["numbers"])]
    TARGET.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    if "tasks" in records:
        text = "\n".join(["", *front(records["tasks"]["numbers"]), "", ""])
        for page in FRONT_PAGES:
            page.write_text(FRONT_TABLE.sub(lambda _: text, page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Wrote {TARGET.name}, and the tables of tasks in {' and '.join(page.name for page in FRONT_PAGES)}.")


def read(name):
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def ran(record):
    """Which size, with which parameters, when and where."""
    parameters = ", ".join(f"{key} {shown(value)}" for key, value in record["parameters"].items())
    return f"{record['size']} size ({parameters}), on {record['machine']}, {record['date']}"


def shown(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{value:,}" if isinstance(value, int) else str(value)


def row(claim):
    held = "yes" if claim.held else "**no**"
    remark = f". {claim.remark}" if claim.remark else ""
    return f"| {claim.claim} | {claim.paper} | {claim.ours}{remark} | {held} |"
