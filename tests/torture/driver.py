"""Random cases of one kind until the time or the number asked for is up; what fails is made smaller and kept.

In: the name of a kind, a seed, a budget. Out: a session, a dict of what was seen, as the ledger keeps it.
"""

import hashlib
import json
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np

from torture.worker import Workers

CASES = Path(__file__).parent / "cases"
MOST_SHRINKING = 60.0  # seconds spent on one failure
MOST_KEPT = 20  # different faults of a session that are made smaller and kept; the others are counted


def run(name: str, seed: int, seconds: float, count: int | None = None, keep: bool = True) -> dict:
    """A session: at most so many seconds, and so many trials if `count` is given."""
    verdicts: Counter[str] = Counter()
    figures: dict[str, float] = {}
    faults: dict[str, dict] = {}
    trials, number, started = 0, 0, time.monotonic()
    with Workers(name) as workers:
        module = workers.kind.load()
        while time.monotonic() - started < seconds and (count is None or trials < count):
            rng = np.random.default_rng([seed, number])
            case, number = module.case(rng), number + 1
            found = workers.check(case)
            trials += found.get("count", 1)
            if "fault" in found:
                verdicts["fault"] += 1
                sort = _sort(found["fault"])
                if sort not in faults:
                    print(f"{name} {seed}/{number - 1}: {found['fault']}", flush=True)
                    has_time = len(faults) < MOST_KEPT and "no end" not in found["fault"]  # each try would wait as long again
                    smallest = smaller_case(workers, module, case, sort) if has_time else case
                    faults[sort] = {
                        "text": found["fault"],
                        "count": 0,
                        "case": keep_case(name, smallest, found) if keep else "",
                    }
                faults[sort]["count"] += 1
                continue
            verdicts[found["verdict"]] += found["count"]
            for figure, value in found["figures"].items():
                figures[figure] = max(value, figures.get(figure, value))
    return {
        "seed": seed,
        "trials": trials,
        "verdicts": dict(sorted(verdicts.items())),
        "figures": figures,
        "faults": list(faults.values()),
        "seconds": round(time.monotonic() - started, 1),
    }


def _sort(text: str) -> str:
    """Faults that differ in numbers, paths and quoted words alone are of one sort."""
    text = re.sub(r"/\S+/|'[^']*'|\"[^\"]*\"", "…", text)
    return re.sub(r"\d+", "0", text)[:80]


def smaller_case(workers: Workers, module, case: dict, sort: str) -> dict:
    """The smallest case found that fails in the same way."""
    ends, progressing = time.monotonic() + MOST_SHRINKING, True
    while progressing:
        progressing = False
        for smaller in module.smaller(case):
            if time.monotonic() > ends:
                return case
            if _sort(workers.check(smaller).get("fault", "")) == sort:
                case, progressing = smaller, True
                break
    return case


def keep_case(name: str, case: dict, found: dict) -> str:
    """Write a case to cases/, where the test suite finds it."""
    CASES.mkdir(exist_ok=True)
    text = json.dumps({"kind": name, "found": found["fault"], "case": case}, indent=1, sort_keys=True) + "\n"
    path = CASES / f"{name}-{hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:8]}.json"
    path.write_text(text, encoding="utf-8")
    return path.name
