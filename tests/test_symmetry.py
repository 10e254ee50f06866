"""The check for symmetry: what passes, and what the message says."""

import numpy as np
import pytest
import scipy.sparse as sp

from smoothgraph.symmetry import TOLERANCE, check_symmetric


def symmetric(rng, n=30):
    A = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    return A + A.T


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.coo_matrix, sp.csr_array])
def test_rounding_passes_and_more_does_not(kind, rng):
    for dtype in (np.float64, np.float32, np.int64):
        check_symmetric(kind((100 * symmetric(rng)).astype(dtype)), "A", "")
    A = symmetric(rng)
    A[3, 7] = A[7, 3] = 2.0
    A[7, 3] *= 1.0 + 0.5 * TOLERANCE
    check_symmetric(kind(A), "A", "")
    A[7, 3] = 2.5
    with pytest.raises(ValueError, match=r"The matrix is not symmetric: \(3, 7\) holds 2, \(7, 3\) holds 2\.5\. Mend it\."):
        check_symmetric(kind(A), "The matrix", "Mend it.")


def test_the_pair_named_is_the_one_that_differs_most(rng):
    A = symmetric(rng)
    A[2, 5] += 0.5
    A[4, 1] += 0.25
    for kind in (np.asarray, lambda A: sp.csr_matrix(A + 0.1)):  # every entry of the sparse one is stored
        with pytest.raises(ValueError, match=r"\((2, 5|5, 2)\) holds"):
            check_symmetric(kind(A), "A", "")


def test_a_stored_zero_is_an_entry():
    """Squared distances of 0 are allowed edges: a matrix that stores them one way only is not symmetric."""
    one_way = sp.csr_matrix(([0.0, 1.0, 1.0], ([0, 1, 2], [3, 2, 1])), shape=(4, 4))
    with pytest.raises(ValueError, match=r"Z is not symmetric: \(0, 3\) holds 0, \(3, 0\) holds nothing\. Store both\."):
        check_symmetric(one_way, "Z", "Store both.")
    with pytest.raises(ValueError, match=r"\(1, 0\) holds 4, \(0, 1\) holds nothing"):
        check_symmetric(sp.csr_matrix(([4.0, 1.0], ([1, 0], [0, 3])), shape=(4, 4)), "Z", "")


def test_entries_that_are_stored_twice_count_as_their_sum():
    twice = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    before = twice.data.copy()
    check_symmetric(twice, "A", "")
    np.testing.assert_array_equal(twice.data, before)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_infinite_entries_agree_and_nan_does_not():
    A = np.array([[0.0, np.inf, 1.0], [np.inf, 0.0, 2.0], [1.0, 2.0, 0.0]])
    check_symmetric(A, "A", "")
    A[0, 2] = np.nan
    with pytest.raises(ValueError, match=r"\((0, 2|2, 0)\) holds (nan|1)"):
        check_symmetric(A, "A", "")
