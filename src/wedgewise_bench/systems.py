"""What a system that takes part in the comparison offers, and which ones there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find, registry
from wedgewise.algorithms._contract import Algorithm
from wedgewise.errors import PreconditionError, UnknownNameError
from wedgewise.run._hybrid_plan import pair_up
from wedgewise.run.choose import engine_for
from wedgewise_bench import blocks, cugraph, lagraph, ours, peers
from wedgewise_bench.digest import Frame
from wedgewise_bench.spec import Spec
from wedgewise_bench.words import QUESTIONS


class System(Protocol):
    """A counter of triangles: ourselves, a peer, or a dummy that tests the harness.

    It may answer further questions, by methods of the same names and parameters as `count`, and the question's own
    behind them. Each returns what the library hands out, whatever its type; `values` and `frame`, which are not timed,
    make it comparable.

    Its source file is loaded by path in the child process, so it imports nothing but the standard library
    at its top: the system's own library is imported by `load`, whose ModuleNotFoundError means that it is not
    installed.

    It may also have, each as a method that is called where it is there:

        why_unavailable()                     after `load`: why it cannot answer here, or None
        prepare_question(question, prepared)  before a question to a loaded graph is timed: what can be done once
        measured()                            after each answer, about it: ``seconds`` in place of those by the child's
                                              clock, ``stages`` as in an `Outcome`, ``edges`` of the simple graph
        facts(prepared)                       at the end: what else is recorded, by the names of `words.FACTS`

    One with a class attribute ``devices``, some of `words.DEVICES`, is told by ``device=`` where it is to run.

    Attributes
    ----------
    name : the column of the table
    package : the distribution whose version is recorded
    algorithms : the ways to answer that are worth comparing; the table shows the fastest
    warms_up : whether a first answer compiles or prepares something, so that it is not to be timed
    """

    name: ClassVar[str]
    package: ClassVar[str]
    algorithms: ClassVar[tuple[str, ...]]
    warms_up: ClassVar[bool]

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None: ...

    def load(self) -> None:
        """Import the library and set its threads."""

    def prepare(self, pairs: NDArray[Any]) -> Any:
        """Raw integer pairs (loops and duplicates included) to the structure that `count` takes."""

    def prepare_file(self, path: str) -> Any:
        """The same from a text edge list."""

    def count(self, prepared: Any) -> int:
        """The exact number of triangles."""

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        """An answer as `digest.summarise` takes it, in the order of `frame`."""

    def frame(self, prepared: Any) -> Frame:
        """The original ids of the vertices, their degrees, and the edges."""


@dataclass(frozen=True, slots=True)
class SystemSource:
    """Where a system's class is, and what the runner needs to know without loading its library.

    Algorithms are written with their knobs; ``partial`` has those of the questions that not all of them answer. One
    that takes part ``only_by_name`` is none of those that are compared where nobody is named. ``devices`` are those on
    which it runs. ``version`` is recorded where the package is none whose version could be asked for.
    """

    name: str
    package: str
    algorithms: tuple[str, ...]
    source: Path
    questions: tuple[str, ...] = ("count",)
    partial: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only_by_name: bool = False
    devices: tuple[str, ...] = ("cpu",)
    version: str = ""

    def ways(self, question: str) -> tuple[str, ...]:
        """The algorithms that answer a question."""
        return self.partial.get(question, self.algorithms) if question in self.questions else ()


def systems_in(module: ModuleType) -> list[SystemSource]:
    """Every class of a module that names its `package`, in the order of the file."""
    assert module.__file__ is not None
    source = Path(module.__file__).resolve()
    members = vars(module).values()
    classes: list[Any] = [item for item in members if isinstance(item, type) and hasattr(item, "package")]
    return [
        SystemSource(
            item.name,
            item.package,
            item.algorithms,
            source,
            _questions_of(item),
            only_by_name=getattr(item, "only_by_name", False),
            devices=getattr(item, "devices", ("cpu",)),
        )
        for item in classes
    ]


def _questions_of(system: type) -> tuple[str, ...]:
    """The questions for which a system has a method."""
    return tuple(question for question in QUESTIONS if hasattr(system, question))


def all_systems() -> dict[str, SystemSource]:
    """Ourselves first, then the peers, then our own blocks."""
    return {item.name: item for module in (ours, peers, lagraph, cugraph, blocks) for item in systems_in(module)}


def choose_systems(names: list[str] | None, more: Iterable[SystemSource] = ()) -> list[SystemSource]:
    """The named systems, or all of them but those that take part only by name; `more` are known as well."""
    known = all_systems() | {item.name: item for item in more}
    for name in names or []:
        if name not in known:
            raise UnknownNameError(f"no system named {name!r}; there are: {', '.join(known)}")
    return [known[name] for name in names or (item.name for item in known.values() if not item.only_by_name)]


def by_algorithms(system: SystemSource, algorithms: Sequence[str], device: str = "cpu") -> SystemSource:
    """Ourselves with these algorithms, each asked what it answers there; their names and settings are checked."""
    answered = {text: questions_by(Spec.parse(text), device) for text in algorithms}
    partial = {
        question: tuple(text for text, questions in answered.items() if question in questions)
        for question in system.questions
    }
    return replace(system, algorithms=tuple(algorithms), partial=partial)


def algorithms_on(device: str) -> list[str]:
    """Every algorithm of our own on a device; of the hybrid, those that count blocks on a GPU."""
    if device != "hybrid":
        return [name for name, where in registry() if where == device]
    return [name for (name, where), algorithm in registry().items() if where == "cuda" and "count" in algorithm.triples]


def questions_by(way: Spec, device: str = "cpu") -> tuple[str, ...]:
    """The questions that one of our algorithms, or the best of them, answers on a device."""
    knobs, orienting = ours.parted(way.settings)
    if device == "hybrid":
        pair_up(way.name, knobs)
        _check_orientation(find(ENGINE, "cpu"), orienting)
        return tuple(question for question in QUESTIONS if _computed(question) == "count")
    if way.name != "auto":
        algorithm = find(way.name, device)
        algorithm.settings(knobs)
        _check_orientation(algorithm, orienting)
        return tuple(question for question in QUESTIONS if _computed(question) in algorithm.answers)
    engines = {question: registry().get((engine_for(_computed(question)), device)) for question in QUESTIONS}
    able = {
        question: engine for question, engine in engines.items() if engine and _computed(question) in engine.answers
    }
    return tuple(question for question, engine in able.items() if not _why_not_oriented(engine, orienting))


def _check_orientation(algorithm: Algorithm, orienting: Mapping[str, Any]) -> None:
    if why := _why_not_oriented(algorithm, orienting):
        raise PreconditionError(why)


def _why_not_oriented(algorithm: Algorithm, orienting: Mapping[str, Any]) -> str:
    """Which order or relabelling an algorithm does not take, and those that it does; empty where it takes all."""
    taken = {"order": algorithm.orders, "relabel": algorithm.relabellings}
    wrong = [name for name, value in orienting.items() if value not in taken[name]]
    listed = (f"{name}={orienting[name]}, only {', '.join(taken[name])}" for name in wrong)
    return f"{algorithm.name} on {algorithm.device} does not take {'; nor '.join(listed)}" if wrong else ""


def _computed(question: str) -> str:
    return ours.COMPUTED.get(question, question)
