"""Lower bounds of squared distances from a few coordinates, which hold for certain.

In: points. Out: `Prefix`: a short vector for every node, so that the squared distance of two vectors is at most that of the
samples, and balls around the cells of these vectors.

Let P have orthonormal columns, the directions in which the samples vary most. With x counted from the middle of the samples
and r = ‖x − PPᵀx‖,

    ‖x − y‖² = ‖Pᵀx − Pᵀy‖² + ‖(I − PPᵀ)(x − y)‖² ≥ ‖Pᵀx − Pᵀy‖² + (r_x − r_y)²,

so the vectors are (Pᵀx, r). They are stored in float32. That moves each of them by at most ROUNDING·‖x‖, so that a pair whose
stored vectors are at distance t is at a distance of t − ROUNDING·(‖x‖ + ‖y‖) at the least. Sparse samples are not centred.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from smoothgraph.distances import Points, squared_norms
from smoothgraph.parallel import Threads

SAMPLED = 4000  # rows from which the directions are taken: they need not be the best
AT_ONCE = 8192  # rows that are projected together
# What storing a vector in float32 moves it by, relative to ‖x‖. Half a unit in the last place is 6e-8 per coordinate, and so
# of the whole; r, the root of a difference of squares in float64, is off by 3e-8 at the most; the rest is room.
ROUNDING = 2e-7


@dataclass(frozen=True, eq=False)
class Prefix:
    """`vectors` (n, p + 1) float32 in the order of nodes, and `slack` (n,): ROUNDING·‖x‖ for each of them."""

    vectors: np.ndarray
    slack: np.ndarray

    @classmethod
    def of(cls, points: Points, count: int, *, threads: Threads) -> "Prefix":
        """Vectors of `count` coordinates and the norm of what these leave out."""
        P = _directions(points, count)
        vectors, slack = np.empty((points.n, count + 1), np.float32), np.empty(points.n, np.float32)

        def project(nodes):
            X = points.from_middle(points.own(np.arange(nodes.start, nodes.stop, dtype=np.int32)))
            X = X if sp.issparse(X) else X.astype(np.float64)
            norms, short = squared_norms(X.astype(np.float64)), X @ P
            vectors[nodes, :-1] = short
            vectors[nodes, -1] = np.sqrt(np.maximum(norms - squared_norms(short), 0.0))
            slack[nodes] = ROUNDING * np.sqrt(norms)

        threads.map(project, points.n, AT_ONCE)
        return cls(vectors, slack)


def _directions(points, count):
    """Orthonormal columns (d, count): of some rows, the directions in which they vary most."""
    rows = points.own(np.arange(0, points.n, 1 + points.n // SAMPLED, dtype=np.int32))
    X = points.from_middle(rows)
    X = X.astype(np.float64) if not sp.issparse(X) else X
    ...


@dataclass(frozen=True, eq=False)
class Balls:
    """For each cell a ball around the vectors of its nodes: `centres` (C, p + 1) and `radii` (C,), which has their slack too."""

    centres: np.ndarray
    radii: np.ndarray
