"""Data and problems that several tests use."""

import signal

import hypothesis
import numpy as np
import pytest

from smoothgraph import GraphLearner
from smoothgraph.distances import distances_of
from smoothgraph.fit.state import Asked, Support
from smoothgraph.models import Log
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads

hypothesis.settings.register_profile("untimed", deadline=None)  # how long an example takes depends on what else runs
hypothesis.settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell begins what runs in the background, and processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


PAPER = {"locality": 0.0, "connect": False, "duplicates": "keep"}


def paper_learner(n_neighbors=10, **options):
    """A learner of the paper's graph: one θ for all nodes, no bridges, and copies as the model has them."""
    return GraphLearner(n_neighbors, **{**PAPER, **options})


def lists_of(X, k):
    """The k nearest others of every sample, proven."""
    return find_neighbors(distances_of(X), k, "exact", threads=Threads())


def edges_of(X, k):
    """The allowed edges that these lists give."""
    return lists_of(X, k).edges(threads=Threads())


def support_of(X, k, local_scale=None):
    """The same as the support that a fit begins with."""
    return Support.of(edges_of(X, k), k, local_scale, threads=Threads())


def asked_for(X, model=None, **options):
    """What a fit is to reach, with exact lists unless `is_exact` says otherwise."""
    model, threads = model or Log(), Threads()
    return Asked(model, model.solver(threads), distances_of(X), **{"is_exact": True, "threads": threads, **options})


def at_edges(W, i, j):
    """The weights of the pairs (i, j)."""
    return np.asarray(W[i, j]).ravel()


def relative_l1(found, reference):
    """Σ|found − reference| / Σ|reference|, of arrays or of sparse matrices."""
    return abs(found - reference).sum() / abs(reference).sum()
