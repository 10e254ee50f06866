"""How loops are compiled: `compiled` in one thread, `threaded` in several; both are cached on disk.

`exact` is for arithmetic that must have the same bits wherever it is used: those of the other two may be fused or summed in
another order, and differently so in different loops.
"""

from numba import njit

SUM_FREELY = {"reassoc", "contract", "nsz"}  # what SIMD sums need; infinities and NaN keep their meaning
compiled = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, nogil=True)
threaded = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, parallel=True)
exact = njit(cache=True, error_model="numpy", nogil=True)
