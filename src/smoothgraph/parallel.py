"""Threads: the only module that has any.

In: a kernel, which is a compiled function without the GIL whose first two arguments are a range of rows, and its other
arguments; or a Python function of a slice. Out: what the kernel wrote into its arrays, or the results of the function in order.

Kernels compute every row by itself and write it to its own place, so that the result has the same bits for any number of
threads. Two things here are process-wide, by nature: the limit on the threads of BLAS, which the last call that needs it takes
off, and the number of our threads that are at work. Fits that run at the same time share the cores: a call takes as many
threads as are free, and goes on alone if there are none.

After an error or an interrupt no thread begins another piece of work, and the caller goes on when all have ended.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Self
from weakref import WeakSet

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
    """The number of threads that `n_jobs` asks for; None and −1 mean one for each core that this process may use.

    OMP_NUM_THREADS bounds these cores, as it does for others: pools of processes set it, so that their workers share a machine.
    """
    if n_jobs in (None, -1):
        import joblib

        limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        cores = int(joblib.cpu_count())
        return min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores
    return int(n_jobs)  # type: ignore[arg-type]


class Threads:
    """As many threads as `n_jobs` asks for. They begin when they are first needed, and end with the `with`, or this object.

    Work that is itself one of the parallel pieces of this object runs in its own thread alone: threads never wait for threads
    that wait for them.

    What runs `with Threads(n_jobs) as threads:` can be interrupted: numba makes a SystemError of a KeyboardInterrupt that comes
    in a compiled loop, and it leaves the `with` as what it was.
    """

    def __init__(self, n_jobs: int | None = None):
        self.count = thread_count(n_jobs)
        self._forget()

    def _forget(self):
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()
        self._busy = threading.local()

    def __getstate__(self):
        return {"count": self.count}

    def __setstate__(self, state):
        self.count = state["count"]
        self._forget()

    def __enter__(self) -> Self:
        self._blas_before = one_blas_thread.held()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if error is not None:
            one_blas_thread.hold(self._blas_before)  # an interrupt may have come where a limit was about to be taken off
        if self._pool is not None and self._owner == os.getpid():
            self._pool.shutdown()
        self._forget()
        cause = error
        while isinstance(cause, SystemError) and cause.__cause__ is not None:  # one for each compiled function on the way
            cause = cause.__cause__
        if cause is not error:
            raise cause from None

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

        def prepare(threads):
            barrier = threading.Barrier(threads)

            def one(thread):
                first, last = thread * lanes // threads, (thread + 1) * lanes // threads
                for wave in range(waves):
                    kernel(wave, wave + 1, first, last, *arguments)
                    try:
                        barrier.wait()
                    except threading.BrokenBarrierError:  # another thread has the error
                        return

            return one, barrier.abort

        if min(self.count, lanes) == 1 or self._is_inside():
            kernel(0, waves, 0, lanes, *arguments)
            return
        self._together(prepare, min(self.count, lanes))

    def _share(self, work, count):
        """work(0) to work(count − 1): a thread takes the next place that no thread has taken."""
        places = iter(range(count))  # one step of this iterator is not interrupted by other threads

        def one(_):
            for place in places:
                work(place)

        if min(self.count, count) <= 1 or self._is_inside():
            one(0)
        else:
            self._together(lambda threads: (one, lambda: list(places)), min(self.count, count))

    def _together(self, prepare, wanted: int):
        """work(thread) for the threads 0, which is this one, 1, … at the same time: as many as wanted, or as are free.

        `prepare(number of threads)` returns `work`, and what is called after an error so that the work of others ends soon.
        """
        futures: list[Future] = []
        stop = None
        try:
            with _hiring:
                busy = sum(not future.done() for future in _hired)
                threads = 1 + max(0, min(wanted, self.count - busy) - 1)
                work, stop = prepare(threads)
                for thread in range(1, threads):
                    futures.append(self._threads().submit(self._inside, work, thread, stop))
                    _hired.add(futures[-1])
            self._inside(work, 0, stop)
            wait(futures)
        except BaseException:
            if stop is not None:
                stop()
            wait(futures)
            raise
        for future in futures:
            future.result()

    def _threads(self):
        if self._owner != os.getpid():  # the threads of the parent do not exist in a forked child
            self._forget()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max(1, self.count - 1), thread_name_prefix="smoothgraph")
        return self._pool

    def _inside(self, work, thread, stop):
        try:
            self._busy.inside = True
            work(thread)
        except BaseException:
            stop()
            raise
        finally:
            self._busy.inside = False

    def _is_inside(self):
        return getattr(self._busy, "inside", False)


_hiring = threading.Lock()  # is held while free threads are counted and taken
_hired: WeakSet[Future] = WeakSet()  # what our threads work on, of all objects in this process


class _OneBlasThread:
    """While any caller is inside, BLAS uses one thread per call: our threads and its own would wait for each other.

    Others set the same limits, scikit-learn for one, and put back what they saw. So a limit that is no longer the one that was
    set here is left as it is.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._held: dict[int, int] = {}  # thread → how often it is inside
        self._before: list[tuple[Any, int]] = []  # what was limited, and its number of threads
        self._libraries: list[Any] | None = None

    def __enter__(self):
        self.hold(self.held() + 1)

    def __exit__(self, *error):
        self.hold(self.held() - 1)

    def held(self) -> int:
        """How often the calling thread is inside."""
        return self._held.get(threading.get_ident(), 0)

    def hold(self, count: int) -> None:
        """Let the calling thread be inside `count` times. Nothing is lost if this is interrupted and called again."""
        with self._lock:
            if count and not self._before:
                self._limit()
            self._held[threading.get_ident()] = count
            if not any(self._held.values()):
                self._restore()
                self._held.clear()

    def _limit(self):
        if self._libraries is None:  # looking for the libraries takes a millisecond
            from threadpoolctl import ThreadpoolController

            self._libraries = [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]
        for library in self._libraries:
            self._before.append((library, library.num_threads))
            library.set_num_threads(1)

    def _restore(self):
        while self._before:
            library, count = self._before[-1]
            if library.num_threads == 1:
                library.set_num_threads(count)
            self._before.pop()

    def forget(self):
        """In a forked child: the threads that were inside do not exist."""
        self._lock = threading.RLock()
        self._held.clear()
        self._restore()


one_blas_thread = _OneBlasThread()


def _after_fork():
    global _hiring
    _hiring = threading.Lock()
    _hired.clear()
    one_blas_thread.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
