"""Every compiled loop of smoothgraph: free functions on arrays, in modules by what they work on.

A kernel is serial and runs without the GIL. If its first two arguments are `first` and `last`, it does a range of rows (or of
groups of rows) and writes each to its own place in arrays that it is given: `parallel.Threads` calls it by ranges, and the
bits of the result do not depend on their number. Sums that go over all rows are made over a fixed number of groups, in a
fixed order.

What the arguments mean everywhere:

- `form`: a problem, see `Form`. `indptr, indices`: rows of a graph in CSR form.
- `lam`: the dual λ, shifted by `offset`, which is 0 but for far outliers.
- `given`: weight that a node has besides, from bridges.
"""
