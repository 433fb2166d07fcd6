"""The triangles of a store, from its folder to the `Result`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from wedgewise import __version__
from wedgewise.errors import PreconditionError, VerificationError
from wedgewise.execute.outofcore import StoreCount, count_store, plan_count
from wedgewise.machine import hardware
from wedgewise.partition.store import Store, open_store
from wedgewise.plan import ENGINE, Options
from wedgewise.report.progress import progress_bar
from wedgewise.result import Result

if TYPE_CHECKING:
    from wedgewise.answering import Progress

ANSWERED = ("count",)
RECOUNT = "bbtc"


def answer_store(
    question: str, folder: Any, options: Options, progress: Progress, verify: bool, *, resume: bool = True
) -> Result:
    """Answer a question about a store, within ``options.memory_limit``; `resume` is that of `count_store`."""
    _check(question, folder, options)
    begin = time.perf_counter()
    store = open_store(folder)
    other = ENGINE if options.algorithm == RECOUNT else RECOUNT
    if verify:
        plan_count(store, options.memory_limit, options.threads, other)  # refused now, not after the count
    with progress_bar(progress) as tell:
        opened = time.perf_counter()
        found = count_store(
            store,
            memory_limit=options.memory_limit,
            threads=options.threads,
            algorithm=options.algorithm,
            knobs=options.knobs,
            progress=tell,
            resume=resume,
        )
        counted = time.perf_counter()
        seconds = {"open": opened - begin, "count": counted - opened}
        verified = None
        if verify:
            verified = _verified(store, found, options, other)
            seconds["verify"] = time.perf_counter() - counted
    manifest, plan = store.manifest, found.plan
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
    )


def _check(question: str, folder: Any, options: Options) -> None:
    if question not in ANSWERED:
        raise PreconditionError(
            f"{folder}: a store answers {', '.join(ANSWERED)}, not {question}; ask the graph's file"
        )
    if options.device == "cuda":
        raise PreconditionError(f"{folder}: stores are counted on the host; leave the device out")
    if (options.order, options.relabel) != ("auto", "auto"):
        raise PreconditionError(f"{folder}: a store has its order and its ids; leave order and relabel out")


def _verified(store: Store, found: StoreCount, options: Options, other: str) -> str:
    """Count again by another algorithm, or raise; how it was done."""
    again = count_store(
        store, memory_limit=options.memory_limit, threads=options.threads, algorithm=other, journal=False
    )
    if again.triangles != found.triangles:
        raise VerificationError(
            f"{found.plan.algorithm} counts {found.triangles:,} triangles and {other} {again.triangles:,}: please "
            "report this"
        )
    return f"recounted by {other}"
