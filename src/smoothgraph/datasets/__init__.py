"""Data sets: each function loads one, from the folder SMOOTHGRAPH_DATA, the user's cache, or its public source.

>>> from smoothgraph import datasets
>>> [entry.name for entry in datasets.list_datasets()][:4]
['mnist', 'usps', 'att_faces', 'coil20']
"""

from typing import NamedTuple

from smoothgraph.datasets import sources
from smoothgraph.datasets.files import File, find
from smoothgraph.datasets.loaders import (
    Dataset,
    att_faces,
    census,
    coil20,
    forest_cover,
    mnist,
    molecules,
    usps,
    words,
    words_sample,
)
from smoothgraph.datasets.spherical import spherical_maps

__all__ = [
    "Dataset",
    "Entry",
    "att_faces",
    "census",
    "coil20",
    "forest_cover",
    "list_datasets",
    "mnist",
    "molecules",
    "spherical_maps",
    "usps",
    "words",
    "words_sample",
]


class Entry(NamedTuple):
    """A data set in the list: the name of its function, its shape, whether its files are on this machine, what it is about."""

    name: str
    shape: tuple[int, int]
    present: bool
    about: str


def list_datasets() -> list[Entry]:
    """All data sets, and whether they are on this machine."""
    return [
        _entry("mnist", (60_000, 784), "handwritten digits", *sources.MNIST_TRAIN),
        _entry("usps", (9_298, 256), "handwritten digits", sources.USPS),
        _entry("att_faces", (400, 10_304), "photographs of 40 people", sources.ATT_FACES),
        _entry("coil20", (1_440, 16_384), "photographs of 20 objects", sources.COIL20),
        _entry("words", (10_000, 100), "vectors of the most frequent words", sources.WORDS),
        _entry("words_sample", (100_000, 100), "vectors of words drawn at random", sources.WORDS_SAMPLE),
        _entry("forest_cover", (581_012, 54), "kinds of forest", sources.FOREST_COVER),
        _entry("molecules", (1_584_663, 68), "counts of elements and structures", sources.MOLECULES),
        _entry("census", (2_458_285, 68), "US census of 1990", sources.CENSUS),
        _entry("spherical_maps", (262_144, 1_920), "simulated maps of the sky", sources.SPECTRA),
    ]


def _entry(name: str, shape: tuple[int, int], about: str, *files: File) -> Entry:
    return Entry(name, shape, all(find(file) is not None for file in files), about)
