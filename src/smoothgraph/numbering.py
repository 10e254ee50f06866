"""Nodes and rows: near numbers for near samples.

A search that sorts the samples into cells gives the members of a cell numbers that follow each other. Loops over the graph
then find in the cache what they need. So a *node* i of the graph is the *row* `row_of[i]` of the table, and this module is the
only one that goes from one to the other.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which row each node is. The last element of `row_of` is −1, so that the node −1, "no entry", gives −1.

    It is empty if nodes have the numbers of their rows.
    """

    row_of: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    @classmethod
    def of(cls, rows) -> "Numbering":
        """Node i is row rows[i]."""
        return cls(np.append(rows, -1).astype(np.int32))

    @property
    def by_row(self) -> bool:
        """Whether nodes have the numbers of their rows."""
        return self.row_of.size == 0

    def rows(self, nodes):
        """The rows that `nodes`, an array, are; −1 stays −1."""
        return nodes if self.by_row else self.row_of[nodes]

    def nodes(self, n: int) -> np.ndarray:
        """The nodes that the n rows are. The last element is −1, so that the row −1, "no entry", gives −1."""
        nodes = np.arange(-1, n, dtype=np.int32)[np.r_[1 : n + 1, 0]]
        if not self.by_row:
            nodes[self.row_of[:-1]] = nodes[:-1].copy()
        return nodes

    def values_by_row(self, values: np.ndarray) -> np.ndarray:
        """One value per node → one value per row."""
        if self.by_row:
            return values
        by_row = np.empty_like(values)
        by_row[self.row_of[:-1]] = values
        return by_row

    def graph_by_row(self, W: sp.csr_matrix) -> sp.csr_matrix:
        """A graph of nodes → the same graph of rows."""
        return W if self.by_row else _renumbered(W, self.row_of[:-1])

    def graph_by_node(self, W: sp.csr_matrix) -> sp.csr_matrix:
        """A graph of rows → the same graph of nodes."""
        return W if self.by_row else _renumbered(W, np.argsort(self.row_of[:-1]))


def _renumbered(W, number):
    """The graph in which node i has become node number[i]."""
    W = W[np.argsort(number)]
    W = sp.csr_matrix((W.data, number[W.indices], W.indptr), shape=W.shape)
    W.sort_indices()
    return W
