"""How sphinx builds the documentation. What is made at build time goes to docs/generated and docs/_build: git ignores both."""

import os
import warnings
from pathlib import Path

import smoothgraph

HERE = Path(__file__).parent
GENERATED = HERE / "generated"
WIDTH = "100"  # columns of the help pages

project = "smoothgraph"
author = "The smoothgraph developers"
copyright = author
version = release = smoothgraph.__version__
language = "en_GB"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "generated/*.md", "generated/gallery/**/*.ipynb", "generated/gallery/**/*.py"]
templates_path = ["_templates"]
default_role = "literal"  # docstrings quote names with single backticks
highlight_language = "none"

html_theme = "pydata_sphinx_theme"
html_title = "smoothgraph"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "guides/models": []},  # its table needs the width
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
html_sidebars = {
    page: [] for page in ("index", "start", "mathematics", "benchmarks", "results", "zoo", "command_line", "changes")
}

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what comes in
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")  # plt.show() in the examples


def write_help() -> None:
    """generated/commands.md: what `smoothgraph --help` and the help of each command print."""
    os.environ.update(COLUMNS=WIDTH, TERMINAL_WIDTH=WIDTH, TERM="dumb", NO_COLOR="1")
    from typer.main import get_command
    from typer.testing import CliRunner

    from smoothgraph.cli import app

    def printed(*arguments: str) -> str:
        text = CliRunner().invoke(app, [*arguments, "--help"], prog_name="smoothgraph", catch_exceptions=False).stdout
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())

    pages = [f"```text\n{printed()}\n```\n"]
    pages += [f"## smoothgraph {name}\n\n```text\n{printed(name)}\n```\n" for name in get_command(app).commands]
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "commands.md").write_text("\n".join(pages), encoding="utf-8")


def setup(app) -> None:
    app.connect("builder-inited", lambda _: write_help())
