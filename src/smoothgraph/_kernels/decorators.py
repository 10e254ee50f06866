"""How loops are compiled: every kernel is cached on disk and runs without the GIL, in the thread that calls it.

`compiled` lets the compiler fuse operations and reorder sums, which SIMD needs, and differently so in different loops.
`exact` is for arithmetic that must have the same bits wherever it is used.
"""

from numba import njit

SUM_FREELY = {"reassoc", "contract", "nsz"}  # what SIMD sums need; infinities and NaN keep their meaning
compiled = njit(cache=True, error_model="numpy", fastmath=SUM_FREELY, nogil=True)
exact = njit(cache=True, error_model="numpy", nogil=True)
