"""Runs of pairs → the simple graph's edges in a file, and the rank of every vertex; as by `clean` and `orient`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.jit import kernel
from wedgewise.prepare.radix import REVERSED, UNIQUE, Tally, keep_distinct, sort_by_digits
from wedgewise.stages import CleanReport, Ids, Keys, Labels
from wedgewise.stages.labels import TextLabels
from wedgewise.store.manifest import FileRecord
from wedgewise.store.read_pairs import PairRuns
from wedgewise.store.sorted_runs import OnKeys, Runs
from wedgewise.store.writer import Fingerprint, write_array, write_names

SLOT_BYTES = 30  # degree, loop, rank and vertex of a slot, and its key while ranks are sorted


@dataclass(frozen=True, slots=True)
class Edges:
    """Every edge ``u << 32 | v`` of the simple graph in a temporary file, ascending, and what counting them said."""

    keys: Runs
    degrees: Ids
    looped: NDArray[np.uint8]
    cleaned: CleanReport
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of every slot by ascending degree, ties by slot; degrees and vertices by rank; labels of vertices."""

    n: int
    rank_of: Ids
    degrees: Ids
    vertex_of: Ids
    label_kind: str
    labels: FileRecord | None


def sort_and_deduplicate(
    pairs: PairRuns, read: Mapping[str, Any], file: BinaryIO, available_bytes: int, threads: int, on_keys: OnKeys
) -> Edges:
    """Merge the runs, drop loops and copies, count degrees; the file of the runs is closed.

    `read` has the fields of `CleanReport` on how the pairs were read.
    """
    edges, fingerprint = Runs(file), Fingerprint()
    degrees, looped = np.zeros(pairs.slots, np.uint32), np.zeros(pairs.slots, np.uint8)
    totals, statistics = np.zeros(4, np.uint64), np.zeros(4, np.uint64)

    def deduplicate(keys: Keys) -> None:
        deduplicate_keys(keys, degrees, looped, statistics)
        np.add(totals, statistics, out=totals)
        kept = keys[: int(statistics[UNIQUE])]
        fingerprint.add(kept)
        edges.add(kept)

    pairs.runs.merge(deduplicate, on_keys, available_bytes, threads, shift=1)
    reversed_copies = int(totals[REVERSED])
    duplicates = pairs.pairs - edges.keys - pairs.loops - reversed_copies
    report = CleanReport(
        pairs.pairs,
        edges.keys,
        pairs.loops,
        duplicates,
        reversed_copies,
        len(read["ignored_columns"]),
        **read,
    )
    return Edges(edges, degrees, looped, report, fingerprint)


def rank(pairs: PairRuns, edges: Edges, folder: Path) -> Ranks:
    """Number the slots that are vertices by ascending degree, and write their labels."""
    degrees, labels = edges.degrees, pairs.labels
    if labels is None:
        slots = np.flatnonzero((degrees > 0) | edges.looped.view(np.bool_)).astype(np.uint32)
    else:
        slots = np.arange(len(degrees), dtype=np.uint32)
    next_rank = np.zeros(int(degrees.max(initial=0)) + 2, np.uint32)
    rank_of, vertex_of = np.zeros(len(degrees), np.uint32), np.empty(len(slots), np.uint32)
    rank_slots(slots, degrees, next_rank, rank_of, vertex_of)
    del next_rank
    kind, record = _write_labels(labels, slots, len(degrees), folder)
    return Ranks(len(slots), rank_of, degrees[slots][vertex_of], vertex_of, kind, record)


def _write_labels(labels: Labels | None, slots: Ids, slot_count: int, folder: Path) -> tuple[str, FileRecord | None]:
    if isinstance(labels, range) or (labels is None and len(slots) == slot_count):
        return "numbers", None
    if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
        labels = TextLabels.of(labels)
    if isinstance(labels, TextLabels):
        return "text", write_names(folder, "labels.jsonl", labels)
    return "integers", write_array(folder, "labels.npy", slots if labels is None else _integers(labels))


def _integers(labels: Any) -> NDArray[Any]:
    """Labels as an array; a list is one of some other library's nodes, which may be anything."""
    if isinstance(labels, list) and all(type(label) is int and abs(label) < 2**63 for label in labels):
        return np.array(labels, np.int64)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu" or labels.dtype.itemsize < 4:
        raise InputError("labels that are neither integers nor text cannot be stored; name the vertices by text")
    return labels


@kernel
def deduplicate_keys(keys: Keys, degrees: Ids, looped: NDArray[np.uint8], statistics: Keys) -> None:
    """Move the edges of ascending keys to the front, without loops and copies, and count them at both ends."""
    begin, end = np.uint64(0), np.uint64(len(keys))
    keep_distinct(keys, keys, begin, end, True, Tally(degrees, degrees, looped, statistics))


@kernel
def rank_slots(slots: Ids, degrees: Ids, next_rank: Ids, rank_of: Ids, vertex_of: Ids) -> None:
    """Rank the slots of vertices by ascending degree, ties by slot; `next_rank` has a zero for each degree and one."""
    one = np.uint64(1)
    for i in range(np.uint64(len(slots))):
        next_rank[np.uint64(degrees[slots[i]]) + one] += np.uint32(1)
    for above in range(one, np.uint64(len(next_rank))):
        next_rank[above] += next_rank[above - one]
    for i in range(np.uint64(len(slots))):
        degree = np.uint64(degrees[slots[i]])
        position = next_rank[degree]
        next_rank[degree] += np.uint32(1)
        rank_of[slots[i]] = position
        vertex_of[position] = i


def load_sort_kernels() -> None:
    """Load the kernels."""
    keys, ids = np.zeros(4, np.uint64), np.zeros(1, np.uint32)
    sort_by_digits(keys[:0], keys[:0], keys[:0], ids[:0])
    deduplicate_keys(keys[:0], ids, np.empty(0, np.uint8), keys)
    rank_slots(ids[:0], ids, ids, ids, ids)
