"""The demo, as a user runs it, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def run_demo(*arguments):
    return subprocess.run([sys.executable, DEMO, *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_the_demo_shows_and_saves_what_it_learned(tmp_path, rng, kind):
    X, data = rng.normal(size=(120, 4)), tmp_path / f"samples.{kind}"
    if kind == "npy":
        np.save(data, X)
    else:
        np.savetxt(data, X, delimiter=",", header="a,b,c,d", comments="")
    run = run_demo(data, "--neighbors", 6, "--output", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    for word in ("nodes", "edges", "wanted 6", "bounds", "gap", "certified nodes", "seconds", "make demo DATA="):
        assert word in run.stdout
    assert sp.load_npz(tmp_path / "out" / "graph.npz").shape == (120, 120)
    assert (tmp_path / "out" / "graph.png").stat().st_size > 10_000


def test_a_wrong_file_is_one_line_not_a_traceback(tmp_path):
    run = run_demo(tmp_path / "missing.csv")
    assert run.returncode == 1
    assert "missing.csv" in run.stderr
    assert "Traceback" not in run.stderr
