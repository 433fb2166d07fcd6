"""The home of what is found of a whole graph by a method of its own, on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wedgewise.algorithms._contract import Shape, Work
from wedgewise.algorithms.of_graph import GraphMethod, Job, find_method
from wedgewise.answer.graph_home import GraphHome
from wedgewise.answer.questions import AnswerContext
from wedgewise.answer.response import Clock
from wedgewise.errors import PreconditionError
from wedgewise.graph import Graph
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.run.choose import check_memory
from wedgewise.run.plan import OrientedShape, Plan, plan_of
from wedgewise.run.reduce import Computed
from wedgewise.run.request import Request

CHOICES = {"algorithm": "auto", "order": "auto", "relabel": "auto"}


@dataclass(frozen=True, slots=True)
class MethodHome(GraphHome):
    """A graph, and the plan of what a method finds of it."""

    request: Request
    graph: Graph
    method: GraphMethod
    plan: Plan

    @classmethod
    def prepare(cls, request: Request, graph: Graph, computes: str, reasons: tuple[str, ...] = ()) -> MethodHome:
        """Check what depends on the graph and plan, or raise where memory is too small."""
        chosen = [name for name, default in CHOICES.items() if getattr(request, name) not in (default, computes)]
        if chosen or request.knobs:
            raise PreconditionError(f"{request.question} has one method; leave {', '.join(chosen or ['knobs'])} out")
        method, threads = find_method(computes), request.thread_count
        request = replace(request, details=method.resolved(graph, request.details))
        shape = Shape(graph.n, graph.m)
        need = method.bytes_needed(shape, threads, request.details)
        check_memory(need, request, request.question, "ask about fewer vertices or pairs, or use fewer threads")
        plan = plan_of(
            request.question,
            OrientedShape(shape, "id"),
            computes=computes,
            algorithm=computes,
            threads=threads,
            knobs={},
            bytes_needed=need,
            estimated_seconds=method.seconds(graph, request.details) / threads,
            reasons=("the one method for it", *reasons),
            beyond="the graph",
        )
        return cls(request, graph, method, plan)

    def run(self, progress: Progress | None, clock: Clock) -> AnswerContext:
        """What is found as planned."""
        on_done = None if progress is None else lambda done, tasks: progress("count", done, tasks)
        with memory_for("count"):
            found = self.method.find(self.graph, Job(self.request.details, self.plan.threads, on_done))
        clock.lap("count")
        return AnswerContext(self.request, self.graph, self.plan, Computed(0, 0, Work((), found)))
