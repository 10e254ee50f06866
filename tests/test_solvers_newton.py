"""Newton's method for the ℓ2 model: where it begins, from where it may begin, and its bits."""

import numpy as np

from conftest import blobs, edges_of
from smoothgraph.models import L2Problem
from smoothgraph.parallel import Threads
from smoothgraph.solvers import solve
from smoothgraph.solvers.newton import Newton


def test_the_start_leaves_newtons_method_little_to_do(rng):
    """The gap where it begins is some hundredths of what it is with the best λ that is the same for all."""
    edges = edges_of(blobs(3000, 4, rng), 30)
    problem, newton = L2Problem(edges, 4.0 / float(np.median(edges.z))), Newton()
    uniform = min(newton.point_at(problem, np.full(3000, level)).gap for level in np.linspace(0.5, 4.0, 100))
    start = newton.ascend(problem, 1e-12, 0)
    assert start.n_iter == 0
    assert start.gap < 0.05 * uniform


def test_a_start_that_leaves_no_weight_is_mended(rng):
    """λ of a θ a hundred times as small: no edge would have weight."""
    edges = edges_of(blobs(200, 3, rng), 10)
    near = solve(L2Problem(edges, 0.01), tol=1e-10)
    far = L2Problem(edges, 1.0)
    cold, warm = solve(far, tol=1e-12), solve(far, tol=1e-12, lam=near.dual - near.dual.max())
    assert abs(cold.weights - warm.weights).sum() < 1e-6 * 200


def test_every_step_makes_the_dual_rise(rng):
    edges = edges_of(blobs(1000, 3, rng), 12)
    problem, newton = L2Problem(edges, 1.0), Newton()
    points = [newton.ascend(problem, 1e-14, steps) for steps in range(6)]
    values = [newton.finish(problem, point, np.inf, 0.0).dual_objective for point in points]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_the_same_bits_for_any_number_of_threads(rng):
    edges, fixed = edges_of(blobs(9000, 3, rng), 10), rng.choice([0.0, 0.3], size=9000)
    problem = L2Problem(edges, 0.5, fixed)
    one, *others = (Newton(Threads(count)).ascend(problem, 1e-10, 100) for count in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(one.lam, other.lam)
        np.testing.assert_array_equal(one.degree, other.degree)
        assert one.gap == other.gap
