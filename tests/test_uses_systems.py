"""Linear systems of a graph against scipy's direct solver."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from conftest import blobs
from smoothgraph._kernels.systems import ROWS_PER_BLOCK
from smoothgraph.parallel import Threads
from smoothgraph.uses.systems import multilevel


def neighbours(n, rng):
    W = kneighbors_graph(blobs(n, 5, rng), 8)
    return sp.csr_matrix(W.maximum(W.T)).astype(float)


@pytest.fixture
def system(rng):
    """A graph of 2,000 nodes, and what the diagonal has more than its row sums: a little, and more at some nodes."""
    return neighbours(2000, rng), np.where(rng.random(2000) < 0.05, 0.5, 1e-3)


def matrix(W, excess):
    return sp.csc_matrix(sp.diags(np.asarray(W.sum(axis=1)).ravel() + excess) - W)


@pytest.mark.parametrize("columns", [1, 2, 4, 6, 13])
def test_it_is_the_solution_that_a_direct_solver_finds(system, columns, rng):
    levels, right = multilevel(*system, threads=Threads()), rng.normal(size=(2000, columns))
    x = np.zeros_like(right)
    rounds, residual = levels.solve(right[levels.order], x, 1e-12, 1000)
    expected = sp.linalg.spsolve(matrix(*system), right).reshape(right.shape)
    np.testing.assert_allclose(x, expected[levels.order], rtol=1e-7, atol=1e-7)
    left = np.abs(matrix(*system) @ expected - right).max()
    assert left < 1e-9
    assert residual <= 1e-12
    assert 0 < rounds < 60


def test_the_bits_do_not_depend_on_the_number_of_threads(rng):
    n = 3 * ROWS_PER_BLOCK + 17  # several blocks, so that threads have something to share
    W, right = neighbours(n, rng), rng.normal(size=(n, 6))
    results = []
    for count in (1, 2, 5):
        x = np.zeros_like(right)
        levels = multilevel(W, np.full(n, 1e-3), threads=Threads(count))
        results.append((x, levels.order, *levels.solve(right, x, 1e-6, 1000)))
    for x, order, rounds, residual in results[1:]:
        np.testing.assert_array_equal(x, results[0][0])
        np.testing.assert_array_equal(order, results[0][1])
        assert (rounds, residual) == results[0][2:]


def test_a_solve_goes_on_from_where_it_is(system, rng):
    levels, right = multilevel(*system, threads=Threads()), rng.normal(size=(2000, 2))
    x = np.zeros_like(right)
    first = levels.solve(right, x, 1e-4, 1000)
    second = levels.solve(right, x, 1e-8, 1000)
    assert first[1] > second[1]
    assert levels.solve(right, x, 1e-8, 1000) == (0, pytest.approx(second[1], rel=0.5))
    assert levels.solve(right, np.zeros_like(right), 1e-8, 3)[0] == 3


@pytest.mark.parametrize("kind", ["blobs", "star", "path", "components"])
def test_a_cycle_is_symmetric_and_positive_definite(kind, rng):
    """Conjugate gradients and LOBPCG need this of a preconditioner. Here it is for matrices of several kinds, as a whole."""
    n = 120
    graphs = {
        "blobs": neighbours(n, rng),
        "star": sp.coo_matrix((rng.random(n - 1), (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n)),
        "path": sp.diags([10.0 ** -(np.arange(n - 1) % 7)], [1], shape=(n, n)),
        "components": sp.block_diag([np.triu(rng.random((5, 5)), 1)] * 20 + [np.zeros((20, 20))]),
    }
    W = sp.csr_matrix(graphs[kind])
    W = sp.csr_matrix(W.maximum(W.T))
    levels = multilevel(W, np.full(n, 0.01), threads=Threads())
    inverse = np.hstack([levels.cycle(np.eye(n)[:, k : k + 4].copy()).copy() for k in range(0, n, 4)])
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-9, atol=1e-9 * np.abs(inverse).max())
    A = matrix(W, np.full(n, 0.01)).toarray()[levels.order][:, levels.order]
    solved = scipy.linalg.eigh(inverse, np.linalg.inv(A), eigvals_only=True)
    assert solved.min() > 0.0
    assert solved.max() < 1.0 + 1e-9  # a cycle never goes too far: what is left of an error is not less than 0


def test_a_star_is_one_group():
    """Leaves have one neighbour: however many there are, they join its group, and one round solves the system."""
    n = 5000
    star = sp.coo_matrix((np.ones(n - 1), (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n))
    levels = multilevel(sp.csr_matrix(star + star.T), np.full(n, 1e-3), threads=Threads())
    assert len(levels.levels) == 2
    x = np.zeros((n, 1))
    assert levels.solve(np.ones((n, 1)), x, 1e-10, 100)[0] < 10
    np.testing.assert_allclose(x, 1e3, rtol=1e-6)


def test_a_mesh_spreads_less_than_a_graph_in_many_dimensions(rng):
    grid = kneighbors_graph(np.indices((30, 30)).reshape(2, -1).T, 4)
    many = kneighbors_graph(rng.normal(size=(900, 8)), 8)
    spread = [multilevel(sp.csr_matrix(W.maximum(W.T)), np.ones(900), threads=Threads()).spread for W in (grid, many)]
    assert spread[0] < 9.0 < spread[1]
