"""One way from a request to its `Result`: open the source, and walk down the ladder of homes to one with enough memory.

    store ──────────→ StoreHome: this process, with GPUs, or workers
    graph, file ────→ DeviceHome → MemoryHome → CutHome, which asks a store of its blocks
                      HybridHome ─────────────→ CutHome
                     MethodHome, where a method of its own finds what is asked

The first is the home that was asked for, or where the question is estimated to be answered soonest. A home is prepared,
which plans; then it answers. It says by an exception that memory is too small for it, at whichever of the two: then the
next one is tried, and the reasons of its plan say why.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol, TypeVar

from wedgewise.algorithms import registry
from wedgewise.answer.fit import OutOfMemory, foreseen, release_failed, too_little_memory
from wedgewise.answer.memory_home import MemoryHome
from wedgewise.answer.questions import QUESTIONS
from wedgewise.answer.response import Clock, ResultWithRows
from wedgewise.answer.source import GraphFile, GraphSource, graph_of, open_source
from wedgewise.errors import DeviceMemoryError
from wedgewise.graph import Graph
from wedgewise.machine import gpu
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.result import Result
from wedgewise.run.choose import COST, choose_device
from wedgewise.run.plan import Plan
from wedgewise.run.request import Request
from wedgewise.stages import CleanReport

READING = "read and clean"

Found = TypeVar("Found")


def answer(request: Request) -> Result:
    """Answer a question about a source."""
    with ExitStack() as held:
        return respond(request, held).result


def respond(request: Request, held: ExitStack) -> ResultWithRows:
    """The answer, whose rows may be on disk until `held` is closed."""
    progress = held.enter_context(progress_bar(request.progress)) if request.progress else None
    clock = Clock()
    if request.output is not None:
        from wedgewise.write.answers import answer_writer

        answer_writer(request.output)  # refuses a suffix without a format before anything is read
    with gpu.memory_of_an_answer():
        return _in_first_that_fits(request, clock, lambda home: home.respond(progress, clock, held))


def plan_for(request: Request) -> tuple[Plan, CleanReport | None]:
    """What `answer` would do, and what was read of the source for that; None where that is no whole graph."""
    return _in_first_that_fits(request, Clock(), lambda home: (home.plan, home.cleaned))


class Home(Protocol):
    """Where a question is answered."""

    @property
    def plan(self) -> Plan: ...

    @property
    def cleaned(self) -> CleanReport | None:
        """What was dropped from the graph that was read for the plan."""

    def respond(self, progress: Progress | None, clock: Clock, held: ExitStack) -> ResultWithRows:
        """The answer as planned."""


def _in_first_that_fits(request: Request, clock: Clock, use: Callable[[Home], Found]) -> Found:
    """What `use` makes of the first home that has enough memory for it."""
    source = open_source(request)
    if not isinstance(source, Graph | GraphFile):
        from wedgewise.answer.disk_homes import StoreHome

        return use(StoreHome(request, source))
    ladder = Ladder(request, source, clock)
    while True:
        try:
            return use(ladder.home())
        except MemoryError as error:
            ladder.step_down(error)


class Ladder:
    """The homes of a question about a graph, one at a time."""

    def __init__(self, request: Request, source: GraphSource, clock: Clock) -> None:
        self._request, self._source, self._clock = request, source, clock
        self._graph: Graph | None = None
        self._device: str | None = None  # of the home that is tried, and why it is
        self._reasons: tuple[str, ...] = ()
        self._full_gpu: DeviceMemoryError | None = None
        self._too_large: OutOfMemory | None = foreseen(request, source) if isinstance(source, GraphFile) else None

    def home(self) -> Home:
        """The home that is tried now, prepared."""
        if self._too_large is not None:
            from wedgewise.answer.disk_homes import CutHome

            return CutHome(self._too_large)
        request = self._request
        if self._graph is None:
            self._graph = self._read()
        computes = QUESTIONS[request.question].computes(self._graph, request.details)
        if self._device is None:
            self._device, self._reasons = choose_device(request, computes, self._graph)
        if self._device == "cuda":
            from wedgewise.answer.device_home import DeviceHome

            return DeviceHome.prepare(request, self._graph, computes, self._reasons)
        if self._device == "hybrid":
            from wedgewise.answer.hybrid_home import HybridHome

            return HybridHome.prepare(request, self._graph, self._reasons)
        if computes not in COST:
            from wedgewise.answer.method_home import MethodHome

            return MethodHome.prepare(request, self._graph, computes, self._reasons)
        if self._full_gpu is None:
            return MemoryHome.prepare(request, self._graph, computes, self._reasons)
        return MemoryHome.prepare(_for_cpu(request), self._graph, computes, self._reasons, leaves_gpu=True)

    def step_down(self, error: MemoryError) -> None:
        """Turn to the next home, or raise where there is none that takes less of what there was too little of."""
        is_of_gpu = isinstance(error, DeviceMemoryError)
        if self._too_large is not None or (is_of_gpu and self._device != "cuda"):
            raise error
        release_failed(error)
        if isinstance(error, DeviceMemoryError):
            self._device, self._full_gpu = "cpu", error
            self._reasons = (*self._reasons, f"on the CPU, because the GPU has too little memory: {error.reason}")
            return
        self._too_large = too_little_memory(self._request, self._source, error, self._full_gpu)
        self._graph = None

    def _read(self) -> Graph:
        """The graph; the clock gets the seconds of reading and cleaning."""
        graph, clock, request = graph_of(self._source, self._request), self._clock, self._request
        cleaned_on_gpu = graph.take_device_seconds()
        if graph is not request.source:
            clock.lap(READING)
            clock.laps[READING] -= sum(cleaned_on_gpu.values())
        if cleaned_on_gpu:
            clock.add(cleaned_on_gpu)
        if request.output is not None:
            from wedgewise.answer.rows import check_output

            check_output(request.output, request.question, graph.labels)
        return graph


def _for_cpu(request: Request) -> Request:
    """What a GPU was asked, for the CPU: by the same algorithm if it has one of that name."""
    request = replace(request, device="cpu", knobs=None)
    if request.algorithm != "auto" and (request.algorithm, "cpu") not in registry():
        return replace(request, algorithm="auto", order="auto", relabel="auto")
    return request
