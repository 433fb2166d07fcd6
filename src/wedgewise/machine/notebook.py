"""What a notebook shows: an object as a small table, and work in progress as a bar that needs no widgets."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

SECONDS_BETWEEN_UPDATES = 0.1


def facts_html(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """A title above names and values.

    Examples
    --------
    >>> facts_html("Graph", [("edges", "3")]).count("<tr>")
    1
    """
    left = ' style="text-align:left"'
    rows = (f"<tr><th{left}>{html.escape(name)}</th><td{left}>{html.escape(value)}</td></tr>" for name, value in facts)
    return f"<table><caption>{html.escape(title)}</caption>{''.join(rows)}</table>"


def graph_html(graph: Any) -> str:
    """A graph in a few lines."""
    kept = [
        name for name in ("directions" if graph.directed else "", "" if graph.weights is None else "weights") if name
    ]
    facts = [
        ("read from", graph.origin.name),
        ("vertices", f"{graph.n:,}"),
        ("edges", f"{graph.m:,}"),
        *([("keeps", " and ".join(kept))] if kept else []),
        ("memory", f"{graph.nbytes:,} bytes"),
    ]
    return facts_html("Graph", facts)


def rows_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a row of names above the others."""
    cells = [_row_html("th", head), *(_row_html("td", row) for row in rows)]
    return f"<table>{''.join(cells)}</table>"


def _row_html(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(cell)}</{tag}>' for cell in cells) + "</tr>"


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported for that."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """A bar below the cell, with the methods of a ``rich.progress.Progress`` that bars of ours need."""

    def __init__(self) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        self._html = HTML
        self._stage, self._shown = "", 0.0
        self._handle = display(HTML(""), display_id=True)

    def add_task(self, stage: str, *, total: int | None) -> int:
        """Name the stage that is drawn from now on."""
        self._stage, self._shown = stage, 0.0
        return 0

    def remove_task(self, task: int) -> None:
        """Only one stage is drawn."""

    def update(self, task: int, *, completed: int, total: int | None) -> None:
        """Draw how far the stage is; nothing where it was drawn a moment ago."""
        now = time.monotonic()
        if now - self._shown >= SECONDS_BETWEEN_UPDATES:
            self._shown = now
            extent = f' value="{completed}" max="{total}"' if total else ""
            self._draw(f"<progress{extent}></progress> {html.escape(self._stage)}")

    def stop(self) -> None:
        """Leave nothing below the cell."""
        self._draw("")

    def _draw(self, text: str) -> None:
        handle: Any = self._handle
        if handle is not None:
            handle.update(self._html(text))
