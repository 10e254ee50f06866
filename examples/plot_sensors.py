"""
A sensor network
================

Sixty sensors measure a field forty times. Only sensors within radio range may have an edge. The allowed edges are the stored
entries of a sparse matrix of distances, here between the measurements, and the learner chooses among them: it never
adds an edge that is not stored.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import radius_neighbors_graph

from smoothgraph import GraphLearner, plots

rng = np.random.default_rng(0)
place = rng.random((60, 2))
west = place[:, 0] < 0.5  # there is a wall at 0.5, and another field behind it
waves = rng.normal(size=(2, 40, 2)) * 2.0
phases = rng.uniform(0, 2 * np.pi, (2, 40))
field = np.where(west[:, None], np.sin(place @ waves[0].T + phases[0]), np.sin(place @ waves[1].T + phases[1]))
measured = field + 0.1 * rng.normal(size=field.shape)

in_range = radius_neighbors_graph(place, 0.25).tocoo()
i, j = in_range.row, in_range.col
D = sp.csr_matrix((np.linalg.norm(measured[i] - measured[j], axis=1), (i, j)), shape=(60, 60))

learner = GraphLearner(n_neighbors=4, metric="precomputed").fit(D)
W = learner.graph_

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
side = np.where(west, "west", "east")
allowed = sp.csr_matrix((np.ones(D.nnz), D.indices, D.indptr), shape=D.shape)
plots.graph(allowed, place, labels=side, ax=left).set_title(f"{D.nnz // 2} allowed edges")
plots.graph(W, place, labels=side, ax=right).set_title(f"{W.nnz // 2} learned edges")
for ax in (left, right):
    ax.axvline(0.5, color="black", linestyle=":")
left.get_legend().remove()
plt.show()
