"""What algorithms on three blocks share on a device: arrays of one width, rows listed by class, and how many launches.

Nothing here waits for the device: what depends on degrees is written and read by kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from wedgewise.algorithms._contract import Launch
from wedgewise.algorithms.gpu._launches import grid_for, offset_bits
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages.blocks import Triple

WIDE_FROM = 1 << 31  # arcs of a block: a stride behind the last of fewer stays within 32 bits
LISTING_BLOCK, LISTING_BLOCKS_PER_SM = 256, 8
CLASSES = 2
LONGEST_ROW = (1 << 31) - 1
ID_BYTES = 4


class TripleArrays(NamedTuple):
    """Offsets and heads of the blocks ij, ik and jk as kernels take them; offsets have the width of the widest."""

    ij_offsets: Array
    ij_heads: Array
    ik_offsets: Array
    ik_heads: Array
    jk_offsets: Array
    jk_heads: Array

    @classmethod
    def of(cls, triple: Triple) -> TripleArrays:
        blocks = (triple.ij, triple.ik, triple.jk)
        is_wide = any(block.offsets.dtype.itemsize > ID_BYTES or block.m >= WIDE_FROM for block in blocks)
        width = np.dtype(np.uint64 if is_wide else np.uint32)
        ij, ik, jk = (block.offsets.astype(width, copy=False) for block in blocks)
        return cls(ij, triple.ij.heads, ik, triple.ik.heads, jk, triple.jk.heads)

    def launches(self, shares: int, most: int) -> int:
        """Launches of a share, of about `most` each."""
        arcs = len(self.ij_heads), len(self.ik_heads), len(self.jk_heads)
        return launches_of(len(self.ij_offsets) - 1, len(self.jk_offsets) - 1, arcs, most * shares)


def widening_bytes(rows_i: int, rows_j: int, *arcs: int) -> int:
    """What `TripleArrays.of` may copy: offsets beside wider ones, or of blocks with many arcs."""
    return 8 * (2 * rows_i + rows_j + 3) if max(arcs) >= WIDE_FROM else 0


def launches_of(rows_i: int, rows_j: int, arcs: tuple[int, int, int], most: int) -> int:
    """Launches of about `most` each by BBTC's estimate of the task: arcs of ij times the larger average degree."""
    arcs_ij, arcs_ik, arcs_jk = arcs
    degree = max(arcs_ik / max(1, rows_i), arcs_jk / max(1, rows_j))
    return max(1, ceil(arcs_ij * degree / most))


@dataclass(frozen=True, slots=True)
class ListedRows:
    """Rows of a share that can begin triangles, as triple_rows.cu lists them when it is launched.

    ``counters`` are the lengths of both classes, then for each launch the rows that were taken of each.
    """

    first: tuple[Launch, ...]
    positions: Array
    counters: Array
    launches: int

    @classmethod
    def of(
        cls, arrays: TripleArrays, share: int, shares: int, most: tuple[int, int], launches: int, device: Device
    ) -> ListedRows:
        """Take memory for the rows; rows with more than ``most`` arcs in ij, or in ik, are large.

        The launches that clear the counters and list the rows come before all others.
        """
        xp, count = device.xp, rows_in_share(len(arrays.ij_offsets) - 1, share, shares)
        positions, counters = xp.empty(count, xp.uint32), xp.empty(CLASSES * (1 + launches), xp.uint32)
        numbers = map(np.uint32, (share, shares, count, *most))
        arguments = (arrays.ij_offsets, arrays.ik_offsets, *numbers, positions, counters)
        grid = grid_for(count, LISTING_BLOCK, LISTING_BLOCKS_PER_SM, device)
        listing = partial(device.launch, "triple_rows", "list_rows", grid, LISTING_BLOCK, arguments)
        first = partial(counters.fill, 0), partial(listing, defines=(offset_bits(arrays.ij_offsets),))
        return cls(first, positions, counters, launches)

    def arguments(self, launch: int) -> tuple[Any, ...]:
        """The places, the lengths, how many places there are, the launch, all launches, and its counters."""
        numbers = (np.uint32(len(self.positions)), np.uint32(launch), np.uint32(self.launches))
        return self.positions, self.counters, *numbers, self.counters[CLASSES * (1 + launch) :]


def rows_in_share(rows: int, share: int, shares: int) -> int:
    return len(range(share, rows, shares))


def listing_bytes(rows_i: int, launches: int) -> int:
    return ID_BYTES * (rows_i + CLASSES * (1 + launches))
