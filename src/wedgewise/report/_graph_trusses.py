"""The trusses of a graph on its page: what each has, and the components of the last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from wedgewise.algorithms._truss import LEAST_K
from wedgewise.answer_types import TrussLevel
from wedgewise.report import charts
from wedgewise.report._graph_cells import density, number, span, spelled
from wedgewise.report.charts import Axis
from wedgewise.report.graph_facts import GraphFacts
from wedgewise.report.graph_numbers import MOST_POINTS
from wedgewise.report.page import Value, figure_html, list_html, paragraph_html, table_html
from wedgewise.report.summary import shown
from wedgewise.report.text import plural

MOST_ROWS = 40  # of the table of trusses


def trusses_html(facts: GraphFacts) -> str:
    """A drawing and a table of what is left in the k-truss, by k."""
    levels = facts.levels
    if not facts.summary.triangles:
        return paragraph_html("Without triangles, no edge is in a truss beyond the 2-truss, which holds every edge.")
    caption = "What is left in the k-truss"
    told = f"{caption}: {levels[0].edges:,} edges at k = 2, {levels[-1].edges:,} at k = {levels[-1].k:,}."
    return figure_html(_profile(levels).svg(), f"{caption} as k grows.", told) + levels_table(levels)


def _profile(levels: Sequence[TrussLevel]) -> charts.Chart:
    """Edges, vertices and components by k."""
    step = -(-len(levels) // MOST_POINTS)
    drawn = [*levels[:-1:step], levels[-1]]
    series = {
        name: [(level.k, getattr(level, name)) for level in drawn] for name in ("edges", "vertices", "components")
    }
    return charts.lines(series, Axis("k"), Axis("in the k-truss", is_log=True))


def levels_table(levels: Sequence[TrussLevel]) -> str:
    """A row for every k; those that have the same edges share one, and of many the middle ones are left out."""
    runs = [list(run) for _, run in groupby(levels, key=lambda level: level.edges)]
    caption = "What each k-truss has; density is the share of pairs of its vertices that are edges"
    if len(runs) > MOST_ROWS:
        caption += f". Left out in the middle: {plural(len(runs) - MOST_ROWS, 'row')}"
        runs = [*runs[: MOST_ROWS // 2], *runs[-(MOST_ROWS // 2) :]]
    rows = [[span(run[0].k, run[-1].k), *_level_cells(run[0])] for run in runs]
    return table_html(["k-truss", "edges", "vertices", "components", "density"], rows, caption)


def _level_cells(level: TrussLevel) -> list[Value]:
    counts = level.edges, level.vertices, level.components
    return [*map(number, counts), density(level.edges, level.vertices)]


def last_truss_html(facts: GraphFacts) -> str:
    """What the last truss that has edges is made of, its vertices by name."""
    if facts.summary.kmax <= LEAST_K:
        return paragraph_html("There is none beyond the 2-truss, which holds every edge.")
    level, parts = facts.levels[-1], facts.last_truss
    has = f"{plural(level.edges, 'edge')} among {plural(level.vertices, 'vertex', 'vertices')}"
    components = plural(level.components, "component")
    text = f"The {level.k:,}-truss is the last that has edges: {has}, in {components}."
    places = range(1, len(parts) + 1)
    rows = [
        [*map(number, (place, part.vertices, part.edges)), density(part.edges, part.vertices)]
        for place, part in zip(places, parts, strict=True)
    ]
    caption = "Its components" if len(parts) == level.components else f"Its {len(parts)} largest components"
    members = [
        f"Component {place}: {_listed(part.labels, part.vertices)}" for place, part in zip(places, parts, strict=True)
    ]
    table = table_html(["component", "vertices", "edges", "density"], rows, caption)
    return paragraph_html(text) + table + list_html(members)


def _listed(labels: Sequence[object], total: int) -> str:
    more = f" and {total - len(labels):,} more" if total > len(labels) else ""
    return spelled(", ".join(map(shown, labels))) + more
