"""The licences of what smoothgraph needs to run: `python tools/licences.py`.

Prints a line for each package that the package and its extras for users bring in, as their metadata have it. It fails if one
that every user gets, without asking for an extra, is under the GPL: that would be a condition on the users of a BSD package.
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution

EXTRAS = "io", "plot", "dask", "datasets", "spherical"  # those that users install
COPYLEFT = re.compile(r"\bA?GPL|GNU (Affero )?General Public", re.IGNORECASE)  # the LGPL is no such condition
NAME = re.compile(r"[A-Za-z0-9._-]+")


def needed(package: str, extras: tuple[str, ...] = ()) -> dict[str, str]:
    """{name: licence} of all packages that a package needs, and those that these need."""
    found: dict[str, str] = {}
    todo = [(package, extras)]
    while todo:
        name, chosen = todo.pop()
        try:
            about = distribution(name)
        except PackageNotFoundError:  # for another system, or another version of Python
            continue
        key = about.metadata["Name"].lower().replace("_", "-")
        if key in found and not chosen:
            continue
        found[key] = licence(about.metadata)
        for requirement in about.requires or []:
            wanted, _, marker = requirement.partition(";")
            extra = re.search(r"extra\s*==\s*[\"\']([^\"\']+)", marker)
            if extra is None or extra.group(1) in chosen:
                inner = re.search(r"\[([^]]*)\]", wanted)
                todo.append((NAME.match(wanted.strip()).group(), tuple(inner.group(1).split(",")) if inner else ()))
    found.pop(package, None)
    return found


def licence(metadata) -> str:
    """The licence in a few words: the expression, else the classifiers, else the first line of the text."""
    classifiers = [line.split(" :: ")[-1] for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    classifiers = [words for words in classifiers if words != "OSI Approved"]
    text = (metadata["License"] or "").strip().splitlines()
    return metadata["License-Expression"] or ", ".join(classifiers) or (text[0][:60] if text else "not stated")


def main() -> None:
    always, extra = needed("smoothgraph"), needed("smoothgraph", EXTRAS)
    for name in sorted(extra):
        print(f"{name:24} {'always' if name in always else 'extra':8} {extra[name]}")
    strict = [name for name, words in always.items() if COPYLEFT.search(words)]
    if strict:
        sys.exit(f"Under the GPL, and needed by everybody: {', '.join(strict)}. Such packages may be extras only.")
    print(f"\n{len(always)} packages always, {len(extra) - len(always)} more with extras; none of the first is under the GPL.")


if __name__ == "__main__":
    main()
