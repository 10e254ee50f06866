"""The command line: each command reads its files, calls what does the work, and shows what came out.

What is slow to import is imported where it is used: `smoothgraph --help` must not wait for numba. Exit codes: 0 all is well;
1 the data or the files are not (nothing was written); 2 the command was not understood; 3 the graph was written, but the solver
missed its tolerance or the wanted degree.
"""

from smoothgraph.cli import learn, graphs, uses, data  # noqa: F401, I001  (this is their order in --help)
from smoothgraph.cli.app import app

__all__ = ["app"]
