"""The code on the pages of the documentation runs, and prints what the pages say."""

import doctest
import re
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import smoothgraph
from smoothgraph import datasets, io, models, uses

DOCS = Path(__file__).parents[1] / "docs"
LARGE = {"single_cell.md": "scanpy", "gnn.md": "torch_geometric"}  # what a page needs that is too large for every test run


def blocks(page):
    return re.findall(r"^```pycon\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def cases():
    for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")]):
        if not blocks(page):
            continue
        package = LARGE.get(page.name)
        missing = package is not None and find_spec(package) is None
        skip = pytest.mark.skipif(missing, reason=f"{package} is not installed: make test-interop installs it")
        yield pytest.param(page, marks=[pytest.mark.interop, skip] if package else [], id=page.stem)


@pytest.mark.parametrize("page", list(cases()))
def test_the_code_of_a_page_runs_and_prints_what_it_says(page):
    session = doctest.DocTestParser().get_doctest("\n".join(blocks(page)), {}, page.stem, str(page), 0)
    assert session.examples
    with warnings.catch_warnings():
        if page.name in LARGE:
            warnings.simplefilter("ignore")  # of what those packages use and others deprecate
        doctest.DebugRunner().run(session)


def test_the_reference_names_everything_public_and_nothing_that_is_not_there():
    listed = set(re.findall(r"^   ((?:\w+\.)*\w+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.MULTILINE))
    modules = {"uses": uses, "io": io, "datasets": datasets, "models": models}
    public = {f"{name}.{member}" for name, module in modules.items() for member in module.__all__} - {"models.MODELS"}
    public |= {name for name in smoothgraph.__all__ if name not in uses.__all__} | {"solvers.solve"}
    assert public <= listed
    for name in listed:
        module, _, member = f"smoothgraph.{name}".rpartition(".")
        assert callable(getattr(import_module(module), member)), name


def test_pages_link_to_pages_that_are_there():
    for page in [*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")]:
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
