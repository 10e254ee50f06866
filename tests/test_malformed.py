"""Whatever is given to a public door ends in a right answer, or in a ValueError or TypeError: no crash, no other error.

A fixed share of the cases of malformed.py is tried here, another one for each door; SMOOTHGRAPH_MALFORMED=all tries all.
"""

import os
import warnings
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

from malformed import ROWS, cases, matrix, table
from smoothgraph import (
    GraphLearner,
    label_propagation,
    solve_one_node,
    spectral_embedding,
    theta_bounds,
    theta_for_degree,
)
from smoothgraph.edges import edges_of_matrix
from smoothgraph.uses import diameter, hops, relative_l1, weight_between_classes, wrong_weight

GOOD, SQUARE, LABELS = table(np.random.default_rng(0)), matrix(np.random.default_rng(0)), np.arange(ROWS) % 3 - 1
INDICES = np.argsort(SQUARE, axis=1)[:, 1:5]
FITTED = {
    "dense": GraphLearner(3).fit(GOOD),
    "sparse": GraphLearner(3).fit(sp.csr_matrix(GOOD)),
    "matrix": GraphLearner(3, metric="precomputed").fit(SQUARE),
}
SHARE = 1 if os.environ.get("SMOOTHGRAPH_MALFORMED") == "all" else 10  # one case in so many is tried


class Transformer:
    """A k-neighbours transformer that returns what it is told."""

    def __init__(self, result):
        self.result = result

    def fit_transform(self, X):
        return self.result


def fit(X, **options):
    return GraphLearner(3, **options).fit(X).graph_


DOORS = {
    "fit": (table, fit),
    "fit cosine": (table, lambda X: fit(X, metric="cosine")),
    "fit keep": (table, lambda X: fit(X, duplicates="keep")),
    "fit precomputed": (matrix, lambda X: fit(X, metric="precomputed")),
    "fit precomputed_squared": (matrix, lambda X: fit(X, metric="precomputed_squared")),
    "prior": (matrix, lambda P: fit(GOOD, prior=P, prior_strength=1.0)),
    "pair": (lambda rng: INDICES.astype(float), lambda lists: fit(GOOD, neighbors=(lists, None))),
    "pair of integers": (lambda rng: INDICES.copy(), lambda lists: fit(GOOD, neighbors=(lists, None))),
    "transformer": (matrix, lambda D: fit(GOOD, neighbors=Transformer(D))),
    "transform dense": (table, FITTED["dense"].transform),
    "transform sparse": (table, FITTED["sparse"].transform),
    "transform matrix": (matrix, FITTED["matrix"].transform),
    "label_propagation": (matrix, lambda W: label_propagation(W, LABELS).scores),
    "labels": (lambda rng: LABELS[None, :].astype(float), lambda y: label_propagation(SQUARE, y).scores),
    "spectral_embedding": (matrix, lambda W: spectral_embedding(W, 2).coordinates),
    "wrong_weight": (matrix, lambda W: wrong_weight(W, LABELS)),
    "classes": (lambda rng: LABELS[None, :].astype(float), lambda y: weight_between_classes(SQUARE, y)[1]),
    "relative_l1": (matrix, lambda W: relative_l1(SQUARE, W)),
    "diameter": (matrix, lambda W: diameter(W)),
    "hops": (matrix, lambda W: hops(W, 1)),
    "theta_bounds": (lambda rng: np.sort(matrix(rng), axis=1)[:, 1:], lambda z: theta_bounds(z, 3)[:2]),
    "theta_for_degree": (lambda rng: np.sort(matrix(rng), axis=1)[:, 1:], lambda z: theta_for_degree(z, 3)),
    "solve_one_node": (lambda rng: matrix(rng)[1:2], lambda z: _one_node(z)),
    "edges_of_matrix": (matrix, lambda Z: edges_of_matrix(Z).z),
}


def _one_node(z):
    return solve_one_node(z[0] if isinstance(z, np.ndarray) and z.ndim == 2 and len(z) == 1 else z, 1.0).weights


def is_right(door, answer):
    """Whether an answer can be one: a graph is a graph, and numbers are finite where they must be."""
    if not sp.issparse(answer):
        values, may_miss = np.asarray(answer, dtype=float), door in ("spectral_embedding", "label_propagation", "labels")
        return not np.isinf(values).any() and (may_miss or not np.isnan(values).any())
    sound = answer.indptr[0] == 0 and (np.diff(answer.indptr) >= 0).all() and answer.indptr[-1] == answer.data.size
    inside = answer.indices.size == 0 or 0 <= answer.indices.min() <= answer.indices.max() < answer.shape[1]
    finite = np.isfinite(answer.data).all() and (answer.data > 0).all()
    symmetric = door.startswith("transform ") or abs(answer - answer.T).max() <= 1e-12 * abs(answer).max()
    return bool(sound and inside and finite and symmetric and answer.nnz)


def chosen(door, sound):
    for name, make in cases(sound):
        if zlib.crc32(f"{door} {name}".encode()) % SHARE == 0:
            yield pytest.param(door, name, make, id=f"{door}-{name}".replace(" ", "_"))


ALL = [case for door, (sound, _) in DOORS.items() for case in chosen(door, sound)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("door", "name", "make"), ALL)
def test_a_right_answer_or_a_sentence(door, name, make):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = make(rng)
    except (ValueError, TypeError, OverflowError, AttributeError, IndexError, MemoryError):
        pytest.skip("scipy or numpy does not make this one")
    try:
        answer = DOORS[door][1](given)
    except (ValueError, TypeError):
        return
    assert is_right(door, answer), answer
