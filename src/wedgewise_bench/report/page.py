"""Results of the benchmark → a report: what was measured, who is faster by how much, and what went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from wedgewise.errors import InputError
from wedgewise.report.page import write_document
from wedgewise.report.text import plural
from wedgewise_bench.papers import keys, load
from wedgewise_bench.record import Record, read_records
from wedgewise_bench.report.account import cells_part, measured_part, wrong_part
from wedgewise_bench.report.contests import latest, machine_name
from wedgewise_bench.report.papers import ladders_in, paper_part
from wedgewise_bench.report.parts import Part, Report, to_html, to_markdown, write_pictures
from wedgewise_bench.report.races import profiles_part, sizes_part, speedups_part, times_part
from wedgewise_bench.report.ways import ladders_part, regret_part, sweeps_part
from wedgewise_bench.report.work import counters_part, roofline_part, stages_part, timelines_part
from wedgewise_bench.runner import judged

__all__ = ["Report", "bench_report", "read_results", "to_html", "to_markdown", "write_document", "write_pictures"]

SUITE = re.compile(r"wedgewise bench (\w+)|benchmarks/(\w+)\.py")


def read_results(paths: Sequence[Path]) -> list[Record]:
    """The records of all files, in order.

    Raises
    ------
    MissingFileError, FormatError : as `read_records`
    InputError : there is none in any of them
    """
    records = [record for path in paths for record in read_records(path)]
    if not records:
        raise InputError(
            f"{', '.join(map(str, paths))}: no record in it; run `wedgewise bench SUITE --output FILE` first"
        )
    return records


def bench_report(
    records: Sequence[Record],
    *,
    base: str | None = None,
    ladder: Sequence[str] = (),
    papers: Sequence[str] = (),
) -> Report:
    """Everything that records say, in parts; a part without data is left out.

    Parameters
    ----------
    records : of one or several runs; of several records of a cell on one machine the last one counts
    base : the contender that speed-ups are over; by default the fastest peer, or the first way where there is none
    ladder : ways that are steps, in order; by default those of the papers, and those that differ in one choice
    papers : whose numbers are shown beside ours; by default those whose suites ran

    Raises
    ------
    UnknownNameError : `base`, a step of the `ladder` or a paper is none of those there are
    """
    found = judged(latest(records))
    suites = suites_of(found)
    shown = papers or [suite for suite in suites if suite in keys()]
    parts: list[Part | None] = [
        speedups_part(found, base),
        times_part(found),
        profiles_part(found),
        sizes_part(found),
        stages_part(found),
        ladders_part(found, ladder, [steps for key in shown for steps in ladders_in(load(key))]),
        sweeps_part(found),
        roofline_part(found),
        regret_part(found),
        timelines_part(found),
        counters_part(found),
        *(paper_part(key, found) for key in shown),
        wrong_part(found),
        measured_part(found),
        cells_part(found),
    ]
    return Report(_title(suites), _summary(found), tuple(part for part in parts if part is not None))


def suites_of(records: Sequence[Record]) -> list[str]:
    """The suites that the commands of the records name."""
    matches = [SUITE.search(record.setting.command) for record in records]
    return list(dict.fromkeys(match[1] or match[2] for match in matches if match is not None))


def _title(suites: Sequence[str]) -> str:
    return f"Triangle benchmarks: {', '.join(suites)}" if suites else "Triangle benchmarks"


def _summary(records: Sequence[Record]) -> str:
    machines = " and ".join(dict.fromkeys(map(machine_name, records)))
    days = sorted({record.date[:10] for record in records})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    right = sum(record.outcome.status == "ok" for record in records)
    return f"{plural(len(records), 'cell')} on {machines}, {when}; {right:,} of {len(records):,} correct."
