"""Blocks in memory, as many as fit: since what will be wanted is known, the one to give up is the one needed last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from wedgewise.run.memory import Pair
from wedgewise.stages.blocks import Block, Task, Triple

Held = TypeVar("Held")


def triple_of(blocks: Mapping[Pair, Block], task: Task) -> Triple:
    """The blocks of a task as it takes them."""
    return Triple(blocks[task.i, task.j], blocks[task.i, task.k], blocks[task.j, task.k])


class BlockCache(Generic[Held]):
    """The blocks of one step after the other (Belady's rule, which no other can beat).

    Parameters
    ----------
    read : reads a block
    bytes_of : what a block takes
    wanted : the blocks of every step, in their order

    Attributes
    ----------
    held_bytes, read_bytes : of what is held, and of all that was read
    """

    def __init__(
        self, read: Callable[[Pair], Held], bytes_of: Callable[[Pair], int], wanted: Sequence[set[Pair]]
    ) -> None:
        self._read, self._bytes_of, self._wanted = read, bytes_of, wanted
        self._held: dict[Pair, Held] = {}
        self._finished: list[Pair] = []  # of what is held: no step needs it any more
        self.held_bytes = self.read_bytes = 0
        self._uses: dict[Pair, list[int]] = {}  # numbers of steps, the next one last
        for step in range(len(wanted) - 1, -1, -1):
            for pair in wanted[step]:
                self._uses.setdefault(pair, []).append(step)

    def blocks(self, step: int, room: int) -> Mapping[Pair, Held]:
        """The blocks of a step, and others; all that are held take no more than `room` bytes."""
        wanted = self._wanted[step]
        missing = wanted - self._held.keys()
        needed = sum(map(self._bytes_of, missing))
        self._make_room(wanted, room - needed)
        for pair in missing:
            self._held[pair] = self._read(pair)
        self.held_bytes += needed
        self.read_bytes += needed
        for pair in wanted:
            self._uses[pair].pop()
            if not self._uses[pair]:
                self._finished.append(pair)
        return self._held

    def _make_room(self, wanted: set[Pair], room: int) -> None:
        """Give up what no step needs any more, and then what is needed last, until what is held fits."""
        for pair in self._finished:
            self._give_up(pair)
        self._finished.clear()
        while self.held_bytes > room:
            self._give_up(max(self._held.keys() - wanted, key=lambda pair: self._uses[pair][-1]))

    def _give_up(self, pair: Pair) -> None:
        del self._held[pair]
        self.held_bytes -= self._bytes_of(pair)
