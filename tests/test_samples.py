"""Distances of chosen pairs, whatever numbers samples go by: judged by numpy in float64."""

import numpy as np
import pytest
import scipy.sparse as sp

from smoothgraph.neighbors import pairs_nearer_than
from smoothgraph.samples import DistanceMatrix, Samples

FORMS = {
    "float32": lambda X: Samples(X.astype(np.float32)),
    "float64": Samples,
    "sparse": lambda X: Samples(sp.csr_matrix(X)),
    "distances": lambda X: DistanceMatrix(((X[:, None] - X[None]) ** 2).sum(axis=2)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("numbered", [False, True])
def test_distances_within(form, numbered, rng):
    """All distances up to the limit, to the bit, and none beyond; the limit itself is within."""
    X = rng.normal(size=(60, 33)).astype(np.float32).astype(np.float64)
    order = rng.permutation(60).astype(np.int32) if numbered and form != "distances" else None
    samples, nodes = FORMS[form](X).numbered(order), np.arange(60, dtype=np.int32)
    lists = rng.integers(-1, 60, size=(60, 40)).astype(np.int32)
    row = nodes if order is None else order
    true = ((X[row][:, None] - X[row[lists]]) ** 2).sum(axis=2)
    z = samples.distances(samples.own(nodes), lists)
    np.testing.assert_allclose(z, np.where(lists < 0, np.inf, true), rtol=1e-6)
    limits = np.sort(np.where(lists < 0, np.nan, z), axis=1)[:, 10].astype(np.float64)
    near = samples.distances(samples.own(nodes), lists, limits)
    np.testing.assert_array_equal(near, np.where(z <= limits[:, None], z, np.inf))
    assert (near == limits[:, None]).any(axis=1).all()


def test_samples_in_the_order_of_their_rows(rng):
    X, order = rng.normal(size=(50, 3)), rng.permutation(50).astype(np.int32)
    numbered = Samples(X).numbered(order)
    np.testing.assert_array_equal(numbered.own(numbered.by_row()), X)
    np.testing.assert_array_equal(Samples(X).by_row(), np.arange(50))


def test_near_pairs_of_samples_by_other_numbers(rng):
    X, order = rng.normal(size=(300, 4)), rng.permutation(300).astype(np.int32)
    samples, nodes, limits = Samples(X).numbered(order), np.arange(7, 40, dtype=np.int32), rng.random(300)
    i, j, z = pairs_nearer_than(samples, nodes, limits, np.ones(300), most=10**6)
    square = ((X[order][:, None] - X[order][None]) ** 2).sum(axis=2)
    near = square < limits[:, None] + limits
    near[np.arange(300), np.arange(300)] = False
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == {(a, b) for a, b in np.argwhere(near).tolist() if 7 <= a < 40}
    np.testing.assert_allclose(z, square[i, j])
