"""What was tried where opponents win: remedies for samples that are far from all others. Nothing of this is in the package.

In the log model the weight of a pair grows with the need of both ends, (λᵢ + λⱼ)/2: samples far from all others have a large λ
and prefer each other, however far apart they are. A sample that solves its one-node problem alone (Theorem 1) takes its
nearest. Both remedies give learned weight back to these: "a quarter alone" a quarter of all weight, "far edges replaced" the
weight of edges whose ends are not among the 2k nearest of each other.
"""

import numpy as np
import scipy.sparse as sp

from experiments.common import graphs, search
from experiments.decision import KS
from smoothgraph.theta import node_thetas

REMEDIES = {k: [f"a quarter alone, k={k}", f"far edges replaced, k={k}"] for k in KS}
FAR_SHARE = 0.2  # samples that count as far: those with the largest distances to their 15th neighbour
SHARE_ALONE = 0.25  # of all weight


def remedied(X):
    """The graphs of `REMEDIES`, in their order."""
    for k, (_, W) in zip(KS, graphs(X, "log", KS, locality=1.0, connect=True, n_jobs=1), strict=True):
        lists = search(X, 2 * k)
        P = alone(lists, k)
        mixed = (1.0 - SHARE_ALONE) * W / W.sum() + SHARE_ALONE / (2.0 * len(X)) * (P + P.T)
        yield (mixed * W.sum()).tocsr()
        yield without_far_edges(W, P, lists.indices)


def on_distinct(X, make):
    """Graphs that `make` makes of the distinct samples; copies hang on the first of them, as in the learner."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    original = first[group.ravel()]  # for every sample the first one that is equal to it
    nodes, copies = np.unique(first), np.flatnonzero(original != np.arange(len(X)))
    for W in make(X[nodes]):
        W = W.tocoo()
        rows, columns = np.concatenate([nodes[W.row], copies]), np.concatenate([nodes[W.col], original[copies]])
        W = sp.csr_matrix((np.concatenate([W.data, np.ones(copies.size)]), (rows, columns)), shape=(len(X), len(X)))
        yield W.maximum(W.T).tocsr()


def alone(lists, k):
    """The weights that each sample takes alone with k neighbours, each row scaled to the sum 1: not symmetric."""
    z, near = lists.distances.astype(float), lists.indices[:, :k]
    cost = node_thetas(z, k)[:, None] * z[:, :k]
    total = cost.sum(axis=1, keepdims=True)
    w = np.maximum((total + np.sqrt(total**2 + 4 * k)) / (2 * k) - cost, 0.0)
    w /= w.sum(axis=1, keepdims=True)
    return sp.csr_matrix((w.ravel(), near.ravel(), np.arange(0, near.size + 1, k)), shape=(len(z), len(z)))


def without_far_edges(W, P, near):
    """W, where the weight of edges that are in neither end's list `near` goes to what each end takes alone, the rows of P."""
    listed = sp.csr_matrix((np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, near.shape[1])), shape=W.shape)
    kept = W.multiply(listed.maximum(listed.T)).tocsr()
    replaced = sp.diags(np.asarray((W - kept).sum(axis=1)).ravel()) @ P
    return (kept + replaced + replaced.T).tocsr()


def far_samples(X):
    """Which samples are far from all others."""
    radius = search(X, 15).distances[:, -1]
    return radius >= np.quantile(radius, 1.0 - FAR_SHARE)


def far_weight(W, is_far):
    """Percent of the weight of far samples that is on edges between them."""
    rows = W[is_far]
    return round(100.0 * float(rows[:, is_far].sum() / rows.sum()), 1)
