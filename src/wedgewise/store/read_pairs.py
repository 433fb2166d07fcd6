"""Pieces of pairs → runs of keys ``u << 32 | v << 1 | reversed`` with u ≤ v, and what their numbers are called.

Labels below 2^31 are keys as they come; whether they are dense enough to number arrays by is known at the end. Where
they are not, or where one is larger, the distinct labels are found by merging sorted runs of them, and replaced by
their positions: those of keys in place, since positions ascend as labels do; those of larger labels, which wait as they
came in a file of their own, as if they were read then. That takes up to 32 bytes of disk per pair instead of 8.

Whatever holds pairs is read once, in pieces of bounded size: files as their readers give them, all others in slices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, MemoryLimitError
from wedgewise.generate.stream import EdgeStream
from wedgewise.machine.files import scratch_file
from wedgewise.machine.jit import kernel
from wedgewise.machine.progress import Progress
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.clean import SLOTS_PER_PAIR
from wedgewise.prepare.radix import MAX_ID
from wedgewise.read import ReadOptions, check_names, open_pairs
from wedgewise.read.pieces import PairPieces, Piece, first_outside, kept_type
from wedgewise.stages import EdgeList, Keys, Labels, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import Limits
from wedgewise.store.sorted_runs import KEY_BYTES, Runs, sorted_run

if TYPE_CHECKING:
    from wedgewise.graph import Graph

RUN_KEYS = 1 << 20
FEW_SLOTS = 1024
HALF, ONE, LOW_HALF = np.uint64(32), np.uint64(1), np.uint64(0xFFFFFFFF)
PIECE_PAIRS = 1 << 17


@dataclass(frozen=True, slots=True)
class PairRuns:
    """All pairs as runs of keys of slots.

    Attributes
    ----------
    runs : the keys; loops and copies are among them
    pairs, loops : how many there were
    slots : how many slots there are
    labels : of all slots, each of them a vertex; None where slots that occur are their own labels
    numbered_bytes : what labels take that were found here
    """

    runs: Runs
    pairs: int
    loops: int
    slots: int
    labels: Labels | None
    numbered_bytes: int = 0


class PairCollector:
    """Takes pieces, and makes runs of them."""

    def __init__(self, folder: Path, stack: ExitStack, available_bytes: int, threads: int) -> None:
        self._folder, self._stack, self._available_bytes, self._threads = folder, stack, available_bytes, threads
        self._run_keys = max(PIECE_PAIRS, min(RUN_KEYS * threads, available_bytes // (4 * KEY_BYTES)))
        self._wide: Runs | None = None  # pairs as they came: two labels each, unsorted
        self._pairs, self._loops, self._largest = 0, 0, -1
        self.runs = self._new_runs()
        self._filling = _Filling(self._run_keys, self.runs, threads)

    def read_pairs(self, source: PairPieces, limits: Limits, progress: Progress | None) -> PairRuns:
        """All pairs of a source."""
        known = source.names
        for piece in source.pieces:
            self._take(piece, source)
            limits.check("pairs", self._pairs, path=source.name)
            if progress is not None:
                progress("read", self._pairs, source.expected_pairs or 0)
        self._filling.finish()
        if source.vertices is not None:
            labels: Labels = range(source.vertices) if source.names is None else source.names
            held = 0
            if isinstance(labels, TextLabels) and labels is not known:  # they were found while pieces were taken
                held = labels.data.nbytes + labels.offsets.nbytes
            return PairRuns(self.runs, self._pairs, self._loops, source.vertices, labels, held)
        few = self._largest < max(FEW_SLOTS, SLOTS_PER_PAIR * self._pairs)
        if few and self._wide is None:
            limits.check("vertices", self._largest + 1, path=source.name)
            return PairRuns(self.runs, self._pairs, self._loops, self._largest + 1, None)
        numbers = self._distinct_labels()
        limits.check("vertices", len(numbers), path=source.name)
        return PairRuns(self._numbered(numbers), self._pairs, self._loops, len(numbers), numbers, numbers.nbytes)

    def _new_runs(self) -> Runs:
        return Runs(self._stack.enter_context(scratch_file(self._folder)))

    def _take(self, piece: NDArray[Any], source: PairPieces) -> None:
        if len(piece) == 0:
            return
        labels = kept_type(piece)
        outside = first_outside(labels) if source.vertices is None else first_outside(labels, source.vertices)
        if outside is not None:
            row = self._pairs + outside[0] // 2
            allowed = "2^63 − 1" if source.vertices is None else f"{source.vertices - 1:,}"
            raise InputError(f"{source.name}: pair {row} holds {outside[1]}; ids go from 0 to {allowed}")
        self._pairs += len(labels)
        self._largest = max(self._largest, int(labels.max()))
        if self._largest <= MAX_ID:
            self._loops += self._filling.add(labels)
            return
        self._loops += int(np.count_nonzero(labels[:, 0] == labels[:, 1]))
        if self._wide is None:
            self._wide = self._new_runs()
        self._wide.add(np.ascontiguousarray(labels, np.uint64).reshape(-1))

    def _distinct_labels(self) -> NDArray[Any]:
        """Every label once, ascending."""
        found = self._new_runs()
        for keys in self.runs.stretches(RUN_KEYS):
            both = np.concatenate((keys >> HALF, (keys & LOW_HALF) >> ONE))
            found.add(sorted_run(both, np.empty_like(both)))
        for labels in self._wide.stretches(RUN_KEYS) if self._wide is not None else ():
            found.add(sorted_run(labels, np.empty_like(labels)))
        parts: list[Keys] = []

        def keep_distinct(labels: Keys) -> None:
            parts.append(labels[np.append(True, labels[1:] != labels[:-1])])
            count = sum(map(len, parts))
            if 2 * KEY_BYTES * count > self._available_bytes // 2:
                raise MemoryLimitError(
                    f"over {count:,} distinct labels take {2 * KEY_BYTES * count:,} bytes; raise the memory limit"
                )

        found.merge(keep_distinct, lambda _: None, self._available_bytes // 2, self._threads)
        everything = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        return everything.astype(np.uint32) if self._largest < 2**32 else everything

    def _numbered(self, labels: NDArray[Any]) -> Runs:
        """The keys with the position of each label in its place."""
        numbered = self._new_runs()
        for run in self.runs.each():
            first, second = np.searchsorted(labels, run >> HALF), np.searchsorted(labels, (run & LOW_HALF) >> ONE)
            numbered.add(first.astype(np.uint64) << HALF | second.astype(np.uint64) << ONE | run & ONE)
        filling = _Filling(self._run_keys, numbered, self._threads)
        for some in self._wide.stretches(2 * PIECE_PAIRS) if self._wide is not None else ():
            filling.add(np.searchsorted(labels, some).reshape(-1, 2))
        filling.finish()
        self.runs.close()
        if self._wide is not None:
            self._wide.close()
        return numbered


class _Filling:
    """Pairs of numbers on their way into runs."""

    def __init__(self, run_keys: int, runs: Runs, threads: int) -> None:
        self._keys, self._spare, self._filled = np.empty(run_keys, np.uint64), np.empty(run_keys, np.uint64), 0
        self._runs, self._threads = runs, threads

    def add(self, pairs: NDArray[Any]) -> int:
        """Take pairs below 2^31; how many of them are loops."""
        loops = 0
        for at in range(0, len(pairs), PIECE_PAIRS):
            some = pairs[at : at + PIECE_PAIRS]
            if self._filled + len(some) > len(self._keys):
                self._flush()
            ends = some.reshape(-1).view(f"u{some.itemsize}")
            loops += int(pack(ends, self._keys[self._filled : self._filled + len(some)]))
            self._filled += len(some)
        return loops

    def finish(self) -> None:
        """Write what is left, and release the memory."""
        self._flush()
        self._keys = self._spare = np.empty(0, np.uint64)

    def _flush(self) -> None:
        bounds = np.linspace(0, self._filled, min(self._threads, self._filled) + 1).astype(np.int64).tolist()

        def write_run(part: int, _worker: int) -> None:
            run = slice(bounds[part], bounds[part + 1])
            self._runs.add(sorted_run(self._keys[run], self._spare[run]))

        run_tasks(write_run, len(bounds) - 1, self._threads)
        self._filled = 0


@kernel
def pack(ends: NDArray[Any], keys: Keys) -> SupportsInt:
    """Write pairs as keys, the lower number first; how many pairs are loops."""
    half, one, loops = np.uint64(32), np.uint64(1), np.uint64(0)
    for i in range(np.uint64(len(keys))):
        first, second = np.uint64(ends[i << one]), np.uint64(ends[(i << one) + one])
        keys[i] = min(first, second) << half | max(first, second) << one | np.uint64(first > second)
        loops += np.uint64(first == second)
    return loops


def load_pack_kernels() -> None:
    """Load the kernel for numbers of either width."""
    for numbers in (np.empty(0, np.uint32), np.empty(0, np.uint64)):
        pack(numbers, np.empty(0, np.uint64))


@contextmanager
def open_pieces(source: Any, format: str | None, options: ReadOptions) -> Iterator[PairPieces]:
    """The pairs of a path, a stream, a generator, a `Graph`, or whatever else that accepts."""
    if isinstance(source, EdgeStream):
        blocks = source.blocks(threads=options.threads)
        yield PairPieces(Origin(source.name, "generator"), blocks, source.pairs_count)
    elif isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        check_names(format, options.labels)
        with open_pairs(source, format, options) as pieces:
            yield pieces
    else:
        from wedgewise.graph import Graph
        from wedgewise.read.objects import edges_from

        if isinstance(source, Graph):
            # what the vertices are called stays with the graph
            yield PairPieces(source.origin, numbered_edges(source), source.m, vertices=source.n)
        else:
            yield _sliced(edges_from(source, columns=options.columns, labels=options.labels))


def _sliced(edge_list: EdgeList) -> PairPieces:
    pairs = edge_list.pairs
    slices = (pairs[at : at + PIECE_PAIRS].copy() for at in range(0, len(pairs), PIECE_PAIRS))  # others may write there
    return PairPieces(
        edge_list.origin,
        slices,
        len(pairs),
        vertices=edge_list.vertices,
        names=edge_list.names,
        columns=edge_list.columns,
        ignored_columns=edge_list.ignored_columns,
    )


def numbered_edges(graph: Graph) -> Iterator[Piece]:
    """The edges of a graph as pairs of vertices, in ascending order; which end comes first is left open."""
    simple = graph.simple
    pairs = simple.slot_pairs
    pieces = (pairs[at : at + PIECE_PAIRS] for at in range(0, len(pairs), PIECE_PAIRS))
    if simple.slots is None:
        return pieces
    vertex_of = simple.by_slot(np.arange(simple.n, dtype=np.uint32))
    return (vertex_of[piece] for piece in pieces)


def expected_pairs(path: str | os.PathLike[str], format: str | None, options: ReadOptions) -> int | None:
    """How many pairs a file has, about, by its size and its beginning; None where they do not tell."""
    check_names(format, options.labels)
    with open_pairs(path, format, options) as pieces:
        return pieces.expected_pairs
