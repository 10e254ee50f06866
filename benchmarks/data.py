"""The data sets, from the folder that SMOOTHGRAPH_DATA names."""

import gzip
import os
from pathlib import Path

import numpy as np


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
