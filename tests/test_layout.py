"""The shape of the package: what may import what, and what is public."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smoothgraph

SOURCE = Path(smoothgraph.__file__).parent

# Stages from left to right; a module imports only what stands before it.
STAGES = [
    "datasets.files",
    "datasets.convert",
    "datasets.sources",
    "datasets.loaders",
    "datasets.spherical",
    "datasets",
    "_kernels.decorators",
    "_kernels.lists",
    "_kernels.edges",
    "_kernels.dual",
    "_kernels.l2",
    "_kernels.schemes",
    "_kernels.daitch",
    "_kernels.graphs",
    "_kernels",
    "samples",
    "cells",
    "neighbors",
    "candidates",
    "theta",
    "models.log",
    "models.l2",
    "models.daitch",
    "solvers.problem",
    "solvers.interior",
    "solvers.nodewise",
    "solvers.l2",
    "solvers.penalty",
    "solvers.primal_dual",
    "solvers.daitch",
    "solvers",
    "recipe",
    "certify",
    "settle",
    "connect",
    "graph",
    "baselines",
    "uses.graphs",
    "uses.systems",
    "uses.propagation",
    "uses.embedding",
    "uses.quality",
    "uses",
    "_checks",
    "learner",
    "io._files",
    "io.tables",
    "io.exports",
    "io.graphs",
    "io",
    "plots",
    "cli.app",
    "cli.report",
    "cli.learn",
    "cli.graphs",
    "cli.uses",
    "cli.data",
    "cli",
    "__main__",
]


def module_name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path):
    """Modules of smoothgraph that a file imports, by their names below the package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name.removeprefix("smoothgraph.") for a in node.names if a.name.startswith("smoothgraph."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "smoothgraph":
            parent = node.module.removeprefix("smoothgraph").removeprefix(".")
            children = [f"{parent}.{a.name}".removeprefix(".") for a in node.names]
            yield from (child if child in STAGES else parent for child in children)


def test_a_stage_imports_only_the_stages_to_its_left():
    checked = 0
    for path in SOURCE.rglob("*.py"):
        name = module_name(path)
        if name in ("__init__", "models"):
            continue
        assert name in STAGES, f"{name} has no place in the flow: add it to STAGES"
        for imported in imported_modules(path):
            assert STAGES.index(imported) < STAGES.index(name), f"{name} imports {imported}"
            checked += 1
    assert checked > 20


def test_public_names_exist_and_say_what_they_are():
    for name in smoothgraph.__all__:
        assert getattr(smoothgraph, name).__doc__, name
        assert name in dir(smoothgraph)
    assert sorted(smoothgraph.__all__) == list(smoothgraph.__all__)
    with pytest.raises(AttributeError, match="GraphLearnr"):
        smoothgraph.GraphLearnr  # noqa: B018


def test_importing_the_package_imports_nothing_heavy():
    loaded = "import sys, smoothgraph; print({'sklearn', 'numba', 'scipy', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout.strip() == "set()"


def test_every_module_says_what_it_does():
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path.name


def test_the_optional_and_slow_imports_stay_out_of_the_way():
    """Each lives in the function that needs it: importing smoothgraph imports none of them."""
    heavy = {"matplotlib", "cvxpy", "healpy", "pooch", "h5py", "PIL"}
    heavy |= {"pyarrow", "pandas", "anndata", "networkx", "torch", "umap", "datashader"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not heavy & {name.split(".")[0] for name in names}, path.name


def test_nothing_large_is_in_the_repository():
    """Data stay outside; a file that a script left behind is found before it is in everybody's clone for ever."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    top = subprocess.run(["git", "rev-parse", "--show-toplevel"], cwd=SOURCE, capture_output=True, text=True).stdout.strip()
    if not (Path(top) / "src" / "smoothgraph" / "__init__.py").exists():
        pytest.skip("not a checkout of the repository")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, text=True).stdout.strip("\0").split("\0")
    sizes = {name: (Path(top) / name).stat().st_size for name in tracked if (Path(top) / name).is_file()}
    assert len(sizes) > 50
    assert not {name: size for name, size in sizes.items() if size > 1_000_000}
