"""What homes of a whole graph share: how the answer follows from what they compute, its check, and its `Result`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack

from wedgewise.answer.questions import QUESTIONS, AnswerContext
from wedgewise.answer.response import Clock, ResultWithRows, result_of
from wedgewise.graph import Graph
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.run.plan import Plan
from wedgewise.run.request import TABLE, Request
from wedgewise.stages import CleanReport


class GraphHome(ABC):
    """A home that was prepared and planned for a graph in memory."""

    request: Request
    graph: Graph
    plan: Plan

    __slots__ = ()

    @property
    def cleaned(self) -> CleanReport:
        return self.graph.cleaned

    @abstractmethod
    def run(self, progress: Progress | None, clock: Clock) -> AnswerContext:
        """What is computed as planned."""

    def respond(self, progress: Progress | None, clock: Clock, held: ExitStack) -> ResultWithRows:
        """Compute as planned, make the answer of it, verify that, and let go of a graph that nobody else has."""
        request, graph, question = self.request, self.graph, QUESTIONS[self.request.question]
        context = self.run(progress, clock)
        with memory_for("answer"):
            answer = question.finish(context)
        if question.name != "count":
            clock.lap("answer")
        verified = None
        if request.verify:
            from wedgewise.answer.verify import verify

            verified = verify(context)
            clock.lap("verify")
        labelled = graph if question.has_labels else None
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
        if labelled is not None and graph is not request.source:  # the result keeps it for its labels alone
            graph.release()
        if request.rows != TABLE:
            return ResultWithRows(result)
        from wedgewise.answer.rows import table_of

        table = table_of(question.name, graph, answer)
        return ResultWithRows(result, lambda: table)
