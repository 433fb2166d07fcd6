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

from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import BatchWork, Counts, Knobs, PrepareBatch
from wedgewise.algorithms.cpu._batches import (
    FLAG,
    GROUP,
    IJ,
    IK,
    ITEM_WORDS,
    CpuBatchItems,
    batch_of,
    batch_work,
    busy_rows_at,
    item_at,
    put_found,
)
from wedgewise.algorithms.cpu._keystone_close import (
    BlockTask,
    RowWorkspace,
    Sinks,
    close_range,
    counting_bytes,
    counting_workspace,
)
from wedgewise.algorithms.cpu._keystone_hubs import CHOOSE_HUBS
from wedgewise.algorithms.cpu._keystone_rows import Ledger, Marks
from wedgewise.algorithms.cpu._keystone_triple_hubs import (
    BatchHubs,
    HubTable,
    are_hubs_likely,
    hubs_at,
    hubs_bytes,
    hubs_of,
)
from wedgewise.algorithms.cpu._records import Rows, row_at, rows_in, widening_bytes
from wedgewise.machine.jit import kernel
from wedgewise.machine.primitives import ticks
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import Block
from wedgewise.stages.tasks import TaskBatch, TripleShape


@kernel
def heads_follow(rows: Rows) -> SupportsInt:
    """Whether every head has a higher number than its row."""
    for number in range(np.uint64(len(rows.offsets)) - np.uint64(1)):
        row = row_at(rows, np.uint64(number))
        if row.begin < row.end and np.uint64(row.heads[row.begin]) <= number:
            return np.uint64(0)
    return np.uint64(1)


@kernel
def close_items(
    batch: CpuBatchItems,
    hubs: HubTable,
    begin: int,
    end: int,
    own: Marks | Ledger,
    lists: Ids,
    sinks: Sinks,
    found: Keys,
) -> Counts:
    """Triangles of the items begin … end − 1, each written down with its tests and ticks; the sums of all."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for number in range(np.uint64(begin), np.uint64(end)):
        since = ticks()
        closed: SupportsInt = np.uint64(0)
        tested: SupportsInt = np.uint64(0)
        at = np.uint64(number) * np.uint64(ITEM_WORDS)
        blocks, span = item_at(batch, number)
        if len(blocks.jk.heads) > 0:
            of_block = hubs_at(hubs, batch.items[at + np.uint64(GROUP)])
            (near,) = busy_rows_at(batch.table, batch.items[at + np.uint64(IJ)])
            (far,) = busy_rows_at(batch.table, batch.items[at + np.uint64(IK)])
            busy = far if len(far) < len(near) else near
            task = BlockTask(blocks, of_block, np.uint64(batch.items[at + np.uint64(FLAG)]), busy)
            closed, tested = close_range(task, span, own, lists, sinks)
        put_found(found, number, closed, tested, ticks() - since)
        triangles += np.uint64(closed)
        tests += np.uint64(tested)
    return triangles, tests


def counter(knobs: Knobs) -> PrepareBatch:
    """Prepare batches: the bit rows of a block that a whole batch looked up in are kept for the next one."""
    last: tuple[Block, BatchHubs] | None = None

    def prepare(tasks: TaskBatch) -> BatchWork:
        nonlocal last
        batch = batch_of(tasks, idle_arcs(tasks))
        looked_up = [batch.blocks[number] for number in np.unique(batch.numbers[2]).tolist()]
        if last is None or len(looked_up) > 1 or looked_up[0] is not last[0]:
            last = None  # given up before there are others
            hubs = hubs_of(batch, knobs)
            last = (looked_up[0], hubs) if len(looked_up) == 1 else None
        else:
            hubs = last[1]
        batch.words[:, GROUP] = hubs.group_of_task[batch.task_of_item] if last is None else 0

        def count(begin: int, end: int, own: RowWorkspace[Any], found: Keys) -> Counts:
            return close_items(batch.items, hubs.table, begin, end, *own, found)

        return batch_work(batch, count, lambda: counting_workspace(batch.widest))

    return prepare


def idle_arcs(batch: TaskBatch) -> NDArray[np.uint32]:
    """How many arcs at the end of each row of ij close no triangle, by task: one, where b < c share a part."""
    tasks, found = batch.tasks, np.zeros(len(batch.tasks), np.uint32)
    shared = np.flatnonzero(tasks.j == tasks.k)
    for part in set(tasks.k[shared].tolist()):
        found[shared[tasks.k[shared] == part]] = int(heads_follow(rows_in(batch.blocks[part, part])))
    return found


def bytes_needed(shape: TripleShape, knobs: Knobs) -> Any:
    return hubs_bytes(shape, knobs) + widening_bytes(shape)


def expected_bytes(shape: TripleShape, knobs: Knobs, is_skewed: bool) -> Any:
    """What is needed, without bit rows where a graph has no hubs to speak of."""
    needed = bytes_needed(shape, knobs)
    ratio, chooses = int(knobs["probe_ratio"]), int(knobs["hubs"]) == CHOOSE_HUBS
    if not chooses or is_skewed:
        return needed
    return needed - np.where(are_hubs_likely(shape, ratio), 0, hubs_bytes(shape, knobs))


def thread_bytes(columns_k: Any, knobs: Knobs) -> Any:
    return counting_bytes(columns_k)
