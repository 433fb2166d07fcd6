"""A product of systems, devices, algorithms, knobs, questions, rows and threads → cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from wedgewise.machine import hardware
from wedgewise_bench import runner
from wedgewise_bench.blocks import BlocksSystem
from wedgewise_bench.ours import Wedgewise
from wedgewise_bench.record import Cell
from wedgewise_bench.spec import Spec
from wedgewise_bench.systems import SystemSource, algorithms_on, by_algorithms, choose_systems
from wedgewise_bench.words import ROWS

EVERY = "all"
"""In place of a name: every algorithm of our own on the device."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A full product; what somebody does not answer, or not there, is left out of it.

    Attributes
    ----------
    systems : who takes part; everybody where none is named
    devices : where; systems take part on those that they have
    algorithms : of our own, each asked what it answers, with its knobs; `EVERY` stands for all of a device. Those of
        blocks are ways to cut. Other systems have their own
    knobs : values by name; every combination is added to every algorithm. Of ours, ``order`` and ``relabel`` may be
        among them
    questions, rows : what is asked, and how much of it is timed
    threads : how many each; all of this machine where none is named
    sweeps_threads : whether it runs with 1, 2, 4 … of them instead
    graphs : in place of those of the suite
    """

    systems: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu",)
    algorithms: tuple[str, ...] = ()
    questions: tuple[str, ...] = ("count",)
    rows: tuple[str, ...] = ("count",)
    threads: tuple[int, ...] = ()
    sweeps_threads: bool = False
    graphs: tuple[str, ...] = ()
    knobs: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)

    def cells(self, graphs: Sequence[str], programs: Iterable[SystemSource] = ()) -> Iterator[Cell]:
        """All cells on some graphs; `programs` are systems that may be named as well."""
        systems = choose_systems(list(self.systems), programs)
        for device in self.devices:
            taking_part = [self._with_ways(system, device) for system in systems if device in system.devices]
            threads = self.usual_threads[-1:] if device == "cuda" else self.usual_threads
            yield from runner.matrix(taking_part, graphs, self.rows, threads, self.questions, device)

    @property
    def usual_threads(self) -> tuple[int, ...]:
        """The numbers of threads, ascending."""
        if self.threads:
            return tuple(sorted(self.threads))
        most = hardware.usable_threads()
        powers = [2**power for power in range(most.bit_length()) if 2**power < most] if self.sweeps_threads else []
        return (*powers, most)

    @property
    def is_ours(self) -> bool:
        """Whether we take part ourselves."""
        return not self.systems or Wedgewise.name in self.systems

    def _with_ways(self, system: SystemSource, device: str) -> SystemSource:
        """A system with the algorithms that are named for it."""
        if system.name == BlocksSystem.name and self.algorithms:
            return replace(system, algorithms=tuple(self._with_knobs(self.algorithms)))
        if system.name != Wedgewise.name:
            return system
        return by_algorithms(system, self._with_knobs(self._there(device)), device)

    def _there(self, device: str) -> list[str]:
        """Our own algorithms on a device; one that another device has, but not this one, is left out."""
        there, anywhere = algorithms_on(device), {name for other in self.devices for name in algorithms_on(other)}
        named = [name for text in self.algorithms or ("auto",) for name in (there if text == EVERY else [text])]
        return [text for text in named if Spec.parse(text).name in there or Spec.parse(text).name not in anywhere]

    def _with_knobs(self, algorithms: Iterable[str]) -> list[str]:
        """Each algorithm with every combination of the knobs, once."""
        ways = [
            str(Spec(way.name, {**way.settings, **dict(zip(self.knobs, values, strict=True))}))
            for way in map(Spec.parse, algorithms)
            for values in product(*self.knobs.values())
        ]
        return list(dict.fromkeys(ways))


def joined(cells: Iterable[Cell]) -> list[Cell]:
    """Cells of several matrices, each once, by graph, question, row and threads in the order of their appearance."""
    each = list({cell.key: cell for cell in cells}.values())
    graphs = list(dict.fromkeys(cell.graph for cell in each))
    questions = list(dict.fromkeys(cell.question for cell in each))

    def place(cell: Cell) -> tuple[int, int, int, int]:
        return graphs.index(cell.graph), questions.index(cell.question), ROWS.index(cell.row), cell.threads

    return sorted(each, key=place)
