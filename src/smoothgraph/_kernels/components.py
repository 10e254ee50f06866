"""Connected components, and the cheapest ways from one to another."""

import numpy as np

from smoothgraph._kernels.decorators import compiled
from smoothgraph._kernels.dual import weight


@compiled
def _own_trees(n):
    """Every node is on top of a tree of its own."""
    above = np.empty(n, np.int32)
    for node in range(n):
        above[node] = node
    return above


@compiled
def _root_of(above, i):
    while above[i] != i:
        above[i] = above[above[i]]
        i = np.int64(above[i])
    return i


@compiled
def _unite(above, i, j):
    a, b = _root_of(above, i), _root_of(above, j)
    above[max(a, b)] = min(a, b)


@compiled
def _numbered(above):
    """Components by number, from trees with the first node of each component on top; in place."""
    count = 0
    for node in range(above.size):  # the node above has a smaller number, and was done before
        if above[node] == node:
            above[node] = count
            count += 1
        else:
            above[node] = above[above[node]]
    return above


@compiled
def components(indptr, indices):
    """The number of each node's component, by the edges of a symmetric CSR."""
    above = _own_trees(indptr.size - 1)
    for i in range(above.size):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] < i:
                _unite(above, np.int64(i), np.int64(indices[e]))
    return _numbered(above)


@compiled
def weighted_components(form, lam, bridge_i, bridge_j):
    """`components` by the edges that have weight at λ, and by the bridges."""
    above = _own_trees(lam.size)
    for i in range(lam.size):
        for e in range(form.begin[i], form.end[i]):
            j = form.indices[e]
            if j < i and weight(lam[i], lam[j], form.theta * form.z[e], form.upper) > 0.0:
                _unite(above, np.int64(i), np.int64(j))
    for e in range(bridge_i.size):
        _unite(above, np.int64(bridge_i[e]), np.int64(bridge_j[e]))
    return _numbered(above)


@compiled
def small_components(starts, form, lam, bridge_ptr, bridges, most):
    """The components of at most `most` nodes that the nodes `starts` are in, by number; all other nodes have 0, if any.

    Edges are those of `weighted_components`, the bridges given as CSR rows. A search ends where it meets one that grew too
    large.
    """
    label, queue, large = np.zeros(lam.size, np.int32), np.empty(most, np.int32), -1
    count = 0
    for start in starts:
        if label[start] != 0:
            continue
        count += 1
        label[start], queue[0] = count, start
        size, done, closed = 1, 0, True
        while closed and done < size:
            i = queue[done]
            done += 1
            own = form.end[i] - form.begin[i]
            for s in range(own + bridge_ptr[i + 1] - bridge_ptr[i]):
                e = form.begin[i] + s
                j = form.indices[e] if s < own else bridges[bridge_ptr[i] + s - own]
                if label[j] == count or (s < own and not weight(lam[i], lam[j], form.theta * form.z[e], form.upper) > 0.0):
                    continue
                closed = size < most and label[j] != large
                if not closed:
                    break
                label[j], queue[size] = count, j
                size += 1
        if not closed:
            label[queue[:size]] = large
            count -= 1
    label = np.maximum(label, 0)
    return label - label.min()


@compiled
def spanning_forest(i, j, cost, n):
    """Borůvka's algorithm: the places, ascending, of the pairs (i, j) of n nodes that are a spanning forest of least cost.

    In a round every tree takes the cheapest pair that leads out of it, of equal ones the first, and there are at most half as
    many trees. It takes no order of all pairs, which are many times as many as the nodes.
    """
    above, cheapest, chosen = _own_trees(n), np.empty(n, np.int64), np.empty(n, np.int64)
    left, n_left, count = np.arange(i.size), i.size, 0
    while n_left:
        cheapest[:] = -1
        leading_out = 0
        for place in left[:n_left]:
            a, b = _root_of(above, np.int64(i[place])), _root_of(above, np.int64(j[place]))
            if a == b:
                continue
            left[leading_out] = place
            leading_out += 1
            for top in (a, b):
                if cheapest[top] < 0 or cost[place] < cost[cheapest[top]]:
                    cheapest[top] = place
        n_left = leading_out
        for top in range(n):
            place = cheapest[top]
            if place < 0:
                continue
            a, b = _root_of(above, np.int64(i[place])), _root_of(above, np.int64(j[place]))
            if a != b:  # else the other tree took this pair
                _unite(above, a, b)
                chosen[count] = place
                count += 1
    return np.sort(chosen[:count])


@compiled
def _leads_out(i, labels, largest, form, lam, found, costs):
    """The edges of node i to nodes of other labels, of those to the largest component only the cheapest: places and costs.

    The cost is θz − (λᵢ+λⱼ)/2. Returns how many there are; `found` and `costs` may be empty, to count alone.
    """
    count, least, cheapest = 0, np.inf, -1
    for e in range(form.begin[i], form.end[i]):
        label = labels[form.indices[e]]
        if label == labels[i]:
            continue
        cost = form.theta * form.z[e] - 0.5 * (lam[i] + lam[form.indices[e]])
        if label == largest:
            if cheapest < 0 or cost < least:
                least, cheapest = cost, e
            continue
        if found.size:
            found[count], costs[count] = e, cost
        count += 1
    if cheapest >= 0:
        if found.size:
            found[count], costs[count] = cheapest, least
        count += 1
    return count


@compiled
def count_leading_out(first, last, nodes, labels, largest, form, lam, counts):
    """How many edges lead from each of `nodes`, none of them in the `largest` component, to other components."""
    no_places, no_costs = np.empty(0, np.int64), np.empty(0)
    for r in range(first, last):
        counts[r] = _leads_out(nodes[r], labels, largest, form, lam, no_places, no_costs)


@compiled
def fill_leading_out(first, last, nodes, labels, largest, form, lam, place, found, costs):
    """These edges, as places in the rows and costs; those of nodes[r] go from place[r] to place[r + 1]."""
    for r in range(first, last):
        begin, end = place[r], place[r + 1]
        if begin < end:
            _leads_out(nodes[r], labels, largest, form, lam, found[begin:end], costs[begin:end])
