"""`info`, `compare`, `convert` and `plot`: the commands that take a graph file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from smoothgraph.cli.app import GraphFile, Json, MaxMemory, Quiet, app

SHOWN_IDS = 5  # of a graph, for a first look
Kind = Literal["overview", "graph", "neighbor-counts", "weights", "classes", "neighborhood"]


@app.command()
def info(graph: GraphFile, max_memory: MaxMemory = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Say what is in a graph file, and how it was learned.

    \b
    smoothgraph info graph.npz
    smoothgraph info graph.parquet --json
    """
    from smoothgraph.cli.report import facts_of, say, seen, show
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.io.samples import shown

    stored = read_graph(graph, max_memory=max_memory)
    facts = facts_of(stored.W)
    show(facts | {"metadata": stored.metadata, "has_ids": stored.ids is not None}, seen(facts), as_json=as_json, quiet=quiet)
    if as_json or quiet:
        return
    if stored.ids is not None:
        print()
        say(f"  ids such as {', '.join(shown(name) for name in stored.ids[:SHOWN_IDS].tolist())}")
    if "parameters" in stored.metadata:
        print()
        _show_how(stored.metadata)


def _show_how(metadata) -> None:
    """How a graph was learned, as its file says: the file may say anything, or miss something."""
    from smoothgraph.cli.report import learned, say, show

    try:
        parameters = metadata["parameters"] | metadata["model_parameters"]
        text = ", ".join(f"{name}={value}" for name, value in parameters.items() if value is not None)
        _, _, *how = learned(metadata)  # the numbers of nodes and edges are shown already
        heading = f"  learned by smoothgraph {metadata['smoothgraph']}:"
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        say(f"  how it was learned cannot be told: its metadata are not as learn writes them ({type(error).__name__}: {error})")
        return
    say(heading)
    print()
    show({}, [*how, ("parameters", text)], as_json=False, quiet=False)


@app.command()
def compare(a: GraphFile, b: GraphFile, max_memory: MaxMemory = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare two graphs on the same nodes; nodes are matched by their ids if both files have them.

    \b
    smoothgraph compare exact.npz approximate.npz
    """
    import numpy as np

    from smoothgraph.cli.report import compared, differences, show
    from smoothgraph.io.graphs import read_graph

    A, B = read_graph(a, max_memory=max_memory), read_graph(b, max_memory=max_memory)
    if A.W.shape != B.W.shape:
        raise ValueError(f"{a} has {A.W.shape[0]:,} nodes, {b} has {B.W.shape[0]:,}: they are not graphs on the same nodes.")
    other = B.W
    if A.ids is not None and B.ids is not None and not np.array_equal(A.ids, B.ids):
        order_a, order_b = np.argsort(A.ids), np.argsort(B.ids)
        if not np.array_equal(A.ids[order_a], B.ids[order_b]):
            only_a = np.setdiff1d(A.ids, B.ids)[0]
            raise ValueError(f"The graphs have different nodes: {a} has a node {only_a!s}, {b} has none of this id.")
        place = np.empty_like(order_a)
        place[order_a] = order_b
        other = B.W[place][:, place]
    facts = differences(A.W, other)
    show(facts, compared(facts), as_json=as_json, quiet=quiet)


@app.command()
def convert(
    graph: GraphFile,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="The new file: .npz, .parquet, .csv, .graphml, .h5ad.", show_default=False)
    ],
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
) -> None:
    """Write a graph in another format, with its ids, labels and metadata as far as the format has a place for them.

    \b
    smoothgraph convert graph.npz graph.graphml
    """
    from smoothgraph.cli.report import say
    from smoothgraph.files import check_output
    from smoothgraph.io.graphs import check_graph_path, read_graph, write_graph

    check_graph_path(output)
    check_output(output, [graph])
    stored = read_graph(graph, max_memory=max_memory)
    write_graph(output, stored.W, ids=stored.ids, labels=stored.labels, metadata=stored.metadata)
    if not quiet:
        say(f"Wrote {output}: {stored.W.shape[0]:,} nodes, {stored.W.nnz // 2:,} edges.")


@app.command()
def plot(
    graph: GraphFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The picture; GRAPH with .png if not given.")] = None,
    kind: Annotated[Kind, typer.Option(help="What to draw; classes needs labels, neighborhood needs --node.")] = "overview",
    node: Annotated[str | None, typer.Option(help="The node of a neighborhood: its id, or its number.")] = None,
    hops: Annotated[int, typer.Option(help="Largest number of hops from the node of a neighborhood.", min=1)] = 2,
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
) -> None:
    """Draw a graph over its spectral embedding, its numbers of neighbours, weights or classes, or the nodes around one node.

    \b
    smoothgraph plot graph.npz
    smoothgraph plot graph.npz --kind neighborhood --node 17 -o around17.pdf
    """
    from smoothgraph.cli.report import Progress, check_picture_path, save_figure, say
    from smoothgraph.files import check_output
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.optional import need

    need("matplotlib", "smoothgraph[plot]").use("Agg")
    output = graph.with_suffix(".png") if output is None else output
    check_picture_path(output)
    check_output(output, [graph])
    with Progress(quiet) as progress:
        progress("read", "")
        stored = read_graph(graph, max_memory=max_memory)
        progress("draw", "")
        save_figure(_picture(stored, kind, node, hops), output)
    if not quiet:
        say(f"Wrote {output}.")


def _picture(stored, kind, node, hops):
    """The figure of a stored graph."""
    from smoothgraph import plots

    W, labels = stored.W, stored.labels
    if kind == "overview":
        return plots.overview(W, labels)
    if kind == "graph":
        return plots.graph(W, labels=labels).figure
    if kind == "neighbor-counts":
        return plots.neighbor_counts(W).figure
    if kind == "weights":
        return plots.weights(W).figure
    if kind == "classes":
        if labels is None:
            raise ValueError("The graph file has no labels: learn it with --label-column, and write .npz, .graphml or .h5ad.")
        return plots.class_connectivity(W, labels).figure
    return plots.neighborhood(W, _node_number(stored, node), hops, labels=labels, ids=stored.ids).figure


def _node_number(stored, node) -> int:
    """The number of the node with this id, or with this number if the graph has no ids."""
    from smoothgraph.io.samples import listed

    if node is None:
        raise ValueError("A neighborhood is drawn around a node: name it with --node.")
    ids = range(stored.W.shape[0]) if stored.ids is None else stored.ids.tolist()
    names = [str(name) for name in ids]
    if node not in names:
        raise ValueError(f"There is no node {node}: the nodes are {listed(ids)}.")
    return names.index(node)
