"""Which way to search is taken, and what is said of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from conftest import blobs
from smoothgraph.distances import DistanceMatrix, Points
from smoothgraph.neighbors import EXACT_WORK, find_neighbors
from smoothgraph.parallel import Threads

THREADS = Threads(2)


class Stop(Exception):  # noqa: N818
    """Raised in place of a search, with what was said before it."""


def said_before(distances, k, neighbors):
    def stop(text):
        raise Stop(text)

    with pytest.raises(Stop) as stopped:
        find_neighbors(distances, k, neighbors, threads=THREADS, say=stop)
    return str(stopped.value)


class Size:
    """As much of distances as the choice of a search looks at."""

    can_search = True

    def __init__(self, n, n_features, has_centres=True):
        self.n, self.n_features, self.has_centres = n, n_features, has_centres


def test_auto_goes_by_the_amount_of_work():
    n_even = int(np.sqrt(EXACT_WORK / (100 + 60)))
    assert "100 features: exact search, 7 " in said_before(Size(n_even - 1, 100), 7, "auto")
    assert "100 features: approximate search, 7 " in said_before(Size(n_even + 1, 100), 7, "auto")
    assert ": exact search" in said_before(Size(n_even + 1, 100), 7, "exact")
    assert ": approximate search" in said_before(Size(n_even - 1, 100), 7, "approximate")


@pytest.mark.parametrize("neighbors", ["auto", "exact", "approximate"])
def test_what_has_no_centres_is_searched_exactly(neighbors):
    assert ": exact search" in said_before(Size(10**7, 100, has_centres=False), 7, neighbors)
    assert not DistanceMatrix(np.zeros((2, 2))).has_centres


def test_what_is_said_before_and_after(rng):
    X = blobs(60, 3, rng)
    size, pair = "60 samples, 3 features", ((np.arange(60)[:, None] + 1) % 60, None)
    cases = [
        (Points(X), "auto", [f"{size}: exact search, 5 neighbours each", "recall 1.0000"]),
        (Points(X), "approximate", [f"{size}: approximate search, 5 neighbours each", "recall 1.0000, estimated"]),
        (Points(X), "all", [f"{size}: all pairs"]),
        (DistanceMatrix(sp.csr_matrix(pairwise_distances(X))), "all", ["1770 allowed edges given"]),
    ]
    for distances, neighbors, expected in cases:
        said = []
        find_neighbors(distances, 5, neighbors, threads=THREADS, say=said.append)
        assert said == expected
    lists = find_neighbors(Points(X), 5, pair, threads=THREADS, say=said.append)
    assert said[1:] == [f"{size}: given lists search, 5 neighbours each", f"recall {lists.recall:.4f}, estimated"]


@pytest.mark.parametrize("neighbors", ["exact", "approximate"])
def test_more_neighbours_than_there_are_others_are_all_others(rng, neighbors):
    lists = find_neighbors(Points(blobs(9, 2, rng)), 50, neighbors, threads=THREADS)
    assert lists.indices.shape == (9, 8)
    assert (lists.indices >= 0).all()
