"""One way from a request to its `Result`: open the source, walk the ladder of homes, finish, verify.

    store ──────────────────────→ disk, hybrid or cluster
    graph, file → Device → Memory ──no room→ cut → disk, or hybrid
                → Hybrid ──────────no room→

Where the GPU has no room, work goes on with smaller batches, then on the host; where that has none, from disk, for the
questions that stores answer. The plan's reasons say so.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from wedgewise.algorithms import registry
from wedgewise.answer.fit import OutOfMemory, in_memory
from wedgewise.answer.memory import Memory
from wedgewise.answer.questions import QUESTIONS, Computation
from wedgewise.answer.response import Clock, Response, result_of
from wedgewise.answer.source import GraphFile, Source, graph_of, open_source
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.graph import Graph
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.result import Result
from wedgewise.run.plan import Plan, choose_device
from wedgewise.run.request import OBJECT, TABLE, Request
from wedgewise.stages import CleanReport

T = TypeVar("T")
NUMBERS = (int, float, tuple)  # answers without labels: of the whole graph, and levels of trusses
READING = "read and clean"


def answer(request: Request) -> Result:
    """Answer a question about a source."""
    with ExitStack() as held:
        return respond(request, held).result


def respond(request: Request, held: ExitStack) -> Response:
    """The answer, whose rows may be on disk until `held` is closed."""
    progress = held.enter_context(progress_bar(request.progress)) if request.progress else None
    clock = Clock()
    if request.output is not None:
        from wedgewise.write.answers import answer_writer

        answer_writer(request.output)  # refuses a suffix without a format before anything is read
    source = open_source(request)
    if isinstance(source, Graph | GraphFile):
        found = in_memory(request, source, partial(_in_memory, request, source, progress, clock))
        return found if isinstance(found, Response) else _from_disk(found, progress, held)
    from wedgewise.answer.disk import answer_store

    return answer_store(request, source, progress, clock, held)


def plan_for(request: Request) -> tuple[Plan, CleanReport | None]:
    """What `answer` would do, and what was read of the source for that; None where that is no whole graph."""
    source = open_source(request)
    if not isinstance(source, Graph | GraphFile):
        from wedgewise.answer.disk import plan_of_store

        return plan_of_store(request, source), None
    outcome = in_memory(request, source, partial(_planned, request, source))
    if isinstance(outcome, tuple):
        return outcome
    from wedgewise.answer.cut import plan_from_disk

    return plan_from_disk(outcome), source.cleaned if isinstance(source, Graph) else None


def _planned(request: Request, source: Source) -> tuple[Plan, CleanReport]:
    """What would be done in memory, and what was read for that."""
    graph = graph_of(source, request)
    return _at_home(request, graph, lambda home: home.plan), graph.cleaned


class Home(Protocol):
    """Where a question about a graph in memory is answered: it was prepared and planned for that."""

    @property
    def request(self) -> Request: ...

    @property
    def plan(self) -> Plan: ...

    def run(self, progress: Progress | None, clock: Clock) -> Computation:
        """What is computed as planned."""


def _at_home(request: Request, graph: Graph, use: Callable[[Home], T]) -> T:
    """What comes of the home that was asked for, or of the first that has room: the GPU, then the CPU."""
    computes = QUESTIONS[request.question].computes(graph, request.details)
    place, reasons = choose_device(request, computes, graph)
    if place == "cpu":
        return use(Memory.prepare(request, graph, computes, reasons))
    if place == "hybrid":
        from wedgewise.answer.hybrid import Hybrid

        return use(Hybrid.prepare(request, graph, computes, reasons))
    from wedgewise.answer.device import Device

    try:
        return use(Device.prepare(request, graph, computes, reasons))
    except DeviceMemoryError as error:
        why = f"on the host, since the GPU has no room: {error.shortage}"
        return use(Memory.prepare(_on_host(request, why), graph, computes, (*reasons, why)))


def _on_host(request: Request, why: str) -> Request:
    """The same question for the CPU, by the same algorithm if it has one of that name."""
    request = replace(request, device="cpu", knobs=None, because=(*request.because, why))
    if request.algorithm == "auto" or (request.algorithm, "cpu") in registry():
        return request
    return replace(request, algorithm="auto", order="auto", relabel="auto")


def _in_memory(request: Request, source: Source, progress: Progress | None, clock: Clock) -> Response:
    """The whole way in memory."""
    graph = source if isinstance(source, Graph) else graph_of(source, request)
    on_device = graph.take_device_seconds()
    if graph is not request.source:
        clock.lap(READING)
        clock.laps[READING] -= sum(on_device.values())
    if on_device:
        clock.add(on_device)
    if request.output is not None:
        _check_output(request.output, request.question, graph)

    def compute(home: Home) -> tuple[Computation, Any]:
        if home.request is not request:  # but the CPU instead of the GPU
            graph.release_device()
            clock.add(graph.take_device_seconds())
        found = home.run(progress, clock)
        with memory_for("answer"):
            return found, QUESTIONS[request.question].finish(found)

    found, finished = _at_home(request, graph, compute)
    if finished is not found.computed.triangles:
        clock.lap("answer")
    verified = None
    if request.verify:
        from wedgewise.answer.verify import verify

        verified = verify(found)
        clock.lap("verify")
    labelled = None if isinstance(finished, NUMBERS) else graph
    result = result_of(
        found.plan,
        graph.cleaned,
        finished,
        clock.laps,
        tests=found.computed.tests,
        verified=verified,
        graph=labelled,
        timeline=found.timeline,
    )
    if labelled is not None and graph is not request.source:
        graph.release()
    return Response(result) if request.rows != TABLE else _with_rows(Response(result), request, graph)


def _check_output(output: str, question: str, graph: Graph) -> None:
    """Refuse a file that could not hold the answer."""
    from wedgewise.answer.rows import ROWS
    from wedgewise.write.answers import check_labels

    check_labels(output, graph.labels, ROWS[question].ends)


def _with_rows(response: Response, request: Request, graph: Graph) -> Response:
    """The answer with its table."""
    from wedgewise.answer.rows import table_of

    table = table_of(request.question, graph, response.result.answer)
    return replace(response, table=lambda: table)


def _from_disk(too_large: OutOfMemory, progress: Progress | None, held: ExitStack) -> Response:
    """The answer as there would be in memory, with what happened instead among the reasons of its plan."""
    from wedgewise.answer.cut import cut
    from wedgewise.answer.disk import answer_store

    request, source = too_large.request, too_large.source
    if request.rows == OBJECT and isinstance(source, GraphFile):
        raise MemoryLimitError(f"{too_large.refusal}; with --output, rows are written from disk")
    blocks = held.enter_context(cut(too_large, progress))
    response = blocks.as_of_graph(answer_store(blocks.request, blocks.store, progress, Clock(), held))
    return _with_rows(response, request, source) if request.rows == TABLE and isinstance(source, Graph) else response
