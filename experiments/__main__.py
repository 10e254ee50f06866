"""Run the experiments named on the command line, or all, and draw them; `report` writes docs/results.md from what was run.

Results go to experiments/results/NAME.json and docs/images/results/NAME.png, those of --small to experiments/results/small. An
experiment whose file has the same parameters is not run again, unless --again says so.
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import re
import sys
import time
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from experiments import report
from experiments.common import CACHE

# The order of the sections of the paper, then what goes beyond it.
NAMES = (
    *("theta", "support", "degrees", "classes", "propagation", "manifold", "diameters", "words", "scaling", "edges"),
    *("tasks", "tuned"),
)
HERE = Path(__file__).parent


def paths(name, size):
    """Where the numbers and the figure of a run go."""
    if size == "small":
        return HERE / "results" / "small" / f"{name}.json", HERE / "results" / "small" / f"{name}.png"
    return HERE / "results" / f"{name}.json", report.IMAGES / f"{name}.png"


def run(name, size, again=False):
    """The record of an experiment: its numbers and what they were made with. Only run if there is none of these parameters."""
    module = importlib.import_module(f"experiments.{name}")
    parameters = json.loads(json.dumps(module.SIZES[size]))
    numbers_path, figure_path = paths(name, size)
    record = json.loads(numbers_path.read_text(encoding="utf-8")) if numbers_path.exists() else {}
    wanted = again or record.get("parameters") != parameters
    if wanted:
        record = made(module, name, parameters)
    record["size"] = size  # two sizes may have the same parameters
    numbers_path.parent.mkdir(parents=True, exist_ok=True)
    numbers_path.write_text(as_text(record), encoding="utf-8")
    if wanted:
        for partial in CACHE.glob(f"{name}-*.json"):
            partial.unlink()
    draw(module, record, figure_path)
    return record


def made(module, name, parameters):
    """The record of a run that is made now."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # opponents that do not converge are part of the result
        numbers = module.run(**parameters)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    record = {
        "experiment": name,
        "size": "",
        "parameters": parameters,
        "machine": machine,
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.perf_counter() - start, 1),
        "numbers": numbers,
    }
    return json.loads(json.dumps(record))  # keys and numbers as a file has them


def as_text(record):
    """JSON with a list of numbers on one line, and a list of those too."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    for lists in (r"\[[^\[\]{}]*\]", r"\[\s*(?:\[[^\[\]{}]*\],?\s*)+\]"):
        text = re.sub(lists, lambda found: " ".join(found[0].split()), text)
    return text + "\n"


def draw(module, record, path):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    path.parent.mkdir(parents=True, exist_ok=True)
    with plt.rc_context({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "font.size": 10}):
        figure = module.draw(record["numbers"])
        figure.savefig(path, dpi=90)
        plt.close(figure)


def main():
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"{', '.join(NAMES)}, or report; all experiments if none is named")
    parser.add_argument("--small", dest="size", action="store_const", const="small", help="a size for continuous integration")
    parser.add_argument("--full", dest="size", action="store_const", const="full", help="the sizes of the paper: hours")
    parser.add_argument("--again", action="store_true", help="run even what has been run")
    chosen = parser.parse_args()
    size = chosen.size or "medium"
    if chosen.names == ["report"]:
        report.write(NAMES)
        return
    unknown = set(chosen.names) - set(NAMES)
    if unknown:
        parser.error(f"no experiment is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}, and report")
    missed = []
    for name in chosen.names or NAMES:
        record, module = run(name, size, chosen.again), importlib.import_module(f"experiments.{name}")
        print(f"{name} ({size}), {record['seconds']} s")
        for claim in module.claims(record["numbers"]):
            print(f"    {'held    ' if claim.held else 'NOT HELD'}  {claim.claim}: {claim.ours}", flush=True)
            missed += [claim.claim] if claim.claim.startswith(module.ALWAYS) and not claim.held else []
    if missed:
        sys.exit(f"These hold at any size, but did not here: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
