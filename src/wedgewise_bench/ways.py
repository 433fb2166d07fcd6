"""Records → tables of ways: a line per graph, a column per algorithm with its knobs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wedgewise_bench.record import Record
from wedgewise_bench.table import OURS, asked, markdown, on_device, ratio_text, time_text

Named = dict[str, Record]  # by way


@dataclass(frozen=True, slots=True)
class Ways:
    """One question on several graphs: the records of each graph by way, ways in the order in which they ran."""

    asked: str
    names: list[str]
    graphs: dict[str, Named]

    def gain(self, graph: str, way: str, over: str) -> float | None:
        """How many times as fast a way is as another."""
        seconds = [_seconds(self.graphs[graph].get(name)) for name in (over, way)]
        return None if seconds[0] is None or not seconds[1] else seconds[0] / seconds[1]

    def mean_gain(self, way: str, over: str) -> float | None:
        """The geometric mean of all graphs that both ways answered."""
        gains = [gain for graph in self.graphs if (gain := self.gain(graph, way, over)) is not None]
        return statistics.geometric_mean(gains) if gains else None

    def fastest(self, graph: str) -> str | None:
        """The way that took the least time."""
        seconds = {way: taken for way, record in self.graphs[graph].items() if (taken := _seconds(record)) is not None}
        return min(seconds, key=seconds.__getitem__, default=None)


def ways_in(records: Iterable[Record]) -> list[Ways]:
    """What was asked and timed, each with its ways; of several numbers of threads the fastest one counts."""
    found: dict[str, dict[str, Named]] = {}
    for record in records:
        graph = found.setdefault(asked(record.cell), {}).setdefault(record.cell.graph, {})
        rival = graph.get(_name(record))
        if rival is None or _is_faster(record, rival):
            graph[_name(record)] = record
    return [
        Ways(question, list(dict.fromkeys(way for named in graphs.values() for way in named)), graphs)
        for question, graphs in found.items()
    ]


def way_sections(records: Sequence[Record]) -> list[str]:
    """A table for each question; the fastest way of a graph is bold, and the first one is what others are held to."""
    title = "(median, warm; bold: fastest; last line: how many times as fast as the first way, geometric mean)"
    return [f"## Ways: `{ways.asked}` {title}\n\n{_table(ways)}" for ways in ways_in(records)]


def _table(ways: Ways) -> str:
    first, *others = ways.names
    rows = [[graph, *(_marked(ways, graph, way) for way in ways.names)] for graph in ways.graphs]
    means = ["", *(ratio_text(ways.mean_gain(way, first)) for way in others)]
    return markdown(["graph", *ways.names], [*rows, ["geometric mean", *means]])


def _marked(ways: Ways, graph: str, way: str) -> str:
    shown = time_text(ways.graphs[graph].get(way))
    return f"**{shown}**" if way == ways.fastest(graph) else shown


def _name(record: Record) -> str:
    """A way of our own, or that of another system."""
    cell = record.cell
    shown = cell.way if cell.system == OURS else f"{cell.system}/{cell.way}"
    return shown + on_device(cell)


def _is_faster(record: Record, rival: Record) -> bool:
    seconds, other = _seconds(record), _seconds(rival)
    return seconds is not None and (other is None or seconds < other)


def _seconds(record: Record | None) -> float | None:
    return record.outcome.median if record is not None and record.outcome.status == "ok" else None
