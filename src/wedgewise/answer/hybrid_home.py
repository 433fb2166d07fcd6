"""A count on GPUs and threads together: the home of a graph that is cut in memory, and the tasks of a store."""

from __future__ import annotations

from dataclasses import dataclass

from wedgewise.answer.graph_home import GraphHome
from wedgewise.answer.questions import AnswerContext
from wedgewise.answer.response import Clock
from wedgewise.graph import Graph
from wedgewise.machine.progress import Progress
from wedgewise.run import hybrid
from wedgewise.run.choose import check_preparation, choose_order_of_blocks
from wedgewise.run.outofcore import StoreTasks, count_key
from wedgewise.run.plan import Plan
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise.stages import OrientedGraph
from wedgewise.store.open import Store


@dataclass(frozen=True, slots=True)
class HybridHome(GraphHome):
    """A graph in blocks, and the tasks that are to be shared out."""

    request: Request
    graph: Graph
    oriented: OrientedGraph
    plan: Plan
    tasks: hybrid.HybridTasks

    @classmethod
    def prepare(cls, request: Request, graph: Graph, reasons: tuple[str, ...]) -> HybridHome:
        """Orient and cut the graph and plan, or raise where memory is too small for that."""
        check_preparation(graph.n, graph.m, request)
        oriented = graph.oriented(choose_order_of_blocks(request, graph), "rank", threads=request.thread_count)
        tasks = hybrid.plan_graph(request, oriented, reasons)
        return cls(request, graph, oriented, tasks.plan, tasks)

    def run(self, progress: Progress | None, clock: Clock) -> AnswerContext:
        """The count of all tasks."""
        clock.lap("orient and cut")
        ran = self.tasks.run(None, progress)
        clock.lap("count")
        computed = reduce(ran.execution, ran.plan)
        return AnswerContext(self.request, self.graph, ran.plan, computed, self.oriented, ran.timeline)


def tasks_for_hybrid(request: Request, store: Store) -> StoreTasks:
    """Tasks of a store that GPUs and threads count together, within the memory limit."""
    tasks = hybrid.plan_store(request, store)
    return StoreTasks(tasks.plan, count_key(request, store), tasks.division.everything, tasks.run)
