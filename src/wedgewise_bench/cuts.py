"""Records of `blocks` → tables: what cutting and counting take, how even tasks are, and what more workers would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wedgewise_bench.metrics import amount_text
from wedgewise_bench.record import Record
from wedgewise_bench.table import answer_sections, markdown, ratio_text, seconds_text, time_text

WHERE = ["graph", "cut", "threads"]
ORDER = "time"  # BBTC's own estimator


def cut_sections(records: Sequence[Record]) -> list[str]:
    """All tables of cuts; cells without one, which are whole graphs, have tables of their own behind them."""
    cut = [record for record in records if "cutting_seconds" in record.outcome.facts]
    whole = [record for record in records if "cutting_seconds" not in record.outcome.facts]
    tables = {
        "Cutting and counting (count: median, warm)": _times,
        "Balance: λ, space IR, time IR of all tasks and of those of 1 ms or more": _evenness,
        "Estimators: rank correlation with measured times, share of the list with the longest 32": _foresight,
        f"Speed-up of imagined workers over the graph in one part on one worker, heaviest first by `{ORDER}`, and the "
        "most that any order allows": _workers,
        f"Time IR and TEPS of imagined workers, heaviest first by `{ORDER}`": _rates,
    }
    sections = [f"## {name}\n\n{made(cut)}" for name, made in tables.items()] if cut else []
    return [*sections, "# The same on whole graphs", *answer_sections(whole)] if whole else sections


def _where(record: Record) -> list[str]:
    return [record.cell.graph, record.cell.way, str(record.cell.threads)]


def _times(records: Sequence[Record]) -> str:
    header = [*WHERE, "parts", "blocks", "tasks", "arcs per task", "cutting", "count", "cutting / count"]
    rows = []
    for record in records:
        facts, median = record.outcome.facts, record.outcome.median
        cutting = float(facts["cutting_seconds"])
        numbers = [f"{facts[name]:,.0f}" for name in ("parts", "blocks", "tasks", "arcs_per_task")]
        share = ratio_text(cutting / median if median else None)
        rows.append([*_where(record), *numbers, seconds_text(cutting), time_text(record), share])
    return markdown(header, rows)


def _evenness(records: Sequence[Record]) -> str:
    names = ("load_imbalance", "space_ratio", "time_ratio", "long_time_ratio")
    rows = [
        [
            *_where(record),
            *(_number(record.outcome.facts[name]) for name in names),
            f"{record.outcome.facts['long_tasks']:,} of {record.outcome.facts['timed']:,}",
        ]
        for record in records
    ]
    return markdown([*WHERE, "λ", "space IR", "time IR", "time IR ≥ 1 ms", "tasks ≥ 1 ms"], rows)


def _foresight(records: Sequence[Record]) -> str:
    estimators = list(records[0].outcome.facts["foresight"])
    rows = [
        [*_where(record), *(_quality(record.outcome.facts["foresight"][name]) for name in estimators)]
        for record in records
    ]
    return markdown([*WHERE, *estimators], rows)


def _quality(found: Mapping[str, float]) -> str:
    return f"{found['rank_correlation']:.2f}, {found['list_share']:.0%}"


def _workers(records: Sequence[Record]) -> str:
    """Seconds of the graph in one part; records of earlier versions have none, and no speed-ups then."""
    return _by_workers(records, _speedup, "one part", lambda facts: _seconds(facts.get("unpartitioned")))


def _rates(records: Sequence[Record]) -> str:
    return _by_workers(records, _rate, "edges", lambda facts: amount_text(facts.get("edges")))


Facts = Mapping[str, Any]


def _by_workers(
    records: Sequence[Record], text: Callable[[Facts, Facts], str], name: str, of_cut: Callable[[Facts], str]
) -> str:
    """A column for each number of workers, behind one that says something of the cut."""
    workers = [found["workers"] for record in records for found in record.outcome.facts["makespans"]]
    columns = list(dict.fromkeys(workers))
    rows = []
    for record in records:
        facts = record.outcome.facts
        found: dict[int, Any] = {item["workers"]: item for item in facts["makespans"]}
        texts = [text(facts, found[count]) if count in found else "–" for count in columns]
        rows.append([*_where(record), of_cut(facts), *texts])
    return markdown([*WHERE, name, *(f"{count:,}" for count in columns)], rows)


def _speedup(facts: Facts, found: Facts) -> str:
    whole, seconds = facts.get("unpartitioned"), found["seconds"][ORDER]
    if whole is None or not seconds:
        return "–"
    return f"{whole / seconds:.1f} of {whole / found['least']:.1f}"


def _rate(_facts: Facts, found: Facts) -> str:
    if "teps" not in found:
        return "–"
    return f"{_number(found['time_ratio'][ORDER])}, {amount_text(found['teps'][ORDER])}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else seconds_text(value)


def _number(value: float | None) -> str:
    return "∞" if value is None else f"{value:.3f}"
