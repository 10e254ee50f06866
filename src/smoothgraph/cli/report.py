"""What the command line shows: the progress of the work, and its result.

In: messages of the learner, stage by stage; metadata of graphs. Out: lines and a status on stderr, tables or JSON on stdout.
"""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smoothgraph.messages import one_line, printable
from smoothgraph.streams import as_printed

REDRAWS = 4  # of the status, per second: enough to see that work goes on
MAX_COLUMNS = 20  # names of columns that are shown


class Progress:
    """Shows the stages: a line for each message and, on a terminal, a status below the lines that counts the seconds."""

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
        """Take a message of a stage; an empty text says that the stage begins."""
        if stage != self.stage:
            self.stage, self.stage_begin = stage, time.perf_counter()
        self.text = text
        if text:
            line = Text(f"{time.perf_counter() - self.begin:8.2f} s  {stage:10}  {printable(text)}")
            self.console.print(line, soft_wrap=True)

    def watch(self, work: Callable[[], Any]) -> tuple[Any, bool]:
        """(what `work` returns, whether it warned that it did not converge). Its warnings are shown as lines."""
        from sklearn.exceptions import ConvergenceWarning

        from smoothgraph._kernels import cache

        with warnings.catch_warnings(record=True) as caught, cache.listening(lambda text: self(self.stage, text)):
            warnings.simplefilter("always")
            result = work()
        for warning in caught:
            self.console.print(Text(f"warning: {one_line(str(warning.message))}", style="yellow"), soft_wrap=True)
        return result, any(issubclass(warning.category, ConvergenceWarning) for warning in caught)

    def _status(self) -> Text:
        now, self.turns = time.perf_counter(), self.turns + 1
        marks = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if self.console.encoding.startswith("utf") else "|/-\\"
        mark = marks[self.turns % len(marks)]
        status = f"{now - self.begin:8.1f} s  {self.stage:10}  {mark} {now - self.stage_begin:.1f} s in this stage"
        return Text(status, style="cyan", no_wrap=True, overflow="ellipsis")


def show(facts: dict[str, Any], lines, *, as_json: bool, quiet: bool) -> None:
    """Print the facts as JSON, or the lines (name, value) as a table, or nothing."""
    if as_json:
        print(_as_json(facts))
    elif not quiet:
        rows = [(as_printed(printable(name)), as_printed(printable(value))) for name, value in lines]
        width = max((len(name) for name, _ in rows), default=0)
        if not sys.stdout.isatty():  # which has no width to fold lines at, nor to fill them up to
            print("\n".join(f"{name:{width}}    {value}" for name, value in rows))
            return
        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        Console(highlight=False).print(table)


def say(text: str) -> None:
    """Print a line, without control characters that came from a file or from its name."""
    print(printable(text))


def _as_json(facts) -> str:
    """JSON that any reader takes, and that does nothing to a terminal: letters as they are if the output can have them."""
    text = json.dumps(_finite(facts), indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        is_fit = False
    else:
        is_fit = text.replace("\n", "").isprintable()
    return text if is_fit else json.dumps(_finite(facts), indent=2)


def _finite(value):
    """The value with None in place of infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def learned(metadata: dict[str, Any]):
    """What was learned, and how, as lines (name, value)."""
    isolated, bridges = metadata.get("n_isolated"), metadata.get("n_bridges")
    copies = metadata["n"] - _distinct(metadata)
    yield "nodes", f"{metadata['n']:,}" + (f" ({isolated:,} without edges)" if isolated else "")
    if copies:
        yield "distinct samples", f"{_distinct(metadata):,} ({copies:,} copies hang on the first of their group)"
    yield "edges", f"{metadata['n_edges']:,}"
    wanted = f" (wanted {metadata['parameters']['n_neighbors']})" if _has_wanted_number(metadata) else ""
    of_all = f"; {2 * metadata['n_edges'] / metadata['n']:.3f} of all rows" if copies else ""
    yield "neighbours per node", f"{metadata['n_neighbors']:.3f}{wanted}{of_all}"
    if metadata.get("locality"):
        yield "locality", f"{metadata['locality']:g}"
    if "gap" in metadata:  # else it is a nearest-neighbour graph
        yield from _proof(metadata)
    yield "connected components", f"{metadata['n_components']:,}" + (f" (connected by {bridges:,} bridges)" if bridges else "")
    if "source" in metadata:
        yield from came_from(metadata["source"])
    if metadata.get("standardize", "none") != "none":
        yield "scale of columns", f"standardised ({metadata['standardize']})"
    yield "seconds", ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in metadata["seconds"].items())


def came_from(source: dict[str, Any]):
    """The table that a graph was learned from, as lines (name, value)."""
    dropped = source["rows_dropped"]
    yield (
        "table",
        f"{source['file']}, {source['bytes']:,} bytes, of {source['modified']}"
        + (f" ({source['read_as']})" if "read_as" in source else ""),
    )
    yield "rows", f"{source['rows_used']:,} of {source['rows']:,}" + (f" ({dropped:,} had missing values)" if dropped else "")
    names = source.get("columns", [])
    shown = ", ".join(names[:MAX_COLUMNS]) + (", …" if len(names) > MAX_COLUMNS else "")
    yield "columns", f"{source['n_columns']:,}" + (f": {shown}" if names else "")
    if "key" in source:
        yield "array", source["key"]


def _distinct(metadata):
    """The number of distinct samples, which have a node of the learned graph each."""
    return metadata.get("n_distinct", metadata["n"])


def _has_wanted_number(metadata):
    """Whether the graph was to have `n_neighbors` neighbours per node: not if θ was given, nor if its model has no θ."""
    parameters = metadata["parameters"]
    given = parameters.get("theta") is not None or parameters.get("alpha") is not None
    without_theta = "gap" in metadata and metadata["theta"] is None
    return not given and not without_theta


def _proof(metadata):
    """How near the graph is to the optimum, as lines (name, value)."""
    bounds, n = metadata["theta_bounds"], _distinct(metadata)
    certified = n - metadata["n_incomplete"]
    if metadata.get("proven"):
        how = "proven over all pairs"
    elif metadata["recall"] == 1.0:
        how = f"neighbour search: {metadata['neighbors']}"
    else:
        how = f"as far as {metadata['neighbors']} lists of recall {metadata['recall']:.4f}, estimated, are right"
    if metadata["theta"] is not None:
        yield "θ", f"{metadata['theta']:.6g}" + (f" (bounds {bounds[0]:.6g} to {bounds[1]:.6g})" if bounds else "")
    yield "relative duality gap", f"{metadata['gap']:.1e} ({metadata['status']}, {metadata['n_iter']} rounds)"
    yield "certified nodes", f"{certified:,} of {n:,} ({certified / n:.2%}; {how})"


def facts_of(W) -> dict[str, Any]:
    """What can be counted in a graph itself."""
    import numpy as np

    from smoothgraph.uses.graphs import components

    counts = np.diff(W.indptr)
    return {
        "n": W.shape[0],
        "n_edges": W.nnz // 2,
        "n_neighbors": {"mean": float(counts.mean()), "median": float(np.median(counts)), "max": int(counts.max(initial=0))},
        "weight": {"min": float(W.data.min(initial=np.inf)), "max": float(W.data.max(initial=0.0)), "sum": float(W.sum())},
        "n_isolated": int(np.count_nonzero(counts == 0)),
        "n_components": int(components(W)[0]),
    }


def seen(facts: dict[str, Any]):
    """The facts of a graph as lines (name, value)."""
    count, weight = facts["n_neighbors"], facts["weight"]
    yield "nodes", f"{facts['n']:,}" + (f" ({facts['n_isolated']:,} without edges)" if facts["n_isolated"] else "")
    yield "edges", f"{facts['n_edges']:,}"
    yield "neighbours per node", f"mean {count['mean']:.3f}, median {count['median']:g}, at most {count['max']:,}"
    yield "weights", f"{weight['min']:.4g} to {weight['max']:.4g}, sum {weight['sum']:.6g}"
    yield "connected components", f"{facts['n_components']:,}"


def differences(A, B) -> dict[str, Any]:
    """How two graphs on the same nodes differ; A is the one that the difference is relative to."""
    from smoothgraph.uses.quality import relative_l1

    edges_a, edges_b = A.nnz // 2, B.nnz // 2
    shared = (A != 0).multiply(B != 0).nnz // 2
    return {
        "n": A.shape[0],
        "edges": [edges_a, edges_b],
        "shared": shared,
        "only": [edges_a - shared, edges_b - shared],
        "jaccard": shared / (edges_a + edges_b - shared) if edges_a + edges_b else 1.0,
        "relative_l1": relative_l1(B, A) if A.nnz else float(B.nnz > 0),
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


def check_picture_path(path) -> None:
    """Raise the error that `save_figure` would end in for this path; to be called before the work is done."""
    from smoothgraph.files import check_target
    from smoothgraph.optional import need

    kinds = need("matplotlib.backend_bases", "smoothgraph[plot]").FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in kinds:
        raise ValueError(f"{path} does not say what kind of picture to write: end its name in .{', .'.join(sorted(kinds))}.")
    check_target(path)


def save_figure(figure, path) -> None:
    """Write a figure to a file, which is complete or not there, and close the figure."""
    from smoothgraph.files import replacing
    from smoothgraph.optional import need

    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=130)
    need("matplotlib.pyplot", "smoothgraph[plot]").close(figure)
