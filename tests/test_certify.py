import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import blobs, candidates_of, lists_of
from cvx import all_pairs
from smoothgraph import certify
from smoothgraph.candidates import Candidates
from smoothgraph.certify import Support, failing_nodes, grow
from smoothgraph.models import log
from smoothgraph.samples import Samples
from smoothgraph.solvers import Problem, solve


def all_pairs_solution(X, theta):
    return solve(Problem(candidates_of(X, len(X) - 1), theta), tol=1e-12)


def outside(X, candidates, stretch=None):
    """(i, j, z) of all pairs outside the support."""
    i, j, z = all_pairs(X)
    inside = set(zip(candidates.nodes.tolist(), candidates.indices.tolist(), strict=True))
    left_out = np.array([pair not in inside for pair in zip(i.tolist(), j.tolist(), strict=True)])
    z = z if stretch is None else z * stretch[i] * stretch[j]
    return i[left_out], j[left_out], z[left_out]


def violated(X, theta, lam, candidates, stretch=None):
    """Pairs outside the support that the dual gives weight."""
    i, j, z = outside(X, candidates, stretch)
    heavy = log.best_weights(lam, i, j, z, theta) > 0
    return list(zip(i[heavy].tolist(), j[heavy].tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.floats(0.3, 30.0), st.floats(-1.0, 1.0))
def test_without_failing_nodes_no_pair_outside_has_weight(seed, k, theta_times, noise):
    """True of any λ, not of the optimum alone; and every pair with weight that was left out has a failing end."""
    rng = np.random.default_rng(seed)
    X = blobs(40, 2, rng)
    candidates = candidates_of(X, k)
    theta = theta_times / candidates.z.mean()
    lam = solve(Problem(candidates, theta), tol=1e-8).dual * np.exp(noise * rng.normal(size=40))
    failing = set(failing_nodes(Support(candidates, k), theta, lam).tolist())
    assert all(i in failing or j in failing for i, j in violated(X, theta, lam, candidates))


def test_growing_ends_at_the_solution_over_all_pairs(rng):
    X = blobs(400, 3, rng)
    samples = Samples(X)
    candidates = candidates_of(X, 6)
    theta = 2.0 / candidates.z.mean()
    support = Support(candidates, 6)
    solution = solve(Problem(candidates, theta), tol=1e-10)
    assert violated(X, theta, solution.dual, candidates), "the test needs a support that is too small"
    for _ in range(15):
        failing = failing_nodes(support, theta, solution.dual)
        if not failing.size:
            break
        support = grow(support, samples, failing, theta, solution.dual, exact=True)
        solution = solve(Problem(support.candidates, theta), tol=1e-10, lam=solution.dual)
    assert not failing.size
    assert not violated(X, theta, solution.dual, support.candidates)
    reference = all_pairs_solution(X, theta)
    assert abs(solution.weights - reference.weights).sum() < 1e-4 * reference.weights.sum()
    assert support.candidates.n_edges < 400 * 399 / 2


def test_extended_lists_are_almost_those_of_a_search(rng):
    X = blobs(2000, 4, rng)
    nodes = np.arange(0, 2000, 7, dtype=np.int32)
    grown = certify._extend(Support(candidates_of(X, 15), 15), Samples(X), nodes, 1.0, np.full(2000, np.inf))
    true_reach = lists_of(X, 60).reach[nodes]
    assert grown.extensions == 1
    assert np.median(grown.candidates.reach[nodes] / true_reach) < 1.05  # two hops miss a few of the 60 nearest
    assert (grown.candidates.reach[nodes] >= true_reach).all()


def test_an_extension_lets_in_what_the_certificate_needs_and_no_more(rng):
    """A cloud in which two hops lead from everybody to everybody, so that the longer lists are exact."""
    X = rng.normal(size=(120, 2))
    candidates = candidates_of(X, 60)
    nodes = np.arange(0, 120, 2, dtype=np.int32)
    before, lam = candidates.reach.copy(), rng.uniform(1.0, 1.5, size=120) * candidates.reach  # none is certified at θ = 1
    known = set(zip(candidates.nodes.tolist(), candidates.indices.tolist(), strict=True))
    grown = certify._extend(Support(candidates, 60), Samples(X), nodes, 1.0, lam).candidates
    Z = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    allowed = set(zip(grown.nodes.tolist(), grown.indices.tolist(), strict=True))
    assert (grown.reach[nodes] > before[nodes]).all()
    assert (grown.reach <= np.maximum(before, certify.SLACK * lam)).all()
    for i in nodes.tolist():
        outside = [j for j in range(120) if j != i and (i, j) not in allowed]
        assert all(Z[i, j] >= grown.reach[i] * (1 - 1e-12) for j in outside)
    assert all(min(Z[i, j] - grown.reach[i], Z[i, j] - grown.reach[j]) <= 1e-9 for i, j in allowed - known)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.3, 10.0), st.floats(0.0, 0.5), st.booleans())
def test_after_comparisons_too_pairs_left_out_have_a_failing_end(seed, k, theta_times, noise, stretched):
    """Whoever is failing is compared, λ moves, and again: each time all pairs are looked at."""
    rng = np.random.default_rng(seed)
    X = blobs(40, 2, rng)
    samples, candidates = Samples(X), candidates_of(X, k)
    stretch = np.exp(0.3 * rng.normal(size=40)) if stretched else None
    theta = theta_times / candidates.z.mean()
    lam = solve(Problem(candidates, theta), tol=1e-8).dual
    support = Support(candidates, k, stretch)
    for _ in range(4):
        failing = failing_nodes(support, theta, lam)
        support = grow(support, samples, failing, theta, lam, exact=True)
        assert not failing_nodes(support, theta, lam).size
        if support.comparison is not None:
            done, limits = support.comparison
            i, j, z = outside(X, support.candidates, stretch)
            assert (z >= (limits[i] + limits[j]) * (1 - 1e-9))[done[i] | done[j]].all()
        lam = lam * np.exp(noise * rng.normal(size=40))
        failing = set(failing_nodes(support, theta, lam).tolist())
        assert all(i in failing or j in failing for i, j in violated(X, theta, lam, support.candidates, stretch))


def test_a_comparison_counts_as_long_as_lambda_is_within_its_slack(rng):
    X = blobs(300, 3, rng)
    samples, candidates = Samples(X), candidates_of(X, 4)
    theta = 2.0 / candidates.z.mean()
    lam = solve(Problem(candidates, theta), tol=1e-10).dual
    failing = failing_nodes(Support(candidates, 4), theta, lam)
    compared = grow(Support(candidates, 4), samples, failing, theta, lam, exact=True)
    assert failing_nodes(compared, theta, lam).size == 0
    assert (
        failing_nodes(compared, theta, lam * 1.05).size
        == np.setdiff1d(failing_nodes(Support(candidates, 4), theta, lam * 1.05), failing).size
    )
    assert set(failing) <= set(failing_nodes(compared, theta, lam * 1.2))
    risen = lam.copy()
    risen[17] *= 1.2
    assert failing_nodes(compared, theta, risen).tolist() == [17], "one that rises makes no others fail"


def test_to_meet_who_was_compared_is_not_to_be_compared():
    """Sample 2 rises and reaches far enough, then not: the pair (2, 3) is in nobody's reach and has weight."""
    X = np.array([[100.0], [101.0], [0.0], [1.01]])
    edges = Candidates(np.array([0, 1, 2, 2, 2]), np.array([1, 0], np.int32), np.ones(2), np.array([0.1, 9.0, 1.0, 1.0]))
    support, lam = Support(edges, 1), np.array([1.0, 1.0, 0.5, 1.0])
    for risen in (0.5, 1.0):
        lam[2] = risen
        failing = failing_nodes(support, 1.0, lam)
        assert failing.tolist() == [0 if risen == 0.5 else 2]
        support = grow(support, Samples(X), failing, 1.0, lam, exact=True)
        assert not failing_nodes(support, 1.0, lam).size
    lam[2] = 1.09
    assert violated(X, 1.0, lam, support.candidates) == [(2, 3)]
    assert failing_nodes(support, 1.0, lam).tolist() == [2]


def test_groups_of_duplicates_end_the_growth_instead_of_the_memory(rng, monkeypatch):
    monkeypatch.setattr(certify, "PAIRS_PER_NODE", 2)
    monkeypatch.setattr(certify, "PAIRS", 0)
    X = np.repeat(rng.normal(size=(4, 2)), 50, axis=0)
    candidates = candidates_of(X, 5)
    lam = solve(Problem(candidates, 1.0), tol=1e-8).dual
    failing = failing_nodes(Support(candidates, 5), 1.0, lam)
    assert failing.size == 200
    assert grow(Support(candidates, 5), Samples(X), failing, 1.0, lam, exact=True).exhausted
