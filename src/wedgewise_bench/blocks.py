"""Our own blocks as a system under comparison: a graph is cut and its blocks built, then all tasks are counted.

A way to do that is an algorithm that counts three blocks, with its knobs and those of the cutting:

    scheme   rectilinear (BBTC's cuts), even (as many ids in each part), hashed (ids dealt in turn, as TRUST does)
    parts    how many; 0 is the average out-degree
    ids      the relabelling that is cut: rank, indegree, classes …; only hashed parts take another one than rank
    shares   into how many tasks the rows of every three parts are dealt (TRUST's workload partitions)

Only the counting is timed. `facts` has the seconds of cutting and building, and how even the tasks were, each with the
least of its times. Beside them it has the seconds of the graph in one part, ids by rank, by the same algorithm on one
thread: the speed-ups of imagined workers are relative to that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE_REPEATS = 7  # a slow one would flatter the speed-ups
CUTTING = {"scheme": "rectilinear", "parts": 0, "ids": "rank", "shares": 1}


class Cut(NamedTuple):
    """A graph, the same in blocks, how long that took, and how to count them."""

    graph: Any
    partition: Any
    counts: Any
    counting: Any
    seconds: float


class BlocksSystem:
    """All tasks of a graph in blocks, one after the other, threads within each."""

    name: ClassVar[str] = "blocks"
    package: ClassVar[str] = "wedgewise"
    algorithms: ClassVar[tuple[str, ...]] = ("keystone", "bbtc")
    warms_up: ClassVar[bool] = True
    only_by_name: ClassVar[bool] = True

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.algorithm, self.threads = algorithm, threads
        self.knobs = {name: value for name, value in knobs.items() if name not in CUTTING}
        self.cutting: dict[str, Any] = {name: knobs.get(name, usual) for name, usual in CUTTING.items()}
        self.least_seconds: dict[int, float] = {}

    def load(self) -> None:
        import wedgewise

        self.ww: Any = wedgewise

    def prepare(self, pairs: NDArray[Any]) -> Cut:
        from wedgewise.prepare.cut_blocks import blocks_of

        graph = self.ww.Graph(pairs, threads=self.threads)
        oriented = graph.oriented("degree", self.cutting["ids"])
        for _ in range(2):  # the first time loads kernels
            begin = time.perf_counter()
            partition = self._partition(oriented)
            blocks = blocks_of(oriented, partition, threads=self.threads)
            seconds = time.perf_counter() - begin
        counting = self._counting(blocks, self.threads, self.cutting["shares"])
        return Cut(graph, partition, counting.memory.counts, counting, seconds)

    def _counting(self, blocks: Any, threads: int, shares: int = 1) -> Any:
        from wedgewise.algorithms import find
        from wedgewise.run.hybrid import GraphBlocks
        from wedgewise.run.outofcore import Counting
        from wedgewise.run.task_memory import TaskMemory, triple_answer
        from wedgewise.stages.tasks import BlockCounts

        counts, settings = BlockCounts.of(blocks), find(self.algorithm, "cpu").settings(self.knobs)
        memory = TaskMemory(counts, triple_answer(self.algorithm), settings, threads)
        source: Any = GraphBlocks(blocks, counts)
        return Counting(source, memory, 1 << 62, shares=shares)

    def _unpartitioned_seconds(self, graph: Any) -> float:
        """The least seconds of a graph in one part, on one thread."""
        import numpy as np

        from wedgewise.prepare.cut_blocks import blocks_of
        from wedgewise.stages.blocks import Rectilinear

        oriented = graph.oriented("degree", "rank")
        counting = self._counting(blocks_of(oriented, Rectilinear(np.array([0, oriented.n]))), 1)
        found = (counting.run(None, None).results.by_seconds.values() for _ in range(WHOLE_REPEATS))
        return float(min(map(sum, found)))

    def _partition(self, graph: Any) -> Any:
        import numpy as np

        from wedgewise.errors import UnknownNameError
        from wedgewise.prepare.rectilinear import default_parts, rectilinear
        from wedgewise.stages.blocks import Hashed, Rectilinear

        parts = self.cutting["parts"] or default_parts(graph)
        match self.cutting["scheme"]:
            case "rectilinear":
                return rectilinear(graph, parts, threads=self.threads)
            case "even":
                return Rectilinear(np.linspace(0, graph.n, parts + 1).astype(np.int64))
            case "hashed":
                return Hashed(graph.n, parts)
            case other:
                raise UnknownNameError(f"no scheme named {other!r}; there are: rectilinear, even, hashed")

    def prepare_file(self, path: str) -> Cut:
        from wedgewise.read import read_edges

        return self.prepare(read_edges(path, threads=self.threads).pairs)

    def count(self, prepared: Cut) -> int:
        execution = prepared.counting.run(None, None)
        for task, taken in execution.results.by_seconds.items():
            self.least_seconds[task] = min(taken, self.least_seconds.get(task, taken))
        return int(execution.results.triangles.sum())

    def facts(self, prepared: Cut) -> dict[str, Any]:
        """What is recorded beside the times of counting; ``speedup_over_whole_8`` … are of imagined workers."""
        import numpy as np

        from wedgewise.report.balance import balance_report

        shares = self.cutting["shares"]
        report = balance_report(
            prepared.partition,
            prepared.counts,
            self.least_seconds,
            shares=shares,
            unpartitioned=self._unpartitioned_seconds(prepared.graph),
        )
        tasks, arcs = prepared.counting.tasks, prepared.counts.arcs.ravel()
        (ij, ik, jk), none = tasks.pairs, 0 * tasks.i
        in_tasks = arcs[ij] + np.where(ik == ij, none, arcs[ik]) + np.where((jk == ij) | (jk == ik), none, arcs[jk])
        own = {made.workers: made.seconds["time"] for made in report.makespans}
        speedups = {f"speedup_over_whole_{workers}": report.speedup(seconds) for workers, seconds in own.items()}
        return {
            "cutting_seconds": prepared.seconds,
            "blocks": int((prepared.counts.arcs > 0).sum()),
            "arcs_per_task": float(in_tasks.sum()) / max(1, len(tasks)),
            **speedups,
            **report.to_dict(),
        }
