"""What is compared: the parts of a suite, which ``wedgewise bench NAME`` runs. `suite_files` reads them from TOML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wedgewise.errors import InputError
from wedgewise_bench import cuts, metrics, papers, table, ways
from wedgewise_bench.child import MAX_REPEATS
from wedgewise_bench.matrix import Matrix
from wedgewise_bench.record import Cell, Record
from wedgewise_bench.systems import SystemSource, choose_systems

SECTIONS: Mapping[str, Callable[[Sequence[Record]], list[str]]] = {
    "count": table.count_sections,
    "answers": table.answer_sections,
    "cuts": cuts.cut_sections,
    "ways": ways.way_sections,
    "metrics": metrics.metric_sections,
}
"""What the tables of a suite show, by the names that it asks for them with."""


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio of times on one graph: that of a question to one system, divided by that of another.

    Each is a system and a question; ``divided`` is looked at way by way, ``by`` at its fastest. The ratio is to be at
    most ``bound``, or at least that.
    """

    graph: str
    divided: tuple[str, str]
    by: tuple[str, str]
    bound: float
    is_least: bool = False

    def rows(self, records: Sequence[Record]) -> Iterator[list[str]]:
        """What was measured, a row for each way."""
        seconds, references = (self._medians(records, *measured) for measured in (self.divided, self.by))
        for way in seconds if references else ():
            ratio = seconds[way] / min(references.values())
            is_reached = ratio >= self.bound if self.is_least else ratio <= self.bound
            yield [
                self.graph,
                f"{self.divided[1]} by {self.divided[0]}, {way}",
                f"{self.by[1]} by {self.by[0]}",
                table.ratio_text(ratio),
                f"{'≥' if self.is_least else '≤'} {self.bound:g}×",
                "reached" if is_reached else "missed",
            ]

    def _medians(self, records: Sequence[Record], system: str, question: str) -> dict[str, float]:
        """The median of every way that answered rightly; of several numbers of threads, the fastest."""
        found: dict[str, float] = {}
        for record in records:
            cell, outcome = record.cell, record.outcome
            is_meant = (cell.graph, cell.system, cell.question, cell.row) == (self.graph, system, question, "count")
            if is_meant and outcome.status == "ok" and outcome.median is not None:
                found[cell.way] = min(outcome.median, found.get(cell.way, outcome.median))
        return found


@dataclass(frozen=True, slots=True)
class Suite:
    """One comparison: which graphs, which questions, who answers them and for how long, and what its tables show.

    Attributes
    ----------
    name, summary : what it is called, and what it compares in one line
    title : of its tables; the summary where there is none
    graphs : generated and bundled ones, by name
    real : of the graphs that are here those of these names, or all of a data folder that have so many edges
    matrices : what is asked of whom; their cells are joined
    limit_seconds, repeats : for each stage of a cell and each repeat; how many of these there are at most
    counts : who is asked for a count; everybody where none is named
    too_slow : the graphs on which a system would take minutes or hours for anything but a count
    targets : ratios that are set against the measured ones
    tables : what they show, keys of `SECTIONS`
    paper : whose published numbers are shown beside ours, by its short name; nobody's where it is empty
    """

    name: str
    summary: str
    graphs: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    title: str = ""
    real: tuple[str, ...] | int = ()
    limit_seconds: float = 120.0
    repeats: int = MAX_REPEATS
    counts: tuple[str, ...] = ()
    too_slow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    tables: tuple[str, ...] = ("answers",)
    paper: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Where all matrices run."""
        return _union(matrix.devices for matrix in self.matrices)

    @property
    def questions(self) -> tuple[str, ...]:
        """What all matrices ask."""
        return _union(matrix.questions for matrix in self.matrices)

    @property
    def rows(self) -> tuple[str, ...]:
        """What all matrices time."""
        return _union(matrix.rows for matrix in self.matrices)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Those of our own that matrices name."""
        return _union(matrix.algorithms for matrix in self.matrices)

    @property
    def systems(self) -> tuple[str, ...]:
        """Who takes part in any matrix; nobody is named where everybody does."""
        everybody = any(not matrix.systems for matrix in self.matrices)
        return () if everybody else _union(matrix.systems for matrix in self.matrices)

    def with_systems(self, names: Sequence[str]) -> Suite:
        """The same with these alone; one that no matrix names joins the first one with what it has by itself."""
        kept = [
            replace(matrix, systems=tuple(name for name in names if not matrix.systems or name in matrix.systems))
            for matrix in self.matrices
        ]
        matrices = [matrix for matrix in kept if matrix.systems]
        known = {name for matrix in matrices for name in matrix.systems}
        others = tuple(name for name in names if name not in known)
        if others:
            devices = _union(_usual_devices(system) for system in choose_systems(list(others)))
            matrices.append(replace(self.matrices[0], systems=others, devices=devices, algorithms=(), knobs={}))
        return replace(self, matrices=tuple(matrices))

    def with_programs(self, programs: Sequence[SystemSource], rows: tuple[str, ...]) -> Suite:
        """The same, and these too: they count."""
        names, devices = (item.name for item in programs), _union(item.devices for item in programs)
        return replace(self, matrices=(*self.matrices, Matrix(systems=tuple(names), devices=devices, rows=rows)))

    def with_algorithms(self, names: Sequence[str]) -> Suite:
        """The same with these algorithms of our own, wherever we take part."""
        return self._with_ours(algorithms=tuple(names), knobs={})

    def with_devices(self, names: Sequence[str]) -> Suite:
        """The part of the suite on these devices; where it has not all of them, ours on each beside the others."""
        if not set(names) <= set(self.devices):
            return self._with_ours(devices=tuple(names))
        kept = (replace(item, devices=tuple(name for name in names if name in item.devices)) for item in self.matrices)
        return replace(self, matrices=tuple(item for item in kept if item.devices))

    def _with_ours(self, **changes: Any) -> Suite:
        if not any(matrix.is_ours for matrix in self.matrices):
            raise InputError(f"{self.name}: wedgewise does not take part; add --systems wedgewise")
        matrices = (replace(item, **changes) if item.is_ours else item for item in self.matrices)
        return replace(self, matrices=tuple(matrices))

    def wants(self, cell: Cell) -> bool:
        """Whether a cell of the matrix is run."""
        if cell.question == "count":
            return not self.counts or cell.system in self.counts
        return cell.graph not in self.too_slow.get(cell.system, ())

    def render(self, records: Sequence[Record]) -> str:
        """The tables of each machine, so that no ratio is of two."""
        return "\n".join(map(self._of_one_machine, table.by_machine(records)))

    def _of_one_machine(self, records: Sequence[Record]) -> str:
        """The tables, the targets as far as they were measured, and the numbers of the paper beside ours."""
        sections = [section for name in self.tables for section in SECTIONS[name](records)]
        rows = [row for target in self.targets for row in target.rows(records)]
        if rows:
            header = ["graph", "divided", "by", "ratio", "target", ""]
            sections.append(f"## Targets\n\n{table.markdown(header, rows)}")
        text = table.page(self.title or self.summary, records, sections)
        return f"{text}\n{papers.markdown(papers.load(self.paper), records)}" if self.paper else text


def _usual_devices(system: SystemSource) -> tuple[str, ...]:
    """The CPU where a system runs there, else wherever it does."""
    return ("cpu",) if "cpu" in system.devices else system.devices


def _union(values: Iterator[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in values for name in names))
