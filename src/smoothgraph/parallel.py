"""Threads that share work: the only module that has any. (signals.py has one that waits.)

In: a kernel, which is a compiled function without the GIL whose first two arguments are a range of rows, and its other
arguments; or a Python function of a slice. Out: what the kernel wrote into its arrays, or the results of the function in order.

Kernels compute every row by itself and write it to its own place, so that the result has the same bits for any number of
threads. Two things here are process-wide, by nature: the limit on the threads of BLAS, which the last call that needs it takes
off, and the number of our threads that are at work. Fits that run at the same time share the cores: a call takes as many
threads as are free, and goes on alone if there are none.

After an error or an interrupt no thread begins another piece of work, and the caller goes on when all have ended.

An interrupt can come between any two instructions of Python in the main thread. The classes of `threading` and
`concurrent.futures` are written in Python: interrupted where they have taken a lock and are not yet bound to give it back, they
leave it taken, and all threads wait for ever. So here are only what C has: plain locks, entered by `with`, and SimpleQueue.
"""

import os
import threading
from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Self
from weakref import ref

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
    in a compiled loop, and of that another one perhaps, and it leaves the `with` as what it was.
    """

    def __init__(self, n_jobs: int | None = None):
        self.count = thread_count(n_jobs)
        self._forget()

    def _forget(self):
        self._tasks: SimpleQueue = SimpleQueue()  # what the threads do next; what is no tuple ends them
        self._begun = 0  # threads that take from it
        self._owner = os.getpid()
        self._busy = threading.local()

    def _end(self):
        if self._begun and self._owner == os.getpid():  # the threads of the parent do not exist in a forked child
            self._tasks.put(None)
        self._forget()

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
        self._end()
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
            barrier = _Barrier(threads)

            def one(thread):
                first, last = thread * lanes // threads, (thread + 1) * lanes // threads
                for wave in range(waves):
                    kernel(wave, wave + 1, first, last, *arguments)
                    if not barrier.wait(thread):  # another thread has the error
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
        crew, stop = _Crew(), None
        try:
            with _hiring:
                busy = sum(other.busy for other in [known() for known in list(_crews)] if other is not None)
                threads = 1 + max(0, min(wanted, self.count - busy) - 1)
                work, stop = prepare(threads)
                self._hire(crew, threads - 1, work, stop)
            self._busy.inside = True
            work(0)
        except BaseException:
            if stop is not None:
                stop()
            raise
        finally:
            self._busy.inside = False
            crew.end()
        if crew.errors:
            raise crew.errors[0]

    def _hire(self, crew, helpers, work, stop):
        """Let threads of ours help with this work: they begin, if there are not yet so many."""
        if self._owner != os.getpid():
            self._forget()
        crew.helpers = helpers
        _crews.add(ref(crew, _crews.discard))
        while self._begun < helpers:
            start_new_thread(_serve, (self._tasks, self._busy, ref(self, self._tasks.put)))
            self._begun += 1
        for thread in range(1, helpers + 1):
            self._tasks.put((crew, work, thread, stop))

    def _is_inside(self):
        return getattr(self._busy, "inside", False)


def _serve(tasks, busy, _owner):
    """What a thread does: one task after the other, until there is something else, which it leaves for the next thread.

    `_owner` is a reference that puts itself among the tasks when the object that the threads belong to is gone.
    """
    busy.inside = True
    while isinstance(task := tasks.get(), tuple):
        crew, *what = task
        crew.help(*what)
        del crew, task, what  # nothing is held while it waits
    tasks.put(None)


class _Crew:
    """The threads that help a caller with one piece of work. What comes when it is over does not begin."""

    def __init__(self):
        self.helpers = 0  # so many were asked to help
        self.errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._at_work, self._is_over = 0, False
        self._ended = threading.Lock()  # is released by the last that is at work, once it is over
        self._ended.acquire()

    @property
    def busy(self) -> int:
        """How many threads it keeps from other work."""
        return self._at_work if self._is_over else self.helpers

    def help(self, work, thread, stop):
        with self._lock:
            if self._is_over:
                return
            self._at_work += 1
        try:
            work(thread)
        except BaseException as error:
            self.errors.append(error)
            stop()
        finally:
            with self._lock:
                self._at_work -= 1
                if self._is_over and not self._at_work:
                    self._ended.release()

    def end(self):
        """It is over: wait for those that are at work."""
        with self._lock:
            self._is_over = True
            is_alone = not self._at_work
        if not is_alone:
            self._ended.acquire()


class _Barrier:
    """Where each of some threads waits until all have come, time after time."""

    def __init__(self, threads: int):
        self._lock = threading.Lock()
        self._threads = self._missing = threads
        self._is_aborted = False
        self._doors = [threading.Lock() for _ in range(threads)]  # each is taken, until its thread may go on
        for door in self._doors:
            door.acquire()

    def wait(self, thread: int) -> bool:
        """True when all threads have come, False after `abort`."""
        with self._lock:
            if self._is_aborted:
                return False
            self._missing -= 1
            is_last = self._missing == 0
            if is_last:
                self._missing = self._threads
                for other, door in enumerate(self._doors):
                    if other != thread:
                        door.release()
        if not is_last:
            self._doors[thread].acquire()
        return not self._is_aborted

    def abort(self) -> None:
        """No thread waits any more."""
        with self._lock:
            self._is_aborted = True
            for door in self._doors:
                if door.locked():
                    door.release()


_hiring = threading.Lock()  # is held while free threads are counted and taken
_crews: set[ref[_Crew]] = set()  # those that there are, of all objects in this process


class _OneBlasThread:
    """While any caller is inside, BLAS uses one thread per call: our threads and its own would wait for each other.

    Others set the same limits, scikit-learn for one, and put back what they saw. So a limit that is no longer the one that was
    set here is left as it is. What others put back when we are gone cannot be told from what a user wants, and stays too.
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
    _crews.clear()
    one_blas_thread.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
