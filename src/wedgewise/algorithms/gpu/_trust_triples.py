"""TRUST on three blocks: the row of ik hashed, the second hop through ij and jk looked up; trust_triples.cu.

Rows are listed by their partial degrees on the device, for blocks or for warps, so that nothing waits for it.
Memory beyond the blocks: 4 bytes per row of part i; 4 for each place of the tables of all blocks that run at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from wedgewise.algorithms._contract import DeviceWork, Knobs, Launch, TripleShape
from wedgewise.algorithms.cpu._records import has_none
from wedgewise.algorithms.gpu._launches import WARP, offset_bits
from wedgewise.algorithms.gpu._triples import (
    LONGEST_ROW,
    ListedRows,
    TripleArrays,
    launches_of,
    listing_bytes,
    rows_in_share,
    widening_bytes,
)
from wedgewise.algorithms.gpu._trust_tables import MOST_BLOCKS, Layout, chunk_of, table_bytes
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages.blocks import Triple

STEM = "trust_triples"
LAUNCH_ESTIMATE = 1 << 28  # arcs times average degree; skewed blocks take 30 ms for it at the authors' pace


def prepare_triple(triple: Triple, knobs: Knobs, share: int, shares: int, device: Device) -> DeviceWork:
    """List the rows of the share by class; count them in one launch, or in several of about equal work."""
    found = device.xp.zeros(2, device.xp.uint64)
    if has_none(triple) or rows_in_share(triple.ij.rows, share, shares) == 0:
        return DeviceWork.at_once((), found)
    arrays = TripleArrays.of(triple)
    layout = Layout.of(knobs, arrays.offsets.dtype.itemsize, min(triple.ik.columns, triple.ik.m), device)
    launches = arrays.launches(shares, LAUNCH_ESTIMATE)
    listed = ListedRows.of(arrays, share, shares, most_of_warp(layout, knobs), launches, device)
    return DeviceWork.at_once((*listed.first, *_counts(arrays, listed, layout, knobs, found, device)), found)


def most_of_warp(layout: Layout, knobs: Knobs) -> tuple[int, int]:
    """The most arcs in ij and in ik of a row that is for a warp: by the knob, and by the places of buckets on chip."""
    if knobs["cooptimisation"] == "off":
        return LONGEST_ROW, LONGEST_ROW
    large, on_chip = int(knobs["large"]), layout.buckets * WARP // layout.block * layout.cached
    return min(large, LONGEST_ROW), min(max(large, on_chip), LONGEST_ROW)


def _counts(
    arrays: TripleArrays, listed: ListedRows, layout: Layout, knobs: Knobs, found: Array, device: Device
) -> list[Launch]:
    """Take memory for the tables of as many blocks as run at once, which take rows in turn."""
    blocks = min(layout.blocks(device), len(listed.places))
    how = (np.uint32(chunk_of(knobs)), np.uint32(knobs["construction"] == "edge"), *layout.take_tables(blocks, device))
    launch = partial(device.launch, STEM, "count_rows", blocks, layout.block)
    return [
        partial(
            launch,
            (*arrays.arguments, *listed.arguments(number), *how, found),
            shared_bytes=layout.shared_bytes,
            defines=(offset_bits(arrays), ("COMBINATION", layout.combination)),
        )
        for number in range(listed.launches)
    ]


def triple_bytes(shape: TripleShape, knobs: Knobs) -> int:
    rows_i, rows_j, columns_k = shape.rows_i, shape.rows_j, shape.columns_k
    tables = min(MOST_BLOCKS, rows_i) * table_bytes(knobs, min(columns_k, shape.arcs_ik))
    launches = launches_of(rows_i, rows_j, shape.arcs, LAUNCH_ESTIMATE)
    return tables + listing_bytes(rows_i, launches) + widening_bytes(rows_i, rows_j, *shape.arcs)
