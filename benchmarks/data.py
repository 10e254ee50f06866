"""The data sets, from the folder that SMOOTHGRAPH_DATA names."""

import gzip
import os
from pathlib import Path

import numpy as np

BLOCK, NOISE = 100_000, np.float32(0.05)  # rows that are generated at a time, and their noise


def folder() -> Path:
    path = Path(os.environ.get("SMOOTHGRAPH_DATA", ""))
    if not (path / "mnist").is_dir():
        raise SystemExit("Set SMOOTHGRAPH_DATA to the folder that holds mnist/, moses/, covtype/ and words/.")
    return path


def mnist(n: int = 60_000) -> np.ndarray:
    with gzip.open(folder() / "mnist" / "train-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:n].astype(np.float32)


def molecules(n: int = 1_000_000) -> np.ndarray:
    with np.load(folder() / "moses" / "moses_counts_1584663x68_uint8.npz") as file:
        return file["X"][:n].astype(np.float32)


def forest_cover(n: int = 100_000) -> np.ndarray:
    with np.load(folder() / "covtype" / "covtype.npz") as file:
        X = file["X"]
    return X[np.random.default_rng(0).permutation(len(X))[:n]].astype(np.float32)


def words(n: int = 100_000) -> np.ndarray:
    with np.load(folder() / "words" / "glove6B100d_100k.npz") as file:
        return file["vectors"][:n]


def jittered_molecules(n: int, path: Path, n_features: int = 32) -> None:
    """Write n molecules, drawn anew as often as it takes, as a .npy file of float32 rows: principal components, with noise.

    The noise adds about 0.16 to a squared distance, less than molecules are apart, and no two rows are equal. A block is in
    memory at a time, and the first rows are the same whatever n.
    """
    with np.load(folder() / "moses" / "moses_counts_1584663x68_uint8.npz") as file:
        counts = file["X"]
    rng = np.random.default_rng(0)
    components = np.linalg.eigh(np.cov(counts[:BLOCK].astype(np.float64).T))[1][:, -n_features:].astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, n_features))
    for begin in range(0, n, BLOCK):
        block = counts[rng.integers(len(counts), size=BLOCK)].astype(np.float32) @ components
        block += NOISE * rng.standard_normal(block.shape, dtype=np.float32)
        X[begin : begin + BLOCK] = block[: n - begin]
    X.flush()
