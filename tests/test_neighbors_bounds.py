"""Near pairs by bounds against all pairs, and what is built on them: exact lists, and proofs where lists are wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import blobs, relative_l1
from smoothgraph import GraphLearner
from smoothgraph.distances import Points
from smoothgraph.neighbors import exact
from smoothgraph.neighbors.approximate import quick_lists
from smoothgraph.neighbors.bounds import Bounds, Limits
from smoothgraph.neighbors.lists import NeighborLists
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import Threads

THREADS = Threads(2)


def two_far_clusters(n, d, rng):
    """Around any centre, products of float32 keep none of the digits that tell neighbours in these."""
    return rng.integers(-50, 50, size=(n, d)) + 1e5 * (np.arange(n) % 2)[:, None]


TABLES = {
    "blobs": blobs,
    "noise": lambda n, d, rng: rng.random((n, d)),
    "counts with ties": lambda n, d, rng: rng.integers(0, 3, size=(n, d)).astype(float),
    "far clusters": two_far_clusters,
    "one far sample": lambda n, d, rng: np.vstack([rng.normal(size=(n - 1, d)), np.full((1, d), 1e7)]),
    "a line in many dimensions": lambda n, d, rng: rng.normal(size=(n, 1)) * rng.normal(size=(1, d)),
    "constant columns": lambda n, d, rng: np.hstack([rng.normal(size=(n, 1)), np.full((n, d - 1), 7.0)]),
    "tiny": lambda n, d, rng: 1e-15 * rng.normal(size=(n, d)),
    "huge": lambda n, d, rng: 1e12 * rng.normal(size=(n, d)),
}


def squared_distances(X):
    """All squared distances, each in float64 and then in the type of X."""
    X64 = X.astype(np.float64)
    return ((X64[:, None] - X64[None]) ** 2).sum(axis=2).astype(X.dtype)


def counted(X, limits, room=1.0):
    """Which pairs count, from the whole matrix, with limits `room` times as large."""
    near = squared_distances(X) * (limits.scale[:, None] * limits.scale) < room * (limits.own[:, None] + limits.partner)
    np.fill_diagonal(near, False)
    return near


def assert_right(near, X, limits, nodes=slice(None)):
    """All pairs that count were found, and no others; at the limit itself sums in another order may decide otherwise."""
    assert near[nodes][counted(X, limits, 1.0 - 1e-12)[nodes]].all()
    assert not near[nodes][~counted(X, limits, 1.0 + 1e-12)[nodes]].any()


def found(X, limits, nodes=None, numbering=None, threads=THREADS):
    """The same by bounds; pairs that are found at one end only are at that end."""
    near = np.zeros((len(X), len(X)), int)

    def take(i, j, z):
        np.testing.assert_allclose(z, squared_distances(X)[i, j], rtol=4 * np.finfo(X.dtype).eps)
        np.add.at(near, (i, j), 1)

    bounds = Bounds(Points(X), cell_size=12, threads=threads)
    if numbering is not None:
        bounds.number(numbering)
    bounds.near_pairs(limits, take, nodes)
    return near


def some_limits(X, share, spread, rng):
    """Limits and scales that differ from node to node, for which about this share of the pairs counts."""
    z = squared_distances(X).astype(np.float64)
    scale, own = (np.exp(spread * rng.normal(size=len(X))) for _ in range(2))
    own *= 0.5 * np.quantile(z * scale[:, None] * scale / (own[:, None] + own) * 2.0, share)
    return Limits(own, own, scale)


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(sorted(TABLES)),
    st.integers(0, 2**32 - 1),
    st.integers(30, 90),
    st.integers(2, 40),
    st.sampled_from([np.float32, np.float64]),
    st.floats(0.001, 0.3),
    st.floats(0.0, 2.0),
)
def test_every_pair_that_counts_is_found_and_no_other(table, seed, n, d, dtype, share, spread):
    rng = np.random.default_rng(seed)
    X = Points(TABLES[table](n, d, rng).astype(dtype)).X
    limits = some_limits(X, share, spread, rng)
    near = found(X, limits)
    assert near.max() <= 1
    assert_right(near + near.T > 0, X, limits)
    assert not (near & near.T).any(), "each pair is found once"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", sorted(TABLES))
def test_what_is_just_inside_its_limit_is_found(rng, table, dtype):
    """Limits are one step above the distance of one of the neighbours: a bound that rounding makes too large rules it out."""
    for n, d in ((90, 3), (90, 40)):
        X = Points(TABLES[table](n, d, rng).astype(dtype)).X
        z = squared_distances(X).astype(np.float64)
        np.fill_diagonal(z, np.inf)
        for rank in (0, 1, 5, 20, 60):
            chosen = np.argsort(z, axis=1)[:, rank]
            limits = Limits.of_rows(np.nextafter(z[np.arange(n), chosen] * (1.0 + 4.0 * np.finfo(dtype).eps), np.inf))
            near = found(X, limits, np.arange(n, dtype=np.int32))
            assert near[np.arange(n), chosen].all()


@pytest.mark.parametrize("table", sorted(TABLES))
def test_some_nodes_look_for_all_of_theirs(rng, table):
    X = Points(TABLES[table](80, 6, rng).astype(np.float32)).X
    limits = some_limits(X, 0.1, 1.0, rng)._replace(partner=np.zeros(80))
    nodes = np.sort(rng.choice(80, 30, replace=False)).astype(np.int32)
    near = found(X, limits, nodes) > 0
    assert_right(near, X, limits, nodes)
    assert not near[np.setdiff1d(np.arange(80), nodes)].any()


def test_limits_beyond_float32(rng):
    X = blobs(60, 3, rng).astype(np.float32)
    limits = some_limits(X, 0.1, 12.0, rng)
    assert limits.scale.max() / limits.scale.min() > 1e12
    near = found(X, limits)
    assert_right(near + near.T > 0, X, limits)


def test_numbers_of_nodes_are_those_asked_for(rng):
    X = blobs(60, 3, rng)
    limits, row_of = some_limits(X, 0.1, 1.0, rng), rng.permutation(60)
    by_node = Limits(*(values[row_of] for values in limits))
    pairs = []
    bounds = Bounds(Points(X).numbered(Numbering.of(row_of)), cell_size=12, threads=THREADS)
    bounds.near_pairs(by_node, lambda i, j, z: pairs.append((i, j)))
    i, j = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    near = np.zeros((60, 60), bool)
    near[row_of[i], row_of[j]] = near[row_of[j], row_of[i]] = True
    assert_right(near, X, limits)


# --- exact lists ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", sorted(TABLES))
def test_lists_become_exact_however_wrong_they_were(rng, table, dtype):
    X, k = TABLES[table](300, 5, rng).astype(dtype), 8
    wrong = rng.integers(0, 299, size=(300, 12)).astype(np.int32)
    wrong += wrong >= np.arange(300)[:, None]
    distances = Points(X)
    lists, z = exact.clean_all(distances, wrong, 12, "wrong", threads=THREADS)
    lists[:3, k - 2 :], z[:3, k - 2 :] = -1, np.inf  # some are too short
    proven, _ = exact.proof_of(NeighborLists(lists, z, "wrong", exact=False, recall=0.1), distances, k, threads=THREADS)
    expected = squared_distances(X).astype(np.float64) * distances.z_unit**-1
    np.fill_diagonal(expected, np.inf)
    np.testing.assert_allclose(proven.distances[:, :k], np.sort(expected, axis=1)[:, :k], rtol=1e-5)


def test_bounds_and_brute_force_make_the_same_lists(rng, monkeypatch):
    X = np.round(blobs(2000, 20, rng), 1).astype(np.float32)
    brute = exact.search_exact(Points(X), 10, threads=THREADS)
    monkeypatch.setattr(exact, "FEWEST_BOUNDED", 1000)
    monkeypatch.setattr(exact, "WORTH", np.inf)
    bounded = exact.search_exact(Points(X), 10, threads=THREADS)
    assert not bounded.numbering.by_row, "the lists were not made by bounds"
    assert (bounded.name, bounded.exact, bounded.recall) == ("exact", True, 1.0)
    np.testing.assert_array_equal(bounded.by_rows().distances, brute.distances)


def test_the_bits_do_not_depend_on_the_number_of_threads(rng):
    X = blobs(3000, 10, rng).astype(np.float32)
    quick = [quick_lists(Points(X), 10, threads=Threads(count)) for count in (1, 2)]
    one, two = (exact.proof_of(lists, Points(X), 10, threads=Threads(c))[0] for c, lists in zip((1, 2), quick, strict=True))
    np.testing.assert_array_equal(one.indices, two.indices)


# --- proofs ---------------------------------------------------------------------------------------------------------------


def wrong_lists(X, rng, width=24):
    """Lists in which most entries are drawn at random."""
    others = rng.integers(0, len(X) - 1, size=(len(X), width))
    return others + (others >= np.arange(len(X))[:, None])


@pytest.mark.parametrize("locality", [0.0, 1.0])
@pytest.mark.parametrize("connect", [False, True])
def test_the_proven_graph_is_the_optimum_over_all_pairs_whatever_the_lists(rng, locality, connect):
    X = blobs(400, 4, rng)
    options = {"locality": locality, "tol": 1e-10, "duplicates": "keep"}
    theta = GraphLearner(8, neighbors="all", **options).fit(X).theta_
    best = GraphLearner(8, neighbors="all", theta=theta, connect=connect, **options).fit(X)
    lists = wrong_lists(X, rng)
    given = {"neighbors": (lists, np.zeros(lists.shape)), "theta": theta, "connect": connect, **options}
    proven, unproven = (GraphLearner(8, proof=proof, **given).fit(X) for proof in (True, False))
    assert (proven.proven_, unproven.proven_) == (True, False)
    assert proven.n_incomplete_ == 0
    if not connect:  # which bridges there are depends on the allowed edges
        assert relative_l1(proven.graph_, best.graph_) < 1e-6
        assert relative_l1(unproven.graph_, best.graph_) > 1e-2, "the lists were right anyway"
    assert proven.n_components_ == best.n_components_


@pytest.mark.parametrize("model", ["log", "l2"])
def test_a_proof_with_the_wanted_number_of_neighbours(rng, model):
    X = blobs(600, 4, rng)
    lists = wrong_lists(X, rng)
    learner = GraphLearner(8, model=model, neighbors=(lists, np.zeros(lists.shape)), proof=True).fit(X)
    assert learner.proven_
    assert learner.n_neighbors_ == pytest.approx(8, rel=0.01)


def test_what_is_proven_without_asking(rng):
    X = blobs(200, 3, rng)
    assert GraphLearner(5).fit(X).proven_, "exact lists"
    assert not GraphLearner(5, neighbors="approximate").fit(X).proven_
    assert GraphLearner(5, neighbors="approximate", proof=True, metric="cosine").fit(X).proven_
    assert GraphLearner(5, model="knn").fit(X).proven_ is None
    assert not GraphLearner(5, complete=False, oversampling=1).fit(X).proven_


def test_samples_without_bounds_are_searched_exactly(rng):
    import scipy.sparse as sp

    X = sp.random(200, 30, density=0.2, random_state=0, format="csr")
    learner = GraphLearner(5, neighbors="approximate", proof=True).fit(X)
    assert (learner.proven_, learner.neighbors_) == (True, "exact")


@pytest.mark.parametrize(("options", "word"), [({"model": "hard"}, "does not apply"), ({"complete": False}, "complete=True")])
def test_what_a_proof_does_not_go_with(rng, options, word):
    with pytest.raises(ValueError, match=word):
        GraphLearner(5, proof=True, **options).fit(blobs(50, 3, rng))
