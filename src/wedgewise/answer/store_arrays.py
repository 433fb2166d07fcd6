"""Questions about every vertex or edge of a store: planned within a limit, found on disk, verified, handed out.

What was found stays on disk until the caller has it, so that whatever ends the work, the same question goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from wedgewise.answer.found import result_of
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
from wedgewise.machine.progress import Tell
from wedgewise.result import Result
from wedgewise.run.journal import LINE_BYTES, alone_at, check_disk
from wedgewise.run.memory import OWNED_TASK_BYTES, PAGE_BYTES, lists_bytes, room_beside_lists
from wedgewise.run.outofcore import Counting, plan_count, plan_of, work_key
from wedgewise.run.owners import Owning, room_for_owners
from wedgewise.run.plan import Plan
from wedgewise.run.request import ARRAY, Request
from wedgewise.run.slices import Slices
from wedgewise.run.truss_of_store import Peeling, disk_bytes, loading_bytes, truss_without_rounds
from wedgewise.store.open import Store

COMPUTES = {"triangles": "triangles", "edge_support": "edge_support", "k_truss": "edge_support"}
LISTED_BYTES = {
    "triangles": OWNED_TASK_BYTES,
    "edge_support": OWNED_TASK_BYTES,
    "k_truss": 2 * OWNED_TASK_BYTES,
}
SLICE_BYTES = PAGE_BYTES + LINE_BYTES
RECOUNT = "bbtc"
READ_ONLY = "cannot be written to, and what is found is kept on disk; name a folder for that by --work (work_folder=)"


def plan_by_owners(request: Request, store: Store) -> Plan:
    """What `found_by_owners` would do."""
    return _plan(request, store, _planned(request, store), (READ_ONLY,) if store.is_read_only else ())


@contextmanager
def found_by_owners(request: Request, store: Store, tell: Tell | None) -> Iterator[tuple[StoreAnswer, Result]]:
    """What was found, and the result but for its answer; what is on disk is given up where the block succeeds.

    A reader of a pipe that has had enough is a success.
    """
    if store.is_read_only:
        raise StorageError(f"{store.place}: {READ_ONLY}")
    with alone_at(store, request.question) as notes:
        found, result = _found(request, store, tell, notes)
        try:
            yield found, result
        except BrokenPipeError:
            found.remove()
            raise
        found.remove()


def _found(request: Request, store: Store, tell: Tell | None, notes: tuple[str, ...]) -> tuple[StoreAnswer, Result]:
    """Plan, find and verify."""
    begin = time.perf_counter()
    if request.verify:
        _recounting(request, store)  # loads its kernels before what is left is measured
    owning = _planned(request, store)
    recounting = _recounting(request, store) if request.verify else None
    with memory_for("truss" if request.question == "k_truss" else "count"):
        found = FINDERS[request.question](request, store, owning, tell)
    seconds = {"truss" if request.question == "k_truss" else "count": time.perf_counter() - begin}
    verified = None
    if recounting is not None:
        begin = time.perf_counter()
        verified = _verified(found, recounting)
        seconds["verify"] = time.perf_counter() - begin
    plan = _plan(request, store, owning, notes)
    return found, result_of(plan, store.manifest.cleaned, None, seconds, verified=verified)


def _planned(request: Request, store: Store) -> Owning:
    """Load the kernels, measure what is left, and refuse what does not fit there or on the disk."""
    algorithm, computes = request.engine, COMPUTES[request.question]
    room = room_for_owners(request.memory_limit, computes, algorithm)
    room = room_beside_lists(store.place, store.partition, LISTED_BYTES[request.question], room)
    _check_answer(request, store, room)
    check_disk(store, request.question, kept_bytes(request.question, store))
    spare = loading_bytes(store.counts) if request.question == "k_truss" else 0
    threads = hardware.granted_threads(request.threads)
    owning = Owning(store, computes, room=room - spare, threads=threads, algorithm=algorithm, knobs=request.knobs)
    owning = owning.with_fitting_threads()
    owning.check_room()
    return owning


def _check_answer(request: Request, store: Store, room: int) -> None:
    if request.rows == ARRAY:
        need = array_bytes(request.question, store)
    else:
        need = table_bytes(request.question, store, request.output)
    if need <= room:
        return
    remedy = "raise the limit"
    if request.rows == ARRAY and request.question != "triangles":
        remedy += ", or let the command write it: --output streams"
    raise MemoryLimitError(
        f"{store.place}: the answer to {request.question} takes {need:,} bytes and {room:,} are left; {remedy}"
    )


def kept_bytes(question: str, store: Store) -> int:
    """What is kept on disk until the answer is handed out; a slice takes a page and a line more than its numbers."""
    if question == "k_truss":
        return disk_bytes(store.counts) + 2 * SLICE_BYTES * len(store.manifest.blocks)
    if question == "triangles":
        return 8 * store.manifest.n + SLICE_BYTES * store.partition.parts
    return 4 * store.manifest.m + SLICE_BYTES * len(store.manifest.blocks)


def _slices(request: Request, store: Store, owning: Owning, tell: Tell | None) -> Slices:
    """The slices of all owners, those that are on disk already not found again."""
    slices = Slices(
        store.beside(f"{owning.computes}-slices"),
        work_key(store, owning.algorithm, owning.knobs),
        resume=request.resume,
        due=owning.due,
    )
    done = slices.done
    for owner, found in owning.slices([owner for owner in owning.owners if owner.number not in done], tell):
        slices.put(owner, found)
    return slices


def _find_triangles(request: Request, store: Store, owning: Owning, tell: Tell | None) -> StoreAnswer:
    return Triangles(store, _slices(request, store, owning, tell), owning.owners)


def _find_supports(request: Request, store: Store, owning: Owning, tell: Tell | None) -> StoreAnswer:
    by_pair = {owner.pair: owner for owner in owning.owners if owner.pair is not None}
    return Supports(store, _slices(request, store, owning, tell), by_pair)


def _find_truss(request: Request, store: Store, owning: Owning, tell: Tell | None) -> StoreAnswer:
    peeling = Peeling(store, request.details["k"], owning)
    if not request.resume:
        peeling.remove()
    return KTruss(store, truss_without_rounds(store, request.details["k"]) or peeling.run(tell), peeling)


FINDERS = {"triangles": _find_triangles, "edge_support": _find_supports, "k_truss": _find_truss}


def _recounting(request: Request, store: Store) -> Counting:
    """How the triangles of a store, or of a part of it, are counted again; refused now, not after the work."""
    counting, _ = plan_count(replace(request, algorithm=RECOUNT, knobs=None), store)
    if request.question == "k_truss":
        counting = Counting(store, counting.memory, counting.room - loading_bytes(store.counts)).with_fitting_threads()
        counting.check_room()
    return counting


def _verified(found: StoreAnswer, recounting: Counting) -> str:
    """Compare with the triangles that another algorithm counts, or raise; how it was done."""
    support = found.support  # read from the slices
    if support is None:
        return "known without counting"
    memory = replace(recounting.memory, counts=found.source.counts)
    partials = Counting(recounting.store, memory, recounting.room, found.source).run(None, None).partials.values()
    triangles = sum(partial.triangles for partial in partials)
    if support != 3 * triangles:
        raise VerificationError(
            f"what was found sums up to {support:,}, which is not three times the {triangles:,} triangles that "
            f"{RECOUNT} counts: please report this"
        )
    return f"the sum is three times the triangles that {RECOUNT} counts"


def _plan(request: Request, store: Store, owning: Owning, notes: tuple[str, ...]) -> Plan:
    lists = lists_bytes(store.partition, LISTED_BYTES[request.question])
    plan = plan_of(store, owning.algorithm, owning.knobs, owning.threads, owning.check_room() + lists)
    kept = f"{kept_bytes(request.question, store):,} bytes of disk for what is found, until it is handed out"
    computes = "k_truss" if request.question == "k_truss" else owning.computes
    return replace(
        plan,
        question=request.question,
        computes=computes,
        reasons=(*plan.reasons, kept, *request.because, *notes),
    )
