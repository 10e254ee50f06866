"""What the command line shows: where the work is, and what came out.

In: what the learner says, stage by stage; metadata of graphs. Out: lines and a status on stderr, tables or JSON on stdout.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

REDRAWS = 4  # per second


class Progress:
    """Listens to the stages: a line for whatever is said and, on a terminal, a status that counts the seconds below it."""

    def __init__(self, quiet: bool = False):
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.begin = self.stage_begin = time.perf_counter()
        self.stage, self.text, self.turns = "starting", "", 0
        self.live = Live(get_renderable=self._status, console=self.console, refresh_per_second=REDRAWS, transient=True)

    def __enter__(self) -> "Progress":
        if self.console.is_terminal and not self.console.quiet:
            self.live.start()
        return self

    def __exit__(self, *error) -> None:
        self.live.stop()

    def __call__(self, stage: str, text: str) -> None:
        """A stage begins (empty text), or says something."""
        if stage != self.stage:
            self.stage, self.stage_begin = stage, time.perf_counter()
        self.text = text
        if text:
            line = Text(f"{time.perf_counter() - self.begin:8.2f} s  {stage:10}  {text}")
            self.console.print(line, soft_wrap=True)

    def watch(self, work: Callable[[], Any]) -> tuple[Any, bool]:
        """What `work` returns, and whether it warned that it did not converge. Its warnings become lines."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = work()
        for warning in caught:
            self.console.print(Text(f"warning: {warning.message}", style="yellow"), soft_wrap=True)
        return result, any(issubclass(warning.category, ConvergenceWarning) for warning in caught)

    def _status(self) -> Text:
        now, self.turns = time.perf_counter(), self.turns + 1
        mark = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[self.turns % 10]
        status = f"{now - self.begin:8.1f} s  {self.stage:10}  {mark} {now - self.stage_begin:.1f} s in this stage"
        return Text(status, style="cyan", no_wrap=True, overflow="ellipsis")


def show(facts: dict[str, Any], lines, *, as_json: bool, quiet: bool) -> None:
    """The facts as JSON, or their lines (name, value) as a table, or nothing."""
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    elif not quiet:
        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in lines:
            table.add_row(name, Text(value))
        wide = None if sys.stdout.isatty() else 200  # a pipe has no width
        Console(highlight=False, width=wide).print(table)


def learned(metadata: dict[str, Any]):
    """What was learned, and how, as lines (name, value)."""
    wanted, n = metadata["parameters"], metadata["n"]
    by_hand = wanted.get("theta") is not None or wanted.get("alpha") is not None or wanted.get("model") in ("hard", "soft")
    alone, joining = metadata.get("n_isolated"), metadata.get("n_joining")
    yield "nodes", f"{n:,}" + (f" ({alone:,} without edges)" if alone else "")
    yield "edges", f"{metadata['n_edges']:,}"
    yield "neighbours per node", f"{metadata['n_neighbors']:.3f}" + ("" if by_hand else f" (wanted {wanted['n_neighbors']})")
    if "gap" in metadata:  # else it is a nearest-neighbour graph
        yield from _proof(metadata)
    yield "connected components", f"{metadata['n_components']:,}" + (f" ({joining:,} edges join parts)" if joining else "")
    yield "seconds", ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in metadata["seconds"].items())


def _proof(metadata):
    bounds, certified, n = metadata["theta_bounds"], metadata["n"] - metadata["n_incomplete"], metadata["n"]
    recall = "" if metadata["recall"] == 1.0 else f", recall {metadata['recall']:.4f} (estimated)"
    if metadata["theta"] is not None:
        yield "θ", f"{metadata['theta']:.6g}" + (f" (bounds {bounds[0]:.6g} to {bounds[1]:.6g})" if bounds else "")
    yield "relative duality gap", f"{metadata['gap']:.1e} ({metadata['status']}, {metadata['n_iter']} rounds)"
    yield "certified nodes", f"{certified:,} of {n:,} ({certified / n:.2%}; neighbour search: {metadata['neighbors']}{recall})"


def facts_of(W) -> dict[str, Any]:
    """What can be seen of a graph itself."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    degrees = np.diff(W.indptr)
    return {
        "n": W.shape[0],
        "n_edges": W.nnz // 2,
        "degree": {"mean": float(degrees.mean()), "median": float(np.median(degrees)), "max": int(degrees.max(initial=0))},
        "weight": {"min": float(W.data.min(initial=np.inf)), "max": float(W.data.max(initial=0.0)), "sum": float(W.sum())},
        "n_isolated": int(np.count_nonzero(degrees == 0)),
        "n_components": int(connected_components(W, directed=False, return_labels=False)),
    }


def seen(facts: dict[str, Any]):
    """The facts of a graph as lines (name, value)."""
    degree, weight = facts["degree"], facts["weight"]
    yield "nodes", f"{facts['n']:,}" + (f" ({facts['n_isolated']:,} without edges)" if facts["n_isolated"] else "")
    yield "edges", f"{facts['n_edges']:,}"
    yield "neighbours per node", f"mean {degree['mean']:.3f}, median {degree['median']:g}, at most {degree['max']:,}"
    yield "weights", f"{weight['min']:.4g} to {weight['max']:.4g}, sum {weight['sum']:.6g}"
    yield "connected components", f"{facts['n_components']:,}"


def differences(A, B) -> dict[str, Any]:
    """How two graphs on the same nodes differ."""
    edges_a, edges_b = A.nnz // 2, B.nnz // 2
    shared = (A != 0).multiply(B != 0).nnz // 2
    total = float(abs(A).sum())
    return {
        "n": A.shape[0],
        "edges": [edges_a, edges_b],
        "shared": shared,
        "only": [edges_a - shared, edges_b - shared],
        "jaccard": shared / (edges_a + edges_b - shared) if edges_a + edges_b else 1.0,
        "relative_l1": float(abs(A - B).sum()) / total if total else float(B.nnz > 0),
        "largest_difference": float(abs(A - B).max()),
    }


def compared(facts: dict[str, Any]):
    """The differences of two graphs as lines (name, value)."""
    yield "nodes", f"{facts['n']:,}"
    yield "edges", f"{facts['edges'][0]:,} and {facts['edges'][1]:,}"
    yield "edges in both", f"{facts['shared']:,} ({facts['jaccard']:.2%} of all)"
    yield "edges in one only", f"{facts['only'][0]:,} and {facts['only'][1]:,}"
    yield "Σ|A − B| / Σ|A|", f"{facts['relative_l1']:.3e}"
    yield "largest difference", f"{facts['largest_difference']:.3e}"


def save_figure(figure, path) -> None:
    """Write a figure to a file that is whole or not there."""
    from smoothgraph.io._files import need, replacing

    kinds = figure.canvas.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in kinds:
        raise ValueError(f"{path} does not say what kind of picture to write: end its name in .{', .'.join(sorted(kinds))}.")
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=130)
    need("matplotlib.pyplot", "smoothgraph[plot]").close(figure)
