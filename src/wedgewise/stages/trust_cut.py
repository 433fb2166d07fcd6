"""How TRUST divides a graph among workers (§5.3, §6.5): into n × n blocks, and the tasks of every three into m shares.

    n = 1 where the whole graph fits a worker:    |E| · edge bytes < memory of a worker
    else the least n whose tasks do:              3 · |E| / n² · edge bytes < memory of a worker
    m = workers / n³, rounded up: m · n³ tasks, one for each worker

The paper does not say what an edge takes. With 8 bytes, its graphs on GPUs of 16 GB are cut as it says: clueweb12 and
uk-2014 into n = 8, and none of the others.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

from wedgewise.stages.blocks import Partition
from wedgewise.stages.tasks import task_count

EDGE_BYTES = 8


class TrustCut(NamedTuple):
    """The parts n and the shares m."""

    parts: int
    shares: int


def trust_cut(edges: int, workers: int, worker_bytes: int) -> TrustCut:
    """TRUST's n and m for so many workers, each with so much memory.

    Examples
    --------
    >>> trust_cut(42_464_215_550, workers=1024, worker_bytes=16 * 10**9)  # uk-2014
    TrustCut(parts=8, shares=2)
    """
    graph_bytes = EDGE_BYTES * edges
    parts = 1 if graph_bytes < worker_bytes else isqrt(3 * graph_bytes // worker_bytes) + 1
    return TrustCut(parts, shares_for(workers, parts**3))


def shares_for(workers: int, tasks: int) -> int:
    """The fewest shares that make a task for every worker."""
    return max(1, -(-workers // tasks))


def trust_reasons(partition: Partition, edges: int, workers: int, worker_bytes: int, shares: int) -> tuple[str, ...]:
    """What TRUST would take, and what that means for a graph that is cut already, unless it has these shares anyway."""
    rule, here = trust_cut(edges, workers, worker_bytes), shares_for(workers, task_count(partition))
    for_workers = f"TRUST's rule for {workers:,} workers of {worker_bytes:,} bytes"
    advice = f"with the {partition.parts:,} parts of this store, m = {here:,} makes a task for each worker"
    taken = f"{for_workers}: n = {rule.parts:,} hashed parts, m = {rule.shares:,} shares"
    return (taken,) if here == shares else (taken, advice)
