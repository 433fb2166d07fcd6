"""Blocks of which some arcs have died: a bit per arc says which live, and the dead ones are left out when one is read.

Kernels see blocks like any other; they never learn of the bits. Everything here goes over `PIECE_ARCS` arcs at a time,
so that no more than a block and its living part are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import VerificationError
from wedgewise.stages.blocks import Block, Partition
from wedgewise.stages.tasks import Counts
from wedgewise.store.manifest import Pair
from wedgewise.store.open import Store, private_memory

PIECE_ARCS = 1 << 20  # a multiple of 8
PIECE_BYTES = 16 * PIECE_ARCS  # of marks, of running sums, and of the living heads
NUMBERS = np.dtype("<u8")
HEADER_BYTES = 2 * NUMBERS.itemsize

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

    def unchanged(self) -> Kept:
        """The same behind a round that takes nothing."""
        return Kept(self.bits, 0, self.support)

    def without_weak(self, supports: NDArray[Any], least: int, arcs: int) -> Kept:
        """What is left when living arcs of supports, in their order, below `least` die."""
        bits, died, kept_support, at = np.empty_like(self.bits), 0, 0, 0
        for begin, lives in _pieces(self.bits, arcs):
            among = supports[at : at + np.count_nonzero(lives)]
            strong = among >= least
            at += len(among)
            died += len(among) - int(np.count_nonzero(strong))
            kept_support += int(among[strong].sum(dtype=np.uint64))
            lives[lives] = strong
            bits[begin // 8 : bits_bytes(begin + len(lives))] = np.packbits(lives, bitorder="little")
        if at != len(supports):
            raise VerificationError(f"{len(supports):,} supports for {at:,} living arcs: please report this")
        return Kept(bits, died, kept_support)


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
    kept: Callable[[Pair], Kept]

    @property
    def partition(self) -> Partition:
        return self.store.partition

    @property
    def counts(self) -> Counts:
        return Counts(self.living, self.store.counts.sizes)

    def block(self, i: int, j: int, *, threads: int = 1) -> Block:
        """The living part of a block."""
        whole = self.store.block(i, j, threads=threads)
        if self.living[i, j] == whole.m:
            return whole
        return living_part(whole, self.kept((i, j)))


def living_part(block: Block, which: Kept) -> Block:
    """A block without its dead arcs."""
    heads = private_memory(which.living, block.heads.dtype)
    offsets = private_memory(len(block.offsets), block.offsets.dtype)
    kept = 0
    for begin, lives in _pieces(which.bits, block.m):
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


def _pieces(bits: Bits, arcs: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Where each piece begins, and whether its arcs live."""
    for begin in range(0, arcs, PIECE_ARCS):
        end = min(arcs, begin + PIECE_ARCS)
        piece = bits[begin // 8 : bits_bytes(end)]
        yield begin, np.unpackbits(piece, count=end - begin, bitorder="little").view(np.bool_)
