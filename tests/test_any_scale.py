"""Data of any scale: the same graph, θ in the units of the table, and a sentence where float64 has no digits for it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from conftest import PAPER, blobs, paper_learner, relative_l1
from smoothgraph import GraphLearner
from smoothgraph.io.exports import edge_distances

OPTIONS = {"paper": PAPER, "default": {}, "half local": {"locality": 0.5}, "l2": {"model": "l2"}}


@pytest.fixture(scope="module")
def X():  # noqa: N802
    return blobs(200, 3, np.random.default_rng(0))


def scaled_theta(learner, factor):
    """θ of the data before they were multiplied: distances grow by factor², and the θ of single nodes have a part of that."""
    return learner.theta_ * factor ** (1.0 - learner.locality_) * factor ** (1.0 - learner.locality_)


@pytest.mark.parametrize("factor", [1e-150, 1e-80, 1e-9, 1e9, 1e80, 1e150])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_graph_does_not_depend_on_the_unit(X, options, factor):
    plain, scaled = GraphLearner(5, **options).fit(X), GraphLearner(5, **options).fit(factor * X)
    assert relative_l1(scaled.graph_, plain.graph_) < 1e-9
    assert scaled_theta(scaled, factor) == pytest.approx(plain.theta_, rel=1e-9)
    for bound, expected in zip(scaled.theta_bounds_[:2], plain.theta_bounds_[:2], strict=True):
        assert bound * (scaled.theta_ / plain.theta_) ** -1 == pytest.approx(expected, rel=1e-9)
    assert scaled.n_incomplete_ == 0
    np.testing.assert_array_equal(scaled.bridges_, plain.bridges_)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_powers_of_two_that_are_taken_off_leave_the_bits(X, options):
    """Very large and very small values are divided by a power of two, which is exact."""
    graphs = [GraphLearner(5, **options).fit(2.0**power * X).graph_ for power in (-480, -300, 170, 300, 480)]
    for graph in graphs[1:]:
        assert abs(graph - graphs[0]).nnz == 0


@pytest.mark.parametrize("factor", [2.0**-100, 2.0**100])
def test_float32_of_any_size(X, factor):
    """Squares would leave the range of float32."""
    small = X.astype(np.float32)
    scaled = GraphLearner(5).fit((factor * small).astype(np.float32))
    assert relative_l1(scaled.graph_, GraphLearner(5).fit(small.astype(np.float64)).graph_) < 1e-4


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_other_ways_in_have_a_unit_too(X, factor):
    Z = pairwise_distances(X, metric="sqeuclidean")
    for options, data in (({}, sp.csr_matrix(X)), ({"metric": "precomputed_squared"}, Z)):
        plain, scaled = GraphLearner(5, **options).fit(data), GraphLearner(5, **options).fit(factor * data)
        assert relative_l1(scaled.graph_, plain.graph_) < 1e-9
    squared = GraphLearner(5, metric="precomputed_squared").fit(
        factor**1.9 * Z
    )  # a matrix holds squares: no more are taken of it
    assert relative_l1(squared.graph_, plain.graph_) < 1e-9
    cosine = [GraphLearner(5, metric="cosine").fit(c * X).graph_ for c in (1.0, factor)]
    assert relative_l1(*cosine) < 1e-9
    given = [paper_learner(5, metric="precomputed_squared").fit(sp.csr_matrix(c * Z)).graph_ for c in (1.0, factor)]
    assert relative_l1(*given) < 1e-9


@pytest.mark.parametrize("factor", [1e-120, 1e120])
@pytest.mark.parametrize("options", [PAPER, {}], ids=["paper", "default"])
def test_a_theta_that_is_given_is_in_the_units_of_the_table(X, options, factor):
    plain = GraphLearner(5, **options).fit(X)
    same = {"locality": plain.locality_, "connect": plain.connect_}
    theta = plain.theta_ / factor ** (1.0 - plain.locality_) / factor ** (1.0 - plain.locality_)
    given = GraphLearner(5, theta=theta, **same).fit(factor * X)
    assert given.theta_ == pytest.approx(theta, rel=1e-12)
    assert relative_l1(given.graph_, GraphLearner(5, theta=plain.theta_, **same).fit(X).graph_) < 1e-9


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_new_rows_and_distances_of_edges_are_in_the_units_of_the_table(X, factor):
    new = blobs(20, 3, np.random.default_rng(1))
    plain, scaled = (GraphLearner(5).fit(c * X) for c in (1.0, factor))
    assert relative_l1(scaled.transform(factor * new), plain.transform(new)) < 1e-9
    np.testing.assert_allclose(edge_distances(scaled).data / factor, edge_distances(plain).data, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_what_squares_cannot_hold_is_refused(X, factor):
    with pytest.raises(ValueError, match=r"values up to .*e[+-]\d+.*squared distances are beyond what float64 holds. Rescale"):
        GraphLearner(5).fit(factor * X)


@pytest.mark.parametrize("options", [PAPER, {}], ids=["paper", "default"])
@pytest.mark.parametrize("row", [0, 17])
def test_a_sample_too_far_for_any_digits_is_refused_by_its_row(X, options, row):
    """A code for a missing value, such as the largest number of a sensor."""
    far = X.copy()
    far[row] = 1e30
    with pytest.raises(ValueError, match=rf"Sample {row} is too far from all others.*Remove or clip it"):
        GraphLearner(5, **options).fit(far)


def test_a_theta_too_large_for_the_distances_is_refused(X):
    with pytest.raises(ValueError, match=r"is too large for these distances.*Use a smaller theta"):
        GraphLearner(5, theta=1e30).fit(X)


def test_the_row_of_a_sample_that_is_refused_is_that_of_the_table(rng):
    """Also where copies before it were merged."""
    X = rng.normal(size=(60, 4))
    X[1:20] = X[0]
    X[41] = 1e30
    with pytest.raises(ValueError, match="Sample 41 is too far from all others"):
        GraphLearner(5).fit(X)
