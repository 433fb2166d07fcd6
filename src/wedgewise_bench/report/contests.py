"""Records → who competed at what: one contest for each machine, row and question, its contenders by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wedgewise.report.text import plural
from wedgewise_bench.blocks import BlocksSystem
from wedgewise_bench.record import Cell, Record
from wedgewise_bench.spec import Spec
from wedgewise_bench.table import ANSWERS, OURS, TITLES, column_of, on_device
from wedgewise_bench.words import QUESTIONS, ROWS

MAX_WAYS = 12  # of one system before only the best setting of each algorithm is shown
NOT_ASKED = "unavailable"


@dataclass(frozen=True, slots=True)
class Contest:
    """One question to several contenders on one machine.

    Attributes
    ----------
    title : what was asked, with the machine where there are several
    stem : the same as part of a file's name
    names : the contenders, in the order of the run
    records : by graph and contender; those that were not available are left out
    """

    title: str
    stem: str
    names: tuple[str, ...]
    records: Mapping[tuple[str, str], Record]

    @property
    def graphs(self) -> list[str]:
        """By ascending size."""
        sizes = self.sizes
        return sorted(sizes, key=lambda graph: (sizes[graph], graph))

    @property
    def measure(self) -> str:
        """What sizes are in: edges where these are known of every graph, else the pairs that it was read from."""
        return "edges" if {graph for graph, _ in self.records} == set(self._edges) else "pairs"

    @property
    def sizes(self) -> dict[str, int]:
        """By graph."""
        pairs = {graph: record.pairs for (graph, _), record in self.records.items()}
        return self._edges if self.measure == "edges" else pairs

    @property
    def _edges(self) -> dict[str, int]:
        return {
            graph: record.outcome.edges
            for (graph, _), record in self.records.items()
            if record.outcome.edges is not None
        }

    def seconds(self, graph: str, name: str) -> float | None:
        """The median of a contender that answered rightly."""
        return seconds_of(self.records.get((graph, name)))

    @property
    def has_peers(self) -> bool:
        """Whether we compete with others."""
        return len({is_ours(name) for name in self.names}) == 2

    def asked(self, name: str) -> set[str]:
        """The graphs that a contender was asked about."""
        return {graph for graph, who in self.records if who == name}


def latest(records: Iterable[Record]) -> list[Record]:
    """Of several records of one cell on one machine the last one, where the first one was.

    What any run knows of a machine, such as its GPU, all records of that machine are given.
    """
    every = list(records)
    machines: dict[Hashable, dict[str, Any]] = {}
    for record in every:
        machines.setdefault(_identity(record), {}).update(record.setting.machine)
    found: dict[Hashable, Record] = {}
    for record in every:
        identity = _identity(record)
        setting = replace(record.setting, machine=machines[identity])
        found[identity, record.cell.key] = replace(record, setting=setting)
    return list(found.values())


def is_ours(name: str) -> bool:
    """Whether a contender is a system of our own, on whatever device."""
    return name.partition(" on ")[0] in (OURS, BlocksSystem.name)


def machine_name(record: Record) -> str:
    """The GPU where there is one, the processor, and its threads."""
    machine = record.setting.machine
    names = [str(machine[name]) for name in ("gpu", "processor") if machine.get(name)]
    return ", ".join([*names, *([plural(machine["threads"], "thread")] if "threads" in machine else [])])


def seconds_of(record: Record | None) -> float | None:
    """The median where the answer was right."""
    return record.outcome.median if record is not None and record.outcome.status == "ok" else None


def size_of(record: Record) -> int:
    """The edges of the graph, else the pairs that it was read from."""
    return record.outcome.edges or record.pairs


def contests(records: Sequence[Record], label: Callable[[Cell], str]) -> list[Contest]:
    """Everything that was asked, by row and question; of the records that one name stands for, the best one."""
    several = len({machine_name(record) for record in records}) > 1
    found: dict[tuple[str, str, str], dict[tuple[str, str], Record]] = {}
    for record in records:
        if record.outcome.status == NOT_ASKED:
            continue
        cell = record.cell
        entries = found.setdefault((machine_name(record), cell.row, cell.question), {})
        key = (cell.graph, label(cell))
        rival = entries.get(key)
        if rival is None or _merit(record) < _merit(rival):
            entries[key] = record
    return [
        Contest(
            title_of(row, question) + (f", {machine}" if several else ""),
            file_stem(question, row, machine if several else ""),
            tuple(dict.fromkeys(name for _, name in entries)),
            entries,
        )
        for (machine, row, question), entries in sorted(found.items(), key=lambda item: _place(*item[0]))
    ]


def among_systems(records: Sequence[Record]) -> list[Contest]:
    """Systems against each other, each by its fastest way; where there is one system, its ways."""
    if len({record.cell.system for record in records}) < 2:
        return among_ways(records)
    return contests(records, column_of)


def among_ways(records: Sequence[Record]) -> list[Contest]:
    """Our own ways against each other, or those of the only system there is."""
    systems = {record.cell.system for record in records}
    ours = records if len(systems) == 1 else [record for record in records if record.cell.system == OURS]
    return contests(ours, way_label(ours))


def way_label(records: Sequence[Record]) -> Callable[[Cell], str]:
    """What tells the ways of one system apart; of very many, the algorithms alone."""
    several_threads = len({record.cell.threads for record in records if record.cell.device == "cpu"}) > 1
    several_devices = len({record.cell.device for record in records}) > 1

    def where(cell: Cell) -> str:
        return on_device(cell) if several_devices else ""

    def by_way(cell: Cell) -> str:
        threads = f", {cell.threads} threads" if several_threads and cell.device == "cpu" else ""
        return cell.way + where(cell) + threads

    if len({by_way(record.cell) for record in records}) <= MAX_WAYS:
        return by_way
    return lambda cell: cell.algorithm + where(cell)


def file_stem(*words: str) -> str:
    """Words as part of a file's name.

    Examples
    --------
    >>> file_stem("speedup", "k_truss[k=3]")
    'speedup-k-truss-k-3'
    """
    return "-".join(re.findall("[a-z0-9]+", " ".join(words).lower()))


def title_of(row: str, question: str) -> str:
    """What was asked and timed, in words.

    Examples
    --------
    >>> title_of("count", "k_truss[k=3]")
    'The edges of the k-truss (k=3)'
    """
    if question == "count":
        return TITLES[row].partition(" (")[0]
    asked = Spec.parse(question)
    settings = ", ".join(f"{name}={value}" for name, value in asked.settings.items())
    meaning = ANSWERS[asked.name]
    return meaning[0].upper() + meaning[1:] + (f" ({settings})" if settings else "")


def _identity(record: Record) -> Hashable:
    """What two runs on one machine have in common; its memory is not the same to the byte after a restart."""
    machine = record.setting.machine
    gibibytes = round(machine.get("memory_bytes", 0) / 2**30)
    return machine.get("processor"), machine.get("threads"), machine.get("system"), gibibytes


def _place(machine: str, row: str, question: str) -> tuple[int, int, str, str]:
    """Sorts contests: by question, by row, then by machine."""
    return QUESTIONS.index(Spec.parse(question).name), ROWS.index(row), question, machine


def _merit(record: Record) -> tuple[bool, float]:
    seconds = seconds_of(record)
    return seconds is None, seconds or 0.0
