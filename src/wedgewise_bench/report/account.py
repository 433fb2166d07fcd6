"""What was measured and on what, what went wrong, and every cell in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from wedgewise.report.charts import Axis
from wedgewise.report.page import Value
from wedgewise.report.text import bytes_text, plural
from wedgewise_bench.metrics import Metrics, metrics_of
from wedgewise_bench.record import Record
from wedgewise_bench.report.contests import NOT_ASKED, machine_name, seconds_of
from wedgewise_bench.report.parts import Bullets, Item, Part, Table
from wedgewise_bench.table import FOREIGN_LOAD, asked, ratio_text, seconds_text, time_text

NUMBER = Axis("")
ABSENT: Value = ("–", None)
EVENTS = {
    "wrong": "answered wrongly",
    "crashed": "crashed",
    "timeout": "ran into the limit of time",
    "out_of_memory": "ran into the limit of memory",
    NOT_ASKED: "was not available",
}


def measured_part(records: Sequence[Record]) -> Part:
    """What was measured, on which machines, with what, by which commands."""
    graphs, questions, systems = (_unique(getattr(record.cell, name) for record in records)
                                  for name in ("graph", "question", "system"))  # fmt: skip
    about = (
        f"{plural(len(records), 'cell')}: {plural(len(systems), 'system')} ({', '.join(systems)}), "
        f"{plural(len(graphs), 'graph')}, {plural(len(questions), 'question')} ({', '.join(questions)})."
    )
    items: list[Item] = [about, *_disturbance(records), _machines_table(records)]
    return Part("What was measured", (*items, _runs(records)))


def wrong_part(records: Sequence[Record]) -> Part | None:
    """Every cell that did not end with a right answer."""
    failed = [record for record in records if record.outcome.status != "ok"]
    if not failed:
        return None
    rows = tuple(
        (
            record.cell.graph,
            f"{record.cell.system}, {record.cell.way}",
            asked(record.cell),
            EVENTS[record.outcome.status],
            time_text(record) if record.outcome.status == "timeout" else record.outcome.message,
        )
        for record in sorted(failed, key=lambda record: list(EVENTS).index(record.outcome.status))
    )
    counts = {status: sum(record.outcome.status == status for record in failed) for status in EVENTS}
    failures = ", ".join(f"{count} {EVENTS[status]}" for status, count in counts.items() if count)
    header = ("graph", "who", "question", "what happened", "message")
    return Part(
        "What went wrong",
        (f"Of {len(records)} cells: {failures}.", Table("Cells without a right answer.", header, rows)),
    )


def cells_part(records: Sequence[Record]) -> Part | None:
    """Every cell with everything that is known of it; columns without a value are left out."""
    right = [record for record in records if seconds_of(record) is not None]
    if not right:
        return None
    edges = {record.cell.graph: record.outcome.edges for record in right if record.outcome.edges is not None}
    known = [(record, metrics_of(record, edges.get(record.cell.graph))) for record in right]
    columns = {name: [value(record, metrics) for record, metrics in known] for name, value in COLUMNS.items()}
    kept = {name: values for name, values in columns.items() if any(value != ABSENT for value in values)}
    rows = tuple(zip(*kept.values(), strict=True))
    return Part("Every cell", (Table("Cells with a right answer.", tuple(kept), rows),))


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _disturbance(records: Sequence[Record]) -> Iterator[str]:
    """A warning when the load average shows that more ran than the cells themselves."""
    busiest = max(records, key=lambda record: record.load - record.cell.threads)
    if busiest.load > busiest.cell.threads + FOREIGN_LOAD:
        yield (
            f"Other work disturbed some cells: the load average was up to {busiest.load:.1f} before a cell of "
            f"{plural(busiest.cell.threads, 'thread')}. Do not trust small differences."
        )


def _machines_table(records: Sequence[Record]) -> Table:
    machines = {machine_name(record): record.setting.machine for record in records}
    rows = tuple(
        (
            name,
            _known(machine.get("memory_bytes"), _bytes),
            str(machine.get("system", "–")),
        )
        for name, machine in machines.items()
    )
    return Table("Machines.", ("machine", "memory", "system"), rows)


def _runs(records: Sequence[Record]) -> Bullets:
    """A line for each command and revision."""
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        runs.setdefault((record.setting.command, record.setting.revision or "unknown"), []).append(record)
    lines = []
    for (command, revision), found in runs.items():
        since = min(record.date for record in found)[:16].replace("T", " ")
        versions = ", ".join(f"{name} {version}" for name, version in found[-1].setting.versions.items())
        cells = plural(len(found), "cell")
        lines.append(f"{cells} since {since} UTC at revision {revision} by `{command}`, with {versions}")
    return Bullets(tuple(lines))


def _known(value: float | None, text: Callable[[float], str]) -> Value:
    return ABSENT if value is None else (text(value), value)


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _bytes(value: float) -> str:
    return bytes_text(int(value))


COLUMNS: Mapping[str, Callable[[Record, Metrics], Value]] = {
    "graph": lambda record, _: record.cell.graph,
    "question": lambda record, _: record.cell.question,
    "row": lambda record, _: record.cell.row,
    "system": lambda record, _: record.cell.system,
    "way": lambda record, _: record.cell.way,
    "device": lambda record, _: record.cell.device,
    "threads": lambda record, _: (f"{record.cell.threads}", record.cell.threads),
    "median": lambda _, metrics: _known(metrics.median, seconds_text),
    "least": lambda record, _: _known(record.outcome.least, seconds_text),
    "spread": lambda _, metrics: _known(metrics.spread, lambda value: f"{value:.0%}"),
    "repeats": lambda _, metrics: (f"{metrics.repeats}", metrics.repeats),
    "edges": lambda record, _: _known(record.outcome.edges, _whole),
    "edges/s": lambda _, metrics: _known(metrics.edges_per_second, NUMBER.text),
    "TEPS": lambda _, metrics: _known(metrics.teps, NUMBER.text),
    "answer": lambda record, _: _known(record.outcome.answer, _whole),
    "wedges tested": lambda _, metrics: _known(metrics.checks, _whole),
    "wedges/s": lambda _, metrics: _known(metrics.checks_per_second, NUMBER.text),
    "time / limit": lambda _, metrics: _known(metrics.times_limit, ratio_text),
    "bytes moved": lambda _, metrics: _known(metrics.bytes_moved, _bytes),
    "memory": lambda _, metrics: _known(metrics.peak_bytes, _bytes),
    "device memory": lambda _, metrics: _known(metrics.device_peak_bytes, _bytes),
}
"""What is said of every cell, by the name of its column."""
