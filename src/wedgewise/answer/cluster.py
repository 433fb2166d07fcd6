"""The home of a count of a store by workers in other processes or on other machines."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from wedgewise.machine.progress import Progress
from wedgewise.run._dask_workers import connect
from wedgewise.run._local_workers import LocalWorkers
from wedgewise.run.cluster import Assignment, Driver, assign
from wedgewise.run.journal import Journal
from wedgewise.run.local import Ran
from wedgewise.run.plan import Plan
from wedgewise.run.request import Request
from wedgewise.store.open import Store


@dataclass(frozen=True, slots=True)
class Cluster:
    """What every worker of a Dask cluster or of this machine is told."""

    request: Request
    assignment: Assignment

    @property
    def plan(self) -> Plan:
        return self.assignment.plan

    @property
    def key(self) -> str:
        return self.assignment.key

    @property
    def busy(self) -> int:
        return len(self.assignment.busy)

    @classmethod
    def prepare(cls, request: Request, store: Store) -> Cluster:
        """Divide what there is among the workers, or raise where that is too little."""
        return cls(request, assign(request, store))

    def run(self, journal: Journal | None, progress: Progress | None) -> Ran:
        """Keep workers busy until every task has a result.

        Raises
        ------
        ClusterError
            When no scheduler or no worker answers, when versions or graphs differ, or when a task ends its workers.
        """
        driver, cluster = Driver(self.assignment, journal, progress), self.request.cluster
        if driver.left:
            with closing(LocalWorkers(self.request.workers or 1) if cluster is None else connect(cluster)) as crew:
                driver.run(crew)
        return Ran(driver.finish(), self.plan)
