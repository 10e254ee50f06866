"""Data and problems that several tests use."""

import numpy as np
import pytest

from smoothgraph.candidates import from_lists
from smoothgraph.neighbors import ExactBackend, find_neighbors
from smoothgraph.samples import Samples


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def blobs(n, d, rng, outliers=0.05):
    """Clusters of different width with a few far points: what makes supports incomplete."""
    centres = 4.0 * rng.normal(size=(4, d))
    X = centres[rng.integers(4, size=n)] + rng.normal(size=(n, d)) * rng.choice([0.3, 1.0, 2.0], size=(n, 1))
    far = rng.random(n) < outliers
    X[far] += 10.0 * rng.normal(size=(int(far.sum()), d))
    return X


def lists_of(X, k):
    return find_neighbors(Samples(X), k, ExactBackend())


def candidates_of(X, k):
    return from_lists(lists_of(X, k))
