"""A source of pairs → a store, within a memory limit: the input is read once, the rest are passes over sorted runs.

    pairs ─read_pairs→ runs of pairs ─sort_and_deduplicate→ edges, degrees ─rank→ ranks ─ranks_in_order→ ids
    edges, ranks, ids ─orient_edges→ runs of arcs, cuts ─write_blocks→ blocks

Each arrow but those to ranks and ids writes 8 bytes per pair or edge to the disk, which the next one reads, and at most
two of these files are there at a time; they have no names, so that nothing is left of them whatever happens. Memory:
arrays by vertex, `SLOT_BYTES` each, the grid that cuts come from, and what the merges are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from wedgewise.errors import MemoryLimitError
from wedgewise.machine import hardware
from wedgewise.machine.budget import available_after_loading, bytes_per_worker
from wedgewise.machine.files import scratch_file
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.parameters import as_integer
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.read import ReadOptions
from wedgewise.read._fields import load_field_kernels
from wedgewise.read._text_kernel import parse_range
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice
from wedgewise.run.task_memory import PAGE_BYTES
from wedgewise.stages import Column
from wedgewise.stages.blocks import check_parts
from wedgewise.stages.limits import DEFAULT_LIMITS, Limits
from wedgewise.store.ids import SLOT_BYTES as BYTES_OF_IDS
from wedgewise.store.ids import load_id_kernels, ranks_in_order
from wedgewise.store.manifest import Manifest, pairs_of
from wedgewise.store.open import Store
from wedgewise.store.orient import OrientedRuns, Wanted, grid_bytes, load_orient_kernels, orient_edges
from wedgewise.store.read_pairs import PairCollector, PairRuns, load_pack_kernels, open_pieces
from wedgewise.store.sort_and_deduplicate import SLOT_BYTES, load_sort_kernels, rank, sort_and_deduplicate
from wedgewise.store.sorted_runs import KEY_BYTES, OnKeys, Runs
from wedgewise.store.urls import Folder
from wedgewise.store.write_blocks import PIECE_ARCS, PIECE_BYTES, load_write_kernels, write_blocks
from wedgewise.store.writer import building, check_free, write_array, write_manifest
from wedgewise.version import __version__

Say = Callable[[str], None] | None

MIN_MERGE_BYTES = 1 << 24
ID_BYTES = 4
DISK_BYTES = 2 * KEY_BYTES + ID_BYTES  # of a pair: twice on its way, and as an arc of a block


def partition(
    data: Any,
    /,
    folder: str | os.PathLike[str],
    *,
    parts: int | None = None,
    scheme: str = "rectilinear",
    ids: str = "rank",
    memory_limit: int | None = None,
    memory_per_worker: int | None = None,
    workers: int | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    labels: str = "auto",
    format: str | None = None,
    limits: Limits | None = None,
    source: Column | None = None,
    target: Column | None = None,
    header: bool | str = "auto",
) -> Store:
    """Cut a graph into blocks on disk, to be counted within little memory.

    Questions take the store, or its folder; `count` says which memory limit then holds.

    Parameters
    ----------
    data : a path, "-" for standard input, or whatever `Graph` accepts
    folder : the folder to make
    parts : how many parts to cut the vertices into; by default as few as the memory limit allows
    scheme : how to cut: "rectilinear" or "hashed"
    ids : what hashed parts take turns by: "rank" (by degree), "indegree" or "classes" (of out-degrees); answers are the
        same
    memory_limit : bytes that the whole process may take, now and when the store is asked; what is left by default
    memory_per_worker : bytes of every worker that will count: as few parts as let its tasks fit, for hashed parts by
        TRUST's rule
    workers : how many workers of this machine will count: they divide the memory limit, or what the machine has left,
        unless `memory_per_worker` says what each has
    threads : how many threads; the default is what this process may use
    progress : True for a bar on standard error, or a callable (stage, done, total)
    labels, format, limits, source, target, header : as in `Graph`

    Raises
    ------
    MemoryLimitError
        When arrays by vertex do not fit.
    StorageError
        When the disk has too little space, or fails.

    Examples
    --------
    >>> import pathlib, tempfile, wedgewise as ww
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "store"
    >>> store = ww.partition([(0, 1), (1, 2), (2, 0), (2, 3)], folder, parts=2)
    >>> store.n, store.m, store.parts
    (4, 4, 2)
    >>> ww.count(store)
    1
    """
    with progress_bar(progress) as progress:
        return write_store(
            data,
            folder,
            memory_limit=memory_limit,
            memory_per_worker=memory_per_worker,
            workers=workers,
            parts=parts,
            scheme=scheme,
            ids=ids,
            threads=threads,
            labels=labels,
            format=format,
            limits=limits,
            columns=ColumnChoice(source, target, None, header),
            progress=progress,
        )


@memory_for("partition")
def write_store(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    memory_limit: int | None = None,
    memory_per_worker: int | None = None,
    workers: int | None = None,
    parts: int | None = None,
    scheme: str = "rectilinear",
    ids: str = "rank",
    threads: int | None = None,
    labels: str = "auto",
    format: str | None = None,
    limits: Limits | None = None,
    columns: ColumnChoice = ANY_COLUMNS,
    progress: Progress | None = None,
    say: Say = None,
) -> Store:
    """Partition a graph into a store.

    Parameters
    ----------
    source : a path, "-" for standard input, an `EdgeStream`, or whatever `wedgewise.Graph` accepts
    folder : of the store, to be made; its parent is there
    memory_limit : for the resident size of this process, interpreter included; what is left by default
    memory_per_worker : for the same of every worker that will count; parts are then as few as let it
    workers : how many of this machine will count; without `memory_per_worker` they divide the limit
    parts : into how many parts ids are divided; by default as few as let every question, or at least a count, keep to
        the same limit
    scheme : "rectilinear" (BBTC) or "hashed" (TRUST)
    ids : of hashed parts: "rank", "indegree" or "classes" (TRUST, §5.1); see `wedgewise.prepare.orient`
    threads : how many threads parse and sort
    labels, format, limits, columns : as in `wedgewise.read.read_edges`
    progress : a callable (stage, done, total)
    say : gets a sentence about the disk that is needed, as soon as it is known

    Raises
    ------
    MemoryLimitError
        When arrays by vertex do not fit.
    StorageError
        When the disk has too little space, or fails.
    """
    threads, limits = hardware.granted_threads(threads), limits or DEFAULT_LIMITS
    if workers is not None and memory_per_worker is None:
        memory_per_worker = bytes_per_worker(memory_limit, as_integer("workers", workers))
    available_bytes = available_after_loading(memory_limit, load_build_kernels)
    wanted = Wanted.within(memory_limit, available_bytes, scheme, parts, threads, ids, memory_per_worker)
    root = Path(folder)
    with building(root), ExitStack() as stack:
        before = hardware.resident_bytes()
        within = limits if memory_limit is None else limits.with_values({"memory_bytes": memory_limit})
        with open_pieces(source, format, ReadOptions(labels, columns, within, threads)) as pieces:
            available_bytes -= max(0, hardware.resident_bytes() - before)  # what the reader holds
            if pieces.expected_pairs is not None:
                _check_disk(root, pieces.expected_pairs, 0, say)
            pairs = PairCollector(root, stack, available_bytes, threads).read_pairs(pieces, limits, progress)
            notes = pieces.origin.notes if pieces.columns else ()
            read = {"columns": pieces.columns, "ignored_columns": pieces.ignored_columns, "notes": notes}
        _check_disk(root, pairs.pairs, KEY_BYTES * pairs.runs.keys, say if pieces.expected_pairs is None else None)
        manifest = _build(root, pairs, read, wanted, available_bytes, progress, say)
        write_manifest(root, manifest)
    return Store(Folder(root), manifest)


def _build(
    root: Path,
    pairs: PairRuns,
    read: Mapping[str, Any],
    wanted: Wanted,
    available_bytes: int,
    progress: Progress | None,
    say: Say,
) -> Manifest:
    """Everything from the runs of pairs to the blocks."""
    left = _bytes_beside_vertices(pairs.slots, wanted, available_bytes - pairs.numbered_bytes)
    with scratch_file(root) as file:
        on_keys = _stage_progress(progress, "sort", pairs.runs.keys)
        edges = sort_and_deduplicate(pairs, read, file, left, wanted.threads, on_keys)
        ranks = rank(pairs, edges, root)
        if wanted.parts is not None:
            check_parts(wanted.parts, ranks.n)
        rank_of_id = ranks_in_order(wanted.ids, edges, ranks)
        vertex_of = ranks.vertex_of if rank_of_id is None else ranks.vertex_of[rank_of_id]
        vertices = write_array(root, "vertices.npy", vertex_of)
        fingerprint, cleaned, m = edges.fingerprint.of(ranks.n), edges.cleaned, edges.keys.keys
        largest = int(ranks.degrees.max(initial=0))
        with scratch_file(root) as arcs:
            on_keys = _stage_progress(progress, "orient", m)
            oriented = orient_edges(edges, ranks, rank_of_id, wanted, Runs(arcs), left, on_keys)
            n, kind, labels = ranks.n, ranks.label_kind, ranks.labels
            del edges, ranks, rank_of_id, vertex_of
            _check_disk_of_blocks(root, oriented, say)
            on_keys = _stage_progress(progress, "write", m)
            blocks, wedges = write_blocks(root, oriented, left, wanted.threads, on_keys)
    return Manifest(
        fingerprint=fingerprint,
        n=n,
        m=m,
        partition=oriented.partition,
        blocks=blocks,
        order="degree",
        wedges=wedges,
        largest_degree=largest,
        cleaned=cleaned,
        label_kind=kind,
        labels=labels,
        vertices=vertices,
        version=__version__,
    )


def _bytes_beside_vertices(slots: int, wanted: Wanted, available_bytes: int) -> int:
    """What merges may take beside arrays by vertex, or a refusal."""
    by_vertex = (SLOT_BYTES + BYTES_OF_IDS[wanted.ids]) * slots
    fixed = by_vertex + grid_bytes(min(slots, wanted.segments)) + PIECE_BYTES * PIECE_ARCS
    if fixed + MIN_MERGE_BYTES > available_bytes:
        raise MemoryLimitError(
            f"{slots:,} vertices take {fixed + MIN_MERGE_BYTES:,} bytes and {available_bytes:,} are left for them; "
            "raise the memory limit"
        )
    return available_bytes - fixed


def _check_disk(root: Path, pairs: int, written: int, say: Say) -> None:
    """Say what a store may take while it is made, and refuse what the disk has no space for."""
    need = DISK_BYTES * pairs
    if say is not None:
        say(f"{pairs:,} pairs take up to {need:,} bytes of disk while the store is made")
    taken = f"{pairs:,} pairs may take {need:,} bytes of disk"
    check_free(root, need, f"{taken} and {{free:,}} are free; free some, or name a folder on another disk", written)


def _check_disk_of_blocks(root: Path, oriented: OrientedRuns, say: Say) -> None:
    """The same of the blocks, as soon as it is known how many there are: each has an offset per row of its own."""
    arcs, sizes = oriented.counts.arcs, oriented.counts.sizes
    blocks = pairs_of(oriented.partition)
    offsets = sum(ID_BYTES * (int(sizes[row]) + 1) for row, _ in blocks)
    need = ID_BYTES * int(arcs.sum()) + offsets + 2 * PAGE_BYTES * len(blocks)
    if say is not None:
        say(f"{len(blocks):,} blocks take {need:,} bytes of disk, {offsets:,} of them for offsets of rows")
    remedy = "; free some, name a folder on another disk, or ask for fewer parts"
    check_free(root, need, f"{len(blocks):,} blocks take {need:,} bytes of disk and {{free:,}} are free{remedy}")


def _stage_progress(progress: Progress | None, stage: str, total: int) -> OnKeys:
    """Progress of a pass over so many keys."""
    done = 0

    def on_keys(keys: int) -> None:
        nonlocal done
        done += keys
        if progress is not None:
            progress(stage, done, total)

    return on_keys


def load_build_kernels() -> None:
    """Load every kernel that makes a store."""
    load_field_kernels()
    for load in (
        load_pack_kernels,
        load_sort_kernels,
        load_id_kernels,
        load_orient_kernels,
        load_write_kernels,
    ):
        load()
    for labels in (np.empty(0, np.uint32), np.empty(0, np.uint64)):
        zero = np.uint64(0)
        parse_range(np.empty(0, np.uint8), zero, zero, np.uint8(0), zero, zero, zero, labels)
