"""One way from a request to its `Result`: open the source, walk the ladder of homes, finish, verify.

    store ──────────────────────→ Disk, HybridStore or Cluster
    graph, file → Device → Memory ──no room→ cut → Disk, or HybridStore
                → Hybrid ──────────no room→

Where the GPU has no room, work goes on with smaller batches, then on the host; where that has none, from disk, for the
questions that stores answer. The plan's reasons say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import TRUSSES
from wedgewise.answer.fit import Shortage, in_memory
from wedgewise.answer.found import READING, Answered, Clock, Found, result_of
from wedgewise.answer.memory import Memory, compute, orient_and_plan
from wedgewise.answer.questions import QUESTIONS, in_edge_order
from wedgewise.answer.source import GraphFile, Source, graph_of, open_source
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.graph import Graph
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Tell, progress_bar
from wedgewise.result import Result
from wedgewise.run.plan import Plan, choose_place
from wedgewise.run.reduce import Computed
from wedgewise.run.request import OBJECT, TABLE, Request
from wedgewise.stages import CleanReport, OrientedGraph

T = TypeVar("T")
NUMBERS = (int, float, tuple)  # answers without labels: of the whole graph, and levels of trusses


def answer(request: Request) -> Result:
    """Answer a question about a source."""
    with answered(request) as found:
        return found.result


@contextmanager
def answered(request: Request) -> Iterator[Answered]:
    """The answer, whose rows may be on disk until the end of the block."""
    with progress_bar(request.progress) if request.progress else nullcontext() as tell:
        clock = Clock()
        source = open_source(request)
        if not isinstance(source, Graph | GraphFile):
            from wedgewise.answer.disk import answered_by_store

            clock.lap("open")
            with answered_by_store(request, source, tell, clock.laps["open"]) as found:
                yield found
            return
        outcome = in_memory(request, source, lambda: _in_memory(request, source, tell, clock))
        if isinstance(outcome, Answered):
            yield outcome
            return
        with _from_disk(outcome, tell) as found:
            yield found


def plan_for(request: Request) -> tuple[Plan, CleanReport | None]:
    """What `answer` would do, and what was read of the source for that; None where that is no whole graph."""
    source = open_source(request)
    if not isinstance(source, Graph | GraphFile):
        from wedgewise.answer.disk import plan_of_store

        return plan_of_store(request, source), None
    outcome = in_memory(request, source, lambda: _planned(request, source))
    if isinstance(outcome, tuple):
        return outcome
    from wedgewise.answer.cut import plan_from_disk

    return plan_from_disk(outcome), source.cleaned if isinstance(source, Graph) else None


def _planned(request: Request, source: Source) -> tuple[Plan, CleanReport]:
    """What would be done in memory, and what was read for that."""
    graph = graph_of(source, request)
    return _at_home(request, graph, Clock(), lambda home: home.plan), graph.cleaned


class Home(Protocol):
    """Where a question about a graph in memory is answered: it was prepared and planned for that."""

    @property
    def request(self) -> Request: ...

    @property
    def plan(self) -> Plan: ...

    def run(self, tell: Tell | None) -> Found:
        """What is computed as planned."""


def _at_home(request: Request, graph: Graph, clock: Clock, use: Callable[[Home], T]) -> T:
    """What comes of the home that was asked for, or of the first that has room: the GPU, then the CPU."""
    computes = QUESTIONS[request.question].computes(graph, request.details)
    place, reasons = choose_place(request, computes, graph)
    if place == "cpu":
        return use(Memory.prepare(request, graph, computes, reasons, clock))
    if place == "hybrid":
        from wedgewise.answer.hybrid import Hybrid

        return use(Hybrid.prepare(request, graph, computes, reasons, clock))
    from wedgewise.answer.device import Device

    try:
        return use(Device.prepare(request, graph, computes, reasons, clock))
    except DeviceMemoryError as error:
        host = _on_host(request, error)
        return use(Memory.prepare(host, graph, computes, (*reasons, host.because[-1]), clock))


def _on_host(request: Request, error: DeviceMemoryError) -> Request:
    """The same question for the CPU, by the same algorithm if it has one of that name."""
    because = *request.because, f"on the host, since the GPU has no room: {error.shortage}"
    if request.algorithm == "auto" or (request.algorithm, "cpu") in registry():
        return replace(request, device="cpu", knobs=None, because=because)
    return replace(request, device="cpu", algorithm="auto", order="auto", relabel="auto", knobs=None, because=because)


def _in_memory(request: Request, source: Source, tell: Tell | None, clock: Clock) -> Answered:
    """The whole way in memory."""
    graph = source if isinstance(source, Graph) else graph_of(source, request)
    if graph is not request.source:
        clock.lap(READING)
    if on_device := graph.take_device_seconds():
        clock.reading_without(on_device)
    if request.output is not None:
        _check_output(request.output, request.question, graph)

    def run(home: Home) -> Found:
        if home.request is not request:  # but the CPU instead of the GPU
            graph.release_device()
            clock.add(graph.take_device_seconds())
        return home.run(tell)

    found = _at_home(request, graph, clock, run)
    try:
        finished = _finished(found)
    except DeviceMemoryError as error:
        found = _at_home(_on_host(request, error), graph, clock, run)
        finished = _finished(found)
    if finished is not found.asked.computed.triangles:
        clock.lap("answer")
    verified = None
    if request.verify:
        verified = _verified(request, found)
        clock.lap("verify")
    result = result_of(
        found.plan,
        graph.cleaned,
        finished,
        clock.laps,
        tests=found.asked.computed.tests,
        verified=verified,
        graph=None if isinstance(finished, NUMBERS) else graph,
        timeline=found.timeline,
    )
    if result.graph is not request.source and result.graph is not None:
        graph.release()
    return Answered(result) if request.rows != TABLE else _with_rows(Answered(result), request, graph)


def _check_output(output: str, question: str, graph: Graph) -> None:
    """Refuse a file that could not hold the answer."""
    from wedgewise.answer.rows import ROWS
    from wedgewise.write.answers import check_labels

    check_labels(output, graph.labels, ROWS[question].ends)


def _with_rows(found: Answered, request: Request, graph: Graph) -> Answered:
    """The answer with its table."""
    from wedgewise.answer.rows import table_of

    table = table_of(request.question, graph, found.result.answer)
    return replace(found, table=lambda: table)


@memory_for("answer")
def _finished(found: Found) -> Any:
    """The answer, made of what was computed."""
    return QUESTIONS[found.plan.question].finish(found.asked)


@contextmanager
def _from_disk(shortage: Shortage, tell: Tell | None) -> Iterator[Answered]:
    """The answer as there would be in memory, with what happened instead among the reasons of its plan."""
    from wedgewise.answer.cut import cut
    from wedgewise.answer.disk import answered_by_store

    request, source = shortage.request, shortage.source
    if request.rows == OBJECT and isinstance(source, GraphFile):
        raise MemoryLimitError(f"{shortage.refusal}; with --output, rows are written from disk")
    with cut(shortage, tell) as blocks, answered_by_store(blocks.request, blocks.store, tell, 0.0) as found:
        told = blocks.told(found)
        yield _with_rows(told, request, source) if request.rows == TABLE and isinstance(source, Graph) else told


@memory_for("verify")
def _verified(request: Request, found: Found) -> str:
    """Check by another method, on the host, or raise; how it was done."""
    from wedgewise.answer import verify

    graph = found.asked.graph

    def again(computes: str, method: str, order: str, details: Mapping[str, Any]) -> tuple[OrientedGraph, Computed]:
        other = replace(request, device="cpu", algorithm=method, order=order, relabel="rank", knobs=None)
        oriented, plan = orient_and_plan(other, graph, computes)
        verify.check_arcs(oriented, graph)
        return oriented, compute(plan, oriented, details, None)

    def recount(method: str, order: str) -> int:
        return again("count", method, order, {})[1].triangles

    def truss_by(method: str, order: str, k: int) -> NDArray[np.bool_]:
        oriented, computed = again("k_truss", method, order, {"k": k})
        assert computed.work.filled is not None
        return in_edge_order(computed.work.filled, graph, oriented, np.empty(graph.m, np.bool_), found.plan.threads)

    if found.plan.computes in TRUSSES:
        return verify.verify_truss(found.asked, found.plan, truss_by)
    return verify.verify(found.asked, found.plan, recount)
