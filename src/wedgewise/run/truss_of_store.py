"""The k-truss of a store: rounds of supports among the arcs that live, until none dies.

    store/truss-round-R/     what lives of every block behind round R, a bit per arc, as slices that are whole or absent

A round reads what lives behind the round before and writes what lives behind itself, block by block; when it has all
blocks, the round before is given up. Killed at any moment, the same work finds the last whole round and the blocks of
the next one that are done. Two rounds are on disk at most: two bits per arc.

A block is looked at again only where that can take arcs. A triangle over parts a, b and c that a round broke had a lost
arc in one of its blocks and arcs in the other two, so that with S the blocks that lost arcs and L those that had some,
both symmetric, only the blocks of S·L + L·S have arcs of fewer triangles than before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import LEAST_K
from wedgewise.machine.files import named_failures
from wedgewise.run.journal import key_of
from wedgewise.run.living_blocks import HEADER_BYTES, PIECE_BYTES, Kept, LivingBlocks, bits_bytes
from wedgewise.run.outofcore import work_key
from wedgewise.run.owners import Owner, Owning
from wedgewise.run.slices import Slices
from wedgewise.stages.tasks import Counts
from wedgewise.store.manifest import Pair
from wedgewise.store.open import Store

ROUNDS = "truss-round-"
ROUND = re.compile(ROUNDS + r"([1-9]\d{0,8})", re.ASCII)

Tell = Callable[[str, int, int], None] | None


@dataclass(frozen=True, slots=True)
class StoreTruss:
    """The k-truss of a store: its arcs by block, and the rounds that it took.

    ``support`` is the sum of the supports of its arcs within the truss; None where no round was needed.
    """

    k: int
    blocks: LivingBlocks
    rounds: int
    support: int | None

    @property
    def edges(self) -> int:
        return int(self.blocks.living.sum())


class Round:
    """What lives behind a round; round 0 is the store as it is.

    ``living``, ``died`` and ``support`` are those of `Kept`, by row part and column part, of the blocks that are done.
    """

    def __init__(self, store: Store, owners: Mapping[Pair, Owner], number: int, slices: Slices | None) -> None:
        self.store, self.number = store, number
        self.arcs = store.counts.arcs
        self.living, self.died, self.support = (np.zeros_like(self.arcs) for _ in range(3))
        self._owners, self._slices = owners, slices
        self._done = {pair for pair, owner in owners.items() if slices is None or owner.number in slices.done}
        for pair in self._done:
            self._note(pair, self.kept(pair))

    @property
    def blocks(self) -> LivingBlocks:
        return LivingBlocks(self.store, self.living, self.kept)

    @property
    def is_whole(self) -> bool:
        """Whether it has all blocks."""
        return len(self._done) == len(self._owners)

    @property
    def is_last(self) -> bool:
        """Whether another one would take nothing."""
        return self.number > 0 and not (self.died.any() and self.living.any())

    def has(self, pair: Pair) -> bool:
        return pair in self._done

    def kept(self, pair: Pair) -> Kept:
        """What lives of a block."""
        arcs = int(self.arcs[pair])
        return Kept.all(arcs) if self._slices is None else Kept.of(self._slices.get(self._owners[pair]), arcs)

    def put(self, pair: Pair, kept: Kept) -> None:
        """A block is done."""
        assert self._slices is not None
        self._slices.put(self._owners[pair], kept.to_array())
        self._done.add(pair)
        self._note(pair, kept)

    def remove(self) -> None:
        """Give it up."""
        if self._slices is not None:
            self._slices.remove()

    def can_take_from(self) -> NDArray[np.bool_]:
        """The blocks, by row part and column part, that the next round may take arcs from."""
        alive = self.living > 0
        if self.number == 0:
            return alive
        lost, had = (_symmetric(which) for which in (self.died > 0, alive | (self.died > 0)))
        return alive & ((lost @ had + had @ lost) > 0)

    def _note(self, pair: Pair, kept: Kept) -> None:
        self.living[pair], self.died[pair], self.support[pair] = kept.living, kept.died, kept.support


class Peeling:
    """The rounds of one k-truss.

    Parameters
    ----------
    store : the graph
    k : which truss, at least 3
    owning : the supports of the store, whose room leaves `loading_bytes` out
    """

    def __init__(self, store: Store, k: int, owning: Owning) -> None:
        self._store, self._k, self._owning = store, k, owning
        self._owners = {owner.pair: owner for owner in owning.owners if owner.pair is not None}
        arcs = store.counts.arcs
        self._due = {
            owner.number: ("|u1", HEADER_BYTES + bits_bytes(int(arcs[pair]))) for pair, owner in self._owners.items()
        }

    def run(self, tell: Tell = None) -> StoreTruss:
        """Go on behind the last whole round, to the last one."""
        last = self._last_whole()
        while not last.is_last:
            last = self._behind(last, tell)
        return StoreTruss(self._k, last.blocks, last.number, int(last.support.sum()))

    def remove(self) -> None:
        """Give all rounds up, those of other work included."""
        for number in self._numbers():
            self._slices(number, resume=False)

    def _behind(self, before: Round, tell: Tell) -> Round:
        """The next round, without the blocks that are done."""
        found = self._round(before.number + 1)
        may_change, wanted = before.can_take_from(), []
        for pair, owner in self._owners.items():
            if found.has(pair):
                continue
            if may_change[pair]:
                wanted.append(owner)
            else:
                found.put(pair, before.kept(pair).unchanged())
        done = len(self._owners) - len(wanted)
        for owner, supports in self._supports(before, wanted):
            assert owner.pair is not None
            kept, arcs = before.kept(owner.pair), int(before.arcs[owner.pair])
            found.put(owner.pair, kept.without_weak(supports, self._k - LEAST_K, arcs))
            done += 1
            if tell is not None:
                tell(f"round {found.number}", done, len(self._owners))
        before.remove()
        return found

    def _last_whole(self) -> Round:
        """The last round that is whole; rounds but that and the next one are given up."""
        whole = self._round(0)
        for number in self._numbers():
            found = self._round(number)
            if found.is_whole:
                whole.remove()
                whole = found
            elif number != whole.number + 1:
                found.remove()
        return whole

    def _round(self, number: int) -> Round:
        return Round(self._store, self._owners, number, self._slices(number) if number else None)

    def _supports(self, before: Round, owners: list[Owner]) -> Iterator[tuple[Owner, NDArray[Any]]]:
        """The supports of blocks among what lives."""
        whole = self._owning
        owning = Owning(
            before.blocks,
            whole.computes,
            room=whole.room,
            threads=whole.threads,
            algorithm=whole.algorithm,
            knobs=whole.knobs,
        )
        return owning.slices(owners)

    def _slices(self, number: int, *, resume: bool = True) -> Slices:
        work = work_key(self._store, self._owning.algorithm, self._owning.knobs)
        folder = self._store.beside(f"{ROUNDS}{number}")
        return Slices(folder, key_of(work=work, k=self._k, round=number), resume=resume, due=self._due)

    def _numbers(self) -> list[int]:
        """The rounds that are there, ascending."""
        folder = self._store.beside(ROUNDS).parent
        with named_failures(folder, "looked through", "check the folder and its permissions"):
            names = os.listdir(folder)
        return sorted(int(match[1]) for match in map(ROUND.fullmatch, names) if match)


def truss_without_rounds(store: Store, k: int) -> StoreTruss | None:
    """The k-trusses that need no look at the graph: all of it, or nothing where its edges are less than C(k, 2)."""
    arcs = store.counts.arcs
    if k > LEAST_K and k * (k - 1) // 2 <= store.manifest.m:
        return None
    living = arcs if k == LEAST_K else np.zeros_like(arcs)
    return StoreTruss(k, LivingBlocks(store, living, lambda pair: Kept.all(int(living[pair]))), 0, None)


def loading_bytes(counts: Counts) -> int:
    """What reading a block takes beyond its living part: all of its arcs and rows, their bits, and a piece."""
    whole = 4 * counts.arcs + counts.arcs // 8 + 12 * (counts.sizes[:, None] + 1)
    return int(whole.max(initial=0)) + PIECE_BYTES


def disk_bytes(counts: Counts) -> int:
    """What two rounds take on disk."""
    return 2 * sum(bits_bytes(arcs) + HEADER_BYTES for arcs in counts.arcs.ravel().tolist())


def _symmetric(which: NDArray[np.bool_]) -> NDArray[np.int64]:
    return (which | which.T).astype(np.int64)
