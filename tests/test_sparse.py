"""No sparse matrix with arrays that lie gets past `checked_csr`, and every sound one does."""

import numpy as np
import pytest
import scipy.sparse as sp

from smoothgraph.sparse import checked_csr

SOUND = sp.random(6, 6, 0.4, format="csr", random_state=0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dia", "dok"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_a_sound_matrix_passes_in_every_format(form, kind):
    A = kind(SOUND).asformat(form)
    checked = checked_csr(A, "W")
    assert isinstance(checked, sp.csr_matrix)
    np.testing.assert_array_equal(checked.toarray(), SOUND.toarray())


def damaged(change):
    A = SOUND.copy()
    change(A)
    return A


def lying(attribute, value):
    return damaged(lambda A: setattr(A, attribute, value(getattr(A, attribute))))


@pytest.mark.parametrize("index", [-1, 6, 10**9, -(2**31)])
def test_an_index_out_of_range_is_named(index):
    A = damaged(lambda A: A.indices.__setitem__(2, index))
    for B in (A, sp.csc_matrix((A.data, A.indices, A.indptr), shape=A.shape)):
        with pytest.raises(ValueError, match=f"W is damaged: index {index} occurs, and only 0 to 5"):
            checked_csr(B, "W")


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p + 1,
        lambda p: -p,
        lambda p: p[:-1],
        lambda p: np.append(p, p[-1]),
        lambda p: np.where(np.arange(p.size) == 3, 10**6, p),
        lambda p: np.where(np.arange(p.size) == p.size - 1, 10**6, p),
        lambda p: p.astype(float),
        lambda p: p[:, None],
    ],
)
def test_an_indptr_that_lies_is_refused(change):
    with pytest.raises(ValueError, match="W is damaged"):
        checked_csr(lying("indptr", change), "W")


@pytest.mark.parametrize("part", ["indices", "data"])
def test_arrays_that_are_too_short_are_refused(part):
    with pytest.raises(ValueError, match="W is damaged: its indptr ends at"):
        checked_csr(lying(part, lambda values: values[:-1]), "W")


def test_coordinates_out_of_range_are_refused():
    for part in ("row", "col"):
        A = SOUND.tocoo()
        values = getattr(A, part).copy()
        values[0] = 77
        setattr(A, part, values)
        with pytest.raises(ValueError, match=f"{part} 77 occurs"):
            checked_csr(A, "W")


@pytest.mark.parametrize("A", [SOUND.astype(complex), np.ones((3, 3), complex), np.array([["a", "b"], ["c", "d"]])])
def test_only_real_numbers_are_taken(A):
    with pytest.raises(ValueError, match="real numbers are needed"):
        checked_csr(A, "W")
