"""What a worker does with an order: one at a time, with an open store and its last blocks kept for the next one.

What is finished is told every now and then, so that little is done again where this worker or its driver is killed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from wedgewise.errors import ClusterError, WedgewiseError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.run._cluster_wire import Finished, Order, Reply, error_to_json
from wedgewise.run.block_cache import triple_of
from wedgewise.run.memory import Pair, TaskMemory, pairs_of_task
from wedgewise.run.outofcore import looked_up_in, plan_count, work_key
from wedgewise.run.request import Request
from wedgewise.stages.blocks import Block, Task, Triple
from wedgewise.store.open import Store, open_store

TELL_SECONDS = 0.05  # between tasks that are told before their batch is finished

_one_at_a_time = threading.Lock()
_desk: Desk | None = None


def count_batch(
    order: str, memory_limit: int | None = None, tell: Callable[[bytes], None] = lambda reply: None
) -> bytes:
    """Do the tasks of an order; a limit for this process replaces none. An error of ours is a reply as well.

    On the way, `tell` gets replies with the tasks that were finished since the last one; the reply at the end has all.
    """
    try:
        asked = Order.from_json(order)
        with _one_at_a_time:
            return _do(asked, asked.memory_limit or memory_limit, tell).to_json()
    except WedgewiseError as error:
        return error_to_json(error)


@memory_for("count")
def _do(asked: Order, memory_limit: int | None, tell: Callable[[bytes], None]) -> Reply:
    """What the tasks of an order found; told on the way where they last."""
    finished, told, since = list[Finished](), 0, time.monotonic()
    for item in _desk_for(asked, memory_limit).count(asked.tasks):
        finished.append(item)
        if time.monotonic() - since >= TELL_SECONDS and len(finished) < len(asked.tasks):
            tell(Reply(asked.key, tuple(finished[told:])).to_json())
            told, since = len(finished), time.monotonic()
    return Reply(asked.key, tuple(finished))


def _desk_for(order: Order, memory_limit: int | None) -> Desk:
    """The desk of the last order, or another one where this is other work."""
    global _desk
    if _desk is None or not _desk.serves(order, memory_limit):
        _desk = None  # given up before there is another one
        _desk = Desk(order, memory_limit)
    return _desk


class Desk:
    """An open store, kernels that are loaded, and blocks as far as the room goes."""

    def __init__(self, order: Order, memory_limit: int | None) -> None:
        self._settings = _settings(order, memory_limit)
        store = open_store(order.store)
        if store.manifest.fingerprint != order.fingerprint:
            raise ClusterError(
                f"{order.store}: a worker finds the graph {store.manifest.fingerprint[:12]} there, and the driver has "
                f"{order.fingerprint[:12]}; name storage that all workers share"
            )
        asked = Request(memory_limit=memory_limit, threads=order.threads, algorithm=order.algorithm, knobs=order.knobs)
        self._counting, plan = plan_count(asked, store)
        if work_key(store, plan.algorithm, plan.knobs) != order.key:
            raise ClusterError(
                f"{order.store}: a worker finds the graph there in other parts than the driver; name storage that all "
                "workers share"
            )
        self._shelf = Shelf(store, self._counting.memory)

    def serves(self, order: Order, memory_limit: int | None) -> bool:
        """Whether an order is for the same work under the same limits."""
        return self._settings == _settings(order, memory_limit)

    def count(self, numbers: Sequence[int]) -> Iterator[Finished]:
        """Tasks one after the other; those that look up in the same block share what is made of it."""
        counting = self._counting
        for _pair, group in groupby((counting.tasks[number] for number in numbers), key=looked_up_in):
            tasks = list(group)
            prepare = counting.memory.answer.in_turn(counting.memory.knobs, len(tasks))
            for task in tasks:
                triple = self._shelf.triple(task, counting.room - counting.memory.work(task))
                begin = time.perf_counter()
                partial = counting.count(task, triple, prepare)
                seconds = time.perf_counter() - begin
                del triple  # or blocks that the shelf gives up would stay
                yield Finished(partial, seconds)


def _settings(order: Order, memory_limit: int | None) -> tuple[str, str, int | None, int | None]:
    return order.store, order.key, order.threads, memory_limit


class Shelf:
    """Blocks in memory; the one that was not used for longest goes first, since nobody knows the tasks to come."""

    def __init__(self, store: Store, memory: TaskMemory) -> None:
        self._store, self._memory = store, memory
        self._held: dict[Pair, Block] = {}  # the last used one last

    def triple(self, task: Task, room: int) -> Triple:
        """The blocks of a task; all that are held take no more than `room` bytes."""
        wanted = pairs_of_task(task)
        for pair in wanted & self._held.keys():
            self._held[pair] = self._held.pop(pair)
        self._make_room(wanted, room)
        for pair in wanted - self._held.keys():
            self._held[pair] = self._store.block(*pair, threads=self._memory.threads)
        return triple_of(self._held, task)

    def _make_room(self, wanted: set[Pair], room: int) -> None:
        """Give up blocks until the wanted ones fit."""
        taken = sum(self._memory.block(pair) for pair in wanted | self._held.keys())
        for pair in [pair for pair in self._held if pair not in wanted]:
            if taken <= room:
                return
            del self._held[pair]
            taken -= self._memory.block(pair)
