"""Our own ways against each other: ladders of improvements, sweeps of one parameter, and the regret of `auto`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from wedgewise.errors import UnknownNameError
from wedgewise.report import charts
from wedgewise.report.charts import Axis
from wedgewise.report.page import Value
from wedgewise.report.text import plural
from wedgewise_bench.papers import written_out
from wedgewise_bench.record import Record
from wedgewise_bench.report.contests import Contest, contests, file_stem, machine_name, seconds_of, title_of
from wedgewise_bench.report.parts import Heading, Item, Part, Picture, Table
from wedgewise_bench.spec import Spec
from wedgewise_bench.table import OURS, asked, on_device, ratio_text, seconds_text

Ladder = tuple[str, ...]
"""Ways, each a step from the one before it."""

Key = TypeVar("Key", bound=Hashable)

AUTO = "auto"
THREADS = "threads"
MAX_LINES = 8
MAX_BARS = 60
LOG_FROM = 8  # largest by smallest value of a logarithmic axis
RATIO = Axis("times as fast", "×")


@dataclass(frozen=True, slots=True)
class ParameterSweep:
    """One parameter that varies while all others stay: seconds by graph and value."""

    row: str
    question: str
    way: str
    parameter: str
    seconds: Mapping[str, Mapping[float, float]]

    def best(self, graph: str) -> float:
        """The value with the least time."""
        times = self.seconds[graph]
        return min(times, key=times.__getitem__)


@dataclass(frozen=True, slots=True)
class Regret:
    """What `auto` took on one graph, and what the fastest of the ways would have taken."""

    asked: str
    graph: str
    chosen: str
    seconds: float
    best_way: str
    best_seconds: float

    @property
    def factor(self) -> float:
        """The time of `auto` divided by that of the fastest way, itself included: never below one."""
        return self.seconds / self.best_seconds


def ladders_part(records: Sequence[Record], steps: Sequence[str], published: Sequence[Ladder] = ()) -> Part | None:
    """Steps over the first one: the ways that were named, else those of papers and those that differ in one choice.

    The ways of `published` are texts of `written_out`.
    """
    known = {record.cell.way for record in records}
    unknown = [step for step in steps if step not in known]
    if unknown:
        raise UnknownNameError(f"no way named {unknown[0]!r} in these results; there are: {', '.join(sorted(known))}")
    by_text = {written_out(Spec(record.cell.algorithm, record.cell.knobs)): record.cell.way for record in records}
    climbed = [tuple(by_text[step] for step in ladder if step in by_text) for ladder in published]
    others = [ladder for ladder in _found_ladders(records) if not any(set(ladder) <= set(found) for found in climbed)]
    ladders = [tuple(steps)] if steps else [*climbed, *others]
    places = _grouped(records, lambda record: (record.cell.system, on_device(record.cell)))
    items = [
        item
        for ladder in dict.fromkeys(ladders)
        for (_, place), there in places.items()
        for contest in contests(there, lambda cell: cell.way)
        for item in _ladder_items(replace(contest, title=contest.title + place), ladder)
    ]
    about = "Each step against the first one: what a change brings on top of those before it."
    return Part("Ladders", (about, *items)) if items else None


def sweeps_part(records: Sequence[Record]) -> Part | None:
    """One parameter varies, all others stay."""
    items = [item for sweep in sweeps_of(records) for item in _sweep_items(sweep)]
    return Part("Parameters", tuple(items)) if items else None


def regret_part(records: Sequence[Record]) -> Part | None:
    """What the choice of `auto` costs against the best one in hindsight."""
    found = regrets_of(records)
    if not found:
        return None
    mean = statistics.geometric_mean([regret.factor for regret in found])
    worst = max(found, key=lambda regret: regret.factor)
    rows = tuple(
        (
            regret.graph,
            regret.asked,
            regret.chosen,
            (seconds_text(regret.seconds), regret.seconds),
            regret.best_way,
            (seconds_text(regret.best_seconds), regret.best_seconds),
            (ratio_text(regret.factor), regret.factor),
        )
        for regret in found
    )
    header = ("graph", "question", "auto took", "time of auto", "fastest", "time of that", "regret")
    about = (
        f"`auto` takes {ratio_text(mean)} the time of the fastest way in the geometric mean of "
        f"{plural(len(found), 'case')}, at "
        f"most {ratio_text(worst.factor)}, on {worst.graph}."
    )
    items: list[Item] = [
        about,
        Table("Time of `auto` divided by that of the fastest way.", header, rows),
    ]
    if len(found) <= MAX_BARS:
        groups = [f"{regret.graph}: {regret.asked}" for regret in found]
        chart = charts.bars(groups, {"regret": [regret.factor for regret in found]}, Axis("regret", "×"), 1.0)
        text = ", ".join(f"{regret.graph} {ratio_text(regret.factor)}" for regret in found) + "."
        items.insert(1, Picture("regret", chart, "Regret of `auto`; 1× is the best choice.", text))
    return Part("Regret of auto", tuple(items))


def sweeps_of(records: Sequence[Record]) -> list[ParameterSweep]:
    """Every parameter that has at least two values while all else is equal; the number of threads is one of them."""
    names = dict.fromkeys(
        name
        for record in records
        for name in (*record.cell.knobs, THREADS)
        if _is_number(record.cell.knobs.get(name, 0))
    )
    return [sweep for name in names for sweep in _sweeps_of(records, name)]


def regrets_of(records: Sequence[Record]) -> list[Regret]:
    """Where `auto` and at least one other way of ours answered the same on the same device and threads."""
    ours = [record for record in records if record.cell.system == OURS and seconds_of(record)]
    found = []
    for group in _grouped(ours, _same_question).values():
        times = {record.cell.way: (seconds_of(record) or 0.0, record) for record in group}
        if AUTO in times and len(times) > 1:
            seconds, record = times[AUTO]
            best = min(times, key=lambda way: times[way][0])
            chosen = str(record.outcome.facts.get("chosen", "–"))
            found.append(Regret(asked(record.cell), record.cell.graph, chosen, seconds, best, times[best][0]))
    return found


def ladder_of(contest: Contest, steps: Sequence[str]) -> dict[str, dict[str, float]]:
    """By step and graph, the time of the first step divided by that of each, on graphs that all of them answered."""
    graphs = [graph for graph in contest.graphs if all(contest.seconds(graph, step) for step in steps)]
    times = {step: {graph: contest.seconds(graph, step) or 0.0 for graph in graphs} for step in steps}
    return {step: {graph: times[steps[0]][graph] / times[step][graph] for graph in graphs} for step in steps}


def _same_question(record: Record) -> tuple[str, str, str, str, str, int]:
    cell = record.cell
    return machine_name(record), cell.row, cell.question, cell.graph, cell.device, cell.threads


def _grouped(records: Sequence[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def _found_ladders(records: Sequence[Record]) -> list[Ladder]:
    """The ways of one algorithm, in the order of the run, where each differs from the one before in one choice."""
    groups = _grouped(records, lambda record: (record.cell.system, record.cell.algorithm))
    ladders = []
    for group in groups.values():
        ways = {record.cell.way: dict(record.cell.knobs) for record in group}
        steps = list(pairwise(ways.values()))
        if steps and all(_is_one_choice(before, after) for before, after in steps):
            ladders.append(tuple(ways))
    return ladders


def _is_one_choice(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether one knob changed, and is no number."""
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    values = [knobs[name] for name in changed for knobs in (before, after) if name in knobs]
    return len(changed) == 1 and not all(_is_number(value) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ladder_items(contest: Contest, steps: Sequence[str]) -> Iterator[Item]:
    found = ladder_of(contest, steps) if len(steps) > 1 else {}
    graphs = list(found[steps[0]]) if found else []
    if not graphs:
        return
    means = {step: statistics.geometric_mean(found[step].values()) for step in steps}
    gains = {step: means[step] / means[before] for before, step in pairwise([steps[0], *steps])}
    yield Heading(contest.title)
    yield Picture(
        file_stem("ladder", steps[0], contest.stem),
        charts.bars(steps, {"geometric mean": [means[step] for step in steps]}, RATIO, 1.0),
        f"Time of {steps[0]} divided by that of each step, geometric mean of {plural(len(graphs), 'graph')}.",
        ", ".join(f"{step} {ratio_text(mean)}" for step, mean in means.items()) + ".",
    )
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (step, *(_ratio_value(ratio) for ratio in (*found[step].values(), means[step], gains[step]))) for step in steps
    )
    header = ("step", *graphs, "geometric mean", "over the step before")
    yield Table(f"Times as fast as {steps[0]}.", header, rows)


def _sweeps_of(records: Sequence[Record], parameter: str) -> Iterator[ParameterSweep]:
    """The sweeps of one parameter."""
    varied = [record for record in records if parameter == THREADS or _is_number(record.cell.knobs.get(parameter))]
    for (*_, row, question, way), group in _grouped(varied, lambda record: _all_but(record, parameter)).items():
        seconds: dict[str, dict[float, float]] = {}
        for record in group:
            cell, median = record.cell, seconds_of(record)
            if median is not None:
                value = cell.threads if parameter == THREADS else cell.knobs[parameter]
                seconds.setdefault(cell.graph, {})[float(value)] = median
        several = {graph: times for graph, times in seconds.items() if len(times) > 1}
        if several:
            yield ParameterSweep(row, question, way, parameter, several)


def _all_but(record: Record, parameter: str) -> tuple[str, str, int, str, str, str]:
    """What stays while a parameter varies."""
    cell = record.cell
    others = {name: value for name, value in sorted(cell.knobs.items()) if name != parameter}
    threads = 0 if parameter == THREADS else cell.threads
    system = "" if cell.system == OURS else f"{cell.system} "
    way = f"{system}{Spec(cell.algorithm, others)}{on_device(cell)}"
    return machine_name(record), cell.device, threads, cell.row, cell.question, way


def _sweep_items(sweep: ParameterSweep) -> Iterator[Item]:
    values = sorted({value for times in sweep.seconds.values() for value in times})
    x = Axis(sweep.parameter, is_log=values[0] > 0 and values[-1] / values[0] >= LOG_FROM)
    title = title_of(sweep.row, sweep.question)
    yield Heading(f"{sweep.parameter} of {sweep.way}")
    if len(sweep.seconds) <= MAX_LINES:
        points = {graph: list(times.items()) for graph, times in sweep.seconds.items()}
        y, caption = Axis("time", "s", is_log=True), "median time on each graph."
    else:
        points = {sweep.way: list(_relative(sweep, values).items())}
        y, caption = Axis("time over the best", "×"), "time divided by the best one of the graph, geometric mean."
    best = {graph: sweep.best(graph) for graph in sweep.seconds}
    text = ", ".join(f"{value:g} on {graph}" for graph, value in best.items())
    stem = file_stem("sweep", sweep.parameter, sweep.way, sweep.question, sweep.row)
    yield Picture(stem, charts.lines(points, x, y), f"{title}: {caption}", f"Fastest: {text}.")
    rows = tuple(
        (
            graph,
            *(_time_value(times.get(value)) for value in values),
            (f"{best[graph]:g}", best[graph]),
        )
        for graph, times in sweep.seconds.items()
    )
    header = ("graph", *(f"{value:g}" for value in values), "fastest")
    yield Table(f"Medians by {sweep.parameter}.", header, rows)


def _ratio_value(ratio: float) -> Value:
    return ratio_text(ratio), ratio


def _time_value(seconds: float | None) -> Value:
    return ("–", None) if seconds is None else (seconds_text(seconds), seconds)


def _relative(sweep: ParameterSweep, values: Sequence[float]) -> dict[float, float]:
    """By value, the time over the best of the graph, geometric mean of the graphs that have it."""
    ratios: dict[float, list[float]] = {value: [] for value in values}
    for graph, times in sweep.seconds.items():
        for value, seconds in times.items():
            ratios[value].append(seconds / times[sweep.best(graph)])
    return {value: statistics.geometric_mean(found) for value, found in ratios.items()}
