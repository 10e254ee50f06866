"""
Around one node
===============

An iris between two species: its neighbours, and their neighbours, in rings around it. The width of a line is its weight.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from smoothgraph import GraphLearner, plots

iris = load_iris()
W = GraphLearner(n_neighbors=6).fit(iris.data).graph_

plots.neighborhood(W, node=70, hops=2, labels=iris.target_names[iris.target])
plt.show()
