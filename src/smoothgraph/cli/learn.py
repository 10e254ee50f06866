"""`learn`, and `demo`: a table in, a graph out."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from smoothgraph.cli.app import NOT_CONVERGED, Json, Quiet, app


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
Missing = Annotated[Literal["error", "drop"], _table("Missing values: an error, or drop the rows that have any.")]
# A shell completes these, and a word that is not among them is refused before anything is read.
Model = Literal["log", "l2", "hard", "soft", "knn", "knn-gaussian", "knn-self-tuning"]
Metric = Literal["euclidean", "cosine", "precomputed"]
Search = Literal["auto", "exact", "approximate", "all"]


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
    model: Annotated[Model, _parameter("What to learn; knn… are nearest-neighbour graphs, to compare with.")] = "log",
    metric: Annotated[Metric, _parameter("precomputed: DATA holds squared distances.")] = "euclidean",
    neighbors: Annotated[Search, _parameter("How to search; all: every pair is an allowed edge.")] = "auto",
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
    from smoothgraph.cli.report import Progress, learned, show

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
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.learner import GraphLearner

    parameters = {name: options[name] for name in GraphLearner().get_params() if name in options}
    if parameters.get("prior") is not None:
        parameters["prior"] = read_graph(parameters["prior"]).W
    if "scale" in parameters:
        parameters["scale"] = _number_or_text(parameters["scale"])
    return progress.watch(lambda: GraphLearner(**parameters, verbose=progress).fit(X))


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


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
    from smoothgraph.cli.report import Progress, learned, save_figure, show
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
        save_figure(plots.overview(learner.graph_, table.labels), output / "graph.png")
    typer.echo()
    show(metadata, learned(metadata), as_json=False, quiet=False)
    typer.echo(f"\nWrote {output / 'graph.npz'} and {output / 'graph.png'}.")
    typer.echo("Your own file:  smoothgraph learn samples.csv -k 10 -o graph.npz   (or make demo DATA=samples.csv K=10)")
    if missed:
        raise typer.Exit(NOT_CONVERGED)
