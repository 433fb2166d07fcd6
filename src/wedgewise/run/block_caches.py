"""Blocks in memory, as many as fit.

    BlockCache      for batches of tasks one after the other: the block to evict is the one needed last, where the
                    batches to come are known, or else the one that was not used for longest
    SharedBlocks    for threads that take tasks at the same time, on the host or on a device

With `SharedBlocks` a task takes all of its blocks, and the memory for its work, in one step, and releases them so.
While it waits for memory it holds nothing, so that no two tasks can wait for each other. Blocks that no task holds stay
as far as they fit; the first to go is the one with the fewest tasks to come, and of those the one that was used least
recently.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from wedgewise.stages.tasks import Pair

Held = TypeVar("Held")


class BlockCache(Generic[Held]):
    """The blocks of one batch after the other (Belady's rule, which no other can beat, where they are known).

    Parameters
    ----------
    read : reads blocks
    bytes_of : what a block takes
    steps, steps_count : the blocks of a batch, by its number, and how many there are; None where nobody knows the
        batches to come

    Attributes
    ----------
    held_bytes, read_bytes : of what is held, and of all that was read
    """

    def __init__(
        self,
        read: Callable[[list[Pair]], Sequence[Held]],
        bytes_of: Callable[[Pair], int],
        steps: Callable[[int], Set[Pair]] | None = None,
        steps_count: int = 0,
    ) -> None:
        self._read, self._bytes_of, self._knows_steps = read, bytes_of, steps is not None
        self._held: dict[Pair, Held] = {}  # the last used one last
        self.held_bytes = self.read_bytes = 0
        self._uses: dict[Pair, array[int]] = {}  # numbers of steps, the next one last
        self._used_up: list[Pair] = []
        for step in reversed(range(steps_count)):
            for pair in () if steps is None else steps(step):
                self._uses.setdefault(pair, array("q")).append(step)

    def blocks(self, wanted: Set[Pair], limit_bytes: int) -> Mapping[Pair, Held]:
        """The blocks of the next batch, and others; all that are held take no more than `limit_bytes` bytes."""
        missing = sorted(pair for pair in wanted if pair not in self._held)
        needed = sum(map(self._bytes_of, missing))
        self._evict_for(wanted, limit_bytes - needed)
        self._held.update(zip(missing, self._read(missing), strict=True))
        self.held_bytes += needed
        self.read_bytes += needed
        for pair in wanted:
            self._held[pair] = self._held.pop(pair)
            if pair in self._uses:
                self._uses[pair].pop()
                if not self._uses[pair]:
                    self._used_up.append(pair)
        return self._held

    def _evict_for(self, wanted: Set[Pair], limit_bytes: int) -> None:
        """Evict what no step needs any more, and then what is needed last, until what is held fits."""
        for pair in self._used_up:
            self._evict(pair)
        self._used_up.clear()
        if self.held_bytes <= limit_bytes:
            return
        others = [pair for pair in self._held if pair not in wanted]
        if self._knows_steps:
            others.sort(key=self._next_use, reverse=True)
        for pair in others:
            if self.held_bytes <= limit_bytes:
                break
            self._evict(pair)

    def _evict(self, pair: Pair) -> None:
        del self._held[pair]
        self.held_bytes -= self._bytes_of(pair)

    def _next_use(self, pair: Pair) -> int:
        return self._uses[pair][-1]


@dataclass(slots=True)
class _Slot(Generic[Held]):
    """A block that is there, or on its way; `holders` are the tasks that have it."""

    nbytes: int
    holders: int = 0
    value: Held | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Lease(Generic[Held]):
    """What a task holds: blocks by pairs of parts, none any more once it is released, and bytes for its work."""

    blocks: dict[Pair, Held]
    work_bytes: int


class SharedBlocks(Generic[Held]):
    """Blocks within a budget.

    Parameters
    ----------
    budget : bytes that blocks and work may take together
    size_of : the bytes of a block
    load : brings blocks here; called by the thread that needs them
    uses : how many tasks to come need a block
    """

    def __init__(
        self,
        budget: int,
        size_of: Callable[[Pair], int],
        load: Callable[[list[Pair]], Sequence[Held]],
        uses: Callable[[Pair], int] = lambda _pair: 0,
    ) -> None:
        self.budget = budget
        self.peak = 0
        self._size_of, self._load, self._uses = size_of, load, uses
        self._slots: dict[Pair, _Slot[Held]] = {}  # least recently used first
        self._taken = 0
        self._holders = 0
        self._stopped = False
        self._changed = threading.Condition()

    def lease(self, pairs: set[Pair], work_bytes: int, *, wait: bool = True) -> Lease[Held] | None:
        """Blocks and memory for work; None where there is too little now, or, having waited, where there never will be.

        None also after `stop`. What `load` raises comes out here, and nothing is held then.
        """
        while True:
            mine = self._reserve(pairs, work_bytes, wait)
            if mine is None:
                return None
            self._bring(pairs, mine, work_bytes)
            blocks = self._wait_for(pairs, work_bytes)
            if blocks is not None:
                return Lease(blocks, work_bytes)

    def release(self, lease: Lease[Held]) -> None:
        """Release the blocks and the memory of a task."""
        pairs = tuple(lease.blocks)
        lease.blocks.clear()
        self._release(pairs, lease.work_bytes)

    def forget(self, lease: Lease[Held]) -> None:
        """The same, and drop those blocks that nobody else holds, since one of them may never come."""
        pairs = tuple(lease.blocks)
        self.release(lease)
        with self._changed:
            for pair in pairs:
                if pair in self._slots and self._slots[pair].holders == 0:
                    self._drop(pair)

    def shrink(self) -> int:
        """Halve a budget that was found to be too much, and evict what is beyond it; what is left of it."""
        with self._changed:
            self.budget //= 2
            self._evict(self.budget)
            return self.budget

    def clear(self) -> None:
        """Drop all blocks; nobody uses any of them any more."""
        with self._changed:
            self._slots.clear()

    def stop(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _reserve(self, pairs: set[Pair], work_bytes: int, wait: bool) -> list[Pair] | None:
        """Hold the blocks, those that are not there too; which ones the caller has to load."""
        with self._changed:
            while not self._evict_for(pairs, work_bytes):
                if not wait or self._stopped or self._holders == 0:
                    return None
                self._changed.wait()
            mine = [pair for pair in sorted(pairs) if pair not in self._slots]
            for pair in mine:
                self._slots[pair] = _Slot(self._size_of(pair))
                self._taken += self._slots[pair].nbytes
            for pair in pairs:
                slot = self._slots[pair] = self._slots.pop(pair)
                slot.holders += 1
            self._taken += work_bytes
            self._holders += 1
            self.peak = max(self.peak, self._taken)
            return mine

    def _bring(self, pairs: set[Pair], mine: list[Pair], work_bytes: int) -> None:
        """Load what only this thread has to load; other threads may hold it already, and wait."""
        if not mine:
            return
        try:
            values = self._load(mine)
        except BaseException:
            with self._changed:
                for pair in mine:
                    self._slots[pair].failed = True
            self._release(pairs, work_bytes)
            raise
        with self._changed:
            for pair, value in zip(mine, values, strict=True):
                self._slots[pair].value = value
            self._changed.notify_all()

    def _wait_for(self, pairs: set[Pair], work_bytes: int) -> dict[Pair, Held] | None:
        """The blocks once all have come; None, holding nothing, where another thread could not load one."""
        with self._changed:
            slots = {pair: self._slots[pair] for pair in pairs}
            self._changed.wait_for(lambda: all(slot.value is not None or slot.failed for slot in slots.values()))
            found = {pair: slot.value for pair, slot in slots.items() if slot.value is not None}
        if len(found) == len(pairs):
            return found
        self._release(pairs, work_bytes)
        return None

    def _release(self, pairs: Iterable[Pair], work_bytes: int) -> None:
        with self._changed:
            for pair in pairs:
                slot = self._slots[pair]
                slot.holders -= 1
                if slot.failed and slot.holders == 0:
                    self._drop(pair)
            self._taken -= work_bytes
            self._holders -= 1
            self._evict(self.budget)
            self._changed.notify_all()

    def _evict_for(self, pairs: set[Pair], work_bytes: int) -> bool:
        """Evict blocks until what is missing fits, and none where it would not; whether it does."""
        if any(slot.failed for pair in pairs if (slot := self._slots.get(pair)) is not None):
            return False
        missing = work_bytes + sum(self._size_of(pair) for pair in pairs if pair not in self._slots)
        if self._taken + missing <= self.budget:
            return True
        idle = sum(slot.nbytes for pair, slot in self._slots.items() if slot.holders == 0 and pair not in pairs)
        if self._taken - idle + missing > self.budget:
            return False
        self._evict(self.budget - missing, pairs)
        return True

    def _evict(self, most: int, but: set[Pair] | frozenset[Pair] = frozenset()) -> None:
        """Evict blocks that nobody holds until no more than `most` bytes are taken, as far as there are any."""
        if self._taken <= most:
            return
        idle = [pair for pair, slot in self._slots.items() if slot.holders == 0 and pair not in but]
        for pair in sorted(idle, key=self._uses):
            if self._taken <= most:
                return
            self._drop(pair)

    def _drop(self, pair: Pair) -> None:
        self._taken -= self._slots.pop(pair).nbytes
