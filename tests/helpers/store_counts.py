"""Counts of stores by this process or by workers, with what only these say: how many tasks were known already."""

from __future__ import annotations

import os
from typing import Any

from wedgewise.machine.progress import Progress
from wedgewise.run import outofcore
from wedgewise.run.cluster import tasks_for_workers
from wedgewise.run.outofcore import StoreCount, tasks_from_disk
from wedgewise.run.request import Request
from wedgewise.store.open import Store, open_store


def count_store(store: Store | str | os.PathLike[str], *, progress: Progress | None = None, **how: Any) -> StoreCount:
    """Count in this process; `how` are fields of `Request`."""
    request, opened = Request(**how), _opened(store)
    return outofcore.count_store(request, opened, tasks_from_disk(request, opened), progress)


def count_on_cluster(
    store: Store | str | os.PathLike[str], *, progress: Progress | None = None, **how: Any
) -> StoreCount:
    """Count by workers; `how` are fields of `Request`."""
    request, opened = Request(**how), _opened(store)
    return outofcore.count_store(request, opened, tasks_for_workers(request, opened), progress)


def _opened(store: Store | str | os.PathLike[str]) -> Store:
    return store if isinstance(store, Store) else open_store(store)
