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
GraphFile = Annotated[Path, typer.Argument(help="A graph: npz, parquet, csv, graphml, h5ad, mtx.", show_default=False)]


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

TABLE, LEARNER = "The table", "The learner (parameters of GraphLearner, by their names)"


@app.command()
def learn(
    data: Annotated[
        Path,
        typer.Argument(
            help="Samples in rows: csv, tsv, parquet, arrow, npy, npz, h5ad, mtx, libsvm, idx (csv, tsv, mtx, libsvm and idx "
            "also as .gz). With --metric precomputed: squared distances.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to write the graph: .npz, .parquet, .csv, .graphml, .h5ad.", show_default=False),
    ],
    columns: Annotated[
        str | None, typer.Option(help="Columns to use, as in a,b,c. All but ids and labels, if not given.", rich_help_panel=TABLE)
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column that names the rows; the graph keeps the names.", rich_help_panel=TABLE)
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="Column that says the class of a row; kept for pictures.", rich_help_panel=TABLE)
    ] = None,
    key: Annotated[str | None, typer.Option(help="Layer or obsm of an h5ad, array of an npz.", rich_help_panel=TABLE)] = None,
    missing: Annotated[
        str, typer.Option(help="Missing values: 'error', or 'drop' the rows that have any.", rich_help_panel=TABLE)
    ] = "error",
    n_neighbors: Annotated[
        int, typer.Option("--n-neighbors", "-k", help="Wanted mean number of neighbours.", rich_help_panel=LEARNER)
    ] = 10,
    metric: Annotated[str, typer.Option(help="euclidean, cosine or precomputed.", rich_help_panel=LEARNER)] = "euclidean",
    neighbors: Annotated[
        str, typer.Option(help="How to search: auto, exact or approximate.", rich_help_panel=LEARNER)
    ] = "auto",
    oversampling: Annotated[
        float, typer.Option(help="The lists have this many times n_neighbors entries at first.", rich_help_panel=LEARNER)
    ] = 3,
    complete: Annotated[
        bool, typer.Option(help="Give nodes more neighbours until the graph is proven optimal.", rich_help_panel=LEARNER)
    ] = True,
    theta: Annotated[float | None, typer.Option(help="Set θ by hand.", rich_help_panel=LEARNER)] = None,
    alpha: Annotated[float | None, typer.Option(help="The paper's α, with --beta.", rich_help_panel=LEARNER)] = None,
    beta: Annotated[float | None, typer.Option(help="The paper's β, with --alpha.", rich_help_panel=LEARNER)] = None,
    tol: Annotated[float, typer.Option(help="Relative duality gap to stop at.", rich_help_panel=LEARNER)] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="Sweeps of a solve.", rich_help_panel=LEARNER)] = 1000,
    max_weight: Annotated[float | None, typer.Option(help="Largest weight of an edge.", rich_help_panel=LEARNER)] = None,
    prior: Annotated[Path | None, typer.Option(help="A graph file to stay near.", rich_help_panel=LEARNER)] = None,
    prior_strength: Annotated[float, typer.Option(help="How near.", rich_help_panel=LEARNER)] = 0.0,
    scale: Annotated[
        str | None, typer.Option(help="Scale of the weights: a number, 'sum' or 'laplacian'.", rich_help_panel=LEARNER)
    ] = None,
    random_state: Annotated[int | None, typer.Option(help="Seed of the approximate search.", rich_help_panel=LEARNER)] = None,
    n_jobs: Annotated[int | None, typer.Option(help="Threads; all if not given.", rich_help_panel=LEARNER)] = None,
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

    parameters = dict(
        n_neighbors=n_neighbors, metric=metric, neighbors=neighbors, oversampling=oversampling, complete=complete, theta=theta,
        alpha=alpha, beta=beta, tol=tol, max_iter=max_iter, max_weight=max_weight, prior=prior, prior_strength=prior_strength,
        scale=_number_or_text(scale), random_state=random_state, n_jobs=n_jobs,
    )  # fmt: skip
    table = dict(id_column=id_column, label_column=label_column, key=key, missing=missing)
    with Progress(quiet) as progress:
        metadata, warned = _learn(data, output, columns, table, parameters, progress)
    show(metadata, learned(metadata), as_json=as_json, quiet=quiet)
    if warned:
        raise typer.Exit(NOT_CONVERGED)


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _learn(data, output, columns, table, parameters, progress) -> tuple[dict[str, Any], bool]:
    """Read, learn, write; the metadata of the graph, and whether something was missed. Whatever is warned of is shown."""
    import warnings

    from smoothgraph.io.graphs import check_graph_path, graph_metadata, read_graph, write_graph
    from smoothgraph.io.tables import read_table

    check_graph_path(output)
    progress("read", "")
    if parameters["prior"] is not None:
        parameters["prior"] = read_graph(parameters["prior"]).W
    samples = read_table(data, columns=None if columns is None else columns.split(","), **table)
    progress("read", f"{samples.X.shape[0]:,} samples × {samples.X.shape[1]:,} features from {data.name}")

    from smoothgraph import GraphLearner

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = GraphLearner(**parameters, verbose=progress).fit(samples.X)
    for warning in caught:
        progress.warn(str(warning.message))
    progress("write", "")
    metadata = graph_metadata(learner)
    write_graph(output, learner.graph_, ids=samples.ids, labels=samples.labels, metadata=metadata)
    progress("write", f"{output}, {output.stat().st_size / 1e6:,.1f} MB")
    return metadata, any(type(warning.message).__name__ == "ConvergenceWarning" for warning in caught)


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
