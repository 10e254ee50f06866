"""The command line: each command reads its files, calls what does the work, and shows what came out.

What is slow to import is imported where it is used: `smoothgraph --help` must not wait for numba. Exit codes: 0 all is well;
1 the data or the files are not (nothing was written); 2 the command was not understood; 3 the graph was written, but the solver
missed its tolerance or the wanted degree.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

NOT_CONVERGED = 3

app = typer.Typer(
    name="smoothgraph",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="Learn sparse weighted graphs from data: the optimal graph, with a proof, for the wanted number of neighbours.",
    epilog="Start with [bold]smoothgraph demo[/bold], or with your own table: "
    "[bold]smoothgraph learn data.csv -k 10 -o graph.npz[/bold], then [bold]smoothgraph plot graph.npz[/bold].",
)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON).")]
GraphFile = Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph: npz, parquet, csv, graphml, h5ad or mtx.")]


def _version(wanted: bool) -> None:
    if wanted:
        import smoothgraph

        typer.echo(smoothgraph.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


# --- learn -----------------------------------------------------------------------------------------------------------------


def _table(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="The table")


def _parameter(text: str, *names: str) -> Any:
    """An option that is a parameter of GraphLearner and has its name; a test holds both lists together."""
    return typer.Option(*names, help=text, rich_help_panel="The learner: parameters of GraphLearner by their names")


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Samples in rows: csv, tsv, parquet, arrow, npy, npz, h5ad, mtx, libsvm or idx.")
]
Columns = Annotated[str | None, _table("Columns to use, as in a,b,c; without it all that are not ids or labels.")]
IdColumn = Annotated[str | None, _table("Column that names the rows; the graph keeps the names.")]
LabelColumn = Annotated[str | None, _table("Column with the class of a row; kept for pictures.")]
Key = Annotated[str | None, _table("Layer or obsm of an h5ad, array of an npz.")]
Missing = Annotated[str, _table("Missing values: 'error', or 'drop' the rows that have any.")]


@app.command()
def learn(
    context: typer.Context,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The graph: .npz, .parquet, .csv, .graphml or .h5ad.")],
    columns: Columns = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    key: Key = None,
    missing: Missing = "error",
    n_neighbors: Annotated[int, _parameter("Wanted mean number of neighbours.", "--n-neighbors", "-k")] = 10,
    model: Annotated[str, _parameter("log, l2, hard, soft; to compare with: knn, knn-gaussian, knn-self-tuning.")] = "log",
    metric: Annotated[str, _parameter("euclidean, cosine, or precomputed: DATA holds squared distances.")] = "euclidean",
    neighbors: Annotated[str, _parameter("How to search: auto, exact, approximate, or all (every pair).")] = "auto",
    oversampling: Annotated[float, _parameter("Lists have this many times n_neighbors entries at first.")] = 3,
    locality: Annotated[float, _parameter("From 0, one θ for all nodes, to 1, even degrees.")] = 0.0,
    complete: Annotated[bool, _parameter("Give nodes more neighbours until the graph is proven optimal.")] = True,
    connect: Annotated[bool, _parameter("Join the parts of the graph into one.")] = False,
    theta: Annotated[float | None, _parameter("Set θ by hand.")] = None,
    alpha: Annotated[float | None, _parameter("The paper's α, with --beta (the l2 model: alone).")] = None,
    beta: Annotated[float | None, _parameter("The paper's β, with --alpha.")] = None,
    tol: Annotated[float, _parameter("Relative duality gap to stop at.")] = 1e-6,
    max_iter: Annotated[int, _parameter("Sweeps of a solve.")] = 1000,
    max_weight: Annotated[float | None, _parameter("Largest weight of an edge.")] = None,
    prior: Annotated[Path | None, _parameter("Graph file to stay near.")] = None,
    prior_strength: Annotated[float, _parameter("How near.")] = 0.0,
    mu: Annotated[float | None, _parameter("The price of the model soft.")] = None,
    projection: Annotated[int | None, _parameter("Features to project to first, for hard and soft.")] = None,
    sigma: Annotated[float | None, _parameter("Width of the model knn-gaussian.")] = None,
    mutual: Annotated[bool, _parameter("For knn models: both ends must list the other.")] = False,
    scale: Annotated[str | None, _parameter("Scale of the weights: a number, 'sum' or 'laplacian'.")] = None,
    random_state: Annotated[int | None, _parameter("Seed of the approximate search.")] = None,
    n_jobs: Annotated[int | None, _parameter("Threads; all if not given.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn the graph of a table of samples and write it to a file.

    \b
    smoothgraph learn data.csv -k 10 -o graph.npz
    smoothgraph learn iris.csv --id-column plant --label-column species -o iris.graphml
    smoothgraph learn cells.h5ad --key X_pca -k 15 -o graph.h5ad
    smoothgraph learn big.npy -k 5 --neighbors approximate --random-state 0 -o graph.parquet --json
    """
    from smoothgraph._report import Progress, learned, show

    with Progress(quiet) as progress:
        metadata, missed = _learn(context.params, progress)
    show(metadata, learned(metadata), as_json=as_json, quiet=quiet)
    if missed:
        raise typer.Exit(NOT_CONVERGED)


def _learn(options: dict[str, Any], progress) -> tuple[dict[str, Any], bool]:
    """Read, learn, write: the metadata of the graph, and whether the tolerance or the degree was missed."""
    from smoothgraph.io.graphs import check_graph_path, graph_metadata, write_graph

    data, output = options["data"], options["output"]
    check_graph_path(output)
    progress("read", "")
    table = _read(options)
    progress("read", f"{table.X.shape[0]:,} samples × {table.X.shape[1]:,} features from {data.name}")
    learner, missed = _fit(table.X, options, progress)
    metadata = graph_metadata(learner)
    progress("write", "")
    write_graph(output, learner.graph_, ids=table.ids, labels=table.labels, metadata=metadata)
    progress("write", f"{output}, {output.stat().st_size / 1e6:,.2f} MB")
    return metadata, missed


def _read(options: dict[str, Any]):
    """The table of the options --columns, --id-column, --label-column, --key and --missing."""
    from smoothgraph.io.tables import read_table

    columns = None if options["columns"] is None else options["columns"].split(",")
    others = {name: options[name] for name in ("id_column", "label_column", "key", "missing")}
    return read_table(options["data"], columns=columns, **others)


def _fit(X, options: dict[str, Any], progress):
    """A learner with those of the options that are its parameters, fitted; and whether it missed something."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from smoothgraph.io.graphs import read_graph
    from smoothgraph.learner import GraphLearner

    parameters = {name: options[name] for name in GraphLearner().get_params() if name in options}
    if parameters.get("prior") is not None:
        parameters["prior"] = read_graph(parameters["prior"]).W
    if "scale" in parameters:
        parameters["scale"] = _number_or_text(parameters["scale"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = GraphLearner(**parameters, verbose=progress).fit(X)
    for warning in caught:
        progress.warn(str(warning.message))
    return learner, any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


# --- files of graphs -------------------------------------------------------------------------------------------------------


@app.command()
def info(graph: GraphFile, as_json: Json = False, quiet: Quiet = False) -> None:
    """Say what is in a graph file, and how it was learned.

    \b
    smoothgraph info graph.npz
    smoothgraph info graph.parquet --json
    """
    from smoothgraph._report import facts_of, learned, seen, show
    from smoothgraph.io.graphs import read_graph

    stored = read_graph(graph)
    facts = facts_of(stored.W)
    show(facts | {"metadata": stored.metadata, "has_ids": stored.ids is not None}, seen(facts), as_json=as_json, quiet=quiet)
    if as_json or quiet:
        return
    if stored.ids is not None:
        typer.echo(f"\n  ids such as {', '.join(map(str, stored.ids[:5]))}")
    if "parameters" in stored.metadata:
        typer.echo(f"\n  learned by smoothgraph {stored.metadata['smoothgraph']}:\n")
        parameters = ", ".join(f"{k}={v}" for k, v in stored.metadata["parameters"].items() if v is not None)
        show({}, [*list(learned(stored.metadata))[2:], ("parameters", parameters)], as_json=False, quiet=False)


@app.command()
def compare(a: GraphFile, b: GraphFile, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare two graphs on the same nodes; nodes are matched by their ids if both files have them.

    \b
    smoothgraph compare exact.npz approximate.npz
    """
    import numpy as np

    from smoothgraph._report import compared, differences, show
    from smoothgraph.io.graphs import read_graph

    A, B = read_graph(a), read_graph(b)
    if A.W.shape != B.W.shape:
        raise ValueError(f"{a} has {A.W.shape[0]:,} nodes, {b} has {B.W.shape[0]:,}: they are not graphs on the same nodes.")
    other = B.W
    if A.ids is not None and B.ids is not None and not np.array_equal(A.ids, B.ids):
        order_a, order_b = np.argsort(A.ids), np.argsort(B.ids)
        if not np.array_equal(A.ids[order_a], B.ids[order_b]):
            stranger = np.setdiff1d(A.ids, B.ids)[0]
            raise ValueError(f"The graphs have different nodes: {a} has {stranger!s}, {b} has not.")
        place = np.empty_like(order_a)
        place[order_a] = order_b
        other = B.W[place][:, place]
    facts = differences(A.W, other)
    show(facts, compared(facts), as_json=as_json, quiet=quiet)


@app.command()
def convert(
    graph: GraphFile,
    output: Annotated[Path, typer.Argument(help="The new file: .npz, .parquet, .csv, .graphml, .h5ad.", show_default=False)],
    quiet: Quiet = False,
) -> None:
    """Write a graph in another format, with its ids and metadata as far as that holds them.

    \b
    smoothgraph convert graph.npz graph.graphml
    """
    from smoothgraph.io.graphs import check_graph_path, read_graph, write_graph

    check_graph_path(output)
    stored = read_graph(graph)
    write_graph(output, stored.W, ids=stored.ids, labels=stored.labels, metadata=stored.metadata)
    if not quiet:
        typer.echo(f"Wrote {output}: {stored.W.shape[0]:,} nodes, {stored.W.nnz // 2:,} edges.")


# --- pictures --------------------------------------------------------------------------------------------------------------


@app.command()
def plot(
    graph: GraphFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The picture; GRAPH with .png if not given.")] = None,
    kind: Annotated[
        str, typer.Option(help="overview, graph, degrees, weights, classes (needs labels) or neighborhood (needs --node).")
    ] = "overview",
    node: Annotated[str | None, typer.Option(help="The node of a neighborhood: its id, or its number.")] = None,
    hops: Annotated[int, typer.Option(help="How far a neighborhood goes.", min=1)] = 2,
    quiet: Quiet = False,
) -> None:
    """Draw a graph: over its spectral embedding, its degrees, its weights, its classes, or around one node.

    \b
    smoothgraph plot graph.npz
    smoothgraph plot graph.npz --kind neighborhood --node 17 -o around17.pdf
    """
    from smoothgraph._report import Progress
    from smoothgraph.io._files import need
    from smoothgraph.io.graphs import read_graph

    need("matplotlib", "smoothgraph[plot]").use("Agg")
    output = graph.with_suffix(".png") if output is None else output
    with Progress(quiet) as progress:
        progress("read", "")
        stored = read_graph(graph)
        progress("draw", "")
        _save(_picture(stored, kind, node, hops), output)
    if not quiet:
        typer.echo(f"Wrote {output}.")


def _picture(stored, kind, node, hops):
    """The figure of a stored graph."""
    from smoothgraph import plots

    W, labels = stored.W, stored.labels
    if kind == "overview":
        return plots.overview(W, labels)
    if kind == "graph":
        return plots.graph(W, labels=labels).figure
    if kind == "degrees":
        return plots.degrees(W).figure
    if kind == "weights":
        return plots.weights(W).figure
    if kind == "classes":
        if labels is None:
            raise ValueError("The graph file has no labels: learn it with --label-column, and into .npz, .graphml or .h5ad.")
        return plots.class_connectivity(W, labels).figure
    if kind == "neighborhood":
        return plots.neighborhood(W, _node_number(stored, node), hops, labels=labels, ids=stored.ids).figure
    raise ValueError(f"--kind {kind} is not known: use overview, graph, degrees, weights, classes or neighborhood.")


def _node_number(stored, node) -> int:
    """The number of the node with this id, or with this number where there are no ids."""
    if node is None:
        raise ValueError("A neighborhood is that of a node: name it with --node.")
    names = [str(i) for i in (range(stored.W.shape[0]) if stored.ids is None else stored.ids)]
    if node not in names:
        raise ValueError(f"There is no node {node}: the nodes are {', '.join(names[:5])}{', …' if len(names) > 5 else ''}.")
    return names.index(node)


def _save(figure, path) -> None:
    """Write a figure to a file that is whole or not there."""
    from smoothgraph.io._files import need, replacing

    kinds = figure.canvas.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in kinds:
        raise ValueError(f"{path} does not say what kind of picture to write: end its name in .{', .'.join(sorted(kinds))}.")
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=130)
    need("matplotlib.pyplot", "smoothgraph[plot]").close(figure)


@app.command()
def demo(
    data: Annotated[Path | None, typer.Argument(help="Your own table; the digits of scikit-learn if not given.")] = None,
    n_neighbors: Annotated[int, typer.Option("--n-neighbors", "-k", help="Wanted mean number of neighbours.")] = 10,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("demo_output"),
) -> None:
    """Learn a graph of 1,797 handwritten digits, or of your own table; show, save and draw it.

    \b
    smoothgraph demo
    smoothgraph demo samples.csv -k 5
    """
    from smoothgraph import plots
    from smoothgraph._report import Progress, learned, show
    from smoothgraph.io._files import need
    from smoothgraph.io.graphs import graph_metadata, write_graph
    from smoothgraph.io.tables import Table, read_table

    need("matplotlib", "smoothgraph[plot]").use("Agg")
    with Progress() as progress:
        progress("read", "")
        if data is None:
            from sklearn.datasets import load_digits

            digits = load_digits()
            table = Table(digits.data, None, digits.target)
        else:
            table = read_table(data)
        learner, missed = _fit(table.X, {"n_neighbors": n_neighbors}, progress)
        metadata = graph_metadata(learner)
        progress("draw", "")
        output.mkdir(parents=True, exist_ok=True)
        write_graph(output / "graph.npz", learner.graph_, ids=table.ids, labels=table.labels, metadata=metadata)
        _save(plots.overview(learner.graph_, table.labels), output / "graph.png")
    typer.echo()
    show(metadata, learned(metadata), as_json=False, quiet=False)
    typer.echo(f"\nWrote {output / 'graph.npz'} and {output / 'graph.png'}.")
    typer.echo("Your own file:  smoothgraph learn samples.csv -k 10 -o graph.npz   (or make demo DATA=samples.csv K=10)")
    if missed:
        raise typer.Exit(NOT_CONVERGED)


# --- uses of graphs --------------------------------------------------------------------------------------------------------


@app.command()
def propagate(
    graph: GraphFile,
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="A table with columns id and label, of some of the nodes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Labels of all nodes: .csv or .parquet.")],
    id_column: Annotated[str, typer.Option(help="Column of LABELS with the ids, or numbers from 0 on, of nodes.")] = "id",
    label_column: Annotated[str, typer.Option(help="Column of LABELS with the labels; empty is none.")] = "label",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Spread the labels of some nodes to all others (harmonic functions).

    \b
    smoothgraph propagate graph.npz few.csv -o all.csv
    """
    import numpy as np

    from smoothgraph._report import show
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.io.tables import read_labels, write_table
    from smoothgraph.uses import label_propagation

    stored = read_graph(graph)
    ids = _names(stored)
    given = read_labels(labels, ids, id_column=id_column, label_column=label_column)
    found = label_propagation(stored.W, given)
    score = np.where(found.reached, found.scores.max(axis=1), np.nan)
    write_table(output, {"id": ids, "label": found.labels, "score": score, "given": given != ""})
    facts: dict[str, Any] = {"n": len(ids), "n_given": int((given != "").sum()), "n_reached": int(found.reached.sum())}
    facts["classes"] = {str(name): int((found.labels == name).sum()) for name in found.classes}
    lines = [
        ("nodes", f"{facts['n']:,}"),
        ("labels given", f"{facts['n_given']:,} of {len(facts['classes'])} classes"),
        ("nodes reached", f"{facts['n_reached']:,} (the others are in parts of the graph without a label)"),
        ("nodes of each class", ", ".join(f"{name} {count:,}" for name, count in facts["classes"].items())),
    ]
    show(facts, lines, as_json=as_json, quiet=quiet)


@app.command()
def embed(
    graph: GraphFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Coordinates of the nodes: .csv or .parquet.")],
    n_components: Annotated[int, typer.Option(help="Coordinates of a node.", min=1)] = 2,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Coordinates for the nodes of the largest component, by spectral embedding; empty for the others.

    \b
    smoothgraph embed graph.npz --n-components 3 -o places.csv
    """
    from smoothgraph._report import show
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.io.tables import write_table
    from smoothgraph.uses import spectral_embedding

    stored = read_graph(graph)
    found = spectral_embedding(stored.W, n_components)
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


def _names(stored):
    """The ids of the nodes, or their numbers."""
    import numpy as np

    return np.arange(stored.W.shape[0]) if stored.ids is None else stored.ids


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="A data set to write to a file; without it, they are listed.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; NAME.npz if not given.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the data sets, or fetch one: X, y and names as arrays of an npz.

    \b
    smoothgraph datasets
    smoothgraph datasets mnist -o mnist.npz
    smoothgraph learn mnist.npz --label-column y -o graph.npz
    """
    from smoothgraph import datasets as sets
    from smoothgraph._report import show

    entries = {entry.name: entry for entry in sets.list_datasets()}
    facts: dict[str, Any]
    if name is None:
        facts = {entry.name: entry._asdict() for entry in entries.values()}
        lines = [
            (entry.name, f"{entry.shape[0]:>9,} × {entry.shape[1]:<6,}  {'here' if entry.present else '    '}  {entry.about}")
            for entry in entries.values()
        ]
        show(facts, lines, as_json=as_json, quiet=quiet)
        return
    if name not in entries:
        raise ValueError(f"There is no data set {name}: there are {', '.join(entries)}.")
    path = Path(f"{name}.npz") if output is None else output
    if path.suffix != ".npz":
        raise ValueError(f"{path}: data sets are written as .npz.")
    loaded = getattr(sets, name)()
    arrays = {"X": loaded.X, "y": loaded.y, "names": loaded.names}
    arrays = {key: values for key, values in arrays.items() if values is not None}
    _write_arrays(path, arrays)
    facts = {"name": name, "shape": list(loaded.X.shape), "arrays": list(arrays), "file": str(path), "license": loaded.license}
    show(facts, [(key, str(value)) for key, value in facts.items()], as_json=as_json, quiet=quiet)


def _write_arrays(path, arrays) -> None:
    import numpy as np

    from smoothgraph.io._files import replacing

    with replacing(path) as unfinished:
        np.savez(unfinished, **arrays)
