"""An approximate search numbers the samples anew. Nothing of that is seen outside."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import blobs
from smoothgraph import GraphLearner, cells
from smoothgraph.neighbors import ApproximateBackend, find_neighbors, ordered_neighbors
from smoothgraph.samples import Samples

N, K = 400, 6


@pytest.fixture
def small_cells(monkeypatch):
    """Cells of 40, all of which are looked into: the lists are right, and their order is far from that of the rows."""
    monkeypatch.setattr(cells, "SIZE", 40)
    monkeypatch.setattr(cells, "PROBES", N)


def test_lists_in_the_order_of_the_search_are_the_lists_by_other_numbers(small_cells, rng):
    X = blobs(N, 3, rng)
    ordered = ordered_neighbors(Samples(X), K, ApproximateBackend(0))
    by_rows = find_neighbors(Samples(X), K, ApproximateBackend(0))
    assert (ordered.order != np.arange(N)).mean() > 0.9
    assert np.array_equal(np.sort(ordered.order), np.arange(N))
    assert np.array_equal(by_rows.indices[ordered.order], ordered.order[ordered.indices])
    assert np.allclose(by_rows.distances, np.square(X[by_rows.indices] - X[:, None]).sum(axis=2))


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
        {"connect": True},
        {"model": "l2"},
        {"model": "soft", "tol": 1e-5},
        {"model": "knn-self-tuning"},
    ],
    ids=str,
)
def test_the_same_graph_as_from_exact_lists(small_cells, rng, options):
    X = blobs(N, 3, rng)
    options = {"tol": 1e-12, **options}
    exact = GraphLearner(K, neighbors="exact", **options).fit(X)
    options["theta"] = exact.theta_  # landing stops anywhere within its tolerance
    exact = GraphLearner(K, neighbors="exact", **options).fit(X)
    ordered = GraphLearner(K, neighbors="approximate", random_state=0, **options).fit(X)
    assert ordered.neighbors_ == "approximate"
    assert ordered.recall_ == 1.0
    assert abs(ordered.graph_ - exact.graph_).sum() < 1e-4 * exact.graph_.sum()
    assert ordered.graph_.has_sorted_indices
    if options.get("model") in (None, "l2"):
        assert np.allclose(ordered.solution_.dual, exact.solution_.dual, rtol=1e-4)
        assert np.array_equal(np.sort(ordered.joining_edges_, axis=0), np.sort(exact.joining_edges_, axis=0))
    if options.get("model") != "soft":
        new = X[:50] + 0.01
        assert abs(ordered.transform(new) - exact.transform(new)).sum() < 1e-4 * exact.transform(new).sum()
