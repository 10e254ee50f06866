"""The data sets: one function for each, which returns a `Dataset`. Values and dtypes are those of the files."""

import gzip
from dataclasses import dataclass

import numpy as np

from smoothgraph.datasets import sources
from smoothgraph.datasets.files import File, get
from smoothgraph.optional import need


@dataclass(frozen=True)
class Dataset:
    """Samples and what is known about them.

    Attributes
    ----------
    X : (n, d): a sample per row.
    y : (n,): the class of each sample, or None.
    names : (n,): the name of each sample, such as a word, or None.
    features : (d,): the name of each column, or None.
    image_shape : (rows, columns) of the image that a row of X holds (of `spherical_maps`: a column of X), or None.
    name, description, source, license : what it is, where it comes from, and what its license allows as far as we know.
    """

    X: np.ndarray
    y: np.ndarray | None
    name: str
    description: str
    source: str
    license: str
    names: np.ndarray | None = None
    features: np.ndarray | None = None
    image_shape: tuple[int, int] | None = None


def mnist(part: str = "train") -> Dataset:
    """Handwritten digits, 28×28, uint8: 60,000 in part "train", 10,000 in part "test", or "all" of them."""
    files = {"train": sources.MNIST_TRAIN, "test": sources.MNIST_TEST}
    X, y = [], []
    for name in _parts(part):
        images, labels = files[name]
        X.append(_idx(images, 16).reshape(-1, 784))
        y.append(_idx(labels, 8))
    return Dataset(
        np.concatenate(X),
        np.concatenate(y),
        name="mnist",
        description=f"MNIST handwritten digits, part {part!r}",
        source="Y. LeCun, C. Cortes, C. Burges: yann.lecun.com/exdb/mnist",
        license="CC BY-SA 3.0, as far as known",
        image_shape=(28, 28),
    )


def _parts(part):
    if part not in ("train", "test", "all"):
        raise ValueError(f"part={part!r} is not known: use 'train', 'test' or 'all'.")
    return ("train", "test") if part == "all" else (part,)


def _idx(file: File, head: int) -> np.ndarray:
    """The values of an idx file, which follow after `head` bytes."""
    with gzip.open(get(file)) as stream:
        return np.frombuffer(stream.read(), np.uint8, offset=head)


def usps(part: str = "all") -> Dataset:
    """Digits of the US Postal Service, 16×16, from 0 to 1: 7,291 in part "train", 2,007 in part "test", or "all" of them."""
    parts = _parts(part)
    with need("h5py", "smoothgraph[datasets]").File(get(sources.USPS)) as file:
        X = np.concatenate([file[f"{name}/data"][:] for name in parts])
        y = np.concatenate([file[f"{name}/target"][:] for name in parts])
    return Dataset(
        X,
        y,
        name="usps",
        description=f"USPS handwritten digits, part {part!r}",
        source="J. Hull 1994; LIBSVM's collection of data sets",
        license="not stated",
        image_shape=(16, 16),
    )


def att_faces() -> Dataset:
    """400 photographs of 40 people, 112×92, uint8; y is the person, 1 to 40."""
    return _images(
        sources.ATT_FACES,
        name="att_faces",
        description="AT&T (ORL) database of faces",
        source="AT&T Laboratories Cambridge",
        license="free to use if AT&T Laboratories Cambridge is credited",
    )


def coil20() -> Dataset:
    """1,440 photographs of 20 objects that turn in steps of 5 degrees, 128×128, uint8; y is the object, 1 to 20."""
    return _images(
        sources.COIL20,
        name="coil20",
        description="COIL-20, processed",
        source="Columbia University, CAVE: S. Nene, S. Nayar, H. Murase 1996",
        license="for research, not for commerce",
    )


def _images(file: File, **about) -> Dataset:
    with np.load(get(file)) as arrays:
        images, y = arrays["images"], arrays["labels"]
    return Dataset(images.reshape(len(images), -1), y, image_shape=images.shape[1:], **about)


def words() -> Dataset:
    """GloVe vectors (100 numbers, float32) of the 10,000 most frequent words, the most frequent first; `names` are the words.

    A file made from a download has the order of GloVe's own text; a file from elsewhere may follow another list of frequent
    words.
    """
    return _words(sources.WORDS, "words", "GloVe 6B vectors of the 10,000 most frequent words")


def words_sample() -> Dataset:
    """GloVe vectors of 100,000 words drawn at random: with hubs, hard for a neighbour search. It has no public source."""
    return _words(sources.WORDS_SAMPLE, "words_sample", "GloVe 6B vectors of 100,000 words drawn at random")


def _words(file: File, name: str, description: str) -> Dataset:
    with np.load(get(file)) as arrays:
        X, names = arrays["vectors"], arrays["words"]
    source = "J. Pennington, R. Socher, C. Manning 2014: nlp.stanford.edu/projects/glove"
    return Dataset(X, None, name=name, description=description, source=source, license="PDDL 1.0", names=names)


def forest_cover() -> Dataset:
    """581,012 patches of forest, 54 integers each (int16); y is the kind of forest, 1 to 7."""
    with np.load(get(sources.FOREST_COVER)) as arrays:
        X, y = arrays["X"], arrays["y"]
    return Dataset(
        X,
        y,
        name="forest_cover",
        description="Forest cover types from cartographic variables",
        source="J. Blackard, D. Dean, Colorado State University; UCI Machine Learning Repository, id 31",
        license="CC BY 4.0",
    )


def molecules() -> Dataset:
    """1,584,663 molecules × 68 counts of characters and pairs of characters in their SMILES strings, uint8; many are equal.

    It can replace the US census of 1990 where that is not available: it has as many columns, more than a million rows, small
    integers, and ties.
    """
    with np.load(get(sources.MOLECULES)) as arrays:
        X, features = arrays["X"], arrays["features"]
    return Dataset(
        X,
        None,
        name="molecules",
        description="Counts of elements and structures in the molecules of MOSES, part 'train'",
        source="D. Polykovskiy et al. 2018: github.com/molecularsets/moses",
        license="MIT",
        features=features,
    )


def census() -> Dataset:
    """US census of 1990: 2,458,285 people × 68 small integers. It is never replaced silently; `molecules` is similar."""
    try:
        path = get(sources.CENSUS)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error}\nWhere the census is not available, smoothgraph.datasets.molecules() can replace it: 1.58M × 68."
        ) from error
    with np.load(path) as arrays:
        X, features = arrays["X"], arrays["features"]
    return Dataset(
        X,
        None,
        name="census",
        description="US census data (1990), categories as integers",
        source="C. Meek, B. Thiesson, D. Heckerman; UCI Machine Learning Repository, id 116",
        license="CC BY 4.0",
        features=features,
    )
