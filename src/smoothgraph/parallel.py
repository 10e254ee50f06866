"""Threads: the only module that has any.

In: a kernel, which is a compiled function without the GIL whose first two arguments are a range of rows, and its other
arguments; or a Python function of a slice. Out: what the kernel wrote into its arrays, or the results of the function in order.

Kernels compute every row by itself and write it to its own place, so that the result has the same bits for any number of
threads. Nothing here is process-wide except the limit on the threads of BLAS, which is so by nature: it is counted, and the
last call that needs it puts it back.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ROWS = 1024  # rows of a table that are worked on together in a block of matrix products
LEAST_ROWS = 4096  # rows per call of a kernel at least: a thread needs about 50 µs to begin, as long as a few hundred rows take
CALLS_PER_THREAD = 8  # so that a thread with cheap rows takes over from one with dear rows


def blocks(count: int, size: int) -> list[slice]:
    """Slices of at most `size` that cover 0 to `count`."""
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def least_rows(entries: int) -> int:
    """How many rows are worth a call of a kernel, if each row has so many entries that take as long as a short row does."""
    return max(1, LEAST_ROWS // max(1, entries))


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` asks for; None and −1 mean one for each core that this process may use."""
    if n_jobs in (None, -1):
        import joblib

        return int(joblib.cpu_count())
    return int(n_jobs)  # type: ignore[arg-type]


class Threads:
    """As many threads as `n_jobs` asks for. They begin when they are first needed, and end with this object.

    Work that is itself one of the parallel pieces of this object runs in its own thread alone: threads never wait for threads
    that wait for them.
    """

    def __init__(self, n_jobs: int | None = None):
        self.count = thread_count(n_jobs)
        self._forget()

    def _forget(self):
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()
        self._busy = threading.local()
        self._barriers = threading.Lock()

    def __getstate__(self):
        return {"count": self.count}

    def __setstate__(self, state):
        self.count = state["count"]
        self._forget()

    def rows(self, kernel: Callable, n: int, *arguments, least: int = LEAST_ROWS) -> None:
        """Call kernel(first, last, *arguments) for ranges of rows that cover 0 to n, each of `least` rows or more."""
        calls = max(1, min(n // least, CALLS_PER_THREAD * self.count if self.count > 1 else 1))
        self._share(lambda call: kernel(call * n // calls, (call + 1) * n // calls, *arguments), calls)

    def map(self, work: Callable[[slice], Any], count: int, size: int = ROWS) -> list:
        """[work(slice) for slices of at most `size` of `count` rows]. Matrix products in `work` run in its own thread only."""
        parts = blocks(count, max(1, min(size, -(-count // self.count))))
        results: list[Any] = [None] * len(parts)

        def one(place):
            results[place] = work(parts[place])

        with one_blas_thread:
            self._share(one, len(parts))
        return results

    def waves(self, kernel: Callable, waves: int, lanes: int, *arguments) -> None:
        """Call kernel(first_wave, last_wave, first_lane, last_lane, *arguments): no wave begins before the last has ended."""
        threads = min(self.count, lanes)
        if threads == 1 or self._is_inside():
            kernel(0, waves, 0, lanes, *arguments)
            return
        barrier = threading.Barrier(threads)

        def one(thread):
            first, last = thread * lanes // threads, (thread + 1) * lanes // threads
            try:
                for wave in range(waves):
                    kernel(wave, wave + 1, first, last, *arguments)
                    barrier.wait()
            except BaseException:
                barrier.abort()
                raise

        with self._barriers:  # two callers that each had half of the threads would wait for ever
            self._together(one, range(threads))

    def _share(self, work, count):
        """work(0) to work(count − 1): a thread takes the next place that no thread has taken."""
        threads = min(self.count, count)
        if threads <= 1 or self._is_inside():
            for place in range(count):
                work(place)
            return
        places = iter(range(count))  # one step of this iterator is not interrupted by other threads

        def one(_):
            for place in places:
                work(place)

        self._together(one, range(threads))

    def _together(self, work, places: Iterable[int]):
        """work(place) for each of the places at the same time, the first of them in this thread."""
        first, *others = places
        pool = self._threads()
        futures = [pool.submit(self._inside, work, place) for place in others]
        try:
            self._inside(work, first)
        finally:
            errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error

    def _threads(self):
        if self._owner != os.getpid():  # the threads of the parent do not exist in a forked child
            self._forget()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max(1, self.count - 1), thread_name_prefix="smoothgraph")
        return self._pool

    def _inside(self, work, place):
        self._busy.inside = True
        try:
            work(place)
        finally:
            self._busy.inside = False

    def _is_inside(self):
        return getattr(self._busy, "inside", False)


class _OneBlasThread:
    """While any caller is inside, BLAS uses one thread per call: our threads and its own would wait for each other."""

    def __init__(self):
        self._lock = threading.Lock()
        self._count = 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self):
        with self._lock:
            if self._count == 0:
                if self._controller is None:  # looking for the libraries takes a millisecond
                    from threadpoolctl import ThreadpoolController

                    self._controller = ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._count += 1

    def __exit__(self, *error):
        with self._lock:
            self._count -= 1
            if self._count == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()
