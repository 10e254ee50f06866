"""Approximate neighbour lists, from small cells of samples.

In: distances in which a mean of rows is a centre, the length of the lists. Out: `NeighborLists`, numbered so that the members
of a cell follow each other, with an estimate of their recall.

1. Samples are sorted into cells of a few hundred (cells.py). What follows works on runs of consecutive samples, which look into
   nearly the same cells: all that such a task needs stays in the cache.
2. Every sample is compared with the members of the few cells with the nearest centres, by matrix products.
3. Votes: the neighbours of its neighbours say in which further cells to look.
4. Refinement: a sample is compared with the neighbours of its neighbours, except those in cells that it has looked into.
5. As long as a sample of the lists is far from right, all this goes on with twice as many cells.

Nothing is compiled anew in a process. X is not copied, except if its rows are short: then the copy is smaller than what solving
needs later. Each task writes its own rows, and what it does depends on nothing but the data: the bits do not depend on the
number of threads.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from smoothgraph._kernels import cells as kernels
from smoothgraph._kernels import lists as list_kernels
from smoothgraph._kernels import sparse_cells as sparse_kernels
from smoothgraph.distances import Points, take_rows
from smoothgraph.edges import rows_of_lists
from smoothgraph.neighbors.cells import Cells, CellSizes, Centres
from smoothgraph.neighbors.lists import NeighborLists, RecallSample, check_all_have_neighbors, clean_lists
from smoothgraph.numbering import Numbering
from smoothgraph.parallel import ROWS, Threads, blocks, least_rows

NAME = "approximate"
GOOD_RECALL = 0.97  # below this recall more cells are looked into: word vectors and ten million molecules need it
MAX_WIDENINGS = 4  # times that a sample is compared with the members of more cells at most, the first time included
NODES_AT_ONCE = 3200  # nodes of a task: a dozen cells, whose members look into nearly the same cells
ORIGIN_ROWS = 15  # rows of a task whose median is the origin of its products
FOLLOWED = 16  # nearest neighbours of a sample that votes and refinement follow, and from each of these as many again
FEWEST_VOTES = 2  # for a cell to be looked into
LEAST_CHANGE = 0.005  # refinement stops when a smaller share of the followed neighbours is new
MAX_REFINEMENTS = 6  # rounds of refinement at most; a million molecules take three
SHORT_ROW = 512  # bytes of a row up to which rows are copied in the order of nodes: longer ones are read as fast where they are
KEY_EXPONENT = 100  # of 2: the largest squared norm in the unit of keys, whose distances are float32 and end at 2¹²⁸

CELL_SIZES = CellSizes()
SPARSE_CELL_SIZES = CellSizes(mean=1000, largest=8000, probes=5, votes=4)  # centres are dense: there must be few


def search_approximate(
    distances: Points, k: int, random_state=None, *, sizes: CellSizes | None = None, threads: Threads
) -> NeighborLists:
    """About the k nearest others of every sample. `sizes` are CELL_SIZES unless they are given."""
    sizes = sizes or (SPARSE_CELL_SIZES if sp.issparse(distances.X) else CELL_SIZES)
    sample = RecallSample(distances, k, threads=threads)
    search = CellSearch(distances, k, check_random_state(random_state).randint(2**31), sizes, threads)
    for _ in range(MAX_WIDENINGS):
        search.look_into_nearest()
        search.look_into_voted()
        search.refine()  # takes less than more cells do, of which ten million samples would have had all that may be
        if search.recall(sample) >= GOOD_RECALL or not search.has_more_cells:
            break
    check_all_have_neighbors(search.lists, NAME, search.numbering)
    recall = search.recall(sample)
    return NeighborLists(search.lists, search.z, NAME, exact=False, recall=recall, numbering=search.numbering)


def quick_lists(distances: Points, k: int, *, threads: Threads) -> NeighborLists:
    """Lists that are nearly right, for a search that makes them exact: cells are looked into once, and nothing is judged."""
    search = CellSearch(distances, k, 0, CELL_SIZES, threads)
    search.look_into_nearest()
    search.look_into_voted()
    search.refine()
    return NeighborLists(search.lists, search.z, NAME, exact=False, recall=0.0, numbering=search.numbering)


class CellSearch:
    """Lists that become better: `lists` and `z` (n, k), of nodes in the order of cells, ascending.

    `looked_into` has the cells whose members each node was compared with, −1 for none.
    """

    def __init__(self, distances: Points, k: int, seed: int, sizes: CellSizes, threads: Threads):
        self.sizes, self.threads, self.n, self.probes = sizes, threads, distances.n, 0
        self.centres = Centres(distances, seed, sizes, threads=threads)
        nearest = self.centres.nearest(min(sizes.probes, self.centres.count))
        cells = Cells.of(nearest[:, 0], sizes.largest)
        nearest[:, 0] = cells.home
        self.first_cells: np.ndarray | None = nearest  # until they have been looked into
        self.ptr, self.home, self.numbering = cells.ptr, cells.home[cells.members], Numbering.of(cells.members)
        self.distances = distances.numbered(self.numbering)
        self.X, self.row_of = self._rows_to_read()
        self.room = sparse_kernels.most_entries(self.X.indptr, self.row_of, self.ptr) if sp.issparse(self.X) else None
        self.lists, self.z = np.empty((self.n, k), np.int32), np.empty((self.n, k), distances.dtype)
        threads.map(self._empty, self.n, ROWS)
        self.looked_into = np.empty((self.n, 0), np.int32)

    def _rows_to_read(self):
        """(X, row_of): node i is row row_of[i] of X. Short rows are copied in the order of nodes: near ones are together."""
        X, row_of = self.distances.X, self.numbering.row_of
        if sp.issparse(X) or X.dtype.itemsize * X.shape[1] > SHORT_ROW:
            return X, row_of
        return take_rows(X, row_of[:-1], threads=self.threads), np.arange(self.n, dtype=np.int32)

    def _empty(self, nodes):
        """Empty the lists of nodes. Threads share it, since it takes as long as the system takes to hand out the memory."""
        self.lists[nodes], self.z[nodes] = -1, np.inf

    @property
    def has_more_cells(self) -> bool:
        return self.probes < self.centres.count

    def recall(self, sample: RecallSample) -> float:
        return sample.recall(self.z[self.numbering.nodes(self.n)[sample.nodes]])

    def look_into_nearest(self) -> None:
        """Compare every node with the members of the cells with the nearest centres; the next time with twice as many."""
        nearest, self.first_cells = self.first_cells, None
        if nearest is None:
            nearest = self.centres.nearest(min(2 * self.probes, self.centres.count))
        self.probes = nearest.shape[1]
        cells = take_rows(nearest, self.numbering.row_of[:-1], threads=self.threads)
        del nearest
        for nodes in blocks(self.n, ROWS):
            before = self.looked_into[nodes]
            cells[nodes][(cells[nodes][:, :, None] == before[:, None, :]).any(axis=2)] = -1
        self._look_into(cells)

    def look_into_voted(self) -> None:
        """Compare every node with the members of the cells that most neighbours of its neighbours are in."""
        cells = np.empty((self.n, self.sizes.votes), np.int32)
        followed = min(FOLLOWED, self.lists.shape[1])
        arguments = self.ptr.size - 1, self.home, self.looked_into, self.lists, followed, FEWEST_VOTES, cells
        self.threads.rows(kernels.vote_for_cells, self.n, *arguments, least=least_rows(followed * followed))
        self._look_into(cells)

    def _look_into(self, cells):
        """Compare node i with the members of cells[i]; −1 is none."""
        ends = self.ptr[
            np.searchsorted(self.ptr, np.arange(0, self.n + NODES_AT_ONCE, NODES_AT_ONCE)).clip(max=self.ptr.size - 1)
        ]
        ends = np.unique(ends)

        def one(at):
            self._look_together(slice(int(ends[at.start]), int(ends[at.stop])), cells)

        self.threads.map(one, ends.size - 1, 1)
        self.looked_into = np.concatenate([self.looked_into, cells], axis=1)

    def _look_together(self, nodes, cells):
        """The same for some nodes that follow each other."""
        X, row_of, unit = self.X, self.row_of, self._unit()
        lists, z = self.lists[nodes], self.z[nodes]
        keys = kernels.first_keys(lists, z, self.home, cells[nodes], unit, -(-lists.shape[1] // 8) * 8)
        if not sp.issparse(X):
            some = X[row_of[nodes][:: 1 + (nodes.stop - nodes.start) // ORIGIN_ROWS]]
            origin = np.median(some, axis=0).astype(X.dtype)  # the mean would be far from all if one of them is
            kernels.look_into_cells(nodes.start, origin, X, row_of, self.ptr, cells[nodes], keys, unit)
            kernels.measure_keys(nodes.start, X, row_of, keys, lists, z)
            return
        own, csr = np.arange(nodes.start, nodes.stop, dtype=np.int32), (X.indptr, X.indices, X.data, X.shape[1], row_of)
        sparse_kernels.look_into_cells_sparse(nodes.start, *csr, self.ptr, cells[nodes], keys, unit, self.room)
        found = kernels.numbers_of_keys(keys)
        lists[:], z[:] = clean_lists(self.distances, own, found, lists.shape[1], threads=self.threads)

    def _unit(self):
        """What squared distances are multiplied by in keys, which hold float32: a power of 2."""
        largest = max(self.distances.largest_square, np.finfo(np.float64).tiny)
        return self.distances.dtype.type(2.0 ** (KEY_EXPONENT - np.frexp(largest)[1]))

    def refine(self) -> None:
        """Compare nodes with the neighbours of their nearest neighbours, as long as that changes the lists."""
        before = np.full((self.n, 1), -1, np.int32)
        for _ in range(MAX_REFINEMENTS):
            nearest = self.lists[:, :FOLLOWED].copy()
            is_new = np.empty(nearest.shape, np.int8)
            least = least_rows(FOLLOWED)
            self.threads.rows(list_kernels.mark_new_entries, self.n, nearest, before, is_new, least=least)
            if is_new.mean() < LEAST_CHANGE:
                break
            before = nearest  # what is large goes as soon as it is not needed
            graph = rows_of_lists(nearest, is_new, threads=self.threads)
            del is_new
            self._follow(*graph)
            del graph

    def _follow(self, indptr, indices, is_new):
        """Let lists have the neighbours of neighbours, in a CSR graph, that a path with a new edge leads to."""
        at_new, until = np.empty(self.n, np.bool_), np.empty(indices.size, np.int8)
        self.threads.rows(list_kernels.mark_at_new, self.n, indptr, is_new, at_new)
        self.threads.rows(kernels.sort_by_cell, self.n, self.home, indptr, indices, is_new, until, least=least_rows(FOLLOWED))
        X, cells = self.X, (self.row_of, self.ptr.size - 1, self.home, self.looked_into)
        graph, least = (indptr, indices, is_new, until, at_new, self.lists, self.z), least_rows(FOLLOWED)
        if sp.issparse(X):
            csr = X.indptr, X.indices, X.data, X.shape[1]
            self.threads.rows(sparse_kernels.follow_new_sparse, self.n, *csr, *cells, *graph, least=least)
        else:
            self.threads.rows(kernels.follow_new, self.n, X, *cells, *graph, least=least)
