"""The facts of a graph → one HTML page that holds everything it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from wedgewise.algorithms._truss import MIN_K
from wedgewise.answer_types import TrussLevel
from wedgewise.report import charts
from wedgewise.report.charts import Axis
from wedgewise.report.explorer import explorer_html
from wedgewise.report.graph_facts import AnsweredQuestion, GraphFacts, graph_facts
from wedgewise.report.graph_numbers import MAX_POINTS, Distribution, TopVertex
from wedgewise.report.page import (
    Section,
    Value,
    figure_html,
    folded_html,
    list_html,
    page_html,
    paragraph_html,
    table_html,
    tiles_html,
)
from wedgewise.report.summary import shown
from wedgewise.report.text import LABELS, bytes_text, plural, range_text
from wedgewise.report.truss_drawing import drawing_svg

BACKQUOTE = "\ue000"  # stands for one that is no mark of code; no label that is shown has this letter
MAX_ROWS = 40  # of the table of trusses


def graph_page(source: Any, **way: Any) -> str:
    """Describe a graph on one self-contained HTML page.

    Summary, degrees, triangles, clustering, trusses, the first vertices, what was cleaned and what all of it cost.

    Parameters
    ----------
    source : a Graph, or whatever `Graph` accepts
    **way : device, memory_limit, threads, progress and verify, as `wedgewise.count` has them

    Examples
    --------
    >>> page = graph_page([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")])
    >>> page.startswith("<!doctype html>"), "1 triangle" in page
    (True, True)
    """
    return page_of(graph_facts(source, **way))


def page_of(facts: GraphFacts) -> str:
    """The page of facts that are known."""
    summary = facts.summary
    size = f"{plural(summary.vertices, 'vertex', 'vertices')} and {plural(summary.edges, 'edge')}"
    lead = f"{spelled(facts.source)}: {size}, {plural(summary.triangles, 'triangle')}."
    sections = [
        Section("Summary", _summary(facts)),
        Section("Degrees", _distribution(facts.degrees, "degree", "this degree")),
        Section("Triangles per vertex", _distribution(facts.triangles, "triangles", "so many triangles")),
        Section("Clustering by degree", _clustering(facts)),
        Section("Trusses", _trusses(facts)),
        Section("The last truss", _last_truss(facts)),
        Section("Vertices that stand out", _tops(facts)),
        *([Section("Explore", explorer_html(facts.explorer))] if facts.explorer else []),
        Section("What was cleaned", _cleaned(facts)),
        Section("What it cost", _cost(facts)),
    ]
    title = f"Graph {facts.source.rpartition('/')[2] or facts.source}"
    return page_html(title, lead, sections, lead=_tiles(facts), columns=2).replace(BACKQUOTE, "&#96;")


def _tiles(facts: GraphFacts) -> str:
    found = facts.summary
    return tiles_html(
        [
            ("vertices", f"{found.vertices:,}"),
            ("edges", f"{found.edges:,}"),
            ("triangles", f"{found.triangles:,}"),
            ("average clustering", f"{found.average_clustering:.3f}"),
            ("transitivity", f"{found.transitivity:.3f}"),
            ("largest truss number", f"{found.kmax:,}"),
        ]
    )


def _summary(facts: GraphFacts) -> str:
    found = facts.summary
    largest = f"{found.largest_component:,} ({found.largest_component / max(1, found.vertices):.1%} of all)"
    rows: list[Sequence[Value]] = [
        ["vertices", number(found.vertices)],
        ["of these without an edge", number(found.isolated)],
        ["edges", number(found.edges)],
        ["triangles", number(found.triangles)],
        ["transitivity", number(found.transitivity)],
        ["average clustering", number(found.average_clustering)],
        ["average clustering where it is defined", number(found.defined_clustering)],
        ["largest degree", number(facts.degrees.largest)],
        ["average degree", (f"{facts.degrees.mean:,.2f}", facts.degrees.mean)],
        ["degeneracy", number(found.degeneracy)],
        ["largest truss number", number(found.kmax)],
        ["connected components", number(found.components)],
        ["vertices of the largest component", (largest, found.largest_component)],
    ]
    definitions = [
        f"Transitivity is the share of the {plural(found.paths, 'path')} of two edges whose ends are joined.",
        "The clustering of a vertex is the share of the pairs of its neighbours that are joined.",
        f"It is defined at {plural(found.defined_at, 'vertex', 'vertices')}, and counts as 0 at the others.",
        "Degeneracy is the largest k for which some part of the graph has only degrees of k or more.",
        "Every edge of the k-truss is in at least k − 2 triangles of the k-truss.",
    ]
    if facts.directed:
        definitions.append("The graph keeps directions; every number on this page ignores them.")
    return table_html(["measure", "value"], rows, "The graph in numbers") + list_html(definitions)


def _distribution(found: Distribution, measure: str, so_much: str) -> str:
    """A drawing of how many vertices have a value or more, and a table of how many have which."""
    if not found.values:
        return paragraph_html("The graph has no vertices.")
    vertices = found.at_least[0]
    spread = f"{found.mean:,.4g} on average, {found.median:,g} at the median, {found.largest:,} at most."
    rows = [
        [span(item.least, item.most), number(item.vertices), share(item.vertices, vertices)] for item in found.classes
    ]
    parts = [paragraph_html(f"Of {plural(vertices, 'vertex', 'vertices')}: {spread}")]
    points = [(value, count) for value, count in zip(found.values, found.at_least, strict=True) if value]
    if len(points) > 1:
        chart = charts.scatter({"": points}, Axis(measure, is_log=True), Axis("vertices at or above", is_log=True))
        caption = f"How many vertices have {so_much} or more, both axes logarithmic."
        zeros = vertices - points[0][1]
        left_out = f" Not drawn: {plural(zeros, 'vertex', 'vertices')} at 0." if zeros else ""
        parts.append(figure_html(chart.svg(), f"{caption}{left_out}", f"{caption} {spread}"))
    parts.append(folded_html("Table", table_html([measure, "vertices", "share"], rows, f"Vertices by {measure}")))
    return "".join(parts)


def _clustering(facts: GraphFacts) -> str:
    classes = facts.clustering_by_degree
    if not classes:
        return paragraph_html("No vertex has two neighbours, so that clustering is defined nowhere.")
    rows = [[span(item.least, item.most), number(item.vertices), number(item.clustering)] for item in classes]
    table = table_html(["degree", "vertices", "clustering"], rows, "Average clustering by degree")
    if len(classes) == 1:
        return table
    points = [(item.least, item.clustering) for item in classes]
    chart = charts.lines({"": points}, Axis("degree", is_log=True), Axis("average clustering"), from_zero=True)
    caption = "Average clustering of vertices of like degrees, each class at the least of its degrees"
    description = (
        f"{caption}: {points[0][1]:.3g} at degree {points[0][0]:,}, {points[-1][1]:.3g} from {points[-1][0]:,} on."
    )
    return figure_html(chart.svg(), f"{caption}.", description) + folded_html("Table", table)


def _trusses(facts: GraphFacts) -> str:
    """A drawing and a table of what is left in the k-truss, by k."""
    levels = facts.levels
    if not facts.summary.triangles:
        return paragraph_html("Without triangles, no edge is in a truss beyond the 2-truss, which holds every edge.")
    step = -(-len(levels) // MAX_POINTS)
    points = [*levels[:-1:step], levels[-1]]
    series = {
        name: [(level.k, getattr(level, name)) for level in points] for name in ("edges", "vertices", "components")
    }
    chart = charts.lines(series, Axis("k"), Axis("in the k-truss", is_log=True))
    caption = "What is left in the k-truss"
    description = f"{caption}: {levels[0].edges:,} edges at k = 2, {levels[-1].edges:,} at k = {levels[-1].k:,}."
    drawn = figure_html(chart.svg(), f"{caption} as k grows.", description)
    return drawn + folded_html("Table", levels_table(levels))


def levels_table(levels: Sequence[TrussLevel]) -> str:
    """A row for every k; those that have the same edges share one, and of many the middle ones are left out."""
    runs = [list(run) for _, run in groupby(levels, key=lambda level: level.edges)]
    caption = "What each k-truss has; density is the share of pairs of its vertices that are edges"
    if len(runs) > MAX_ROWS:
        caption += f". Left out in the middle: {plural(len(runs) - MAX_ROWS, 'row')}"
        runs = [*runs[: MAX_ROWS // 2], *runs[-(MAX_ROWS // 2) :]]
    rows = [
        [
            span(run[0].k, run[-1].k),
            *map(number, (run[0].edges, run[0].vertices, run[0].components)),
            density(run[0].edges, run[0].vertices),
        ]
        for run in runs
    ]
    return table_html(["k-truss", "edges", "vertices", "components", "density"], rows, caption)


def _last_truss(facts: GraphFacts) -> str:
    """What the last truss that has edges is made of, its vertices by name."""
    if facts.summary.kmax <= MIN_K:
        return paragraph_html("There is none beyond the 2-truss, which holds every edge.")
    level, parts = facts.levels[-1], facts.last_truss
    has = f"{plural(level.edges, 'edge')} among {plural(level.vertices, 'vertex', 'vertices')}"
    components = plural(level.components, "component")
    text = f"The {level.k:,}-truss is the last that has edges: {has}, in {components}."
    rows = [
        [*map(number, (position, part.vertices, part.edges)), density(part.edges, part.vertices)]
        for position, part in enumerate(parts, 1)
    ]
    caption = "Its components" if len(parts) == level.components else f"Its {len(parts)} largest components"
    members = [f"Component {position}: {_listed(part.labels, part.vertices)}" for position, part in enumerate(parts, 1)]
    table = table_html(["component", "vertices", "edges", "density"], rows, caption)
    return paragraph_html(text) + _drawing(facts) + table + folded_html("Its vertices", list_html(members))


def _drawing(facts: GraphFacts) -> str:
    """The largest component of the last truss, or the part of it that can be drawn."""
    core = facts.truss_core
    assert core is not None
    has = f"{plural(len(core.labels), 'vertex', 'vertices')} and {plural(len(core.edges), 'edge')}"
    is_whole = facts.last_truss[0].vertices == len(core.labels)
    what = "Its largest component" if is_whole else "The vertices of its largest component with most edges"
    caption = f"{what}, drawn: {has}. Point at a vertex to see its label."
    return figure_html(drawing_svg(core.labels, np.array(core.edges)), caption, f"{what}: {has}.")


def _listed(labels: Sequence[object], total: int) -> str:
    more = f" and {total - len(labels):,} more" if total > len(labels) else ""
    return spelled(", ".join(map(shown, labels))) + more


def _tops(facts: GraphFacts) -> str:
    if not facts.top_by_degree:
        return paragraph_html("No vertex has an edge.")
    by_triangles = (
        _top_table(facts.top_by_triangles, "Most triangles")
        if facts.top_by_triangles
        else paragraph_html("No vertex is in a triangle.")
    )
    return by_triangles + _top_table(facts.top_by_degree, "Largest degree")


def _top_table(vertices: Iterable[TopVertex], caption: str) -> str:
    rows = [
        [
            shown(vertex.label),
            *map(number, (vertex.triangles, vertex.degree, vertex.clustering, vertex.truss)),
        ]
        for vertex in vertices
    ]
    header = ["vertex", "triangles", "degree", "clustering", "truss"]
    return table_html(header, rows, f"{caption}; truss is the largest k whose k-truss has the vertex")


def _cleaned(facts: GraphFacts) -> str:
    found = facts.cleaned
    rows: list[Sequence[Value]] = [
        ["pairs that were read", number(found.pairs)],
        ["loops", number(found.loops)],
        ["duplicates", number(found.duplicates)],
        ["copies in the other direction", number(found.reversed_copies)],
        ["leaves that were dropped", number(found.leaves_dropped)],
        ["edges that are left", number(facts.summary.edges)],
    ]
    about = [f"Read as {', '.join(map(spelled, (facts.format, *facts.notes)))}; labels are {LABELS[facts.label_kind]}."]
    if found.dropped_columns:
        named = f": {', '.join(spelled(str(name)) for name in found.ignored_columns)}" if found.ignored_columns else ""
        about.append(f"Not read: {plural(found.dropped_columns, 'further column')}{named}.")
    return table_html(["what", "how many"], rows, "From pairs to edges") + list_html(about)


def _cost(facts: GraphFacts) -> str:
    total = sum(facts.seconds.values())
    caption = f"Seconds by stage, {total:.3g} in all"
    chart = charts.bars(list(facts.seconds), {"seconds": list(facts.seconds.values())}, Axis("time", "s"))
    rows = [[stage, (f"{taken:.3f}", taken), share(taken, total)] for stage, taken in facts.seconds.items()]
    memory = (
        f"{bytes_text(facts.peak_bytes)} at most, the whole process; the largest step was planned to take "
        f"{bytes_text(facts.bytes_planned)} beyond the graph."
    )
    about = [f"Machine: {facts.machine}.", f"Memory: {memory}", f"Version: wedgewise {facts.version}."]
    return (
        figure_html(chart.svg(), f"{caption}.", f"{caption}. The table below has the numbers.")
        + table_html(["stage", "seconds", "share"], rows, "Wall-clock seconds by stage")
        + _steps_table(facts.steps)
        + list_html([*about, *(line for step in facts.steps for line in _reasons(step))])
    )


def _steps_table(steps: Sequence[AnsweredQuestion]) -> str:
    rows = [
        [
            step.question,
            step.algorithm,
            step.device,
            number(step.threads),
            step.order,
            (bytes_text(step.bytes_planned), step.bytes_planned),
            ", ".join(f"{stage} {taken:.3g}" for stage, taken in step.seconds.items()),
        ]
        for step in steps
    ]
    header = ["question", "algorithm", "device", "threads", "order", "planned", "seconds by stage"]
    return table_html(header, rows, "How the questions were answered")


def _reasons(step: AnsweredQuestion) -> list[str]:
    verified = [f"`{step.question}` was verified: {step.verified}."] if step.verified else []
    return [*(f"`{step.question}` by `{step.algorithm}`: {reason}." for reason in step.reasons), *verified]


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
    return range_text(least, most), least


def density(edges: int, vertices: int) -> Value:
    """The share of pairs of vertices that are edges, in three digits."""
    found = 2 * edges / (vertices * (vertices - 1))
    return f"{found:#.3g}", found
