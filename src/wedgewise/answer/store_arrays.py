"""Questions about every vertex or edge of a store: planned within a limit, found on disk, verified, handed out.

What was found stays on disk until the caller has it, so that whatever ends the work, the same question goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from wedgewise.algorithms import ENGINE
from wedgewise.answer.store_results import (
    KTruss,
    StoreAnswer,
    StoreGraph,
    Supports,
    Triangles,
    array_bytes,
    table_bytes,
)
from wedgewise.errors import MemoryLimitError, StorageError, VerificationError
from wedgewise.machine import hardware
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.result import Result
from wedgewise.run.journal import LINE_BYTES, alone_at, check_disk
from wedgewise.run.memory import OWNED_TASK_BYTES, PAGE_BYTES, lists_bytes, room_beside_lists
from wedgewise.run.outofcore import Counting, plan_count, plan_of, work_key
from wedgewise.run.owners import Owning, room_for_owners
from wedgewise.run.plan import Options, Plan
from wedgewise.run.slices import Slices
from wedgewise.run.truss_of_store import Peeling, disk_bytes, loading_bytes, truss_without_rounds
from wedgewise.store.open import Store
from wedgewise.version import __version__

COMPUTES = {"triangles": "triangles", "edge_support": "edge_support", "k_truss": "edge_support"}
LISTED_BYTES = {
    "triangles": OWNED_TASK_BYTES,
    "edge_support": OWNED_TASK_BYTES,
    "k_truss": 2 * OWNED_TASK_BYTES,
}
SLICE_BYTES = PAGE_BYTES + LINE_BYTES
RECOUNT = "bbtc"
READ_ONLY = "cannot be written to, and what is found is kept on disk; name a folder for that by --work (work_folder=)"

Tell = Callable[[str, int, int], None] | None


@dataclass(frozen=True, slots=True)
class StoreQuestion:
    """What is asked of a store.

    Attributes
    ----------
    name : "triangles", "edge_support" or "k_truss"
    options : limit, threads, algorithm and knobs; whether to go on with what the same question left on disk
    k : which truss
    as_array : the answer is made in memory; otherwise its rows are streamed
    output : the file that they are written to; None for text elsewhere
    verify : check the sum of what was found
    """

    name: str
    options: Options
    k: int | None = None
    as_array: bool = True
    output: str | None = None
    verify: bool = False


@memory_for("answer")
def answer_by_owners(question: StoreQuestion, store: Store, tell: Tell) -> Result:
    """The answer as the same graph in memory gives it."""
    with found_by_owners(question, store, tell) as (found, result):
        begin = time.perf_counter()
        answer = found.array()
        seconds = {**result.seconds, "answer": time.perf_counter() - begin}
        return replace(result, answer=answer, seconds=seconds, graph=StoreGraph(store))


def plan_by_owners(question: StoreQuestion, store: Store) -> Plan:
    """What `answer_by_owners` would do."""
    return _plan(question, store, _planned(question, store), (READ_ONLY,) if store.is_read_only else ())


@contextmanager
def found_by_owners(question: StoreQuestion, store: Store, tell: Tell) -> Iterator[tuple[StoreAnswer, Result]]:
    """What was found, and the result but for its answer; what is on disk is given up where the block succeeds.

    A reader of a pipe that has had enough is a success.
    """
    if store.is_read_only:
        raise StorageError(f"{store.place}: {READ_ONLY}")
    with alone_at(store, question.name) as notes:
        found, result = _found(question, store, tell, notes)
        try:
            yield found, result
        except BrokenPipeError:
            found.remove()
            raise
        found.remove()


def _found(question: StoreQuestion, store: Store, tell: Tell, notes: tuple[str, ...]) -> tuple[StoreAnswer, Result]:
    """Plan, find and verify."""
    begin = time.perf_counter()
    if question.verify:
        _recounting(question, store)  # loads its kernels before what is left is measured
    owning = _planned(question, store)
    recounting = _recounting(question, store) if question.verify else None
    with memory_for("truss" if question.name == "k_truss" else "count"):
        found = FINDERS[question.name](question, store, owning, tell)
    seconds = {"truss" if question.name == "k_truss" else "count": time.perf_counter() - begin}
    verified = None
    if recounting is not None:
        begin = time.perf_counter()
        verified = _verified(found, recounting)
        seconds["verify"] = time.perf_counter() - begin
    return found, _result(store, _plan(question, store, owning, notes), seconds, verified)


def _planned(question: StoreQuestion, store: Store) -> Owning:
    """Load the kernels, measure what is left, and refuse what does not fit there or on the disk."""
    options, computes = question.options, COMPUTES[question.name]
    algorithm = ENGINE if options.algorithm == "auto" else options.algorithm
    room = room_for_owners(options.memory_limit, computes, algorithm)
    room = room_beside_lists(store.place, store.partition, LISTED_BYTES[question.name], room)
    _check_answer(question, store, room)
    check_disk(store, question.name, kept_bytes(question.name, store))
    spare = loading_bytes(store.counts) if question.name == "k_truss" else 0
    threads = hardware.granted_threads(options.threads)
    owning = Owning(store, computes, room=room - spare, threads=threads, algorithm=algorithm, knobs=options.knobs)
    owning = owning.with_fitting_threads()
    owning.check_room()
    return owning


def _check_answer(question: StoreQuestion, store: Store, room: int) -> None:
    if question.as_array:
        need = array_bytes(question.name, store)
    else:
        need = table_bytes(question.name, store, question.output)
    if need <= room:
        return
    remedy = "raise the limit"
    if question.as_array and question.name != "triangles":
        remedy += ", or let the command write it: --output streams"
    raise MemoryLimitError(
        f"{store.place}: the answer to {question.name} takes {need:,} bytes and {room:,} are left; {remedy}"
    )


def kept_bytes(question: str, store: Store) -> int:
    """What is kept on disk until the answer is handed out; a slice takes a page and a line more than its numbers."""
    if question == "k_truss":
        return disk_bytes(store.counts) + 2 * SLICE_BYTES * len(store.manifest.blocks)
    if question == "triangles":
        return 8 * store.manifest.n + SLICE_BYTES * store.partition.parts
    return 4 * store.manifest.m + SLICE_BYTES * len(store.manifest.blocks)


def _slices(question: StoreQuestion, store: Store, owning: Owning, tell: Tell) -> Slices:
    """The slices of all owners, those that are on disk already not found again."""
    slices = Slices(
        store.beside(f"{owning.computes}-slices"),
        work_key(store, owning.algorithm, owning.knobs),
        resume=question.options.resume,
        due=owning.due,
    )
    done = slices.done
    for owner, found in owning.slices([owner for owner in owning.owners if owner.number not in done], tell):
        slices.put(owner, found)
    return slices


def _find_triangles(question: StoreQuestion, store: Store, owning: Owning, tell: Tell) -> StoreAnswer:
    return Triangles(store, _slices(question, store, owning, tell), owning.owners)


def _find_supports(question: StoreQuestion, store: Store, owning: Owning, tell: Tell) -> StoreAnswer:
    by_pair = {owner.pair: owner for owner in owning.owners if owner.pair is not None}
    return Supports(store, _slices(question, store, owning, tell), by_pair)


def _find_truss(question: StoreQuestion, store: Store, owning: Owning, tell: Tell) -> StoreAnswer:
    assert question.k is not None
    peeling = Peeling(store, question.k, owning)
    if not question.options.resume:
        peeling.remove()
    return KTruss(store, truss_without_rounds(store, question.k) or peeling.run(tell), peeling)


FINDERS = {"triangles": _find_triangles, "edge_support": _find_supports, "k_truss": _find_truss}


def _recounting(question: StoreQuestion, store: Store) -> Counting:
    """How the triangles of a store, or of a part of it, are counted again; refused now, not after the work."""
    counting, _ = plan_count(store, question.options.memory_limit, question.options.threads, RECOUNT)
    if question.name == "k_truss":
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


def _plan(question: StoreQuestion, store: Store, owning: Owning, notes: tuple[str, ...]) -> Plan:
    lists = lists_bytes(store.partition, LISTED_BYTES[question.name])
    plan = plan_of(store, owning.algorithm, owning.knobs, owning.threads, owning.check_room() + lists)
    kept = f"{kept_bytes(question.name, store):,} bytes of disk for what is found, until it is handed out"
    computes = "k_truss" if question.name == "k_truss" else owning.computes
    return replace(
        plan,
        question=question.name,
        computes=computes,
        reasons=(*plan.reasons, kept, *question.options.because, *notes),
    )


def _result(store: Store, plan: Plan, seconds: dict[str, float], verified: str | None) -> Result:
    manifest = store.manifest
    return Result(
        answer=None,
        question=plan.question,
        algorithm=plan.algorithm,
        device=plan.device,
        plan=plan,
        seconds=seconds,
        n=manifest.n,
        m=manifest.m,
        cleaned=manifest.cleaned,
        wedges_tested=0,
        verified=verified,
        peak_bytes=hardware.peak_bytes(),
        machine=hardware.look().description,
        version=__version__,
    )
