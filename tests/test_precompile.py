"""`smoothgraph compile`: after it, ordinary work compiles nothing in any process; it leaves out no kernel by oversight."""

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smoothgraph import _kernels

# Schemes of the experiments, and degree penalties, which are compiled together with the functions that a user writes.
LEFT_OUT = "schemes."

WORK = """
import json, sys, warnings
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from smoothgraph import GraphLearner, NeighborsTransformer, label_propagation, spectral_embedding
from smoothgraph._kernels.cache import counts

X, y = load_digits(return_X_y=True)
W = GraphLearner().fit(X).graph_  # the first fit of a new user
for dtype in (np.float32, np.float64):
    np.save(sys.argv[1], X.astype(dtype))
    dense, mapped = X.astype(dtype), np.load(sys.argv[1], mmap_mode="r")
    for form in (dense, mapped, sp.csr_matrix(dense), sp.csr_array(dense), np.asfortranarray(dense)):
        for search in ("exact", "approximate"):
            GraphLearner(7, neighbors=search, random_state=1).fit(form).transform(form[:5])
        NeighborsTransformer(4).fit_transform(form)
    GraphLearner(locality=0, connect=False, duplicates="keep").fit(dense)
    GraphLearner(metric="cosine").fit(dense)
    GraphLearner(model="l2").fit(dense)
label_propagation(W, np.where(np.arange(len(y)) < 50, y, -1))
spectral_embedding(W, 3)
print(json.dumps({what: sum(n for event, n in counts().items() if event.what == what) for what in ("compiled", "loaded")}))
"""


def run(*command, **environment):
    """(exit code, stdout, stderr) of a new process."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    done = subprocess.run(command, env=plain | environment, capture_output=True, text=True, timeout=3000)
    return done.returncode, done.stdout, done.stderr


def compile_into(folder, *options, **environment):
    return run(sys.executable, "-m", "smoothgraph", "compile", "--cache", str(folder), *options, **environment)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with the kernels, and what the command said of itself."""
    folder = tmp_path_factory.mktemp("kernels") / "cache"
    code, printed, told = compile_into(folder, "--json")
    assert code == 0, told
    assert told.count("compiling the kernels") == 1
    assert "warning" not in told
    return folder, json.loads(printed)


def names_of(folder):
    """The kernels in a folder, as module.function."""
    return {path.name.partition("-")[0] for path in folder.rglob("*.kernel")}


def test_it_says_what_it_did(compiled):
    folder, said = compiled
    files = list(folder.rglob("*.kernel"))
    assert said["compiled"] == len(files) > 100
    assert said["loaded"] == 0
    assert said["bytes"] == sum(path.stat().st_size for path in files)
    assert [Path(name) for name in said["folders"]] == [files[0].parent]
    assert not said["is_private"]


def test_every_kernel_is_compiled(compiled):
    """A kernel that this names is reached by no fit of precompile.py: add one that a user would make."""
    kernels = set()
    for module in pkgutil.iter_modules(_kernels.__path__):
        found = vars(importlib.import_module(f"smoothgraph._kernels.{module.name}"))
        kernels |= {f"{module.name}.{name}" for name, one in found.items() if _is_kernel_of(module.name, one)}
    assert len(kernels) > 100
    assert {name for name in kernels - names_of(compiled[0]) if not name.startswith(LEFT_OUT)} == set()


def _is_kernel_of(module, one):
    return hasattr(one, "py_func") and one.py_func.__module__ == f"smoothgraph._kernels.{module}"


def test_afterwards_ordinary_work_compiles_nothing(compiled, tmp_path):
    """By another user in an image, say: nothing can be written to the folder, and nothing needs to be."""
    folder = tmp_path / "cache"
    shutil.copytree(compiled[0], folder)
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        code, printed, told = run(
            *_without_power_over_files(), sys.executable, "-c", WORK, str(tmp_path / "X.npy"), NUMBA_CACHE_DIR=str(folder)
        )
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
    assert code == 0, told
    done = json.loads(printed)
    assert done["compiled"] == 0
    assert done["loaded"] > 50
    assert names_of(folder) == names_of(compiled[0])


def _without_power_over_files():
    """What root puts before a command so that permissions hold for it, too."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return []
    powers = "-dac_override,-dac_read_search,-fowner"
    return ["setpriv", "--bounding-set", powers, "--inh-caps", powers]


def test_a_second_time_loads_all(compiled):
    folder, said = compiled
    code, printed, told = compile_into(folder)
    assert code == 0, told
    assert printed.startswith("kernels      0 compiled, ")
    assert f"NUMBA_CACHE_DIR={folder}" in printed
    assert len(list(folder.rglob("*.kernel"))) == said["compiled"]


def test_a_folder_that_cannot_be_used_is_an_error_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    code, printed, told = compile_into(tmp_path / "file" / "cache")
    assert (code, printed) == (1, "")
    assert "Not a directory" in told


def test_an_environment_without_compilation_is_an_error(tmp_path):
    code, _, told = compile_into(tmp_path, NUMBA_DISABLE_JIT="1")
    assert code == 1
    assert "NUMBA_DISABLE_JIT is set" in told
