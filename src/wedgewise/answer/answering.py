"""One way from a request to its `Result`: open the source, walk the ladder of homes, finish, verify.

    store ──────────────────────→ disk, hybrid or cluster
    graph, file → DeviceHome → MemoryHome ──too little memory→ cut → disk, or hybrid
                → HybridHome ──────────────too little memory→

If the GPU runs out of memory, the work is done in smaller batches; then the CPU takes over. If that has too little
memory as well, a question that stores answer is answered from disk. The plan's reasons say so.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol

from wedgewise.answer.fit import OutOfMemory, try_in_memory
from wedgewise.answer.memory_home import MemoryHome
from wedgewise.answer.questions import QUESTIONS, WITHOUT_LABELS, AnswerContext
from wedgewise.answer.response import Clock, ResultWithRows, result_of
from wedgewise.answer.source import GraphFile, GraphSource, graph_of, open_source
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.graph import Graph
from wedgewise.machine import gpu
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.result import Result
from wedgewise.run.choose import choose_device
from wedgewise.run.plan import Plan
from wedgewise.run.request import OBJECT, TABLE, Request
from wedgewise.stages import CleanReport

READING = "read and clean"


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
    source = open_source(request)
    if isinstance(source, Graph | GraphFile):
        with gpu.memory_of_an_answer():
            outcome = try_in_memory(request, source, lambda: _answer_graph(request, source, progress, clock))
        return outcome if isinstance(outcome, ResultWithRows) else _from_disk(outcome, progress, held)
    from wedgewise.answer.disk import answer_store

    return answer_store(request, source, progress, clock, held)


def plan_for(request: Request) -> tuple[Plan, CleanReport | None]:
    """What `answer` would do, and what was read of the source for that; None where that is no whole graph."""
    source = open_source(request)
    if not isinstance(source, Graph | GraphFile):
        from wedgewise.answer.disk import plan_of_store

        return plan_of_store(request, source), None
    outcome = try_in_memory(request, source, lambda: _planned(request, source))
    if isinstance(outcome, tuple):
        return outcome
    from wedgewise.answer.cut import plan_from_disk

    return plan_from_disk(outcome), source.cleaned if isinstance(source, Graph) else None


def _planned(request: Request, source: GraphSource) -> tuple[Plan, CleanReport]:
    """What would be done in memory, and what was read for that."""
    graph = graph_of(source, request)
    return prepare_home(request, graph).plan, graph.cleaned


class Home(Protocol):
    """Where a question about a graph in memory is answered: it was prepared and planned for that."""

    @property
    def request(self) -> Request: ...

    @property
    def plan(self) -> Plan: ...

    def run(self, progress: Progress | None, clock: Clock) -> AnswerContext:
        """What is computed as planned."""


def prepare_home(request: Request, graph: Graph) -> Home:
    """The home that was asked for, or the first that has memory for it: the GPU, then the CPU."""
    computes = QUESTIONS[request.question].computes(graph, request.details)
    device, reasons = choose_device(request, computes, graph)
    if device == "cpu":
        return MemoryHome.prepare(request, graph, computes, reasons)
    if device == "hybrid":
        from wedgewise.answer.hybrid_home import HybridHome

        return HybridHome.prepare(request, graph, reasons)
    from wedgewise.answer.device_home import DeviceHome

    return DeviceHome.prepare(request, graph, computes, reasons)


def _answer_graph(request: Request, source: GraphSource, progress: Progress | None, clock: Clock) -> ResultWithRows:
    """The whole way in memory."""
    graph = graph_of(source, request)
    cleaned_on_gpu = graph.take_device_seconds()
    if graph is not request.source:
        clock.lap(READING)
        clock.laps[READING] -= sum(cleaned_on_gpu.values())
    if cleaned_on_gpu:
        clock.add(cleaned_on_gpu)
    if request.output is not None:
        from wedgewise.answer.rows import check_output

        check_output(request.output, request.question, graph.labels)
    context, answer = _computed(prepare_home(request, graph), request, graph, progress, clock)
    if request.question != "count":
        clock.lap("answer")
    verified = None
    if request.verify:
        from wedgewise.answer.verify import verify

        verified = verify(context)
        clock.lap("verify")
    labelled = None if request.question in WITHOUT_LABELS else graph
    result = result_of(
        context.plan,
        graph.cleaned,
        answer,
        clock.laps,
        tests=context.computed.tests,
        verified=verified,
        graph=labelled,
        timeline=context.timeline,
    )
    if labelled is not None and graph is not request.source:
        graph.release()
    return ResultWithRows(result) if request.rows != TABLE else _with_rows(ResultWithRows(result), request, graph)


def _computed(
    home: Home, request: Request, graph: Graph, progress: Progress | None, clock: Clock
) -> tuple[AnswerContext, Any]:
    """What a home computes, and the answer that follows; if the GPU runs out of memory, the CPU takes over."""
    if home.request.device != request.device:  # it has taken over
        graph.release_device()
        clock.add(graph.take_device_seconds())
    try:
        context = home.run(progress, clock)
        with memory_for("answer"):
            return context, QUESTIONS[request.question].finish(context)
    except DeviceMemoryError as error:
        from wedgewise.answer.device_home import DeviceHome

        if not isinstance(home, DeviceHome):
            raise
        return _computed(home.cpu_instead(error), request, graph, progress, clock)


def _with_rows(response: ResultWithRows, request: Request, graph: Graph) -> ResultWithRows:
    """The answer with its table."""
    from wedgewise.answer.rows import table_of

    table = table_of(request.question, graph, response.result.answer)
    return replace(response, table=lambda: table)


def _from_disk(too_large: OutOfMemory, progress: Progress | None, held: ExitStack) -> ResultWithRows:
    """The answer as there would be in memory, with what happened instead among the reasons of its plan."""
    from wedgewise.answer.cut import cut
    from wedgewise.answer.disk import answer_store

    request, source = too_large.request, too_large.source
    if request.rows == OBJECT and isinstance(source, GraphFile):
        raise MemoryLimitError(f"{too_large.refusal}; with --output, rows are written from disk")
    blocks = held.enter_context(cut(too_large, progress))
    response = blocks.as_of_graph(answer_store(blocks.request, blocks.store, progress, Clock(), held))
    return _with_rows(response, request, source) if request.rows == TABLE and isinstance(source, Graph) else response
