"""What every kernel of a dual problem takes: the rows of allowed edges, θ and the bound on the weights, in one tuple."""

from typing import NamedTuple

import numpy as np


class Form(NamedTuple):
    """A problem as the kernels take it: the weight of an edge is clip((λᵢ + λⱼ)/2 − θz, 0, upper).

    The entries of row i stand from begin[i] to end[i]. Every edge is stored at both of its ends, so that all that a node needs
    stands in its row. `z` is a squared distance and may be float32; all arithmetic is float64. `upper` is the largest weight
    that an edge may have, or None: the loops are then compiled without it.

    λ goes with the form. Where it is stored as a shifted λ (λ less an offset per node), z is less by what the offsets add,
    so that the weight above is the same and has all its digits.
    """

    begin: np.ndarray
    end: np.ndarray
    indices: np.ndarray
    z: np.ndarray
    theta: float
    upper: float | None

    @property
    def n(self) -> int:
        return self.begin.size


def form_of(indptr, indices, z, theta, upper=None) -> Form:
    """The form of edges in CSR arrays."""
    return Form(indptr[:-1], indptr[1:], indices, z, float(theta), None if upper is None else float(upper))
