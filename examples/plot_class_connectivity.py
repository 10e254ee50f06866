"""
How well classes are separated
==============================

The share of the weight of each class that goes to each class. A graph that is good for learning from few labels has nearly all
of it on the diagonal.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from smoothgraph import GraphLearner, plots

X, y = load_digits(return_X_y=True)
W = GraphLearner(n_neighbors=10).fit(X[:1000]).graph_

plots.class_connectivity(W, y[:1000])
plt.show()
