"""AnnData and scanpy: the learned graph in the place of scanpy's graph of neighbours.

In: an AnnData, or an h5ad file, and what to learn or what was learned. Out: obsp["connectivities"], the weights of the learned
graph; obsp["distances"], the distances of every cell to its n_neighbors − 1 nearest others, as scanpy stores them; and
uns["neighbors"], what was done, in the words of scanpy; or the same entries under the name of `key_added`.
"""

import json
from typing import Any

import numpy as np
import scipy.sparse as sp

from smoothgraph.files import replacing
from smoothgraph.io.exports import fitted, searchable
from smoothgraph.io.graphs import graph_metadata
from smoothgraph.io.h5ad import add_h5ad_graph, neighbors_entry, params_of, write_h5ad_graph
from smoothgraph.messages import warn
from smoothgraph.optional import need
from smoothgraph.parallel import Threads
from smoothgraph.sparse import checked_csr

MOST_VARIABLES = 50  # scanpy takes X as it is up to so many variables, and principal components beyond; as many of them


def neighbors(
    adata,
    n_neighbors: int = 15,
    n_pcs: int | None = None,
    *,
    use_rep: str | None = None,
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **parameters,
):
    """Learn the graph of the cells, in the place of `sc.pp.neighbors`, whose arguments and entries these are.

    Parameters
    ----------
    adata : the AnnData. It is changed, unless `copy` asks for a changed copy.
    n_neighbors : the wanted mean number of neighbours of a cell.
    n_pcs : how many columns of the representation to use; all by default. 0 is X, if `use_rep` is not given.
    use_rep : "X", or the key of an obsm, such as "X_scVI". By default X if there are at most 50 variables, else "X_pca",
        which scanpy computes if it is not there.
    random_state : for approximate neighbours.
    key_added : the entries are called `key_added`, `key_added_connectivities` and `key_added_distances`, instead of neighbors,
        connectivities and distances; scanpy's functions then take `neighbors_key=key_added`.
    copy : return a changed copy, and leave `adata` as it is.
    parameters : those of `GraphLearner`, such as metric, model, locality or n_jobs.

    Returns
    -------
    None, or the copy.
    """
    from smoothgraph.learner import GraphLearner

    adata = adata.copy() if copy else adata
    X, used = _representation(adata, use_rep, n_pcs)
    learner = GraphLearner(n_neighbors, random_state=random_state, **parameters).fit(X)
    _put(adata, learner, key_added, used)
    return adata if copy else None


def to_anndata(adata, learner, key_added: str | None = None, *, use_rep: str | None = None):
    """Put the graph of a learner that is fitted already into an AnnData, where scanpy looks for it.

    Parameters
    ----------
    adata : the AnnData with the cells that the learner was fitted on, in the same order. It is changed, and returned.
    learner : a fitted GraphLearner.
    key_added : as in `neighbors`.
    use_rep : what the learner was fitted on: "X", or the key of an obsm. It is recorded for functions of scanpy that look at
        the samples again, such as umap; without it these choose a representation by scanpy's own rule.
    """
    learner = fitted(learner, "to_anndata", "a graph has weights, and scanpy needs distances too")
    if adata.n_obs != learner.graph_.shape[0]:
        raise ValueError(f"adata has {adata.n_obs} cells, the learner was fitted on {learner.graph_.shape[0]} samples.")
    if use_rep is not None and use_rep != "X" and use_rep not in adata.obsm:
        raise ValueError(f"use_rep={use_rep!r} is not there: adata has X, {', '.join(map(repr, adata.obsm))}.")
    _put(adata, learner, key_added, {"use_rep": use_rep})
    return adata


def write_learned_h5ad(path, learner, table, metadata: dict[str, Any], *, source=None, key=None, key_added=None) -> None:
    """Write what was learned to an h5ad: into a copy of the h5ad `source`, or in its place, or into a new file of its own.

    `key` is the part of `source` that was learned from. `table` has the ids and labels of a new file; those of a copy stay.
    """
    if source is not None:
        label = {"label": metadata["label_column"]} if metadata.get("label_column") else {}
        matrices, entry = _entries(learner, key_added, {}, metadata, label)
        add_h5ad_graph(source, path, matrices, key_added or "neighbors", entry, key or "X")
        return
    distances = nearest_distances(learner) if learner.distances_.can_search else None
    with replacing(path) as unfinished:
        write_h5ad_graph(unfinished, learner.graph_, table.ids, table.labels, metadata, distances, key_added)


def nearest_distances(learner) -> sp.csr_matrix:
    """The distances of every sample to its n_neighbors − 1 nearest others, ascending in each row, as scanpy stores them.

    Scanpy counts the cell itself as the first of n_neighbors. With metric="cosine" a distance is 1 − cos.
    """
    from smoothgraph.neighbors.rows import nearest_rows
    from smoothgraph.transformer import metric_distances

    distances, copies = searchable(learner), learner._copies
    n, width = copies.n, max(2, learner.n_neighbors)
    search = learner.neighbors if isinstance(learner.neighbors, str) and learner.neighbors != "all" else "auto"
    how = {"random_state": learner.random_state, "threads": Threads(learner.n_jobs)}
    rows, z, _ = nearest_rows(distances, copies, width, search, **how)
    values = metric_distances(distances, z[:, 1:], learner.metric)
    return sp.csr_matrix((values.ravel(), rows[:, 1:].ravel(), np.arange(0, n * (width - 1) + 1, width - 1)), shape=(n, n))


def _put(adata, learner, key_added, used):
    matrices, entry = _entries(learner, key_added, used, graph_metadata(learner), {})
    if adata.is_view:
        adata._init_as_actual(adata.copy())  # as scanpy does: a view has no entries of its own
    for name, matrix in matrices.items():
        adata.obsp[name] = matrix
    adata.uns[key_added or "neighbors"] = entry


def _entries(learner, key_added, used, metadata, about):
    """(what goes to obsp, what goes to uns) of a learner that was fitted on what `used` says."""
    prefix = "" if key_added is None else f"{key_added}_"
    matrices = {f"{prefix}distances": nearest_distances(learner), f"{prefix}connectivities": learner.graph_.copy()}
    text = json.dumps(about | {"metadata": metadata})
    return matrices, neighbors_entry(params_of(metadata, **used), text, key_added)


def _representation(adata, use_rep, n_pcs):
    """(the samples that sc.pp.neighbors would take, which these are: use_rep and n_pcs as scanpy records them)."""
    if use_rep is None and n_pcs == 0:
        use_rep, n_pcs = "X", None
    if use_rep == "X" or (use_rep is None and adata.n_vars <= MOST_VARIABLES):
        if adata.X is None:
            raise ValueError(f"adata has no X: name an obsm by use_rep, of {', '.join(map(repr, adata.obsm)) or 'none'}.")
        return adata.X, {"use_rep": use_rep}
    key = use_rep or "X_pca"
    if use_rep is None and key not in adata.obsm:
        _compute_pca(adata, n_pcs)
    if key not in adata.obsm:
        raise ValueError(f"use_rep={use_rep!r} is not there: adata has X, {', '.join(map(repr, adata.obsm))}.")
    X = adata.obsm[key]
    if n_pcs is not None and n_pcs > X.shape[1]:
        raise ValueError(f"n_pcs={n_pcs}, but {key} has {X.shape[1]} columns: compute more, or ask for fewer.")
    if n_pcs is not None:  # not all formats of sparse matrices can be cut
        X = (checked_csr(X, f"obsm[{key!r}]") if sp.issparse(X) else np.asarray(X))[:, :n_pcs]
    return X if sp.issparse(X) else np.asarray(X), {"use_rep": use_rep, "n_pcs": n_pcs}


def _compute_pca(adata, n_pcs):
    """Principal components of X by scanpy, as sc.pp.neighbors does where they are missing."""
    seen = f"adata has {adata.n_vars} variables and no 'X_pca'"
    remedy = "run sc.pp.pca(adata) first, or choose use_rep='X'"
    try:
        scanpy = need("scanpy", "scanpy")
    except ImportError as error:
        raise ImportError(f"{seen}, and scanpy is not installed to compute it: {remedy}.") from error
    warn(f"{seen}, so sc.pp.pca computes it. To choose yourself, {remedy}.")
    scanpy.pp.pca(adata, n_comps=MOST_VARIABLES if n_pcs is None else n_pcs)
