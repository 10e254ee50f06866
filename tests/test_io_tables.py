"""Samples from files, each written by the library that is commonly used for its format."""

import gzip
import struct

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from smoothgraph import GraphLearner
from smoothgraph.io import from_frame, read_table, write_table

X = np.random.default_rng(0).integers(-40, 40, size=(30, 4)) / 8.0
IDS = [f"row-{i}" for i in range(30)]
KINDS = np.array(["x", "y", "z"])[np.arange(30) % 3]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(name=IDS, kind=KINDS)


def write_frame(frame, path):
    kind = path.name.split(".", 1)[1]
    if kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "feather":
        frame.to_feather(path)
    else:
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "feather", "arrow"])
def test_tables_with_names(tmp_path, kind):
    path = write_frame(FRAME, tmp_path / f"samples.{kind}")
    table = read_table(path, id_column="name", label_column="kind")
    np.testing.assert_array_equal(table.X, X)
    assert table.ids.tolist() == IDS
    assert table.labels.tolist() == KINDS.tolist()
    assert table.columns == list("abcd")
    chosen = read_table(path, columns=["c", "a"])
    assert chosen.columns == ["c", "a"]
    np.testing.assert_array_equal(chosen.X, X[:, [2, 0]])
    assert chosen.ids is None
    with pytest.raises(ValueError, match=r"'name' holds .*'row-0'.*--id-column"):
        read_table(path)
    with pytest.raises(ValueError, match="no column 'nme': the columns are 'a', 'b'"):
        read_table(path, id_column="nme")


def write_array(X, path):
    kind = path.name.split(".", 1)[1]
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, X=X, other=X[:3])
    elif kind in ("mtx", "mtx.gz"):
        scipy.io.mmwrite(path, sp.coo_matrix(X))
    elif kind == "libsvm":
        dump_svmlight_file(X, np.arange(len(X)) % 3, str(path), zero_based=False)
    elif kind == "sparse.npz":
        sp.save_npz(path, sp.csr_matrix(X))
    elif kind == "h5ad":
        anndata.AnnData(X, obs=pd.DataFrame(index=IDS)).write_h5ad(path)
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "mtx", "libsvm", "sparse.npz", "h5ad"])
def test_arrays(tmp_path, kind):
    table = read_table(write_array(X, tmp_path / f"samples.{kind}"))
    read = table.X.toarray() if sp.issparse(table.X) else table.X
    np.testing.assert_array_equal(read, X)
    assert sp.issparse(table.X) == (kind in ("mtx", "libsvm", "sparse.npz"))
    if kind == "libsvm":
        assert table.labels.tolist() == (np.arange(30) % 3).tolist()
    if kind == "h5ad":
        assert table.ids.tolist() == IDS


@pytest.mark.parametrize("name", ["t-images-idx3-ubyte", "t-images-idx3-ubyte.gz", "images.idx"])
def test_idx_images_are_rows(tmp_path, name):
    images = np.arange(5 * 3 * 2, dtype=np.uint8).reshape(5, 3, 2)
    data = struct.pack(">HBBiii", 0, 8, 3, 5, 3, 2) + images.tobytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    np.testing.assert_array_equal(read_table(path).X, images.reshape(5, 6))
    path.write_bytes(gzip.compress(data[:-1]) if name.endswith("gz") else data[:-1])
    with pytest.raises(ValueError, match="cut short"):
        read_table(path)


def test_layers_obsm_and_obs_of_an_h5ad(tmp_path):
    adata = anndata.AnnData(X, obs=pd.DataFrame({"kind": KINDS, "name": IDS}, index=IDS))
    adata.layers["counts"], adata.obsm["X_pca"] = sp.csr_matrix(2.0 * X), X[:, :2]
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    np.testing.assert_array_equal(read_table(path, key="counts").X.toarray(), 2.0 * X)
    table = read_table(path, key="X_pca", label_column="kind", id_column="name")
    np.testing.assert_array_equal(table.X, X[:, :2])
    assert table.labels.tolist() == KINDS.tolist()
    with pytest.raises(ValueError, match=r"no layer and no obsm 'X_umap': it has X, 'counts', 'X_pca'"):
        read_table(path, key="X_umap")
    with pytest.raises(ValueError, match="no column 'kin' in obs"):
        read_table(path, label_column="kin")


def test_a_large_npy_is_not_read_into_memory(tmp_path):
    path = write_array(X, tmp_path / "samples.npy")
    mapped = read_table(path, max_memory=3 * X.nbytes).X
    assert isinstance(mapped, np.memmap)
    assert not isinstance(read_table(path).X, np.memmap)
    np.testing.assert_array_equal(mapped, X)


def test_arrays_of_an_npz_are_chosen_by_name(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, images=X.reshape(30, 2, 2), y=KINDS)
    table = read_table(path, label_column="y")
    np.testing.assert_array_equal(table.X, X)
    assert table.labels.tolist() == KINDS.tolist()
    with pytest.raises(ValueError, match="no array 'X': it has 'images', 'y'"):
        read_table(path)


def test_a_csv_without_a_header_has_numbered_columns(tmp_path):
    path = tmp_path / "bare.csv"
    np.savetxt(path, X, delimiter=",")
    np.testing.assert_array_equal(read_table(path).X, X)
    np.testing.assert_array_equal(read_table(path, columns=["1"]).X, X[:, 1:2])


def test_whole_numbers_at_the_beginning_do_not_make_a_column_whole(tmp_path):
    path = tmp_path / "long.csv"
    lines = 20_000  # of a thousand letters: more than one block of the reader
    path.write_text("a,b\n" + f"1,0.{'0' * 1000}\n" * lines + "0.5,\n2,3\n")
    with pytest.raises(ValueError, match=f"first is in row {lines}, column 'b'"):
        read_table(path)
    assert read_table(path, columns=["a"]).X[-2:].ravel().tolist() == [0.5, 2.0]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "mtx", "h5ad"])
def test_missing_values_are_an_error_or_drop_their_rows(tmp_path, kind):
    holes = X.copy()
    holes[3, 2] = holes[7, 1] = np.nan
    path = tmp_path / f"holes.{kind}"
    named = kind in ("csv", "parquet")
    if named:
        write_frame(pd.DataFrame(holes, columns=list("abcd")).assign(name=IDS), path)
    else:
        write_array(holes, path)
    id_column = "name" if named else None
    column = "'c'" if named else "2"
    with pytest.raises(ValueError, match=rf"2 of 30 rows have missing values.*row 3.*column {column}.*missing='drop'"):
        read_table(path, id_column=id_column)
    table = read_table(path, id_column=id_column, missing="drop")
    kept = np.delete(np.arange(30), [3, 7])
    np.testing.assert_array_equal(table.X.toarray() if sp.issparse(table.X) else table.X, X[kept])
    assert table.n_dropped == 2
    assert table.ids.tolist() == [IDS[i] if named or kind == "h5ad" else i for i in kept]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "a,b\n1,2\n3\n", "line 3: there are 1 fields, and the first line has 2"),
        ("a.csv", "a,a\n1,2\n", "several columns of the same name: 'a'"),
        ("a.xlsx", "x", "not of a kind that can be read: use .arrow, .csv"),
        ("a.csv", "a,b\n1,\n,2\n", "rows have missing values"),
    ],
)
def test_files_that_make_no_sense(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(path)


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing.csv does not exist"):
        read_table(tmp_path / "nothing.csv")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ValueError, match="two axes"):
        read_table(tmp_path / "flat.npy")
    np.save(tmp_path / "samples.npy", X)
    with pytest.raises(ValueError, match="no label_column='y' in it"):
        read_table(tmp_path / "samples.npy", label_column="y")
    with pytest.raises(ValueError, match="does not name its columns"):
        read_table(tmp_path / "samples.npy", columns=["a"])
    with pytest.raises(ValueError, match="'x' names 10 rows"):
        from_frame(FRAME, columns=["a"], id_column="kind")
    with pytest.raises(ValueError, match="missing='fill' is not known"):
        read_table(tmp_path / "samples.npy", missing="fill")


def test_small_types_stay_small():
    assert from_frame(pd.DataFrame({"a": np.zeros(3, np.float32), "b": np.zeros(3, np.uint8)})).X.dtype == np.float32
    assert from_frame(pd.DataFrame({"a": np.zeros(3, np.float32), "b": np.zeros(3, np.int64)})).X.dtype == np.float64


def test_the_learner_keeps_the_index_of_a_frame():
    frame = pd.DataFrame(X, columns=list("abcd"), index=IDS)
    learner = GraphLearner(3).fit(frame)
    assert learner.ids_.tolist() == IDS
    assert learner.feature_names_in_.tolist() == list("abcd")
    assert (learner.graph_ != GraphLearner(3).fit(X).graph_).nnz == 0
    assert GraphLearner(3).fit(frame.reset_index(drop=True)).ids_ is None


class OnlyDLPack:
    """An array of a library that NumPy does not know."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_the_learner_takes_arrays_that_offer_only_dlpack():
    learner = GraphLearner(3).fit(OnlyDLPack(X))
    assert (learner.graph_ != GraphLearner(3).fit(X).graph_).nnz == 0
    assert (learner.transform(OnlyDLPack(X[:2])) != learner.transform(X[:2])).nnz == 0


@pytest.mark.parametrize("columns", [{"a": np.arange(9) + 1j}, {"a": [1, 2], "b": [1]}])
def test_columns_that_are_no_table_are_refused_in_one_line(tmp_path, columns):
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match="no table of numbers and texts") as error:
            write_table(tmp_path / name, columns)
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_entries_of_one_place_in_a_sparse_table_add_up(tmp_path):
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    sp.save_npz(tmp_path / "t.npz", X)
    read = read_table(tmp_path / "t.npz").X
    assert read.nnz == 2
    assert read.toarray().tolist() == [[0.0, 3.0, 0.0], [5.0, 0.0, 0.0]]
