"""Keystone on three blocks: mark a's row of block ik, compare it with the rows of block jk at a's heads in block ij.

For each arc a → b of block ij, the cheapest way to the common heads of a in ik and of b in jk:

    b below the hubs               stream b's row, test each head in a's bitmap
    b a hub, a has many heads      AND + POPCNT of a's bitmap with b's bit row, 512 bits at a time
    b a hub, a has few             test those few in b's bit row; a row of few heads is then never marked

Only rows a with arcs in both ij and ik are visited, found a stretch of rows at a time, so that no branch depends on
which they are. Since the least columns of hubs ascend with b, the heads of a that matter are found by one walk along
its row. Any numbering within the parts gives the right count; ids by rank are fast.
Memory of a worker: bit rows, at most 4 bytes per arc of jk and 1 MB; 8 bytes per hub; a bit per column; 4 KB.
"""

from __future__ import annotations

from typing import SupportsInt

import numpy as np

from wedgewise.algorithms._contract import Knobs, PrepareTask, TripleShape, Work
from wedgewise.algorithms.cpu._keystone_close import BlockTask, closing_pass, counting_bytes, counting_workspace
from wedgewise.algorithms.cpu._keystone_hubs import CHOOSE_HUBS
from wedgewise.algorithms.cpu._keystone_triple_hubs import BlockHubs, are_hubs_likely, hubs_bytes
from wedgewise.algorithms.cpu._records import NOTHING, Blocks3, Rows, blocks_in, has_none, row_at, widening_bytes
from wedgewise.machine.jit import kernel
from wedgewise.stages.blocks import Triple


@kernel
def heads_follow(rows: Rows) -> SupportsInt:
    """Whether every head has a higher number than its row."""
    for number in range(np.uint64(len(rows.offsets)) - np.uint64(1)):
        row = row_at(rows, np.uint64(number))
        if row.begin < row.end and np.uint64(row.heads[row.begin]) <= number:
            return np.uint64(0)
    return np.uint64(1)


def idle_arcs(triple: Triple, blocks: Blocks3) -> int:
    """How many arcs at the end of a row of ij close no triangle: one, where b and c share a part in ascending order."""
    return int(heads_follow(blocks.jk)) if triple.ij is triple.ik else 0


def task_of(triple: Triple, block_hubs: BlockHubs, shares: int = 1) -> BlockTask:
    """What kernels take of a task whose block jk has these hubs."""
    blocks = blocks_in(triple)
    return BlockTask(blocks, block_hubs.of(triple, blocks, shares), np.uint64(idle_arcs(triple, blocks)))


def prepare(triple: Triple, knobs: Knobs, share: int, shares: int) -> Work:
    """Choose the hubs of block jk and fill their rows."""
    return prepare_in_turn(knobs, 1)(triple, share, shares)


def prepare_in_turn(knobs: Knobs, tasks: int) -> PrepareTask:
    """Prepare tasks with the same block jk: its bit rows are kept."""
    hubs = BlockHubs(knobs, tasks)

    def prepare_task(triple: Triple, share: int, shares: int) -> Work:
        if has_none(triple):
            return NOTHING
        task = task_of(triple, hubs, shares)
        return Work((closing_pass(task, lambda: counting_workspace(triple.jk.columns), share, shares),))

    return prepare_task


def bytes_needed(shape: TripleShape, knobs: Knobs) -> int:
    return hubs_bytes(shape, knobs) + thread_bytes(shape.columns_k, knobs) + widening_bytes(shape)


def expected_bytes(shape: TripleShape, knobs: Knobs, is_skewed: bool) -> int:
    """What is needed, without bit rows where a graph has no hubs to speak of."""
    needed = bytes_needed(shape, knobs)
    ratio, chooses = int(knobs["probe_ratio"]), int(knobs["hubs"]) == CHOOSE_HUBS
    if not chooses or is_skewed or are_hubs_likely(shape, ratio):
        return needed
    return needed - hubs_bytes(shape, knobs)


def thread_bytes(columns_k: int, knobs: Knobs) -> int:
    return counting_bytes(columns_k)
