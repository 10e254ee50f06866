"""Linear systems of a graph, (diag(d) − W)x = right, by levels of groups of nodes, and by conjugate gradients.

In: W, symmetric with an empty diagonal, and d, at least its row sums. x and right have COLUMNS columns, which are solved
together: an edge is read once for all of them.

A level is a graph whose nodes stand in an order in which those of a group are next to each other: group g of the next level has
the nodes children[g] to children[g + 1]. Its rows are cut into blocks of ROWS_PER_BLOCK. The entries of row i stand in three
parts: those in its block before it, indptr[i] to before[i]; those in its block after it, up to near[i]; and all others.

Blocks do not use each other's new values, and sums over all rows are made block by block: threads can share the blocks, and the
bits do not depend on how many there are.

Loops over the entries of a row are `exact`: where the compiler may reorder sums, it gathers x of several neighbours at once,
which takes 1.6 times as long as one after the other.
"""

import numpy as np

from smoothgraph._kernels.decorators import compiled, exact

COLUMNS = 4  # the loops over columns are written out, which is several times faster than a loop over so few
ROWS_PER_BLOCK = 8192  # their values, 256 kB, stay in a core's cache; with fewer rows, more edges would leave their block
STRONG = 0.25  # share of the largest weight of a node that makes another edge of this node strong


@compiled
def aggregate(begin, end, indices, w, max_size, group):
    """Put nodes into groups with neighbours on strong edges; returns the number of groups. Row i is begin[i] to end[i].

    Of those neighbours that have no group, or one of fewer than `max_size` nodes, a node joins the one with the largest weight.
    If there is none, it joins the group of the neighbour with the largest weight however large: its other edges are too weak to
    stand for it. So only nodes without neighbours are alone.
    """
    n = begin.size
    size = np.zeros(n, np.int64)
    count = 0
    group[:] = -1
    for i in range(n):
        if group[i] >= 0:
            continue
        strongest, best = -1, -1
        for e in range(begin[i], end[i]):
            if strongest < 0 or w[e] > w[strongest]:
                strongest = e
        for e in range(begin[i], end[i]):
            g = group[indices[e]]
            if w[e] >= STRONG * w[strongest] and (g < 0 or size[g] < max_size) and (best < 0 or w[e] > w[best]):
                best = e
        j = indices[best if best >= 0 else strongest] if strongest >= 0 else i
        if group[j] < 0:
            group[j] = count
            size[count] = 1
            count += 1
        if j != i:
            group[i] = group[j]
            size[group[j]] += 1
    return count


@compiled
def group_rows(first, last, begin, end, indices, w, group, members, cuts, row_begin, row_end, to, weights):
    """The rows `first` to `last` of the graph of the groups: sums of the weights between them.

    Group g has the nodes members[cuts[g]] to members[cuts[g + 1]]. Its row is written from row_begin[g] on, where there is room
    for all edges of its nodes; row_end[g] says where it ends.
    """
    place = np.full(cuts.size - 1, -1, np.int64)  # where in the present row a group stands, if it is not before the row
    for g in range(first, last):
        at = row_begin[g]
        for m in range(cuts[g], cuts[g + 1]):
            for e in range(begin[members[m]], end[members[m]]):
                h = group[indices[e]]
                if h == g:
                    continue
                if place[h] < row_begin[g]:
                    place[h] = at
                    to[at], weights[at] = h, 0.0
                    at += 1
                weights[place[h]] += w[e]
        row_end[g] = at


@compiled
def arrange(first, last, begin, end, indices, w, order, rank, indptr, before, near, to, weights):
    """The rows `first` to `last` of a level in its own order: row i is row order[i] as it was; rank is the inverse of order."""
    for i in range(first, last):
        low = i // ROWS_PER_BLOCK * ROWS_PER_BLOCK
        front, back = indptr[i], indptr[i + 1]
        for e in range(begin[order[i]], end[order[i]]):
            j = rank[indices[e]]
            if low <= j < i:
                to[front], weights[front] = j, w[e]
                front += 1
            else:
                back -= 1
                to[back], weights[back] = j, w[e]
        before[i] = front
        for e in range(back, indptr[i + 1]):
            if i < to[e] < low + ROWS_PER_BLOCK:
                to[front], to[e] = to[e], to[front]
                weights[front], weights[e] = weights[e], weights[front]
                front += 1
        near[i] = front


@compiled
def row_sums(first, last, indptr, w, sums):
    """The sums of the rows `first` to `last`."""
    for i in range(first, last):
        sums[i] = w[indptr[i] : indptr[i + 1]].sum()


@exact
def _add_row(begin, end, indices, w, x, s0, s1, s2, s3):
    """The sums s, to which the entries `begin` to `end` of a row times x are added."""
    for e in range(begin, end):
        j, v = indices[e], w[e]
        s0 += v * x[j, 0]
        s1 += v * x[j, 1]
        s2 += v * x[j, 2]
        s3 += v * x[j, 3]
    return s0, s1, s2, s3


@compiled
def _rows_of_block(g, n):
    return g * ROWS_PER_BLOCK, min((g + 1) * ROWS_PER_BLOCK, n)


@exact
def forward(first, last, indptr, before, indices, w, inverse, right, x):
    """Solve each node's equation for x, with x of earlier nodes of its block as it is now, and 0 for all others.

    This is Gauss and Seidel's step from x = 0, in the blocks `first` to `last`. `inverse` is 1/d.
    """
    for g in range(first, last):
        low, high = _rows_of_block(g, inverse.size)
        for i in range(low, high):
            s0, s1, s2, s3 = _add_row(indptr[i], before[i], indices, w, x, right[i, 0], right[i, 1], right[i, 2], right[i, 3])
            x[i, 0], x[i, 1] = inverse[i] * s0, inverse[i] * s1
            x[i, 2], x[i, 3] = inverse[i] * s2, inverse[i] * s3


@exact
def restrict(first, last, indptr, before, indices, w, children, x, sums):
    """The residual that `forward` left, summed over the groups `first` to `last`: what x of later nodes would have changed."""
    for g in range(first, last):
        s0 = s1 = s2 = s3 = 0.0
        for i in range(children[g], children[g + 1]):
            s0, s1, s2, s3 = _add_row(before[i], indptr[i + 1], indices, w, x, s0, s1, s2, s3)
        sums[g, 0], sums[g, 1], sums[g, 2], sums[g, 3] = s0, s1, s2, s3


@compiled
def prolong(first, last, children, correction, x):
    """Add to x of each node what its group was found to need."""
    for g in range(first, last):
        for i in range(children[g], children[g + 1]):
            for k in range(COLUMNS):
                x[i, k] += correction[g, k]


@exact
def backward(first, last, indptr, before, near, indices, w, inverse, right, x, y):
    """y: each node's equation solved with the new value y of later nodes of its block, and with x of all others.

    The nodes are taken from the last to the first: together with `forward` this makes the whole symmetric.
    """
    for g in range(first, last):
        low, high = _rows_of_block(g, inverse.size)
        for i in range(high - 1, low - 1, -1):
            s0, s1, s2, s3 = right[i, 0], right[i, 1], right[i, 2], right[i, 3]
            s0, s1, s2, s3 = _add_row(indptr[i], before[i], indices, w, x, s0, s1, s2, s3)
            s0, s1, s2, s3 = _add_row(before[i], near[i], indices, w, y, s0, s1, s2, s3)
            s0, s1, s2, s3 = _add_row(near[i], indptr[i + 1], indices, w, x, s0, s1, s2, s3)
            y[i, 0], y[i, 1] = inverse[i] * s0, inverse[i] * s1
            y[i, 2], y[i, 3] = inverse[i] * s2, inverse[i] * s3


@exact
def laplacian_product(first, last, indptr, indices, w, d, x, product):
    """product = (diag(d) − W)x in the rows of the blocks `first` to `last`."""
    for g in range(first, last):
        low, high = _rows_of_block(g, d.size)
        for i in range(low, high):
            s0, s1, s2, s3 = _add_row(indptr[i], indptr[i + 1], indices, w, x, 0.0, 0.0, 0.0, 0.0)
            product[i, 0], product[i, 1] = d[i] * x[i, 0] - s0, d[i] * x[i, 1] - s1
            product[i, 2], product[i, 3] = d[i] * x[i, 2] - s2, d[i] * x[i, 3] - s3


@compiled
def inner_products(first, last, a, b, sums):
    """sums[g, k]: the sum of a[i, k]·b[i, k] over the rows i of block g."""
    for g in range(first, last):
        low, high = _rows_of_block(g, len(a))
        sums[g] = 0.0
        for i in range(low, high):
            for k in range(COLUMNS):
                sums[g, k] += a[i, k] * b[i, k]


@compiled
def turn(first, last, z, share, p):
    """p = z + share·p in the blocks `first` to `last`: the next direction of conjugate gradients."""
    for i in range(first * ROWS_PER_BLOCK, min(last * ROWS_PER_BLOCK, len(p))):
        for k in range(COLUMNS):
            p[i, k] = z[i, k] + share[k] * p[i, k]


@compiled
def step(first, last, length, p, product, inverse, x, residual, largest):
    """x goes `length` along p, and its residual with it; largest[g] is the largest |residual|/d of block g."""
    for g in range(first, last):
        low, high = _rows_of_block(g, inverse.size)
        worst = 0.0
        for i in range(low, high):
            for k in range(COLUMNS):
                x[i, k] += length[k] * p[i, k]
                residual[i, k] -= length[k] * product[i, k]
                worst = max(worst, abs(residual[i, k]) * inverse[i])
        largest[g] = worst
