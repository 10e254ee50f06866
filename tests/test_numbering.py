"""An approximate search numbers the samples anew. Nothing of that is seen outside."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import blobs
from smoothgraph.distances import Points
from smoothgraph.neighbors import approximate, find_neighbors
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import Threads

THREADS = Threads(2)
N, K = 400, 6


def test_nodes_and_rows_lead_to_each_other(rng):
    rows = rng.permutation(N).astype(np.int32)
    numbering, plain = Numbering.of(rows), Numbering()
    np.testing.assert_array_equal(numbering.rows(np.array([[3, -1], [0, 7]])), [[rows[3], -1], [rows[0], rows[7]]])
    np.testing.assert_array_equal(numbering.rows(numbering.nodes(N)), np.append(np.arange(N), -1))
    np.testing.assert_array_equal(plain.nodes(N), np.append(np.arange(N), -1))
    np.testing.assert_array_equal(plain.rows(rows), rows)
    assert plain.by_row
    assert not numbering.by_row


def test_values_and_graphs_of_nodes_become_those_of_rows_and_back(rng):
    rows, values = rng.permutation(N), rng.random(N)
    numbering = Numbering.of(rows)
    np.testing.assert_array_equal(numbering.values_by_row(values)[rows], values)
    W = sp.random(N, N, 0.02, random_state=rng, format="csr")
    W = sp.csr_matrix(W + W.T)
    by_row = numbering.graph_by_row(W)
    np.testing.assert_array_equal(by_row.toarray()[np.ix_(rows, rows)], W.toarray())
    assert by_row.has_sorted_indices
    assert (numbering.graph_by_node(by_row) != W).nnz == 0
    assert Numbering().graph_by_row(W) is Numbering().graph_by_node(W) is W
    assert Numbering().values_by_row(values) is values


@pytest.fixture
def small_cells(monkeypatch):
    """Cells of 40, all of which are looked into: the lists are right, and their order is far from that of the rows."""
    monkeypatch.setattr(approximate, "CELL_SIZES", approximate.CellSizes(mean=40, probes=N))


def test_lists_in_the_order_of_the_search_are_the_lists_by_other_numbers(small_cells, rng):
    X = blobs(N, 3, rng)
    found = find_neighbors(Points(X), K, "approximate", random_state=0, threads=THREADS)
    by_rows, rows = found.by_rows(), found.numbering.rows(np.arange(N))
    assert (rows != np.arange(N)).mean() > 0.9
    assert np.array_equal(np.sort(rows), np.arange(N))
    assert np.array_equal(by_rows.indices[rows], rows[found.indices])
    assert np.array_equal(by_rows.distances[rows], found.distances)
    assert np.allclose(by_rows.distances, np.square(X[by_rows.indices] - X[:, None]).sum(axis=2))
    assert by_rows.numbering.by_row
    assert by_rows.by_rows() is by_rows


def test_near_samples_have_near_numbers(small_cells, rng):
    found = find_neighbors(Points(blobs(N, 3, rng)), K, "approximate", random_state=0, threads=THREADS)

    def mean_step(lists):
        return np.abs(lists.indices - np.arange(N)[:, None]).mean()

    assert mean_step(found) < 0.6 * mean_step(found.by_rows())


def some_prior(n):
    rng = np.random.default_rng(1)
    upper = sp.random(n, n, 0.01, random_state=rng, data_rvs=lambda size: rng.uniform(0.1, 0.5, size))
    return sp.csr_matrix(sp.triu(upper, 1) + sp.triu(upper, 1).T)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": some_prior(N), "prior_strength": 2.0},
        {"max_weight": 0.2, "metric": "cosine"},
        {"locality": 0.7},
        {"locality": 0.0, "connect": True},
        {"model": "l2"},
        {"model": "soft", "tol": 1e-5},
        {"model": "knn-self-tuning"},
    ],
    ids=str,
)
def test_the_same_graph_as_from_exact_lists(small_cells, rng, options):
    from smoothgraph import GraphLearner

    X = blobs(N, 3, rng)
    options = {"tol": 1e-12, "oversampling": 3, **options}  # long enough for the weights of bridges not to depend on scans
    exact = GraphLearner(K, neighbors="exact", **options).fit(X)
    options["theta"] = exact.theta_  # the search for θ stops anywhere within its tolerance
    exact = GraphLearner(K, neighbors="exact", **options).fit(X)
    ordered = GraphLearner(K, neighbors="approximate", random_state=0, **options).fit(X)
    assert ordered.neighbors_ == "approximate"
    assert ordered.recall_ == 1.0
    assert abs(ordered.graph_ - exact.graph_).sum() < 1e-4 * exact.graph_.sum()
    assert ordered.graph_.has_sorted_indices
    if options.get("model") in (None, "l2"):
        assert np.allclose(ordered.solution_.dual, exact.solution_.dual, rtol=1e-4)
        assert np.array_equal(np.sort(ordered.bridges_, axis=0), np.sort(exact.bridges_, axis=0))
    if options.get("model") != "soft":
        new = X[:50] + 0.01
        assert abs(ordered.transform(new) - exact.transform(new)).sum() < 1e-4 * exact.transform(new).sum()
