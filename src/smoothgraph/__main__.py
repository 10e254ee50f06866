"""The command `smoothgraph`, or `python -m smoothgraph`."""

import sys

from smoothgraph.optional import need


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. An error that a user can mend is one line on stderr, not a traceback."""
    try:
        for package in ("typer", "rich"):
            need(package, "smoothgraph[io]")
        from smoothgraph.cli import app

        app(arguments, prog_name="smoothgraph")
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"smoothgraph: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
