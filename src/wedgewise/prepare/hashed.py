"""TRUST's 2D partition: ids are dealt to parts in turn, so that parts are alike where neighbouring ids are (TRUST, §5).

Ids are those of a graph relabelled so that vertices of similar degree are neighbours: by "classes", as TRUST divides
the work (§5.1), or by "indegree". With n parts there are n² blocks and n³ tasks, which m shares each turn into m · n³.
"""

from __future__ import annotations

from math import isqrt

from wedgewise.errors import InputError
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import Hashed

ARC_BYTES = 4
TASK_BLOCKS = 3


def hashed(graph: OrientedGraph, parts: int) -> Hashed:
    """Deal the ids of a graph to so many parts; any relabelling will do, and says how even they are."""
    return Hashed(graph.n, parts)


def fewest_parts(m: int, memory_bytes: int) -> int:
    """The least n for which the blocks of an average task are below the memory: 3 m / n² arcs (TRUST, §6.5)."""
    if memory_bytes < 1:
        raise InputError(f"{memory_bytes:,} bytes hold no block; name the memory of a device")
    return isqrt(TASK_BLOCKS * m * ARC_BYTES // memory_bytes) + 1


def shares_for(workers: int, parts: int) -> int:
    """Into how many shares each of the n³ tasks is cut, so that all workers have one (TRUST, §6.5)."""
    return max(1, workers // parts**3)
