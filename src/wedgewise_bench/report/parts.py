"""A report before it has a form: parts made of text, tables and charts, which become a page, Markdown or files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wedgewise.errors import StorageError
from wedgewise.machine.files import atomic_write
from wedgewise.report.charts import Chart
from wedgewise.report.page import (
    Section,
    Value,
    escaped,
    figure_html,
    folded_html,
    list_html,
    page_html,
    paragraph_html,
    table_html,
)
from wedgewise.report.text import plural
from wedgewise_bench.table import markdown as markdown_table

MAX_ROWS = 24  # of a table that is open


@dataclass(frozen=True, slots=True)
class Heading:
    """What the tables and charts behind it are about; parts between backquotes are code."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; values as `page.table_html` takes them."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart with the stem of its file, its caption, and what it shows in words."""

    stem: str
    chart: Chart
    caption: str
    description: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of texts; parts between backquotes are code."""

    texts: tuple[str, ...]


Item = str | Heading | Bullets | Table | Picture


@dataclass(frozen=True, slots=True)
class Part:
    """A titled part of a report; a text among its items is a paragraph."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All parts, in order."""

    title: str
    summary: str
    parts: tuple[Part, ...]

    @property
    def pictures(self) -> Iterator[Picture]:
        """The charts of all parts, in order."""
        return (item for part in self.parts for item in part.items if isinstance(item, Picture))


def to_html(report: Report) -> str:
    """One page, with everything in it."""
    sections = [Section(part.title, "\n".join(map(_item_html, part.items))) for part in report.parts]
    return page_html(report.title, report.summary, sections)


def to_markdown(report: Report) -> str:
    """Headings, texts and tables; a chart is told by its description."""
    parts = [f"# {report.title}", report.summary]
    for part in report.parts:
        parts += [f"## {part.title}", *map(_item_markdown, part.items)]
    return "\n\n".join(parts) + "\n"


def write_pictures(report: Report, folder: Path, suffix: str) -> list[Path]:
    """A file for every chart, numbered in the order of the report; `suffix` is "svg" or "png"."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made ({error.strerror}); name another folder") from error
    written = []
    for number, picture in enumerate(report.pictures, start=1):
        path = folder / f"{number:02}-{picture.stem}.{suffix}"
        with atomic_write(path) as file:
            file.write(picture.chart.file(suffix))
        written.append(path)
    return written


def texts(values: Sequence[Value]) -> list[str]:
    """What the cells of a row show."""
    return [value if isinstance(value, str) else value[0] for value in values]


def _item_html(item: Item) -> str:
    match item:
        case str():
            return paragraph_html(item)
        case Heading(text):
            return f"<h3>{escaped(text.replace('`', ''))}</h3>"
        case Bullets(lines):
            return list_html(lines)
        case Table(caption, header, rows):
            table = table_html(header, rows, caption)
            return folded_html(f"Table: {plural(len(rows), 'row')}", table) if len(rows) > MAX_ROWS else table
        case Picture(_, chart, caption, description):
            return figure_html(chart.svg(), caption, description)


def _item_markdown(item: Item) -> str:
    match item:
        case str():
            return item
        case Heading(text):
            return f"### {text}"
        case Bullets(lines):
            return "\n".join(f"- {line}" for line in lines)
        case Table(caption, header, rows):
            cells = [[text.replace("|", "\\|").replace("\n", " ") for text in texts(row)] for row in rows]
            return f"{caption}\n\n{markdown_table(list(header), cells)}"
        case Picture(_, _, caption, description):
            return f"*{caption}* {description}"
