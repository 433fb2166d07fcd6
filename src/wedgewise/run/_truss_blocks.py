"""What is known of the arcs of a block behind a round of a truss, and the block without its removed arcs.

`Kept` has a bit per arc, for one k-truss; `Levels` has 4 bytes per arc, for truss numbers. Both go over `PIECE_ARCS`
arcs at a time, so that no more than a block and its living part are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import MIN_K
from wedgewise.errors import VerificationError
from wedgewise.stages.blocks import Block, Partition
from wedgewise.stages.tasks import BlockCounts, Pair
from wedgewise.store.open import Store, private_memory

PIECE_ARCS = 1 << 20  # a multiple of 8
NUMBERS = np.dtype("<u8")
HEADER_BYTES = 2 * NUMBERS.itemsize
LEVELS = np.dtype("<u4")
DEAD = 1 << 31  # no arc has so many triangles
Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What lives of a block behind a round.

    Attributes
    ----------
    bits : whether each arc of the store's block lives, the first one in the lowest bit
    died : how many arcs the round took
    support : the supports of the living arcs, summed up, when they were looked at last
    """

    bits: Bits
    died: int
    support: int
    name: ClassVar[str] = "truss"
    k: ClassVar[int] = 0  # of rounds, which is known

    @staticmethod
    def due(arcs: int) -> tuple[str, int]:
        """The type and the length of what `to_array` makes."""
        return "|u1", HEADER_BYTES + bits_bytes(arcs)

    @property
    def living(self) -> int:
        return int(np.bitwise_count(self.bits).sum(dtype=np.int64))

    def to_array(self) -> Bits:
        """All of it as bytes."""
        return np.concatenate([np.array([self.died, self.support], NUMBERS).view(np.uint8), self.bits])

    @classmethod
    def of(cls, array: NDArray[Any], arcs: int) -> Kept:
        """What `to_array` made bytes of."""
        fits = array.dtype == np.uint8 and len(array) == HEADER_BYTES + bits_bytes(arcs)
        if not fits or (arcs % 8 and int(array[-1]) >> arcs % 8):
            raise VerificationError(f"{len(array):,} bytes say which of {arcs:,} arcs live; start again with --restart")
        died, support = array[:HEADER_BYTES].view(NUMBERS).tolist()
        return cls(array[HEADER_BYTES:], died, support)

    @classmethod
    def all(cls, arcs: int) -> Kept:
        """Every arc of a block."""
        bits = np.full(bits_bytes(arcs), 0xFF, np.uint8)
        if arcs % 8:
            bits[-1] = (1 << arcs % 8) - 1
        return cls(bits, 0, 0)

    def pieces(self, arcs: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Where each piece begins, and whether its arcs live."""
        for begin in range(0, arcs, PIECE_ARCS):
            end = min(arcs, begin + PIECE_ARCS)
            piece = self.bits[begin // 8 : bits_bytes(end)]
            yield begin, np.unpackbits(piece, count=end - begin, bitorder="little").view(np.bool_)

    def behind(self, supports: NDArray[Any] | None, k: int, arcs: int) -> Kept:
        """What is left when living arcs of supports, in their order, below k − 2 die; all without supports."""
        if supports is None:
            return Kept(self.bits, 0, self.support)
        least, bits, died, kept_support, at = k - MIN_K, np.empty_like(self.bits), 0, 0, 0
        for begin, lives in self.pieces(arcs):
            among = supports[at : at + np.count_nonzero(lives)]
            strong = among >= least
            at += len(among)
            died += len(among) - int(np.count_nonzero(strong))
            kept_support += int(among[strong].sum(dtype=np.uint64))
            lives[lives] = strong
            bits[begin // 8 : bits_bytes(begin + len(lives))] = np.packbits(lives, bitorder="little")
        _check_count(supports, at)
        return Kept(bits, died, kept_support)


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What is known of the arcs of a block behind a round.

    Attributes
    ----------
    numbers : the support of a living arc, when it was looked at last; of a dead one its truss number, plus `DEAD`
    k : of the round
    died : how many arcs the round took
    """

    numbers: NDArray[np.uint32]
    k: int
    died: int
    name: ClassVar[str] = "trussness"

    @staticmethod
    def due(arcs: int) -> tuple[str, int]:
        """The type and the length of what `to_array` makes."""
        return LEVELS.str, 2 + arcs

    @property
    def living(self) -> int:
        return sum(int(np.count_nonzero(lives)) for _, lives in self.pieces(len(self.numbers)))

    @property
    def support(self) -> int:
        """The least support of a living arc."""
        return int(self.numbers.min(initial=DEAD - 1))

    @property
    def truss_numbers(self) -> NDArray[np.uint32]:
        """Those of all arcs, which are dead."""
        return self.numbers - np.uint32(DEAD)

    def to_array(self) -> NDArray[np.uint32]:
        """All of it as one array."""
        return np.concatenate([np.array([self.k, self.died], LEVELS), self.numbers])

    @classmethod
    def of(cls, array: NDArray[Any], arcs: int) -> Levels:
        """What `to_array` made an array of."""
        return cls(array[2:], *array[:2].tolist())

    @classmethod
    def all(cls, arcs: int) -> Levels:
        """Every arc of a block, of no known support."""
        return cls(np.zeros(arcs, LEVELS), 0, 0)

    def pieces(self, arcs: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Where each piece begins, and whether its arcs live."""
        for begin in range(0, arcs, PIECE_ARCS):
            yield begin, self.numbers[begin : begin + PIECE_ARCS] < DEAD

    def behind(self, supports: NDArray[Any] | None, k: int, arcs: int) -> Levels:
        """What is known when living arcs die that have less than k − 2 triangles, by these supports or known ones."""
        numbers, died, at = self.numbers.copy(), 0, 0
        for begin, lives in self.pieces(arcs):
            piece = numbers[begin : begin + len(lives)]
            if supports is not None:
                end = at + int(np.count_nonzero(lives))
                piece[lives] = supports[at:end]
                at = end
            weak = piece < k - MIN_K  # a dead one is not
            piece[weak] = DEAD + k - 1
            died += int(np.count_nonzero(weak))
        if supports is not None:
            _check_count(supports, at)
        return Levels(numbers, k, died)


def _check_count(supports: NDArray[Any], living: int) -> None:
    if living != len(supports):
        raise VerificationError(f"{len(supports):,} supports for {living:,} living arcs: please report this")


@dataclass(frozen=True, slots=True, eq=False)
class LivingBlocks:
    """The blocks of a store without their dead arcs.

    Attributes
    ----------
    living : how many arcs of every block live
    kept : what lives of a block of which some arcs have died
    """

    store: Store
    living: NDArray[np.int64]
    kept: Callable[[Pair], Kept | Levels]

    @property
    def partition(self) -> Partition:
        return self.store.partition

    @property
    def counts(self) -> BlockCounts:
        return BlockCounts(self.living, self.store.counts.sizes)

    def block(self, i: int, j: int, *, threads: int = 1) -> Block:
        """The living part of a block."""
        whole = self.store.block(i, j, threads=threads)
        if self.living[i, j] == whole.m:
            return whole
        return living_part(whole, self.kept((i, j)))


def living_part(block: Block, which: Kept | Levels) -> Block:
    """A block without its dead arcs."""
    heads = private_memory(which.living, block.heads.dtype)
    offsets = private_memory(len(block.offsets), block.offsets.dtype)
    kept = 0
    for begin, lives in which.pieces(block.m):
        end = begin + len(lives)
        before = np.cumsum(lives, dtype=block.offsets.dtype)
        rows = slice(*np.searchsorted(block.offsets, np.array([begin, end], block.offsets.dtype), side="right"))
        offsets[rows] = kept + before[block.offsets[rows] - begin - 1]
        heads[kept : kept + int(before[-1])] = block.heads[begin:end][lives]
        kept += int(before[-1])
    return Block(offsets, heads, block.columns)


def bits_bytes(arcs: int) -> int:
    """What a bit per arc takes."""
    return -(-arcs // 8)
