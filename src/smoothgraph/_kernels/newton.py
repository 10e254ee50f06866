"""Newton steps on a dual: (diag + ½A − less·11ᵀ/n)x = right by conjugate gradients, A a 0/1 adjacency matrix.

The nodes are cut into as many groups as the arrays of partial sums have entries, and a kernel does a range of groups: so sums
have a fixed order. Row i of A has its entries from begin[i] to end[i].
"""

from smoothgraph._kernels.decorators import compiled


@compiled
def cg_product(first, last, begin, end, indices, diagonal, p, Hp, partial, sums):
    """Hp = (diag + ½A)p, with Σ p·Hp and Σ p of each group."""
    n, groups = p.size, partial.size
    for group in range(first, last):
        total, plain = 0.0, 0.0
        for i in range(group * n // groups, (group + 1) * n // groups):
            neighbors = 0.0
            for e in range(begin[i], end[i]):
                neighbors += p[indices[e]]
            Hp[i] = diagonal[i] * p[i] + 0.5 * neighbors
            total += p[i] * Hp[i]
            plain += p[i]
        partial[group], sums[group] = total, plain


@compiled
def cg_advance(first, last, step, offset, diagonal, p, Hp, x, residual, partial):
    """x += step·p and residual −= step·(Hp − offset), with Σ residual²/diag of each group."""
    n, groups = p.size, partial.size
    for group in range(first, last):
        total = 0.0
        for i in range(group * n // groups, (group + 1) * n // groups):
            x[i] += step * p[i]
            residual[i] -= step * (Hp[i] - offset)
            total += residual[i] * residual[i] / diagonal[i]
        partial[group] = total


@compiled
def cg_turn(first, last, ratio, diagonal, residual, p):
    """The next direction p = residual/diag + ratio·p."""
    for i in range(first, last):
        p[i] = residual[i] / diagonal[i] + ratio * p[i]
