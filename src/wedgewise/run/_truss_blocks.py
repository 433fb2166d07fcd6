"""What is known of the arcs of a block after a round of a truss, and the block without its removed arcs.

`ArcBitmap` has a bit per arc, for one k-truss; `ArcLevels` has 4 bytes per arc, for truss numbers. Both go over
`PIECE_ARCS` arcs at a time, so that no more than a block and its remaining part are in memory.
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
REMOVED = 1 << 31  # no arc has so many triangles
Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class ArcBitmap:
    """The remaining arcs of a block after a round.

    Attributes
    ----------
    bits : whether each arc of the store's block remains, the first one in the lowest bit
    removed : how many arcs the round removed
    support : the supports of the remaining arcs, summed up, when they were looked at last
    """

    bits: Bits
    removed: int
    support: int
    name: ClassVar[str] = "truss"
    k: ClassVar[int] = 0  # of rounds, which is known

    @staticmethod
    def stored_form(arcs: int) -> tuple[str, int]:
        """The type and the length of what `to_array` makes."""
        return "|u1", HEADER_BYTES + bits_bytes(arcs)

    @property
    def remaining(self) -> int:
        return int(np.bitwise_count(self.bits).sum(dtype=np.int64))

    def to_array(self) -> Bits:
        """All of it as bytes."""
        return np.concatenate([np.array([self.removed, self.support], NUMBERS).view(np.uint8), self.bits])

    @classmethod
    def of(cls, array: NDArray[Any], arcs: int) -> ArcBitmap:
        """What `to_array` made bytes of."""
        fits = array.dtype == np.uint8 and len(array) == HEADER_BYTES + bits_bytes(arcs)
        if not fits or (arcs % 8 and int(array[-1]) >> arcs % 8):
            raise VerificationError(f"{len(array):,} bytes say which of {arcs:,} arcs live; start again with --restart")
        removed, support = array[:HEADER_BYTES].view(NUMBERS).tolist()
        return cls(array[HEADER_BYTES:], removed, support)

    @classmethod
    def all(cls, arcs: int) -> ArcBitmap:
        """Every arc of a block."""
        bits = np.full(bits_bytes(arcs), 0xFF, np.uint8)
        if arcs % 8:
            bits[-1] = (1 << arcs % 8) - 1
        return cls(bits, 0, 0)

    def pieces(self, arcs: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Where each piece begins, and whether its arcs remain."""
        for begin in range(0, arcs, PIECE_ARCS):
            end = min(arcs, begin + PIECE_ARCS)
            piece = self.bits[begin // 8 : bits_bytes(end)]
            yield begin, np.unpackbits(piece, count=end - begin, bitorder="little").view(np.bool_)

    def after_round(self, supports: NDArray[Any] | None, k: int, arcs: int) -> ArcBitmap:
        """What remains when arcs of supports, in their order, below k − 2 are removed; all without supports."""
        if supports is None:
            return ArcBitmap(self.bits, 0, self.support)
        least, bits, removed, kept_support, at = k - MIN_K, np.empty_like(self.bits), 0, 0, 0
        for begin, remains in self.pieces(arcs):
            among = supports[at : at + np.count_nonzero(remains)]
            strong = among >= least
            at += len(among)
            removed += len(among) - int(np.count_nonzero(strong))
            kept_support += int(among[strong].sum(dtype=np.uint64))
            remains[remains] = strong
            bits[begin // 8 : bits_bytes(begin + len(remains))] = np.packbits(remains, bitorder="little")
        _check_count(supports, at)
        return ArcBitmap(bits, removed, kept_support)


@dataclass(frozen=True, slots=True, eq=False)
class ArcLevels:
    """What is known of the arcs of a block after a round.

    Attributes
    ----------
    numbers : the support of a remaining arc, when it was looked at last; of a removed one its truss number, plus
        `REMOVED`
    k : of the round
    removed : how many arcs the round removed
    """

    numbers: NDArray[np.uint32]
    k: int
    removed: int
    name: ClassVar[str] = "trussness"

    @staticmethod
    def stored_form(arcs: int) -> tuple[str, int]:
        """The type and the length of what `to_array` makes."""
        return LEVELS.str, 2 + arcs

    @property
    def remaining(self) -> int:
        return sum(int(np.count_nonzero(remains)) for _, remains in self.pieces(len(self.numbers)))

    @property
    def support(self) -> int:
        """The least support of a remaining arc."""
        return int(self.numbers.min(initial=REMOVED - 1))

    @property
    def truss_numbers(self) -> NDArray[np.uint32]:
        """Those of all arcs, which are removed."""
        return self.numbers - np.uint32(REMOVED)

    def to_array(self) -> NDArray[np.uint32]:
        """All of it as one array."""
        return np.concatenate([np.array([self.k, self.removed], LEVELS), self.numbers])

    @classmethod
    def of(cls, array: NDArray[Any], arcs: int) -> ArcLevels:
        """What `to_array` made an array of."""
        return cls(array[2:], *array[:2].tolist())

    @classmethod
    def all(cls, arcs: int) -> ArcLevels:
        """Every arc of a block, of no known support."""
        return cls(np.zeros(arcs, LEVELS), 0, 0)

    def pieces(self, arcs: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Where each piece begins, and whether its arcs remain."""
        for begin in range(0, arcs, PIECE_ARCS):
            yield begin, self.numbers[begin : begin + PIECE_ARCS] < REMOVED

    def after_round(self, supports: NDArray[Any] | None, k: int, arcs: int) -> ArcLevels:
        """What is known when arcs of less than k − 2 triangles are removed, by these supports or known ones."""
        numbers, removed, at = self.numbers.copy(), 0, 0
        for begin, remains in self.pieces(arcs):
            piece = numbers[begin : begin + len(remains)]
            if supports is not None:
                end = at + int(np.count_nonzero(remains))
                piece[remains] = supports[at:end]
                at = end
            weak = piece < k - MIN_K  # a removed one is not
            piece[weak] = REMOVED + k - 1
            removed += int(np.count_nonzero(weak))
        if supports is not None:
            _check_count(supports, at)
        return ArcLevels(numbers, k, removed)


def _check_count(supports: NDArray[Any], remaining: int) -> None:
    if remaining != len(supports):
        raise VerificationError(f"{len(supports):,} supports for {remaining:,} living arcs: please report this")


@dataclass(frozen=True, slots=True, eq=False)
class RemainingBlocks:
    """The blocks of a store without their removed arcs.

    Attributes
    ----------
    remaining : how many arcs of every block remain
    kept : what is known of a block of which some arcs are removed
    """

    store: Store
    remaining: NDArray[np.int64]
    kept: Callable[[Pair], ArcBitmap | ArcLevels]

    @property
    def partition(self) -> Partition:
        return self.store.partition

    @property
    def counts(self) -> BlockCounts:
        return BlockCounts(self.remaining, self.store.counts.sizes)

    def block(self, i: int, j: int, *, threads: int = 1) -> Block:
        """The remaining part of a block."""
        whole = self.store.block(i, j, threads=threads)
        if self.remaining[i, j] == whole.m:
            return whole
        return remaining_part(whole, self.kept((i, j)))


def remaining_part(block: Block, which: ArcBitmap | ArcLevels) -> Block:
    """A block without its removed arcs."""
    heads = private_memory(which.remaining, block.heads.dtype)
    offsets = private_memory(len(block.offsets), block.offsets.dtype)
    kept = 0
    for begin, remains in which.pieces(block.m):
        end = begin + len(remains)
        before = np.cumsum(remains, dtype=block.offsets.dtype)
        rows = slice(*np.searchsorted(block.offsets, np.array([begin, end], block.offsets.dtype), side="right"))
        offsets[rows] = kept + before[block.offsets[rows] - begin - 1]
        heads[kept : kept + int(before[-1])] = block.heads[begin:end][remains]
        kept += int(before[-1])
    return Block(offsets, heads, block.columns)


def bits_bytes(arcs: int) -> int:
    """What a bit per arc takes."""
    return -(-arcs // 8)
