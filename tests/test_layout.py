"""The shape of the package: what may import what, and what is public."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smoothgraph

SOURCE = Path(smoothgraph.__file__).parent

# Stages from left to right; a module imports only what stands before it.
STAGES = [
    "messages",
    "memory",
    "files",
    "hdf5.pipe",
    "hdf5.read",
    "hdf5.write",
    "hdf5.__main__",
    "hdf5",
    "sparse",
    "float_range",
    "symmetry",
    "optional",
    "datasets.whole",
    "datasets.files",
    "datasets.convert",
    "datasets.sources",
    "datasets.loaders",
    "datasets.spherical",
    "datasets",
    "parallel",
    "numbering",
    "_kernels.cache",
    "_kernels.decorators",
    "_kernels.form",
    "_kernels.lists",
    "_kernels.cells",
    "_kernels.bounds",
    "_kernels.sparse_cells",
    "_kernels.possible",
    "_kernels.edges",
    "_kernels.dual",
    "_kernels.groups",
    "_kernels.l2",
    "_kernels.newton",
    "_kernels.schemes",
    "_kernels.daitch",
    "_kernels.components",
    "_kernels.systems",
    "_kernels.hops",
    "_kernels.copies",
    "_kernels",
    "distances",
    "edges",
    "copies",
    "neighbors.queries",
    "neighbors.lists",
    "neighbors.cells",
    "neighbors.bounds",
    "neighbors.approximate",
    "neighbors.exact",
    "neighbors.given",
    "neighbors",
    "neighbors.rows",
    "theta",
    "reference.log",
    "reference.l2",
    "reference.daitch",
    "reference",
    "solvers.problem",
    "solvers.work",
    "solvers.conjugate_gradients",
    "solvers.sweeps",
    "solvers.interior",
    "solvers.groups",
    "solvers.nodewise",
    "solvers.newton",
    "solvers.penalty",
    "solvers.primal_dual",
    "solvers.multipliers",
    "solvers.all_pairs",
    "solvers",
    "progress",
    "new_samples",
    "fit.state",
    "fit.possible_pairs",
    "fit.certify",
    "fit.search_theta",
    "fit.solve_certified",
    "fit.connect",
    "fit.task",
    "fit.by_theta",
    "fit",
    "models.log",
    "models.l2",
    "models.penalty",
    "models.daitch",
    "models.nearest",
    "models",
    "graph",
    "fitted",
    "uses.graphs",
    "uses.systems",
    "uses.propagation",
    "uses.embedding",
    "uses.quality",
    "uses.paths",
    "uses",
    "_checks",
    "transformer",
    "estimate",
    "learner",
    "precompile",
    "io.door",
    "io.h5ad",
    "io.samples",
    "io.compressed",
    "io.npy",
    "io.matrix_market",
    "io.arrays",
    "io.frames",
    "io.columnar",
    "io.text",
    "io.cells",
    "io.tables",
    "io.labels",
    "io.shapes",
    "io.exports",
    "io.stored",
    "io.npz",
    "io.edge_lists",
    "io.graphml",
    "io.graphs",
    "io.anndata",
    "io",
    "plots",
    "streams",
    "cli.app",
    "cli.report",
    "cli.dry_run",
    "cli.learn",
    "cli.graphs",
    "cli.uses",
    "cli.data",
    "cli.kernels",
    "cli",
    "signals",
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
        if name == "__init__":
            continue
        assert name in STAGES, f"{name} has no place in the flow: add it to STAGES"
        for imported in imported_modules(path):
            assert STAGES.index(imported) < STAGES.index(name), f"{name} imports {imported}"
            checked += 1
    assert checked > 20


def functions(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node


def test_functions_take_at_most_ten_parameters():
    """More want an object. Kernels take arrays, commands take options, and scikit-learn demands all parameters by name."""
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ("_kernels", "cli"):
            continue
        for function in functions(path):
            arguments = function.args
            names = [
                a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if a.arg not in ("self", "cls")
            ]
            if (path.name, function.name) != ("learner.py", "__init__"):
                assert len(names) <= 10, f"{path.name}: {function.name} takes {len(names)}"


def test_the_learner_reads_in_one_sitting():
    assert len((SOURCE / "learner.py").read_text(encoding="utf-8").splitlines()) < 350


@pytest.mark.parametrize("word", ["prange", "parallel=True", "set_num_threads", "ThreadPoolExecutor", "threadpool_limits"])
def test_threads_are_the_matter_of_one_module(word):
    for path in SOURCE.rglob("*.py"):
        assert path.name == "parallel.py" or word not in path.read_text(encoding="utf-8"), path


def test_no_module_asks_which_stage_or_model_made_something():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"isinstance\([^)]*(NeighborLists|AllowedPairs|Edges|Points|DistanceMatrix|Problem)\b", text), path
        if path.parent.name not in ("models", "cli"):
            assert not re.search(r"model(\.name)? ==|model(\.name)? in \(", text), path


def test_nothing_in_the_package_uses_its_judges():
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "reference":
            assert not any(name.startswith("reference") for name in imported_modules(path)), path


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
