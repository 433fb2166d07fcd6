"""An answer with many rows → what a person reads: totals, the largest, and a histogram as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer import coefficients
from wedgewise.answer.store_results import StoreGraph
from wedgewise.answer_types import TrussLevel
from wedgewise.api import Result
from wedgewise.graph import Graph
from wedgewise.report.objects import label_rows, truss_level
from wedgewise.report.text import facts_text, histogram_text, how_facts, plural, range_text, table_text
from wedgewise.write.answers import Named

TOP = 10
MAX_LEVELS = 24  # of a table of trusses
DOUBLING_BELOW = 2**16  # buckets double while the largest value is below, then they grow tenfold
TENTHS = 10
LABEL_WIDTH = 40


def triangles_text(result: Result, graph: Named) -> str:
    """Triangles per vertex."""
    return _counts_text(result, "vertex", "vertices", lambda vertex: shown(graph.labels[vertex]))


def support_text(result: Result, graph: Graph) -> str:
    """Triangles per edge."""

    def ends(edge: int) -> str:
        return " – ".join(map(shown, label_rows(graph.labels, graph.edges[[edge]])[0]))

    return _counts_text(result, "edge", "edges", ends)


def clustering_text(result: Result, graph: Graph | StoreGraph) -> str:
    """Coefficients per vertex; `result` holds NaN where they are undefined."""
    values, everywhere = result.answer, np.nan_to_num(result.answer)
    defined = ~np.isnan(values)
    undefined_at = graph.n - int(np.count_nonzero(defined))
    average, among_defined = coefficients.average(everywhere), coefficients.average(values)
    facts = [
        ("average", f"{average:.6f} over {plural(graph.n, 'vertex', 'vertices')}, 0 where undefined"),
        ("defined", f"{among_defined:.6f} over the {graph.n - undefined_at:,} where it is defined"),
        ("undefined", f"at {plural(undefined_at, 'vertex', 'vertices')} ({undefined_at / max(1, graph.n):.1%})"),
    ]
    parts = [f"average clustering {average:.6f}", facts_text(facts)]
    if defined.any():
        parts.append("  by degree\n" + _by_degree(values[defined], graph.degrees[defined]))
        parts.append("  vertices by clustering\n" + histogram_text(tenths(values[defined])))
    return "\n\n".join([*parts, facts_text(how_facts(result))])


def listing_text(result: Result, rows: list[list[Any]], total: int, start: int) -> str:
    """The first of the listed triangles; `total` is how many the graph has."""
    parts = [plural(total, "triangle")]
    if rows:
        cells = [[f"  {start + number:,}", *map(shown, row)] for number, row in enumerate(rows)]
        parts.append(table_text([["  number", "u", "v", "w"], *cells]))
    rest = total - start - len(rows)
    if rest:
        parts.append(f"  {rest:,} more; --output writes all to a file, a pipe prints all as text")
    return "\n\n".join([*parts, facts_text(how_facts(result))])


def similarity_text(result: Result, graph: Graph) -> str:
    """Measures of pairs: those with the largest values of the first of them."""
    found = result.answer
    named, ends = found.columns, found.ends
    first = next(iter(named))
    parts = [f"{plural(len(ends), 'pair')} of vertices, the largest {first} first"]
    if len(ends):
        best = np.argsort(-named[first], kind="stable")[:TOP]
        cells = [
            [f"  {shown(u)}", shown(v), *(f"{column[pair]:.6g}" for column in named.values())]
            for pair, (u, v) in zip(best.tolist(), label_rows(graph.labels, ends[best]), strict=True)
        ]
        parts.append(table_text([["  u", "v", *named], *cells]))
    return "\n\n".join([*parts, facts_text(how_facts(result))])


def trussness_text(result: Result, graph: Graph) -> str:
    """Truss numbers: what each truss has."""
    from wedgewise.answer.truss_summary import summarise

    levels = summarise(graph, result.answer)
    parts = ["no edges"]
    if levels:
        parts = [f"largest truss number {levels[-1].k:,}", "  what each k-truss has\n" + levels_text(levels)]
    return "\n\n".join([*parts, facts_text(how_facts(result))])


def truss_text(result: Result, graph: Graph) -> str:
    """One truss: what it has, and the first of its edges."""
    truss = result.answer
    level = truss_level(graph, truss)
    last = ", the last with edges" if result.question == "max_truss" and level.edges else ""
    parts = [
        f"{plural(level.edges, 'edge')} in the {truss.k:,}-truss{last}",
        facts_text([("its vertices", f"{level.vertices:,}"), ("its components", f"{level.components:,}")]),
    ]
    rows = label_rows(graph.labels, graph.edges[truss.edges[:TOP]])
    if rows:
        parts.append(table_text([["  u", "v"], *([f"  {shown(u)}", shown(v)] for u, v in rows)]))
    if level.edges > len(rows):
        rest = level.edges - len(rows)
        parts.append(f"  {rest:,} more; --output writes all to a file, a pipe prints all as text")
    return "\n\n".join([*parts, facts_text(how_facts(result))])


def levels_text(levels: Sequence[TrussLevel]) -> str:
    """A row for every k; those that have the same edges share one, and of many the middle ones are left out."""
    runs = [list(run) for _, run in groupby(levels, key=lambda level: level.edges)]
    rows = [
        (f"  {range_text(run[0].k, run[-1].k)}", f"{run[0].edges:,}", f"{run[0].vertices:,}", f"{run[0].components:,}")
        for run in runs
    ]
    if len(rows) > MAX_LEVELS:
        half = MAX_LEVELS // 2
        rows = [*rows[:half], ("  …", "…", "…", "…"), *rows[-half:]]
    return table_text([("  k", "edges", "vertices", "components"), *rows])


def _counts_text(result: Result, thing: str, things: str, name_of: Callable[[int], str]) -> str:
    values = result.answer
    triangles = int(values.sum()) // 3  # each triangle counts at its three vertices, and on its three edges
    taking_part = int(np.count_nonzero(values))
    parts = [
        f"{plural(triangles, 'triangle')} through {taking_part:,} of {len(values):,} {things}",
        facts_text([(f"per {thing}", spread(values))]),
    ]
    if taking_part:
        top = [(f"  {name_of(at)}", f"{values[at]:,}") for at in largest(values, TOP)]
        parts.append("  the largest\n" + table_text([(f"  {thing}", "triangles"), *top]))
        parts.append(f"  {things} by triangles\n" + histogram_text(buckets(values)))
    return "\n\n".join([*parts, facts_text(how_facts(result))])


def spread(values: NDArray[Any]) -> str:
    """Mean, median and largest."""
    mean, median = (float(np.mean(values)), float(np.median(values))) if len(values) else (0.0, 0.0)
    return f"{mean:,.2f} mean, {f'{median:,.1f}'.removesuffix('.0')} median, {values.max(initial=0):,} largest"


def largest(values: NDArray[Any], wanted: int) -> list[int]:
    """Where the largest positive values are, in descending order; of equal ones the first."""
    wanted = min(wanted, int(np.count_nonzero(values)))
    if not wanted:
        return []
    least = np.partition(values, len(values) - wanted)[len(values) - wanted]
    above = np.flatnonzero(values > least)
    level = np.flatnonzero(values == least)[: wanted - len(above)]
    found = np.concatenate([above, level])
    return [int(at) for at in found[np.argsort(-values[found], kind="stable")]]


def buckets(values: NDArray[Any]) -> list[tuple[str, int]]:
    """How many values are 0, 1, 2 or 3, 4 … 7 and so on; where they are large, 0, 1 … 9, 10 … 99 and so on."""
    names, bucket_of = _bucketed(values)
    return list(zip(names, np.bincount(bucket_of, minlength=len(names)).tolist(), strict=True))


def _bucketed(values: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """The names of the buckets, and the bucket of each value."""
    most = int(values.max(initial=0))
    base = 2 if most < DOUBLING_BELOW else 10
    bounds = [0, 1]
    while bounds[-1] <= most:
        bounds.append(bounds[-1] * base)
    names = [range_text(least, beyond - 1) for least, beyond in pairwise(bounds)]
    return names, np.searchsorted(np.array(bounds), values, side="right") - 1


def tenths(values: NDArray[np.float64]) -> list[tuple[str, int]]:
    """How many values are in each tenth of 0 … 1; 1 itself is in the last."""
    found, _ = np.histogram(values, bins=TENTHS, range=(0, 1))
    return [(f"{least / TENTHS:.1f}–{(least + 1) / TENTHS:.1f}", count) for least, count in enumerate(found.tolist())]


def _by_degree(values: NDArray[np.float64], degrees: NDArray[Any]) -> str:
    """The mean of the coefficients in each bucket of degrees."""
    names, bucket_of = _bucketed(degrees)
    vertices = np.bincount(bucket_of, minlength=len(names))
    sums = np.bincount(bucket_of, weights=values, minlength=len(names))
    rows = [
        (f"  {name}", f"{number:,}", f"{total / number:.4f}")
        for name, number, total in zip(names, vertices.tolist(), sums.tolist(), strict=True)
        if number
    ]
    return table_text([("  degree", "vertices", "average"), *rows])


def shown(label: Any) -> str:
    """A label that moves no cursor and fits a column."""
    text = str(label)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= LABEL_WIDTH else f"{text[: LABEL_WIDTH - 1]}…"
