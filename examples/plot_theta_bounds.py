"""
Where θ comes from
==================

One node alone has k neighbours for θ in an interval (Theorem 3 of the paper). The band is the mean interval over the nodes. The
paper has one θ for all nodes: the learner starts from the middle of the band, and ends at the θ that gives the whole graph the
wanted degree.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from smoothgraph import GraphLearner, plots

X, _ = load_digits(return_X_y=True)
learner = GraphLearner(n_neighbors=10, locality=0, connect=False).fit(X[:1000])

plots.theta_bounds(learner, most=25)
plt.show()
