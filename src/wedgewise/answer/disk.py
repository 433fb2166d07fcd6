"""The home of a question about a store in this process, a few blocks in memory at a time; and who else answers stores.

question                             home
count                                Disk; HybridStore with GPUs; Cluster by workers
triangles, edge_support, k_truss     by owners: what is found stays on disk until it is handed out
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wedgewise.algorithms import ENGINE, find
from wedgewise.answer.response import Clock, Response, result_of
from wedgewise.answer.store_arrays import COMPUTES, RECOUNT, find_arrays, plan_arrays
from wedgewise.answer.store_results import StoreGraph
from wedgewise.errors import PreconditionError, VerificationError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.result import Result
from wedgewise.run.journal import Journal, notes_on_counting
from wedgewise.run.local import Ran
from wedgewise.run.memory import triple_answer
from wedgewise.run.outofcore import Counting, StoreCount, StoreTasks, count_store, plan_count, work_key
from wedgewise.run.plan import Plan, with_reasons
from wedgewise.run.request import ARRAY, OBJECT, Request
from wedgewise.run.sliced_answer import slice_method
from wedgewise.stages import Labels
from wedgewise.store.open import Store, open_store

ANSWERED = ("count", *COMPUTES)


@dataclass(frozen=True, slots=True)
class Disk:
    """The tasks of a store, and what each of them takes."""

    store: Store
    counting: Counting
    plan: Plan

    @property
    def key(self) -> str:
        return work_key(self.store, self.plan.algorithm, self.plan.knobs)

    @property
    def busy(self) -> int:
        return len(self.counting.order)

    @classmethod
    def prepare(cls, request: Request, store: Store) -> Disk:
        """Plan within the memory limit, or raise where that is too little."""
        return cls(store, *plan_count(request, store))

    def run(self, journal: Journal | None, progress: Progress | None) -> Ran:
        """Count one task after the other, on all threads."""
        return Ran(self.counting.run(journal, progress), self.plan)


def open_for(request: Request, source: Any) -> Store:
    """The store that a question is asked of, where it can be; one that is open, or its path."""
    work = request.work_folder
    if request.rows == OBJECT:
        raise PreconditionError(f"{source}: a store has too many rows for one JSON object; name a file by --output")
    if not isinstance(source, Store):
        refuse(request, source)
        return open_store(source, work)
    refuse(request, source.location)
    return source if work is None else replace(source, work_folder=Path(work))


def refuse(request: Request, name: object) -> None:
    """Raise where no store answers what is asked; the name is for messages."""
    if request.question not in ANSWERED:
        raise PreconditionError(
            f"{name}: a store answers {', '.join(ANSWERED)}, not {request.question}; ask the graph's file"
        )
    if request.device == "cuda" or (request.device == "hybrid" and request.question != "count"):
        raise PreconditionError(f"{name}: stores are counted on the host; leave the device out")
    if request.by_workers:
        if request.question != "count":
            raise PreconditionError(f"{name}: workers count, and do not answer {request.question}; leave them out")
        if request.device not in ("auto", "cpu"):
            raise PreconditionError(f"{name}: workers count on their hosts; leave the device {request.device} out")
    if (request.order, request.relabel) != ("auto", "auto"):
        raise PreconditionError(f"{name}: a store has its order and its ids; leave order and relabel out")


def check_asked(request: Request, name: str) -> None:
    """Raise where no store would answer what is asked of another source, by the algorithm that is asked for."""
    refuse(request, name)
    if request.device == "hybrid":
        return
    if request.question == "count":
        triple_answer(request.engine)
    else:
        slice_method(request.engine, COMPUTES[request.question])
    find(request.engine, "cpu").settings(request.knobs)


def answer_store(request: Request, store: Store, progress: Progress | None, clock: Clock, held: ExitStack) -> Response:
    """The answer; what is on disk of it stays until `held` is closed."""
    if request.question == "count":
        return Response(_counted(request, store, progress, clock))
    if request.output is not None:
        _check_output(request, store)
    held.enter_context(memory_for("answer"))
    found, result = held.enter_context(find_arrays(request, store, progress))
    if request.rows != ARRAY:
        return Response(result, lambda: found.table(store.labels()), found)
    begin = time.perf_counter()
    answer = found.array()
    laps = {**result.seconds, "answer": time.perf_counter() - begin}
    return Response(replace(result, answer=answer, seconds=laps, graph=StoreGraph(store)))


def _check_output(request: Request, store: Store) -> None:
    """Refuse a file that could not hold the answer, and load what writes it."""
    from wedgewise.answer.rows import ROWS
    from wedgewise.write.answers import check_labels, rehearse_writer

    assert request.output is not None
    labels: Labels = [] if store.manifest.label_kind == "text" else range(0)
    check_labels(request.output, labels, ROWS[request.question].ends)
    rehearse_writer(request.output)


def plan_of_store(request: Request, store: Store) -> Plan:
    """What `answer_store` would do."""
    if request.question != "count":
        return plan_arrays(request, store)
    return with_reasons(_home(request, store).plan, (*request.because, *notes_on_counting(store)))


def _home(request: Request, store: Store) -> StoreTasks:
    """Who counts a store."""
    if request.by_workers:
        from wedgewise.answer.cluster import Cluster

        return Cluster.prepare(request, store)
    if request.device == "hybrid":
        from wedgewise.answer.hybrid import HybridStore

        return HybridStore.prepare(request, store)
    return Disk.prepare(request, store)


def _counted(request: Request, store: Store, progress: Progress | None, clock: Clock) -> Result:
    """Count, and count again where that is asked for."""
    clock.lap("open")
    again = None
    if request.verify:
        other = ENGINE if request.algorithm == RECOUNT else RECOUNT
        again = replace(request, device="auto", algorithm=other, knobs=None)
        if not request.by_workers:
            plan_count(again, store)  # refused now, not after the count
    found = count_store(request, store, _home(request, store), progress)
    clock.lap("count")
    verified = None
    if again is not None:
        verified = _verified(again, store, found)
        clock.lap("verify")
    return result_of(
        with_reasons(found.plan, request.because),
        store.manifest.cleaned,
        found.triangles,
        clock.laps,
        tests=found.computed.tests,
        verified=verified,
        task_seconds=found.task_seconds,
        timeline=found.timeline,
    )


def _verified(again: Request, store: Store, found: StoreCount) -> str:
    """Count again by another algorithm, or raise; how it was done."""
    triangles = count_store(again, store, _home(again, store), journal=False).triangles
    if triangles != found.triangles:
        raise VerificationError(
            f"{found.plan.algorithm} counts {found.triangles:,} triangles and {again.algorithm} {triangles:,}: please "
            "report this"
        )
    return f"recounted by {again.algorithm}"
