"""Samples for the benchmarks: the data sets in float32, cut to a size, ten million rows made of one of them, and texts."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from smoothgraph import datasets
from smoothgraph.distances import distances_of
from smoothgraph.neighbors import find_neighbors
from smoothgraph.parallel import Threads

# The paper's own graph: one θ for all nodes, no bridges, and copies as the model has them.
PAPER = {"locality": 0.0, "connect": False, "duplicates": "keep"}
BLOCK, NOISE = 100_000, np.float32(0.05)  # rows that are generated at a time, and their noise


def some(name: str, n: int | None = None) -> np.ndarray:
    """The first n samples of a data set, drawn at random where its rows are sorted."""
    X = getattr(datasets, name)().X
    if name == "forest_cover":  # its rows are sorted by place
        X = X[np.random.default_rng(0).permutation(len(X))]
    return X[:n].astype(np.float32)


def texts(n: int, words: int = 50_000, topics: int = 1000, length: int = 120) -> sp.csr_matrix:
    """TF-IDF of made-up texts: half of the words of a text are those of its topic, and they are as frequent as Zipf says."""
    rng = np.random.default_rng(0)
    ranks = (words ** rng.random((n, length))).astype(np.int64) - 1  # a word of rank r is drawn as often as 1/(r + 1)
    topic = rng.integers(topics, size=(n, 1)) * (rng.random((n, length)) < 0.5)  # topic 0 has the words of everybody
    columns = (ranks + topic * (words // topics)) % words
    ends = np.arange(0, columns.size + 1, length)
    counts = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), ends), (n, words))
    counts.sum_duplicates()
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts)


def lists_of(X, k: int, how: str = "auto"):
    """The k nearest of every sample, as the learner makes its lists."""
    return find_neighbors(distances_of(X), k, how, random_state=0, threads=Threads()).by_rows()


def jittered_molecules(n: int, path: Path, n_features: int = 32) -> None:
    """Write n molecules, drawn anew as often as it takes, as a .npy file of float32 rows: principal components, with noise.

    The noise adds about 0.16 to a squared distance, less than molecules are apart, and no two rows are equal. A block is in
    memory at a time, and the first rows are the same whatever n.
    """
    counts = datasets.molecules().X
    rng = np.random.default_rng(0)
    components = np.linalg.eigh(np.cov(counts[:BLOCK].astype(np.float64).T))[1][:, -n_features:].astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, n_features))
    for begin in range(0, n, BLOCK):
        block = counts[rng.integers(len(counts), size=BLOCK)].astype(np.float32) @ components
        block += NOISE * rng.standard_normal(block.shape, dtype=np.float32)
        X[begin : begin + BLOCK] = block[: n - begin]
    X.flush()
