"""Linear systems of a graph against scipy's direct solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from conftest import blobs
from smoothgraph.parallel import Threads
from smoothgraph.uses.systems import factorise


@pytest.fixture
def system(rng):
    """A graph of 2,000 nodes, and d: its row sums, and a little more at some nodes."""
    W = kneighbors_graph(blobs(2000, 5, rng), 8)
    W = sp.csr_matrix(W.maximum(W.T)).astype(float)
    return W, np.asarray(W.sum(axis=1)).ravel() + np.where(rng.random(2000) < 0.05, 0.5, 1e-3)


@pytest.mark.parametrize("columns", [1, 2, 5, 6, 13])
def test_it_is_the_solution_that_a_direct_solver_finds(system, columns, rng):
    W, d = system
    factored, right = factorise(W, d), rng.normal(size=(2000, columns))
    x = np.zeros_like(right)
    rounds, residual = factored.solve(right[factored.order], x, 1e-12, 1000, threads=Threads())
    matrix = sp.csc_matrix(sp.diags(d) - W)
    expected = sp.linalg.spsolve(matrix, right).reshape(right.shape)
    np.testing.assert_allclose(x, expected[factored.order], rtol=1e-7, atol=1e-7)
    left = np.abs(matrix @ expected - right).max()
    assert left < 1e-9
    assert residual <= 1e-12
    assert 0 < rounds < 200


def test_the_bits_do_not_depend_on_the_number_of_threads(system, rng):
    factored, right = factorise(*system), rng.normal(size=(2000, 12))
    results = []
    for count in (1, 2, 5):
        x = np.zeros_like(right)
        results.append((x, *factored.solve(right, x, 1e-6, 1000, threads=Threads(count))))
    for x, rounds, residual in results[1:]:
        np.testing.assert_array_equal(x, results[0][0])
        assert (rounds, residual) == results[0][1:]


def test_a_solve_goes_on_from_where_it_is(system, rng):
    factored, right = factorise(*system), rng.normal(size=(2000, 2))
    x, threads = np.zeros_like(right), Threads()
    first = factored.solve(right, x, 1e-4, 1000, threads=threads)
    second = factored.solve(right, x, 1e-8, 1000, threads=threads)
    assert first[1] > second[1]
    assert factored.solve(right, x, 1e-8, 1000, threads=threads) == (0, pytest.approx(second[1], rel=0.5))
    assert factored.solve(right, np.zeros_like(right), 1e-8, 3, threads=threads)[0] == 3


def test_a_mesh_spreads_less_than_a_graph_in_many_dimensions(rng):
    grid = kneighbors_graph(np.indices((30, 30)).reshape(2, -1).T, 4)
    many = kneighbors_graph(rng.normal(size=(900, 8)), 8)
    spread = [factorise(sp.csr_matrix(W.maximum(W.T)), np.full(900, 1e3)).spread for W in (grid, many)]
    assert spread[0] < 9.0 < spread[1]
