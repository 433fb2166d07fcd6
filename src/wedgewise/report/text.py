"""Result → text for people: thousands separators, one fact a line, no colour needed to read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wedgewise.algorithms._contract import TRUSSES, Algorithm
from wedgewise.api import Result
from wedgewise.stages import CleanReport

BAR_WIDTH = 40
MAX_COLUMNS = 8
LABELS = {"numbers": "0 … n − 1", "integers": "integers, as in the file", "text": "text, as in the file"}


def result_text(result: Result, headline: str) -> str:
    """An answer as a person reads it: what it is first, then how it was computed."""
    return f"{headline}\n\n{facts_text(how_facts(result))}"


def how_facts(result: Result) -> list[tuple[str, str]]:
    """How an answer was computed."""
    plan = result.plan
    tests = "" if plan.computes in TRUSSES else f", {result.wedges_tested:,} tests made"
    return [
        ("vertices", f"{result.n:,}"),
        ("edges", f"{result.m:,}"),
        ("work", f"{plan.wedges:,} candidate pairs in {plan.order} order{tests}"),
        ("cleaned", cleaned_text(result.cleaned)),
        *(("read as", note) for note in result.cleaned.notes),
        ("algorithm", f"{result.algorithm} on {result.device}, {plural(plan.threads, 'thread')}"),
        *(("because", reason) for reason in plan.reasons),
        ("verified", result.verified or "no (--verify recounts by another method)"),
        ("seconds", seconds_text(result.seconds)),
        ("memory", f"{bytes_text(result.peak_bytes)} peak, the whole process"),
    ]


def graph_text(record: dict[str, Any]) -> str:
    """What `info` says, from the object that it prints as JSON."""
    cleaned = CleanReport(**record["cleaned"])
    facts = [
        ("format", ", ".join([record["format"], *record["notes"]])),
        ("vertices", f"{record['n']:,} ({record['isolated']:,} without an edge)"),
        ("edges", f"{record['m']:,}"),
        ("labels", LABELS[record["labels"]]),
        (
            "degrees",
            "{degree_least:,} least, {degree_median:,g} median, {degree_largest:,} largest".format_map(record),
        ),
        ("wedges", f"{record['wedges']:,} paths of two edges"),
        ("cleaned", cleaned_text(cleaned)),
        (
            "memory",
            f"{bytes_text(record['graph_bytes'])} held, {bytes_text(record['count_bytes'])} more for a count",
        ),
    ]
    return f"{record['source']}\n\n{facts_text(facts)}"


def cleaned_text(cleaned: CleanReport) -> str:
    """What cleaning dropped, in one line; nothing is left out silently, and zeros are not listed."""
    dropped = [
        plural(cleaned.loops, "loop"),
        plural(cleaned.duplicates, "duplicate"),
        plural(cleaned.reversed_copies, "reversed copy", "reversed copies"),
        plural(cleaned.dropped_columns, "further column") + _listed(cleaned.ignored_columns),
        plural(cleaned.leaves_dropped, "leaf", "leaves"),
    ]
    named = ", ".join(text for text in dropped if not text.startswith("0 "))
    are_all = cleaned.columns == (0, 1) and not cleaned.ignored_columns
    columns = "" if are_all or not cleaned.columns else f" from columns{_listed(cleaned.columns)}"
    return f"{plural(cleaned.pairs, 'pair')} read{columns}; dropped: {named or 'nothing'}"


def _listed(columns: Sequence[str | int]) -> str:
    """Columns in brackets, by name or by position; as many as fit a line."""
    if not columns:
        return ""
    kind = "" if isinstance(columns[0], str) else "position " if len(columns) == 1 else "positions "
    more = ["…"] if len(columns) > MAX_COLUMNS else []
    return f" ({kind}{', '.join([*map(str, columns[:MAX_COLUMNS]), *more])})"


def algorithms_text(algorithms: Iterable[Algorithm]) -> str:
    """One paragraph per algorithm."""
    paragraphs = []
    for algorithm in algorithms:
        facts = [
            ("paper", algorithm.paper),
            ("answers", ", ".join(algorithm.answers)),
            ("orders", ", ".join(algorithm.orders)),
            ("ids by", ", ".join(algorithm.relabellings)),
            ("limits", algorithm.limits),
            *(("knob", f"{knob.name}={knob.default}: {knob.meaning}") for knob in algorithm.knobs),
        ]
        paragraphs.append(f"{algorithm.name} ({algorithm.device}): {algorithm.summary}\n{facts_text(facts)}")
    return "\n\n".join(paragraphs)


def facts_text(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values in two indented columns."""
    rows = list(facts)
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows with columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def histogram_text(rows: Sequence[tuple[str, int]]) -> str:
    """A bar for each row of a name and a number; the longest for the largest, none for zero."""
    most = max((number for _, number in rows), default=0)
    width = len(f"{most:,}")
    bars = ["█" * max(1, round(BAR_WIDTH * number / most)) if number else "" for _, number in rows]
    cells = [(f"  {name}", f"{number:>{width},}", bar) for (name, number), bar in zip(rows, bars, strict=True)]
    return table_text(cells)


def range_text(least: int, most: int) -> str:
    """All integers from one to another."""
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def seconds_text(seconds: dict[str, float]) -> str:
    """Wall-clock time by stage."""
    return ", ".join(f"{taken:.3f} {stage}" for stage, taken in seconds.items())


def bytes_text(size: int) -> str:
    """A size with three digits, in powers of ten."""
    for exponent, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**exponent:
            return f"{size / 10**exponent:.3g} {unit}"
    return f"{size} bytes"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
