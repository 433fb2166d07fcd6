"""Blocks in a memory of bounded size, shared by threads: the host's, or a device's.

A task takes all of its blocks, and the room for its work, in one step, and gives them back in one. While it waits for
room it holds nothing, so that no two tasks can wait for each other. Blocks that no task holds stay as far as they fit;
the first to go is the one with the fewest tasks to come, and of those the one that was used least recently.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from wedgewise.run.memory import Pair

Held = TypeVar("Held")


class _Slot(Generic[Held]):
    """A block that is there, or on its way; `holders` are the tasks that have it."""

    __slots__ = ("failed", "holders", "nbytes", "value")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.holders = 0
        self.value: Held | None = None
        self.failed = False


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
    load : brings a block here; called by the thread that needs it, for several blocks at once
    uses : how many tasks to come need each block
    """

    def __init__(
        self, budget: int, size_of: Callable[[Pair], int], load: Callable[[Pair], Held], uses: Mapping[Pair, int]
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
        """Blocks and room for work; None where there is no room now, or, having waited, where there never will be.

        None also after `stop`. What `load` raises comes out here, and nothing is held then.
        """
        while True:
            mine = self._reserve(pairs, work_bytes, wait)
            if mine is None:
                return None
            self._bring(pairs, mine, work_bytes)
            blocks = self._gathered(pairs, work_bytes)
            if blocks is not None:
                return Lease(blocks, work_bytes)

    def release(self, lease: Lease[Held]) -> None:
        """Give everything back."""
        pairs = tuple(lease.blocks)
        lease.blocks.clear()
        self._give_back(pairs, lease.work_bytes)

    def shrink(self, budget: int) -> int:
        """Halve a budget that was found to be too much, unless another thread did; give up what is beyond it."""
        with self._changed:
            if self.budget == budget:
                self.budget //= 2
                self._evict(self.budget)
                self._changed.notify_all()
            return self.budget

    def clear(self) -> None:
        """Give everything up; nobody uses any of it any more."""
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
            while not self._make_room(pairs, work_bytes):
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
        for number, pair in enumerate(mine):
            try:
                value = self._load(pair)
            except BaseException:
                with self._changed:
                    for missing in mine[number:]:
                        self._slots[missing].failed = True
                self._give_back(pairs, work_bytes)
                raise
            with self._changed:
                self._slots[pair].value = value
                self._changed.notify_all()

    def _gathered(self, pairs: set[Pair], work_bytes: int) -> dict[Pair, Held] | None:
        """The blocks once all have come; None, holding nothing, where another thread could not load one."""
        with self._changed:
            slots = {pair: self._slots[pair] for pair in pairs}
            while any(slot.value is None and not slot.failed for slot in slots.values()):
                self._changed.wait()
            found = {pair: slot.value for pair, slot in slots.items() if slot.value is not None}
        if len(found) == len(pairs):
            return found
        self._give_back(pairs, work_bytes)
        return None

    def _give_back(self, pairs: Iterable[Pair], work_bytes: int) -> None:
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

    def _make_room(self, pairs: set[Pair], work_bytes: int) -> bool:
        """Give up blocks until what is missing fits, and none where it would not; whether it does."""
        if any(slot.failed for pair in pairs if (slot := self._slots.get(pair)) is not None):
            return False
        missing = work_bytes + sum(self._size_of(pair) for pair in pairs if pair not in self._slots)
        idle = sum(slot.nbytes for pair, slot in self._slots.items() if slot.holders == 0 and pair not in pairs)
        if self._taken - idle + missing > self.budget:
            return False
        self._evict(self.budget - missing, pairs)
        return True

    def _evict(self, most: int, but: set[Pair] | frozenset[Pair] = frozenset()) -> None:
        """Give up blocks that nobody holds until no more than `most` bytes are taken, as far as there are any."""
        while self._taken > most:
            idle = [pair for pair, slot in self._slots.items() if slot.holders == 0 and pair not in but]
            if not idle:
                return
            self._drop(min(idle, key=lambda pair: self._uses.get(pair, 0)))

    def _drop(self, pair: Pair) -> None:
        self._taken -= self._slots.pop(pair).nbytes
