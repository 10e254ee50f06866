"""Simulated maps of the sky, from published power spectra.

The maps of the paper are available on request only. These are simulated: random fields on the sphere that have the published
spectra, Gaussian or shifted log-normal, and are cut into square patches like those of the paper.
"""

import numpy as np
from scipy.special import roots_legendre

from smoothgraph.datasets import sources
from smoothgraph.datasets.files import get
from smoothgraph.datasets.loaders import Dataset
from smoothgraph.optional import need

PATCHES = 48  # patches of a map: one for each pixel of a sphere with nside 2
SHIFT = 3.0  # how far below the mean the values of a log-normal map can go, in standard deviations of the map


def spherical_maps(side: int = 512, *, n_maps: int = 40, nside: int = 1024, kind: str = "gaussian", seed: int = 0) -> Dataset:
    """Simulated maps of the sky: a node for each pixel of a square patch, a column for each patch of each map.

    By default 40 maps in 48 patches give 1920 signals on 262,144 nodes (2 GB, some minutes). `side=64`, the small set, keeps a
    corner of 64×64 pixels of each patch. Column m·48 + p of X, reshaped to `image_shape`, is patch p of map m. Half of the maps
    have the spectra of one cosmology, half those of another. y is None, since nodes have no class.

    Parameters
    ----------
    side : pixels along an edge of the square that is kept of a patch, at most nside/2.
    n_maps : number of maps, 40 at most: there are 20 published spectra of each cosmology.
    nside : resolution of the maps (HEALPix), which have 12·nside² pixels.
    kind : "gaussian", or "lognormal": exp of a Gaussian field, shifted to mean 0, with the same spectrum.
    seed : seed of the random numbers.
    """
    _check(side, n_maps, nside, kind)
    healpy = need("healpy", "smoothgraph[spherical]")
    with np.load(get(sources.SPECTRA)) as arrays:  # map 0 of class 1, map 0 of class 2, map 1 of class 1, …
        spectra = np.stack([arrays["psd_class1"], arrays["psd_class2"]], axis=1).reshape(-1, arrays["psd_class1"].shape[1])
    pixels = patch_pixels(side, nside)
    X = np.empty((side * side, n_maps * PATCHES), dtype=np.float32)
    for m, spectrum in enumerate(spectra[:n_maps, : 3 * nside]):
        whole = healpy.reorder(simulate_map(spectrum, nside, kind, seed + m), r2n=True)
        X[:, m * PATCHES : (m + 1) * PATCHES] = whole.reshape(PATCHES, -1)[:, pixels].T
    return Dataset(
        X,
        None,
        name="simulated spherical maps",
        description=f"{n_maps} simulated {kind} maps of the sky, nside {nside}, in patches of {side}×{side} pixels",
        source="simulated with healpy from the power spectra published by the deepsphere project",
        license="the spectra: MIT, as far as known",
        image_shape=(side, side),
    )


def _check(side, n_maps, nside, kind):
    if kind not in ("gaussian", "lognormal"):
        raise ValueError(f"kind={kind!r} is not known: use 'gaussian' or 'lognormal'.")
    if nside < 2 or nside > 1024 or nside & (nside - 1):
        raise ValueError(f"nside={nside!r} must be a power of 2 from 2 to 1024, where the spectra end.")
    if not 1 <= side <= nside // 2:
        raise ValueError(f"side={side!r} must be from 1 to nside/2 = {nside // 2}, the edge of a patch.")
    if not 1 <= n_maps <= 40:
        raise ValueError(f"n_maps={n_maps!r} must be from 1 to 40: there are 40 published spectra.")


def patch_pixels(side: int, nside: int) -> np.ndarray:
    """The places of a patch's pixels, row by row, in HEALPix's nested order: the bits of row and column are interleaved."""
    row, column = np.divmod(np.arange(side * side), side)
    place = np.zeros(side * side, dtype=np.int64)
    for bit in range(int(nside).bit_length()):
        place |= ((column >> bit) & 1) << (2 * bit) | ((row >> bit) & 1) << (2 * bit + 1)
    return place


def simulate_map(spectrum: np.ndarray, nside: int, kind: str, seed: int) -> np.ndarray:
    """A random map with this power spectrum, its pixels in HEALPix's ring order. Kinds are those of `spherical_maps`."""
    healpy = need("healpy", "smoothgraph[spherical]")
    before = np.random.get_state()  # noqa: NPY002 (healpy draws from NumPy's global generator)
    np.random.seed(seed)  # noqa: NPY002
    try:
        if kind == "gaussian":
            return healpy.synfast(spectrum, nside, lmax=spectrum.size - 1)
        inner, shift = lognormal_spectrum(spectrum)
        field = healpy.synfast(inner, nside, lmax=spectrum.size - 1)
    finally:
        np.random.set_state(before)  # noqa: NPY002
    variance = np.sum((2 * np.arange(inner.size) + 1) * inner) / (4 * np.pi)
    return shift * (np.exp(field - variance / 2) - 1.0)


def lognormal_spectrum(spectrum: np.ndarray) -> tuple[np.ndarray, float]:
    """The spectrum of g for which κ₀(exp(g − var g/2) − 1) has `spectrum`, and κ₀, `SHIFT` standard deviations.

    The correlations at each angle are related by ξ_g = log(1 + ξ/κ₀²). Gauss–Legendre quadrature turns spectra into
    correlations and back. Values at the end of the spectrum that come out slightly negative are set to 0.
    """
    degree = np.arange(spectrum.size)
    cosines, weights = roots_legendre(2 * spectrum.size)
    xi = np.polynomial.legendre.legval(cosines, (2 * degree + 1) * spectrum / (4 * np.pi))
    shift = SHIFT * float(np.sqrt(np.sum((2 * degree + 1) * spectrum) / (4 * np.pi)))
    weighted = 2 * np.pi * weights * np.log1p(xi / shift**2)
    inner = np.empty(spectrum.size)
    before, now = np.zeros_like(cosines), np.ones_like(cosines)  # P₋₁ (never used), P₀
    for n in degree:
        inner[n] = weighted @ now
        before, now = now, ((2 * n + 1) * cosines * now - n * before) / (n + 1)
    return np.maximum(inner, 0.0), shift
