"""Write the installed versions of the packages that a file names: `python tools/constraints.py constraints.txt`."""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def main() -> None:
    path = Path(sys.argv[1])
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name = line.partition("==")[0]
        try:
            lines.append(line if line.startswith("#") else f"{name}=={version(name)}")
        except PackageNotFoundError:  # it belongs to an extra that is not installed here
            lines.append(line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
