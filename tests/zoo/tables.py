"""The tables: a name, a kind, a loader of X, and parameters of the learner that are not the default.

`REAL` ship inside packages or come with Debian, `GENERATED` are made here. Names with -std are the same columns standardised.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from zoo import loaders as own
from zoo import nasties
from zoo.sources import csv, keel, r_data, series_table, thinned


@dataclass(frozen=True)
class Table:
    """A table as it comes."""

    name: str
    kind: str
    loader: Callable[[], Any]
    parameters: dict[str, Any] = field(default_factory=dict)

    def load(self):
        """X, at most 20,000 rows of it; raises `MissingError` where its package is not installed."""
        X = thinned(self.loader())
        if not sp.issparse(X) and X.dtype.kind not in "fbiu":
            raise TypeError(f"{self.name} has values of type {X.dtype}, not numbers.")
        return X


def standardised(table: Table) -> Table:
    return Table(f"{table.name}-std", table.kind, partial(_standardised, table.loader), table.parameters)


def _standardised(loader):
    X = np.asarray(loader(), np.float64)
    width = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(width > 0.0, width, 1.0)


BOTH_WAYS = [  # raw and standardised
    Table("airports", "geography", own.airports),
    Table("quakes", "geography", partial(r_data, "datasets", "quakes")),
    Table("storms", "geography", partial(r_data, "dplyr", "storms", ("lat", "long", "wind", "pressure"))),
    Table("iris", "measurements", partial(own.bundled, "iris")),
    Table("wine", "measurements", partial(own.bundled, "wine")),
    Table("breast-cancer", "measurements", partial(own.bundled, "breast_cancer")),
    Table("diabetes", "measurements", partial(own.bundled, "diabetes")),
    Table("wine-quality", "measurements", partial(keel, "winequality-red-4", "imbalanced")),
    Table("magic", "measurements", partial(keel, "magic")),
    Table("glass", "measurements", partial(keel, "glass0", "imbalanced")),
    Table("pollen", "measurements", partial(r_data, "HistData", "Pollen")),
    Table("nox", "measurements", partial(r_data, "robustbase", "NOxEmissions")),
    Table("diamonds", "prices", partial(r_data, "ggplot2", "diamonds")),
    Table("lending", "prices", partial(r_data, "modeldata", "lending_club")),
    Table("ames", "prices", partial(r_data, "modeldata", "ames")),
    Table("boston", "census", partial(r_data, "MASS", "Boston")),
    Table("midwest", "census", partial(r_data, "ggplot2", "midwest", without=("PID",))),
    Table("census2000", "census", partial(r_data, "wooldridge", "census2000")),
    Table("earnings", "census", partial(r_data, "DAAG", "cps1")),
    Table("murders", "census", partial(r_data, "wooldridge", "countymurders", without=("countyid",))),
    Table("star98", "census", partial(csv, "statsmodels", "datasets/star98/star98.csv")),
    Table("randhie", "census", partial(csv, "statsmodels", "datasets/randhie/randhie.csv")),
    Table("anes96", "census", partial(csv, "statsmodels", "datasets/anes96/anes96.csv", sep=r"\s+")),
    Table("marketing", "census", partial(keel, "marketing")),
    Table("flchain", "survival", partial(r_data, "survival", "flchain")),
    Table("pbc", "survival", partial(r_data, "survival", "pbc", without=("id",))),
    Table("colon", "survival", partial(r_data, "survival", "colon", without=("id",))),
    Table("nafld", "survival", partial(r_data, "survival", "nafld1", without=("id", "case.id"))),
    Table("heart", "survival", partial(keel, "heart")),
    Table("baseball", "counts", partial(r_data, "plyr", "baseball", without=("id", "team", "lg"))),
    Table("docvis", "counts", partial(r_data, "COUNT", "rwm5yr", without=("id",))),
    Table("caravan", "counts", partial(r_data, "ISLR", "Caravan")),
    Table("speech", "audio", partial(r_data, "modeldata", "pd_speech")),
    Table("vowels", "audio", partial(series_table, "JapaneseVowels", 8)),
    Table("phoneme", "audio", partial(keel, "phoneme")),
    Table("cell-images", "single cells", partial(r_data, "modeldata", "cells")),
    Table("pbmc", "single cells", partial(own.pbmc, None)),
    Table("kdd", "logs", own.kdd),
    Table("shuttle", "logs", partial(csv, "river", "datasets/shuttle.csv.gz")),
    Table("spambase", "logs", partial(keel, "spambase")),
    Table("flights", "logs", own.flights),
    Table("check-times", "logs", partial(r_data, "modeldata", "check_times")),
]

AS_THEY_ARE = [
    Table("us-airports", "geography", partial(csv, "vega_datasets", "_data/airports.csv", ("latitude", "longitude"))),
    Table("world-cities", "geography", partial(csv, "bokeh_sampledata", "_data/world_cities.csv.gz", ("lat", "lng"))),
    Table("us-cities", "geography", own.us_cities),
    Table("police-stops", "geography", partial(r_data, "carData", "MplsStops", ("lat", "long"))),
    Table("boroughs", "geography", partial(r_data, "openintro", "london_boroughs", ("x", "y"))),
    Table("riots", "geography", partial(csv, "vega_datasets", "_data/la-riots.csv", ("latitude", "longitude"))),
    Table("bicycle-track", "geography", partial(csv, "bokeh_sampledata", "_data/obiszow_mtb_xcm.csv", ("lat", "lon", "alt"))),
    Table("bunny", "mesh", partial(own.mesh, "bunny", "bunny")),
    Table("airfoil", "mesh", partial(own.mesh, "airfoil", "x", "y")),
    Table("minnesota", "mesh", partial(own.mesh, "minnesota", "xy")),
    Table("volcano", "mesh", own.volcano),
    Table("mushroom", "one-hot", partial(keel, "mushroom")),
    Table("splice", "one-hot", partial(keel, "splice")),
    Table("chess", "one-hot", partial(keel, "chess")),
    Table("votes", "one-hot", partial(keel, "housevotes")),
    Table("tic-tac-toe", "one-hot", partial(keel, "tic-tac-toe")),
    Table("cars", "one-hot", partial(keel, "car-good", "imbalanced")),
    Table("titanic", "one-hot", partial(keel, "titanic")),
    Table("led7", "one-hot", partial(keel, "led7digit")),
    Table("solar-flare", "one-hot", partial(keel, "flare-F", "imbalanced")),
    Table("poker", "counts", partial(keel, "poker-8-9_vs_5", "imbalanced")),
    Table("military", "one-hot", own.military),
    Table("phishing", "one-hot", partial(csv, "river", "datasets/phishing.csv.gz")),
    Table("personality", "counts", partial(r_data, "psych", "bfi")),
    Table("movie-ratings", "counts", own.movie_ratings),
    Table("letter", "counts", partial(keel, "letter")),
    Table("penbased", "counts", partial(keel, "penbased")),
    Table("tate-titles", "TF-IDF", own.tate_titles, {"metric": "cosine"}),
    Table("tweets", "TF-IDF", own.tweets),
    Table("package-texts", "TF-IDF", own.package_texts),
    Table("package-names", "TF-IDF", own.package_names),
    Table("digits", "images", partial(own.bundled, "digits")),
    Table("optdigits", "images", partial(keel, "optdigits")),
    Table("faces", "images", own.faces),
    Table("satimage", "images", partial(keel, "satimage")),
    Table("segment", "images", partial(keel, "segment")),
    Table("texture", "images", partial(keel, "texture")),
    Table("china-patches", "images", partial(own.picture_patches, "sklearn", "datasets/images/china.jpg", 8, 5)),
    Table("page-patches", "images", partial(own.picture_patches, "skimage", "data/page.png", 8, 3)),
    Table("coins-patches", "images", partial(own.picture_patches, "skimage", "data/coins.png", 6, 4)),
    Table("horse-patches", "images", partial(own.picture_patches, "skimage", "data/horse.png", 8, 4)),
    Table("astronaut-colours", "images", own.astronaut_colours),
    Table("tissue-genes", "genes", partial(r_data, "dslabs", "tissue_gene_expression")),
    Table("tumour-genes", "genes", partial(r_data, "ISLR", "NCI60")),
    Table("pbmc-pca", "single cells", partial(own.pbmc, "X_pca")),
    Table("meat-spectra", "spectra", partial(r_data, "modeldata", "meats")),
    Table("plaid", "time series", own.plaid),
    Table("appliances", "time series", partial(series_table, "ACSF1", 1460)),
    Table("leaves", "time series", partial(series_table, "OSULeaf", 427)),
    Table("italy-power", "time series", partial(series_table, "ItalyPowerDemand", 24)),
    Table("gun-point", "time series", partial(series_table, "GunPoint", 150)),
    Table("arrow-heads", "time series", partial(series_table, "ArrowHead", 251)),
    Table("motions", "time series", partial(series_table, "BasicMotions", 100)),
    Table("heartbeats", "time series", own.heartbeats),
    Table("elnino", "time series", partial(csv, "statsmodels", "datasets/elnino/elnino.csv", without=("YEAR",))),
    Table("sunspots", "time series", own.sunspots),
    Table("electricity-days", "time series", own.electricity_days),
    Table("sea-temperature", "time series", own.sea_temperature),
    Table("glucose", "time series", own.glucose),
    Table("stock-prices", "time series", own.stock_prices),
    Table("subway", "time series", partial(r_data, "modeldata", "Chicago")),
    Table("dpkg-log", "logs", own.dpkg_log),
    Table("commits", "logs", own.commits),
]

REAL = [*BOTH_WAYS, *AS_THEY_ARE]
GIVEN = {"alpha": 1.0, "beta": 1.0}
FIVE = {"n_neighbors": 5}
GENERATED = [
    Table("copies-of-rows", "generated", nasties.copies_of_rows),
    Table("few-rows-many-copies", "generated", nasties.few_rows_many_copies, FIVE),
    Table("binary-columns", "generated", nasties.binary_columns, FIVE),
    Table("some-equal", "generated", nasties.some_equal, FIVE),
    Table("eye", "generated", partial(np.eye, 64), FIVE),
    Table("dead-sensors", "generated", nasties.dead_sensors, FIVE),
    Table("mask", "generated", nasties.mask_as_distances, {"metric": "precomputed_squared", **FIVE}),
    Table("one-far-sample", "generated", nasties.one_far_sample),
    Table("tiny-80", "generated", partial(nasties.normal, 200, 5, 1e-80)),
    Table("tiny-150", "generated", partial(nasties.normal, 200, 5, 1e-150)),
    Table("huge-100", "generated", partial(nasties.normal, 200, 5, 1e100)),
    Table("huge-150", "generated", partial(nasties.normal, 200, 5, 1e150)),
    Table("lognormal-1", "generated", partial(nasties.lognormal, 1.0)),
    Table("lognormal-3", "generated", partial(nasties.lognormal, 3.0)),
    Table("lognormal-6", "generated", partial(nasties.lognormal, 6.0)),
    Table("cauchy", "generated", nasties.cauchy),
    Table("grid", "generated", nasties.grid),
    Table("constant-columns", "generated", nasties.constant_columns),
    Table("wine-k1", "generated", own.some_wines, {"n_neighbors": 1}),
    Table("three-rows", "generated", partial(nasties.normal, 3, 2), {"n_neighbors": 1}),
    Table("three-rows-all", "generated", partial(nasties.normal, 3, 2), {"n_neighbors": 2}),
    Table("two-far-clusters", "generated", nasties.two_far_clusters),
    Table("collinear", "generated", nasties.collinear),
    Table("near-copies", "generated", nasties.near_copies),
    Table("counts-with-ties", "generated", nasties.counts_with_ties),
    Table("sixteen-bit-sensors", "generated", nasties.sixteen_bit_sensors, GIVEN),
    Table("large-given-theta", "generated", partial(nasties.normal, 40, 50, 1e6), GIVEN),
    Table("units-of-all-kinds", "generated", nasties.units_of_all_kinds),
    Table("wrong-sign", "generated", nasties.wrong_sign),
    Table("sentinels", "generated", nasties.sentinels),
    Table("pairs-far-apart", "generated", nasties.pairs_far_apart),
    Table("star", "generated", nasties.star, FIVE),
    Table("all-scales", "generated", nasties.cubes_at_all_scales),
]

TABLES = {table.name: table for table in [*REAL, *map(standardised, BOTH_WAYS), *GENERATED]}
