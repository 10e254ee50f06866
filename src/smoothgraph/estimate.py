"""What a fit will take: time and memory, before it begins.

In: the parameters of a learner, and the shape and type of X. Out: an `Estimate`. Nothing of the size of X is made or read.

Memory is the largest resident size of a process that opens X as a memory map (or holds it) and fits, with kernels that were
compiled before (compiling takes some 100 MB more, once). It is what the interpreter and the packages take, X, blocks of each
thread, and what the hungriest stage has per sample. The terms follow the arrays of each stage, and `python -m benchmarks
estimate` compares the sum with what was measured; the aim is 25 %, for the log and ℓ2 models and nearest-neighbour graphs. For
the models "hard" and "soft" it is a guess. Rows that are equal are not known beforehand: X without its copies is held beside X,
but then the lists are shorter too. Nor are hubs, samples that are near to very many others: word vectors take twice the
estimate, since up to a hundred more edges for each sample are let in.

Time is rougher. The constants are seconds of two cores on which the matrix product of `_speed` takes REFERENCE_SECONDS; it is
measured here, and the estimate goes with it and with the number of threads. Hard data take twice as long, or more.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smoothgraph import _checks
from smoothgraph.distances import COLUMNS
from smoothgraph.memory import available_memory, readable
from smoothgraph.models import model_of
from smoothgraph.neighbors import EXACT_WORK
from smoothgraph.neighbors.approximate import CELL_SIZES, FOLLOWED, SHORT_ROW, SPARSE_CELL_SIZES
from smoothgraph.neighbors.lists import LISTS_AT_ONCE
from smoothgraph.parallel import ROWS, one_blas_thread, thread_count

CERTAIN = 1.25  # a fit is refused if the estimate is beyond the memory there is by more than it may be wrong
PROCESS_BYTES = 290e6  # Python with numpy, scipy, scikit-learn and numba, and our kernels loaded
BYTES_AT_ONCE = 1 << 25  # of rows of X that a thread copies together at most
EDGES_PER_ENTRY = 1.42  # allowed edges at a node, for each entry of its list: about 0.6 of the neighbours list it too
NODE_BYTES = 200  # numbers that the solve has for each node: λ, limits, degrees, energies, offsets, marks
CONNECT_BYTES = 200  # more of them while components are connected and possible pairs are looked for
GRAPH_COPIES = 5  # times that a graph is held while it is numbered, scaled and kept
REFERENCE_SECONDS = 1.6e-3  # of the product of `_speed`, where the constants below were measured
PRODUCT = 512, 64, 2048  # rows, depth and columns of that product
START_SECONDS = 2.5  # imports, and loading the kernels
PAIR_SECONDS = 1.8e-11  # exact search: n²·(d + 60) of these
SAMPLE_SECONDS, FEATURE_SECONDS = 16e-6, 0.08e-6  # approximate search: for each sample, and each of its features
ENTRY_SECONDS = 0.45e-6  # after the search: for each entry of a list


class Estimate(NamedTuple):
    """Seconds and bytes that a fit will take, about; the search that it will use; and the bytes of X, which are among them."""

    seconds: float
    memory: float
    search: str
    samples: float

    def __str__(self) -> str:
        return f"about {_seconds(self.seconds)} and {readable(self.memory)} of memory, {self.search} search"


def _seconds(count: float) -> str:
    return f"{count:.1f} s" if count < 10 else f"{count:.0f} s" if count < 100 else f"{count / 60:.0f} min"


class _Sizes(NamedTuple):
    """What the terms are made of: s bytes of a number, K entries of a list, `edges` allowed edges at a node."""

    n: int
    d: int
    s: int
    K: int
    k: int
    edges: float
    threads: int
    nnz: int | None
    search: str
    given_bytes: float  # of X as it was given


def estimate(learner, n: int, d: int, dtype: Any = np.float64, nnz: int | None = None) -> Estimate:
    """About what `learner.fit` will take for X of n rows and d columns: see the module.

    Parameters
    ----------
    learner : a `GraphLearner`.
    n, d : the shape of X.
    dtype : that of X; what is not float32 or float64 becomes one of them, in a copy.
    nnz : the number of entries, if X is sparse.
    """
    model = _checks.check_parameters(learner)
    _checks.check_n_neighbors(learner.n_neighbors, n)
    sizes = _sizes(learner, model, int(n), int(d), np.dtype(dtype), nnz)
    return Estimate(_time(sizes, model), _memory(learner, model, sizes), sizes.search, _samples(sizes))


def check_fits(learner, X):
    """X as it is. Raises, with advice, if it is certain that a fit of X does not fit into the memory of this machine.

    What is not in doubt is refused: pages of a memory map need not stay in memory, and the estimate may be 25 % too high.
    """
    shape: Any = getattr(X, "shape", ())
    dtype = getattr(X, "dtype", np.float64)
    if len(shape) != 2 or not isinstance(dtype, np.dtype) or dtype.kind not in "fiub" or learner.n_neighbors >= shape[0]:
        return X  # other checks say what is wrong, or nothing is known of the size
    model = model_of(learner.model)
    sizes = _sizes(learner, model, shape[0], shape[1], dtype, X.nnz if sp.issparse(X) else None)
    needed = _memory(learner, model, sizes)
    certain = (needed - (_samples(sizes) if isinstance(X, np.memmap) else 0.0)) / CERTAIN
    there = available_memory()
    if certain > there:
        raise ValueError(
            f"A fit of {shape[0]:,} samples × {shape[1]:,} features needs about {readable(needed)} of memory, and there "
            f"are {readable(there)}. {_advice(learner, dtype, sizes, needed)}"
        )
    return X


def _advice(learner, dtype, sizes, needed):
    """What saves most, and with what is left of the need."""
    if sizes.search == "all":
        return "Use neighbors='auto': with complete=True the graph is proven to be the same."
    if _samples(sizes) > 0.5 * needed:
        smaller = "as float32, " if dtype == np.float64 else ""
        return f"Most of it is X: give it {smaller}as a memory map (np.load(file, mmap_mode='r')), or with fewer features."
    least = _memory(learner, model_of(learner.model), sizes._replace(K=6, k=5, s=4, edges=6 * EDGES_PER_ENTRY))
    return (
        f"Ask for fewer neighbours than n_neighbors={learner.n_neighbors}, lists shorter than oversampling="
        f"{learner.oversampling:g} makes them, or give X as float32: with 5, 1.2 and float32 it is about {readable(least)}. Or "
        "take a part of the samples."
    )


def _sizes(learner, model, n, d, dtype, nnz):
    s = np.dtype(_checks.float_type(np.empty(0, dtype))).itemsize
    K = min(learner._width(model), n - 1)
    search, edges = _search(learner, n, d, nnz), min(EDGES_PER_ENTRY * K, n - 1.0)
    if search == "allowed edges":
        K, edges = 0, (nnz or 0) / n
    elif search == "all":
        K, edges = 0, n - 1.0
    given = float(n) * d * dtype.itemsize if nnz is None else float(nnz) * (4 + dtype.itemsize)
    return _Sizes(n, d, s, K, learner.n_neighbors, edges, thread_count(learner.n_jobs), nnz, search, given)


def _search(learner, n, d, nnz):
    neighbors, is_matrix = learner.neighbors, str(learner.metric).startswith("precomputed")
    if is_matrix and nnz is not None:
        return "allowed edges"
    if not isinstance(neighbors, str):
        return "given"
    if neighbors == "auto":
        return "exact" if is_matrix or float(n) ** 2 * (d + 60) <= EXACT_WORK else "approximate"
    return "exact" if is_matrix and neighbors == "approximate" else neighbors


# --- memory ----------------------------------------------------------------------------------------------------------------


def _samples(sizes):
    """Bytes of X as it is given, and of the copy that another type needs."""
    entries = float(sizes.n) * sizes.d if sizes.nnz is None else float(sizes.nnz)
    held = entries * (sizes.s if sizes.nnz is None else 4 + sizes.s)
    return sizes.given_bytes + (held if held != sizes.given_bytes else 0.0)


def _memory(learner, model, sizes):
    """The hungriest stage, and what is there all the time."""
    samples = _samples(sizes)
    preparing, more = 0.0, 0.0
    if learner.metric == "cosine" or str(learner.metric).startswith("precomputed"):  # rows of length 1, made in two steps
        preparing, more = 2.0 * samples, samples
    elif sizes.nnz is not None:
        preparing = samples
    stages = _per_sample(learner, model, sizes)
    return PROCESS_BYTES + samples + max(preparing, more + _blocks(sizes) + max(stages) * sizes.n)


def _blocks(sizes):
    """What threads hold while they compare blocks of samples, and lists of wide rows while these are measured."""
    row = (sizes.d + 2) * sizes.s if sizes.nnz is None else (sizes.nnz / sizes.n) * (4 + sizes.s)
    rows, columns = min(ROWS, -(-sizes.n // sizes.threads)), min(COLUMNS, sizes.n)
    thread = 1.5 * rows * columns * sizes.s
    thread += 3.0 * min(rows * row, BYTES_AT_ONCE) + 2.0 * min(columns * row, BYTES_AT_ONCE)
    return sizes.threads * thread + min(LISTS_AT_ONCE * row, sizes.n * row, BYTES_AT_ONCE)


def _per_sample(learner, model, sizes):
    """Bytes per sample of each stage: search, θ, solve, graph."""
    n, K, s, edges, entry = sizes.n, sizes.K, sizes.s, sizes.edges, 4 + sizes.s
    lists = K * entry
    search = 8.0 * (K + max(8, K // 8)) + lists
    if sizes.search == "approximate":
        cells = CELL_SIZES if sizes.nnz is None else SPARSE_CELL_SIZES
        looked_into = 4.0 * (cells.probes + cells.votes)  # the cells that every sample was compared with
        copied = sizes.d * s if sizes.nnz is None and sizes.d * s <= SHORT_ROW else 0.0
        search = lists + looked_into + 23.0 * FOLLOWED + sizes.d * s / cells.mean + copied
    elif sizes.search == "all":
        search = n * (5.0 + 2.0 * s)
    if not model.learns:
        return search, 2.0 * lists + 80.0 * K, 2.0 * EDGES_PER_ENTRY * 12.0 * K * 2.0
    if not hasattr(model, "theta_at"):  # the models of Daitch: weights of several sweeps for each edge, and X in float64
        blocks = sizes.threads * ROWS * 8.0 * (1.0 + sizes.d / 50.0) if n <= 10_000 and learner.complete else 0.0
        return search, lists + 150.0 * edges + 64.0 * sizes.d + blocks
    locality, connect = _checks.locality_and_connect(learner, model, learner.theta is not None or learner.alpha is not None)
    theta = lists + (K * s if locality else 0.0) + edges * entry + 60.0
    live = entry if model.name != "l2" else 4.0  # the edges that sweeps look at; Newton's method keeps numbers only
    solve = edges * (entry + live) + NODE_BYTES + (CONNECT_BYTES if connect else 0.0)
    graph = GRAPH_COPIES * 12.0 * sizes.k + 150.0
    return search, theta, solve, graph


# --- time ------------------------------------------------------------------------------------------------------------------


def _time(sizes, model):
    """Seconds of a process that imports, fits and ends."""
    work = float(sizes.n)
    if sizes.search in ("exact", "all"):
        search = PAIR_SECONDS * work * work * (sizes.d + 60.0)
    else:
        search = work * (SAMPLE_SECONDS + FEATURE_SECONDS * sizes.d) if sizes.search == "approximate" else 0.0
    after = ENTRY_SECONDS * work * max(sizes.K, sizes.edges)
    if not hasattr(model, "theta_at") and model.learns:
        after = 1e-6 * work * sizes.edges * sizes.d  # the models of Daitch
    return START_SECONDS + _speed() * (search + after) * 2.0 / sizes.threads


def _speed() -> float:
    """How many times as long as there a matrix product takes here, in one thread: the best of some, a few milliseconds."""
    rows, depth, columns = PRODUCT
    left, right = np.ones((rows, depth), np.float32), np.ones((depth, columns), np.float32)
    best = np.inf
    with one_blas_thread:
        for _ in range(10):
            begin = time.thread_time()
            left @ right
            best = min(best, time.thread_time() - begin)
    return max(best, 1e-6) / REFERENCE_SECONDS
