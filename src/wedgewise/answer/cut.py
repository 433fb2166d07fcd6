"""Where memory is too small for a question that stores answer: the graph is cut into blocks on disk, and asked there.

    Source ─in memory→ answer
       └─too little memory→ OutOfMemory ─cut→ GraphOnDisk, a store for one question ─disk→ answer

The store is in the system's temporary folder, or in a work folder, where the same question finds it again after
whatever ended it.

    tmp/wedgewise-…/in-use.lock      of whoever asks: where nobody has it, a kill has left the folder, which goes
    tmp/wedgewise-…/store/           the blocks

    work/wedgewise-KEY.lock          of whoever asks
    work/wedgewise-KEY/store/        the blocks, and what is finished of the question
    work/wedgewise-KEY/source.json   what they were made of, and how; written behind them

All of that keeps to one limit for the process. Of a file it is the one that was given; of a graph, which is held
already, that one on top of what the process holds, and so it is of a file in a process that holds other things.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Shape
from wedgewise.answer.fit import OutOfMemory
from wedgewise.answer.response import ResultWithRows
from wedgewise.answer.source import GraphFile, GraphSource, name_of
from wedgewise.errors import FormatError, InputError, MemoryLimitError, MissingFileError
from wedgewise.graph import Graph
from wedgewise.machine.budget import available_after_loading
from wedgewise.machine.files import atomic_write, make_folder, process_lock, storage_errors
from wedgewise.machine.own_files import UntrustedFileError, file_identity, read_own
from wedgewise.machine.progress import Progress
from wedgewise.prepare.orient_arrays import expected_wedges
from wedgewise.run.checkpoint import LOCK_SUFFIX, WAIT, key_of, refuse_link
from wedgewise.run.outofcore import PROCESS
from wedgewise.run.plan import OrientedShape, Plan, plan_of
from wedgewise.run.request import ARRAY, Request
from wedgewise.stages import CleanReport, Labels
from wedgewise.store.build import DISK_BYTES, load_build_kernels, write_store
from wedgewise.store.open import Store, open_store
from wedgewise.store.orient import SCHEMES, Wanted
from wedgewise.store.read_pairs import expected_pairs, numbered_edges
from wedgewise.store.writer import Fingerprint
from wedgewise.version import __version__

CUT_SECONDS_PER_PAIR = 5e-7
PREFIX = "wedgewise-"
STORE, NOTE, IN_USE = "store", "source.json", f"in-use{LOCK_SUFFIX}"
ANOTHER = "name another folder for the work (--work, work_folder=)"

Make = Callable[[Path], Store]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a store is made of: a `name` that stays when the source changes, and `facts` that do not."""

    name: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GraphOnDisk:
    """A graph in blocks on disk, for the time of one question.

    Attributes
    ----------
    store : its blocks
    request : to ask it with
    reasons : why it is asked, and where it lies
    seconds : that cutting took
    cleaned : what was dropped from a graph that was held already
    graph : what is left of it when the question is answered
    """

    store: Store
    request: Request
    reasons: tuple[str, ...]
    seconds: float
    cleaned: CleanReport | None
    graph: Graph | FileGraph

    def as_of_graph(self, response: ResultWithRows) -> ResultWithRows:
        """An answer of the store, as one of the graph."""
        result = response.result
        result = replace(
            result,
            plan=replace(result.plan, reasons=(*self.reasons, *result.plan.reasons)),
            seconds={"cut": self.seconds, **result.seconds},
            cleaned=self.cleaned or result.cleaned,
            graph=None if result.graph is None else self.graph,
        )
        return replace(response, result=result)


class FileGraph:
    """The labels and edges of a file whose blocks are gone: it is read into memory when they are first asked for.

    Whoever asks for them takes the memory that the question was not to take.
    """

    def __init__(self, file: GraphFile, request: Request) -> None:
        self._file = replace(file, limits=file.limits.with_values({"memory_bytes": None}))
        self._request = request
        self._identity = _identity(file, request)

    @cached_property
    def _graph(self) -> Graph:
        if _identity(self._file, self._request) != self._identity:
            raise InputError(f"{self._file.path}: has changed since it was asked; ask again")
        return self._file.graph("cpu")

    @property
    def n(self) -> int:
        return self._graph.n

    @property
    def m(self) -> int:
        return self._graph.m

    @property
    def labels(self) -> Labels:
        return self._graph.labels

    @property
    def edges(self) -> NDArray[np.uint32]:
        return self._graph.edges


@contextmanager
def cut(too_large: OutOfMemory, progress: Progress | None) -> Iterator[GraphOnDisk]:
    """The graph in blocks on disk, which are removed behind the block.

    Where a work folder is given and the block is ended early, they stay, so that the same question is resumed.

    Raises
    ------
    MemoryLimitError
        When that does not fit either.
    """
    request, begin, source = _request_of_store(too_large), time.perf_counter(), too_large.source
    graph = source if isinstance(source, Graph) else FileGraph(source, request)
    with (
        _refusing(too_large),
        _store(too_large, lambda folder: _written(too_large, folder, request, progress)) as found,
    ):
        store, was_there = found
        left = ", which an earlier run has left" if was_there else ""
        lies = f"{len(store.manifest.blocks):,} blocks, {store_bytes(store):,} bytes of disk, in {store.folder}{left}"
        cleaned = source.cleaned if isinstance(source, Graph) else None
        yield GraphOnDisk(store, request, (*_reasons(too_large), lies), time.perf_counter() - begin, cleaned, graph)


def plan_from_disk(too_large: OutOfMemory) -> Plan:
    """What will be done, as far as that is known before anything is cut."""
    request, source = _request_of_store(too_large), too_large.source
    threads = request.thread_count
    with _refusing(too_large):
        available_bytes = available_after_loading(request.memory_limit, load_build_kernels)
        known, pairs = (None, source.m) if isinstance(source, Graph) else _known(source, threads)
    shape = Shape(source.n, source.m, expected_wedges(source.degrees)) if isinstance(source, Graph) else Shape(0, 0)
    most = "" if pairs is None else f", which takes up to {DISK_BYTES * pairs:,} bytes of disk"
    folder = tempfile.gettempdir() if too_large.request.work_folder is None else too_large.request.work_folder
    is_hybrid = request.device == "hybrid"
    return plan_of(
        request.question,
        OrientedShape(shape),
        algorithm=request.block_algorithm,
        device="hybrid" if is_hybrid else "cpu",
        threads=threads,
        knobs=dict(request.knobs or {}) if is_hybrid else find(request.block_algorithm, "cpu").settings(request.knobs),
        bytes_needed=Wanted.within(request.memory_limit, available_bytes, SCHEMES[0], None, threads).counting_bytes,
        estimated_seconds=CUT_SECONDS_PER_PAIR * (pairs or 0) / threads,
        reasons=(
            *_reasons(too_large),
            f"cut into blocks in {folder}{most}; the seconds are those of cutting",
            *request.reasons,
        ),
        beyond=PROCESS,
        known=known,
    )


@contextmanager
def _refusing(too_large: OutOfMemory) -> Iterator[None]:
    """Say what was refused before, where answering from disk needs too much as well."""
    try:
        yield
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"{too_large.refusal}; and answering from disk needs too much as well: {error}"
        ) from error


def _request_of_store(too_large: OutOfMemory) -> Request:
    """What to cut and ask by: the limit is one for the whole process, and all work is kept with the blocks.

    Rows of a graph that is held have its labels, which its blocks do not.
    """
    rows = ARRAY if isinstance(too_large.source, Graph) else too_large.request.rows
    return replace(too_large.request, memory_limit=too_large.limit, work_folder=None, rows=rows)


@contextmanager
def _store(too_large: OutOfMemory, make: Make) -> Iterator[tuple[Store, bool]]:
    """The store, in a folder of its own, and whether an earlier run has made it."""
    request = too_large.request
    if request.work_folder is None:
        with temporary_store(make) as store:
            yield store, False
        return
    identity = _identity(too_large.source, request)
    with resumable_store(make, Path(request.work_folder), identity, resume=request.resume) as found:
        yield found


def _written(too_large: OutOfMemory, folder: Path, request: Request, progress: Progress | None) -> Store:
    source = too_large.source
    how: dict[str, Any] = {"memory_limit": request.memory_limit, "threads": request.threads, "progress": progress}
    if isinstance(source, Graph):
        return write_store(source, folder, **how)
    read_as: dict[str, Any] = {name: getattr(source, name) for name in ("labels", "format", "limits", "columns")}
    return write_store(source.path, folder, **read_as, **how)


def _identity(source: GraphSource, request: Request) -> Identity:
    """A file by its path and by what the system says of it, a graph by its edges; and what their blocks depend on.

    What the system says is its `file_identity`, by which a copy of the same bytes is another file; that costs cutting
    it again. A checksum of some of the bytes would save that, and miss an edit between them; one of all bytes would
    read the file once more.
    """
    facts = {"memory_limit": request.memory_limit, "version": __version__}
    if isinstance(source, Graph):
        return Identity(_fingerprint(source), facts)
    path = os.path.realpath(source.path)
    with storage_errors(path, "looked at", "check the path"):
        signs = file_identity(path)
    limits = asdict(source.limits.with_values({"memory_bytes": None}))  # of which the blocks do not depend
    read_as = {"labels": source.labels, "format": source.format, "limits": limits}
    read_as["columns"] = asdict(source.columns)
    return Identity(path, {**signs, **read_as, **facts})


def _fingerprint(graph: Graph) -> str:
    """The fingerprint that a store of the graph has."""
    found = Fingerprint()
    for pairs in numbered_edges(graph):
        ends = pairs.astype(np.uint64)
        found.add(ends.min(axis=1) << np.uint64(32) | ends.max(axis=1))
    return found.of(graph.n)


def _known(source: GraphFile, threads: int) -> tuple[str, int | None]:
    """What there is to say of a file before it is read, and its pairs, where its beginning tells how many."""
    pairs = expected_pairs(source.path, source.format, source.read_options(threads))
    many = "" if pairs is None else f"{pairs:,} pairs, about, of "
    return f"{many}{name_of(source)}, which was not read", pairs


def _reasons(too_large: OutOfMemory) -> tuple[str, ...]:
    *before, last = too_large.reasons
    return *before, f"from disk, because memory is too small: {last}"


@contextmanager
def temporary_store(make: Make) -> Iterator[Store]:
    """A store below the system's temporary folder; whatever ends the block, nothing is left of it.

    What a kill has left of others goes.
    """
    with storage_errors("the system's temporary folder", "written to", ANOTHER):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with process_lock(folder / IN_USE, WAIT):
            _remove_abandoned_folders(folder)
            yield make(folder / STORE)
    except BaseException:
        with suppress(OSError):  # what ended the block is raised
            shutil.rmtree(folder)
        raise
    _remove(folder)


@contextmanager
def resumable_store(make: Make, work_folder: Path, identity: Identity, *, resume: bool) -> Iterator[tuple[Store, bool]]:
    """A store in a work folder, and whether it was there already; it is removed where the block succeeds.

    One process at a time has it. Of a source that has changed, or with `resume` false, it is made again.
    """
    with _own_folder(work_folder, PREFIX + key_of(name=identity.name)) as folder:
        found = _finished(folder, identity) if resume else None
        if found is not None:
            yield found, True
            return
        _remove(folder)
        with storage_errors(folder, "made", ANOTHER):
            make_folder(folder, mode=0o700)
        made = make(folder / STORE)
        with atomic_write(folder / NOTE, mode=0o600) as file:
            file.write(_note(identity))
        yield made, False


def store_bytes(store: Store) -> int:
    """What the files of a store take on disk."""
    with storage_errors(store.folder, "looked through", "check the folder and its permissions"):
        return sum(path.stat().st_size for path in store.folder.iterdir())


@contextmanager
def _own_folder(work_folder: Path, name: str) -> Iterator[Path]:
    """A folder for this process alone, removed where the block succeeds, or where nothing is in it."""
    folder, lock = work_folder / name, work_folder / f"{name}{LOCK_SUFFIX}"
    with storage_errors(work_folder, "made", ANOTHER):
        make_folder(work_folder, parents=True)
    refuse_link(folder)
    refuse_link(lock)
    with process_lock(lock, WAIT):
        with storage_errors(folder, "made", ANOTHER):
            make_folder(folder, mode=0o700)
        try:
            yield folder
        except BrokenPipeError:  # a reader that has had enough
            _remove(folder)
            raise
        except BaseException:
            with suppress(OSError):  # which says that there is something to resume
                folder.rmdir()
            raise
        _remove(folder)


def _finished(folder: Path, identity: Identity) -> Store | None:
    """The store of the same source and options that an earlier run finished."""
    try:
        return open_store(folder / STORE) if read_own(folder / NOTE) == _note(identity) else None
    except (UntrustedFileError, FormatError, MissingFileError):  # the last two: a run was killed while it removed them
        return None


def _note(identity: Identity) -> bytes:
    return json.dumps({"name": identity.name, **identity.facts}, sort_keys=True).encode() + b"\n"


def _remove_abandoned_folders(own: Path) -> None:
    """Remove the folders beside our own that belong to the same user and that nobody has locked any more."""
    for folder in own.parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another process has it, or removes it: it is in nobody's way
            is_ours = os.stat(folder, follow_symlinks=False).st_uid == own.stat().st_uid and not folder.is_symlink()
            if is_ours and folder != own and (folder / IN_USE).stat().st_size:  # its holder has written who it is
                with process_lock(folder / IN_USE, WAIT) as has_locks:
                    if has_locks:
                        shutil.rmtree(folder)


def _remove(folder: Path) -> None:
    with storage_errors(folder, "removed", "remove it"):
        shutil.rmtree(folder)
