"""What tasks on blocks take: the memory of blocks, of what an algorithm makes of three of them, and of its threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wedgewise.algorithms import find, registry
from wedgewise.algorithms._contract import Knobs, TripleAnswer
from wedgewise.blocks import Task
from wedgewise.errors import PreconditionError
from wedgewise.partition.tasks import Counts

Pair = tuple[int, int]

COLUMN_BYTES = 4  # that a further thread takes at most: a map of the columns
PAGE_BYTES = 1 << 12


def triple_answer(algorithm: str) -> TripleAnswer:
    """How an algorithm counts three blocks."""
    asked = find(algorithm, "cpu")
    if "count" not in asked.triples:
        able = ", ".join(name for (name, device), other in registry().items() if device == "cpu" and other.triples)
        raise PreconditionError(f"{algorithm} does not count blocks, of which a store consists; {able} do")
    return asked.triples_on_cpu("count")


def pairs_of_task(task: Task) -> set[Pair]:
    """The blocks of a task."""
    return {(task.i, task.j), (task.i, task.k), (task.j, task.k)}


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """What the tasks of some blocks take, when an algorithm counts them on so many threads."""

    counts: Counts
    answer: TripleAnswer
    knobs: Knobs
    threads: int

    def has_work(self, task: Task) -> bool:
        """Whether all blocks of a task have arcs."""
        return all(self.counts.arcs[pair] for pair in pairs_of_task(task))

    def block(self, pair: Pair) -> int:
        """The bytes of a block, in whole pages."""
        rows, arcs = int(self.counts.sizes[pair[0]]), int(self.counts.arcs[pair])
        return sum(-(-4 * length // PAGE_BYTES) * PAGE_BYTES for length in (rows + 1, arcs))

    def work(self, task: Task) -> int:
        """The bytes of a task beyond its blocks."""
        sizes, arcs = self.counts.sizes, self.counts.arcs
        i, j, k = task.i, task.j, task.k
        ids = int(sizes[i]), int(sizes[j]), int(sizes[k])
        one = self.answer.bytes_needed(*ids, int(arcs[i, j]), int(arcs[i, k]), int(arcs[j, k]), self.knobs)
        return one + (self.threads - 1) * (COLUMN_BYTES * ids[2] + PAGE_BYTES)

    def heaviest(self, tasks: Iterable[Task]) -> tuple[int, Task | None]:
        """The most that a task takes, blocks included, and which one that is."""
        found: tuple[int, Task | None] = (0, None)
        for task in tasks:
            if self.has_work(task):
                need = self.work(task) + sum(self.block(pair) for pair in pairs_of_task(task))
                if need > found[0]:
                    found = need, task
        return found
