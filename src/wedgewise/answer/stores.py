"""Questions about a store, from its folder to the `Result`: counts here, those about every vertex or edge by owners."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wedgewise.algorithms import ENGINE, find
from wedgewise.answer.store_arrays import COMPUTES, RECOUNT, StoreQuestion, answer_by_owners, plan_by_owners
from wedgewise.errors import PreconditionError, VerificationError
from wedgewise.machine import hardware
from wedgewise.machine.progress import progress_bar
from wedgewise.result import Result
from wedgewise.run.journal import notes_on_counting
from wedgewise.run.memory import triple_answer
from wedgewise.run.outofcore import StoreCount, count_store, plan_count
from wedgewise.run.owners import owned_answer
from wedgewise.run.plan import Options, Plan, with_reasons
from wedgewise.store.open import Store, open_store
from wedgewise.version import __version__

if TYPE_CHECKING:
    from wedgewise.answer.answering import Progress

ANSWERED = ("count", "triangles", "edge_support", "k_truss")


def answer_store(
    question: str,
    folder: Any,
    options: Options,
    progress: Progress,
    verify: bool,
    *,
    k: int | None = None,
) -> Result:
    """Answer a question about a store, within ``options.memory_limit``."""
    if question != "count":
        with progress_bar(progress) as tell:
            asked = StoreQuestion(question, options, k, verify=verify)
            return answer_by_owners(asked, open_for(asked, folder), tell)
    _check(question, folder, options)
    begin = time.perf_counter()
    store = open_store(folder, options.work_folder)
    other = ENGINE if options.algorithm == RECOUNT else RECOUNT
    if verify and not _by_workers(options):
        plan_count(store, options.memory_limit, options.threads, other)  # refused now, not after the count
    with progress_bar(progress) as tell:
        opened = time.perf_counter()
        how = {"algorithm": options.algorithm, "knobs": options.knobs, "progress": tell, "resume": options.resume}
        found = _count(store, options, how)
        counted = time.perf_counter()
        seconds = {"open": opened - begin, "count": counted - opened}
        verified = None
        if verify:
            verified = _verified(store, found, options, other)
            seconds["verify"] = time.perf_counter() - counted
    manifest, plan = store.manifest, with_reasons(found.plan, options.because)
    return Result(
        answer=found.triangles,
        question=question,
        algorithm=plan.algorithm,
        device=plan.device,
        plan=plan,
        seconds=seconds,
        n=manifest.n,
        m=manifest.m,
        cleaned=manifest.cleaned,
        wedges_tested=found.computed.tests,
        verified=verified,
        peak_bytes=hardware.peak_bytes(),
        machine=hardware.look().description,
        version=__version__,
        task_seconds=found.task_seconds,
        timeline=found.timeline,
    )


def plan_store(question: str, folder: Any, options: Options, *, k: int | None = None) -> Plan:
    """What `answer_store` would do in this process."""
    if question != "count":
        asked = StoreQuestion(question, options, k)
        return plan_by_owners(asked, open_for(asked, folder))
    _check(question, folder, options)
    store = open_store(folder, options.work_folder)
    if options.device == "hybrid":
        from wedgewise.run import hybrid

        plan = hybrid.plan_store(store, options).plan
    else:
        plan = plan_count(store, options.memory_limit, options.threads, options.algorithm, options.knobs)[1]
    return with_reasons(plan, (*options.because, *notes_on_counting(store)))


def open_for(question: StoreQuestion, folder: Any) -> Store:
    """The store that something about every vertex or edge is asked of, where it can be."""
    _check(question.name, folder, question.options)
    return open_store(folder, question.options.work_folder)


def check_asked(question: str, name: str, options: Options) -> None:
    """Refuse what no store answers; the name is for messages."""
    _check(question, name, options)
    if options.device == "hybrid":
        return
    algorithm = ENGINE if options.algorithm == "auto" else options.algorithm
    if question == "count":
        triple_answer(algorithm)
    else:
        owned_answer(algorithm, COMPUTES[question])
    find(algorithm, "cpu").settings(options.knobs)


def _check(question: str, folder: Any, options: Options) -> None:
    if question not in ANSWERED:
        raise PreconditionError(
            f"{folder}: a store answers {', '.join(ANSWERED)}, not {question}; ask the graph's file"
        )
    if options.device == "cuda" or (options.device == "hybrid" and question != "count"):
        raise PreconditionError(f"{folder}: stores are counted on the host; leave the device out")
    if _by_workers(options):
        if question != "count":
            raise PreconditionError(f"{folder}: workers count, and do not answer {question}; leave them out")
        if options.device not in ("auto", "cpu"):
            raise PreconditionError(f"{folder}: workers count on their hosts; leave the device {options.device} out")
    if (options.order, options.relabel) != ("auto", "auto"):
        raise PreconditionError(f"{folder}: a store has its order and its ids; leave order and relabel out")


def _by_workers(options: Options) -> bool:
    return options.cluster is not None or options.workers is not None


def _count(store: Store, options: Options, how: Mapping[str, Any]) -> StoreCount:
    """Count in this process, with GPUs or without, or by the workers that were asked for; see `count_store`."""
    if options.device == "hybrid":
        from wedgewise.run.hybrid import count_store_hybrid

        return count_store_hybrid(store, memory_limit=options.memory_limit, threads=options.threads, **how)
    if not _by_workers(options):
        return count_store(store, memory_limit=options.memory_limit, threads=options.threads, **how)
    from wedgewise.run.cluster import count_on_cluster

    return count_on_cluster(
        store,
        cluster=options.cluster,
        workers=options.workers,
        memory_limit=options.memory_limit,
        threads=options.threads,
        **how,
    )


def _verified(store: Store, found: StoreCount, options: Options, other: str) -> str:
    """Count again by another algorithm, or raise; how it was done."""
    again = _count(store, replace(options, device="auto"), {"algorithm": other, "journal": False})
    if again.triangles != found.triangles:
        raise VerificationError(
            f"{found.plan.algorithm} counts {found.triangles:,} triangles and {other} {again.triangles:,}: please "
            "report this"
        )
    return f"recounted by {other}"
