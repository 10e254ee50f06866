"""
The graph over an embedding
===========================

A graph of handwritten digits, drawn over the first two eigenvectors of its Laplacian. The colours are the
classes, which the learner does not see.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from smoothgraph import GraphLearner, plots

X, y = load_digits(return_X_y=True)
learner = GraphLearner(n_neighbors=10).fit(X[:1000])

plots.graph(learner.graph_, labels=y[:1000])
plt.show()
