"""
All models on one data set
==========================

The same 240 handwritten digits, one call for each model, drawn over their first two principal components. All are asked for
six neighbours. The width of a line is the weight, relative to the largest in the same picture. Above each picture: the mean
number of neighbours, the number of components, and the share of the weight between different digits. The bridges that
``connect`` added are dashed.

Only the first four have the wanted number of neighbours. With "hard" and "soft" the model decides. A nearest-neighbour graph
has more than six, since one end that lists the other is enough for an edge. :doc:`Choosing a model </guides/models>` says what
each is good for.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from smoothgraph import GraphLearner, plots
from smoothgraph.uses import wrong_weight

X, y = load_digits(return_X_y=True)
some = np.flatnonzero(y < 4)[:240]
X, y = X[some], y[some]
place = PCA(2, random_state=0).fit_transform(X)

choices = [
    {"model": "log"},
    {"model": "log", "locality": 1.0},
    {"model": "log", "connect": True},
    {"model": "l2"},
    {"model": "hard"},
    {"model": "soft"},
    {"model": "knn"},
    {"model": "knn-gaussian"},
    {"model": "knn-self-tuning"},
]

figure, axes = plt.subplots(3, 3, figsize=(12, 12), layout="constrained")
for choice, ax in zip(choices, axes.flat, strict=True):
    learner = GraphLearner(n_neighbors=6, **choice).fit(X)
    plots.graph(learner.graph_, place, labels=y, ax=ax)
    ax.get_legend().remove()
    for pair in [] if learner.bridges_ is None else learner.bridges_:
        ax.plot(*place[pair].T, color="black", linestyle="--", linewidth=1.5, zorder=3)
    name = ", ".join(value if key == "model" else f"{key}={value}" for key, value in choice.items())
    components = "one component" if learner.n_components_ == 1 else f"{learner.n_components_} components"
    wrong = f"{wrong_weight(learner.graph_, y):.1%} between digits"
    ax.set_title(f"{name}\n{learner.n_neighbors_:.1f} neighbours, {components}, {wrong}", fontsize=10)
plt.show()
