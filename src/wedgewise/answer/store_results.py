"""What is known of every vertex or edge of a store: found by owners, kept on disk, made arrays of or written as rows.

    question       as an array, as for the same graph in memory      rows of a file
    triangles      int64[n], in the order of the labels              in the order of the labels
    edge_support   int64[m], in the order of ``Graph.edges``         block by block
    k_truss        Truss: which of ``Graph.edges``                   block by block

What was found stays on disk until it is handed out: 8 bytes per vertex, 4 per edge, or two bits per edge for a truss.
Arrays by vertex have to fit into memory; those by edge only where they are asked for as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer_types import Truss
from wedgewise.run import block_edges
from wedgewise.run.finished_slices import FinishedSlices
from wedgewise.run.memory import BlockSource
from wedgewise.run.sliced_answer import AnswerSlice
from wedgewise.run.truss_of_store import Peeling, StoreTruss
from wedgewise.stages import Labels
from wedgewise.store.manifest import Manifest, Pair
from wedgewise.store.open import Store
from wedgewise.write.answers import Answers, per_vertex, streamed, writing_bytes

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
    def edges(self) -> NDArray[np.uint32]:
        return block_edges.all_edges(self.store, self.store.vertex_of())


class StoreAnswer(Protocol):
    """What was found, on disk until it is given up."""

    @property
    def source(self) -> BlockSource:
        """The blocks whose triangles were counted."""

    @property
    def support(self) -> int | None:
        """Three times the triangles of these, as they were found; None where nothing had to be counted."""

    def array(self) -> Any:
        """The answer of the library."""

    def table(self, labels: Labels) -> Answers:
        """The answer as rows."""

    def remove(self) -> None:
        """Give up what is on disk."""


@dataclass(frozen=True, slots=True)
class Triangles:
    """The triangles of every vertex, a slice per part."""

    source: Store
    slices: FinishedSlices
    owners: tuple[AnswerSlice, ...]

    @property
    def support(self) -> int:
        return sum(int(self.slices.get(owner).sum(dtype=np.uint64)) for owner in self.owners)

    def array(self) -> NDArray[np.int64]:
        vertex_of = self.source.vertex_of()
        answer = np.empty(len(vertex_of), np.int64)
        for owner in self.owners:
            assert owner.part is not None
            answer[vertex_of[self.source.partition.ids(owner.part)]] = self.slices.get(owner)
        return answer

    def table(self, labels: Labels) -> Answers:
        return per_vertex(Vertices(labels), "triangles", self.array())

    def remove(self) -> None:
        self.slices.remove()


@dataclass(frozen=True, slots=True)
class Supports:
    """The support of every arc, a slice per block."""

    source: Store
    slices: FinishedSlices
    owners: dict[Pair, AnswerSlice]

    @property
    def support(self) -> int:
        return sum(int(self.of_block(pair).sum(dtype=np.uint64)) for pair in self.owners)

    def of_block(self, pair: Pair) -> NDArray[Any]:
        return self.slices.get(self.owners[pair])

    def array(self) -> NDArray[np.int64]:
        return block_edges.values_by_edge(self.source, self.source.vertex_of(), self.of_block)

    def table(self, labels: Labels) -> Answers:
        vertex_of = self.source.vertex_of()

        def rows() -> Iterator[tuple[NDArray[Any], ...]]:
            return block_edges.value_pieces(self.source, vertex_of, self.of_block)

        return streamed(("u", "v", "support"), labels, self.source.manifest.m, np.dtype(np.int64), rows)

    def remove(self) -> None:
        self.slices.remove()


@dataclass(frozen=True, slots=True)
class KTruss:
    """The k-truss; `peeling` has its bitmaps."""

    store: Store
    truss: StoreTruss
    peeling: Peeling

    @property
    def source(self) -> BlockSource:
        return self.truss.blocks

    @property
    def support(self) -> int | None:
        return self.truss.support

    def array(self) -> Truss:
        numbers = block_edges.edge_numbers(self.source, self.store, self.store.vertex_of())
        return Truss(self.truss.k, numbers)

    def table(self, labels: Labels) -> Answers:
        vertex_of = self.store.vertex_of()

        def rows() -> Iterator[tuple[NDArray[Any], ...]]:
            return ((lower, higher) for _, _, lower, higher in block_edges.edge_pieces(self.source, vertex_of))

        return streamed(("u", "v"), labels, self.truss.edges, None, rows)

    def remove(self) -> None:
        if self.truss.support is not None:  # what was known without rounds has none, and leaves those of others alone
            self.peeling.remove()


def array_bytes(question: str, store: Store) -> int:
    """What `StoreAnswer.array` takes at its peak."""
    manifest = store.manifest
    if question == "triangles":
        return _vertex_bytes(store)
    return block_edges.ARRAY_EDGE_BYTES * manifest.m + _piece_bytes(store)


def table_bytes(question: str, store: Store, output: str | None) -> int:
    """What `StoreAnswer.table` and writing its rows, or summing vertices up, take at their peak, labels included."""
    beside = label_bytes(store.manifest) + writing_bytes(output)
    if question == "triangles":
        return beside + _vertex_bytes(store) + 24 * store.manifest.n
    return beside + _piece_bytes(store)


def label_bytes(manifest: Manifest) -> int:
    """What the labels take: as they are, and as they are written."""
    if manifest.labels is None:
        return 0
    if manifest.labels.dtype == "text":
        return 4 * manifest.labels.length + LABEL_BYTES * manifest.n
    return (np.dtype(manifest.labels.dtype).itemsize + 8) * manifest.n


def _vertex_bytes(store: Store) -> int:
    """The vertex of every id, the answer, and for a part its slice, its ids, their vertices and those as places."""
    return 12 * store.manifest.n + 24 * max(store.partition.sizes)


def _piece_bytes(store: Store) -> int:
    """The vertex of every id, and a byte to check it; of the heaviest block arcs, bits, values and ids; and a piece."""
    counts = store.counts
    heaviest = int((9 * counts.arcs + 4 * counts.sizes[:, None]).max(initial=0))
    return 5 * store.manifest.n + heaviest + 40 * max(store.partition.sizes) + block_edges.PIECE_BYTES
