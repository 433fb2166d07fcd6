"""How many shares the tasks of a count have: as asked for, as those of the count that goes on, or by TRUST's rule."""

from __future__ import annotations

from dataclasses import replace

from wedgewise.run.checkpoint import kept_tasks
from wedgewise.run.request import Request
from wedgewise.stages.tasks import task_count
from wedgewise.stages.trust_cut import shares_for
from wedgewise.store.open import Store


def with_shares(request: Request, store: Store) -> Request:
    """The request, its shares decided: by TRUST's rule for workers, where nobody did before."""
    if request.shares is not None:
        return request
    tasks, kept = task_count(store.partition), kept_tasks(store) if request.resume else None
    if kept is not None and kept >= tasks and kept % tasks == 0:
        return replace(request, shares=kept // tasks)
    if not request.by_workers:
        return replace(request, shares=1)
    workers = request.workers or _workers_of_cluster(request)
    shares, parts = shares_for(workers, tasks), store.partition.parts
    why = f"TRUST's rule for {workers:,} workers: m = {shares:,} with the n = {parts:,} parts of this store"
    return replace(request, shares=shares, reasons=(*request.reasons, why))


def dealt(shares: int) -> tuple[str, ...]:
    """What a plan says of the shares that tasks have; nothing where they are whole."""
    return () if shares == 1 else (f"the rows of every three parts are dealt to {shares:,} tasks",)


def _workers_of_cluster(request: Request) -> int:
    """How many there are now; others may join later."""
    from wedgewise.run.cluster import open_workers

    with open_workers(request) as workers:
        return workers.count
