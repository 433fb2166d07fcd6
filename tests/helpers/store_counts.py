"""Counts of stores by this process or by workers, with what only these say: how many tasks were known already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from wedgewise.machine.progress import Progress
from wedgewise.run import batches, outofcore
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


@contextmanager
def each_task_by_itself() -> Iterator[None]:
    """Let every batch of a count have one task, as if that took long."""
    with patch.object(batches, "BATCH_SECONDS", 0.0):
        yield


def _opened(store: Store | str | os.PathLike[str]) -> Store:
    return store if isinstance(store, Store) else open_store(store)
