"""The command line, as a user types it."""

import inspect
import json
import os
import pty
import subprocess
import sys
import time
import typing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import RobustScaler, StandardScaler

from conftest import blobs, relative_l1
from smoothgraph import GraphLearner
from smoothgraph.__main__ import main
from smoothgraph.io import read_graph, write_graph


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, stdout and stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = ended.value.code
        return 0 if code is None else code, captured.out, captured.err

    return run


@pytest.fixture
def table(tmp_path, rng):
    """A csv with names, classes and three features."""
    X = blobs(80, 3, rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(name=[f"s{i}" for i in range(80)], kind=list("xyzw") * 20)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path, X


NAMED = "--id-column", "name", "--label-column", "kind"


def test_two_commands_from_a_csv_to_a_graph_and_a_picture(tmp_path, table, run):
    path, X = table
    out = tmp_path / "graph.npz"
    code, shown, told = run("learn", path, *NAMED, "-k", 5, "-o", out)
    assert code == 0
    for word in ("80", "wanted 5", "bounds", "gap", "certified nodes", "connected components", "seconds"):
        assert word in shown
    stored = read_graph(out)
    assert {"neighbors", "solve", "graph"} <= set(stored.metadata["seconds"])
    for stage in ("read", *stored.metadata["seconds"], "write"):
        assert f"  {stage}" in told
    expected = GraphLearner(5).fit(X)
    assert (sp.load_npz(out) != expected.graph_).nnz == 0
    assert stored.ids.tolist() == [f"s{i}" for i in range(80)]
    assert stored.metadata["theta"] == expected.theta_
    assert run("plot", out) == (0, f"Wrote {tmp_path / 'graph.png'}.\n", "")
    assert (tmp_path / "graph.png").read_bytes()[:4] == b"\x89PNG"


def test_options_are_the_parameters_of_the_learner_and_of_its_models():
    """By name and by default. `verbose` has no place on a command line."""
    from smoothgraph.cli.learn import MODEL_OPTIONS, Model, learn
    from smoothgraph.models import model_of

    options = inspect.signature(learn).parameters
    for name, parameter in inspect.signature(GraphLearner).parameters.items():
        if name != "verbose":
            assert name in options, f"smoothgraph learn has no --{name.replace('_', '-')}"
            assert options[name].default == parameter.default, name
    models = [model_of(name) for name in typing.get_args(Model)]
    found = set()
    for model in models:
        for name, default in model.get_params().items():
            # What differs between the models of a class, such as "hard" and "soft", is said by --model.
            if not any(type(other) is type(model) and other.get_params()[name] != default for other in models):
                found.add(name)
                assert options[name].default == default, name
    assert found == set(MODEL_OPTIONS)


def test_choices_are_those_of_the_learner():
    from smoothgraph.cli.learn import Metric, Model, Search
    from smoothgraph.distances import MATRICES, METRICS
    from smoothgraph.models import MODELS

    assert typing.get_args(Model) == tuple(MODELS)
    assert typing.get_args(Metric) == (*METRICS, *MATRICES)
    X = np.random.default_rng(0).normal(size=(30, 3))
    for metric in typing.get_args(Metric):
        assert GraphLearner(3, metric=metric).fit(X if metric in METRICS else abs(X[:, :1] - X[:, 0])).graph_.nnz
    for neighbors in typing.get_args(Search):
        assert GraphLearner(3, neighbors=neighbors).fit(X).graph_.nnz


def test_parameters_reach_the_learner(tmp_path, table, run):
    path, X = table
    out, first = tmp_path / "graph.parquet", tmp_path / "prior.npz"
    assert run("learn", path, "--columns", "c,a", "-k", 3, "-o", first, "--quiet") == (0, "", "")
    code, shown, told = run(
        "learn", path, "--columns", "c,a", "--alpha", 2, "--beta", 0.5, "--metric", "cosine", "--no-complete", "--neighbors",
        "exact", "--oversampling", 2, "--tol", 1e-8, "--prior", first, "--prior-strength", 0.3, "--max-weight", 0.4, "-k", 4,
        "--random-state", 7, "--n-jobs", 1, "-o", out, "--json", "-q",
    )  # fmt: skip
    facts = json.loads(shown)
    assert (code, told) == (0, "")
    prior = read_graph(first).W
    options = {"metric": "cosine", "complete": False, "neighbors": "exact", "oversampling": 2.0, "tol": 1e-8, "n_jobs": 1}
    expected = GraphLearner(
        4, alpha=2.0, beta=0.5, prior=prior, prior_strength=0.3, max_weight=0.4, random_state=7, **options
    ).fit(X[:, [2, 0]])
    assert (expected.graph_ != read_graph(out).W).nnz == 0
    assert facts["gap"] == expected.solution_.gap
    assert {name: facts["parameters"][name] for name in options} == options
    code, shown, _ = run("learn", path, "--columns", "a", "--scale", "sum", "-o", out, "--json")
    assert read_graph(out).W.sum() == pytest.approx(80)


def test_columns_of_different_units_are_named_and_standardised(tmp_path, run, rng):
    """As scikit-learn does it; constant columns stay, and a column of mostly zeros is divided by its deviation."""
    X = np.column_stack([blobs(80, 3, rng) * [1.0, 1e4, 1e-3], np.full(80, 0.1), 1e5 * (rng.random(80) < 0.2)])
    path, out = tmp_path / "units.csv", tmp_path / "graph.npz"
    pd.DataFrame(X, columns=["a", "price", "c", "same", "rare"]).assign(name=range(80)).to_csv(path, index=False)
    learn = "learn", path, "--id-column", "name", "-k", 4, "-o", out
    told = run(*learn, "--columns", "a,c,price,same")[2]
    assert "warning: Column 'price' makes up over 99.9 % of the squared distances" in told
    assert read_graph(out).metadata["standardize"] == "none"
    robust = RobustScaler().fit_transform(X)
    robust[:, 4] = X[:, 4] / X[:, 4].std()
    for how, expected in (("standard", StandardScaler().fit_transform(X)), ("robust", robust)):
        code, shown, told = run(*learn, "--standardize", how)
        assert code == 0
        assert f"standardised ({how})" in shown
        assert f"standardised ({how})" in run("info", out)[1]
        assert "warning" not in told
        assert read_graph(out).metadata["standardize"] == how
        assert relative_l1(read_graph(out).W, GraphLearner(4).fit(expected).graph_) < 1e-3


def test_standardising_keeps_sparse_tables_sparse_and_small_numbers_small(tmp_path, run, rng):
    X = sp.random(80, 6, density=0.5, random_state=rng).tocsr() @ sp.diags([1.0, 10.0, 100.0, 1.0, 1.0, 1.0])
    sparse, small, out = tmp_path / "sparse.npz", tmp_path / "small.npy", tmp_path / "graph.npz"
    sp.save_npz(sparse, sp.csr_matrix(X))
    assert run("learn", sparse, "-k", 4, "--standardize", "standard", "-o", out, "-q")[0] == 0
    dense = GraphLearner(4).fit(StandardScaler().fit_transform(X.toarray()))  # the distances are the same
    assert relative_l1(read_graph(out).W, dense.graph_) < 1e-3
    code, _, told = run("learn", sparse, "--standardize", "robust", "-o", out)
    assert code == 1
    assert "use --standardize standard" in told
    Z = rng.integers(0, 255, size=(80, 5)).astype(np.uint8)
    np.save(small, Z)
    for how in ("standard", "robust"):
        assert run("learn", small, "-k", 4, "--standardize", how, "-o", out, "-q")[0] == 0
    code, _, told = run("learn", small, "--metric", "precomputed", "--standardize", "robust", "-o", out)
    assert code == 1
    assert "--standardize robust does not apply to --metric precomputed" in told


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(tmp_path, run, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(300, 4)).astype(np.float32))
    before = sorted(tmp_path.iterdir())
    code, out, _ = run("learn", tmp_path / "x.npy", "-k", 5, "-o", tmp_path / "graph.npz", "--dry-run", "--json")
    facts = json.loads(out)
    assert (code, facts["samples"], facts["features"], facts["search"]) == (0, 300, 4, "exact")
    assert facts["memory_bytes"] > 1e8
    assert facts["seconds"] > 0
    code, out, _ = run("learn", tmp_path / "x.npy", "--dry-run")  # needs no output
    assert code == 0
    assert "300 × 4 features" in out
    assert sorted(tmp_path.iterdir()) == before
    assert run("learn", tmp_path / "none.npy", "--dry-run")[0] == 1
    code, _, error = run("learn", tmp_path / "x.npy")
    assert code == 2
    assert "--output" in error


def test_info_tells_what_learn_wrote(tmp_path, table, run):
    out = tmp_path / "graph.graphml"
    _, learned, _ = run("learn", table[0], *NAMED, "-k", 6, "-o", out, "--json", "--quiet")
    code, shown, _ = run("info", out, "--json")
    facts = json.loads(shown)
    assert code == 0
    assert facts["metadata"] == json.loads(learned)
    W = sp.csr_matrix(read_graph(out).W)
    counts = np.diff(W.indptr)
    assert facts["n_neighbors"] == {"mean": counts.mean(), "median": np.median(counts), "max": counts.max()}
    assert facts["n_components"] == connected_components(W, directed=False, return_labels=False)
    assert run("info", out, "--quiet") == (0, "", "")
    _, shown, _ = run("info", out)
    for word in ("neighbours per node", "ids such as 's0', 's1'", "learned by smoothgraph", "n_neighbors=6", "gap"):
        assert word in shown


def test_long_ids_do_not_fill_the_screen(tmp_path, run):
    path, long = tmp_path / "graph.npz", "x" * 10**6
    write_graph(path, np.ones((3, 3)) - np.eye(3), ids=["a", "b", long])
    code, shown, _ = run("info", path)
    assert (code, "'a', 'b', 'xxx" in shown) == (0, True)
    assert len(shown) < 2000
    for command in (["plot", path, "--kind", "neighborhood", "--node", "c"], ["convert", path, tmp_path / "graph.txt"]):
        assert len(run(*command)[2]) < 2000
    write_graph(path, np.ones((2, 2)) - np.eye(2), ids=["a", "\x1b" + long])
    told = run("convert", path, tmp_path / "graph.graphml")[2]
    assert "in '\\x1bxxx" in told
    assert len(told) < 2000


def test_convert_and_compare(tmp_path, table, run):
    names = [tmp_path / f"graph.{kind}" for kind in ("npz", "parquet", "h5ad", "graphml", "csv")]
    run("learn", table[0], *NAMED, "-o", names[0], "-q")
    for before, after in pairwise(names):
        assert run("convert", before, after)[0] == 0
    code, shown, _ = run("compare", names[0], names[-1], "--json")
    facts = json.loads(shown)
    assert code == 0
    assert facts["relative_l1"] == facts["largest_difference"] == 0.0
    assert facts["shared"] == facts["edges"][0] == facts["edges"][1]


def test_compare_matches_nodes_by_their_ids(tmp_path, table, run, rng):
    path, _ = table
    shuffled = tmp_path / "shuffled.csv"
    pd.read_csv(path).sample(frac=1, random_state=0).to_csv(shuffled, index=False)
    a, b, c = (tmp_path / f"{name}.npz" for name in "abc")
    run("learn", path, *NAMED, "-o", a, "-q")
    run("learn", shuffled, *NAMED, "-o", b, "-q")
    assert json.loads(run("compare", a, b, "--json")[1])["relative_l1"] < 1e-2  # the same problem; sweeps go another way
    run("learn", shuffled, "--columns", "a,b,c", "-o", c, "-q")
    assert json.loads(run("compare", a, c, "--json")[1])["jaccard"] < 0.5
    shown = run("compare", a, c)[1]
    assert "edges in both" in shown


def test_pictures_of_every_kind(tmp_path, table, run):
    out = tmp_path / "graph.npz"
    run("learn", table[0], *NAMED, "-o", out, "-q")
    sizes = set()
    for kind in ("overview", "graph", "neighbor-counts", "weights", "classes", "neighborhood"):
        picture = tmp_path / f"{kind}.png"
        assert run("plot", out, "--kind", kind, "--node", "s7", "-o", picture)[0] == 0
        sizes.add(picture.stat().st_size)
    assert len(sizes) == 6


def test_the_demo_shows_and_saves_what_it_learned(tmp_path, run, table):
    path = tmp_path / "numbers.csv"
    pd.read_csv(table[0])[["a", "b", "c"]].to_csv(path, index=False)
    code, shown, _ = run("demo", path, "-k", 6, "--output", tmp_path / "out")
    assert code == 0
    for word in ("nodes", "edges", "wanted 6", "bounds", "gap", "certified nodes", "seconds", "make demo DATA="):
        assert word in shown
    assert sp.load_npz(tmp_path / "out" / "graph.npz").shape == (80, 80)
    assert (tmp_path / "out" / "graph.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("learn nothing.csv -o g.npz", 1, "nothing.csv does not exist"),
        ("learn table.csv -o g.npz", 1, "Column 'name' holds"),
        ("learn table.csv -o g.txt", 1, "end its name in .csv"),
        ("learn table.csv -o nowhere/g.npz", 1, "make it first"),
        ("learn table.csv --columns a,b -k 80 -o g.npz", 1, "n_neighbors=80 must be less"),
        ("learn table.csv --columns a,b --metric taxi -o g.npz", 2, "'taxi' is not one of 'euclidean', 'cosine'"),
        ("learn table.csv --columns a,d -o g.npz", 1, "no column 'd': the columns are 'a', 'b', 'c', 'name', 'kind'"),
        ("learn holes.csv -o g.npz", 1, "--missing drop"),
        ("learn graph.npz -o g.npz", 1, "graph.npz holds a graph"),
        ("learn table.csv --columns a,b --mu 2 -o g.npz", 1, "mu"),
        ("learn table.csv --columns a,b --model soft --sigma 2 -o g.npz", 1, "sigma"),
        ("learn table.csv", 2, "--output"),
        ("learn table.csv -k ten -o g.npz", 2, "for '--n-neighbors'"),
        ("lern table.csv", 2, "No such command 'lern'"),
        ("info table.csv", 1, "no edge list"),
        ("compare small.npz other.npz", 1, "3 nodes, other.npz has 4"),
        ("convert small.npz small.xyz", 1, "end its name in"),
        ("plot small.npz --kind pie", 2, "'pie' is not one of 'overview'"),
        ("plot small.npz --kind classes", 1, "has no labels"),
        ("plot small.npz --kind neighborhood --node 9", 1, "There is no node 9: the nodes are 0, 1, 2"),
        ("plot small.npz -o picture.docx", 1, "what kind of picture"),
    ],
)
def test_wrong_commands_get_one_clear_line(tmp_path, table, run, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "holes.csv").write_text("a,b\n1,2\n3,\n4,5\n")
    sp.save_npz("small.npz", sp.csr_matrix(np.ones((3, 3)) - np.eye(3)))
    sp.save_npz("other.npz", sp.csr_matrix(np.ones((4, 4)) - np.eye(4)))
    write_graph("graph.npz", sp.load_npz("small.npz"))
    before = sorted(tmp_path.iterdir())
    ended, _, told = run(*arguments.split())
    assert ended == code
    assert message in " ".join(told.replace("│", " ").split())
    assert "Traceback" not in told
    if code == 1:
        assert told.splitlines()[-1].startswith("smoothgraph: ")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", 0], "n_neighbors=0"),
        (["--tol", -1], "tol=-1.0"),
        (["--oversampling", 0.1], "oversampling=0.1 must be a number of at least 1; 2 is usual"),
        (["--model", "knn", "--theta", 1], "theta=1.0 does not apply"),
        (["--prior-strength", 1], "prior"),
        (["--scale", "much"], "scale='much'"),
        (["--random-state", -5], "random_state=-5 must be from 0"),
        (["--random-state", 2**32], "random_state=4294967296 must be from 0"),
        (["-o", "graph.txt"], "graph.txt does not say in which format"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_the_table_is_read(tmp_path, run, options, message):
    (tmp_path / "table.csv").write_text("this is no table")
    code, _, told = run("learn", tmp_path / "table.csv", "-o", tmp_path / "graph.npz", *options)
    assert (code, told.count("\n")) == (1, 1)
    assert message in told


def test_a_list_of_columns_may_have_blanks(tmp_path, table, run):
    path, _ = table
    assert run("learn", path, "--columns", "a, b", "-k", 5, "-q", "-o", tmp_path / "some.npz")[0] == 0
    assert run("learn", path, "--exclude", " c ,name, kind", "-k", 5, "-q", "-o", tmp_path / "others.npz")[0] == 0
    some, others = read_graph(tmp_path / "some.npz"), read_graph(tmp_path / "others.npz")
    assert some.metadata["source"]["columns"] == others.metadata["source"]["columns"] == ["a", "b"]
    assert (some.W != others.W).nnz == 0
    assert "no column ''" in run("learn", path, "--columns", "", *NAMED, "-o", tmp_path / "none.npz")[2]  # "$UNSET" is not all


def test_the_kind_of_a_file_in_capitals(tmp_path, table, run):
    for name in ("graph.NPZ", "graph.Parquet", "graph.CSV", "graph.GraphML", "graph.H5AD"):
        assert run("learn", table[0], *NAMED, "-k", 5, "-q", "-o", tmp_path / name)[0] == 0
        code, shown, _ = run("info", tmp_path / name, "--json")
        assert (code, json.loads(shown)["n"]) == (0, 80)
    assert {path.name for path in tmp_path.glob("graph.*")} == {
        "graph.NPZ", "graph.Parquet", "graph.CSV", "graph.GraphML", "graph.H5AD"
    }  # fmt: skip


def test_what_did_not_converge_has_its_own_exit_code(tmp_path, table, run):
    out = tmp_path / "graph.npz"
    code, shown, told = run("learn", table[0], "--columns", "a,b,c", "--tol", 1e-13, "--max-iter", 1, "-o", out)
    assert code == 3
    assert "warning: The relative duality gap" in told
    assert "max_iter" in shown
    assert read_graph(out).metadata["status"] == "max_iter"


def test_help_has_examples_and_starts_without_the_heavy_packages(run):
    for command in ("learn", "info", "compare", "convert", "plot", "demo"):
        code, shown, _ = run(command, "--help")
        assert code == 0
        assert f"smoothgraph {command} " in shown.split("Options")[0].split("Usage", 1)[1].split("\n", 2)[2]
    script = (
        "import sys, smoothgraph.__main__ as m\ntry: m.main(['--help'])\nfinally: print(set(sys.modules) & {'numpy', 'numba'})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip().endswith("set()")


def test_commands_that_only_look_at_a_graph_do_not_wait_for_numba(tmp_path):
    graph = tmp_path / "graph.npz"
    write_graph(graph, np.ones((3, 3)) - np.eye(3))
    for command in (f"['info', {str(graph)!r}]", f"['compare', {str(graph)!r}, {str(graph)!r}]"):
        script = f"import sys, smoothgraph.__main__ as m\ntry: m.main({command})\nfinally: print('numba' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.stdout.startswith("nodes")
        assert done.stdout.strip().endswith("False")


def test_a_terminal_sees_the_seconds_go_by(tmp_path):
    """While the learner's thread works, the status below is redrawn several times a second."""
    script = (
        "import time\nfrom smoothgraph.cli.report import Progress\n"
        "with Progress() as progress:\n"
        "    progress('solve', '')\n    progress('solve', 'gap 1e-3')\n    time.sleep(1.2)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-c", script], os.environ | {"TERM": "xterm"})
    seen, begin = b"", time.monotonic()
    while time.monotonic() - begin < 60:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
    assert os.waitpid(pid, 0)[1] == 0
    assert b"gap 1e-3" in seen
    assert seen.count(b"in this stage") >= 4


MODELS = (
    "--model l2",
    "--model hard",
    "--model soft --mu 100 --projection 3 --random-state 0",
    "--model knn --mutual",
    "--model knn-gaussian --sigma 0.5",
    "--locality 0.5 --connect",
    "--neighbors all --no-connect",
)


@pytest.mark.parametrize("options", MODELS)
def test_every_model_can_be_learned_and_told_of(tmp_path, table, run, options):
    from smoothgraph.models import model_of

    path, X = table
    out = tmp_path / "graph.npz"
    code, shown, _ = run("learn", path, "--columns", "a,b,c", "-k", 6, *options.split(), "-o", out)
    assert code == 0
    stored = read_graph(out)
    assert stored.metadata["n_edges"] == stored.W.nnz // 2
    assert ("certified" in shown) == ("knn" not in options)
    told = run("info", out)[1]
    assert told.count("neighbours per node") == 2
    for name, value in stored.metadata["model_parameters"].items():
        assert f"{name}={value}" in told
    assert ("bridges" in shown) == ("--connect" in options)
    parameters = stored.metadata["parameters"]
    model = model_of(parameters["model"], **stored.metadata["model_parameters"])
    again = GraphLearner(**parameters | {"model": model}).fit(X)
    assert (again.graph_ != stored.W).nnz == 0


def few_labels(table, run, tmp_path, named):
    """A graph of the table, and a file with the classes of its first ten rows."""
    graph, few = tmp_path / "graph.npz", tmp_path / "few.csv"
    options = NAMED if named else ("--columns", "a,b,c")
    run("learn", table[0], *options, "-k", 8, "-o", graph, "-q")
    frame = pd.read_csv(table[0]).head(10)
    (frame[["name", "kind"]] if named else frame[["kind"]].rename_axis("name").reset_index()).to_csv(few, index=False)
    return graph, few


@pytest.mark.parametrize("named", [True, False])
def test_labels_in_labels_out(tmp_path, table, run, named):
    graph, few = few_labels(table, run, tmp_path, named)
    out = tmp_path / "all.csv"
    code, shown, _ = run("propagate", graph, few, "--id-column", "name", "--label-column", "kind", "-o", out, "--json")
    assert code == 0
    from smoothgraph import label_propagation

    y = np.array(list("xyzw") * 20)
    y[10:] = ""
    expected, written = label_propagation(read_graph(graph).W, y), pd.read_csv(out, keep_default_na=False)
    assert written["label"].tolist() == expected.labels.tolist()
    assert written["given"].tolist() == [True] * 10 + [False] * 70
    assert written["id"].astype(str).tolist() == [f"s{i}" if named else str(i) for i in range(80)]
    assert json.loads(shown)["n_reached"] == expected.reached.sum()


def test_embed_writes_coordinates(tmp_path, table, run):
    graph, _ = few_labels(table, run, tmp_path, True)
    out = tmp_path / "places.parquet"
    assert run("embed", graph, "--n-components", 3, "-o", out)[0] == 0
    from smoothgraph import spectral_embedding

    frame = pd.read_parquet(out)
    assert frame.columns.tolist() == ["id", "x1", "x2", "x3"]
    np.testing.assert_array_equal(frame[["x1", "x2", "x3"]], spectral_embedding(read_graph(graph).W, 3).coordinates)


def test_an_embedding_that_misses_its_accuracy_is_an_exit_code(tmp_path, run, rng):
    """A chain of 40 clusters with weights of 1e-9 between them."""
    clusters = [kneighbors_graph(rng.normal(size=(40, 8)), 8) for _ in range(40)]
    W = sp.block_diag([cluster.maximum(cluster.T) for cluster in clusters], format="lil")
    for node in range(0, 1560, 40):
        W[node, node + 40] = W[node + 40, node] = 1e-9
    graph = tmp_path / "graph.npz"
    write_graph(graph, W)
    code, _, errors = run("embed", graph, "-o", tmp_path / "places.csv")
    assert code == 3
    assert "warning: After 89 steps the error of the embedding" in errors
    assert (tmp_path / "places.csv").exists()


def test_datasets_are_listed(run, tmp_path):
    from smoothgraph.datasets import list_datasets

    facts = json.loads(run("datasets", "--json")[1])
    assert list(facts) == [entry.name for entry in list_datasets()]
    assert "mnist" in run("datasets")[1]
    assert "There is no data set mnits" in run("datasets", "mnits")[2]


def test_labels_that_fit_no_node(tmp_path, table, run):
    graph, few = few_labels(table, run, tmp_path, True)
    few.write_text("id,label\nunknown,y\n")
    code, _, told = run("propagate", graph, few, "-o", tmp_path / "all.csv")
    assert (code, "labels for 'unknown', and none of them is a node of the graph" in told) == (1, True)
    few.write_text("label\nx\ny\n")
    assert "2 labels for 80 nodes" in run("propagate", graph, few, "-o", tmp_path / "all.csv")[2]
    few.write_text("label,other\n" + "x,1\n" * 80)
    assert "end its name in .csv or .parquet" in run("propagate", graph, few, "-o", tmp_path / "all.txt")[2]
    assert not (tmp_path / "all.csv").exists()


def test_a_model_without_theta_is_told_of_without_it(rng):
    from smoothgraph.cli.report import learned
    from smoothgraph.io import graph_metadata

    metadata = graph_metadata(GraphLearner(4).fit(rng.normal(size=(30, 2))))
    hard = metadata | {"theta": None, "theta_bounds": None}
    assert {"θ"} == dict(learned(metadata)).keys() - dict(learned(hard)).keys()
    assert "wanted" not in dict(learned(hard))["neighbours per node"]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("smoothgraph le", "learn"),
        ("smoothgraph learn --lo", "--locality"),
        ("smoothgraph learn --model knn-s", "knn-self-tuning"),
    ],
)
def test_the_shell_completes_commands_options_and_choices(typed, completed):
    asked = {"_SMOOTHGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run([sys.executable, "-m", "smoothgraph"], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == [completed]


# --- which table a graph came from -----------------------------------------------------------------------------------------


def test_learn_names_the_file_also_where_typer_has_it_as_text():
    """typer 0.19 has files in the context as text, and gives paths to the function alone."""
    from smoothgraph.cli.learn import _options

    context = SimpleNamespace(params={"data": "a.csv", "output": None, "prior": "p.npz", "k": 3})
    assert _options(context) == {"data": Path("a.csv"), "output": None, "prior": Path("p.npz"), "k": 3}


def test_a_graph_says_which_table_rows_and_columns_it_came_from(tmp_path, table, run):
    path, _ = table
    holes, out = tmp_path / "holes.csv", tmp_path / "g.npz"
    frame = pd.read_csv(path).drop(columns=["name", "kind"])
    frame.loc[[3, 7], "b"] = np.nan
    frame.to_csv(holes, index=False, sep=";", decimal=",", na_rep="?")
    code, shown, told = run("learn", holes, "--exclude", "c", "--missing", "drop", "-k", 4, "-o", out)
    assert code == 0
    assert "78 samples × 2 features from holes.csv (delimiter ';', decimal commas); 2 rows with missing values dropped" in told
    stored = read_graph(out)
    assert stored.ids.tolist() == [i for i in range(80) if i not in (3, 7)]
    source = stored.metadata["source"]
    assert source | {"modified": ""} == {
        "file": "holes.csv", "bytes": holes.stat().st_size, "modified": "", "rows": 80, "rows_used": 78, "rows_dropped": 2,
        "n_columns": 2, "columns": ["a", "b"], "read_as": "delimiter ';', decimal commas",
    }  # fmt: skip
    assert str(tmp_path) not in json.dumps(stored.metadata)
    for text in (shown, run("info", out)[1]):
        for word in ("holes.csv", "78 of 80 (2 had missing values)", "2: a, b"):
            assert word in text
    expected = GraphLearner(4).fit(frame[["a", "b"]].dropna().to_numpy()).graph_
    assert (expected != stored.W).nnz == 0
    labels = tmp_path / "labels.csv"  # of all rows, also of those that were dropped
    pd.DataFrame({"id": range(80), "label": list("xy") * 40}).to_csv(labels, index=False)
    code, _, told = run("propagate", out, labels, "-o", tmp_path / "all.csv")
    assert code == 0
    assert "2 of 80 labels of labels.csv belong to no node of the graph, such as '3'" in " ".join(told.split())


def test_memory_and_encoding_are_options(tmp_path, table, run):
    path, _ = table
    out = tmp_path / "g.npz"
    code, _, told = run("learn", path, "--columns", "a,b", "-o", out, "--max-memory", "1kB")
    assert (code, "the limit is 0.001 MB" in told, out.exists()) == (1, True, False)
    assert run("learn", path, "--columns", "a,b", "-o", out, "--max-memory", "4GB", "-q", "-k", 3)[0] == 0
    for command in (["info", out], ["compare", out, out], ["embed", out, "-o", tmp_path / "e.csv"]):
        code, _, told = run(*command, "--max-memory", "100")
        assert (code, "the limit is" in told) == (1, True)
        assert run(*command, "--max-memory", "1GB", "-q")[0] == 0
    assert run("info", out, "--max-memory", "much")[0] == 2
    odd = tmp_path / "odd.csv"
    odd.write_bytes("größe,b\n".encode("latin-1") + b"1,2\n3,4\n5,6\n7,9\n")
    code, _, told = run("learn", odd, "-o", out)
    assert (code, "--encoding latin-1" in told) == (1, True)
    assert run("learn", odd, "-o", out, "--encoding", "latin-1", "-k", 2, "-q")[0] == 0


def test_a_map_that_became_shorter_ends_learn_with_one_line(tmp_path, rng, run, monkeypatch):
    import smoothgraph.cli.learn as learn

    path = tmp_path / "a.npy"
    np.save(path, blobs(300, 4, rng))

    def shortened(table, options):
        os.truncate(path, 200)
        return table.X

    monkeypatch.setattr(learn, "_samples", shortened)
    code, _, told = run("learn", path, "-o", tmp_path / "g.npz", "--max-memory", "20kB")
    assert code == 1
    assert "became shorter while it was read: it has 200 bytes" in told.splitlines()[-1]
    assert not (tmp_path / "g.npz").exists()
