"""One question, from its source to the `Result`: clean, orient, plan, execute, reduce, finish, verify.

Where the GPU has no room, work goes on with smaller batches, then on the host; where that has none, from disk, for the
questions that stores answer. The plan's reasons say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import TRUSSES, Shape, TrussJob
from wedgewise.answer.questions import Asked, Question, in_edge_order
from wedgewise.answer.room import Source, graph_of, in_memory, source_of
from wedgewise.errors import DeviceMemoryError, PreconditionError
from wedgewise.graph import Graph
from wedgewise.machine import gpu, hardware
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.result import Result
from wedgewise.run.plan import (
    Options,
    Plan,
    check_preparation,
    choose_order_of_blocks,
    choose_orientation,
    choose_place,
    make_device_plan,
    make_plan,
    with_more_batches,
)
from wedgewise.run.reduce import Computed, reduce, reduce_truss
from wedgewise.stages import CleanReport, DeviceGraph, OrientedGraph
from wedgewise.store.manifest import is_store
from wedgewise.version import __version__

if TYPE_CHECKING:
    from wedgewise.prepare.device_forms import DeviceForms
    from wedgewise.run.hybrid import Hybrid
    from wedgewise.run.timeline import Timeline

Progress = Callable[[str, int, int], None] | bool | None
Tell = Callable[[str, int, int], None] | None


def answer(
    question: Question, source: Any, options: Options, progress: Progress, verify: bool, details: Mapping[str, Any]
) -> Result:
    """Answer a question about a source."""
    checked = question.details(details)
    if is_store(source):
        from wedgewise.answer.stores import answer_store

        return answer_store(question.name, source, options, progress, verify, k=checked.get("k"))
    if options.cluster is not None or options.workers is not None:
        raise PreconditionError("workers count stores: make one with `wedgewise partition`, and name its folder")
    with _bar(progress) as tell:
        clock = _Clock()
        held = source_of(source, options)
        if isinstance(held, Graph) and held is not source:
            clock.lap("read and clean")
        found = in_memory(
            question, held, options, lambda: _answered(question, held, options, tell, verify, details, clock)
        )
        if isinstance(found, Result):
            if isinstance(found.graph, Graph) and found.graph is not source:
                found.graph.release()
            return found
        from wedgewise.answer.disk import answer_from_disk

        return answer_from_disk(found, tell, verify, checked.get("k"))


def answer_in_memory(
    question: Question, graph: Graph, options: Options, tell: Tell, verify: bool, details: Mapping[str, Any]
) -> Result:
    """Answer a question about a graph that is held, or raise where memory has no room for that."""
    return _answered(question, graph, options, tell, verify, details, _Clock())


def _answered(
    question: Question,
    source: Source,
    options: Options,
    tell: Tell,
    verify: bool,
    details: Mapping[str, Any],
    clock: _Clock,
) -> Result:
    """The whole way in memory."""
    graph = graph_of(source, options)
    if graph is not source:
        clock.lap("read and clean")
    on_device = graph.take_device_seconds()
    computed = _compute(question, graph, options, details, tell)
    clock.skip()
    try:
        finished = _finished(question, computed)
    except DeviceMemoryError as error:
        computed = _compute(question, graph, _on_host(options, error), details, tell)
        clock.skip()
        finished = _finished(question, computed)
    if finished is not computed.asked.computed.triangles:
        clock.lap("answer")
    verified = None
    if verify:
        verified = _verified(question, computed, options)
        clock.lap("verify")
    return Result(
        answer=finished,
        question=question.name,
        algorithm=computed.plan.algorithm,
        device=computed.plan.device,
        plan=computed.plan,
        seconds=_in_order(clock.laps, on_device, computed.seconds),
        n=graph.n,
        m=graph.m,
        cleaned=graph.cleaned,
        wedges_tested=computed.asked.computed.tests,
        verified=verified,
        peak_bytes=hardware.peak_bytes(),
        machine=hardware.look().description,
        version=__version__,
        timeline=computed.timeline,
        graph=graph if _has_rows(finished) else None,
    )


def _has_rows(answer: Any) -> bool:
    """Whether an answer is about vertices or edges, which have labels; numbers and levels of trusses are not."""
    return not isinstance(answer, int | float | tuple)


def plan_for(question: Question, source: Any, options: Options, details: Mapping[str, Any]) -> Plan:
    """What `answer` would do."""
    return plan_and_report(question, source, options, details)[0]


def plan_and_report(
    question: Question, source: Any, options: Options, details: Mapping[str, Any]
) -> tuple[Plan, CleanReport | None]:
    """What `answer` would do, and what was read of the source for that; None where that is no whole graph."""
    checked = question.details(details)
    if is_store(source):
        from wedgewise.answer.stores import plan_store

        return plan_store(question.name, source, options, k=checked.get("k")), None
    held = source_of(source, options)

    def work() -> tuple[Plan, CleanReport]:
        graph = graph_of(held, options)
        return _planned(question, graph, options, details), graph.cleaned

    found = in_memory(question, held, options, work)
    if isinstance(found, tuple):
        return found
    from wedgewise.answer.disk import plan_from_disk

    return plan_from_disk(found), held.cleaned if isinstance(held, Graph) else None


def _planned(question: Question, graph: Graph, options: Options, details: Mapping[str, Any]) -> Plan:
    """What would be done in memory."""
    computes = question.computes(graph, question.details(details))
    options, place = choose_place(options, computes, graph)
    if place == "hybrid":
        return _prepare_hybrid(question, graph, options)[1].plan
    if place == "cuda":
        try:
            return _prepare_on_device(computes, graph, options, question)[1]
        except DeviceMemoryError as error:
            options = _on_host(options, error)
    return _prepare(question, computes, graph, options)[1]


@dataclass(frozen=True, slots=True)
class Answered:
    """What was computed, as planned; seconds by stage; of a hybrid count, what ran where and when."""

    asked: Asked
    plan: Plan
    seconds: dict[str, float]
    timeline: Timeline | None = None


def _compute(question: Question, graph: Graph, options: Options, details: Mapping[str, Any], tell: Tell) -> Answered:
    """Orient and compute; the answer is still to be made of it."""
    details = question.details(details)
    computes = question.computes(graph, details)
    options, place = choose_place(options, computes, graph)
    if place == "cpu":
        return _compute_on_host(question, computes, graph, options, details, tell)
    if place == "hybrid":
        return _compute_hybrid(question, graph, options, details, tell)
    try:
        return _compute_on_device(question, computes, graph, options, details, tell)
    except DeviceMemoryError as error:
        graph.release_device()
        answered = _compute_on_host(question, computes, graph, _on_host(options, error), details, tell)
        return replace(answered, seconds=_summed(graph.take_device_seconds(), answered.seconds))


@memory_for("answer")
def _finished(question: Question, computed: Answered) -> Any:
    """The answer, made of what was computed."""
    return question.finish(computed.asked)


def _on_host(options: Options, error: DeviceMemoryError) -> Options:
    """The same question for the host, by the same algorithm if it has one of that name."""
    because = *options.because, f"on the host, since the GPU has no room: {error.shortage}"
    if options.algorithm == "auto" or (options.algorithm, "cpu") in registry():
        return replace(options, device="cpu", knobs=None, because=because)
    return replace(options, device="cpu", algorithm="auto", order="auto", relabel="auto", knobs=None, because=because)


def _compute_on_host(
    question: Question, computes: str, graph: Graph, options: Options, details: Mapping[str, Any], tell: Tell
) -> Answered:
    clock = _Clock()
    oriented, plan = _prepare(question, computes, graph, options)
    if computes == "weighted_triangles":
        strengths = _strengths(graph, oriented, details["weighted"], plan.threads)
        oriented = replace(oriented, strengths=strengths)
    clock.lap("orient")
    computed = _run_on_host(plan, oriented, details, tell)
    clock.lap("truss" if computes in TRUSSES else "count")
    return Answered(Asked(graph, oriented, computed, details, plan.threads, options), plan, clock.laps)


def _compute_on_device(
    question: Question, computes: str, graph: Graph, options: Options, details: Mapping[str, Any], tell: Tell
) -> Answered:
    """The same on the GPU, in more batches when memory runs out."""
    oriented, plan = _prepare_on_device(computes, graph, options, question)
    while True:
        try:
            computed, taken = _run_on_device(plan, oriented, graph.device_forms, details, tell)
            break
        except DeviceMemoryError as error:
            plan = with_more_batches(plan, error)
    seconds = {**graph.device_forms.take_seconds(), **taken}
    return Answered(Asked(graph, None, computed, details, plan.threads, options), plan, seconds)


def _compute_hybrid(
    question: Question, graph: Graph, options: Options, details: Mapping[str, Any], tell: Tell
) -> Answered:
    """Count by blocks, on GPUs and threads together."""
    clock = _Clock()
    oriented, hybrid = _prepare_hybrid(question, graph, options)
    clock.lap("orient and cut")
    run = hybrid.run(tell)
    clock.lap("count")
    asked = Asked(graph, oriented, reduce(run.execution, run.plan), details, run.plan.threads, options)
    return Answered(asked, run.plan, clock.laps, run.timeline)


def _prepare_hybrid(question: Question, graph: Graph, options: Options) -> tuple[OrientedGraph, Hybrid]:
    from wedgewise.run.hybrid import plan_graph

    check_preparation(graph.n, graph.m, options)
    oriented = graph.oriented(choose_order_of_blocks(options, graph), "rank", threads=options.threads)
    return oriented, plan_graph(question.name, oriented, options)


def _run_on_host(plan: Plan, oriented: OrientedGraph, details: Mapping[str, Any], tell: Tell) -> Computed:
    """Execute a plan, and check what comes of it."""
    from wedgewise.run.local import execute
    from wedgewise.run.trusses import find_truss

    if plan.computes in TRUSSES:
        return reduce_truss(find_truss(plan, oriented, _job(plan, details, tell)), plan)
    return reduce(execute(plan, oriented, _counting(tell)), plan)


def _run_on_device(
    plan: Plan, oriented: DeviceGraph, forms: DeviceForms, details: Mapping[str, Any], tell: Tell
) -> tuple[Computed, dict[str, float]]:
    """The same on the GPU, and its seconds by stage."""
    from wedgewise.run.device import execute_on_device
    from wedgewise.run.trusses import find_truss_on_device

    if plan.computes in TRUSSES:
        found, seconds = find_truss_on_device(plan, oriented, forms, _job(plan, details, tell))
        return reduce_truss(found, plan), seconds
    execution = execute_on_device(plan, oriented, forms, _counting(tell))
    return reduce(execution, plan), execution.seconds


def _job(plan: Plan, details: Mapping[str, Any], tell: Tell) -> TrussJob:
    return TrussJob(details.get("k"), plan.knobs, plan.threads, tell)


def _counting(tell: Tell) -> Callable[[int, int], None] | None:
    return None if tell is None else lambda done, tasks: tell("count", done, tasks)


def _prepare(question: Question, computes: str, graph: Graph, options: Options) -> tuple[OrientedGraph, Plan]:
    order, relabel = choose_orientation(options, "cpu", computes, graph)
    check_preparation(graph.n, graph.m, options)
    oriented = graph.oriented(order, relabel, threads=options.threads)
    shape = Shape(oriented.n, oriented.m, oriented.wedges)
    answer_bytes = question.answer_bytes(computes, graph.n, graph.m)
    return oriented, make_plan(question.name, computes, shape, order, relabel, options, answer_bytes)


def _prepare_on_device(computes: str, graph: Graph, options: Options, question: Question) -> tuple[DeviceGraph, Plan]:
    order, relabel = choose_orientation(options, "cuda", computes, graph)
    oriented = graph.on_device(order, relabel)
    shape = Shape(oriented.n, oriented.m, oriented.wedges)
    return oriented, make_device_plan(question.name, computes, shape, order, relabel, options, gpu.find_device())


def _strengths(graph: Graph, oriented: OrientedGraph, weighted: bool, threads: int) -> NDArray[Any]:
    """What each arc contributes to the product of a triangle."""
    assert graph.attributes is not None
    by_edge = graph.attributes.strengths(weighted=weighted, threads=threads)
    by_arc = np.empty_like(by_edge)
    by_arc[graph.arcs_of_edges(oriented, threads=threads)] = by_edge
    return by_arc


@memory_for("verify")
def _verified(question: Question, answered: Answered, options: Options) -> str:
    """Check by another method, on the host, or raise; how it was done."""
    from wedgewise.answer import verify

    graph = answered.asked.graph

    def again(computes: str, method: str, order: str, details: Mapping[str, Any]) -> tuple[OrientedGraph, Computed]:
        other = replace(options, device="cpu", algorithm=method, order=order, relabel="rank", knobs=None)
        oriented, plan = _prepare(question, computes, graph, other)
        verify.check_arcs(oriented, graph)
        return oriented, _run_on_host(plan, oriented, details, None)

    def recount(method: str, order: str) -> int:
        return again("count", method, order, {})[1].triangles

    def truss_by(method: str, order: str, k: int) -> NDArray[np.bool_]:
        oriented, computed = again("k_truss", method, order, {"k": k})
        assert computed.work.filled is not None
        return in_edge_order(computed.work.filled, graph, oriented, np.empty(graph.m, np.bool_), answered.plan.threads)

    if answered.plan.computes in TRUSSES:
        return verify.verify_truss(answered.asked, answered.plan, truss_by)
    return verify.verify(answered.asked, answered.plan, recount)


def _in_order(outer: dict[str, float], on_device: dict[str, float], inner: dict[str, float]) -> dict[str, float]:
    """All laps as they happened: reading without what a device did of it, then that, then the rest."""
    reading = {stage: taken for stage, taken in outer.items() if stage == "read and clean"}
    if reading:
        reading["read and clean"] -= sum(on_device.values())
    finishing = {stage: taken for stage, taken in outer.items() if stage not in reading}
    return {**reading, **_summed(on_device, inner), **finishing}


def _summed(first: dict[str, float], then: dict[str, float]) -> dict[str, float]:
    """Seconds by stage of both."""
    return {**first, **{stage: first.get(stage, 0.0) + taken for stage, taken in then.items()}}


class _Clock:
    """Wall-clock seconds between laps, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = now - self._last
        self._last = now

    def skip(self) -> None:
        """Leave what happened since the last lap to another clock."""
        self._last = time.perf_counter()


def _bar(progress: Progress) -> Any:
    from wedgewise.machine.progress import progress_bar

    return progress_bar(progress)
