"""Public files → the files that the loaders read. Each function takes the paths of the downloads and the path to write."""

import bz2
import gzip
import io
import zipfile

import numpy as np

from smoothgraph.optional import need

EXTRA = "smoothgraph[datasets]"


def _pairs(text: str) -> list[str]:
    return [text[i : i + 2] for i in range(0, len(text), 2)]


# The columns of the molecules count how often each of these occurs in a SMILES string, without overlaps. L, R and h stand for
# Cl, Br and [nH].
MOLECULE_FEATURES = [
    *"cC()1O2=nN3SF-sLoh#4R5",
    *_pairs("ccc1c()cCCO)=OC(c2(=1c(C2cC)nc)C)NCONC2)OCCcc3(N)n1CNcn1cnF)C1nnOc3c)(1n-c(FCN1)=C2C(-2nn2C2"),
]


def usps(downloads, target):
    """LIBSVM text, values in [-1, 1], digits 1 to 10 → HDF5, values in [0, 1], digits 0 to 9."""
    from sklearn.datasets import load_svmlight_file

    with need("h5py", EXTRA).File(target, "w") as file:
        for part, path in zip(("train", "test"), downloads, strict=True):
            with bz2.open(path) as stream:
                X, y = load_svmlight_file(stream, n_features=256)
            file[f"{part}/data"] = ((X.toarray() + 1.0) / 2.0).astype(np.float32)
            file[f"{part}/target"] = y.astype(np.int32) - 1


def att_faces(downloads, target):
    """A zip of the images s1/1.pgm to s40/10.pgm."""
    _images(downloads[0], target, lambda s, i: f"s{s}/{i}.pgm", range(1, 41), range(1, 11))


def coil20(downloads, target):
    """A zip of the images obj1__0.png to obj20__71.png."""
    _images(downloads[0], target, lambda s, i: f"obj{s}__{i}.png", range(1, 21), range(72))


def _images(path, target, name, subjects, numbers):
    """The images called name(subject, number) in a zip, and their subjects as labels."""
    open_image = need("PIL.Image", EXTRA).open
    images, labels = [], []
    with zipfile.ZipFile(path) as archive:
        for subject in subjects:
            for number in numbers:
                with open_image(io.BytesIO(archive.read(_member(archive, name(subject, number))))) as image:
                    images.append(np.asarray(image.convert("L")))
                labels.append(subject)
    _write(target, images=np.stack(images), labels=np.array(labels))


def words(downloads, target, n=10_000):
    """The first n words of only ASCII letters in a word2vec text file, where the most frequent words come first."""
    kept, vectors = [], []
    with gzip.open(downloads[0], "rt", encoding="utf-8") as lines:
        next(lines)  # the first line holds the number of words
        for line in lines:
            word, *vector = line.rstrip().split(" ")
            if word.isascii() and word.isalpha():
                kept.append(word)
                vectors.append(np.array(vector, dtype=np.float32))
            if len(kept) == n:
                break
    _write(target, words=np.array(kept), vectors=np.stack(vectors))


def forest_cover(downloads, target):
    """Comma-separated integers; the last column is the cover type."""
    with gzip.open(downloads[0], "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.int16)
    _write(target, X=table[:, :-1], y=table[:, -1].astype(np.uint8))


def molecules(downloads, target):
    """A column of SMILES strings → counts of characters and pairs of characters. It takes a minute or two."""
    rows = []
    with downloads[0].open(encoding="ascii") as lines:
        next(lines)  # the first line holds the names of the columns
        for line in lines:
            smiles = line.split(",")[0].strip().replace("Cl", "L").replace("Br", "R").replace("[nH]", "h")
            rows.append(bytes(map(smiles.count, MOLECULE_FEATURES)))
    counts = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, len(MOLECULE_FEATURES))
    _write(target, X=counts, features=np.array(MOLECULE_FEATURES))


def census(downloads, target):
    """A zip with a comma-separated table; its first column, the number of the case, is left out."""
    with zipfile.ZipFile(downloads[0]) as archive, archive.open(_member(archive, "USCensus1990.data.txt")) as lines:
        features = next(lines).decode("ascii").strip().split(",")[1:]
        table = np.loadtxt(lines, delimiter=",", dtype=np.int32)[:, 1:]
    if table.min() < 0 or table.max() > 255:
        raise ValueError(f"The census holds values from {table.min()} to {table.max()}; 0 to 255 were expected.")
    _write(target, X=table.astype(np.uint8), features=np.array(features))


def _member(archive, name):
    """The member of a zip that is called so, in whatever folder of it."""
    found = [member for member in archive.namelist() if f"/{member}".endswith(f"/{name}")]
    if not found:
        raise ValueError(f"there is no {name} in the archive")
    return found[0]


def _write(target, **arrays):
    with target.open("wb") as stream:  # np.savez would add .npz to the name of a path
        np.savez_compressed(stream, **arrays)
