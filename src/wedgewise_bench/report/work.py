"""What the work was made of: stages, wedges against the limit, a profiler's counters, and timelines of hybrid runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from wedgewise.report import charts
from wedgewise.report.charts import Axis, LaneSpan
from wedgewise.report.page import Value
from wedgewise_bench.metrics import metrics_of
from wedgewise_bench.profile import COUNTERS
from wedgewise_bench.record import Record
from wedgewise_bench.report.contests import seconds_of, size_of
from wedgewise_bench.report.parts import Item, Part, Picture, Table
from wedgewise_bench.table import asked, on_device, seconds_text
from wedgewise_bench.words import STAGES

PARTS_OF_A_RUN = tuple(stage for stage in STAGES if stage != "whole")
MAX_BARS = 40
MAX_TIMELINES = 4
NUMBER = Axis("")


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a cell tested wedges, and how fast the stated limit would let it."""

    graph: str
    way: str
    wedges: int
    per_second: float
    limit_per_second: float

    @property
    def share(self) -> float:
        """Of the limit."""
        return self.per_second / self.limit_per_second


def stages_part(records: Sequence[Record]) -> Part | None:
    """Where the time goes, as far as it is known by stages."""
    by_stage = [record for record in records if seconds_of(record) and stage_medians(record)]
    if not by_stage:
        return None
    largest = sorted(by_stage, key=size_of)[-MAX_BARS:]
    names = [stage for stage in PARTS_OF_A_RUN if any(stage in record.outcome.stages for record in by_stage)]
    series = {stage: [stage_medians(record).get(stage, 0.0) for record in largest] for stage in names}
    chart = charts.stacked([who_on_what(record) for record in largest], series, Axis("time", "s"))
    columns = [*names, *(["whole"] if any("whole" in record.outcome.stages for record in by_stage) else [])]
    rows = tuple(
        (who_on_what(record), record.cell.question, *(_stage_value(record, stage) for stage in columns))
        for record in by_stage
    )
    shown = "" if len(largest) == len(by_stage) else f" of the {MAX_BARS} cells with the largest graphs"
    caption = f"Medians of the stages{shown}, end to end."
    description = "The table below has the numbers of every cell."
    return Part(
        "Stages",
        (
            Picture("stages", chart, caption, description),
            Table("Median seconds of each stage.", ("cell", "question", *columns), rows),
        ),
    )


def roofline_part(records: Sequence[Record]) -> Part | None:
    """Wedges per second against the limit that was stated for each cell."""
    rates = rates_of(records)
    if not rates:
        return None
    points: dict[str, list[tuple[float, float]]] = {}
    for rate in rates:
        points.setdefault(rate.way, []).append((float(rate.wedges), rate.per_second))
    limits = {"limit": [(float(rate.wedges), rate.limit_per_second) for rate in rates]}
    best = max(rates, key=lambda rate: rate.share)
    rows = tuple(
        (
            rate.graph,
            rate.way,
            (f"{rate.wedges:,}", rate.wedges),
            (NUMBER.text(rate.per_second), rate.per_second),
            (NUMBER.text(rate.limit_per_second), rate.limit_per_second),
            (f"{rate.share:.1%}", rate.share),
        )
        for rate in rates
    )
    x, y = Axis("wedges tested", is_log=True), Axis("wedges per second", is_log=True)
    header = ("graph", "way", "wedges tested", "per second", "limit per second", "share of the limit")
    return Part(
        "Distance to the limit",
        (
            Picture(
                "roofline",
                charts.roofline(points, limits, x, y),
                "Wedges tested per second; a dash is what the stated limit allows for the same work.",
                f"Nearest to its limit: {best.way} on {best.graph}, {best.share:.1%}.",
            ),
            Table("Rates by the kernel's time where it is known, else by the whole answer.", header, rows),
        ),
    )


def counters_part(records: Sequence[Record]) -> Part | None:
    """What the profiler counted, by its own names."""
    profiled = [record for record in records if record.outcome.facts.get("counters")]
    names = list(dict.fromkeys(name for record in profiled for name in record.outcome.facts["counters"]))
    if not names:
        return None
    rows = tuple(
        (who_on_what(record), *(_counter_value(record.outcome.facts["counters"].get(name)) for name in names))
        for record in profiled
    )
    meanings = tuple((item.name, item.nvprof, item.shows, item.papers) for item in COUNTERS if item.name in names)
    items = [Table("Counters by the names of Nsight Compute.", ("cell", *names), rows)]
    if meanings:
        items.append(Table("What they are.", ("counter", "of nvprof", "meaning", "published in"), meanings))
    return Part("Counters", tuple(items))


def timelines_part(records: Sequence[Record]) -> Part | None:
    """What ran where and when, of the longest hybrid runs."""
    with_spans = [record for record in records if record.outcome.facts.get("timeline", {}).get("spans")]
    if not with_spans:
        return None
    longest = sorted(with_spans, key=lambda record: -record.outcome.facts["timeline"]["seconds"])[:MAX_TIMELINES]
    items: list[Item] = [_timeline_picture(record, number) for number, record in enumerate(longest, start=1)]
    return Part("Timelines", (*items, _places_table(with_spans)))


def stage_medians(record: Record) -> dict[str, float]:
    """The median of each stage that is a part of the run."""
    stages = record.outcome.stages
    return {name: statistics.median(stages[name]) for name in PARTS_OF_A_RUN if stages.get(name)}


def rates_of(records: Sequence[Record]) -> list[Rate]:
    """Of the cells that say how many wedges they tested and what the least time is."""
    found = []
    for record in records:
        cell, known = record.cell, metrics_of(record)
        if record.outcome.status == "ok" and known.checks and known.checks_per_second and known.times_limit:
            limit = known.checks_per_second * known.times_limit
            found.append(Rate(cell.graph, cell.way + on_device(cell), known.checks, known.checks_per_second, limit))
    return found


def who_on_what(record: Record) -> str:
    """A cell in words."""
    cell = record.cell
    who = cell.system if cell.way == "default" else cell.way
    return f"{cell.graph}: {who}{on_device(cell)}"


def _stage_value(record: Record, stage: str) -> Value:
    repeats = record.outcome.stages.get(stage)
    if not repeats:
        return "–", None
    seconds = statistics.median(repeats)
    return seconds_text(seconds), seconds


def _counter_value(value: float | None) -> Value:
    return ("–", None) if value is None else (NUMBER.text(value), float(value))


def _timeline_picture(record: Record, number: int) -> Picture:
    timeline = record.outcome.facts["timeline"]
    spans = [
        LaneSpan(span["place"], kind, float(begin), float(end))
        for span in timeline["spans"]
        for kind, begin, end in [
            ("help" if span["helps"] else "count", span["begin"], span["end"]),
            *(("copy", copy["begin"], copy["end"]) for copy in span["copies"]),
            *(("fill", *copy["filled"]) for copy in span["copies"] if "filled" in copy),
        ]
    ]
    lanes = [use["place"] for use in timeline["places"]]
    busy = ", ".join(f"{use['place']} busy {use['busy_share']:.0%}" for use in timeline["places"])
    return Picture(
        f"timeline-{number}",
        charts.timeline(lanes, spans, Axis("since the beginning of the count", "s")),
        f"{who_on_what(record)}, {asked(record.cell)}.",
        f"{seconds_text(timeline['seconds'])} in all; {busy}.",
    )


def _places_table(records: Sequence[Record]) -> Table:
    rows = tuple(
        (
            who_on_what(record),
            use["place"],
            (f"{use['tasks']:,}", use["tasks"]),
            (seconds_text(use["busy_seconds"]), use["busy_seconds"]),
            (f"{use['busy_share']:.0%}", use["busy_share"]),
            (seconds_text(use["idle_tail_seconds"]), use["idle_tail_seconds"]),
        )
        for record in records
        for use in record.outcome.facts["timeline"]["places"]
    )
    return Table("What every place did.", ("cell", "place", "tasks", "busy", "share", "idle at the end"), rows)
