"""Published numbers beside our own: which of our cells answers each, by our statistic and by the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

from wedgewise_bench.published import UNITS, Curve, Exhibit, Number, Paper, keys, load, parse
from wedgewise_bench.record import Record
from wedgewise_bench.spec import Spec
from wedgewise_bench.statistic import OURS, Statistic
from wedgewise_bench.table import markdown as table_text
from wedgewise_bench.table import ratio_text, seconds_text

__all__ = [
    "Beside",
    "Curve",
    "Exhibit",
    "Measured",
    "Number",
    "Paper",
    "beside",
    "keys",
    "load",
    "markdown",
    "parse",
    "value_of",
    "written_out",
]

Key = tuple[str, ...]

JOINS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "geometric mean": statistics.geometric_mean,
    "mean": statistics.fmean,
    "least": min,
    "most": max,
}

ROWS = {"edges": " from pairs in memory", "file": " from a file"}
TIMED: Mapping[str, tuple[str, ...]] = {"count": ("kernel",), "edges": ("whole",), "file": ("whole",)}
"""The stages that the seconds of a row stand for where they are not told apart; those of a file with reading it."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A published number and our own.

    Attributes
    ----------
    exhibit, number : what is published, and where
    graphs : what ours was measured on: the same graph, the one that stands in for it, or all of a mean
    ours : by the median of our repeats, in our own units
    alike : the same by the paper's own statistic
    why : why there is none of ours, where there is none
    """

    exhibit: Exhibit
    number: Number
    graphs: tuple[str, ...] = ()
    ours: float | None = None
    alike: float | None = None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """The published value divided by ours."""
        published = self.number.plain
        return published / self.ours if published is not None and self.ours else None


def beside(paper: Paper, records: Iterable[Record]) -> list[Beside]:
    """Every published number with ours, in the order of the paper.

    Of several records of one cell the last one counts; where the paper names no number of threads, that with the most.
    """
    measured = Measured(paper, records)
    return [measured.beside(exhibit, number) for exhibit in paper.exhibits for number in exhibit.numbers]


def markdown(paper: Paper, records: Sequence[Record]) -> str:
    """Every exhibit of a paper: what it shows and claims, its numbers beside ours, and what was not rerun and why.

    Headings are of the second level and below, so that it can stand behind the tables of a suite.
    """
    measured = Measured(paper, records)
    parts = [_heading(paper, records)]
    for exhibit in paper.exhibits:
        parts.append(_exhibit_heading(exhibit))
        pairs = [measured.beside(exhibit, number) for number in exhibit.numbers]
        parts += _numbers_text(paper, pairs)
        parts += [text for curve in exhibit.curves for text in _curve_text(measured, curve)]
    return "\n\n".join(parts) + "\n"


class Measured:
    """Records as a paper's numbers ask for them."""

    def __init__(self, paper: Paper, records: Iterable[Record]) -> None:
        self.paper = paper
        self.found: dict[Key, dict[int, Record]] = {}
        for record in records:
            cell = record.cell
            key = (
                cell.system,
                cell.device,
                cell.question,
                cell.row,
                written_out(Spec(cell.algorithm, cell.knobs)),
                cell.graph,
            )
            self.found.setdefault(key, {})[cell.threads] = record
        self.graphs = tuple(dict.fromkeys(key[-1] for key in self.found))

    def beside(self, exhibit: Exhibit, number: Number) -> Beside:
        """A number with ours: on its own graph, or on the one that stands in for it, or on all that were measured."""
        named = (number.graph, self.paper.stand_ins.get(number.graph, ""))
        asked = [graph for graph in named if graph in self.graphs] if number.graph else self.graphs
        values = {graph: self._value(number, graph, OURS) for graph in asked}
        right = {graph: value for graph, value in values.items() if isinstance(value, float)}
        if not right:
            reasons = dict.fromkeys(value for value in values.values() if isinstance(value, str))
            nothing = "the graph is not among these results" if number.graph else "there are no results"
            return Beside(exhibit, number, why=next(iter(reasons), nothing))
        graphs = tuple(right)[:1] if number.graph else tuple(right)
        stated = (self._value(number, graph, self.paper.states) for graph in graphs)
        alike = [value for value in stated if isinstance(value, float)]
        join = JOINS[number.join] if number.join else min
        return Beside(
            exhibit,
            number,
            graphs,
            ours=join([right[graph] for graph in graphs]),
            alike=join(alike) if alike else None,
        )

    def curve(self, curve: Curve) -> dict[str, dict[str, float]]:
        """Ours of a plot: by graph, the value of each way that has one; of an ``over``, the ratio to that."""
        shared = {name: value for name, value in asdict(curve).items() if name not in ("ways", "metric")}
        metric = "ratio" if curve.over else curve.metric
        found: dict[str, dict[str, float]] = {}
        for graph, way in product(self.graphs, curve.ways):
            number = Number(metric, None, graph=graph, way=way, of=curve.metric, **shared)
            value = self._value(number, graph, OURS)
            if isinstance(value, float):
                found.setdefault(graph, {})[way] = value
        return found

    def _value(self, number: Number, graph: str, statistic: Statistic) -> float | str:
        """Our own value on one graph, or why there is none."""
        if number.metric != "ratio":
            return self._single(number, graph, statistic)
        single = replace(number, metric=number.of, over="")
        divisor = self._single(single, graph, statistic)
        over = replace(single, way=number.over, device=number.over_device or number.device)
        divided = self._single(over, graph, statistic)
        if isinstance(divided, str) or isinstance(divisor, str):
            return divided if isinstance(divided, str) else str(divisor)
        return divided / divisor if divided and divisor else f"{number.of} too small to be divided"

    def _single(self, number: Number, graph: str, statistic: Statistic) -> float | str:
        """What one cell measured, or why there is none."""
        if number.way in self.paper.others:
            return f"{number.way} is none of ours"
        if not number.way:
            return self._of_graph(number.metric, graph)
        key = (number.system, number.device, number.question, number.row, written_out(Spec.parse(number.way)), graph)
        by_threads = self.found.get(key, {})
        record = by_threads.get(number.threads or max(by_threads, default=0))
        if record is None:
            return f"{number.way} is not among these results"
        if record.outcome.status != "ok":
            return f"{number.way}: {record.outcome.status.replace('_', ' ')}"
        stage = number.stage or (self.paper.stage if number.row == "count" else "whole")
        value = value_of(record, number.metric, stage, statistic)
        return f"{number.metric} was not measured" if value is None else value

    def _of_graph(self, metric: str, graph: str) -> float | str:
        """What the first record that knows it says of the graph itself."""
        records = (record for key, found in self.found.items() if key[-1] == graph for record in found.values())
        values = (value_of(record, metric) for record in records if record.outcome.status == "ok")
        return next((value for value in values if value is not None), f"{metric} was not measured")


def value_of(record: Record, metric: str, stage: str = "kernel", statistic: Statistic = OURS) -> float | None:
    """A metric of a record: seconds of a stage, edges per second, a size, a fact, or a profiler's counter."""
    outcome = record.outcome
    if metric not in ("seconds", "edges_per_second"):
        triangles = outcome.answer if record.cell.question == "count" else None
        plain = {"edges": outcome.edges, "triangles": triangles, "peak_bytes": outcome.peak_bytes}
        value = {**plain, **outcome.facts.get("counters", {}), **outcome.facts}.get(metric)
        return float(value) if isinstance(value, int | float) else None
    timed = outcome.seconds if stage in TIMED[record.cell.row] else ()
    repeats = outcome.stages.get(stage) or timed
    seconds = statistic.of(repeats)
    if metric == "seconds" or not seconds:
        return seconds
    return None if outcome.edges is None else outcome.edges / seconds


def written_out(way: Spec) -> str:
    """The same text for the same way, whatever the order of its settings."""
    return str(Spec(way.name, dict(sorted(way.settings.items()))))


def _heading(paper: Paper, records: Sequence[Record]) -> str:
    machines = dict.fromkeys(_machine_text(record) for record in records)
    return "\n".join(
        [
            f"## {paper.title}: published and ours",
            "",
            f"- {paper.authors}; {paper.venue}, {paper.year}",
            f"- published: {paper.hardware}; {paper.statistic}",
            *(f"- ours: {machine}; median of the repeats" for machine in machines),
            "- ratio: the published value divided by ours; other hardware, so it compares no algorithms",
        ]
    )


def _machine_text(record: Record) -> str:
    machine = record.setting.machine
    return ", ".join(str(machine[name]) for name in ("gpu", "processor", "system") if machine.get(name))


def _exhibit_heading(exhibit: Exhibit) -> str:
    rerun = {
        "yes": f"Rerun by `{exhibit.how}`. {exhibit.why}",
        "simulated": f"Simulated by `{exhibit.how}`. {exhibit.why}",
        "no": f"Not rerun. {exhibit.why}",
    }[exhibit.rerun]
    claims = "\n".join(f"- {claim}" for claim in exhibit.claims)
    title = f"### {exhibit.id[:1].upper()}{exhibit.id[1:]}: {exhibit.shows}"
    return "\n\n".join(part for part in (title, rerun.strip(), claims) if part)


def _numbers_text(paper: Paper, pairs: Sequence[Beside]) -> Iterator[str]:
    """The numbers that have one of ours beside them as a table, the others by the reason why not."""
    both = [pair for pair in pairs if pair.ours is not None]
    if both:
        header = ["graph", "ours on", "what", "published", "ours", f"ours, {paper.average}", "ratio"]
        yield table_text(header, [_row(pair) for pair in both])
    reasons: dict[str, list[str]] = {}
    for pair in pairs:
        if pair.ours is None:
            reasons.setdefault(pair.why, []).append(pair.number.graph or "several graphs")
    if reasons:
        lines = [f"- {why}: {len(names)} ({', '.join(dict.fromkeys(names))})" for why, names in reasons.items()]
        yield "Published numbers without one of ours:\n\n" + "\n".join(lines)


def _row(pair: Beside) -> list[str]:
    number = pair.number
    ours, alike = (None if value is None else value / UNITS[number.unit] for value in (pair.ours, pair.alike))
    return [
        number.graph or number.join,
        pair.graphs[0] if number.graph else f"{len(pair.graphs)} graphs",
        _what(number),
        number.printed or _unit_text(number.value, number.unit, digits=7) + _variation(number),
        _unit_text(ours, number.unit),
        _unit_text(alike, number.unit),
        ratio_text(pair.ratio),
    ]


def _what(number: Number) -> str:
    """Whose number it is and of what, and on which hardware where that is not the paper's own."""
    of = "" if number.of == "seconds" else f", {number.of}"
    text = f"{number.way} over {number.over}{of}" if number.over else f"{number.way} {number.metric}".lstrip()
    return f"{text} ({number.hardware})" if number.hardware else text


def _variation(number: Number) -> str:
    return "" if number.plus_minus is None else f" ± {number.plus_minus:g}"


def _unit_text(value: float | None, unit: str, digits: int = 3) -> str:
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:,.{digits}g}"
    return f"{text}{unit}" if unit in ("×", "%") else f"{text} {unit}".rstrip()


def _curve_text(measured: Measured, curve: Curve) -> Iterator[str]:
    """What we measured of a plot: a line for each graph, a column for each way."""
    metric = "ratio" if curve.over else curve.metric
    rows = [
        [graph, *(_curve_value(found.get(way), metric) for way in curve.ways)]
        for graph, found in measured.curve(curve).items()
    ]
    if rows:
        yield f"Ours, {_curve_title(measured.paper, curve)}:\n\n{table_text(['graph', *curve.ways], rows)}"


def _curve_title(paper: Paper, curve: Curve) -> str:
    """What is measured of every way, and what it is held to."""
    part = f" of the stage {curve.stage or paper.stage}" if curve.stage or curve.row == "count" else ROWS[curve.row]
    over = f"; {curve.over} divided by each way" if curve.over else ""
    return curve.metric + (part if curve.metric == "seconds" else "") + over


def _curve_value(value: float | None, metric: str) -> str:
    if value is None or metric == "ratio":
        return ratio_text(value)
    return seconds_text(value) if metric == "seconds" else _unit_text(value, "")
