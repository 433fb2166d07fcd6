"""Who does what, for work that processes do in pieces with numbers: tasks of a count, or slices of an answer.

    Dispatcher ─submit→ Workers ─delivery→ Dispatcher, until nothing is left

Whatever is lost is done again. At most two assignments per worker are under way: the next one is there when one is
finished. One that workers were lost with is sent again in single pieces. A piece that a worker was lost with is sent
again alone, with nothing else under way that could be the reason: when it has ended enough workers so, it is poison,
and the work stops. A piece that a worker refuses for want of memory goes to another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from wedgewise.errors import ClusterError, MemoryLimitError
from wedgewise.run._device_counting import Refusal

UNDER_WAY_PER_WORKER = 2
MAX_CRASHES_PER_TASK = 3
NUMBERS = count()  # of assignments: no two of a process have the same


@dataclass(frozen=True, slots=True)
class Assignment:
    """Tasks that one worker does one after the other.

    Attributes
    ----------
    number : of the assignment
    tasks : their numbers
    alone : whether nothing else is under way meanwhile
    refused_by : names of workers that have no memory for one of them
    """

    number: int
    tasks: tuple[int, ...]
    alone: bool = False
    refused_by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a batch, or of its first tasks: the result of a worker, or how many workers were lost with it."""

    batch: Assignment
    result: bytes | None
    deaths: int = 0
    is_whole: bool = True


class Workers(Protocol):
    """Whoever does batches. They may do one twice, and deliver in any order, late or more than once."""

    @property
    def count(self) -> int:
        """How many workers there are now."""

    def has_others(self, names: Set[str]) -> bool:
        """Whether there is a worker that has none of these names."""

    def submit(self, batch: Assignment, message: str) -> None:
        """Have some worker call `wedgewise.run._worker_requests.do_request` with the message of a batch."""

    def delivery(self) -> Delivery:
        """Wait for the next delivery."""

    def close(self) -> None:
        """Cancel whatever is under way, and leave nothing behind: no process, and no state in one that goes on."""


class Dispatcher(ABC):
    """Keeps workers busy until every piece has a result; what a piece is, and what becomes of results, others say."""

    def __init__(self, left: Iterable[int]) -> None:
        self._left = set(left)
        self._waiting: deque[tuple[int, ...]] = deque()
        self._tasks_to_isolate: deque[int] = deque()
        self._under_way: dict[int, Assignment] = {}
        self._deaths: Counter[int] = Counter()  # of workers, by task that was alone
        self._refused_by: defaultdict[int, set[str]] = defaultdict(set)  # names of workers, by task

    @abstractmethod
    def message(self, batch: Assignment) -> str:
        """What a worker gets."""

    @abstractmethod
    def receive(
        self, result: bytes, batch: Assignment, *, is_whole: bool, is_new: bool
    ) -> Iterable[tuple[str, Refusal]]:
        """Keep a result, which may come twice; what was refused, by which worker. `left` is then without the rest."""

    @abstractmethod
    def named(self, number: int) -> str:
        """A piece in messages."""

    @property
    def left(self) -> int:
        """How many tasks are still to be done."""
        return len(self._left)

    def dispatch(self, pieces: Iterable[tuple[int, ...]], workers: Workers) -> Iterator[None]:
        """Have everything done, a delivery at a time; a `WedgewiseError` in a worker is raised as it is."""
        self._waiting.extend(pieces)
        while self._left:
            self._feed(workers)
            self._take(workers.delivery(), workers)
            yield

    def _feed(self, workers: Workers) -> None:
        """Submit as much as keeps the workers busy, or one suspect when nothing else is under way."""
        while self._tasks_to_isolate and not self._under_way:
            self._submit((self._tasks_to_isolate.popleft(),), workers, alone=True)
        if self._tasks_to_isolate or any(batch.alone for batch in self._under_way.values()):
            return
        while self._waiting and len(self._under_way) < UNDER_WAY_PER_WORKER * max(1, workers.count):
            self._submit(self._waiting.popleft(), workers)

    def _submit(self, tasks: tuple[int, ...], workers: Workers, alone: bool = False) -> None:
        """Submit what has not arrived meanwhile."""
        left = tuple(task for task in tasks if task in self._left)
        if left:
            refused_by = frozenset[str]().union(*(self._refused_by.get(task, ()) for task in left))
            batch = Assignment(next(NUMBERS), left, alone, refused_by)
            self._under_way[batch.number] = batch
            workers.submit(batch, self.message(batch))

    def _take(self, delivery: Delivery, workers: Workers) -> None:
        batch, is_whole = delivery.batch, delivery.is_whole
        is_new = is_whole and self._under_way.pop(batch.number, None) is not None
        if delivery.result is not None:
            for worker, refusal in self.receive(delivery.result, batch, is_whole=is_whole, is_new=is_new):
                self._take_refusal(refusal, worker, workers)
        elif is_new:
            self._take_loss(batch, delivery.deaths)

    def _take_refusal(self, refusal: Refusal, worker: str, workers: Workers) -> None:
        """Let a worker with more memory do the task, if there is one that has not refused it."""
        number = refusal.task
        if number not in self._left:
            return
        self._refused_by[number].add(worker)
        if not workers.has_others(self._refused_by[number]):
            where, remedy = ("on a GPU", "let CPUs count what does not fit by device='hybrid'")
            if not refusal.on_gpu:
                where, remedy = "of memory", "give workers more memory"
            raise MemoryLimitError(
                f"{self.named(number)} takes {refusal.need:,} bytes {where}, and {refusal.available:,} are there for "
                f"it at {worker}, no more at any other worker; partition the graph into more parts, or {remedy}"
            )
        self._waiting.appendleft((number,))

    def _take_loss(self, batch: Assignment, deaths: int) -> None:
        """Tasks that may have ended workers: each by itself, then each alone, then no more."""
        if len(batch.tasks) > 1:
            self._waiting.extendleft((task,) for task in reversed(batch.tasks))
            return
        task = batch.tasks[0]
        if batch.alone:
            self._deaths[task] += deaths
        if self._deaths[task] >= MAX_CRASHES_PER_TASK:
            raise ClusterError(
                f"{self.named(task)} ended {self._deaths[task]} workers when nothing else was under way; look at "
                "their logs, give them more memory, or partition the graph into more parts"
            )
        self._tasks_to_isolate.append(task)
