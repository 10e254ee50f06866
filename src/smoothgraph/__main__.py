"""The command `smoothgraph`, or `python -m smoothgraph`."""

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Whatever a user can mend is one line on stderr, not a traceback."""
    try:
        from smoothgraph.cli import app
    except ImportError as error:
        sys.exit(f"smoothgraph: the command line needs {error.name}: pip install 'smoothgraph[io]'")
    try:
        app(arguments, prog_name="smoothgraph")
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"smoothgraph: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
