"""What a fit will take: compared with the peak of processes that fit, and refused where it cannot be had."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from smoothgraph import GraphLearner, estimate
from smoothgraph.io.shapes import table_shape

PEAK = """
import json, sys
import numpy as np
from smoothgraph import GraphLearner
X = np.load(sys.argv[1], mmap_mode="r")
learner = GraphLearner(**json.loads(sys.argv[2]), random_state=0).fit(X)
with open("/proc/self/status") as file:
    print(next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")), learner.neighbors_)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
@pytest.mark.parametrize(
    ("shape", "dtype", "parameters"),
    [
        ((2_000, 20), "float64", {}),
        ((10_000, 8), "float32", {"n_neighbors": 10, "model": "l2"}),
        ((40_000, 30), "float64", {"n_neighbors": 5, "neighbors": "approximate", "locality": 0, "connect": False}),
    ],
)
def test_the_peak_of_a_process_is_within_a_quarter_of_the_estimate(tmp_path, rng, shape, dtype, parameters):
    centres = rng.normal(size=(20, shape[1]))
    np.save(tmp_path / "X.npy", (centres[rng.integers(20, size=shape[0])] + rng.normal(size=shape)).astype(dtype))
    command = [sys.executable, "-c", PEAK, str(tmp_path / "X.npy"), json.dumps(parameters)]
    for _ in range(2):  # the first process may have to compile, which takes memory of its own
        peak, search = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    said = GraphLearner(**parameters).estimate(*shape, dtype)
    assert said.search == search
    assert 0.75 <= said.memory / float(peak) <= 1.25, (said.memory, float(peak))


@pytest.mark.parametrize("model", ["log", "l2", "hard", "soft", "knn", "knn-gaussian"])
@pytest.mark.parametrize("neighbors", ["auto", "exact", "approximate"])
def test_more_of_anything_takes_more(model, neighbors):
    learner = GraphLearner(10, model=model, neighbors=neighbors)
    base = learner.estimate(50_000, 50, np.float32)
    assert learner.estimate(100_000, 50, np.float32).memory > base.memory
    assert learner.estimate(50_000, 500, np.float32).memory > base.memory
    assert learner.estimate(50_000, 50, np.float64).memory > base.memory
    assert GraphLearner(20, model=model, neighbors=neighbors).estimate(50_000, 50, np.float32).memory > base.memory
    assert base.seconds > 0
    assert base.search in str(base)


@pytest.mark.parametrize("n", [100, 3_000, 80_000, 200_000])
def test_the_search_it_names_is_the_one_that_the_search_takes(n, monkeypatch):
    """The rule is asked where it is, without a search."""
    from smoothgraph import neighbors

    distances = type("Sized", (), {"n": n, "n_features": 30, "has_centres": True})()
    name, _ = neighbors._way_to_search(distances, "auto", None)
    assert GraphLearner(5).estimate(n, 30).search == name


def test_bad_parameters_are_refused_as_by_fit():
    with pytest.raises(ValueError, match="n_neighbors=15 must be less"):
        GraphLearner(15).estimate(10, 3)
    with pytest.raises(ValueError, match="model='logg'"):
        GraphLearner(model="logg").estimate(100, 3)


def test_what_cannot_fit_is_refused_before_the_work_begins(rng, monkeypatch):
    X = rng.normal(size=(500, 20))
    needed = GraphLearner(5).estimate(500, 20).memory
    monkeypatch.setattr(estimate, "available_memory", lambda: needed / 1.3)
    monkeypatch.setattr(GraphLearner, "_distinct", lambda *arguments: pytest.fail("the work began"))
    with pytest.raises(ValueError, match=r"A fit of 500 samples × 20 features needs about .*fewer neighbours.*float32"):
        GraphLearner(5).fit(X)


def test_what_may_fit_is_tried(rng, monkeypatch):
    needed = GraphLearner(5).estimate(500, 20).memory
    monkeypatch.setattr(estimate, "available_memory", lambda: needed / 1.2)
    assert GraphLearner(5).fit(rng.normal(size=(500, 20))).n_incomplete_ == 0


def test_the_advice_names_what_takes_the_memory(monkeypatch):
    monkeypatch.setattr(estimate, "available_memory", lambda: 4e9)
    large = np.lib.stride_tricks.as_strided(np.zeros(1), (200_000, 20_000), (0, 0))  # takes no memory
    with pytest.raises(ValueError, match="Most of it is X: give it as float32, as a memory map"):
        GraphLearner(5).fit(large)
    with pytest.raises(ValueError, match="neighbors='auto'"):
        GraphLearner(5, neighbors="all").fit(np.lib.stride_tricks.as_strided(np.zeros(1), (200_000, 2), (0, 0)))


# --- the size of a table in a file -----------------------------------------------------------------------------------------


@pytest.fixture
def samples(rng):
    return rng.normal(size=(400, 3)).astype(np.float32)


def written(path, X):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["name"] = [f"row {i}" for i in range(len(X))]
    kind = path.suffixes[0]
    if kind == ".npy":
        np.save(path, X)
    elif kind == ".npz":
        np.savez(path, other=X[:3], X=X)
    elif kind in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    elif kind == ".parquet":
        frame.to_parquet(path)
    elif kind == ".arrow":
        frame.to_feather(path, compression="uncompressed")
    elif kind == ".h5ad":
        anndata = pytest.importorskip("anndata")
        anndata.AnnData(X).write_h5ad(path)
    return kind in (".csv", ".tsv", ".parquet", ".arrow")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.tsv", "x.csv.gz", "x.parquet", "x.arrow", "x.h5ad"])
def test_the_shape_of_a_table_is_known_without_reading_it(tmp_path, samples, name):
    named = written(tmp_path / name, samples)
    shape = table_shape(tmp_path / name, id_column="name" if named else None)
    assert (shape.n, shape.d, shape.is_exact) == (400, 3, True)
    assert shape.nnz is None
    assert shape.in_place == (name == "x.npy")


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_the_rows_of_a_long_text_are_estimated(tmp_path, rng, name):
    written(tmp_path / name, rng.normal(size=(60_000, 3)))
    shape = table_shape(tmp_path / name)
    assert not shape.is_exact
    assert shape.n == pytest.approx(60_000, rel=0.05)
    assert shape.d == 4


def test_the_shape_of_sparse_tables(tmp_path, rng):
    from scipy.io import mmwrite
    from sklearn.datasets import dump_svmlight_file

    A = sp.csr_matrix(sp.random(50, 7, 0.6, random_state=0))
    sp.save_npz(tmp_path / "x.npz", A)
    mmwrite(tmp_path / "x.mtx", A)
    dump_svmlight_file(A, np.zeros(50), str(tmp_path / "x.libsvm"), zero_based=False)
    for name in ("x.npz", "x.mtx", "x.libsvm"):
        assert table_shape(tmp_path / name)[:2] == (50, 7), name
        assert table_shape(tmp_path / name).nnz == A.nnz, name


def test_a_file_that_is_none_is_one_clear_line(tmp_path):
    for name in ("x.npy", "x.npz", "x.parquet", "x.mtx", "x.csv"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ValueError, match=r"x\.\w+ cannot be read as") as caught:
            table_shape(tmp_path / name)
        assert "\n" not in str(caught.value)
