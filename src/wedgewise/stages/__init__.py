"""The types between the stages.

    EdgeList ─clean→ SimpleGraph ─orient→ OrientedGraph

Three different types with different field names, so that an oriented graph cannot be counted as an unoriented one.
Their arrays, which users reach, are read-only: kernels trust them.
An *edge* is undirected, an *arc* is directed; ``m`` counts edges, and arcs of the oriented graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.stages.labels import TextLabels

STEP_EDGES = 1 << 20  # at a time, so that signals are heard in between

Ids = NDArray[np.uint32]
Keys = NDArray[np.uint64]
Labels = NDArray[Any] | range | TextLabels | list[Any]
Column = str | int  # of a table: its name, or its position from 0 where there are no names
Array = TypeVar("Array")


def read_only(array: Array) -> Array:
    """The same memory as an array that nobody can write to; what is no array of the host stays as it is."""
    if not isinstance(array, np.ndarray):
        return array
    array.flags.writeable = False
    return array.view()


def make_read_only(holder: Any, *names: str) -> None:
    """Let nobody write to these attributes of a frozen dataclass, where they are arrays of the host."""
    for name in names:
        if isinstance(array := getattr(holder, name), np.ndarray):
            array.flags.writeable = False
            object.__setattr__(holder, name, array.view())


@dataclass(frozen=True, slots=True)
class Origin:
    """Where pairs came from, for reports and messages."""

    name: str
    format: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeList:
    """Raw pairs as they came: loops, duplicates and both directions may occur.

    ``pairs`` has shape (k, 2), C-contiguous, of an integer dtype (int32, int64, uint32 or uint64). Its values are

    * vertex numbers below ``vertices``, when ``vertices`` is given (a declared size; every number is a vertex), or
    * integer labels 0 … 2^63 − 1 otherwise: the vertices are the distinct labels, in ascending order.

    Pairs lie on a device where the source did. ``names`` holds the label of every vertex number (then
    ``vertices == len(names)``): text, integers, or a list of any objects; or None.
    ``columns`` and ``ignored_columns`` say which columns of a table became the ends and the weights, and which did not.
    ``weights`` holds one number per pair, when they were asked for.
    ``undirected`` says that the source has no directions: each pair stands for both of them.
    """

    pairs: NDArray[Any]
    origin: Origin
    vertices: int | None = None
    names: TextLabels | list[Any] | NDArray[Any] | None = None
    columns: tuple[Column, ...] = ()
    ignored_columns: tuple[Column, ...] = ()
    weights: NDArray[np.float64] | None = None
    undirected: bool = False

    @property
    def lies_on_device(self) -> bool:
        """Whether the pairs are an array of a device."""
        pairs: Any = self.pairs
        return not isinstance(pairs, np.ndarray)


@dataclass(frozen=True, slots=True)
class CleanReport:
    """What was read and what cleaning dropped.

    ``pairs == edges + loops + duplicates + reversed_copies`` before leaves are dropped. A pair that was already seen in
    the same direction is a duplicate; the first one seen only in the other direction is a reversed copy.

    ``columns`` are the columns of a table that became the ends of the edges, and their weights; ``ignored_columns`` are
    the others, ``dropped_columns`` of them. A column without a name has its position, from 0. ``notes`` say how a text
    file was read where that was not certain, such as whether its first line is a header.
    """

    pairs: int
    edges: int
    loops: int
    duplicates: int
    reversed_copies: int
    dropped_columns: int
    leaves_dropped: int = 0
    columns: tuple[Column, ...] = ()
    ignored_columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimpleGraph:
    """Undirected, no loops, no duplicates.

    ``slot_keys`` holds every edge once as ``u << 32 | v`` with u < v, ascending. Its numbers are *slots*: vertex v has
    slot ``slots[v]`` (ascending), or v itself where `slots` is None. A file's labels serve as slots when they are dense
    enough, so that cleaning need not renumber; `edges` does when somebody asks. ``degrees[v]`` counts v's edges.
    ``labels[v]`` is what the user called vertex v: a range where vertices are their own labels.
    8 bytes per edge, 4 per vertex, and the labels.
    """

    n: int
    slot_keys: Keys
    slots: Ids | None
    slot_count: int
    degrees: Ids
    labels: Labels
    report: CleanReport

    def __post_init__(self) -> None:
        labels_are_slots = self.labels is self.slots
        make_read_only(self, "slot_keys", "slots", "degrees", "labels")
        if labels_are_slots:
            object.__setattr__(self, "labels", self.slots)

    @property
    def m(self) -> int:
        return len(self.slot_keys)

    @property
    def slot_pairs(self) -> NDArray[np.uint32]:
        """The edges as (m, 2) slots, without a copy; which end comes first depends on the byte order."""
        return self.slot_keys.view(np.uint32).reshape(-1, 2)

    def edges(self) -> NDArray[np.uint32]:
        """The edges as (m, 2) vertices, u < v, in ascending order."""
        vertex_of_slot = None if self.slots is None else self.by_slot(np.arange(self.n, dtype=np.uint32))
        edges = np.empty((self.m, 2), np.uint32)
        for begin in range(0, self.m, STEP_EDGES):
            keys, ends = self.slot_keys[begin : begin + STEP_EDGES], edges[begin : begin + STEP_EDGES]
            ends[:, 0] = keys >> np.uint64(32)
            ends[:, 1] = keys  # keeps the low half of each key
            if vertex_of_slot is not None:
                ends[...] = vertex_of_slot[ends]
        return edges

    def by_slot(self, values: Ids) -> Ids:
        """Values per vertex laid out by slot; slots without a vertex hold zero."""
        if self.slots is None:
            return values
        laid_out = np.zeros(self.slot_count, values.dtype)
        laid_out[self.slots] = values
        return laid_out

    @property
    def nbytes(self) -> int:
        shared = self.slots is self.labels or self.slots is None
        slots = 0 if shared or self.slots is None else self.slots.nbytes
        return self.slot_keys.nbytes + self.degrees.nbytes + slots + labels_nbytes(self.labels)


class LabelledGraph(Protocol):
    """What the rows of an answer are labelled by: a graph, or what reads one again when its rows are asked for."""

    @property
    def n(self) -> int: ...

    @property
    def m(self) -> int: ...

    @property
    def labels(self) -> Labels: ...

    @property
    def edges(self) -> NDArray[np.uint32]: ...


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Every edge from both ends: the neighbours of vertex v are ``neighbours[offsets[v]:offsets[v + 1]]``, ascending.

    8 bytes per edge, 4 or 8 per vertex.
    """

    offsets: NDArray[Any]
    neighbours: Ids

    def __post_init__(self) -> None:
        make_read_only(self, "offsets", "neighbours")

    def of(self, vertex: int) -> Ids:
        """The neighbours of a vertex."""
        return self.neighbours[int(self.offsets[vertex]) : int(self.offsets[vertex + 1])]

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.neighbours.nbytes


@dataclass(frozen=True, slots=True)
class OrientedGraph:
    """Each edge an arc from the lower to the higher vertex of `order`; rows sorted by id.

    Row u is ``out_neighbours[offsets[u]:offsets[u + 1]]``. ``vertex_of[id]`` is the vertex of the simple graph.
    ``named_by`` says what ids mean: with "rank" they follow the order, so that every arc goes from a lower to a higher
    id; after another renaming only the directions are kept. ``wedges`` counts the pairs of arcs with one tail: the sum
    of C(d, 2) over the out-degrees d. 4 bytes per arc, 8 or 12 per vertex. ``strengths`` holds a number per arc where
    triangles are to be weighed by their three arcs.
    """

    n: int
    offsets: NDArray[Any]
    out_neighbours: Ids
    vertex_of: Ids
    order: str
    named_by: str
    wedges: int
    strengths: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        make_read_only(self, "offsets", "out_neighbours", "vertex_of", "strengths")

    @property
    def m(self) -> int:
        return len(self.out_neighbours)

    @property
    def follows_edges(self) -> bool:
        """Whether the arcs are in the order of the edges."""
        return (self.order, self.named_by) == ("id", "rank")

    @property
    def out_degrees(self) -> Ids:
        return np.diff(self.offsets).astype(np.uint32, copy=False)

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.out_neighbours.nbytes + self.vertex_of.nbytes


@dataclass(frozen=True, slots=True)
class DeviceSimpleGraph:
    """A simple graph whose arrays lie on a device, with the fields and the bytes of `SimpleGraph`.

    ``labels`` is None where they are the slots themselves.
    """

    n: int
    slot_keys: Any
    slots: Any | None
    slot_count: int
    degrees: Any
    labels: Labels | None
    report: CleanReport

    @property
    def m(self) -> int:
        return len(self.slot_keys)


@dataclass(frozen=True, slots=True)
class DeviceGraph:
    """An oriented graph whose arrays lie on a device, with the fields and the bytes of `OrientedGraph`."""

    n: int
    offsets: Any
    out_neighbours: Any
    vertex_of: Any
    order: str
    named_by: str
    wedges: int

    @property
    def m(self) -> int:
        return len(self.out_neighbours)

    @property
    def follows_edges(self) -> bool:
        """Whether the arcs are in the order of the edges."""
        return (self.order, self.named_by) == ("id", "rank")


def labels_nbytes(labels: Labels) -> int:
    """Bytes held by labels: none for a range, the buffers of arrays and text, pointers and objects of a list."""
    if isinstance(labels, range):
        return 0
    if isinstance(labels, np.ndarray | TextLabels):
        return int(labels.nbytes)
    return sum(8 + getsizeof(label) for label in labels)
