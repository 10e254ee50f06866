"""
Learned, and nearest neighbours
===============================

240 handwritten digits, 0 to 3, over their first two principal components. Both graphs have about eight neighbours per node.
The width of a line is its weight. Black edges are between different digits; neither graph was given the digits.

In a nearest-neighbour graph a node has its k nearest neighbours, however far they are. In the learned graph distance costs
something: a node that is far from its neighbours has fewer edges, or weaker ones.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from smoothgraph import GraphLearner, plots
from smoothgraph.uses import wrong_weight

X, y = load_digits(return_X_y=True)
some = np.flatnonzero(y < 4)[:240]
X, y = X[some], y[some]
place = PCA(2, random_state=0).fit_transform(X)

# One end that lists the other is enough for an edge, so lists of six give about eight neighbours.
graphs = {
    "nearest neighbours": GraphLearner(n_neighbors=6, model="knn").fit(X),
    "learned": GraphLearner(n_neighbors=8).fit(X),
}

figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
for ax, (name, learner) in zip(axes, graphs.items(), strict=True):
    W = learner.graph_
    plots.graph(W, place, labels=y, ax=ax)
    edges = sp.triu(W).tocoo()
    for i, j, w in zip(edges.row, edges.col, edges.data / W.data.max(), strict=True):
        if y[i] != y[j]:
            ax.plot(*place[[i, j]].T, color="black", linewidth=0.4 + 2.0 * w, zorder=3)
    wrong = f"{wrong_weight(W, y):.1%} of the weight is between different digits"
    ax.set_title(f"{name}: {learner.n_neighbors_:.1f} neighbours per node\n{wrong}")
axes[0].get_legend().remove()
plt.show()
