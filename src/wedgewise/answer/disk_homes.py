"""The homes of questions on disk: a store, and a graph that is cut into one because memory is too small for it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from wedgewise.answer.cut import cut, plan_from_disk
from wedgewise.answer.disk import answer_store, plan_of_store
from wedgewise.answer.fit import OutOfMemory
from wedgewise.answer.response import Clock, ResultWithRows
from wedgewise.graph import Graph
from wedgewise.machine.progress import Progress
from wedgewise.run.plan import Plan
from wedgewise.run.refusals import check_rows_on_disk
from wedgewise.run.request import TABLE, Request
from wedgewise.stages import CleanReport
from wedgewise.store.open import Store


@dataclass(frozen=True, slots=True)
class StoreHome:
    """A store; who computes, this process with or without GPUs, or workers, is for `answer_store`."""

    request: Request
    store: Store
    cleaned: None = None

    @property
    def plan(self) -> Plan:
        return plan_of_store(self.request, self.store)

    def respond(self, progress: Progress | None, clock: Clock, held: ExitStack) -> ResultWithRows:
        """The answer; what is on disk of it stays until `held` is closed."""
        return answer_store(self.request, self.store, progress, clock, held)


@dataclass(frozen=True, slots=True)
class CutHome:
    """A graph or a file that is to be cut into blocks for one question."""

    too_large: OutOfMemory

    @property
    def plan(self) -> Plan:
        return plan_from_disk(self.too_large)

    @property
    def cleaned(self) -> CleanReport | None:
        source = self.too_large.source
        return source.cleaned if isinstance(source, Graph) else None

    def respond(self, progress: Progress | None, _clock: Clock, held: ExitStack) -> ResultWithRows:
        """The answer as there would be in memory, with what happened instead among the reasons of its plan."""
        request, source = self.too_large.request, self.too_large.source
        check_rows_on_disk(request, self.too_large.refusal, is_file=not isinstance(source, Graph))
        blocks = held.enter_context(cut(self.too_large, progress))
        response = blocks.as_of_graph(answer_store(blocks.request, blocks.store, progress, Clock(), held))
        if request.rows != TABLE or not isinstance(source, Graph):
            return response
        from wedgewise.answer.rows import table_of

        table = table_of(request.question, source, response.result.answer)
        return replace(response, table=lambda: table)
