"""`compile`: the compiled kernels, made before the first fit."""

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from smoothgraph.cli.app import Json, Quiet, app


@app.command("compile")
def compile_(
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to keep them, for processes with NUMBA_CACHE_DIR=DIR in their environment."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile the kernels that fits, transform and the uses of a graph need, so that none of them has to wait for the compiler.

    For images and clusters: what is there already is loaded, and the rest compiled, by running small fits of all kinds.

    \b
    RUN smoothgraph compile                       # in a Dockerfile, after pip install
    smoothgraph compile --cache /shared/kernels   # then, on all machines: export NUMBA_CACHE_DIR=/shared/kernels
    """
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        os.environ["NUMBA_CACHE_DIR"] = str(cache.resolve())  # before numba is imported, which reads it then
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise ValueError("NUMBA_DISABLE_JIT is set: nothing is compiled in this environment. Unset it.")
    from smoothgraph import precompile
    from smoothgraph.cli.report import Progress, show

    def work() -> None:
        for part in precompile.run():
            progress(part, "")

    begin = time.perf_counter()
    with Progress(quiet) as progress:
        progress.watch(work)
    facts = _facts(time.perf_counter() - begin)
    show(facts, _lines(facts), as_json=as_json, quiet=quiet)


def _facts(seconds: float) -> dict[str, Any]:
    """What was done, and where the kernels are; an error if a later process would not find them."""
    from smoothgraph._kernels.cache import counts, places, processor

    done, usual = counts(), places()
    used = [place for place in usual if any(event.place == place for event in done)]
    if any(event.place is None or not event.place.is_lasting for event in done):
        raise OSError(f"{usual[0].folder} does not take the compiled kernels: name another folder by --cache DIR.")
    return {
        "compiled": sum(count for event, count in done.items() if event.what == "compiled"),
        "loaded": sum(count for event, count in done.items() if event.what == "loaded"),
        "seconds": round(seconds, 1),
        "folders": [str(place.folder) for place in used],
        "bytes": sum(file.stat().st_size for place in used for file in place.folder.glob("*.kernel")),
        "is_private": any(place.is_private for place in used),
        "processor": processor(),
    }


def _lines(facts: dict[str, Any]):
    """The facts as lines (name, value)."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    yield "kernels", f"{facts['compiled']:,} compiled, {facts['loaded']:,} loaded, in {facts['seconds']} s"
    yield "kept in", f"{', '.join(facts['folders'])} ({facts['bytes'] / 1e6:.1f} MB)"
    if named:
        who = f"processes with NUMBA_CACHE_DIR={named}"
    elif facts["is_private"]:
        who = "this user alone, since the installation cannot be written to: --cache DIR is for others"
    else:
        who = "every user of this installation, who need not be able to write to it"
    yield "found by", who
    yield "processor", f"{facts['processor']}; on others they are compiled again"
