"""h5ad files: nothing in them is lost, and no file, whatever it holds, does more harm than an error of one line.

The judge of what stays untouched is a walk over both files with h5py, and of what was added, anndata.
"""

import json
import os
import subprocess
import sys
import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from conftest import blobs
from smoothgraph import GraphLearner
from smoothgraph.__main__ import main
from smoothgraph.io import read_graph, read_table, write_graph
from smoothgraph.io.door import BadFileError
from smoothgraph.io.h5ad import read_h5ad_graph, read_h5ad_table

N = 90


@pytest.fixture
def run(capsys):
    """Run a command; its exit code and what it wrote to stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        code = ended.value.code
        return 0 if code is None else code, capsys.readouterr().err

    return run


@pytest.fixture
def cells(tmp_path, rng):
    """A file with all that an AnnData has, compressed, and with parts that AnnData does not know."""
    X = blobs(N, 6, rng).astype(np.float32)
    obs = pd.DataFrame({"kind": pd.Categorical(list("xyz") * 30), "depth": np.arange(N)}, index=[f"cell{i}" for i in range(N)])
    adata = anndata.AnnData(sp.csr_matrix(np.abs(X)), obs=obs)
    adata.layers["counts"] = sp.csc_matrix(np.round(np.abs(X)))
    adata.obsm["X_pca"], adata.varm["PCs"] = X[:, :3].astype(np.float64), np.ones((6, 3))
    adata.obsp["other"] = sp.identity(N, format="csr")
    adata.uns |= {
        "neighbors": {"params": {"method": "umap"}, "old": 1},
        "colours": np.array(["red", "blue"]),
        "umap": {"a": 0.5},
    }
    adata.raw = adata.copy()
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path, compression="gzip")
    with h5py.File(path, "r+") as file:
        file["unknown/values"] = np.arange(5, dtype=">i2")
        file["unknown"].attrs["note"] = "keep me"
        file["link"] = h5py.SoftLink("/X")
    return path


def as_adata(path):
    """What anndata reads, from a copy without the parts that it does not know and refuses."""
    copy = path.with_name("known.h5ad")
    copy.write_bytes(path.read_bytes())
    with h5py.File(copy, "r+") as file:
        del file["unknown"], file["link"]
    adata = anndata.read_h5ad(copy)
    copy.unlink()
    return adata


def walk(path, besides=()):
    """Everything in a file: values, types, filters and attributes of each part."""
    parts = {}

    def visit(name, item):
        if name.startswith(tuple(besides)):
            return
        attributes = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        if isinstance(item, h5py.Dataset):
            values = item[()]
            values = values.tobytes() if item.dtype.kind in "biuf" else np.asarray(values).tolist()
            parts[name] = item.dtype, item.shape, item.chunks, item.compression, values, attributes
        else:
            parts[name] = attributes

    with h5py.File(path) as file:
        file.visititems(visit)
        parts["/"] = {key: np.asarray(value).tolist() for key, value in file.attrs.items()}
        parts["link"] = file.get("link", getlink=True).path
    return parts


ADDED = "obsp/connectivities", "obsp/distances", "uns/neighbors"
ADDED_AS_LEARNED = "obsp/learned_connectivities", "obsp/learned_distances", "uns/learned"


@pytest.mark.parametrize("in_place", [False, True])
def test_the_graph_is_added_and_everything_else_stays(tmp_path, cells, run, in_place):
    before, out = walk(cells, ADDED), cells if in_place else tmp_path / "new.h5ad"
    bytes_before = cells.read_bytes()
    code, told = run(
        "learn", cells, "--key", "X_pca", "-k", 6, "--label-column", "kind", *(["--add"] if in_place else ["-o", out])
    )
    assert code == 0, told
    assert walk(out, ADDED) == before
    assert in_place or cells.read_bytes() == bytes_before
    adata = as_adata(out)
    learner = GraphLearner(6).fit(adata.obsm["X_pca"])
    assert abs(adata.obsp["connectivities"] - learner.graph_).max() == 0
    assert set(np.diff(adata.obsp["distances"].indptr)) == {5}
    entry = adata.uns["neighbors"]
    assert entry["params"] == {"n_neighbors": 6, "method": "smoothgraph", "metric": "euclidean", "use_rep": "X_pca"}
    assert (entry["connectivities_key"], entry["distances_key"]) == ("connectivities", "distances")
    assert "old" not in entry
    stored = read_graph(out)
    assert stored.ids.tolist() == adata.obs_names.tolist()
    assert stored.labels.tolist() == adata.obs["kind"].tolist()
    assert stored.metadata["parameters"]["n_neighbors"] == 6
    assert sorted(os.listdir(tmp_path)) == sorted({"cells.h5ad", out.name})


def test_a_second_graph_has_a_name_of_its_own(cells, run):
    before = walk(cells, ADDED_AS_LEARNED)
    assert run("learn", cells, "-k", 4, "--add", "--key-added", "learned")[0] == 0
    assert walk(cells, ADDED_AS_LEARNED) == before
    adata = as_adata(cells)
    assert adata.uns["learned"]["connectivities_key"] == "learned_connectivities"
    assert adata.uns["learned"]["params"]["use_rep"] == "X"
    assert abs(adata.obsp["learned_connectivities"] - GraphLearner(4).fit(adata.X).graph_).max() < 1e-6
    assert read_graph(cells).W.shape == (N, N)  # the only graph that there is
    assert run("learn", cells, "-k", 5, "--key", "counts", "--add")[0] == 0
    again = as_adata(cells)
    assert "use_rep" not in again.uns["neighbors"]["params"]  # scanpy has no word for a layer
    assert abs(again.obsp["learned_connectivities"] - adata.obsp["learned_connectivities"]).max() == 0


def test_an_output_never_replaces_an_input(tmp_path, cells, run):
    before = cells.read_bytes()
    (tmp_path / "same.h5ad").symlink_to(cells)
    for out in (cells, tmp_path / "same.h5ad"):
        code, told = run("learn", cells, "-k", 4, "-o", out)
        assert code == 1
        assert "is also an input" in told
        assert told.count("\n") == 1
    assert cells.read_bytes() == before
    for wrong, word in (
        (["learn", cells, "--add", "-o", tmp_path / "x.h5ad"], "was given too"),
        (["learn", tmp_path / "x.csv", "--add"], "must be an h5ad"),
        (["learn", cells, "-o", tmp_path / "x.npz", "--key-added", "learned"], "is none: leave it out"),
    ):
        code, told = run(*wrong)
        assert code == 1
        assert word in told
    code, told = run("learn", cells)
    assert code == 2
    assert "--add" in told
    assert cells.read_bytes() == before


def test_dropped_cells_leave_no_graph_of_all_cells(tmp_path, rng, run):
    X = blobs(50, 3, rng)
    X[7, 1] = np.nan
    anndata.AnnData(X).write_h5ad(tmp_path / "gaps.h5ad")
    code, told = run("learn", tmp_path / "gaps.h5ad", "-k", 4, "--missing", "drop", "-o", tmp_path / "new.h5ad")
    assert code == 1
    assert "1 cells of" in told
    assert not (tmp_path / "new.h5ad").exists()


def test_a_new_file_has_the_names_and_the_distances(tmp_path, rng, run):
    frame = pd.DataFrame(blobs(60, 3, rng), columns=list("abc")).assign(
        name=[f"s{i}" for i in range(60)], species=list("xyz") * 20
    )
    frame.to_csv(tmp_path / "flowers.csv", index=False)
    columns = "--id-column", "name", "--label-column", "species"
    assert run("learn", tmp_path / "flowers.csv", *columns, "-k", 5, "--random-state", 3, "-o", tmp_path / "g.h5ad")[0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adata = anndata.read_h5ad(tmp_path / "g.h5ad")
    assert adata.obs_names.tolist() == frame["name"].tolist()
    assert adata.obs["species"].tolist() == frame["species"].tolist()
    assert adata.uns["neighbors"]["params"]["random_state"] == 3
    D = np.sort(np.linalg.norm(frame[["a", "b", "c"]].to_numpy()[:, None] - frame[["a", "b", "c"]].to_numpy(), axis=2), axis=1)
    np.testing.assert_allclose(np.sort(adata.obsp["distances"].data.reshape(60, 4), axis=1), D[:, 1:5])
    adata.write_h5ad(tmp_path / "again.h5ad")
    for path in (tmp_path / "g.h5ad", tmp_path / "again.h5ad"):
        stored = read_graph(path)
        assert stored.ids.tolist() == frame["name"].tolist()
        assert stored.labels.tolist() == frame["species"].tolist()


def test_a_graph_alone_names_no_distances(tmp_path):
    W = sp.csr_matrix([[0, 0.5], [0.5, 0]])
    write_graph(tmp_path / "g.h5ad", W)
    assert "distances_key" not in anndata.read_h5ad(tmp_path / "g.h5ad").uns["neighbors"]
    assert read_graph(tmp_path / "g.h5ad").ids is None


def test_columns_of_obs_as_anndata_writes_them(tmp_path):
    obs = pd.DataFrame(
        {
            "category": pd.Categorical(["b", None, "a"]),
            "number": pd.Categorical([3, 1, 3]),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "text": ["α", "", "c"],
        },
        index=["x", "y", "z"],
    )
    anndata.AnnData(np.arange(6.0).reshape(3, 2), obs=obs).write_h5ad(tmp_path / "a.h5ad")
    expected = {
        "category": ["b", "", "a"],
        "number": [3, 1, 3],
        "nullable": ["1", "", "3"],
        "flag": [True, False, True],
        "text": ["α", "", "c"],
    }
    for name, values in expected.items():
        X, ids, labels = read_h5ad_table(tmp_path / "a.h5ad", None, None, name)
        assert labels.tolist() == values
        assert ids.tolist() == ["x", "y", "z"]
        assert X.tolist() == [[0, 1], [2, 3], [4, 5]]


def refused(path, **how):
    """The error of one line in which reading a file ends, whether samples or a graph are read."""
    with pytest.raises(BadFileError) as error:
        read_h5ad_table(path, **how)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def replaced(path, name, make):
    """The file with another thing in the place of one of its parts."""
    with h5py.File(path, "r+") as file:
        del file[name]
        make(file)
    return path


def test_no_link_leads_out_of_a_file(tmp_path, cells):
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["X"] = np.zeros((N, 2))
        file["obs/_index"] = [f"s{i}" for i in range(N)]
    copies = [tmp_path / f"{i}.h5ad" for i in range(5)]
    for copy in copies:
        copy.write_bytes(cells.read_bytes())

    def external(file):
        file["X"] = h5py.ExternalLink(str(secret), "/X")

    def external_obs(file):
        file["obs"] = h5py.ExternalLink(str(secret), "/obs")

    def soft(file):
        file["X"] = h5py.SoftLink("/obsm/X_pca")

    def virtual(file):
        layout = h5py.VirtualLayout((N, 2), "f8")
        layout[:] = h5py.VirtualSource(str(secret), "X", (N, 2))
        file.create_virtual_dataset("X", layout)

    def outside(file):
        file.create_dataset("X", (N, 2), "u1", external=[("/etc/passwd", 0, 2 * N)])

    for copy, name, make in zip(
        copies, ["X", "obs", "X", "X", "X"], [external, external_obs, soft, virtual, outside], strict=True
    ):
        assert "not followed" in refused(replaced(copy, name, make))


def test_a_graph_is_not_written_through_a_link(tmp_path, cells, run):
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file.create_group("obsp")
    replaced(cells, "obsp", lambda file: file.__setitem__("obsp", h5py.ExternalLink(str(other), "/obsp")))
    before = cells.read_bytes(), other.read_bytes()
    code, told = run("learn", cells, "-k", 4, "--add")
    assert code == 1
    assert "not followed" in told
    assert (cells.read_bytes(), other.read_bytes()) == before


def test_sizes_are_refused_before_they_are_allocated(cells, tmp_path):
    def huge(file):
        file.create_dataset("X", (10**9, 10**4), "f8", chunks=(1, 1000))

    assert "declares /X of shape 1000000000 × 10000" in refused(replaced(cells, "X", huge))
    assert cells.stat().st_size < 1e6
    with h5py.File(cells, "r+") as file:
        file["layers/counts"].attrs["shape"] = [10**15, 6]
    assert "declares /layers/counts" in refused(cells, key="counts")
    assert "the limit is 0.001 MB" in refused(cells, key="X_pca", limit=1000)


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indices", np.full(5, 10**9)),
        ("indices", np.full(5, -1)),
        ("indptr", np.arange(N + 1)[::-1]),
        ("indptr", np.arange(3)),
        ("data", np.ones(2)),
        ("data", np.array([b"pickle"] * 5)),
        ("indptr", np.array([1.5] * (N + 1))),
    ],
)
def test_sparse_arrays_that_lie(cells, part, values):
    def lie(file):
        group = file.create_group("obsp/connectivities")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [N, N]})
        arrays = {"data": np.ones(5), "indices": np.arange(5), "indptr": np.minimum(np.arange(N + 1), 5)}
        for name, array in (arrays | {part: values}).items():
            group[name] = array

    replaced(cells, "obsp", lie)
    with pytest.raises(BadFileError):
        read_h5ad_graph(cells)


def test_damaged_files_end_in_data_or_in_one_line(cells, rng):
    """The process that reads may crash: this one does not."""
    whole = bytearray(cells.read_bytes())
    outcomes = set()
    for case in range(12):
        damaged = bytearray(whole)
        if case % 3 == 0:
            del damaged[rng.integers(len(damaged)) :]
        for at in rng.integers(0, min(len(damaged), 20_000), size=40 if case % 3 else 0):
            damaged[at] = rng.integers(256)
        cells.write_bytes(damaged)
        try:
            read_table(cells)
            outcomes.add("read")
        except ValueError as error:
            outcomes.add("refused in several lines" if "\n" in str(error) else "refused")
    assert "refused" in outcomes
    assert outcomes <= {"read", "refused"}


FAKE = """
import os, signal
class File:
    def __init__(self, *arguments):
        os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_crash_of_the_library_is_one_line(tmp_path, cells, run, monkeypatch):
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "h5py.py").write_text(FAKE)
    before = cells.read_bytes()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"), prepend=os.pathsep)
    assert "was ended by SIGSEGV" in refused(cells)
    with pytest.raises(OSError, match="was ended by SIGSEGV"):
        write_graph(tmp_path / "g.h5ad", sp.csr_matrix([[0, 0.5], [0.5, 0]]))
    code, told = run("learn", cells, "-o", tmp_path / "g.h5ad")
    assert code == 1
    assert told.count("\n") == 1
    assert cells.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["cells.h5ad", "fake"]


def test_a_module_in_the_current_folder_is_not_run(tmp_path, cells, monkeypatch):
    (tmp_path / "h5py.py").write_text(FAKE)
    monkeypatch.chdir(tmp_path)
    assert read_h5ad_table(cells)[0].shape == (N, 6)


@pytest.mark.parametrize("kind", ["csv", "h5ad"])
def test_a_full_disk_loses_nothing(tmp_path, rng, cells, kind):
    """A limit on the size of files stands for the disk."""
    data = cells
    if kind == "csv":
        data = tmp_path / "x.csv"
        pd.DataFrame(blobs(N, 3, rng), columns=list("abc")).to_csv(data, index=False)
    before, room = data.read_bytes(), cells.stat().st_size + 2000 if kind == "h5ad" else 4000
    out = ["--add"] if kind == "h5ad" else ["-o", str(tmp_path / "g.h5ad")]
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); "
    code += "from smoothgraph.__main__ import main; main(sys.argv[2:])"
    command = [sys.executable, "-c", code, str(room), "learn", str(data), "-k", "5", *out, "-q"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1, ended
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "nothing was changed: File too large." in ended.stderr
    assert data.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == sorted({"cells.h5ad", data.name})


def test_reading_needs_neither_anndata_nor_hdf5_in_this_process(cells):
    code = "import sys; from smoothgraph.io import read_table; read_table(sys.argv[1]); "
    code += "print({'h5py', 'anndata'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code, str(cells)], capture_output=True, text=True)
    assert ended.stdout.strip() == "set()", ended.stderr


def test_metadata_that_is_no_json(tmp_path):
    write_graph(tmp_path / "g.h5ad", sp.csr_matrix([[0, 0.5], [0.5, 0]]), metadata={"theta": 1.0})
    assert read_graph(tmp_path / "g.h5ad").metadata == {"theta": 1.0}
    with h5py.File(tmp_path / "g.h5ad", "r+") as file:
        text = file["uns/neighbors/smoothgraph"][()]
        assert json.loads(text)["metadata"] == {"theta": 1.0}
        del file["uns/neighbors/smoothgraph"]
        file["uns/neighbors/smoothgraph"] = "[" * 100_000
    with pytest.raises(BadFileError):
        read_graph(tmp_path / "g.h5ad")
