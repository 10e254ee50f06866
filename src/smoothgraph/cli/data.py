"""`datasets`: the data of the paper and of the documentation, as files."""

from pathlib import Path
from typing import Annotated, Any

import typer

from smoothgraph.cli.app import Json, Quiet, app


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A data set to write to a file; all are listed without it.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write; NAME.npz if not given.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the data sets, or write one to a file: X, y and names as arrays of an npz.

    \b
    smoothgraph datasets
    smoothgraph datasets mnist -o mnist.npz
    smoothgraph learn mnist.npz --label-column y -o graph.npz
    """
    from smoothgraph import datasets as sets
    from smoothgraph.cli.report import show
    from smoothgraph.files import check_target

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
        raise ValueError(f"There is no data set {name}: choose one of {', '.join(entries)}.")
    path = Path(f"{name}.npz") if output is None else output
    if path.suffix != ".npz":
        raise ValueError(f"{path}: data sets are written as .npz.")
    check_target(path)
    loaded = getattr(sets, name)()
    arrays = {"X": loaded.X, "y": loaded.y, "names": loaded.names}
    arrays = {key: values for key, values in arrays.items() if values is not None}
    _write_arrays(path, arrays)
    facts = {"name": name, "shape": list(loaded.X.shape), "arrays": list(arrays), "file": str(path), "license": loaded.license}
    show(facts, [(key, str(value)) for key, value in facts.items()], as_json=as_json, quiet=quiet)


def _write_arrays(path, arrays) -> None:
    import numpy as np

    from smoothgraph.files import replacing

    with replacing(path) as unfinished, unfinished.open("wb") as stream:  # np.savez would add .npz to the name of a path
        np.savez(stream, **arrays)
