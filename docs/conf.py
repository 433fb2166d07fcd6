"""How Sphinx builds the site: `make docs`; every warning is an error."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import wedgewise

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

project = "wedgewise"
author = "The wedgewise developers"
copyright = author
version = release = wedgewise.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

smartquotes = False
add_module_names = False
python_maximum_signature_line_length = 100
autodoc_member_order = "bysource"
autodoc_type_aliases = {"NDArray": "NDArray"}
numpydoc_show_class_members = False
default_role = "py:obj"  # a name in backticks links to what it names; anything else stays code

html_theme = "pydata_sphinx_theme"
html_title = "wedgewise"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False, "show_toc_level": 2, "navigation_with_keys": False}
html_sidebars = {"index": [], "**": ["globaltoc.html"]}

# Pages whose text lives at the root of the repository, where people look for it first.
SHOWN = {
    "project/architecture": "ARCHITECTURE.md",
    "project/conduct": "CODE_OF_CONDUCT.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/security": "SECURITY.md",
    "project/changelog": "CHANGELOG.md",
    "benchmarks/how": "benchmarks/README.md",
    **{
        f"benchmarks/{path.stem}": f"benchmarks/results/{path.name}"
        for path in (ROOT / "benchmarks" / "results").glob("*.md")
    },
}
DESCRIBED = ("Parameters", "Attributes", "Raises")
HOMES = {ROOT / shown: DOCS / f"{page}.md" for page, shown in SHOWN.items()}


def show_text_of_the_repository(app: Any, docname: str, source: list[str]) -> None:
    """Put the text of a file outside docs/ in the place of the page that points to it."""
    if (name := SHOWN.get(docname)) is not None:
        app.env.note_dependency(str(ROOT / name))
        source[0] = relink((ROOT / name).read_text(encoding="utf-8"), (ROOT / name).parent, DOCS / docname)


def relink(text: str, folder: Path, page: Path) -> str:
    """Links of a file in `folder` as links of `page`; what the site does not have becomes plain text."""

    def replaced(match: re.Match[str]) -> str:
        words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        path = (folder / target.partition("#")[0]).resolve()
        path = HOMES.get(path, path)
        if path.suffix == ".md" and path.is_relative_to(DOCS):
            return f"[{words}]({os.path.relpath(path, page.parent)})"
        return words

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", replaced, text)


def describe_below(_app: Any, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Put the words behind a parameter's name below it: our docstrings leave types to the signature."""
    section = ""
    laid_out: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and not following.strip("-"):
            section = line
        described = re.fullmatch(r"(\*{0,2}\w+(?:, \w+)*) : (.+)", line) if section in DESCRIBED else None
        laid_out += [described[1], f"    {described[2]}"] if described else [line]
    lines[:] = laid_out


def setup(app: Any) -> None:
    """Register the hooks; docstrings are laid out before numpydoc reads them."""
    app.connect("source-read", show_text_of_the_repository)
    app.connect("autodoc-process-docstring", describe_below, priority=100)
