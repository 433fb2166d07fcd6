"""The tasks of a store for workers in other processes or on other machines."""

from __future__ import annotations

from contextlib import closing

from wedgewise.machine.progress import Progress
from wedgewise.run._dask_workers import connect
from wedgewise.run._local_workers import LocalWorkers
from wedgewise.run.cluster import Driver, assign
from wedgewise.run.journal import Journal
from wedgewise.run.local import Ran
from wedgewise.run.outofcore import StoreTasks
from wedgewise.run.request import Request
from wedgewise.store.open import Store


def tasks_for_workers(request: Request, store: Store) -> StoreTasks:
    """Tasks that the workers of a Dask cluster, or of this machine, count; raise where there is too little memory.

    Raises
    ------
    ClusterError
        While they run, when no scheduler or no worker answers, when versions or graphs differ, or when a task ends its
        workers.
    """
    assignment, cluster = assign(request, store), request.cluster

    def run(journal: Journal | None, progress: Progress | None) -> Ran:
        driver = Driver(assignment, journal, progress)
        if driver.left:
            with closing(LocalWorkers(request.workers or 1) if cluster is None else connect(cluster)) as workers:
                driver.run(workers)
        return Ran(driver.finish(), assignment.plan)

    return StoreTasks(assignment.plan, assignment.key, len(assignment.busy), run)
