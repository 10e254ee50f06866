"""`learn`, and `demo`: a table in, a graph out."""

from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from smoothgraph.cli.app import NOT_CONVERGED, Json, MaxMemory, Quiet, app
from smoothgraph.files import check_output, suffix


def _table(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="The table")


def _parameter(text: str, *names: str) -> Any:
    """An option that is a parameter of GraphLearner, or of a model, of the same name; a test holds both lists together."""
    return typer.Option(*names, help=text, rich_help_panel="The learner: parameters of GraphLearner and of its models")


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Samples in rows: csv, tsv, parquet, arrow, npy, npz, h5ad, mtx, libsvm or idx.")
]
Columns = Annotated[str | None, _table("Columns to use, such as a,b,c; by default all except ids and labels.")]
Exclude = Annotated[str | None, _table("Columns to leave out, such as a,b,c.")]
IdColumn = Annotated[str | None, _table("Column that names the rows; the graph file keeps the names.")]
LabelColumn = Annotated[str | None, _table("Column with the class of each row; the graph file keeps it for pictures.")]
Key = Annotated[str | None, _table("Layer or obsm of an h5ad, or array of an npz.")]
Missing = Annotated[Literal["error", "drop"], _table("What missing values do: end with an error, or drop their rows.")]
Encoding = Annotated[str | None, _table("Encoding of a text table, such as latin-1; by default UTF-8.")]
Standardize = Annotated[
    Literal["none", "standard", "robust"],
    _table("Give columns the same scale: by mean and standard deviation, or by median and interquartile range."),
]
# A shell completes these words, and any other word is refused before a file is read.
Model = Literal["log", "l2", "hard", "soft", "knn", "knn-gaussian", "knn-self-tuning"]
Metric = Literal["euclidean", "cosine", "precomputed", "precomputed_squared"]
Search = Literal["auto", "exact", "approximate", "all"]
Duplicates = Literal["merge", "keep"]
MODEL_OPTIONS = "mu", "projection", "sigma", "mutual"  # the options that are parameters of models, not of the learner


@app.command()
def learn(
    context: typer.Context,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The graph: .npz, .parquet, .csv, .graphml or .h5ad.")
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Add the graph to DATA itself, an h5ad, in the place of --output.")
    ] = False,
    key_added: Annotated[
        str | None, typer.Option(help="Name of the graph in an h5ad, as in scanpy: KEY_connectivities; default neighbors.")
    ] = None,
    columns: Columns = None,
    exclude: Exclude = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    key: Key = None,
    missing: Missing = "error",
    encoding: Encoding = None,
    max_memory: MaxMemory = None,
    standardize: Standardize = "none",
    n_neighbors: Annotated[int, _parameter("Wanted mean number of neighbours.", "--n-neighbors", "-k")] = 15,
    model: Annotated[Model, _parameter("What to learn; the knn ones are nearest-neighbour graphs, for comparison.")] = "log",
    metric: Annotated[Metric, _parameter("precomputed: DATA holds distances, or precomputed_squared: squares.")] = "euclidean",
    neighbors: Annotated[Search, _parameter("How to find neighbours; all: every pair of samples is an allowed edge.")] = "auto",
    oversampling: Annotated[float, _parameter("The first neighbour lists have this many times n_neighbors entries.")] = 2,
    duplicates: Annotated[
        Duplicates, _parameter("Rows that are equal: one node with its copies hung on it, or all.")
    ] = "merge",
    locality: Annotated[
        float | None, _parameter("From 0 (one theta for all nodes) to 1 (one for each node, even degrees).")
    ] = None,
    complete: Annotated[bool, _parameter("Make neighbour lists longer until the graph is proven optimal.")] = True,
    proof: Annotated[
        bool, _parameter("Prove it over all pairs, also where lists are approximate; takes a few fits' time.")
    ] = False,
    connect: Annotated[bool | None, _parameter("Connect the components of the graph by bridges.")] = None,
    theta: Annotated[float | None, _parameter("Set theta by hand.")] = None,
    alpha: Annotated[float | None, _parameter("The paper's alpha, together with --beta (for the model l2: alone).")] = None,
    beta: Annotated[float | None, _parameter("The paper's beta, together with --alpha.")] = None,
    tol: Annotated[float, _parameter("Relative duality gap at which the solver stops.")] = 1e-6,
    max_iter: Annotated[int, _parameter("Largest number of rounds of a solve.")] = 1000,
    max_weight: Annotated[float | None, _parameter("Largest weight of an edge.")] = None,
    prior: Annotated[Path | None, _parameter("Graph file that the learned graph stays near to.")] = None,
    prior_strength: Annotated[float | None, _parameter("How strongly it stays near to the prior; needed with --prior.")] = None,
    mu: Annotated[float | None, _parameter("Price of degrees below 1, for the model soft.")] = None,
    projection: Annotated[int | None, _parameter("Number of features to project to, for the models hard and soft.")] = None,
    sigma: Annotated[float | None, _parameter("Width sigma, for the model knn-gaussian.")] = None,
    mutual: Annotated[bool, _parameter("Keep an edge only if each end lists the other, for the knn models.")] = False,
    scale: Annotated[str | None, _parameter("Scale of the weights: a number, 'sum' or 'laplacian'.")] = None,
    random_state: Annotated[int | None, _parameter("Seed of the approximate search and of --projection.")] = None,
    n_jobs: Annotated[int | None, _parameter("Number of threads; one for each core if not given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say about how long it takes, and how much memory.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn the graph of a table of samples and write it to a file.

    \b
    smoothgraph learn data.csv -k 10 -o graph.npz
    smoothgraph learn iris.csv --id-column plant --label-column species -o iris.graphml
    smoothgraph learn houses.csv --standardize robust -o houses.npz
    smoothgraph learn cells.h5ad --key X_pca -k 15 -o cells_with_graph.h5ad
    smoothgraph learn cells.h5ad --key X_pca --add --key-added learned
    smoothgraph learn big.npy -k 5 --neighbors approximate --random-state 0 -o graph.parquet --json
    smoothgraph learn big.npy --dry-run
    """
    from smoothgraph.cli.report import Progress, learned, show

    options = _options(context)
    if dry_run:
        from smoothgraph.cli.dry_run import dry_run as tell
        from smoothgraph.learner import GraphLearner

        facts, lines = tell(options, GraphLearner(**_parameters(options)))
        show(facts, lines, as_json=as_json, quiet=quiet)
        return
    with Progress(quiet) as progress:
        metadata, missed = _learn(options, progress)
    show(metadata, learned(metadata), as_json=as_json, quiet=quiet)
    if missed:
        raise typer.Exit(NOT_CONVERGED)


def _options(context: typer.Context) -> dict[str, Any]:
    """All options by name. Some versions of typer have files in the context as text, which only the function gets as paths."""
    files = {name: Path(context.params[name]) for name in ("data", "output", "prior") if context.params[name] is not None}
    return context.params | files


def _learn(options: dict[str, Any], progress) -> tuple[dict[str, Any], bool]:
    """Read, learn, write: (metadata of the graph, whether the tolerance or the number of neighbours was missed)."""
    from smoothgraph.files import existing
    from smoothgraph.io.graphs import check_graph_path, graph_metadata
    from smoothgraph.io.tables import source_of

    data, output = options["data"], _output(options)
    check_graph_path(output)
    existing(data)
    progress("read", "")
    parameters = _parameters(options)  # before the table is read, which may take long
    table = _read(options)
    progress("read", _what_was_read(table, data))
    if table.n_dropped and suffix(output) == suffix(data) == ".h5ad":
        raise ValueError(
            f"{table.n_dropped} cells of {data} were dropped, but a graph in an h5ad is one of all its cells: leave them out "
            "of the file first, or write the graph to an .npz."
        )
    source = source_of(data, table, options["key"])
    learner, missed = _fit(_samples(table, options), parameters, progress)
    metadata = graph_metadata(learner) | {"standardize": options["standardize"], "source": source}
    if options["label_column"] is not None:
        metadata["label_column"] = options["label_column"]
    progress("write", "")
    _write(output, learner, table, metadata, options)
    progress("write", f"{output}, {output.stat().st_size / 1e6:,.2f} MB")
    return metadata, missed


def _output(options: dict[str, Any]) -> Path:
    """The file to write: --output, or DATA itself with --add. An output never replaces an input in any other way."""
    data, output = options["data"], options["output"]
    if options["add"]:
        if output is not None or suffix(data) != ".h5ad":
            wrong = f"--output {output} was given too" if output is not None else f"{data} is none"
            raise ValueError(f"--add puts the graph into DATA, which must be an h5ad, and nowhere else: {wrong}.")
        return data
    if output is None:
        more = ", or --add to put the graph into DATA" if suffix(data) == ".h5ad" else ""
        raise typer.BadParameter(f"name the file to write, such as -o graph.npz{more}.", param_hint="'--output' / '-o'")
    if options["key_added"] is not None and suffix(output) != ".h5ad":
        raise ValueError(f"--key-added {options['key_added']} is for an h5ad, and {output} is none: leave it out.")
    check_output(output, [data, options["prior"]])
    return output


def _write(output, learner, table, metadata, options: dict[str, Any]) -> None:
    """Write the graph; that of an h5ad goes, in an h5ad, into a copy of what was read."""
    if suffix(output) != ".h5ad":
        from smoothgraph.io.graphs import write_graph

        write_graph(output, learner.graph_, ids=table.ids, labels=table.labels, metadata=metadata)
        return
    from smoothgraph.io.anndata import write_learned_h5ad

    source = options["data"] if suffix(options["data"]) == ".h5ad" else None
    how = {"source": source, "key_added": options["key_added"], "key": options["key"]}
    write_learned_h5ad(output, learner, table, metadata, **how)


def _read(options: dict[str, Any]):
    """The table that DATA and the options of "The table" ask for, as it is in the file."""
    from smoothgraph.io.tables import read_table

    chosen: dict[str, Any] = {name: _names(options[name]) for name in ("columns", "exclude")}
    others = {name: options[name] for name in ("id_column", "label_column", "key", "missing", "encoding", "max_memory")}
    return read_table(options["data"], **chosen, **others)


def _names(text: str | None) -> list[str] | None:
    """The names in a list such as a,b or "a, b"; names in a text table have no blanks around them either."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _what_was_read(table, data: Path) -> str:
    """The size of the table, how its text was understood, and how many rows are not in it."""
    text = f"{table.X.shape[0]:,} samples × {table.X.shape[1]:,} features from {data.name}"
    text += f" ({table.read_as})" if table.read_as else ""
    return text + (f"; {table.n_dropped:,} rows with missing values dropped" if table.n_dropped else "")


def _samples(table, options: dict[str, Any]):
    """What the learner gets: X with the scale that --standardize asks for, as a frame if its columns have names."""
    X = _standardized(table.X, options["standardize"], options["metric"])
    if table.columns is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=table.columns, copy=False)  # so that messages name columns


def _standardized(X, how: str, metric: str):
    """X with columns of the same scale: (X − mean)/deviation, or (X − median)/interquartile range.

    Constant columns stay as they are, and a column whose interquartile range is 0, such as one of mostly zeros, is divided by
    its standard deviation. A sparse X is not centred, which changes no Euclidean distance.
    """
    if how == "none":
        return X
    import numpy as np
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    from smoothgraph._checks import float_type
    from smoothgraph.distances import MATRICES

    if metric in MATRICES:
        raise ValueError(f"--standardize {how} does not apply to --metric {metric}, where DATA holds distances: leave it out.")
    X = X.astype(float_type(X), copy=False)
    standard = StandardScaler(with_mean=not issparse(X)).fit(X)
    if how == "standard":
        return standard.transform(X)
    if issparse(X):
        raise ValueError("--standardize robust needs a dense table, and this one is sparse: use --standardize standard.")
    low, median, high = np.percentile(X, [25, 50, 75], axis=0)
    scale = np.where(high > low, high - low, standard.scale_)
    return ((X - median) / scale).astype(X.dtype, copy=False)


def _parameters(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the learner that the options ask for; an error if they make no sense whatever the table."""
    from smoothgraph._checks import check_parameters
    from smoothgraph.io.graphs import read_graph
    from smoothgraph.learner import GraphLearner

    parameters = {name: options[name] for name in GraphLearner().get_params(deep=False) if name in options}
    parameters["model"] = _model(options)
    parameters["scale"] = _number_or_text(options["scale"])
    if options["prior"] is not None:
        parameters["prior"] = read_graph(options["prior"], max_memory=options["max_memory"]).W
    check_parameters(GraphLearner(**parameters))
    return parameters


def _fit(X, parameters: dict[str, Any], progress):
    """(a fitted learner, whether it missed its tolerance)."""
    from smoothgraph.io.npy import check_unchanged
    from smoothgraph.learner import GraphLearner

    def told(stage: str, text: str) -> None:
        check_unchanged(X)  # a file that is mapped and became shorter would end the process in this stage
        progress(stage, text)

    told("check", "")
    return progress.watch(lambda: GraphLearner(**parameters, verbose=told).fit(X))


def _model(options: dict[str, Any]):
    """The model that --model names, with those of its parameters that the user has set."""
    from smoothgraph.models import model_of

    defaults = {name: option.default for name, option in signature(learn).parameters.items()}
    own = {name: options[name] for name in MODEL_OPTIONS if options[name] != defaults[name]}
    return model_of(options["model"], **own)


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@app.command()
def demo(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A table of your own; the digits of scikit-learn if not given.")
    ] = None,
    n_neighbors: Annotated[int, typer.Option("--n-neighbors", "-k", help="Wanted mean number of neighbours.")] = 15,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("demo_output"),
) -> None:
    """Learn a graph of 1,797 handwritten digits, or of your own table; show, save and draw it.

    \b
    smoothgraph demo
    smoothgraph demo samples.csv -k 5
    """
    from smoothgraph import plots
    from smoothgraph.cli.report import Progress, learned, save_figure, say, show
    from smoothgraph.io.graphs import graph_metadata, write_graph
    from smoothgraph.io.samples import Table
    from smoothgraph.io.tables import read_table
    from smoothgraph.optional import need

    need("matplotlib", "smoothgraph[plot]").use("Agg")
    with Progress() as progress:
        progress("read", "")
        if data is None:
            from sklearn.datasets import load_digits

            digits = load_digits()
            table = Table(digits.data, None, digits.target)
        else:
            table = read_table(data)
        graph, picture = _demo_files(output, data)
        learner, missed = _fit(table.X, {"n_neighbors": n_neighbors}, progress)
        metadata = graph_metadata(learner)
        progress("draw", "")
        write_graph(graph, learner.graph_, ids=table.ids, labels=table.labels, metadata=metadata)
        save_figure(plots.overview(learner.graph_, table.labels), picture)
    print()
    show(metadata, learned(metadata), as_json=False, quiet=False)
    print()
    say(f"Wrote {graph} and {picture}.")
    say("Your own file:  smoothgraph learn samples.csv -k 10 -o graph.npz   (or make demo DATA=samples.csv K=10)")
    if missed:
        raise typer.Exit(NOT_CONVERGED)


def _demo_files(folder: Path, data: Path | None) -> tuple[Path, Path]:
    """The graph and the picture in a folder, which is made; an error if they cannot be written there."""
    from smoothgraph.files import check_output, check_target

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder to write to.")
    folder.mkdir(parents=True, exist_ok=True)
    graph, picture = folder / "graph.npz", folder / "graph.png"
    for path in (graph, picture):
        check_target(path)
        check_output(path, [data])
    return graph, picture
