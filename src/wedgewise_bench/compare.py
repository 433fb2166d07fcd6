"""Two results files: what got slower or faster beyond noise, what fails now, what only one of them has.

A cell got slower, or faster, by this rule:

    1. both records are of one graph, of one kind of machine, and of as many threads
    2. the medians are more than 5 % apart, 25 % where either side has fewer than five repeats
    3. with five repeats or more on both sides, neither median is within the range of the other side's repeats, which
       goes from the shortest to the longest without the tenth at either end (of ten repeats, one; of five, none)

All else is noise. Of two runs that differ by chance alone, five repeats each, the third condition holds for 1 of 21;
of ten repeats each, for 1 of 67. It knows nothing of what differs between processes but not within one, such as the
place of arrays in memory: before a change of a few per cent is read_trusted, run both again.

Answers and how cells ended are compared whatever the machines. Of several records of one cell the last one counts.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wedgewise_bench.record import Cell, Record, read_records
from wedgewise_bench.runner import judged
from wedgewise_bench.table import FOREIGN_LOAD, asked, column_of, markdown, ratio_text, seconds_text, time_text
from wedgewise_bench.words import STAGES

ENOUGH_REPEATS = 5
MIN_CHANGE = 1.05
MIN_CHANGE_OF_FEW = 1.25

VERDICTS = {
    "differs": "Another answer than before: one of the two is wrong",
    "failed": "Failed, and did not before",
    "slower": "Slower beyond noise",
    "faster": "Faster beyond noise",
    "mended": "Answered, and did not before",
    "failing": "Failed before and now",
    "incomparable": "Times that cannot be compared",
    "missing": "Not measured now",
    "new": "Not measured before",
    "same": "As before, but for noise",
}
"""What may have become of a cell, and what is said of all that share it."""

WORSE = ("differs", "failed", "slower")
TIMED = ("slower", "faster", "same")


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one cell.

    Attributes
    ----------
    cell : who answered what
    verdict : one of `VERDICTS`
    before, after : its records; None on the side that has none
    note : why it cannot be compared, how it failed, or what may explain the change
    """

    cell: Cell
    verdict: str
    before: Record | None
    after: Record | None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The median after, divided by the one before: above 1 is slower; None where they cannot be compared."""
        if self.before is None or self.after is None or self.verdict not in TIMED:
            return None
        was, now = self.before.outcome.median, self.after.outcome.median
        return now / was if was and now else None

    @property
    def is_worse(self) -> bool:
        """Whether it got slower or wrong, or does not answer any more."""
        return self.verdict in WORSE

    def to_dict(self) -> dict[str, Any]:
        """The change as plain values."""
        return {
            "cell": asdict(self.cell),
            "verdict": self.verdict,
            "is_worse": self.is_worse,
            "ratio": self.ratio,
            "note": self.note,
            "before": _side(self.before),
            "after": _side(self.after),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of every cell of two runs, in the order of the later one; what it lacks is at the end."""

    changes: tuple[Change, ...]

    @property
    def is_worse(self) -> bool:
        """Whether any cell got slower or wrong, or does not answer any more."""
        return any(change.is_worse for change in self.changes)

    @property
    def tally(self) -> dict[str, int]:
        """How many cells have each verdict, in the order of `VERDICTS`, those without a cell left out."""
        counted = Counter(change.verdict for change in self.changes)
        return {verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]}

    @property
    def mean_ratio(self) -> float | None:
        """The geometric mean of the ratios of all cells whose times can be compared."""
        ratios = [change.ratio for change in self.changes if change.ratio is not None]
        return statistics.geometric_mean(ratios) if ratios else None

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "is_worse": self.is_worse,
            "tally": self.tally,
            "mean_ratio": self.mean_ratio,
            "changes": [change.to_dict() for change in self.changes],
        }


def comparison_of(before: Path, after: Path) -> Comparison:
    """Compare two results files.

    Raises
    ------
    MissingFileError : one of them is not there
    FormatError : a line is no record; names the line
    """
    return compare(read_records(before), read_records(after))


def compare(before: Sequence[Record], after: Sequence[Record]) -> Comparison:
    """What became of every cell between two runs.

    Parameters
    ----------
    before, after : the records of each, in the order in which they were written; answers are judged by those of the
        same side
    """
    old, new = _last_of_each(before), _last_of_each(after)
    changes = [_change(old.get(key), record) for key, record in new.items()]
    gone = [Change(record.cell, "missing", record, None) for key, record in old.items() if key not in new]
    return Comparison((*changes, *gone))


def render(comparison: Comparison) -> str:
    """The comparison as Markdown: of what, how many cells have each verdict, and a table for each but the unchanged."""
    summary = ", ".join(f"{count} {verdict}" for verdict, count in comparison.tally.items()) or "no cells"
    if comparison.mean_ratio is not None:
        summary += f"; geometric mean of after / before: {ratio_text(comparison.mean_ratio)}"
    sides = {
        "before": [change.before for change in comparison.changes if change.before is not None],
        "after": [change.after for change in comparison.changes if change.after is not None],
    }
    heading = [f"- {name}: {text}" for name, records in sides.items() for text in _origins(records)]
    sections = [_section(verdict, comparison.changes) for verdict in comparison.tally if verdict != "same"]
    return "\n\n".join(["# What changed", "\n".join([*heading, f"- {summary}"]), *sections]) + "\n"


def _last_of_each(records: Iterable[Record]) -> dict[str, Record]:
    """The last record of every cell, judged by the others."""
    last = {record.cell.key: record for record in records}
    return dict(zip(last, judged(last.values()), strict=True))


def _change(before: Record | None, after: Record) -> Change:
    """What became of a cell that the later run has."""
    if before is not None and before.outcome.status == after.outcome.status == "ok":
        return _change_of_answers(before, after)
    verdict = _first_verdict(after.outcome.status) if before is None else _verdict(before, after)
    note = after.outcome.message
    if before is not None and after.outcome.status == "ok":
        note = f"before: {before.outcome.status}, {before.outcome.message}"
    return Change(after.cell, verdict, before, after, note)


def _first_verdict(status: str) -> str:
    """The verdict on a cell that was not measured before: passing a limit makes nothing worse, a wrong answer does."""
    if status == "unavailable":
        return "missing"
    return "failed" if status in ("wrong", "crashed") else "new"


def _verdict(before: Record, after: Record) -> str:
    """The verdict on a cell that was not answered both times."""
    match before.outcome.status, after.outcome.status:
        case "unavailable", now:
            return _first_verdict(now)
        case _, "ok":
            return "mended"
        case "ok", "unavailable":
            return "missing" if _other_machines(before, after) else "failed"
        case _, "unavailable":
            return "missing"
        case "ok", "timeout" if max(before.outcome.seconds, default=0.0) > after.limits["seconds"]:
            return "incomparable"
        case was, now:
            return "failed" if was == "ok" or (now == "wrong" and was != "wrong") else "failing"


def _change_of_answers(before: Record, after: Record) -> Change:
    """What became of a cell that was answered both times."""
    if why := _other_question(before, after):
        return Change(after.cell, "incomparable", before, after, why)
    is_of_edges = None not in (before.outcome.edges, after.outcome.edges)
    was, now = (_finding_text(record, is_of_edges) for record in (before, after))
    if was != now:
        return Change(after.cell, "differs", before, after, f"before: {was}; now: {now}")
    if machines := _other_machines(before, after):
        return Change(after.cell, "incomparable", before, after, f"another machine: {machines}")
    verdict = _speed(before.outcome.seconds, after.outcome.seconds)
    note = "" if verdict == "same" else "; ".join(_explanations(before, after))
    return Change(after.cell, verdict, before, after, note)


def _finding_text(record: Record, is_of_edges: bool) -> str:
    """What a record found, with the edges of its graph where both sides tell."""
    outcome = record.outcome
    digest, edges = f" ({outcome.digest})" if outcome.digest else "", f" of {outcome.edges} edges"
    return f"{outcome.answer}{digest}{edges if is_of_edges else ''}"


def _other_question(before: Record, after: Record) -> str:
    """How two cells of one name differ in what was asked, or whether it was timed; empty where they do not."""
    if before.pairs != after.pairs:
        return f"another graph: {before.pairs:,} pairs before, {after.pairs:,} now"
    if before.details != after.details:
        return f"another question: {dict(before.details)} before, {dict(after.details)} now"
    return "" if before.outcome.seconds and after.outcome.seconds else "no times"


def _other_machines(before: Record, after: Record) -> str:
    """What differs between the machines, as far as it matters to the cell; the size of the memory does not."""
    was, now = before.setting.machine, after.setting.machine
    names = [name for name in dict.fromkeys([*was, *now]) if not name.endswith("memory_bytes")]
    if after.cell.device == "cpu":
        names = [name for name in names if not name.startswith("gpu")]
    different = [name for name in names if was.get(name) != now.get(name)]
    return ", ".join(f"{name} {was.get(name, 'unknown')} before, {now.get(name, 'unknown')} now" for name in different)


def _speed(before: Sequence[float], after: Sequence[float]) -> str:
    """Slower, faster or the same, by the rule of this module."""
    medians = statistics.median(before), statistics.median(after)
    are_few = min(len(before), len(after)) < ENOUGH_REPEATS
    if max(medians) <= min(medians) * (MIN_CHANGE_OF_FEW if are_few else MIN_CHANGE):
        return "same"
    if not are_few and (_is_within(medians[0], after) or _is_within(medians[1], before)):
        return "same"
    return "slower" if medians[1] > medians[0] else "faster"


def _is_within(median: float, seconds: Sequence[float]) -> bool:
    """Whether a median is within the range of repeats, the tenth at either end left out."""
    ascending, cut = sorted(seconds), len(seconds) // 10
    return ascending[cut] <= median <= ascending[-1 - cut]


def _explanations(before: Record, after: Record) -> Iterator[str]:
    """What may be behind a change: another algorithm, the stage that changed most, other work on the machine."""
    chosen = before.outcome.facts.get("chosen"), after.outcome.facts.get("chosen")
    if chosen[0] != chosen[1] and None not in chosen:
        yield f"{chosen[0]} was chosen before, {chosen[1]} now"
    stages = {
        name: (statistics.median(was), statistics.median(now))
        for name in STAGES
        if name != "whole"
        if (was := before.outcome.stages.get(name)) and (now := after.outcome.stages.get(name))
    }
    if len(stages) > 1:
        name = max(stages, key=lambda stage: abs(stages[stage][1] - stages[stage][0]))
        yield f"most of it in {name}: {' → '.join(map(seconds_text, stages[name]))}"
    for when, record in (("before", before), ("now", after)):
        usual = max(record.cell.threads, record.setting.machine.get("threads", 0))  # the cell before used them, perhaps
        if record.load > usual + FOREIGN_LOAD:
            yield f"other work ran {when}, load average {record.load:.1f}"


def _side(record: Record | None) -> dict[str, Any] | None:
    if record is None:
        return None
    outcome = record.outcome
    return {
        "status": outcome.status,
        "median": outcome.median,
        "spread": outcome.spread,
        "repeats": len(outcome.seconds),
        "answer": outcome.answer,
        "date": record.date,
        "revision": record.setting.revision,
    }


def _origins(records: Iterable[Record]) -> list[str]:
    """The revisions, machines and versions that records are of, each once."""
    return list(
        dict.fromkeys(
            f"revision {setting.revision or 'unknown'}, {setting.machine['processor']}, "
            + ", ".join(f"{name} {version}" for name, version in setting.versions.items())
            for setting in (record.setting for record in records)
        )
    )


def _section(verdict: str, changes: Iterable[Change]) -> str:
    """The cells of one verdict, those that changed most first."""
    found = [change for change in changes if change.verdict == verdict]
    found.sort(key=lambda change: change.ratio or 1.0, reverse=verdict != "faster")
    header = ["graph", "asked", "who", "threads", "before", "after", "after / before", "note"]
    rows = [
        [
            change.cell.graph,
            asked(change.cell),
            f"{column_of(change.cell)}, {change.cell.way}",
            str(change.cell.threads),
            time_text(change.before),
            time_text(change.after),
            ratio_text(change.ratio),
            change.note.replace("|", "\\|"),
        ]
        for change in found
    ]
    return f"## {VERDICTS[verdict]}\n\n{markdown(header, rows)}"
