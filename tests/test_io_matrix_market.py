"""Our reader of mtx files against scipy's on sound files, and against everything that a file can do wrong."""

import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import mmread, mmwrite

from smoothgraph.io.door import BadFileError
from smoothgraph.io.graphs import read_graph
from smoothgraph.io.matrix_market import read_matrix_market


def dense(A):
    return A.toarray() if sp.issparse(A) else np.asarray(A)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    field=st.sampled_from(["real", "integer", "pattern"]),
    symmetry=st.sampled_from(["general", "symmetric", "skew-symmetric"]),
    is_sparse=st.booleans(),
)
def test_scipy_reads_the_same(tmp_path_factory, seed, shape, field, symmetry, is_sparse):
    rng = np.random.default_rng(seed)
    A = np.round(rng.normal(size=shape) * (rng.random(shape) < 0.4), rng.integers(1, 17))
    A = np.rint(10 * A).astype(np.int64) if field == "integer" else A
    if symmetry != "general":
        A = A[: min(shape), : min(shape)]
        A = A + A.T if symmetry == "symmetric" else A - A.T
    is_sparse = is_sparse or field == "pattern"
    if field == "pattern":
        symmetry = "general" if symmetry == "skew-symmetric" else symmetry
    path = tmp_path_factory.mktemp("mtx") / "A.mtx"
    mmwrite(path, sp.coo_matrix(A) if is_sparse else A, field=field, symmetry=symmetry, comment="one\ntwo")
    found, expected = read_matrix_market(path), mmread(path)
    assert sp.issparse(found) == sp.issparse(expected)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(dense(found), dense(expected).astype(np.float64))


def test_spaces_blank_lines_ends_of_lines_and_compression(tmp_path):
    text = "%%MatrixMarket MATRIX Coordinate Real General\n% a comment\n\n 3\t3 2 \n  1 2\t 0.5 \n\n3  1 1.5e-3\n"
    expected = np.zeros((3, 3))
    expected[0, 1], expected[2, 0] = 0.5, 1.5e-3
    for name, data in {
        "a.mtx": text.encode(),
        "b.mtx": text.replace("\n", "\r\n").encode(),
        "c.mtx": text.rstrip().encode(),
        "d.mtx.gz": gzip.compress(text.encode()),
        "e.mtx.bz2": bz2.compress(text.encode()),
    }.items():
        (tmp_path / name).write_bytes(data)
        np.testing.assert_array_equal(dense(read_matrix_market(tmp_path / name)), expected)


def test_entries_at_one_place_are_added(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 2 1\n1 2 2\n2 1 3\n")
    np.testing.assert_array_equal(dense(read_matrix_market(path)), dense(mmread(path)))


HEAD = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "does not begin with"),
        ("%%MatrixMarket matrix coordinate real\n1 1 0\n", "does not begin with"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "complex general cannot be read"),
        ("%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", "hermitian cannot be read"),
        ("%%MatrixMarket matrix array pattern general\n1 1\n", "cannot be read"),
        (HEAD, "sizes should be 3 numbers"),
        (HEAD + "2 2\n", "sizes should be 3 numbers"),
        (HEAD + "-2 2 1\n", "sizes should be 3 numbers"),
        (HEAD + "9" * 30 + " 2 1\n", "sizes should be 3 numbers"),
        (HEAD + "2 2 1\n0 1 1.0\n", "row 0, and rows go from 1 to 2"),
        (HEAD + "2 2 1\n1 3 1.0\n", "column 3, and columns go from 1 to 2"),
        (HEAD + "2 2 1\n1 -3 1.0\n", "column -3"),
        (HEAD + "2 2 2\n1 2 1.0\n", "cannot hold them"),
        (HEAD + "2 2 2\n1 2 1.000000\n", "promises 2 entries, but there are 1"),
        (HEAD + "2 2 1\n1 2 1.0\n2 1 1.0\n", "promises 1 entries, but there are 2"),
        (HEAD + "2 2 0\n1 2 1.0\n", "promises 0 entries, but there are 1"),
        (HEAD + "2 2 1\n1 2 x\n", "invalid value 'x'"),
        (HEAD + "2 2 1\n1 2\n3\n", "Expected 3 columns"),
        (HEAD + "2 2 1\n1 2 1.0\0\n", "cannot be read as"),
        (HEAD + "2 2 1\n1 99999999999999999999 1\n", "cannot be read as"),
        (HEAD + "1000000000 1000000000 1\n1 1 1\n", "too many for 1 entries"),
        (HEAD + "5 5 99999999999\n1 1 1\n", "99,999,999,999 entries"),
        (HEAD.replace("general", "symmetric") + "2 3 1\n1 1 1\n", "has 2 rows and 3 columns"),
        (HEAD.replace("general", "symmetric") + "2 2 2\n1 2 1\n2 1 1\n", "on one side of the diagonal"),
        (HEAD.replace("general", "skew-symmetric") + "2 2 1\n1 1 1\n", "entries on the diagonal"),
        (HEAD.replace("coordinate", "array") + "2 2\n1\n2\n3\n", "promises 4 entries"),
        (HEAD.replace("coordinate", "array") + "100000000 100000000\n1\n", "declares .* entries, which needs"),
    ],
)
def test_a_file_that_is_wrong_says_so_in_one_line(tmp_path, text, match):
    path = tmp_path / "a.mtx"
    path.write_text(text)
    with pytest.raises(BadFileError, match=match) as caught:
        read_matrix_market(path)
    assert "\n" not in str(caught.value)


def test_what_a_compressed_file_expands_to_is_bounded(tmp_path):
    path = tmp_path / "bomb.mtx.gz"
    with gzip.open(path, "wb") as file:
        file.write(HEAD.encode() + b"2 2 1\n1 1 1")
        for _ in range(100):
            file.write(b" " * 1_000_000)
    with pytest.raises(BadFileError, match="expands to more than"):
        read_matrix_market(path, limit=1e8)


def test_graphs_of_whole_numbers(tmp_path):
    path = tmp_path / "a.mtx"
    mmwrite(path, sp.coo_matrix(np.array([[0, 3], [3, 0]])), field="integer")
    stored = read_graph(path)
    assert stored.W.dtype == np.float64
    assert stored.W.toarray().tolist() == [[0, 3], [3, 0]]
