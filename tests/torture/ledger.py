"""docs/reliability.json: the sessions of every kind, one after the other, with date and versions. They add up."""

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import smoothgraph

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reliability.json"
PACKAGES = "numpy", "scipy", "numba", "scikit-learn", "pyarrow", "h5py", "anndata"


def read() -> dict[str, list[dict]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def add(kind: str, session: dict) -> None:
    """Write a session behind the others of its kind."""
    sessions = read()
    sessions.setdefault(kind, []).append({**session, "date": datetime.now(UTC).date().isoformat(), "versions": versions()})
    RESULTS.write_text(json.dumps(sessions, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    there = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    return there | {"smoothgraph": smoothgraph.__version__} | {name: version(name) for name in PACKAGES}
