"""What is known of every vertex or edge of a store: found by slices, kept on disk, made arrays of or written as rows.

    question             as for the same graph in memory                 rows of a file
    triangles            int64[n], in the order of the labels            in the order of the labels
    clustering           float64[n], in the order of the labels          in the order of the labels
    average_clustering   float
    edge_support         int64[m], in the order of ``Graph.edges``       block by block
    k_truss              Truss: which of ``Graph.edges``                 block by block
    trussness            int64[m], in the order of ``Graph.edges``       block by block

What was found stays on disk until it is handed out: 8 bytes per vertex, 4 per edge, two bits per edge for a truss, and
8 bytes per edge for truss numbers. Coefficients are made of triangles and degrees when they are handed out.
Arrays by vertex have to fit into memory; those by edge only where they are asked for as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer import coefficients
from wedgewise.answer_types import Truss
from wedgewise.run._truss_blocks import ArcLevels
from wedgewise.run.checkpoint import FinishedSlices
from wedgewise.run.row_order import (
    ARRAY_EDGE_BYTES,
    PIECE_ROWS,
    Values,
    all_edges,
    degrees_of,
    edge_numbers,
    edge_pieces,
    value_pieces,
    values_by_edge,
    vertices_of_parts,
)
from wedgewise.run.task_memory import BlockSource, all_block_bytes
from wedgewise.run.truss_of_store import Round, StorePeeling, StoreTruss
from wedgewise.stages import Ids, Labels
from wedgewise.stages.tasks import Pair
from wedgewise.store.manifest import Manifest, pairs_of
from wedgewise.store.open import Store
from wedgewise.write.answers import Answers, per_vertex, streamed, writing_bytes

PIECE_BYTES = 64 * PIECE_ROWS  # an edge's numbers, ids and vertices, its key, and a row that is made of it
LABEL_BYTES = 128  # of a text label, beyond its characters: as an object, as bytes while it is read, and as a cell


@dataclass(frozen=True, slots=True)
class Vertices:
    """The labels of a store, where those of a graph are looked for."""

    labels: Labels


@dataclass(frozen=True, slots=True)
class StoreGraph:
    """The labels and edges of a store, in the order of answers that are arrays, read whenever they are asked for."""

    store: Store

    @property
    def n(self) -> int:
        return self.store.manifest.n

    @property
    def m(self) -> int:
        return self.store.manifest.m

    @property
    def labels(self) -> Labels:
        return self.store.labels()

    @property
    def degrees(self) -> Ids:
        return degrees_of(self.store, self.store.vertex_of())

    @property
    def edges(self) -> NDArray[np.uint32]:
        return all_edges(self.store, self.store.vertex_of())


@dataclass(frozen=True, slots=True)
class SlicesOnDisk:
    """An answer whose slices are on disk; `number_of` is the number of that of a part or block."""

    source: Store
    slices: FinishedSlices
    number_of: dict[Any, int]
    details: Mapping[str, Any]

    @property
    def support(self) -> int:
        """Three times the triangles, as they were found."""
        return sum(int(self.of(key).sum(dtype=np.uint64)) for key in self.number_of)

    def of(self, key: Any) -> NDArray[Any]:
        """The numbers of a part or block."""
        return self.slices.get(self.number_of[key])

    def remove(self) -> None:
        """Remove what is on disk."""
        self.slices.remove()


class Triangles(SlicesOnDisk):
    """The triangles of every vertex, a slice per part."""

    def array(self) -> NDArray[np.int64]:
        """The answer of the library."""
        return vertices_of_parts(self.source.partition, self.source.vertex_of(), self.of, np.int64)

    def table(self, labels: Labels) -> Answers:
        """The answer as rows."""
        return per_vertex(Vertices(labels), "triangles", self.array())


class Clustering(Triangles):
    """The clustering coefficient of every vertex, or their mean, from the triangles of each part."""

    def array(self) -> Any:
        """The answer of the library."""
        degrees, undefined = degrees_of(self.source, self.source.vertex_of()), self.details["undefined"]
        found = coefficients.undirected(super().array(), degrees, undefined)
        if "count_zeros" not in self.details:
            return found
        return coefficients.average(found, count_zeros=self.details["count_zeros"], undefined=undefined)

    def table(self, labels: Labels) -> Answers:
        """The answer as rows."""
        return per_vertex(Vertices(labels), "clustering", self.array())


class Supports(SlicesOnDisk):
    """The support of every arc, a slice per block."""

    def array(self) -> NDArray[np.int64]:
        """The answer of the library."""
        return values_by_edge(self.source, self.source.vertex_of(), self.of)

    def table(self, labels: Labels) -> Answers:
        """The answer as rows."""
        return _edge_table(self.source, "support", labels, self.of)


@dataclass(frozen=True, slots=True)
class KTruss:
    """The k-truss; `peeling` has its bitmaps."""

    store: Store
    truss: StoreTruss
    peeling: StorePeeling

    @property
    def source(self) -> BlockSource:
        """The blocks whose triangles were counted."""
        return self.truss.blocks

    @property
    def support(self) -> int | None:
        """Three times their triangles, as they were found; None where nothing had to be counted."""
        return self.truss.support

    def array(self) -> Truss:
        """The answer of the library."""
        return Truss(self.truss.k, edge_numbers(self.source, self.store, self.store.vertex_of()))

    def table(self, labels: Labels) -> Answers:
        """The answer as rows."""
        vertex_of = self.store.vertex_of()

        def rows() -> Iterator[tuple[NDArray[Any], ...]]:
            return ((lower, higher) for _, _, lower, higher in edge_pieces(self.source, vertex_of))

        return streamed(("u", "v"), labels, self.truss.edges, (), rows)

    def remove(self) -> None:
        """Remove what is on disk."""
        if self.truss.support is not None:  # what was known without rounds has none, and leaves those of others alone
            self.peeling.remove()


@dataclass(frozen=True, slots=True)
class Trussness:
    """The truss number of every arc, as the last round has it."""

    source: Store
    last: Round
    peeling: StorePeeling
    support: None = None  # every arc is removed

    @property
    def largest(self) -> int:
        """The largest truss number; 2 without triangles, 0 without edges."""
        return max((int(self.of(pair).max(initial=0)) for pair in pairs_of(self.source.partition)), default=0)

    def of(self, pair: Pair) -> NDArray[np.uint32]:
        """The truss numbers of a block."""
        kept = self.last.kept(pair)
        assert isinstance(kept, ArcLevels)
        return kept.truss_numbers

    def array(self) -> NDArray[np.int64]:
        """The answer of the library."""
        return values_by_edge(self.source, self.source.vertex_of(), self.of)

    def table(self, labels: Labels) -> Answers:
        """The answer as rows."""
        return _edge_table(self.source, "truss", labels, self.of)

    def remove(self) -> None:
        """Remove what is on disk."""
        self.peeling.remove()


def _edge_table(store: Store, name: str, labels: Labels, values: Values) -> Answers:
    rows = partial(value_pieces, store, store.vertex_of(), values)
    return streamed(("u", "v", name), labels, store.manifest.m, (np.dtype(np.int64),), rows)


StoreAnswer = Triangles | Supports | KTruss | Trussness
BY_VERTEX = ("triangles", "clustering", "average_clustering")


def array_bytes(question: str, store: Store) -> int:
    """What `StoreAnswer.array` takes at its peak."""
    manifest = store.manifest
    if question in BY_VERTEX:
        return _vertex_bytes(store) + (0 if question == "triangles" else _coefficient_bytes(store))
    return ARRAY_EDGE_BYTES * manifest.m + _piece_bytes(store)


def table_bytes(question: str, store: Store, output: str | None) -> int:
    """What `StoreAnswer.table` and writing its rows, or summing vertices up, take at their peak, labels included."""
    beside = label_bytes(store.manifest) + writing_bytes(output)
    if question in BY_VERTEX:
        return beside + array_bytes(question, store) + 24 * store.manifest.n
    return beside + _piece_bytes(store)


def label_bytes(manifest: Manifest) -> int:
    """What the labels take: as they are, and as they are written."""
    if manifest.labels is None:
        return 0
    if manifest.labels.dtype == "text":
        return 4 * manifest.labels.length + LABEL_BYTES * manifest.n
    return (np.dtype(manifest.labels.dtype).itemsize + 8) * manifest.n


def _vertex_bytes(store: Store) -> int:
    """The vertex of every id, the answer, and for a part its slice, its ids, their vertices and those as positions."""
    return 12 * store.manifest.n + 24 * max(store.partition.sizes)


def _coefficient_bytes(store: Store) -> int:
    """Degrees, wedges, two arrays of floats; a block, and the heads of a piece of it counted."""
    return 32 * store.manifest.n + degree_bytes(store)


def degree_bytes(store: Store) -> int:
    """What `degrees_of` takes."""
    heaviest = int(all_block_bytes(store.counts).max(initial=0))
    return 16 * store.manifest.n + heaviest + 24 * max(store.partition.sizes) + 16 * PIECE_ROWS


def _piece_bytes(store: Store) -> int:
    """The vertex of every id, and a byte to check it; of the heaviest block arcs, bits, values and ids; and a piece."""
    counts = store.counts
    heaviest = int((13 * counts.arcs + 4 * counts.sizes[:, None]).max(initial=0))
    return 5 * store.manifest.n + heaviest + 40 * max(store.partition.sizes) + PIECE_BYTES


def vertices_with_edges(source: BlockSource) -> int:
    """How many ids of a source have an arc."""
    partition = source.partition
    arcs, marks = source.counts.arcs, [np.zeros(size, np.bool_) for size in partition.sizes]
    for i, j in pairs_of(partition):
        if arcs[i, j]:
            block = source.block(i, j)
            marks[i] |= block.offsets[1:] > block.offsets[:-1]
            marks[j][block.heads] = True
    return sum(int(np.count_nonzero(part)) for part in marks)
