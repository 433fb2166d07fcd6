"""Records → metrics: rates, bytes, the distance to a limit, and each paper's own statistic beside our median.

A rate is by the edges of the simple undirected graph, each counted once, whatever an algorithm visits: TRUST's TEPS,
BBTC's rate and the ME/s of the eager k-truss are all of these.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wedgewise_bench import published
from wedgewise_bench.record import Record
from wedgewise_bench.statistic import OURS, Statistic
from wedgewise_bench.table import asked, column_of, markdown, ratio_text, seconds_text, three_digits, time_text
from wedgewise_bench.words import STAGES

UNITS = ("", "k", "M", "G", "T", "P")


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a record says in numbers; None is not known.

    Attributes
    ----------
    median, spread, repeats : of the timed seconds; (longest − shortest) / median; how many
    published : the seconds of the kernels by the statistic of each paper, by its short name
    stages : the median of each stage in seconds
    edges_per_second : edges by the median of all that was timed
    teps : traversed edges per second, edges by the median of the kernels alone, on a graph that is loaded
    checks, checks_per_second : wedges that were looked up, and those by the median of the kernels
    bytes_moved : copied between host and device
    peak_bytes, device_peak_bytes : the most memory of the process, and of its arrays on the device
    times_limit : how many times as long as the least time by the stated limit the kernels took
    """

    median: float | None
    spread: float | None
    repeats: int
    published: Mapping[str, float]
    stages: Mapping[str, float]
    edges_per_second: float | None
    teps: float | None
    checks: int | None
    checks_per_second: float | None
    bytes_moved: int | None
    peak_bytes: int | None
    device_peak_bytes: int | None
    times_limit: float | None


def published_statistics() -> dict[str, Statistic]:
    """How each paper states a time, by its short name; one that does not say how often it measured has none."""
    papers = map(published.load, published.keys())
    return {paper.key: paper.states for paper in papers if paper.runs is not None}


def metrics_of(record: Record, edges: int | None = None) -> Metrics:
    """All metrics of one record; `edges` are those of its graph, where it does not say itself."""
    outcome, facts = record.outcome, record.outcome.facts
    edges = outcome.edges if edges is None else edges
    kernels = outcome.stages.get("kernel") or (outcome.seconds if record.cell.row == "count" else ())
    kernel = OURS.of(kernels)
    stated = {key: statistic.of(kernels) for key, statistic in published_statistics().items()}
    return Metrics(
        median=outcome.median,
        spread=outcome.spread,
        repeats=len(outcome.seconds),
        published={key: seconds for key, seconds in stated.items() if seconds is not None},
        stages={name: statistics.median(outcome.stages[name]) for name in STAGES if outcome.stages.get(name)},
        edges_per_second=_ratio(edges, outcome.median),
        teps=_ratio(edges, kernel),
        checks=facts.get("wedges_tested"),
        checks_per_second=_ratio(facts.get("wedges_tested"), kernel),
        bytes_moved=facts.get("bytes_moved"),
        peak_bytes=outcome.peak_bytes,
        device_peak_bytes=facts.get("device_peak_bytes"),
        times_limit=_ratio(kernel, facts.get("limit_seconds")),
    )


def metric_sections(records: Sequence[Record]) -> list[str]:
    """Two tables with a line per cell: seconds by statistic and stage, then rates and bytes."""
    right = [record for record in records if record.outcome.status == "ok"]
    if not right:
        return []
    edges = {record.cell.graph: record.outcome.edges for record in right if record.outcome.edges is not None}
    measured = [(_where(record), record, metrics_of(record, edges.get(record.cell.graph))) for record in right]
    notes = "edges: of the simple graph, each once; TEPS and checks: by the kernels alone; limit: every arc read once"
    return [
        f"## Seconds: our median, the papers' statistics of the kernels, and stages (medians)\n\n{_seconds(measured)}",
        f"## Rates and bytes ({notes})\n\n{_rates(measured)}",
    ]


Measured = Sequence[tuple[list[str], Record, Metrics]]
WHERE = ["graph", "asked", "by", "threads"]


def _where(record: Record) -> list[str]:
    cell = record.cell
    return [cell.graph, asked(cell), f"{column_of(cell)}/{cell.way}", str(cell.threads)]


def _seconds(measured: Measured) -> str:
    keys: dict[Statistic, list[str]] = {}
    for key, statistic in published_statistics().items():
        keys.setdefault(statistic, []).append(key)
    stages = [name for name in STAGES if any(name in metrics.stages for _, _, metrics in measured)]
    header = [
        *WHERE,
        "median",
        "spread",
        "repeats",
        *(f"{statistic} ({', '.join(names)})" for statistic, names in keys.items()),
        *stages,
    ]
    rows = [
        [
            *where,
            time_text(record),
            "–" if metrics.spread is None else f"{metrics.spread:.0%}",
            str(metrics.repeats),
            *(_seconds_text(metrics.published.get(names[0])) for names in keys.values()),
            *(_seconds_text(metrics.stages.get(name)) for name in stages),
        ]
        for where, record, metrics in measured
    ]
    return markdown(header, rows)


def _rates(measured: Measured) -> str:
    header = [*WHERE, "edges/s", "TEPS", "checks", "checks/s", "moved", "host peak", "device peak", "× limit"]
    rows = [
        [
            *where,
            amount_text(metrics.edges_per_second),
            amount_text(metrics.teps),
            amount_text(metrics.checks),
            amount_text(metrics.checks_per_second),
            *(amount_text(size, "B") for size in (metrics.bytes_moved, metrics.peak_bytes, metrics.device_peak_bytes)),
            ratio_text(metrics.times_limit),
        ]
        for where, _, metrics in measured
    ]
    return markdown(header, rows)


def amount_text(value: float | None, unit: str = "") -> str:
    """Three significant digits with a decimal prefix: 1.23 G, 45.6 MB."""
    if value is None:
        return "–"
    power = 0
    while value >= 999.5 and power < len(UNITS) - 1:
        value, power = value / 1000, power + 1
    text = f"{value:.0f}" if power == 0 and value == int(value) else three_digits(value)
    return f"{text} {UNITS[power]}{unit}".rstrip()


def _seconds_text(seconds: float | None) -> str:
    return "–" if seconds is None else seconds_text(seconds)


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by
