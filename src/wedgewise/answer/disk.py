"""The home of a question about a store in this process, a few blocks in memory at a time; and who else answers stores.

question                           who computes it
count, transitivity                this process; with GPUs, `answer/hybrid_home.py`; workers, `run/cluster.py`
triangles                          this process; workers, `run/cluster_slices.py`: by slices of each part
clustering, average_clustering     this process, by the same slices
edge_support                       the same: the supports of each block
k_truss                            the same, by rounds: the remaining arcs of each block
trussness                          this process, by rounds

Slices stay on disk until the caller has the answer, so that the same question is resumed, whatever ended the work.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wedgewise.algorithms import ENGINE, find
from wedgewise.answer import coefficients
from wedgewise.answer.questions import ON_STORES, QUESTIONS
from wedgewise.answer.response import Clock, ResultWithRows, result_of
from wedgewise.answer.store_results import (
    Clustering,
    KTruss,
    StoreAnswer,
    StoreGraph,
    Supports,
    Triangles,
    Trussness,
    array_bytes,
    degree_bytes,
    table_bytes,
)
from wedgewise.errors import VerificationError
from wedgewise.machine.budget import check_fits
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.prepare.orient_arrays import count_wedges
from wedgewise.result import Result
from wedgewise.run.checkpoint import LINE_BYTES, FinishedSlices, check_disk, lock_work, notes_on_counting
from wedgewise.run.outofcore import (
    Counting,
    StoreCount,
    StoreTasks,
    count_store,
    plan_count,
    store_plan,
    tasks_from_disk,
    work_key,
)
from wedgewise.run.plan import Plan, with_reasons
from wedgewise.run.refusals import READ_ONLY, check_blocks, check_store, check_writable
from wedgewise.run.request import ARRAY, Request
from wedgewise.run.shares import with_shares
from wedgewise.run.sliced_answer import SlicedAnswer, bytes_for_slices, listed_bytes, slice_method, slices_within
from wedgewise.run.task_memory import PAGE_BYTES, lists_bytes, triple_answer
from wedgewise.run.truss_of_store import StorePeeling, disk_bytes, loading_bytes, truss_of
from wedgewise.stages import Labels
from wedgewise.stages.tasks import exact_sum
from wedgewise.store.open import Store, open_store

if TYPE_CHECKING:
    from wedgewise.run.cluster_slices import SliceWorkers

IN_SLICES: dict[str, type[Triangles | Supports]] = {
    "triangles": Triangles,
    "edge_support": Supports,
    "clustering": Clustering,
    "average_clustering": Clustering,
}
SLICE_BYTES = PAGE_BYTES + LINE_BYTES
RECOUNT = "bbtc"


def open_for(request: Request, source: Any) -> Store:
    """The store that a question is asked of, where it can be; one that is open, or its path."""
    work, name = request.work_folder, source.location if isinstance(source, Store) else source
    check_store(request, name, ON_STORES)
    if not isinstance(source, Store):
        return open_store(source, work)
    return source if work is None else replace(source, work_folder=Path(work))


def check_store_could_answer(request: Request, name: str) -> None:
    """Raise where no store of another source could answer the question by the algorithm that was named."""
    check_blocks(request, name, ON_STORES)
    if request.device == "hybrid":
        return
    computes = ON_STORES[request.question].computes
    if computes == "count":
        triple_answer(request.block_algorithm)
    else:
        slice_method(request.block_algorithm, computes)
    find(request.block_algorithm, "cpu").settings(request.knobs)


def answer_store(
    request: Request, store: Store, progress: Progress | None, clock: Clock, held: ExitStack
) -> ResultWithRows:
    """The answer; what is on disk of it stays until `held` is closed."""
    if request.question == "count":
        return ResultWithRows(_counted(request, store, progress, clock))
    if request.question == "transitivity":
        return ResultWithRows(_transitivity(request, store, progress, clock))
    if request.output is not None:
        _check_output(request, store)
    held.enter_context(memory_for("answer"))
    found, result = held.enter_context(find_arrays(request, store, progress))
    if request.rows != ARRAY:
        return ResultWithRows(result, lambda: found.table(store.labels()), found)
    begin = time.perf_counter()
    answer = found.array()
    laps = {**result.seconds, "answer": time.perf_counter() - begin}
    graph = StoreGraph(store) if QUESTIONS[request.question].has_labels else None
    return ResultWithRows(replace(result, answer=answer, seconds=laps, graph=graph))


def _check_output(request: Request, store: Store) -> None:
    """Refuse a file that could not hold the answer, and load what writes it."""
    from wedgewise.answer.rows import check_output
    from wedgewise.write.answers import load_writer

    assert request.output is not None
    labels: Labels = [] if store.manifest.label_kind == "text" else range(0)
    check_output(request.output, request.question, labels)
    load_writer(request.output)


def plan_of_store(request: Request, store: Store) -> Plan:
    """What `answer_store` would do."""
    if ON_STORES[request.question].computes != "count":
        notes = (READ_ONLY,) if store.is_read_only else ()
        return _plan_of_slices(request, store, _checked_slices(request, store), notes)
    request = with_shares(request, store)
    plan = replace(_tasks(request, store).plan, question=request.question)
    return with_reasons(plan, (*request.reasons, *notes_on_counting(store)))


def _tasks(request: Request, store: Store) -> StoreTasks:
    """The tasks of a store, for whoever counts them."""
    if request.by_workers:
        from wedgewise.run.cluster import tasks_for_workers

        return tasks_for_workers(request, store)
    if request.device == "hybrid":
        from wedgewise.answer.hybrid_home import tasks_for_hybrid

        return tasks_for_hybrid(request, store)
    return tasks_from_disk(request, store)


def _counted(request: Request, store: Store, progress: Progress | None, clock: Clock) -> Result:
    """Count, and count again where that is asked for."""
    request = with_shares(request, store)
    clock.lap("open")
    again = None
    if request.verify:
        other = ENGINE if request.algorithm == RECOUNT else RECOUNT
        again = replace(request, device="auto", algorithm=other, knobs=None)
        if not request.by_workers:
            plan_count(again, store)  # refused now, not after the count
    found = count_store(request, store, _tasks(request, store), progress)
    clock.lap("count")
    verified = None
    if again is not None:
        verified = _verified(again, store, found)
        clock.lap("verify")
    return result_of(
        with_reasons(found.plan, request.reasons),
        store.manifest.cleaned,
        found.triangles,
        clock.laps,
        tests=found.computed.tests,
        verified=verified,
        task_seconds=found.task_seconds,
        timeline=found.timeline,
    )


def _transitivity(request: Request, store: Store, progress: Progress | None, clock: Clock) -> Result:
    """Count, and divide by the paths of two edges."""
    need = degree_bytes(store)
    available_bytes = bytes_for_slices(request.memory_limit, "triangles")
    check_fits(need, available_bytes, f"{store.location}: degrees take")
    counted = _counted(request, store, progress, clock)
    paths = count_wedges(StoreGraph(store).degrees)
    answer = coefficients.transitivity(counted.answer, paths, request.details["undefined"])
    clock.lap("answer")
    return replace(counted, answer=answer, seconds=clock.laps, plan=replace(counted.plan, question="transitivity"))


def _verified(again: Request, store: Store, found: StoreCount) -> str:
    """Count again by another algorithm, or raise; how it was done."""
    triangles = count_store(again, store, _tasks(again, store), journal=False).triangles
    if triangles != found.triangles:
        raise VerificationError(
            f"{found.plan.algorithm} counts {found.triangles:,} triangles and {again.algorithm} {triangles:,}: please "
            "report this"
        )
    return f"recounted by {again.algorithm}"


@contextmanager
def find_arrays(request: Request, store: Store, progress: Progress | None) -> Iterator[tuple[StoreAnswer, Result]]:
    """What was found, and the result but for its answer; what is on disk is removed where the block succeeds.

    A reader of a pipe that has had enough is a success.
    """
    check_writable(store)
    with lock_work(store, request.question) as notes:
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
    sliced = _checked_slices(request, store)
    recounting = _recounting(request, store) if request.verify else None
    stage = "truss" if ON_STORES[request.question].in_rounds else "count"
    with memory_for(stage):
        found = _find(request, store, sliced, progress)
    clock.lap(stage)
    verified = None
    if recounting is not None:
        verified = _verified_sum(found, recounting)
        clock.lap("verify")
    plan = _plan_of_slices(request, store, sliced, notes)
    return found, result_of(plan, store.manifest.cleaned, None, clock.laps, verified=verified)


def _checked_slices(request: Request, store: Store) -> SlicedAnswer:
    """Load the kernels, measure what is left, and refuse what does not fit there or on the disk."""
    method = ON_STORES[request.question]
    is_trussness = request.question == "trussness"
    rounds_bytes = loading_bytes(store.counts, is_trussness=is_trussness) if method.in_rounds else None
    sliced = slices_within(
        store,
        method.computes,
        request.memory_limit,
        threads=request.thread_count,
        algorithm=request.block_algorithm,
        knobs=request.knobs,
        rounds_bytes=rounds_bytes,
    )
    _check_answer(request, store, sliced.available_bytes + (rounds_bytes or 0))
    check_disk(store, request.question, kept_bytes(request.question, store))
    sliced.check_fits()
    return sliced


def _check_answer(request: Request, store: Store, available_bytes: int) -> None:
    """Refuse an answer that does not fit as it is asked for."""
    if request.rows == ARRAY:
        need = array_bytes(request.question, store)
    else:
        need = table_bytes(request.question, store, request.output)
    remedy = "raise the limit"
    if request.rows == ARRAY and ON_STORES[request.question].computes != "triangles":
        remedy += ", or let the command write it: --output streams"
    check_fits(need, available_bytes, f"{store.location}: the answer to {request.question} takes", remedy)


def kept_bytes(question: str, store: Store) -> int:
    """What is kept on disk until the answer is handed out; a slice takes a page and a line more than its numbers."""
    method = ON_STORES[question]
    if method.in_rounds:
        rounds = disk_bytes(store.counts, is_trussness=question == "trussness")
        return rounds + 2 * SLICE_BYTES * len(store.manifest.blocks)
    if method.computes == "triangles":
        return 8 * store.manifest.n + SLICE_BYTES * store.partition.parts
    return 4 * store.manifest.m + SLICE_BYTES * len(store.manifest.blocks)


def _find(request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None) -> StoreAnswer:
    """Find what is not on disk already, by workers or by this process."""
    compute = _truss_in_rounds if ON_STORES[request.question].in_rounds else _answer_in_slices
    if not request.by_workers:
        return compute(request, store, sliced, progress, None)
    from wedgewise.run.cluster_slices import SliceWorkers

    with SliceWorkers(request, store, sliced) as workers:
        return compute(request, store, sliced, progress, workers)


def _truss_in_rounds(
    request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None, workers: SliceWorkers | None
) -> StoreAnswer:
    """The k-truss, or all truss numbers where no k was asked for."""
    k = request.details.get("k")
    peeling = StorePeeling(store, k, sliced, workers)
    if not request.resume:
        peeling.remove()
    if k is None:
        return Trussness(store, peeling.run(progress), peeling)
    return KTruss(store, truss_of(store, k, peeling, progress), peeling)


def _answer_in_slices(
    request: Request, store: Store, sliced: SlicedAnswer, progress: Progress | None, workers: SliceWorkers | None
) -> StoreAnswer:
    """What is known of every vertex or edge, a slice after the other."""
    slices = FinishedSlices(
        store.beside(f"{request.question}-slices"),
        work_key(store, sliced.algorithm, sliced.knobs),
        resume=request.resume,
        stored_forms=sliced.stored_forms,
    )
    missing = [each for each in sliced.slices if each.number not in slices.done]
    if workers is None:
        for each, found in sliced.compute(missing, progress):
            slices.put(each.number, found)
    else:
        for done, _ in enumerate(workers.compute(slices, missing), 1):
            if progress is not None:
                progress(sliced.computes, done, len(missing))
    number_of = {each.of: each.number for each in sliced.slices}
    return IN_SLICES[request.question](store, slices, number_of, request.details)


def _recounting(request: Request, store: Store) -> Counting:
    """How the triangles of a store, or of a part of it, are counted again; refused now, not after the work."""
    counting, _ = plan_count(replace(request, algorithm=RECOUNT, knobs=None), store)
    if request.question == "k_truss":
        counting = Counting(
            store, counting.memory, counting.available_bytes - loading_bytes(store.counts)
        ).with_fitting_threads()
        counting.check_fits()
    return counting


def _verified_sum(found: StoreAnswer, recounting: Counting) -> str:
    """Compare with the triangles that another algorithm counts, or raise; how it was done."""
    support = found.support  # read from the slices
    if support is None:
        return "known without counting"
    memory = replace(recounting.memory, counts=found.source.counts)
    counted = Counting(recounting.store, memory, recounting.available_bytes, found.source).run(None, None)
    triangles = exact_sum(counted.results.triangles)
    if support != 3 * triangles:
        raise VerificationError(
            f"what was found sums up to {support:,}, which is not three times the {triangles:,} triangles that "
            f"{RECOUNT} counts: please report this"
        )
    return f"the sum is three times the triangles that {RECOUNT} counts"


def _plan_of_slices(request: Request, store: Store, sliced: SlicedAnswer, notes: tuple[str, ...]) -> Plan:
    in_rounds = ON_STORES[request.question].in_rounds
    lists = lists_bytes(store.partition, listed_bytes(in_rounds=in_rounds))
    plan = store_plan(store, sliced.algorithm, sliced.knobs, sliced.threads, sliced.check_fits() + lists)
    kept = f"{kept_bytes(request.question, store):,} bytes of disk for what is found, until it is handed out"
    computes = request.question if in_rounds else sliced.computes
    return replace(
        plan,
        question=request.question,
        computes=computes,
        reasons=(*plan.reasons, kept, *request.reasons, *notes),
    )
