"""Connect the components of a graph at the least cost.

In: the state of a certified solve. Out: the same for a graph with one component, with the bridges that it took. The log barrier
forbids isolated nodes, not isolated pairs; the ℓ2 model not even those.

The cost of a pair without weight is θz − (λᵢ+λⱼ)/2 ≥ 0: how much nearer it would have to be to get any. Components are
connected by a spanning forest of least cost, first with allowed edges; where these leave components, with the cheapest pairs
found by a search. A bridge gets the smaller of the mean weights that its two ends had before there were any bridges, and the
problem is solved anew with that weight given: everything else is optimal, and the duality gap and the support certificate
prove it of the problem as it is then. A pair that the model itself comes to give weight to is no longer a bridge. Other
bridges stay, also where the model has come to connect their components elsewhere: that is an effect of the bridge, and
without it they would come apart again.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from smoothgraph._kernels import components, dual
from smoothgraph.fit.solve_certified import solve_certified
from smoothgraph.fit.state import Asked, State, mean_neighbors
from smoothgraph.messages import warn
from smoothgraph.neighbors.queries import nearest_outside

MAX_ROUNDS = 100  # rounds of adding bridges
THETA_ROUNDS = 15  # rounds in which θ may move: another θ takes edges away, and components come apart again
NEAR_DEGREE, DEGREE_DRIFT = 0.009, 0.003  # relative: θ stays while the degree is so near, or did not drift farther than that
FEW_MOVED = 0.1  # up to this share of nodes with another λ, only the surroundings of lost edges are searched for components
SMALL_COMPONENT = 200  # nodes; larger components are not found by that search, only by the last look at the whole graph
MAX_SEARCHING = 1024  # samples that look for a pair outside their component, over all components, in one round


def connect(asked: Asked, state: State) -> State:
    """The state of the graph with one component.

    A bridge may make another edge give way, and edges that come in to certify all may as well: so there are a few rounds, and a
    certificate is asked for when the graph has one component as far as a quick look tells. In the end all of it is looked at.
    """
    weights, certified, before = _mean_weights(state), not state.failing.size, None
    miss = _miss(asked, state)
    for n_rounds in range(MAX_ROUNDS):
        moved = None if before is None else _few_moved(before, state)
        labels = _components(state) if moved is None else _components_since(before, state, moved, asked)
        i, j, z = _cheapest_pairs(asked, state, labels)
        own = _own_weights(state, asked) > 0.0
        is_connected = not i.size and not own.any()
        old = state.bridges
        changed = _marked(i, j, old.i[own], old.j[own], n=labels.size)
        state = replace(state, bridges=old.chosen(~own).added(i, j, np.minimum(weights[i], weights[j])))
        theta_stays = _miss(asked, state) <= max(NEAR_DEGREE, miss + DEGREE_DRIFT) or n_rounds >= THETA_ROUNDS
        if is_connected and certified and theta_stays:
            if moved is None:
                break
            before = None  # now look at all components
            continue
        if i.size:
            asked.say(f"{labels.max() + 1} components connected by {i.size} bridges")
            edges = state.support.edges.add_pairs(i, j, z, threads=asked.threads)
            state = replace(state, support=replace(state.support, edges=edges))
        before = state if theta_stays else None
        state = _solve_again(asked, state, changed if theta_stays else None, is_connected)
        certified = is_connected or not state.failing.size
        miss = miss if theta_stays else _miss(asked, state)
    else:
        labels = _components(state)
    if labels.max() > 0:
        why = f"{MAX_ROUNDS} rounds of adding bridges do not connect them. Ask for more neighbours"
        why = why if asked.distances.can_search else "the allowed edges do not connect them. Allow more edges"
        warn(f"The graph keeps {labels.max() + 1} components: {why}.")
    return state


def _solve_again(asked, state, changed, certify):
    """Solve with the bridges given: at the same θ if only the nodes `changed` are new, else at the θ for the wanted degree."""
    theta, now = state.problem.theta, replace(asked, complete=asked.complete and certify)
    if changed is not None or asked.degree is None:
        now = replace(now, degree=None)
    else:
        theta *= mean_neighbors(state.point, state.bridges) / asked.degree  # about where the search will end
    solved = solve_certified(now, state.support, theta, bridges=state.bridges, start=state, changed=changed)
    return solved if now.degree is not None else replace(solved, jump=state.jump)


def _miss(asked, state):
    """By how much the degree is not the one wanted, relative to that."""
    return 0.0 if asked.degree is None else abs(mean_neighbors(state.point, state.bridges) / asked.degree - 1.0)


def _marked(*nodes, n):
    marks = np.zeros(n, np.bool_)
    marks[np.concatenate(nodes)] = True
    return marks


def _own_weights(state, asked):
    """What the model itself gives the bridges."""
    i, j, w = state.bridges.i, state.bridges.j, np.zeros(state.bridges.count)
    asked.threads.rows(dual.pair_weights, i.size, i, j, state.point.form, state.point.lam_shifted, w)
    return w


def _components(state):
    """The number of each node's component."""
    return components.weighted_components(state.point.form, state.point.lam_shifted, state.bridges.i, state.bridges.j)


def _few_moved(before, state):
    """The nodes with another λ than `before`, or None if they are many, or all are."""
    moved = np.flatnonzero(state.point.lam_shifted != before.point.lam_shifted)
    are_few = moved.size <= FEW_MOVED * before.point.lam_shifted.size
    return moved if are_few and _same(state.point.z_offset, before.point.z_offset) else None


def _components_since(before, state, moved, asked):
    """Small components that came off the one of `before`, since when few nodes moved; 0 for the rest."""
    form, lam, last = state.point.form, state.point.lam_shifted, before.point.lam_shifted
    lost = np.zeros(lam.size, np.bool_)
    asked.threads.rows(dual.mark_lost_weight, moved.size, moved, form, last, lam, lost)
    bridges = state.bridges.graph(lam.size)
    starts = np.flatnonzero(lost)
    return components.small_components(starts, form, lam, bridges.indptr, bridges.indices, SMALL_COMPONENT)


def _same(offset, other):
    return offset is other or np.array_equal(offset, other)


def _cheapest_pairs(asked, state, labels):
    """Pairs (i, j, distance as counted) that connect all components: a forest of allowed edges, then of searched pairs.

    There are none if there is one component, or if the samples are not known and no allowed edge connects any.
    """
    edges, distances = state.support.edges, asked.distances
    if not labels.any():
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, edges.z.dtype)
    pairs = [_cheapest_edges(asked, state, labels)]
    if not distances.can_search:
        return pairs[0]
    theta, lam, local_scale = state.theta, state.point.lam, state.support.local_scale
    labels = _merged(labels, *pairs[0][:2])
    while labels.max() > 0:
        nodes = _searching_nodes(labels)
        others, z = nearest_outside(distances, nodes, labels, lam / (2.0 * theta), local_scale, threads=asked.threads)
        z = state.support.scaled(nodes, others, z).astype(edges.z.dtype)
        cost = theta * z - 0.5 * (lam[nodes] + lam[others])
        chosen = _forest(labels[nodes], labels[others], cost, int(labels.max()) + 1)
        pairs.append((nodes[chosen], others[chosen], z[chosen]))
        labels = _merged(labels, nodes[chosen], others[chosen])
    i, j, z = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return i, j, z


def _cheapest_edges(asked, state, labels):
    """Allowed edges (i, j, distance as counted) that are a spanning forest of least cost of the components."""
    edges, form, lam = state.support.edges, state.point.form, state.point.lam_shifted
    largest = np.argmax(np.bincount(labels))
    outside = np.flatnonzero(labels != largest).astype(np.int32)
    place = np.zeros(outside.size + 1, np.int64)
    arguments = outside, labels, largest, form, lam
    asked.threads.rows(components.count_leading_out, outside.size, *arguments, place[1:])
    np.cumsum(place, out=place)
    found, cost = np.empty(place[-1], np.int64), np.empty(place[-1])
    asked.threads.rows(components.fill_leading_out, outside.size, *arguments, place, found, cost)
    i = np.repeat(outside, np.diff(place))
    chosen = _forest(labels[i], labels[edges.indices[found]], cost, int(labels.max()) + 1)
    return i[chosen], edges.indices[found[chosen]], edges.z[found[chosen]]


def _forest(a, b, cost, n_components):
    """The pairs of components (a, b) of a spanning forest of least cost, by their places in the arrays, cheapest first."""
    chosen = components.spanning_forest(a, b, cost, n_components)
    return chosen[np.argsort(cost[chosen], kind="stable")]


def _merged(labels, i, j):
    """The components after connecting them at these pairs."""
    n_components = int(labels.max()) + 1
    pairs = sp.csr_matrix((np.ones(i.size), (labels[i], labels[j])), shape=(n_components, n_components))
    return connected_components(pairs, directed=False)[1][labels]


def _searching_nodes(labels):
    """A few samples of every component but the largest, evenly spaced."""
    sizes = np.bincount(labels)
    largest, each = int(np.argmax(sizes)), max(1, MAX_SEARCHING // (sizes.size - 1))
    order = np.argsort(labels, kind="stable")
    place = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = -(-sizes[labels[order]] // each)
    return order[(place % step == 0) & (labels[order] != largest)].astype(np.int32)


def _mean_weights(state):
    """The mean weight of each node's edges; a node without edges has the mean of all."""
    point = state.point
    free = point.degree - state.problem.given
    n_neighbors = point.n_neighbors
    means = np.where(n_neighbors > 0, free / np.maximum(n_neighbors, 1), free.sum() / n_neighbors.sum())
    return means * state.problem.shrink
