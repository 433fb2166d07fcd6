"""Numbers and users' texts as the page of a graph writes them."""

from __future__ import annotations

from wedgewise.report.page import Value

BACKQUOTE = "\ue000"  # stands for one that is no mark of code; no label that is shown has this letter


def spelled(text: object) -> str:
    """A user's text in a paragraph or a list, where backquotes would mark code."""
    return str(text).replace("`", BACKQUOTE)


def number(value: float) -> Value:
    """A number that people read, and that sorts; six decimals show a coefficient."""
    return (f"{value:,}" if isinstance(value, int) else f"{value:.6f}"), value


def share(part: float, whole: float) -> Value:
    """A part of a whole in per cent; of nothing, 0."""
    found = part / (whole or 1)
    return ("<0.01%" if 0 < found < 1e-4 else f"{found:.2%}"), part


def span(least: int, most: int) -> Value:
    """All integers from one to another."""
    return (f"{least:,}" if least == most else f"{least:,}–{most:,}"), least


def density(edges: int, vertices: int) -> Value:
    """The share of pairs of vertices that are edges, in three digits."""
    found = 2 * edges / (vertices * (vertices - 1))
    return f"{found:#.3g}", found
