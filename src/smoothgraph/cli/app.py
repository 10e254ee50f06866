"""What all commands share: the app that they belong to, and their common options."""

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from smoothgraph.memory import bytes_of

NOT_CONVERGED = 3  # exit code: the result was written, but a tolerance or the wanted number of neighbours was missed


class Commands(TyperGroup):
    """The commands; an error of any of them reaches the caller, where typer would only say "Aborted." of some."""

    def invoke(self, ctx):
        """Run a command."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise ValueError(f"A file ends too early ({str(error) or 'nothing is left to read'}). Is it complete?") from error


app = typer.Typer(
    name="smoothgraph",
    cls=Commands,
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
MaxMemory = Annotated[
    float | None,
    typer.Option(
        parser=bytes_of, metavar="SIZE", help="Refuse files that need more memory, such as 4GB; by default what there is."
    ),
]
GraphFile = Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph: npz, parquet, csv, graphml, h5ad or mtx.")]


def _version(wanted: bool) -> None:
    if wanted:
        import smoothgraph

        print(smoothgraph.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass
