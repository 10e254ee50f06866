"""θ for a wanted degree: reached from any start, kept where it is given, given up where no θ has it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import asked_for, blobs, edges_of, paper_learner, support_of
from smoothgraph.fit.search_theta import MAX_SOLVES, search_theta
from smoothgraph.fit.state import Bridges, mean_neighbors
from smoothgraph.models import L2, LogProblem
from smoothgraph.solvers import solve

NO_BRIDGES = Bridges()


def search(X, width, theta, bridges=NO_BRIDGES, gap=1e-6, degree_tol=0.006, model=None, **asked):
    """The problem at the θ found, and its optimum."""
    options = {"bridges": bridges, "gap": gap, "degree_tol": degree_tol}
    return search_theta(asked_for(X, model, **asked), support_of(X, width), theta, **options)[:2]


@pytest.mark.parametrize("start", [1e-6, 1e-2, 1.0, 1e2, 1e6])
@pytest.mark.parametrize("model", [None, L2()])
def test_any_start_ends_at_the_same_degree(rng, start, model):
    X = blobs(600, 3, rng)
    problem, point = search(X, 30, start, model=model, degree=7)
    assert mean_neighbors(point, NO_BRIDGES) == pytest.approx(7, rel=0.006)
    assert point.gap <= 1e-6
    assert problem.theta == pytest.approx(search(X, 30, 1.0, model=model, degree=7)[0].theta, rel=0.02)


def test_it_is_a_solve_where_theta_is_given(rng):
    X = blobs(300, 3, rng)
    problem, point = search(X, 12, 0.7, gap=1e-9)
    assert problem.theta == 0.7
    reference = solve(LogProblem(edges_of(X, 12), 0.7), tol=1e-9)
    np.testing.assert_array_equal(point.lam, reference.dual)


def test_more_neighbours_need_a_smaller_theta(rng):
    X = blobs(500, 3, rng)
    thetas = [search(X, 40, 1.0, degree=degree)[0].theta for degree in (2, 4, 8, 16)]
    assert thetas == sorted(thetas, reverse=True)


def test_scaling_the_distances_scales_theta_back(rng):
    X = blobs(500, 3, rng)
    one, ten = (search(c * X, 20, theta, degree=5)[0].theta for c, theta in ((1.0, 1.0), (10.0, 0.01)))
    assert 100 * ten == pytest.approx(one, rel=1e-6)


def test_bridges_count_as_neighbours(rng):
    X = blobs(400, 3, rng)
    i, j = np.arange(0, 100, dtype=np.int32), np.arange(200, 300, dtype=np.int32)
    bridges = Bridges(i, j, np.full(100, 0.05))
    _, point = search(X, 20, 1.0, bridges, degree=5)
    assert point.n_neighbors.mean() + 2 * 100 / 400 == pytest.approx(5, rel=0.006)
    assert mean_neighbors(point, bridges) == pytest.approx(5, rel=0.006)


class Counting:
    """A solver that counts how often it is asked: once per θ tried."""

    def __init__(self, solver):
        self.solver, self.solves = solver, 0

    def ascend(self, *arguments):
        self.solves += 1
        return self.solver.ascend(*arguments)


def test_a_wider_tolerance_takes_fewer_solves(rng):
    X = blobs(600, 3, rng)

    def solves(degree_tol):
        asked = asked_for(X, degree=7)
        asked = replace(asked, solver=Counting(asked.solver))
        search_theta(asked, support_of(X, 30), 0.1, bridges=NO_BRIDGES, gap=1e-6, degree_tol=degree_tol)
        return asked.solver.solves

    assert 1 <= solves(0.5) < solves(0.002) <= 15


def test_from_the_optimum_at_the_right_theta_no_other_is_tried(rng):
    X = blobs(600, 3, rng)
    problem, point = search(X, 30, 1.0, degree=7)
    asked = asked_for(X, degree=7)
    options = {"bridges": NO_BRIDGES, "gap": 1e-6, "degree_tol": 0.006}
    again, near, _ = search_theta(asked, support_of(X, 30), problem.theta, start=point, **options)
    assert again.theta == problem.theta
    assert near.n_iter <= 2


def test_a_degree_that_no_theta_has_ends_at_the_nearest(rng):
    """Four corners of a square: two neighbours each, or three, but nothing in between."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    _, point = search(X, 3, 1.0, degree=2.2)
    assert mean_neighbors(point, NO_BRIDGES) == 2.0
    _, point = search(X, 3, 1.0, degree=2.8)
    assert mean_neighbors(point, NO_BRIDGES) == 3.0


# --- jumps ----------------------------------------------------------------------------------------------------------------


def lattice(side, dimensions):
    return np.stack(np.meshgrid(*[np.arange(float(side))] * dimensions), axis=-1).reshape(-1, dimensions)


TIED = {  # samples with equal distances, and a number of neighbours that no graph of them has
    "all equally far": (np.eye(64), 5),
    "all equally far, more wanted": (np.eye(64), 20),
    "square": (lattice(2, 2), 1),
    "cube": (lattice(2, 3), 4),
    "cube, more wanted": (lattice(2, 3), 5),
    "grid, fewest": (lattice(8, 2), 3),
    "grid": (lattice(8, 2), 6),
}


@pytest.mark.parametrize(("X", "degree"), TIED.values(), ids=TIED)
def test_the_degrees_that_a_jump_names_are_those_there_are(X, degree):
    """Solved at many θ over all pairs: no graph lies between them.

    The graph has one of them. At the θ of the jump itself, where weights are within the gap of 0, it may be one that no other
    θ has.
    """
    with pytest.warns(ConvergenceWarning, match=f"Wanted {degree} neighbours per node") as caught:
        learner = paper_learner(degree).fit(X)
    (text,) = [str(warning.message) for warning in caught]
    named = [float(number.rstrip(".")) for number in re.findall(r"[\d.]+", text.split(":")[1])]
    below, above = named if "between" in text else (-np.inf, named[0]) if "fewest" in text else (named[0], np.inf)
    assert below < degree < above
    assert any(learner.n_neighbors_ == pytest.approx(number, abs=1e-3) for number in named)
    near = learner.theta_ * np.exp(np.linspace(-0.02, 0.02, 41))
    far = learner.theta_ * np.geomspace(1e-3, 1e3, 25)
    solved = [paper_learner(degree, theta=theta, neighbors="all", tol=1e-10).fit(X) for theta in np.sort([*near, *far])]
    degrees = np.array([graph.n_neighbors_ for graph in solved])
    assert not np.any((degrees > below + 1e-3) & (degrees < above - 1e-3))
    if "between" not in text:
        assert np.abs(degrees - named[0]).min() < 1e-3


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("X", "degree"), TIED.values(), ids=TIED)
def test_a_jump_is_found_in_few_solves(X, degree, start):
    asked = asked_for(X, degree=degree, theta_range=(1e-4, 1e4))
    asked = replace(asked, solver=Counting(asked.solver))
    options = {"bridges": NO_BRIDGES, "gap": 1e-6, "degree_tol": 0.006}
    _, point, jump = search_theta(asked, support_of(X, len(X) - 1), start, **options)
    assert asked.solver.solves < MAX_SOLVES == 40
    reached = mean_neighbors(point, NO_BRIDGES)
    if jump is None:  # at the θ of the jump itself some weights are within the gap of 0, on either side of it
        assert reached == pytest.approx(degree, rel=0.006)
        return
    assert reached in (jump.below, jump.above)
    assert jump.below is None or jump.below < degree
    assert jump.above is None or jump.above > degree


def test_a_degree_that_is_reached_is_no_jump(rng):
    X = blobs(600, 3, rng)
    options = {"bridges": NO_BRIDGES, "gap": 1e-6, "degree_tol": 0.006}
    assert search_theta(asked_for(X, degree=7), support_of(X, 30), 1.0, **options)[2] is None


def test_more_neighbours_than_the_allowed_edges_give_are_a_jump_at_the_end(rng):
    X = blobs(100, 3, rng)
    asked = asked_for(X, degree=50, theta_range=(1e-6, 1e3))
    _, point, jump = search_theta(asked, support_of(X, 5), 1.0, bridges=NO_BRIDGES, gap=1e-6, degree_tol=0.006)
    assert jump.above is None
    assert str(jump) == f"the most that any θ gives are about {mean_neighbors(point, NO_BRIDGES):.4g}"
