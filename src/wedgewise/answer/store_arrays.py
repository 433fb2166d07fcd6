"""Questions about every vertex or edge of a store: planned within a limit, found on disk, verified, handed out.

What was found stays on disk until the caller has it, so that whatever ends the work, the same question goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from wedgewise.answer.response import Clock, result_of
from wedgewise.answer.store_results import (
    KTruss,
    StoreAnswer,
    Supports,
    Triangles,
    array_bytes,
    table_bytes,
)
from wedgewise.errors import MemoryLimitError, StorageError, VerificationError
from wedgewise.machine import hardware
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.result import Result
from wedgewise.run.finished_slices import FinishedSlices
from wedgewise.run.journal import LINE_BYTES, alone_at, check_disk
from wedgewise.run.memory import PAGE_BYTES, SLICED_TASK_BYTES, bytes_beside_lists, lists_bytes
from wedgewise.run.outofcore import Counting, plan_count, plan_of, work_key
from wedgewise.run.plan import Plan
from wedgewise.run.request import ARRAY, Request
from wedgewise.run.sliced_answer import SlicedAnswer, bytes_for_slices
from wedgewise.run.truss_of_store import Peeling, disk_bytes, loading_bytes, truss_without_rounds
from wedgewise.store.open import Store

COMPUTES = {"triangles": "triangles", "edge_support": "edge_support", "k_truss": "edge_support"}
LISTED_BYTES = {
    "triangles": SLICED_TASK_BYTES,
    "edge_support": SLICED_TASK_BYTES,
    "k_truss": 2 * SLICED_TASK_BYTES,
}
SLICE_BYTES = PAGE_BYTES + LINE_BYTES
RECOUNT = "bbtc"
READ_ONLY = "cannot be written to, and what is found is kept on disk; name a folder for that by --work (work_folder=)"


def plan_arrays(request: Request, store: Store) -> Plan:
    """What `find_arrays` would do."""
    return _plan(request, store, _planned(request, store), (READ_ONLY,) if store.is_read_only else ())


@contextmanager
def find_arrays(request: Request, store: Store, progress: Progress | None) -> Iterator[tuple[StoreAnswer, Result]]:
    """What was found, and the result but for its answer; what is on disk is given up where the block succeeds.

    A reader of a pipe that has had enough is a success.
    """
    if store.is_read_only:
        raise StorageError(f"{store.location}: {READ_ONLY}")
    with alone_at(store, request.question) as notes:
        found, result = _found(request, store, progress, notes)
        try:
            yield found, result
        except BrokenPipeError:
            found.remove()
            raise
        found.remove()


def _found(
    request: Request, store: Store, progress: Progress | None, notes: tuple[str, ...]
) -> tuple[StoreAnswer, Result]:
    """Plan, find and verify."""
    clock = Clock()
    if request.verify:
        _recounting(request, store)  # loads its kernels before what is left is measured
    sliced = _planned(request, store)
    recounting = _recounting(request, store) if request.verify else None
    stage = "truss" if request.question == "k_truss" else "count"
    with memory_for(stage):
        found = FINDERS[request.question](request, store, sliced, progress)
    clock.lap(stage)
    verified = None
    if recounting is not None:
        verified = _verified(found, recounting)
        clock.lap("verify")
    plan = _plan(request, store, sliced, notes)
    return found, result_of(plan, store.manifest.cleaned, None, clock.laps, verified=verified)


def _planned(request: Request, store: Store) -> SlicedAnswer:
    """Load the kernels, measure what is left, and refuse what does not fit there or on the disk."""
    algorithm, computes = request.engine, COMPUTES[request.question]
    within = bytes_for_slices(request.memory_limit, computes, algorithm)
    available_bytes = bytes_beside_lists(store.location, store.partition, LISTED_BYTES[request.question], within)
    _check_answer(request, store, available_bytes)
    check_disk(store, request.question, kept_bytes(request.question, store))
    spare = loading_bytes(store.counts) if request.question == "k_truss" else 0
    threads = hardware.granted_threads(request.threads)
    sliced = SlicedAnswer(
        store,
        computes,
        available_bytes=available_bytes - spare,
        threads=threads,
        algorithm=algorithm,
        knobs=request.knobs,
    )
    sliced = sliced.with_fitting_threads()
    sliced.check_fits()
    return sliced


def _check_answer(request: Request, store: Store, available_bytes: int) -> None:
    """Refuse an answer that does not fit as it is asked for."""
    if request.rows == ARRAY:
        need = array_bytes(request.question, store)
    else:
        need = table_bytes(request.question, store, request.output)
    if need <= available_bytes:
        return
    remedy = "raise the limit"
    if request.rows == ARRAY and request.question != "triangles":
        remedy += ", or let the command write it: --output streams"
    raise MemoryLimitError(
        f"{store.location}: the answer to {request.question} takes {need:,} bytes and {available_bytes:,} are left; "
        f"{remedy}"
    )


def kept_bytes(question: str, store: Store) -> int:
    """What is kept on disk until the answer is handed out; a slice takes a page and a line more than its numbers."""
    if question == "k_truss":
        return disk_bytes(store.counts) + 2 * SLICE_BYTES * len(store.manifest.blocks)
    if question == "triangles":
        return 8 * store.manifest.n + SLICE_BYTES * store.partition.parts
    return 4 * store.manifest.m + SLICE_BYTES * len(store.manifest.blocks)


def _slices(request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None) -> FinishedSlices:
    """The slices of all owners, those that are on disk already not found again."""
    slices = FinishedSlices(
        store.beside(f"{sliced.computes}-slices"),
        work_key(store, sliced.algorithm, sliced.knobs),
        resume=request.resume,
        due=sliced.due,
    )
    done = slices.done
    for owner, found in sliced.compute([owner for owner in sliced.slices if owner.number not in done], progress):
        slices.put(owner, found)
    return slices


def _find_triangles(request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None) -> StoreAnswer:
    return Triangles(store, _slices(request, store, sliced, progress), sliced.slices)


def _find_supports(request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None) -> StoreAnswer:
    by_pair = {owner.pair: owner for owner in sliced.slices if owner.pair is not None}
    return Supports(store, _slices(request, store, sliced, progress), by_pair)


def _find_truss(request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None) -> StoreAnswer:
    peeling = Peeling(store, request.details["k"], sliced)
    if not request.resume:
        peeling.remove()
    return KTruss(store, truss_without_rounds(store, request.details["k"]) or peeling.run(progress), peeling)


FINDERS = {"triangles": _find_triangles, "edge_support": _find_supports, "k_truss": _find_truss}


def _recounting(request: Request, store: Store) -> Counting:
    """How the triangles of a store, or of a part of it, are counted again; refused now, not after the work."""
    counting, _ = plan_count(replace(request, algorithm=RECOUNT, knobs=None), store)
    if request.question == "k_truss":
        counting = Counting(
            store, counting.memory, counting.available_bytes - loading_bytes(store.counts)
        ).with_fitting_threads()
        counting.check_fits()
    return counting


def _verified(found: StoreAnswer, recounting: Counting) -> str:
    """Compare with the triangles that another algorithm counts, or raise; how it was done."""
    support = found.support  # read from the slices
    if support is None:
        return "known without counting"
    memory = replace(recounting.memory, counts=found.source.counts)
    partials = (
        Counting(recounting.store, memory, recounting.available_bytes, found.source).run(None, None).partials.values()
    )
    triangles = sum(partial.triangles for partial in partials)
    if support != 3 * triangles:
        raise VerificationError(
            f"what was found sums up to {support:,}, which is not three times the {triangles:,} triangles that "
            f"{RECOUNT} counts: please report this"
        )
    return f"the sum is three times the triangles that {RECOUNT} counts"


def _plan(request: Request, store: Store, sliced: SlicedAnswer, notes: tuple[str, ...]) -> Plan:
    lists = lists_bytes(store.partition, LISTED_BYTES[request.question])
    plan = plan_of(store, sliced.algorithm, sliced.knobs, sliced.threads, sliced.check_fits() + lists)
    kept = f"{kept_bytes(request.question, store):,} bytes of disk for what is found, until it is handed out"
    computes = "k_truss" if request.question == "k_truss" else sliced.computes
    return replace(
        plan,
        question=request.question,
        computes=computes,
        reasons=(*plan.reasons, kept, *request.because, *notes),
    )
