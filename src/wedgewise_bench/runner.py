"""Run a matrix of cells one after the other, each in its child process, and append one line per cell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from wedgewise.errors import DeviceError, MissingDependencyError
from wedgewise.machine import files as storage
from wedgewise.machine import hardware
from wedgewise_bench import profile
from wedgewise_bench.child import MIN_REPEATS, planned_repeats
from wedgewise_bench.graphs import PreparedGraph
from wedgewise_bench.ours import Wedgewise
from wedgewise_bench.record import Cell, Outcome, Record, RunSetting, now, read_records, without_folders
from wedgewise_bench.spec import Spec
from wedgewise_bench.systems import SystemSource
from wedgewise_bench.watch import CellLimits, StartedChild, time_child
from wedgewise_bench.words import ROWS

IMPLIED = ("timeout", "out_of_memory")
"""Outcomes that a row hands on to the rows that include its work."""
MIN_THREADS_TO_LOAD_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that the cells of one run share.

    Attributes
    ----------
    systems, graphs : by name; every cell names one of each
    limits : of each child
    setting : machine, versions, revision and command, stored with every line
    results_path : the JSON-lines file that records are appended to
    profiles : whether our own cells on a GPU run once more under a profiler, whose counters become a fact
    """

    systems: Mapping[str, SystemSource]
    graphs: Mapping[str, PreparedGraph]
    limits: CellLimits
    setting: RunSetting
    results_path: Path
    profiles: bool = False

    def run(
        self,
        cells: Iterable[Cell],
        *,
        resume: bool = False,
        on_record: Callable[[Record, bool], None] | None = None,
    ) -> list[Record]:
        """Run the cells in order and return their records, judged; each one is on disk before the next starts.

        Parameters
        ----------
        cells : what to run
        resume : take the records of cells that the results file already has for this revision, whatever machine made
            them; those that were not available are tried again
        on_record : told every record, and whether its cell ran now or was taken over
        """
        done = self._records_on_disk() if resume else {}
        cells, records = list(cells), list[Record]()
        to_run = [cell for cell in cells if cell.key not in done]
        following = {cell.key: other for cell, other in pairwise(to_run)}
        with _Ahead(self._job) as ahead:
            for cell in cells:
                record = done.get(cell.key)
                ran = record is None
                if record is None:
                    load = os.getloadavg()[0]
                    started = ahead.hand_over(cell, following.get(cell.key))
                    outcome = _implied(cell, records) or self.run_cell(cell, started)
                    record = self._record(cell, outcome, load)
                    storage.append_line(self.results_path, record.to_line())
                records.append(record)
                if on_record is not None:
                    on_record(record, ran)
        return judged(records)

    def run_cell(self, cell: Cell, started: StartedChild | None = None) -> Outcome:
        """Run one cell, whose child may have been started, and check its answer and the edges that it is about."""
        job = self._job(cell)
        if cell.row == "file":
            outcome = _time_files(job, self.limits)
        else:
            outcome, _ = (started or StartedChild(job)).finish(self.limits)
        graph = self.graphs[cell.graph]
        expected = graph.expected(Spec.parse(cell.question))
        if outcome.status == "ok" and expected is not None and outcome.answer != expected:
            return replace(outcome, status="wrong", message=f"{outcome.answer} instead of {expected}")
        if outcome.status == "ok" and None not in (graph.edges, outcome.edges) and outcome.edges != graph.edges:
            return replace(outcome, status="wrong", message=f"{outcome.edges} edges instead of {graph.edges}")
        return self._profiled(job, outcome) if self._wants_profile(cell) and outcome.status == "ok" else outcome

    def _wants_profile(self, cell: Cell) -> bool:
        return self.profiles and (cell.system, cell.device, cell.row) == (Wedgewise.name, "cuda", "count")

    def _profiled(self, job: Mapping[str, Any], outcome: Outcome) -> Outcome:
        """The same with the counters of the profiler, or with why there are none."""
        try:
            counters = profile.profiled(job, self.limits)
        except (MissingDependencyError, DeviceError) as error:
            return replace(outcome, message=f"no counters: {without_folders(str(error))}")
        return replace(outcome, facts={**outcome.facts, "counters": dict(counters)})

    def _job(self, cell: Cell) -> dict[str, Any]:
        graph, asked = self.graphs[cell.graph], Spec.parse(cell.question)
        return {
            "source": str(self.systems[cell.system].source),
            "name": cell.system,
            "algorithm": cell.algorithm,
            "threads": cell.threads,
            "knobs": dict(cell.knobs),
            "device": cell.device,
            "question": asked.name,
            "details": graph.details(asked),
            "row": cell.row,
            "repeats": self.limits.repeats,
            "pairs_path": str(graph.pairs_path),
            "text_path": str(graph.text_path),
        }

    def _record(self, cell: Cell, outcome: Outcome, load: float) -> Record:
        graph, asked = self.graphs[cell.graph], Spec.parse(cell.question)
        limits, expected = asdict(self.limits), graph.expected(asked)
        return Record(
            cell, outcome, self.setting, now(), graph.pairs, expected, limits, load, details=graph.details(asked)
        )

    def _records_on_disk(self) -> dict[str, Record]:
        if not self.results_path.exists():
            return {}
        return {item.cell.key: item for item in read_records(self.results_path) if self._is_settled(item)}

    def _is_settled(self, record: Record) -> bool:
        """Whether a record needs no other run.

        It is of this revision, was available, was asked the same, did not end at a limit below that of this run, was
        repeated as often as this run would, and was profiled where that is to be; one without counters says why in its
        message.
        """
        outcome = record.outcome
        had_less_time = outcome.status == "timeout" and record.limits["seconds"] < self.limits.seconds
        had_other_repeats = outcome.status == "ok" and record.limits.get("repeats") != self.limits.repeats
        lacks_counters = outcome.status == "ok" and "counters" not in outcome.facts and not outcome.message
        is_incomplete = self._wants_profile(record.cell) and lacks_counters
        if had_less_time or had_other_repeats or is_incomplete or not self._is_of_the_same(record):
            return False
        return record.setting.revision == self.setting.revision and outcome.status != "unavailable"

    def _is_of_the_same(self, record: Record) -> bool:
        """Whether a record is of a graph of this size, and of a program as it is declared now."""
        graph, system = self.graphs.get(record.cell.graph), self.systems.get(record.cell.system)
        if graph is not None and graph.pairs != record.pairs:
            return False
        return system is None or system.version in ("", record.setting.versions.get(system.package))


class _Ahead:
    """The child of the next cell on a GPU, which loads while the present one is timed by the clock of that GPU.

    On a machine with few cores every cell starts its own: there, loading would take time from those that are timed.
    """

    def __init__(self, job_of: Callable[[Cell], Mapping[str, Any]]) -> None:
        self._job_of = job_of
        self._present: StartedChild | None = None
        self._next: StartedChild | None = None

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        for started in (self._present, self._next):
            _give_up(started)

    def hand_over(self, cell: Cell, following: Cell | None) -> StartedChild | None:
        """The child of a cell, where there is one, and start that of the cell behind it; the one before has ended."""
        _give_up(self._present)
        self._present, self._next = self._next, None
        if following is not None and _may_load_beside(cell, following):
            self._next = StartedChild(self._job_of(following))
        return self._present


def _give_up(started: StartedChild | None) -> None:
    if started is not None:
        started.give_up()


def _may_load_beside(cell: Cell, following: Cell) -> bool:
    on_gpu = all((item.device, item.row) == ("cuda", "count") for item in (cell, following))
    return on_gpu and hardware.usable_threads() >= MIN_THREADS_TO_LOAD_AHEAD


def matrix(
    systems: Sequence[SystemSource],
    graphs: Iterable[str],
    rows: Iterable[str],
    threads: Sequence[int],
    questions: Sequence[str] = ("count",),
    device: str = "cpu",
) -> list[Cell]:
    """All cells by graph, question and row, so that the systems of one line of a table run back to back."""
    ordered_rows = sorted(rows, key=ROWS.index)
    return [
        Cell(system.name, way.name, graph, row, number, way.settings, question, device)
        for graph in graphs
        for question in questions
        for row in ordered_rows
        for number in threads
        for system in systems
        if device in system.devices
        for way in map(Spec.parse, system.ways(Spec.parse(question).name))
    ]


def judged(records: Iterable[Record]) -> list[Record]:
    """The same records, but ``wrong`` where most systems found something else on the same graph.

    Without a majority nobody is right: then one of them must be wrong, and the records do not tell which.
    """
    records = list(records)
    finders: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for record in records:
        for subject, finding in _findings(record):
            finders.setdefault(subject, {}).setdefault(finding, set()).add(record.cell.system)

    def judge(record: Record) -> Record:
        for subject, finding in _findings(record):
            found = finders[subject]
            rivals = set[str]().union(*(names for other, names in found.items() if other != finding))
            if rivals and len(found[finding]) <= len(rivals):
                message = f"{finding}; otherwise: {', '.join(sorted(rivals))}"
                return replace(record, outcome=replace(record.outcome, status="wrong", message=message))
        return record

    return [judge(record) for record in records]


def _findings(record: Record) -> Iterator[tuple[tuple[str, ...], str]]:
    """What a record says, by what it is about: the answer to its question, and the edges of its graph if it tells."""
    cell, outcome = record.cell, record.outcome
    if outcome.status == "ok":
        yield (cell.graph, cell.question), f"answer {outcome.answer}, digest {outcome.digest or 'none'}"
        if outcome.edges is not None:
            yield (cell.graph,), f"{outcome.edges} edges"


def _time_files(job: Mapping[str, Any], limits: CellLimits) -> Outcome:
    """Fresh processes, one per repeat; the first one warms page cache and kernel cache and is not counted."""
    warm_up = time_child(job, limits)
    if warm_up.status != "ok":
        return warm_up
    outcomes: list[Outcome] = []
    planned = 1
    while len(outcomes) < planned:
        outcome = time_child(job, limits)
        if outcome.status != "ok":
            return outcome
        outcomes.append(outcome)
        planned = planned_repeats(outcomes[0].seconds[0], min(limits.repeats, MIN_REPEATS))
    answers = {item.answer for item in [warm_up, *outcomes]}
    if len(answers) > 1:
        return Outcome("wrong", f"repeats disagree: {sorted(map(str, answers))}", warm_up.answer)
    peaks = [item.peak_bytes for item in outcomes if item.peak_bytes is not None]
    return replace(
        outcomes[-1],
        seconds=tuple(item.seconds[0] for item in outcomes),
        peak_bytes=max(peaks, default=None),
        stages={name: tuple(item.stages[name][0] for item in outcomes) for name in outcomes[-1].stages},
    )


def _implied(cell: Cell, records: Iterable[Record]) -> Outcome | None:
    """The outcome of a cell whose work includes that of one which already passed a limit."""
    included = ROWS[: ROWS.index(cell.row)]
    for record in records:
        is_included = record.cell.row in included and replace(record.cell, row=cell.row) == cell
        if is_included and record.outcome.status in IMPLIED:
            outcome = record.outcome
            message = f"not run: in row {record.cell.row}, {outcome.message}"
            return Outcome(outcome.status, message, stage=outcome.stage)
    return None
