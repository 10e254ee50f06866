"""How loops are compiled: every kernel is cached on disk and runs without the GIL, in the thread that calls it.

`compiled` lets the compiler fuse operations and reorder sums, which SIMD needs, and differently so in different loops.
`exact` is for arithmetic that must have the same bits wherever it is used.
"""

from numba import njit

from smoothgraph._kernels.cache import with_cache

SUM_FREELY = {"reassoc", "contract", "nsz"}  # what SIMD sums need; infinities and NaN keep their meaning


def compiled(function):
    return with_cache(njit(error_model="numpy", fastmath=SUM_FREELY, nogil=True)(function))


def exact(function):
    return with_cache(njit(error_model="numpy", nogil=True)(function))
