"""
Where θ comes from
==================

For a single node, each number of neighbours k belongs to an interval of θ (Theorem 3 of the paper). The means of its ends over
the nodes are the band; the learner starts from its middle, and ends at the θ that gives the whole graph the wanted degree.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from smoothgraph import GraphLearner, plots

X, _ = load_digits(return_X_y=True)
learner = GraphLearner(n_neighbors=10).fit(X[:1000])

plots.theta_bounds(learner, most=25)
plt.show()
