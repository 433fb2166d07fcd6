"""Tables from records: one per row of the comparison or per question, one line per graph, one column per system."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wedgewise_bench.record import Cell, Record
from wedgewise_bench.spec import Spec
from wedgewise_bench.words import QUESTIONS, ROWS

OURS = "wedgewise"
FOREIGN_LOAD = 0.75

TITLES = {
    "count": "Counting only: the graph is loaded in the system's own structure (median, warm)",
    "edges": "From raw pairs in memory to the count (median, warm)",
    "file": "From a text file to the count, in a fresh process (median, files cached)",
}

ANSWERS = {
    "count": "the number of triangles",
    "triangles": "the triangles of every vertex",
    "edge_support": "the triangles of every edge",
    "clustering": "the clustering coefficient of every vertex",
    "transitivity": "the share of wedges that are closed",
    "list_triangles": "every triangle",
    "trussness": "the truss number of every edge",
    "max_truss": "the last k-truss that has edges",
    "k_truss": "the edges of the k-truss",
}

WORDS = {
    "wrong": "wrong",
    "crashed": "crashed",
    "out_of_memory": "out of memory",
    "unavailable": "not available",
}

STAGES = {"load": "build ", "prepare": "build ", "check": "check "}
"""What passed the limit of time when it was not the question itself."""


@dataclass(frozen=True, slots=True)
class Line:
    """One graph in one row: the best record of each system on each device, and the ratio to the fastest peer.

    ``ratio`` is the median of the fastest peer on the CPU divided by ours there; None when either is missing.
    """

    graph: str
    pairs: int
    best: dict[str, Record]

    @property
    def fastest_peer(self) -> str | None:
        here = {name: record for name, record in self.best.items() if record.cell.device == "cpu"}
        peers = [name for name, record in here.items() if record.cell.system != OURS]
        times = {name: seconds for name in peers if (seconds := self.seconds(name)) is not None}
        return min(times, key=times.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        peer = self.fastest_peer
        ours, theirs = self.seconds(OURS), None if peer is None else self.seconds(peer)
        return None if ours is None or theirs is None else theirs / ours

    def seconds(self, system: str) -> float | None:
        """The median of a system that answered rightly, else None; systems are written as `column_of` does."""
        record = self.best.get(system)
        return record.outcome.median if record is not None and record.outcome.status == "ok" else None


def lines_of(records: Iterable[Record], row: str, question: str = "count") -> list[Line]:
    """The lines of one row and question, graphs in the order in which they ran."""
    lines: dict[str, Line] = {}
    for record in records:
        cell = record.cell
        if (cell.row, cell.question) != (row, question):
            continue
        line = lines.setdefault(cell.graph, Line(cell.graph, record.pairs, {}))
        rival = line.best.get(column_of(cell))
        if rival is None or _merit(record) < _merit(rival):
            line.best[column_of(cell)] = record
    return list(lines.values())


def column_of(cell: Cell) -> str:
    """The system, and where it ran unless that was the CPU."""
    return cell.system + on_device(cell)


def on_device(cell: Cell) -> str:
    """Where a cell ran, behind what ran there; nothing for the CPU."""
    return "" if cell.device == "cpu" else f" on {cell.device}"


def page(title: str, records: Sequence[Record], sections: Iterable[str]) -> str:
    """Sections as Markdown, with what they were measured on before them and what went wrong behind them."""
    return "\n\n".join([heading(title, records), *sections, *notes(records)]) + "\n"


def count_sections(records: Sequence[Record]) -> list[str]:
    """The tables of the count, one per row."""
    by_row = {row: lines_of(records, row) for row in ROWS}
    systems = list(dict.fromkeys(column_of(record.cell) for record in records))
    return [f"## {TITLES[row]}\n\n{_table(lines, systems, _plain_text)}" for row, lines in by_row.items() if lines]


def answer_sections(records: Sequence[Record]) -> list[str]:
    """One table per question on loaded graphs, what our own answers cost in counts, and our own ways side by side."""
    sections = []
    by_question = {question: lines_of(records, "count", question) for question in questions_in(records)}
    for question, lines in by_question.items():
        systems = list(dict.fromkeys(system for line in lines for system in line.best))
        meaning = ANSWERS[Spec.parse(question).name]
        sections.append(f"## `{question}`: {meaning} (median, warm)\n\n{_table(lines, systems, _compared_text)}")
    if "count" in by_question and len(by_question) > 1:
        sections.append(f"## Ratio to a count: our own time, divided by that of `count`\n\n{_in_counts(by_question)}")
    return [*sections, *_our_ways(records)]


def questions_in(records: Iterable[Record]) -> list[str]:
    """What was asked of loaded graphs, in the order of `QUESTIONS`; of one question, in the order of the run."""
    texts = dict.fromkeys(record.cell.question for record in records if record.cell.row == "count")
    return sorted(texts, key=lambda text: QUESTIONS.index(Spec.parse(text).name))


def time_text(record: Record | None) -> str:
    """A cell of the table: the median in seconds, or what happened instead."""
    if record is None:
        return "–"
    outcome = record.outcome
    if outcome.status == "timeout":
        where = STAGES.get(outcome.stage, "") if record.cell.row == "count" else ""
        return f"{where}> {record.limits['seconds']:g} s"
    if outcome.status != "ok" or outcome.median is None:
        return WORDS[outcome.status]
    return seconds_text(outcome.median)


def seconds_text(seconds: float) -> str:
    """Three significant digits, in milliseconds below one second, in microseconds below one of these; 0 is 0."""
    if not seconds:
        return "0"
    value, unit = (seconds * 1e3, "ms") if seconds < 0.9995 else (seconds, "s")
    value, unit = (seconds * 1e6, "µs") if seconds < 0.0009995 else (value, unit)
    return f"{three_digits(value)} {unit}"


def ratio_text(ratio: float | None) -> str:
    """How many times as fast as the fastest peer."""
    return "–" if ratio is None else f"{three_digits(ratio)}×"


def three_digits(value: float) -> str:
    """A number with three significant digits, those before the point whole."""
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"


def _merit(record: Record) -> tuple[bool, float]:
    """Sorts a system's algorithms: those that answered rightly by their median, the others behind them."""
    is_right = record.outcome.status == "ok" and record.outcome.median is not None
    return not is_right, record.outcome.median or 0.0


def _plain_text(line: Line, system: str) -> str:
    return time_text(line.best.get(system))


def _compared_text(line: Line, system: str) -> str:
    """The time of a system, and how many times as long as ours it is."""
    ours, theirs = line.seconds(OURS), line.seconds(system)
    text = _plain_text(line, system)
    return text if system == OURS or ours is None or theirs is None else f"{text} ({ratio_text(theirs / ours)})"


def _in_counts(by_question: dict[str, list[Line]]) -> str:
    """Our own time for each question in units of our own count."""
    others = [question for question in by_question if question != "count"]
    seconds = {(question, line.graph): line.seconds(OURS) for question in by_question for line in by_question[question]}

    def cell(question: str, graph: str) -> str:
        count, answer = seconds.get(("count", graph)), seconds.get((question, graph))
        return ratio_text(None if count is None or answer is None else answer / count)

    graphs = [line.graph for line in by_question["count"]]
    return markdown(["graph", *others], [[graph, *(cell(question, graph) for question in others)] for graph in graphs])


def _our_ways(records: Sequence[Record]) -> list[str]:
    """Our own algorithms and numbers of threads against each other, where there are several."""
    ours = [record for record in records if record.cell.system == OURS]
    if len({(way_of(record.cell), record.cell.threads) for record in ours}) < 2:
        return []
    title = "(median; ME/s: a million edges of the graph per second; ×: time divided by that of the first way)"
    sweeps = [sweep_of(ours, question) for question in questions_in(ours)]
    return [f"## Our own ways: `{sweep.question}` {title}\n\n{_sweep_table(sweep)}" for sweep in sweeps]


@dataclass(frozen=True, slots=True)
class ThreadSweep:
    """One question to several of our own algorithms, on several numbers of threads; records by graph, threads, way."""

    question: str
    ways: list[str]
    threads: list[int]
    records: dict[tuple[str, int, str], Record]

    def ratio(self, graph: str, threads: int, way: str) -> float | None:
        """The seconds of a way divided by those of the first one: how many times as fast the first one is."""
        first, other = (self._seconds(graph, threads, name) for name in (self.ways[0], way))
        return None if first is None or other is None else other / first

    def mean_ratio(self, threads: int, way: str) -> float | None:
        """The geometric mean of the ratios of all graphs that both ways answered."""
        graphs = dict.fromkeys(graph for graph, _, _ in self.records)
        ratios = [ratio for graph in graphs if (ratio := self.ratio(graph, threads, way)) is not None]
        return statistics.geometric_mean(ratios) if ratios else None

    def _seconds(self, graph: str, threads: int, way: str) -> float | None:
        record = self.records.get((graph, threads, way))
        return record.outcome.median if record is not None and record.outcome.status == "ok" else None


def sweep_of(records: Iterable[Record], question: str) -> ThreadSweep:
    """What one question took of loaded graphs."""
    found = {
        (cell.graph, cell.threads, way_of(cell)): record
        for record in records
        for cell in [record.cell]
        if (cell.row, cell.question) == ("count", question)
    }
    ways, threads = (list(dict.fromkeys(key[part] for key in found)) for part in (2, 1))
    return ThreadSweep(question, [str(way) for way in ways], [int(number) for number in threads], found)


def _sweep_table(sweep: ThreadSweep) -> str:
    """A row for each graph and number of threads; the geometric means of all graphs at the end."""
    rows = []
    for graph, threads in dict.fromkeys((graph, threads) for graph, threads, _ in sweep.records):
        found = [sweep.records.get((graph, threads, way)) for way in sweep.ways]
        k = {str(record.details["k"]) for record in found if record is not None and "k" in record.details}
        ratios = ["", *(f" ({ratio_text(sweep.ratio(graph, threads, way))})" for way in sweep.ways[1:])]
        texts = [_rated_text(record) + ratio for record, ratio in zip(found, ratios, strict=True)]
        rows.append([graph, ", ".join(sorted(k)) or "–", str(threads), *texts])
    for threads in sweep.threads if len(sweep.ways) > 1 else []:
        means = [f"({ratio_text(sweep.mean_ratio(threads, way))})" for way in sweep.ways[1:]]
        rows.append(["geometric mean", "–", str(threads), "", *means])
    return markdown(["graph", "k", "threads", *sweep.ways], rows)


def _rated_text(record: Record | None) -> str:
    """The time, and the edges of the graph per second where they are known."""
    text = time_text(record)
    if record is None or record.outcome.status != "ok" or record.outcome.edges is None or not record.outcome.median:
        return text
    return f"{text}, {record.outcome.edges / record.outcome.median / 1e6:.1f} ME/s"


def _table(lines: Sequence[Line], systems: Sequence[str], cell_text: Callable[[Line, str], str]) -> str:
    header = ["graph", "pairs", *systems, "fastest peer", "ratio"]
    rows = [
        [
            line.graph,
            f"{line.pairs:,}",
            *(cell_text(line, system) for system in systems),
            line.fastest_peer or "–",
            ratio_text(line.ratio),
        ]
        for line in lines
    ]
    return markdown(header, rows)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    widths = [max(2, *(len(row[i]) for row in [header, *rows])) for i in range(len(header))]  # a rule has a dash

    def joined(row: list[str]) -> str:
        name, *values = row
        padded = [text.rjust(width) for text, width in zip(values, widths[1:], strict=True)]
        return f"| {' | '.join([name.ljust(widths[0]), *padded])} |"

    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([joined(header), joined(rule), *map(joined, rows)])


def heading(title: str, records: Sequence[Record]) -> str:
    """What was measured, on which machines, and when."""
    last = records[-1]
    return "\n".join(
        [
            f"# {title}",
            "",
            *map(_machine, by_machine(records)),
            f"- {', '.join(f'{name} {version}' for name, version in last.setting.versions.items())}",
            f"- {last.date}, revision {last.setting.revision or 'unknown'}, `{last.setting.command}`",
            "- ratio: median of the fastest peer divided by ours",
            *_disturbance(records),
        ]
    )


def by_machine(records: Sequence[Record]) -> list[list[Record]]:
    """The records of each machine, in the order in which machines came."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        machine = record.setting.machine
        found.setdefault(tuple(map(machine.get, ("processor", "gpu", "system", "threads"))), []).append(record)
    return list(found.values())


def _machine(records: Sequence[Record]) -> str:
    """A machine, with the numbers of threads that were used on it."""
    machine = records[0].setting.machine
    names = [machine["processor"], *([machine["gpu"]] if "gpu" in machine else []), machine["system"]]
    threads = sorted({record.cell.threads for record in records})
    return f"- {', '.join(names)}; threads: {', '.join(map(str, threads))}"


def _disturbance(records: Sequence[Record]) -> list[str]:
    """A warning when the load average shows that more ran than the cells themselves."""
    load, most_threads = max(record.load for record in records), max(record.cell.threads for record in records)
    if load <= most_threads + FOREIGN_LOAD:  # that of a cell is still in the average when the next begins
        return []
    return [f"- **other work disturbed this run**: load average up to {load:.1f}; do not trust its times"]


def notes(records: Sequence[Record]) -> list[str]:
    """What went wrong, once per message."""
    failures = dict.fromkeys(
        f"- {cell.system} ({way_of(cell)}) on {cell.graph}, {asked(cell)}: {outcome.status}, {outcome.message}"
        for record in records
        for cell, outcome in [(record.cell, record.outcome)]
        if outcome.status in ("wrong", "crashed", "out_of_memory")
    )
    missing = dict.fromkeys(
        f"- {column_of(record.cell)}: {record.outcome.message}"
        for record in records
        if record.outcome.status == "unavailable" or (record.outcome.status == "ok" and record.outcome.message)
    )
    return [
        *(["## What went wrong\n\n" + "\n".join(failures)] if failures else []),
        *(["## What was not available\n\n" + "\n".join(missing)] if missing else []),
    ]


def way_of(cell: Cell) -> str:
    """The algorithm with its knobs, and where it ran unless that was the CPU."""
    return cell.way + on_device(cell)


def asked(cell: Cell) -> str:
    """The row of a count, else the question."""
    return cell.row if cell.question == "count" else cell.question
