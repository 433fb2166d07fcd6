"""A paper beside our results, by exhibit: what it claims, its numbers with ours, and our curves of its plots."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from wedgewise.report import charts
from wedgewise.report.charts import Axis
from wedgewise.report.page import Value
from wedgewise_bench.papers import Beside, Measured, load, written_out
from wedgewise_bench.published import UNITS, Curve, Exhibit, Paper
from wedgewise_bench.record import Record
from wedgewise_bench.report.contests import file_stem, machine_name
from wedgewise_bench.report.parts import Bullets, Heading, Item, Part, Picture, Table
from wedgewise_bench.spec import Spec
from wedgewise_bench.table import ratio_text, seconds_text

MAX_BARS = 60
MIN_LADDER = 3
RATIO = "ratio"
RERUN = {"yes": "not among these results", "simulated": "not among these results", "no": "not rerun"}

Drawn = Mapping[str, Mapping[str, float]]
"""What we measured of a plot, by graph and way."""


def paper_part(key: str, records: Sequence[Record]) -> Part | None:
    """Every exhibit that our results say something of, and a list of the others with the reason."""
    paper = load(key)
    measured = Measured(paper, records)
    shown = {exhibit.id: list(_exhibit_items(measured, exhibit)) for exhibit in paper.exhibits}
    if not any(shown.values()):
        return None
    machines = "; ".join(dict.fromkeys(map(machine_name, records)))
    about = (
        f"{paper.authors}: {paper.title}, {paper.venue} {paper.year}. Published: {paper.hardware}; {paper.statistic}. "
        f"Ours: {machines}; median of the repeats. Where the hardware differs, the ratio compares no algorithms."
    )
    items = [item for exhibit in shown.values() for item in exhibit]
    missing = [exhibit for exhibit in paper.exhibits if not shown[exhibit.id]]
    return Part(f"Beside the paper: {paper.title}", (about, *items, *_missing_table(missing)))


def ladders_in(paper: Paper) -> list[tuple[str, ...]]:
    """Ways of one exhibit whose times are compared one with the next, by `written_out`: at least two steps."""
    found = []
    for exhibit in paper.exhibits:
        ratios = [number for number in exhibit.numbers if number.over != number.way and number.of == "seconds"]
        after = {number.over: number.way for number in ratios if number.over}
        for first in (way for way in after if way not in after.values()):
            ladder = [first]
            while (step := after.get(ladder[-1])) is not None and step not in ladder:
                ladder.append(step)
            if len(ladder) >= MIN_LADDER:
                found.append(tuple(way if way in paper.others else written_out(Spec.parse(way)) for way in ladder))
    return found


def _exhibit_items(measured: Measured, exhibit: Exhibit) -> Iterator[Item]:
    pairs = [measured.beside(exhibit, number) for number in exhibit.numbers]
    both = [pair for pair in pairs if pair.ours is not None]
    curves = [(curve, found) for curve in exhibit.curves if (found := measured.curve(curve))]
    if not (both or curves):
        return
    yield Heading(f"{exhibit.id[0].upper()}{exhibit.id[1:]}: {exhibit.shows}")
    if exhibit.claims:
        yield Bullets(tuple(f"The paper: {claim}" for claim in exhibit.claims))
    if both:
        yield _numbers_table(measured.paper, both, len(pairs))
    for number, (curve, found) in enumerate(curves, start=1):
        yield _curve_picture(file_stem(measured.paper.key, exhibit.id, str(number)), curve, found)
        yield _curve_table(curve, found)


def _numbers_table(paper: Paper, pairs: Sequence[Beside], published: int) -> Table:
    caption = f"{len(pairs)} of {published} published numbers with ours beside them."
    header = ("graph", "ours on", "what", "published", "ours", f"ours, {paper.average}", "published / ours")
    return Table(caption, header, tuple(map(_numbers_row, pairs)))


def _numbers_row(pair: Beside) -> tuple[Value, ...]:
    number = pair.number
    what = f"{number.way} over {number.over}" if number.over else f"{number.way} {number.metric}".strip()
    return (
        number.graph or number.join,
        pair.graphs[0] if number.graph else f"{len(pair.graphs)} graphs",
        f"{what} ({number.hardware})" if number.hardware else what,
        (number.printed, None) if number.value is None else _unit_value(number.plain, number.unit, digits=7),
        _unit_value(pair.ours, number.unit),
        _unit_value(pair.alike, number.unit),
        (ratio_text(pair.ratio), pair.ratio),
    )


def _unit_value(plain: float | None, unit: str, digits: int = 3) -> Value:
    """A value of our own units in those of the paper."""
    if plain is None:
        return "–", None
    value = plain / UNITS[unit]
    text = f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:,.{digits}g}"
    return f"{text}{unit}" if unit in ("×", "%") else f"{text} {unit}".rstrip(), plain


def _curve_picture(stem: str, curve: Curve, found: Drawn) -> Picture:
    """Bars on each graph where these are few, else the geometric mean of the graphs that have all ways."""
    ways = [way for way in curve.ways if any(way in values for values in found.values())]
    axis = _axis(curve)
    reference = 1.0 if curve.over else None
    text = "; ".join(
        f"{graph}: " + ", ".join(f"{way} {axis.text(value)}" for way, value in values.items())
        for graph, values in found.items()
    )
    if len(ways) * len(found) <= MAX_BARS:
        series = {way: [found[graph].get(way) for graph in found] for way in ways}
        chart, where = charts.bars(list(found), series, axis, reference), "on each graph"
    else:
        means = {way: _mean([values[way] for values in found.values() if way in values]) for way in ways}
        chart, where = charts.bars(ways, {axis.label: list(means.values())}, axis, reference), "geometric mean"
    return Picture(stem, chart, f"Ours, {_measure(curve)}, {where}.", f"{text}.")


def _curve_table(curve: Curve, found: Drawn) -> Table:
    rows = tuple(
        (graph, *(_curve_value(curve, values.get(way)) for way in curve.ways)) for graph, values in found.items()
    )
    return Table(f"Ours, {_measure(curve)}.", ("graph", *curve.ways), rows)


def _curve_value(curve: Curve, value: float | None) -> Value:
    if value is None or curve.over:
        return ratio_text(value), value
    return (seconds_text(value) if curve.metric == "seconds" else Axis("").text(value)), value


def _axis(curve: Curve) -> Axis:
    if curve.over:
        return Axis("times as fast", "×", is_log=True)
    unit = {"seconds": "s", "bytes_moved": "B", "peak_bytes": "B", "device_peak_bytes": "B"}.get(curve.metric, "")
    return Axis(curve.metric.replace("_", " "), unit)


def _measure(curve: Curve) -> str:
    """What a plot is of."""
    of = f" of the stage {curve.stage}" if curve.stage else ""
    over = f": {curve.over} divided by each way" if curve.over else ""
    return f"{curve.metric.replace('_', ' ')}{of} on {curve.device}{over}"


def _mean(values: Sequence[float]) -> float | None:
    return statistics.geometric_mean(values) if values and min(values) > 0 else None


def _missing_table(exhibits: Sequence[Exhibit]) -> Iterator[Item]:
    if exhibits:
        rows = tuple((exhibit.id, exhibit.shows, RERUN[exhibit.rerun], exhibit.why) for exhibit in exhibits)
        yield Heading("Exhibits without results here")
        yield Table("What is missing, and why.", ("exhibit", "shows", "state", "why"), rows)
