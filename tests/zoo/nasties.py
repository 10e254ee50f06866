"""Generated tables that are hard on a graph learner: copies, ties, tails, scales."""

import numpy as np


def rng():
    return np.random.default_rng(0)


def normal(n, d, scale=1.0):
    return scale * rng().normal(size=(n, d))


def copies_of_rows():
    """200 different rows, drawn 1,000 times: groups of copies of different sizes."""
    draws = rng().zipf(1.5, size=1000) % 200
    return normal(200, 8)[draws]


def few_rows_many_copies():
    """12 different rows, 25 of each."""
    return np.repeat(normal(12, 5), 25, axis=0)


def binary_columns():
    return rng().integers(0, 2, size=(300, 6)).astype(float)


def some_equal():
    """200 rows of which 30 are equal."""
    X = normal(200, 5)
    X[:30] = X[0]
    return X


def dead_sensors():
    """64 sensors, of which 44 are dead: equal rows."""
    X = normal(64, 200)
    X[20:] = 0.0
    return X


def mask_as_distances():
    """A boolean mask given as squared distances: 0 for one pair in ten, else 1. Nodes at 0 of the same node may be at 1."""
    Z = np.triu(rng().random((64, 64)) < 0.9, 1)
    return (Z | Z.T).astype(float)


def one_far_sample():
    X = normal(40, 5)
    X[7] = 1.8e19
    return X


def lognormal(sigma):
    return np.exp(sigma * normal(1000, 8))


def cauchy():
    return rng().standard_cauchy(size=(1000, 5))


def grid():
    return np.stack(np.meshgrid(np.arange(30.0), np.arange(30.0)), axis=-1).reshape(-1, 2)


def constant_columns():
    X = normal(300, 8)
    X[:, ::2] = 7.0
    return X


def two_far_clusters():
    X = normal(400, 4)
    X[200:] += 1e6
    return X


def collinear():
    t = rng().random(500)
    return np.outer(t, np.arange(1.0, 7.0))


def near_copies():
    """150 rows and near-copies of them that differ in the last digit."""
    X = normal(150, 6)
    return np.concatenate([X, np.nextafter(X, np.inf)])


def counts_with_ties():
    return rng().poisson(0.7, size=(1000, 6)).astype(float)


def sixteen_bit_sensors():
    """30 sensors, 2,000 counts of 16 bits each, up to ±39,000."""
    generator = rng()
    common = np.cumsum(generator.normal(size=2000))
    common *= 20_000 / np.abs(common).max()
    return np.round(np.clip(common + 8_000 * generator.normal(size=(30, 2000)), -39_000, 39_000))


def units_of_all_kinds():
    """Columns in different units: from nanometres to euros."""
    return normal(500, 7) * 10.0 ** np.arange(-9, 12, 3)


def wrong_sign():
    """Points of one town, one of which has a longitude with the wrong sign."""
    X = np.array([48.2, 16.4]) + 0.02 * normal(400, 2)
    X[123, 1] *= -1.0
    return X


def sentinels():
    """Measurements in which −999 or 99999 stands for a missing value."""
    X, generator = normal(600, 6), rng()
    X[generator.random(X.shape) < 0.02] = -999.0
    X[generator.random(X.shape) < 0.01] = 99999.0
    return X


def pairs_far_apart():
    """100 pairs, each very near, far from all others."""
    centres = 1e4 * normal(100, 3)
    return np.concatenate([centres, centres + 1e-4 * rng().random((100, 3))])


def star():
    """Points at equal distances from a centre, and the centre: all but one pair of each row tied."""
    return np.concatenate([np.zeros((1, 40)), np.eye(40), -np.eye(40)])


def cubes_at_all_scales():
    """Clusters of widths from 1e-6 to 1e6."""
    widths = np.repeat(10.0 ** np.arange(-6, 7), 50)
    return normal(widths.size, 3) * widths[:, None] + 3.0 * widths[:, None]
