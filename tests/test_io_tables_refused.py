"""Tables that lie, are damaged or ugly: each is read right, or refused in one line that helps, before it costs anything."""

import bz2
import gzip
import io
import os
import resource
import struct
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import scipy.sparse as sp

import mutated
import mutated_tables
from smoothgraph.io import from_frame, read_labels, read_table, text
from smoothgraph.io.npy import check_unchanged

X = np.random.default_rng(0).integers(-40, 40, size=(12, 3)) / 8.0


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def npy(dtype="<f8", shape=(2, 3), data=b"\0" * 48, fortran=False, version=1):
    """An npy file whose header says what it is told to."""
    header = f"{{'descr': {dtype!r}, 'fortran_order': {fortran}, 'shape': {shape}}}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header + data


# --- text ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "read_as"),
    [
        ("a,b\n1.5,2\n-3,4\n", ""),
        ("a;b\n1,5;2\n-3;4\n", "delimiter ';', decimal commas"),
        ("a;b\n1.5;2\n-3;4\n", "delimiter ';'"),
        ("a\tb\n1.5\t2\n-3\t4\n", "delimiter '\\t'"),
        ("a\tb\n1,50\t2\n-3\t4\n", "delimiter '\\t', decimal commas"),
        ("a|b\n1.5|2\n-3|4\n", "delimiter '|'"),
        ("a b\n1.5 2\n-3 4\n", "delimiter ' '"),
        ('"a"; "b"\n1,5; 2\n-3; 4', "delimiter ';', decimal commas"),
        ("\n\na,b\r\n1.5,2\r\n\r\n-3,4\r\n", ""),
        ("a,b\r1.5,2\r-3,4\r", ""),
        (b"\xef\xbb\xbfa,b\n1.5,2\n-3,4\n", ""),
        ("a,b\n1.5,2\n-3,4\n".encode("utf-16"), "encoding utf-16"),
    ],
)
def test_how_a_text_is_written_is_found_out(tmp_path, data, read_as):
    table = read_table(written(tmp_path / "a.csv", data))
    assert table.X.tolist() == [[1.5, 2.0], [-3.0, 4.0]]
    assert (table.columns, table.read_as) == (["a", "b"], read_as)


def test_text_in_a_column_does_not_mislead_the_search_for_the_delimiter(tmp_path):
    path = written(tmp_path / "a.csv", 'name;x\n"a,b";1\n"c,d";2\n')
    assert read_table(path, id_column="name").ids.tolist() == ["a,b", "c,d"]
    path = written(tmp_path / "a.csv", 'x,name\n1,"a;b|c"\n2,"d;e|f"\n')
    assert read_table(path, id_column="name").X.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a,b\n1,2\n2,oops\n3,4\n", r"'b' holds 'oops' in line 3 of a.csv"),
        ("a,b\n" + "1,2\n" * 30 + '1,"x\ny"\n', r"'b' holds 'x\\ny' in line 32.*quote not closed"),
        ("a,b\n1,2\n3\n", r"line 3: there are 1 fields, and the first line has 2"),
        ("a,b\n1,2,\n", r"line 2: there are 3 fields"),
        ("a,b\n1,2020-01-02\n", r"'2020-01-02' in line 2.*days since the first"),
        ('a,b\n1,"1,5"\n', r"'1,5' in line 2.*Decimal points are taken to be '.'"),
        ("a,b\n1,$5\n", r"'\$5' in line 2.*without units"),
        ("a,b\n1,\x1b[2J\n", r"'\\x1b\[2J' in line 2"),
        ("a,b\n", "has a header, but no rows"),
        ("a,b", "has a header, but no rows"),
        ("\n\n", "is empty"),
        (b"\xff\xfe", "is empty"),
        ("a,b\n1,2\0\n", "no text: it has a byte 0 at 7"),
        (b"n\xe4m,b\nx,2\n", r"not UTF-8: line 1 has the byte 0xe4.*--encoding latin-1.*iconv"),
        ("a,b,a\n1,2,3\n", "several columns of the same name: 'a'"),
        ('a,b\n1,"x\n2,3\n', r"line 2"),
        ("a;b\n1,5;2.5\n", "'1,5' in line 2.*same way"),
        ("a,b,c\nx,1,y\n", "'a' holds 'x'.*Other columns without numbers: 'c'"),
        ("a,b,c\n1,2,\n3,4,\n", r"Most are missing in 'c' \(2 of 2\).*--exclude"),
    ],
)
def test_what_is_wrong_with_a_text_is_said_with_its_line_and_value(tmp_path, data, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_table(written(tmp_path / "a.csv", data))
    assert str(caught.value).isprintable()


def test_the_line_of_a_bad_value_far_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 1 << 12)  # the types of columns are guessed from the first such block
    path = written(tmp_path / "a.csv", "a,b\n" + "1,2\n" * 5000 + "1,oops\n")
    with pytest.raises(ValueError, match="'oops' in line 5002"):
        read_table(path)


def test_a_quote_that_is_never_closed_swallows_no_rows(tmp_path):
    path = written(tmp_path / "a.csv", 'a,name\n1,x\n2,"y\n3,z\n4,w\n')
    for options in ({"id_column": "name"}, {"columns": ["a"]}, {"exclude": ["name"]}):
        with pytest.raises(ValueError, match="line 3: a quote is not closed"):
            read_table(path, **options)
    inches = written(tmp_path / "b.csv", 'a,name\n1,5"\n2,6"\n3,7"\n')
    assert read_table(inches, id_column="name").ids.tolist() == ['5"', '6"', '7"']


def test_latin_1_is_read_if_it_is_named_and_where_it_does_not_matter(tmp_path):
    far = b"".join(b"x%d,2\n" % i for i in range(60_000))
    path = written(tmp_path / "a.csv", b"name,b\n" + far + b"\xe9,3\n")
    with pytest.raises(ValueError, match="line 60002 has the byte 0xe9"):
        read_table(path, id_column="name")
    assert read_table(path, id_column="name", encoding="latin-1").ids[-1] == "é"
    assert read_table(path, columns=["b"]).X[-1] == 3.0
    with pytest.raises(ValueError, match="encoding='klingon' is not known"):
        read_table(path, encoding="klingon")


@pytest.mark.parametrize("mark", ["", "NA", " NA", "?", ".", "-", "None", "null", "<NA>", "n/a", "nil", "NaN"])
def test_common_marks_of_missing_values(tmp_path, mark):
    path = written(tmp_path / "a.csv", f"a,b\n1,2\n3,{mark}\n5,6\n")
    with pytest.raises(ValueError, match=r"1 of 3 rows have missing values; the first is in row 1, column 'b'"):
        read_table(path)
    table = read_table(path, missing="drop")
    assert (table.X.tolist(), table.n_dropped, table.ids.tolist()) == ([[1.0, 2.0], [5.0, 6.0]], 1, [0, 2])


def test_columns_can_be_left_out(tmp_path):
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [3.0, 4.0]})
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
        assert read_table(path, exclude=["b"]).columns == ["a", "c"]
        assert read_table(path, exclude=["c"], label_column="b").columns == ["a"]
        with pytest.raises(ValueError, match="no column 'd'"):
            read_table(path, exclude=["d"])
        with pytest.raises(ValueError, match="'a' is both asked for and left out"):
            read_table(path, columns=["a"], exclude=["a"])
        with pytest.raises(ValueError, match="No column is left"):
            read_table(path, exclude=["a", "b", "c"])
    assert from_frame(frame, exclude=["b"]).columns == ["a", "c"]


def test_a_first_column_without_a_name_gives_the_ids(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(12)])
    frame.to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv")
    np.testing.assert_array_equal(table.X, X)
    assert table.ids.tolist() == list(frame.index)
    frame.reset_index(drop=True).to_csv(tmp_path / "a.csv")  # 0, 1, 2, … is no name, and no feature either
    table = read_table(tmp_path / "a.csv")
    np.testing.assert_array_equal(table.X, X)
    assert table.ids is None
    assert read_table(tmp_path / "a.csv", label_column="a").columns == ["b", "c"]


def test_ids_and_labels_are_as_they_are_written(tmp_path):
    path = written(tmp_path / "a.csv", "id,y,n,a\n007,True,1,1\n008,1.0,2,2\n")
    assert read_table(path, id_column="id", label_column="y", columns=["a"]).ids.tolist() == ["007", "008"]
    assert read_table(path, id_column="id", label_column="y", columns=["a"]).labels.tolist() == ["True", "1.0"]
    assert read_table(path, id_column="n", columns=["a"]).ids.tolist() == [1, 2]


def test_many_columns_cost_little(tmp_path):
    """Fifty thousand of one name were compared with each other; a million took 13 GB."""
    same = written(tmp_path / "a.csv", ",".join(["a"] * 50_000) + "\n" + ",".join(["1"] * 50_000) + "\n")
    with pytest.raises(ValueError, match="several columns of the same name: 'a'"):
        read_table(same)
    many = written(tmp_path / "b.csv", ",".join(f"c{i}" for i in range(1_000_000)) + "\n" + "1," * 999_999 + "1\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"has 1000000 columns.*Transpose it"):
        read_table(many)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


# --- what expands ----------------------------------------------------------------------------------------------------------


def test_small_files_that_expand_are_refused_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(text, "MAX_LINE_BYTES", 1 << 20)
    zeros, limit = io.BytesIO(), 1e6
    np.savez_compressed(zeros, X=np.zeros((500_000, 2)))
    for name, data, message in (
        ("a.csv.gz", gzip.compress(b"a,b\n" + b"0,0\n" * 300_000), r"a table, which needs .* the limit is 1 MB"),
        ("b.csv.bz2", bz2.compress(b"a" * 3_000_000), "no end of a line in its first 1 MB"),
        ("a.libsvm.gz", gzip.compress(b"1 1:1\n" * 100_000), "expands to more than 0.125 MB"),
        ("a.npz", zeros.getvalue(), r"an array 'X' of shape \(500000, 2\)"),
        (
            "a.idx.gz",
            gzip.compress(struct.pack(">HBBii", 0, 8, 2, 2000, 2000) + bytes(4_000_000)),
            "declares an array of shape",
        ),
    ):
        assert len(data) < 20_000
        with pytest.raises(ValueError, match=message) as refused:
            read_table(written(tmp_path / name, data), max_memory=limit)
        assert str(refused.value).count(name) == 1  # it is said once, not within another sentence about the file
    parquet.write_table(pa.table({"a": np.zeros(500_000)}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="declares 500000 rows"):
        read_table(tmp_path / "a.parquet", max_memory=limit)


def test_one_long_id_does_not_give_all_others_its_room(tmp_path):
    path = written(tmp_path / "a.csv", "id,a\n" + "".join(f"{i}x,1\n" for i in range(2000)) + "y" * 1_000_000 + ",1\n")
    with pytest.raises(ValueError, match="longest of the 2001 ids has 1000000 characters"):
        read_table(path, id_column="id", max_memory=1e9)


# --- arrays ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy("|O"), "Python objects.*a pickle can run any code"),
        (npy([("a", "<f8"), ("b", "<f8")], (3,)), "records of several fields"),
        (npy("<c16", (1, 3)), "complex numbers"),
        (npy("<M8[s]"), "dates, but features are numbers"),
        (npy("<m8[s]"), "spans of time"),
        (npy("<U2"), "text, but features are numbers"),
        (npy(shape=(10**12, 10**6)), "cut short, or too long"),
        (npy(shape=(2**62, 8)), "cut short, or too long"),
        (npy(shape=(-2, -3)), "damaged: its shape is"),
        (npy(shape=(2, 2)), "cut short, or too long"),
        (npy(shape=(0, 6), data=b""), "There are no samples"),
        (npy(shape=(6,)), "two axes"),
        (npy()[:-1], "cut short, or too long"),
        (npy(version=9), "cannot be read as an npy file"),
        (b"\x93NUMPY\1\0\xff\xff", "cannot be read as an npy file"),
        (b"", "cannot be read as an npy file"),
        (b"\x80\x04cos\nsystem\n", "cannot be read as an npy file"),
    ],
)
def test_npy_files_that_lie_or_hold_no_numbers(tmp_path, data, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_table(written(tmp_path / "a.npy", data))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", ">i2", "|u1", "|b1"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("limit", [None, 50.0])
def test_npy_files_of_every_type_and_order(tmp_path, dtype, order, limit):
    values = np.asarray(X > 0 if dtype == "|b1" else np.abs(X.astype(int)), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    read = read_table(tmp_path / "a.npy", max_memory=limit).X
    np.testing.assert_array_equal(read, values)
    assert isinstance(read, np.memmap) == (limit is not None)


def test_a_file_that_is_shortened_while_it_is_used(tmp_path):
    """What was read is in memory. Of a map the loss is seen before the next stage begins."""
    np.save(tmp_path / "a.npy", X)
    read, mapped = read_table(tmp_path / "a.npy").X, read_table(tmp_path / "a.npy", max_memory=3 * X.nbytes).X
    check_unchanged(mapped)
    os.truncate(tmp_path / "a.npy", 100)
    np.testing.assert_array_equal(read, X)
    check_unchanged(read)
    with pytest.raises(ValueError, match="became shorter while it was read: it has 100 bytes"):
        check_unchanged(mapped)


def archive(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def test_npz_files_that_lie(tmp_path):
    path = tmp_path / "a.npz"
    for data, message in (
        (archive(X=npy(shape=(10**9, 10**9))), "the array 'X' is cut short, or too long"),
        (archive(X=npy("|O")), "the array 'X' holds Python objects"),
        (archive(X=npy(), y=npy()), "no array 'Z'"),
        (archive(), "no array 'Z'"),
        (b"PK\3\4", "cannot be read as an npz file"),
    ):
        with pytest.raises(ValueError, match=message):
            read_table(written(path, data), key="Z" if "'Z'" in message else "X")
    good = sp.csr_matrix(X)
    for name, value in (("indices", -1), ("indices", 10**9), ("indptr", 10**9), ("indptr", -5), ("shape", 10**12)):
        arrays = {"indices": good.indices.astype(np.int64), "indptr": good.indptr.astype(np.int64), "data": good.data}
        arrays |= {"shape": np.array(good.shape), "format": np.array(b"csr")}
        arrays[name] = arrays[name].copy()
        arrays[name][0 if name == "shape" else 1] = value
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=r"a.npz"):
            read_table(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("1 1:1 1000000000:1\n", "1,000,000,000 rows, columns or nodes are too many for 2 entries"),
        ("1 1:1 3000000000:1\n", "cannot be read as a libsvm file"),
        ("1 1:1 99999999999999999999:1\n", "cannot be read as a libsvm file"),
        ("1 -1:1\n", "cannot be read as a libsvm file"),
        ("x 1:1\n", "cannot be read as a libsvm file"),
        ("1 1:\0\n", "cannot be read as a libsvm file"),
        ("", "There are no samples"),
        ("1 1:nan\n", "missing values"),
    ],
)
def test_libsvm_files_that_lie(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        read_table(written(tmp_path / "a.libsvm", data))


def test_idx_files_that_lie(tmp_path):
    head = struct.pack(">HBB", 0, 8, 3)
    for data in (head, head + b"\0\0", head + b"\xff" * 12, head + struct.pack(">III", 2, 2, 2) + b"123", b"\0\0\7\1"):
        with pytest.raises(ValueError, match=r"cut short|no idx file|needs about"):
            read_table(written(tmp_path / "a.idx", data))


def test_what_is_no_ordinary_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="is a pipe"):
        read_table(tmp_path / "a.csv")


# --- columns of other kinds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1.0], [2.0]]), "holds list.*a column for each of its parts"),
        (pa.array([{"x": 1}, {"x": 2}]), "holds struct"),
        (pa.array([1, 2], pa.timestamp("s")), "holds dates or times"),
        (pa.array([1, 2], pa.date32()), "holds dates or times"),
        (pa.array(["x", "y"]).dictionary_encode(), "'x', but features are numbers"),
        (pa.array(["1.5", "x"]), "such as 'x', but"),
        (pa.array(["1.5", "2"]), "holds numbers as text, such as '1.5'"),
        (pa.array([b"1", b"2"]), "holds binary"),
    ],
)
def test_columns_that_hold_no_numbers(tmp_path, column, message):
    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": column}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        from_frame(pa.table({"b": column}))


def test_columns_that_hold_numbers_of_other_kinds(tmp_path):
    table = pa.table(
        {
            "decimal": pa.array([Decimal("1.5"), Decimal("2.25")]),
            "category": pa.array([3.5, 4.5]).dictionary_encode(),
            "truth": pa.array([True, None]),
            "large": pa.array([2**60 + 1, 2**53 + 1]),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet", exclude=["truth"]).X
    assert read.tolist() == [[1.5, 3.5, float(2**60)], [2.25, 4.5, float(2**53)]]
    assert read_table(tmp_path / "a.parquet", missing="drop").n_dropped == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that cannot be read, as on a failing disk")
def test_errors_of_the_system_name_the_file(tmp_path):
    (tmp_path / "a.csv").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match=r"Input/output error: '.*a\.csv'"):
        read_table(tmp_path / "a.csv")


def test_arrow_errors_are_one_line(tmp_path):
    for name in ("a.parquet", "a.arrow", "a.feather"):
        for data in (b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"ARROW1\0\0" + bytes(100), b"\xff\xff\xff\xff" + bytes(50)):
            with pytest.raises(ValueError, match=r"cannot be read as|no samples|No column") as caught:
                read_table(written(tmp_path / name, data))
            assert str(caught.value).isprintable()


def test_frames_with_odd_columns():
    mixed = pd.DataFrame({"a": [Decimal("1.5"), Decimal(2)], "b": pd.array([1, None], dtype="Int64"), "c": [True, False]})
    assert from_frame(mixed, exclude=["b"]).X.tolist() == [[1.5, 1.0], [2.0, 0.0]]
    assert from_frame(mixed, missing="drop").X.tolist() == [[1.5, 1.0, 1.0]]
    assert from_frame(pd.DataFrame({"a": [Decimal("1.5"), 2.5, 3]})).X.ravel().tolist() == [1.5, 2.5, 3.0]
    assert from_frame(pd.DataFrame({"a": pd.Categorical([5, 7, 5])})).X.ravel().tolist() == [5.0, 7.0, 5.0]
    levels = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    assert from_frame(levels).columns == ["a.x", "a.y"]
    assert from_frame(levels, columns=[("a", "y")]).X.tolist() == [[2.0]]
    assert from_frame(pd.DataFrame([[1.0, 2.0]]), columns=[1]).X.tolist() == [[2.0]]
    for frame, message in (
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "several columns of the same name: 'a'"),
        (pd.DataFrame({"a": []}), "no samples: the table has 0 rows"),
        (pd.DataFrame(index=range(3)), "No column is left"),
        (pd.DataFrame({"a": [1.0, "x"]}), "'x'"),
        (pd.DataFrame({"a": [1.0, object()]}), "a object, but features are numbers"),
        (pd.DataFrame({"a": [1 + 2j, 2]}), "'a'"),
        (pd.DataFrame({"a": pd.Categorical(["x", "y"])}), "'x'"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            from_frame(frame)
        assert str(caught.value).isprintable()


# --- labels ----------------------------------------------------------------------------------------------------------------


def test_labels_of_rows_that_were_left_out(tmp_path):
    path = written(tmp_path / "y.csv", "id,label\na,x\nb,y\nc,\ngone,x\n")
    with pytest.warns(UserWarning, match=r"1 of 4 labels of y.csv belong to no node of the graph, such as 'gone'"):
        assert read_labels(path, ["b", "a", "c", "d"]).tolist() == ["y", "x", "", ""]
    with pytest.raises(ValueError, match=r"none of them is a node of the graph. The nodes are 'p', 'q'"):
        read_labels(path, ["p", "q"])
    with pytest.raises(ValueError, match="two labels for 'a': 'x' and 'y'"):
        read_labels(written(tmp_path / "y.csv", "id,label\na,x\na,y\n"), ["a"])
    alone = written(tmp_path / "y.csv", "label\nx\n\ny\n")
    assert read_labels(alone, ["a", "b", "c"]).tolist() == ["x", "", "y"]
    with pytest.raises(ValueError, match="no column 'kind' of labels: the columns are 'label'"):
        read_labels(alone, ["a"], label_column="kind")


# --- random damage -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return mutated_tables.sources(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "arrow", "feather", "npy", "npz", "mtx", "libsvm", "idx"])
def test_damaged_files(tmp_path, files, kind):
    chosen = {name: data for name, data in files.items() if name.endswith(f".{kind}") or kind in name}
    read = 0
    for number, name, data in mutated.mutants(chosen, 240 // len(chosen), seed=21):
        path = written(tmp_path / name, data)
        assert mutated_tables.faults(path) == "", (number, name)
        read += 1
    assert read >= 200


def test_a_damaged_file_on_which_arrow_crashed(tmp_path, files):
    """The size of an array was asked for before its offsets were validated."""
    *_, (number, name, data) = mutated.mutants({"b.feather": files["b.feather"]}, 229, seed=2)
    assert (number, mutated_tables.faults(written(tmp_path / name, data))) == (228, "")


def test_the_judge_of_damaged_tables_sees_what_is_wrong(tmp_path, files):
    for name, data in files.items():
        assert mutated_tables.faults(written(tmp_path / name, data)) == ""
    table = read_table(tmp_path / "a.csv", id_column="id", label_column="kind")
    assert mutated_tables.unsound(table) == ""
    for wrong in ({"ids": table.ids[:3]}, {"columns": ["a"]}, {"X": table.X * np.nan}, {"ids": np.array(["n"] * 20)}):
        assert mutated_tables.unsound(table._replace(**wrong))


def test_a_row_without_an_id_is_named_before_the_fit(tmp_path):
    (tmp_path / "t.csv").write_text("name,x,y\na,1,2\n,2,3\nc,4,5\n")
    with pytest.raises(ValueError, match="Row 1, counted from 0, has no id"):
        read_table(tmp_path / "t.csv", id_column="name")
