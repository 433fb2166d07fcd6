"""One HTML page that needs nothing else: its style, its script and its drawings are inside it.

The page opens without a network, which its Content-Security-Policy forbids it to use; it follows the reader's choice of
light or dark, and its tables sort.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from wedgewise.machine.files import atomic_write
from wedgewise.version import __version__

Value = str | tuple[str, float | None]
"""What a cell of a table shows, or that and the number that it is sorted by; None sorts behind every number."""

LONG, NAME = 48, 16  # letters of a cell that is broken into lines, always and on a phone
SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
SETTINGS = re.compile(r"\[[^\]]*\]")
IDENTIFIER = re.compile(r'(\bid="|url\(#|href="#)')


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: its heading as text, the rest as HTML."""

    title: str
    body: str


def escaped(text: object) -> str:
    """The text as HTML shows it, within elements and attributes.

    Examples
    --------
    >>> escaped("a < b")
    'a &lt; b'
    """
    return html.escape(str(text))


def paragraph_html(text: str) -> str:
    """A paragraph; parts between backquotes are code.

    Examples
    --------
    >>> paragraph_html("as `auto` does")
    '<p>as <code>auto</code> does</p>'
    """
    return f"<p>{_with_code(text)}</p>"


def list_html(items: Sequence[str]) -> str:
    """A list of texts; parts between backquotes are code."""
    return "<ul>" + "".join(f"<li>{_with_code(item)}</li>" for item in items) + "</ul>"


def tiles_html(facts: Sequence[tuple[str, str]]) -> str:
    """A few names and values that are read first.

    Examples
    --------
    >>> tiles_html([("edges", "3")])
    '<dl class="tiles"><div><dt>edges</dt><dd>3</dd></div></dl>'
    """
    tiles = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts)
    return f'<dl class="tiles">{tiles}</dl>'


def folded_html(title: str, content: str) -> str:
    """Content that a reader opens.

    Examples
    --------
    >>> folded_html("More", "<p>text</p>")
    '<details><summary>More</summary><p>text</p></details>'
    """
    return f"<details><summary>{_with_code(title)}</summary>{content}</details>"


def table_html(header: Sequence[str], rows: Sequence[Sequence[Value]], caption: str) -> str:
    """A table that sorts by any column, and scrolls sideways in a box of its own.

    The first column names the rows. A column whose values all come with numbers is set flush right.

    Parameters
    ----------
    header : the names of the columns
    rows : a value is text, or text and the number to sort by
    caption : what the table shows

    Examples
    --------
    >>> "aria-sort" in table_html(["graph", "edges"], [["torus", ("1,024", 1024)]], "Sizes")
    True
    """
    numeric = [all(isinstance(row[column], tuple) for row in rows) for column in range(len(header))]
    classes = [' class="number"' if is_numeric else "" for is_numeric in numeric]
    heads = "".join(
        f'<th scope="col" aria-sort="none"{of_class}><button type="button">{escaped(name)}</button></th>'
        for name, of_class in zip(header, classes, strict=True)
    )
    body = "\n".join(f"<tr>{_row_html(row, classes)}</tr>" for row in rows)
    return (
        f'<div class="box" role="region" tabindex="0" aria-label="{escaped(caption)}"><table>'
        f"<caption><span>{_with_code(caption)}</span></caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def figure_html(svg: str, caption: str, description: str) -> str:
    """A drawing with its caption; `description` is its text for those who cannot see it."""
    return (
        f'<figure><div class="chart" role="img" aria-label="{escaped(description)}">{svg}</div>'
        f"<figcaption>{_with_code(caption)}</figcaption></figure>"
    )


def page_html(title: str, summary: str, sections: Sequence[Section], *, lead: str = "", columns: int = 1) -> str:
    """The whole page.

    Parameters
    ----------
    title : its heading
    summary : the paragraph below that; parts between backquotes are code
    sections : what follows, with a list of links to them; the drawings of all get identifiers of their own
    lead : HTML between the paragraph and the links
    columns : how many sections stand side by side on a wide screen
    """
    anchors = [f"section-{number}" for number in range(1, len(sections) + 1)]
    links = "".join(
        f'<li><a href="#{anchor}">{escaped(section.title)}</a></li>'
        for anchor, section in zip(anchors, sections, strict=True)
    )
    parts = "\n".join(
        f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{escaped(section.title)}</h2>\n'
        f"{section.body}\n</section>"
        for anchor, section in zip(anchors, sections, strict=True)
    )
    style, script = _resource("page.css"), _resource("page.js")
    wide = ' class="wide"' if columns > 1 else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="wedgewise {__version__}">
<link rel="icon" href="data:,">
<title>{escaped(title)}</title>
<style>{style}</style>
</head>
<body{wide}>
<a class="skip" href="#main">Skip to the first section</a>
<header>
<h1>{escaped(title)}</h1>
{paragraph_html(summary)}
{lead}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main">
{_numbered_drawings(parts)}
</main>
<footer><p>Made by wedgewise {__version__}. This file holds everything that it shows.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def write_document(text: str, path: Path) -> Path:
    """A whole file, or none."""
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def _row_html(row: Sequence[Value], classes: Sequence[str]) -> str:
    texts = [escaped(value if isinstance(value, str) else value[0]) for value in row]
    attributes = [
        (of_class or _width_class(text)) + _sort_key(value)
        for value, text, of_class in zip(row, texts, classes, strict=True)
    ]
    first, *others = map(_breakable, texts)
    cells = "".join(f"<td{attribute}>{text}</td>" for attribute, text in zip(attributes[1:], others, strict=True))
    return f'<th scope="row"{attributes[0]}>{first}</th>{cells}'


def _breakable(text: str) -> str:
    """A name with settings may be broken between these, before it is broken within one."""
    return SETTINGS.sub(lambda found: re.sub(r"[\[,]", r"\g<0><wbr>", found[0]), text)


def _width_class(text: str) -> str:
    """Long texts are broken into lines, which must not become too short for reading; on a phone, shorter ones too."""
    return ' class="long"' if len(text) > LONG else ' class="name"' if len(text) > NAME else ""


def _sort_key(value: Value) -> str:
    """The attribute that the script sorts by; text sorts by itself."""
    if isinstance(value, str):
        return ""
    return ' data-key=""' if value[1] is None else f' data-key="{value[1]!r}"'


def _with_code(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", _breakable(escaped(text)))


def _numbered_drawings(parts: str) -> str:
    """The same with the number of the drawing before each identifier inside it, so that none is there twice."""
    numbers = iter(range(1, parts.count("<svg") + 1))

    def with_own_names(drawing: re.Match[str]) -> str:
        number = next(numbers)
        return IDENTIFIER.sub(rf"\g<1>drawing-{number}-", drawing[0])

    return SVG.sub(with_own_names, parts)


def _policy(script: str) -> str:
    """What the page may use: its own style, its own script, known by its hash, and nothing from elsewhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


@cache
def _resource(name: str) -> str:
    return (resources.files("wedgewise.report") / name).read_text(encoding="utf-8")
