"""What is no graph is refused, when it is read and when it is written: one line, no crash, no memory that a file asks for."""

import gzip
import io
import json
import subprocess
import sys
import zipfile

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothgraph.io import read_graph, write_graph, write_table
from smoothgraph.io.door import BadFileError

TRIANGLE = sp.csr_matrix(np.ones((3, 3)) - np.eye(3))


def refused(path, match, **options) -> str:
    """The one line, which matches, that reading ends in."""
    with pytest.raises(BadFileError, match=match) as caught:
        read_graph(path, **options)
    text = str(caught.value)
    assert text.isprintable(), text
    assert path.name in text
    return text


# --- edge lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ("0,1,nan", "row 0 has no weight"),
        ("0,1,1\n1,2,", "row 1 has no weight"),
        ("0,1,1\n1,2,-3", "row 1 has the weight -3"),
        ("0,1,inf", "row 0 has the weight inf"),
        ("0,1,x", "invalid value 'x'"),
        ("0,,1", "row 0 has no target"),
        ("a,b,1\n,b,1", "row 1 has no source"),
        ("-1,0,1", "row 0 has the source -1"),
        ("0,1000000000,1", "1,000,000,001 rows, columns or nodes are too many for 1 entries.*names"),
        ("0,9223372036854775807,1", "at most 2,147,483,647"),
        ("0,1,1\n1,0,2", "rows 0 and 1 give one edge the weights 1 and 2"),
        ("0,1,1\n0,1,2", "rows 0 and 1 give one edge the weights 1 and 2"),
        ("", "it has 0 nodes"),
        ("0,1", "Expected 3 columns"),
        ("a\x1b[2J,1,x", "cannot be read"),
    ],
)
def test_rows_that_are_no_edges(tmp_path, rows, match):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\n" + rows + "\n")
    assert refused(path, match)


@pytest.mark.parametrize(
    ("source", "target", "weight", "match"),
    [
        ([0, None], [1, 2], [1.0, 1.0], "row 1 has no source"),
        ([0, 1], [1, 2], [1.0, float("nan")], "row 1 has the weight nan"),
        ([0, 1], [1, 2], [1.0, None], "row 1 has no weight"),
        (["a", ""], ["b", "c"], [1.0, 2.0], "row 1 has no source"),
        ([0.5, 1.0], [1.0, 2.0], [1.0, 1.0], "truncated"),
        ([[0], [1]], [[1], [2]], [1.0, 1.0], "cannot be read as"),
        ([0, 1], [1, 2], ["x", "y"], "cannot be read as"),
        ([0, 10**12], [1, 2], [1.0, 1.0], "at most 2,147,483,647"),
    ],
)
def test_parquet_rows_that_are_no_edges(tmp_path, source, target, weight, match):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"source": source, "target": target, "weight": weight}), path)
    assert refused(path, match)


def test_what_a_schema_says_is_checked(tmp_path):
    path = tmp_path / "edges.parquet"
    table = pa.table({"source": [0], "target": [1]})
    for described, match in [
        ({"n": "1"}, "nodes go from 0 to 0"),
        ({"n": "1000000000"}, "too many for 1 entries"),
        ({"n": "-5"}, "at least 1"),
        ({"n": "many"}, "cannot be read as"),
        ({"smoothgraph": "[1]"}, "metadata is no dict"),
        ({"smoothgraph": "{"}, "metadata is no JSON"),
        ({"smoothgraph": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"}, "metadata is no"),
        ({"smoothgraph": '{"a":' + "[" * 100 + "]" * 100 + "}"}, "at most 64 levels"),
    ]:
        pq.write_table(table.replace_schema_metadata(described), path)
        assert refused(path, match)


def test_a_text_that_is_repeated_costs_nothing(tmp_path):
    """A hundred thousand times the same megabyte is a file of a megabyte, and a hundred gigabytes of text."""
    path, long = tmp_path / "edges.parquet", "x" * 1_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array([long]))
    pq.write_table(pa.table({"source": column, "target": column.cast(column.type)}), path)
    stored = read_graph(path)
    assert stored.ids.tolist() == [long]
    assert stored.W.toarray().tolist() == [[1.0]]


def test_one_long_name_among_many_is_refused(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "x" * 2_000_000 + ",y\n" + "".join(f"a{i},b{i}\n" for i in range(100_000)))
    assert refused(path, "200,002 names, of up to 2,000,000 characters")


def test_every_node_has_one_id_and_no_other_has_it(tmp_path):
    path, head = tmp_path / "edges.csv", "source,target,weight,source_id,target_id\n"
    path.write_text(head + "5,17,1,e,q\n")
    assert refused(path, "node 0 has no id, because it is in no row")
    path.write_text(head + "0,1,1,a,b\n1,2,1,c,d\n")
    assert refused(path, "node 1 has two ids, c and b")
    path.write_text(head + "0,1,1,a,a\n")
    assert refused(path, "'a' for 2 nodes")
    path.write_text(head + "0,1,1,a,\n")
    assert refused(path, "row 0 has no target_id")
    path.write_text("source,target,weight,source_id\n0,1,1,a\n")
    assert refused(path, "both or neither")


def test_numbers_with_gaps_are_node_numbers_and_the_others_are_alone(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n5,9\n7,5\n")
    stored = read_graph(path)
    assert stored.ids is None
    assert stored.W.shape == (10, 10)
    assert np.flatnonzero(np.diff(stored.W.indptr)).tolist() == [5, 7, 9]


def test_names_are_read_as_they_are_written(tmp_path):
    """Arrow alone would make dates, truth values and other numbers of these."""
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n007,2020-01-01\ntrue,1e5\n")
    assert sorted(read_graph(path).ids) == ["007", "1e5", "2020-01-01", "true"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("name", ["edges.csv", "edges.tsv", "edges.csv.gz"])
def test_the_delimiter_is_found_out(tmp_path, delimiter, name):
    rows = [["extra", "weight", "target", "source"], ["?", "2.5", "1", "0"], ["?", "3", "2", "1"]]
    text = "\ufeff" + "".join(delimiter.join(row) + "\r\n" for row in rows)
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert read_graph(path).W.toarray().tolist() == [[0, 2.5, 0], [2.5, 0, 3], [0, 3, 0]]


def test_repeated_rows_that_agree_are_one_edge_and_loops_stay(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\n0,1,2\n0,1,2\n1,0,2\n2,2,7\n3,3,0\n0,2,0\n")
    assert read_graph(path).W.toarray().tolist() == [[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 7, 0], [0, 0, 0, 0]]


# --- npz -------------------------------------------------------------------------------------------------------------------


def arrays_of(W, **more):
    return {"format": b"csr", "shape": W.shape, "data": W.data, "indices": W.indices, "indptr": W.indptr, **more}


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"indices": np.array([1, 2, 0, 2, 0, -1])}, "index -1 occurs"),
        ({"indices": np.array([1, 2, 0, 2, 0, 10**9])}, "index 1000000000 occurs"),
        ({"indptr": np.array([0, 2, 4, 10**9])}, "cannot be read|damaged"),
        ({"indptr": np.array([0, 4, 2, 6])}, "never fall"),
        ({"indptr": np.array([0, 2, 6])}, "cannot be read"),
        ({"data": np.full(6, np.nan)}, "the weight nan between nodes 0 and 1"),
        ({"data": np.full(6, np.inf)}, "the weight inf"),
        ({"data": np.full(6, -1.0)}, "the weight -1 between nodes 0 and 1"),
        ({"data": np.full(6, 1j)}, "complex"),
        ({"data": np.array(["x"] * 6)}, "text"),
        ({"data": np.array([None] * 6)}, "objects"),
        ({"data": np.arange(1.0, 7.0)}, "is not symmetric"),
        ({"shape": (3, 4)}, "a graph is square"),
        ({"shape": (-3, 3)}, "its shape is"),
        ({"shape": (3, 3, 3)}, "its shape is"),
        ({"format": b"xyz"}, "format 'xyz'"),
        ({"ids": np.array(["a", "b"])}, "ids has shape"),
        ({"ids": np.array(["a", "b", "a"])}, "'a' for 2 nodes"),
        ({"ids": np.array([["a", "b", "c"]])}, "ids has shape"),
        ({"labels": np.array(["a"])}, "labels has shape"),
        ({"ids": np.array([0, 0x110000, 1], "<u4").view("<U1")}, "no Unicode, at node 1"),
        ({"ids": np.array([0, 0xD800, 1], "<u4").view("<U1")}, "no Unicode"),
        ({"ids": np.array([0, 1, 2**64 - 1], np.uint64)}, "too large"),
        ({"metadata": "[]"}, "metadata is no dict"),
        ({"metadata": "{"}, "metadata is no JSON"),
        ({"metadata": np.array(["{}", "{}"])}, "one text"),
    ],
)
def test_arrays_that_are_no_graph(tmp_path, changed, match):
    np.savez(tmp_path / "g.npz", **arrays_of(TRIANGLE) | changed)
    assert refused(tmp_path / "g.npz", match)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("is_array", [True, False])
def test_every_format_of_scipy(tmp_path, kind, is_array):
    upper = sp.triu(sp.random(12, 12, 0.3, random_state=np.random.default_rng(0)), k=0)
    W = sp.csr_matrix(upper + upper.T)
    sp.save_npz(tmp_path / "g.npz", (sp.csr_array(W) if is_array else W).asformat(kind))
    assert (read_graph(tmp_path / "g.npz").W != W).nnz == 0


def test_names_without_characters(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, **arrays_of(TRIANGLE))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (10**12,), "fortran_order": False, "descr": "<U0"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("ids.npy", b"\x93NUMPY\x01\x00" + header.getvalue().removeprefix(b"\x93NUMPY\x01\x00"))
    assert refused(path, "damaged")


def test_diagonals_that_are_no_graph(tmp_path):
    path = tmp_path / "g.npz"
    for data, offsets in [
        (np.ones((2, 3)), np.array([1, 1])),
        (np.ones((2, 3)), np.array([1])),
        (np.ones(3), np.array([1, 2, 3])),
    ]:
        np.savez(path, format=b"dia", shape=(3, 3), data=data, offsets=offsets)
        assert refused(path, "its diagonals")
    np.savez(path, format=b"dia", shape=(3, 3), data=np.ones((3, 3)), offsets=np.array([2**63 - 1, -(2**63), 0]))
    assert read_graph(path).W.toarray().tolist() == np.eye(3).tolist()


def test_a_coo_of_many_nodes_and_few_entries(tmp_path):
    one = np.zeros(1, np.int32)
    np.savez(tmp_path / "g.npz", format=b"coo", shape=(10**9, 10**9), data=np.ones(1), row=one, col=one)
    assert refused(tmp_path / "g.npz", "too many for 1 entries")


def test_an_archive_that_expands_is_refused_before_it_does(tmp_path):
    """A small zip that says it holds, and does hold, many zeros."""
    path = tmp_path / "g.npz"
    np.savez(path, **arrays_of(TRIANGLE))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (10**8 // 8,), "fortran_order": False, "descr": "<f8"})
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist() if name != "data.npy"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        with archive.open("data.npy", "w") as file:
            file.write(header.getvalue())
            for _ in range(100):
                file.write(bytes(10**6))
    assert refused(path, "declares an array .*memory, and the limit is", max_memory=5e7)


# --- GraphML ---------------------------------------------------------------------------------------------------------------


def graphml(body, keys='<key id="w" for="edge" attr.name="weight" attr.type="double"/>'):
    return f'<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}<graph>{body}</graph></graphml>'


TWO = '<node id="a"/><node id="b"/>'


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no element found"),
        (graphml(TWO)[:-5], "cannot be read as a GraphML file"),
        ('<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + graphml(TWO).split("?>")[1], "document type"),
        ('<!DOCTYPE g [<!ENTITY x "xxxxxxx"><!ENTITY y "&x;&x;">]><g>&y;</g>', "document type"),
        (graphml(""), "no nodes"),
        (graphml(TWO + '<edge source="a" target="c"/>'), "an edge to 'c'"),
        (graphml(TWO + '<node id="a"/>'), "two nodes 'a'"),
        (graphml(TWO + '<edge source="a"/>'), "line 1 has a <edge> without target"),
        (graphml(TWO + '<edge source="a" target="b"><data key="w">-1</data></edge>'), "the weight -1"),
        (graphml(TWO + '<edge source="a" target="b"><data key="w">nan</data></edge>'), "the weight nan"),
        (graphml(TWO + '<edge source="a" target="b"><data key="w">x</data></edge>'), "could not convert"),
        (graphml(TWO + "<hyperedge/>"), "hyperedges"),
        (graphml(TWO + "<graph/>"), "several graphs"),
        (graphml("<x>" * 100_000), "more than 64 levels"),
        (graphml(TWO, '<key id="w" for="edge" attr.name="weight"/>').replace('"a"', '"&#1;"'), "cannot be read as"),
    ],
)
def test_graphml_that_is_no_graph(tmp_path, text, match):
    path = tmp_path / "g.graphml"
    path.write_text(text)
    assert refused(path, match)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), is_named=st.booleans(), is_directed=st.booleans())
def test_networkx_writes_what_we_read(tmp_path_factory, seed, n, is_named, is_directed):
    rng = np.random.default_rng(seed)
    G = nx.DiGraph() if is_directed else nx.Graph()
    names = [f"<é&{i}>" if is_named else i for i in range(n)]
    G.add_nodes_from((name, {"label": int(rng.integers(3)), "other": "x"}) for name in names)
    for i, j in rng.integers(n, size=(2 * n, 2)):
        if not G.has_edge(names[j], names[i]):
            G.add_edge(names[i], names[j], weight=float(rng.random()))
    path = tmp_path_factory.mktemp("graphml") / "g.graphml"
    nx.write_graphml(G, path)
    stored, H = read_graph(path), nx.read_graphml(path).to_undirected()
    assert stored.ids.tolist() == list(H)
    assert (sp.csr_matrix(nx.to_scipy_sparse_array(H, dtype=np.float64)) != stored.W).nnz == 0
    assert stored.labels.tolist() == [label for _, label in H.nodes(data="label")]


def test_defaults_of_graphml(tmp_path):
    keys = '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>2.5</default></key>'
    keys += '<key id="l" for="node" attr.name="label" attr.type="int"><default>4</default></key>'
    path = tmp_path / "g.graphml"
    path.write_text(graphml(TWO.replace('"b"/>', '"b"><data key="l">5</data></node>') + '<edge source="a" target="b"/>', keys))
    stored = read_graph(path)
    assert stored.W.toarray().tolist() == [[0, 2.5], [2.5, 0]]
    assert stored.labels.tolist() == [4, 5]


# --- writing ---------------------------------------------------------------------------------------------------------------

KINDS = ["npz", "parquet", "csv", "graphml", "h5ad"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0, 1j])
def test_weights_that_are_none_are_not_written(tmp_path, kind, weight):
    with pytest.raises(ValueError, match=r"the weight|real numbers"):
        write_graph(tmp_path / f"g.{kind}", np.array([[0, weight], [weight, 0]]))
    assert list(tmp_path.iterdir()) == []


def test_what_else_is_not_written(tmp_path):
    path = tmp_path / "g.npz"
    with pytest.raises(ValueError, match="'a' for 2 nodes"):
        write_graph(path, TRIANGLE, ids=["a", "b", "a"])
    with pytest.raises(ValueError, match="no Unicode"):
        write_graph(path, TRIANGLE, ids=["a", "b", "\ud800"])
    with pytest.raises(ValueError, match="too large"):
        write_graph(path, TRIANGLE, ids=np.array([1, 2, 2**63], np.uint64))
    with pytest.raises(ValueError, match="at most 64 levels"):
        write_graph(path, TRIANGLE, metadata={"a": json.loads("[" * 100 + "]" * 100)})
    with pytest.raises(ValueError, match=r"GraphML has no place for .*\\x1b"):
        write_graph(tmp_path / "g.graphml", TRIANGLE, ids=["a", "b", "\x1b[2J"])
    with pytest.raises(ValueError, match="a graph is square"):
        write_graph(path, np.ones((2, 3)))
    broken = TRIANGLE.copy()
    broken.indices[0] = 10**6
    with pytest.raises(ValueError, match="index 1000000 occurs"):
        write_graph(path, broken)
    assert list(tmp_path.iterdir()) == []


text_ids = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6), min_size=3, max_size=3, unique=True
)


@pytest.mark.parametrize("kind", ["npz", "parquet", "csv", "graphml"])
@settings(max_examples=60, deadline=None)
@given(ids=text_ids, data=st.data())
def test_any_text_comes_back_or_is_refused(tmp_path_factory, kind, ids, data):
    formulas = st.sampled_from(["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x", "'=x", "''", "a\nb", 'a"b', "a,b", " a ", "\r\n"])
    ids = list(dict.fromkeys([*ids, *data.draw(st.lists(formulas, max_size=4))]))
    path = tmp_path_factory.mktemp("names") / f"g.{kind}"
    n = len(ids)
    W = np.ones((n, n)) - np.eye(n)
    try:
        write_graph(path, W, ids=ids, labels=ids[::-1])
    except ValueError:
        assert kind == "graphml"
        assert any(ord(c) < 32 or c in "\ufffe\uffff" for name in ids for c in name)
        return
    stored = read_graph(path)
    if kind == "csv" and all(name.lstrip("-").isdecimal() for name in ids):
        return  # a csv does not say what is text
    assert stored.ids.tolist() == ids
    if kind in ("npz", "graphml"):
        assert stored.labels.tolist() == ids[::-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_weights_come_back_to_the_bit(tmp_path, kind, dtype):
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((20, 20)) * 10.0 ** rng.integers(-30, 30, (20, 20)) * (rng.random((20, 20)) < 0.3), 1)
    A = (A > 0).astype(dtype) if dtype in (np.int64, bool) else A.astype(dtype)
    W = A + A.T if dtype is not bool else A | A.T
    write_graph(tmp_path / f"g.{kind}", sp.csr_matrix(W))
    np.testing.assert_array_equal(read_graph(tmp_path / f"g.{kind}").W.toarray(), W.astype(np.float64))


def test_spreadsheets_run_nothing(tmp_path):
    ids = ["=cmd|' /C calc'!A0", "+1", "-1", "@x"]
    write_graph(tmp_path / "g.csv", np.ones((4, 4)) - np.eye(4), ids=ids)
    write_table(tmp_path / "t.csv", {"id": np.array(ids), "score": np.array([-1.0, 2, 3, 4])})
    for name in ("g.csv", "t.csv"):
        cells = [cell.strip('"') for line in (tmp_path / name).read_text().splitlines() for cell in line.split(",")]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@")) or cell == '-1"']
        assert "'@x" in cells
    assert read_graph(tmp_path / "g.csv").ids.tolist() == ids


def test_the_arrays_of_the_user_are_not_changed(tmp_path):
    W = sp.csr_matrix((np.array([1.0, 1.0, 0.0, 2.0]), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    before = W.data.copy(), W.indices.copy(), W.indptr.copy()
    write_graph(tmp_path / "g.npz", W)
    for old, new in zip(before, (W.data, W.indices, W.indptr), strict=True):
        np.testing.assert_array_equal(old, new)
    assert read_graph(tmp_path / "g.npz").W.toarray().tolist() == [[0, 2], [2, 0]]


# --- memory ----------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_small_files_take_little_memory(tmp_path):
    """Each of these once asked for gigabytes."""
    (tmp_path / "a.csv").write_text("source,target,weight\n0,1000000000,1\n")
    (tmp_path / "b.csv").write_text("source,target," + ",".join(f"x{i}" for i in range(10**6)) + "\n")
    (tmp_path / "c.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 1\n")
    pq.write_table(
        pa.table({"source": [0], "target": [1]}).replace_schema_metadata({"n": "2000000000"}), tmp_path / "d.parquet"
    )
    code = """
import resource, sys
from smoothgraph.io import read_graph
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        read_graph(path)
    except ValueError as error:
        print("refused")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    paths = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    *lines, kilobytes = done.stdout.split()
    assert lines == ["refused"] * 4
    assert int(kilobytes) < 300_000


@pytest.mark.parametrize("kind", ["npz", "parquet", "csv", "graphml", "h5ad"])
def test_an_empty_id_is_refused_before_anything_is_written(tmp_path, kind):
    path = tmp_path / f"g.{kind}"
    with pytest.raises(ValueError, match="empty text for node 1"):
        write_graph(path, sp.csr_matrix([[0.0, 1.0], [1.0, 0.0]]), ids=["a", ""])
    assert not list(tmp_path.iterdir())
