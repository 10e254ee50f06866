"""The command line: each command reads its files, calls the functions that do the work, and shows the result.

Packages that are slow to import are imported in the functions that use them: `smoothgraph --help` must not wait for numba.
Exit codes: 0 all is well; 1 there is an error in the data or the files, and nothing was written; 2 the command was not
understood; 3 the result was written, but a tolerance or the wanted number of neighbours was missed; 128 + n it was ended by
signal n. `__main__` has the process around the commands: signals, streams and errors.
"""

from smoothgraph.cli import learn, graphs, uses, data, kernels  # noqa: F401, I001  (--help lists the commands in this order)
from smoothgraph.cli.app import app

__all__ = ["app"]
