"""How loops are compiled: `compiled` in one thread, `threaded` in several; both are cached on disk."""

from numba import njit

SUM_FREELY = {"reassoc", "contract", "nsz"}  # what SIMD sums need; infinities and NaN keep their meaning
compiled = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, nogil=True)
threaded = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, parallel=True)
