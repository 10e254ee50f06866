"""
Neighbour counts and weights
============================

The wanted number of neighbours is a mean: nodes in dense regions have more, nodes in sparse regions fewer. Weights are at most
1, and most are small.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from smoothgraph import GraphLearner, plots

X, _ = load_digits(return_X_y=True)
W = GraphLearner(n_neighbors=10).fit(X[:1000]).graph_

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plots.neighbor_counts(W, ax=left)
plots.weights(W, ax=right)
plt.show()
