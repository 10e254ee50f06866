"""
How fast it converges
=====================

The relative duality gap of the paper's model after each round, for the default solver and for the paper's primal-dual scheme.
The mean squared error of the weights is at most the gap.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from smoothgraph import GraphLearner, plots

X, _ = load_digits(return_X_y=True)
learner = GraphLearner(n_neighbors=10, locality=0, connect=False).fit(X[:500])

plots.convergence(learner, solvers=("nodewise", "primal_dual"))
plt.show()
