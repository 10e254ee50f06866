import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs, candidates_of
from cvx import solve_log_model
from smoothgraph import GraphLearner, _kernels
from smoothgraph.candidates import add_pairs, from_matrix
from smoothgraph.models import log
from smoothgraph.solvers import Problem, Status, nodewise, solve

OPTIONS = {
    "plain": {},
    "max_weight": {"max_weight": 0.3},
    "prior": {"prior_strength": 0.7},
    "prior and max_weight": {"prior_strength": 2.0, "max_weight": 0.25},
}


def problem_of(X, k, theta_times, options):
    """A problem with θ in units of one over the mean distance, and a random prior where the options want one."""
    candidates = candidates_of(X, k)
    options = dict(options)
    if "prior_strength" in options:
        low, high = np.minimum(candidates.nodes, candidates.indices), np.maximum(candidates.nodes, candidates.indices)
        options["prior"] = np.where((low + high) % 3 == 0, 0.4, 0.0)
    return Problem(candidates, theta_times / candidates.z.mean(), **options)


def edges(problem):
    """The allowed edges once each, i < j, with distances and prior, for judges that know nothing of CSR."""
    candidates = problem.candidates
    once = candidates.nodes < candidates.indices
    prior = np.zeros(once.sum()) if problem.prior is None else problem.prior[once]
    return candidates.nodes[once], candidates.indices[once], candidates.z[once].astype(float), prior


def at_edges(W, i, j):
    return np.asarray(W[i, j]).ravel()


def relative_l1(w, reference):
    return np.abs(w - reference).sum() / np.abs(reference).sum()


@pytest.mark.parametrize("solver", ["nodewise", "primal_dual"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("n", "k", "theta_times"), [(12, 4, 1.0), (15, 14, 3.0), (20, 3, 0.2)])
def test_solution_is_that_of_a_general_solver(rng, solver, options, n, k, theta_times):
    problem = problem_of(blobs(n, 3, rng), k, theta_times, options)
    i, j, z, prior = edges(problem)
    solution = solve(problem, solver=solver, tol=1e-13)
    expected = solve_log_model(i, j, z, n, problem.theta, problem.max_weight, prior, problem.prior_strength)
    assert relative_l1(at_edges(solution.weights, i, j), expected) < 1e-6


@pytest.mark.parametrize("solver", ["nodewise", "primal_dual"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_judge_confirms_objective_dual_and_gap(rng, solver, options):
    problem = problem_of(blobs(200, 5, rng), 12, 2.0, options)
    i, j, z, prior = edges(problem)
    solution = solve(problem, solver=solver, tol=1e-7)
    model = {"prior": prior, "prior_strength": problem.prior_strength}
    P = log.objective(at_edges(solution.weights, i, j), i, j, z, problem.theta, problem.n, **model)
    D = log.dual_objective(solution.dual, i, j, z, problem.theta, problem.max_weight, **model)
    assert solution.objective == pytest.approx(P, abs=1e-9 * problem.n)
    assert solution.dual_objective == pytest.approx(D, abs=1e-9 * problem.n)
    assert (P - D) / problem.n + 1e-12 >= 0
    assert solution.gap == pytest.approx((P - D) / problem.n, abs=1e-9)
    assert solution.gap <= 1e-7
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_two_solvers_agree(rng, options):
    problem = problem_of(blobs(500, 6, rng), 15, 1.5, options)
    fast, reference = solve(problem, tol=1e-12), solve(problem, solver="primal_dual", tol=1e-12)
    assert abs(fast.weights - reference.weights).sum() < 1e-5 * reference.weights.sum()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 40), st.floats(0.05, 20.0))
def test_weights_at_most_one_and_gap_bounds_the_error(seed, n, theta_times):
    """Theorem 2 with δ = 1, and strong convexity: Σ(w − w*)² ≤ P(w) − D(λ)."""
    problem = problem_of(blobs(n, 2, np.random.default_rng(seed)), 5, theta_times, {})
    rough, best = solve(problem, tol=1e-2), solve(problem, tol=1e-13)
    assert best.weights.max() <= 1 + 1e-6
    assert (rough.weights - best.weights).power(2).sum() / 2 <= rough.gap * n + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_alpha_and_beta_reduce_to_theta_and_delta(seed, alpha, beta):
    """Proposition 1: the optimality conditions of (α, β) hold at δ·W(θZ, 1, 1)."""
    X = blobs(30, 2, np.random.default_rng(seed))
    candidates = candidates_of(X, 6)
    unit = candidates.z.mean()
    solution = solve(Problem(candidates, 1.0 / (unit * np.sqrt(alpha * beta))), tol=1e-14)
    W = solution.weights * np.sqrt(alpha / beta)
    d = np.asarray(W.sum(axis=1)).ravel()
    i, j, z, _ = edges(Problem(candidates, 1.0))
    w = at_edges(W, i, j)
    slope = 2.0 * z / unit - alpha * (1 / d[i] + 1 / d[j]) + 2.0 * beta * w  # of the objective, as both ends share an edge
    size = np.abs(slope).max() + 1.0
    assert np.all(slope > -1e-5 * size)
    assert np.all(np.abs(slope[w > 0]) < 1e-5 * size)


def test_permuting_the_nodes_permutes_the_weights(rng):
    X = blobs(300, 4, rng)
    order = rng.permutation(300)
    plain = solve(problem_of(X, 10, 2.0, {}), tol=1e-12).weights
    permuted = solve(problem_of(X[order], 10, 2.0, {}), tol=1e-12).weights
    assert abs(plain[order][:, order] - permuted).max() < 1e-6


def big_problem(rng):
    return problem_of(blobs(nodewise.SERIAL + 5_000, 3, rng), 8, 3.0, {})


def test_the_same_bits_whatever_the_number_of_threads(rng):
    problem = big_problem(rng)
    duals = []
    try:
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            duals.append(solve(problem, tol=1e-9).dual)
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    assert numba.config.NUMBA_NUM_THREADS > 1
    np.testing.assert_array_equal(*duals)


def test_blocks_side_by_side_find_what_strict_order_finds(rng, monkeypatch):
    problem = big_problem(rng)
    in_blocks = solve(problem, tol=1e-10)
    monkeypatch.setattr(nodewise, "SERIAL", 10**9)
    in_order = solve(problem, tol=1e-10)
    assert abs(in_blocks.weights - in_order.weights).sum() < 1e-4 * in_order.weights.sum()


def test_nodes_that_move_at_the_same_time_do_not_rock_each_other(rng):
    n, length = 16 * nodewise.LANES * nodewise.WAVES, 8
    apart = n // length  # whole waves: the nodes of a chain i, i + apart, i + 2·apart, … all move at the same time
    i = np.arange(n - apart)
    Z = csr_matrix((rng.uniform(1.0, 30.0, i.size), (i, i + apart)), shape=(n, n))
    Z = Z + Z.T
    in_order = np.arange(n).reshape(length, apart).T.ravel()  # each chain by itself, one node after the other
    assert gap_in_sweep(Z, 20) < 2 * gap_in_sweep(Z[in_order][:, in_order], 20)


def gap_in_sweep(Z, number):
    problem = Problem(from_matrix(Z), 1.0)
    sweeper = nodewise._Sweeper(problem, nodewise.Scratch())
    lam = np.ones(problem.n)
    sweeper.first_round(lam)
    return [sweeper._round(lam, np.arange(problem.n, dtype=np.int32), np.inf) for _ in range(number - 1)][-1]


def test_a_warm_start_is_never_slower(rng):
    problem = problem_of(blobs(1000, 5, rng), 12, 2.0, {})
    cold = solve(problem, tol=1e-8)
    warm = solve(problem, tol=1e-8, lam=cold.dual)
    nearby = solve(Problem(problem.candidates, problem.theta * 1.02), tol=1e-8, lam=cold.dual)
    assert warm.n_iter == 1
    assert nearby.n_iter <= solve(Problem(problem.candidates, problem.theta * 1.02), tol=1e-8).n_iter


@pytest.mark.parametrize("far", [1e3, 1e5, 1e8])
def test_any_start_is_good_enough(rng, far):
    problem = problem_of(blobs(100, 3, rng), 8, 2.0, {})
    best = solve(problem, tol=1e-10)
    for lam in (np.full(100, far), np.full(100, 1 / far), rng.lognormal(sigma=5, size=100)):
        assert abs(solve(problem, tol=1e-10, lam=lam).weights - best.weights).max() < 1e-4


@pytest.mark.parametrize(("longest", "theta"), [(100.0, 1.0), (300.0, 1.0), (1000.0, 1.0)])
def test_a_chain_of_far_points_is_solved_at_once(rng, monkeypatch, longest, theta):
    """Along such a chain the dual is almost flat, with corners where edges get weight: sweeps alone only creep."""
    problem = Problem(candidates_of(np.cumsum(rng.uniform(1.0, longest, size=200))[:, None], 2), theta)
    assert solve(problem, tol=1e-6).status is Status.CONVERGED
    monkeypatch.setattr(nodewise.interior, "move", lambda problem, lam, nodes, tol: lam)
    with pytest.warns(ConvergenceWarning):
        assert solve(problem, tol=1e-6).gap > 1e-3


@pytest.mark.parametrize("max_weight", [np.inf, 0.1])
def test_many_far_outliers(rng, max_weight):
    X = np.concatenate([rng.normal(size=(400, 5)), 1000.0 * rng.normal(size=(60, 5))])
    problem = problem_of(X, 10, 1.0, {"max_weight": max_weight})
    solution = solve(problem, tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert np.diff(solution.weights.indptr).min() > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_heavy_tails(monkeypatch, seed):
    """Groups of outliers far from each other, at all scales: the more leaps are no help, the more nodes move at once."""
    monkeypatch.setattr(nodewise, "DIRECT", 1000)
    learner = GraphLearner(5).fit(np.random.default_rng(seed).lognormal(sigma=2.5, size=(1500, 4)))
    x = learner.graph_ @ np.ones(1500) * learner.solution_.dual
    assert np.mean(x - 1.0 - np.log(x)) <= 1e-6
    assert learner.n_incomplete_ == 0
    monkeypatch.setattr(nodewise, "DOUBLINGS", 0)
    with pytest.warns(ConvergenceWarning, match="no edge yet"):
        GraphLearner(5).fit(np.random.default_rng(seed).lognormal(sigma=2.5, size=(1500, 4)))


@pytest.mark.parametrize("max_weight", [0.05, 0.2, 0.5])
def test_weights_at_their_upper_bound_among_outliers(rng, max_weight):
    """Some nodes have only full edges, others only tiny ones: both are in what is moved at once."""
    problem = Problem(candidates_of(blobs(400, 3, rng), 18), 2.1, max_weight)
    solution = solve(problem, tol=1e-10)
    assert solution.status is Status.CONVERGED
    assert np.mean(solution.weights.data == max_weight) > 0.03
    assert solution.weights.data.min() < 0.01 * max_weight


@pytest.mark.parametrize("solver", ["nodewise", "primal_dual"])
def test_a_missed_tolerance_is_said(rng, solver):
    problem = problem_of(blobs(200, 4, rng), 10, 2.0, {})
    with pytest.warns(ConvergenceWarning, match="gap"):
        solution = solve(problem, solver=solver, tol=1e-12, max_iter=1)
    assert solution.status is Status.MAX_ITER
    assert solution.gap > 1e-12


@pytest.mark.parametrize("far", [1e3, 1e5, 1e6, 1e8])
def test_weights_of_a_far_outlier_have_all_their_digits(rng, far):
    """Its λ is about 2θz, its degree 1/λ: their difference is lost in float64 unless λ is kept apart from its base."""
    X = np.concatenate([rng.normal(size=(50, 2)), [[far, 0.0]]])
    problem = Problem(candidates_of(X, 6), 1.0)
    solution = solve(problem, tol=1e-10)
    assert solution.status is Status.CONVERGED
    degree = np.asarray(solution.weights.sum(axis=1)).ravel()
    assert degree[50] == pytest.approx(1.0 / solution.dual[50], rel=1e-3)
    assert degree[50] == pytest.approx(0.5 / min(far**2, 1e10), rel=1e-2)
    inner = solve(Problem(candidates_of(X[:50], 6), 1.0), tol=1e-10)  # what the outlier's 1e-6 or less hardly changes
    assert abs(solution.weights[:50, :50] - inner.weights).max() < 1e-4


def test_an_unknown_solver_is_named(rng):
    with pytest.raises(ValueError, match="'simplex'"):
        solve(problem_of(blobs(10, 2, rng), 3, 1.0, {}), solver="simplex")


def test_who_counts_edges_and_who_lists_them_agree_to_the_last_bit():
    """Pairs whose (λᵢ+λⱼ)/2 is θz or a neighbour of it among the floats: a fused product would see another sign."""
    rng, n, theta = np.random.default_rng(0), 40_000, 0.3
    z = np.repeat(rng.random(n // 2), 2)
    lam = theta * z
    for towards, moved in ((np.inf, rng.random(n // 2) < 0.3), (0.0, rng.random(n // 2) < 0.3)):
        lam = np.where(np.repeat(moved, 2), np.nextafter(lam, towards), lam)
    begin, pairs = np.arange(n + 1, dtype=np.int64), (np.arange(n) ^ 1).astype(np.int32)
    expected = lam > theta * z
    assert 0 < expected.sum() < n
    degree, active, _ = _kernels.evaluate(begin[:-1], begin[1:], pairs, z, theta, np.inf, np.zeros(n), lam)
    np.testing.assert_array_equal(active, expected)
    np.testing.assert_array_equal(degree > 0.0, expected)
    indptr, indices, w = _kernels.weighted_edges(begin[:-1], begin[1:], pairs, z, theta, np.inf, lam, np.inf)
    np.testing.assert_array_equal(np.diff(indptr), expected)
    np.testing.assert_array_equal(indices, pairs[expected])
    assert w.min() > 0.0
    none_before = np.zeros(n + 1, np.int64)
    np.testing.assert_array_equal(_kernels.weight_is_new(none_before, begin, pairs, z, theta, np.inf, lam), expected)


def test_who_is_mixed_is_known_after_edges_came_in(rng):
    """A node that came to have a neighbour in a block beside its own and is not said to be mixed would race with it."""
    n, shift = 3000, 2
    edges, scratch = candidates_of(rng.normal(size=(n, 2)), 5), nodewise.Scratch()
    before = scratch.mixed(edges.indptr, edges.indices, shift).copy()
    np.testing.assert_array_equal(before, _kernels.mixed_rows(edges.indptr, edges.indices, nodewise.WAVES, shift))
    i, j = rng.integers(0, n // 2, 500), rng.integers(n // 2, n, 500)
    grown = add_pairs(edges, i, j, np.ones(500))
    now = scratch.mixed(grown.indptr, grown.indices, shift)
    mixed = _kernels.mixed_rows(grown.indptr, grown.indices, nodewise.WAVES, shift)
    assert np.any(mixed & ~before)
    assert np.all(now[mixed])
    assert np.count_nonzero(now & ~before) <= 1000


def test_a_change_at_few_nodes_that_spreads_to_many_is_solved_for(rng, monkeypatch):
    """From the optimum, weight given to some nodes: sweeps begin over all edges and end over live ones, with no leap."""
    candidates = candidates_of(rng.normal(size=(6000, 5)), 10)
    theta, fixed, marks = 2.0 / candidates.z.mean(), np.zeros(6000), np.zeros(6000, np.bool_)
    known = nodewise.ascend(Problem(candidates, theta), 1e-7, 1000)
    marks[::7] = True
    fixed[marks] = 0.3
    problem, chosen = Problem(candidates, theta, fixed=fixed), []
    reference = nodewise.ascend(problem, 1e-12, 1000)
    choose = nodewise._Sweeper._choose_live
    monkeypatch.setattr(nodewise._Sweeper, "_choose_live", lambda self, lam: chosen.append(1) or choose(self, lam))
    monkeypatch.setattr(nodewise, "_leap", None)
    point = nodewise.ascend(problem, 1e-7, 1000, known.lam, known=known, changed=marks)
    assert chosen
    assert point.gap <= 1e-7
    assert relative_l1(point.lam, reference.lam) < 1e-3
