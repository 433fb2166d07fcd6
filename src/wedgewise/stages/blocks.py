"""Blocks: an oriented graph's adjacency matrix cut alike in rows and columns, and tasks that its triangles fall into.

    OrientedGraph ─partition→ Blocks      Task = three numbers of parts      Triple = the three blocks of a task

                  part j      part k          a in part i, b in part j, c in part k:
                     ┊           ┊            arcs a → b are in block ij, a → c in ik, b → c in jk
    part i ┄┄┄┄┄┄ [ ij ]┄┄┄┄ [ ik ]
                     ┊           ┊            Each triangle a → b → c, a → c is in exactly one task.
    part j ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ [ jk ]

Ids are divided among parts in one of two ways: `Rectilinear` parts are ranges of ids (BBTC, §4.1), so that arcs from
lower to higher ids only go to the same or to later parts; `Hashed` parts take the ids in turn (TRUST, §5.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.stages import Ids

WIDE_ARCS = 2**32  # offsets are 64-bit where a block has so many arcs
ID_NAMES = ("rank", "indegree", "classes")  # of hashed parts; see `wedgewise.prepare.orient`


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The arcs from part i to part j: row r is ``heads[offsets[r]:offsets[r + 1]]``, ascending.

    Rows and heads are numbered within their parts. 4 bytes per arc and per row; 8 per row where a block of part i has
    2^32 arcs or more.

    Attributes
    ----------
    offsets : one more than part i has ids
    heads : numbers within part j
    columns : how many ids part j has
    busy_rows : the rows that have arcs, ascending, where somebody has listed them
    places : where these arrays are in memory and how long each is, where somebody has noted that for tables of batches
    """

    offsets: NDArray[np.uint32] | NDArray[np.uint64]
    heads: Ids
    columns: int
    busy_rows: Ids | None = None
    places: tuple[int, ...] | None = None

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def m(self) -> int:
        return len(self.heads)

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.heads.nbytes + (0 if self.busy_rows is None else self.busy_rows.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class Rectilinear:
    """Part i has the ids ``cuts[i]`` … ``cuts[i + 1] − 1``; it may have none.

    Later parts have higher ids: arcs to higher ids then never go to an earlier part.
    """

    cuts: NDArray[np.int64]
    is_ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.cuts) < 2 or self.cuts[0] != 0 or bool((np.diff(self.cuts) < 0).any()):
            raise InputError("cuts ascend from 0 to the number of ids, and there are at least two; check the cuts")

    @property
    def n(self) -> int:
        return int(self.cuts[-1])

    @property
    def parts(self) -> int:
        return len(self.cuts) - 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many ids each part has."""
        return tuple(np.diff(self.cuts).tolist())

    def ids(self, part: int) -> Ids:
        """The ids of a part, by their numbers within it."""
        return np.arange(self.cuts[part], self.cuts[part + 1], dtype=np.uint32)

    def to_dict(self) -> dict[str, Any]:
        """What `partition_from` makes the partition of again; JSON can hold it."""
        return {"kind": "rectilinear", "cuts": self.cuts.tolist()}


@dataclass(frozen=True, slots=True)
class Hashed:
    """Id u is in part u mod p, as number u div p; what ids mean is as in `OrientedGraph`."""

    n: int
    parts: int
    named_by: str = "rank"
    is_ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.named_by not in ID_NAMES:
            raise InputError(f"no ids by {self.named_by!r}; there are: {', '.join(ID_NAMES)}")
        if self.parts < 1:
            raise InputError(f"there is at least one part, not {self.parts}; ask for more parts")

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(range(part, self.n, self.parts)) for part in range(self.parts))

    def ids(self, part: int) -> Ids:
        return np.arange(part, self.n, self.parts, dtype=np.uint32)

    def to_dict(self) -> dict[str, Any]:
        whole = {"kind": "hashed", "n": self.n, "parts": self.parts}
        return whole if self.named_by == "rank" else {**whole, "ids": self.named_by}


Partition = Rectilinear | Hashed  # ids 0 … n − 1 among parts; within a part, they are numbered in ascending order


def check_parts(parts: int, n: int) -> None:
    """Refuse to cut so many vertices into more parts than there are; no vertices are one part."""
    most = max(1, n)
    if parts > most:
        vertices, cut = "1 vertex" if n == 1 else f"{n:,} vertices", "1 part" if most == 1 else f"{most:,} parts"
        raise InputError(f"{vertices} can be cut into at most {cut}, not {parts:,}; ask for fewer")


def partition_from(description: Mapping[str, Any]) -> Partition:
    """The partition that `Partition.to_dict` described."""
    match description:
        case {"kind": "rectilinear", "cuts": cuts}:
            return Rectilinear(np.array(cuts, np.int64))
        case {"kind": "hashed", "n": n, "parts": parts}:
            return Hashed(int(n), int(parts), description.get("ids", "rank"))
    raise InputError(f"no partition is described by {dict(description)!r}; partition the graph again")


@dataclass(frozen=True, slots=True)
class Task:
    """The triangles a → b → c, a → c with a in part i, b in part j, c in part k.

    Attributes
    ----------
    number : its position among all tasks of a partition
    share, shares : it has the rows a whose number within part i is ``share`` modulo ``shares`` (TRUST, §5.3)
    """

    number: int
    i: int
    j: int
    k: int
    share: int = 0
    shares: int = 1


@dataclass(frozen=True, slots=True)
class Triple:
    """The blocks that one task reads."""

    ij: Block
    ik: Block
    jk: Block


@dataclass(frozen=True, slots=True)
class Blocks:
    """All arcs of an oriented graph: blocks of the pairs i ≤ j where parts are ordered, of all pairs otherwise."""

    partition: Partition
    blocks: Mapping[tuple[int, int], Block]
    n: int
    m: int

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks.values())

    def triple(self, task: Task) -> Triple:
        """The blocks that a task reads."""
        return Triple(self.blocks[task.i, task.j], self.blocks[task.i, task.k], self.blocks[task.j, task.k])
