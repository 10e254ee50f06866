"""`propagate` and `embed`: the commands that use a graph."""

from pathlib import Path
from typing import Annotated, Any

import typer

from smoothgraph.cli.app import NOT_CONVERGED, GraphFile, Json, MaxMemory, Quiet, app


@app.command()
def propagate(
    graph: GraphFile,
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="A table with columns id and label, for some of the nodes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Labels of all nodes: .csv or .parquet.")],
    id_column: Annotated[str, typer.Option(help="Column of LABELS with the ids of nodes, or their numbers from 0 on.")] = "id",
    label_column: Annotated[str, typer.Option(help="Column of LABELS with the labels; an empty entry is no label.")] = "label",
    max_memory: MaxMemory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Spread the labels of some nodes to all others (harmonic functions).

    \b
    smoothgraph propagate graph.npz few.csv -o all.csv
    """
    import numpy as np

    from smoothgraph.cli.report import Progress, show
    from smoothgraph.files import check_output
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.io.labels import read_labels
    from smoothgraph.io.tables import check_table_path, write_table
    from smoothgraph.uses import label_propagation

    check_table_path(output)
    check_output(output, [graph, labels])
    with Progress(quiet) as progress:
        progress("read", "")
        stored = read_graph(graph, max_memory=max_memory)
        ids = _names(stored)
        given, _ = progress.watch(
            lambda: read_labels(labels, ids, id_column=id_column, label_column=label_column, max_memory=max_memory)
        )
        progress("propagate", "")
        found, missed = progress.watch(lambda: label_propagation(stored.W, given))
        score = np.where(found.reached, found.scores.max(axis=1), np.nan)
        write_table(output, {"id": ids, "label": found.labels, "score": score, "given": given != ""})
    facts: dict[str, Any] = {"n": len(ids), "n_given": int((given != "").sum()), "n_reached": int(found.reached.sum())}
    facts["classes"] = {str(name): int((found.labels == name).sum()) for name in found.classes}
    lines = [
        ("nodes", f"{facts['n']:,}"),
        ("labels given", f"{facts['n_given']:,} of {len(facts['classes'])} classes"),
        ("nodes reached", f"{facts['n_reached']:,} (the others are in components without a label)"),
        ("nodes of each class", ", ".join(f"{name} {count:,}" for name, count in facts["classes"].items())),
    ]
    show(facts, lines, as_json=as_json, quiet=quiet)
    if missed:
        raise typer.Exit(NOT_CONVERGED)


@app.command()
def embed(
    graph: GraphFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Coordinates of the nodes: .csv or .parquet.")],
    n_components: Annotated[int, typer.Option(help="Number of coordinates of a node.", min=1)] = 2,
    max_memory: MaxMemory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Coordinates for the nodes of the largest component, by spectral embedding; empty for the others.

    \b
    smoothgraph embed graph.npz --n-components 3 -o places.csv
    """
    from smoothgraph.cli.report import Progress, show
    from smoothgraph.files import check_output
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.io.tables import check_table_path, write_table
    from smoothgraph.uses import spectral_embedding

    check_table_path(output)
    check_output(output, [graph])
    with Progress(quiet) as progress:
        progress("read", "")
        stored = read_graph(graph, max_memory=max_memory)
        progress("embed", "")
        found, missed = progress.watch(lambda: spectral_embedding(stored.W, n_components))
        write_table(output, {"id": _names(stored)} | {f"x{j + 1}": column for j, column in enumerate(found.coordinates.T)})
    facts: dict[str, Any] = {
        "n": stored.W.shape[0],
        "n_embedded": int(found.embedded.sum()),
        "eigenvalues": found.eigenvalues.tolist(),
    }
    lines = [
        ("nodes", f"{facts['n']:,}"),
        ("in the largest component", f"{facts['n_embedded']:,}"),
        ("eigenvalues", ", ".join(f"{value:.6g}" for value in facts["eigenvalues"])),
    ]
    show(facts, lines, as_json=as_json, quiet=quiet)
    if missed:
        raise typer.Exit(NOT_CONVERGED)


def _names(stored):
    """The ids of the nodes, or their numbers."""
    import numpy as np

    return np.arange(stored.W.shape[0]) if stored.ids is None else stored.ids
