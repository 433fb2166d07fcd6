"""The home of a count of a store by workers in other processes or on other machines."""

from __future__ import annotations

from dataclasses import dataclass

from wedgewise.machine.progress import Tell
from wedgewise.run.cluster import Assignment, assign, count_on_cluster
from wedgewise.run.outofcore import StoreCount
from wedgewise.run.plan import Plan
from wedgewise.run.request import Request
from wedgewise.store.open import Store


@dataclass(frozen=True, slots=True)
class Cluster:
    """What every worker is told."""

    request: Request
    assignment: Assignment

    @property
    def plan(self) -> Plan:
        return self.assignment.plan

    @classmethod
    def prepare(cls, request: Request, store: Store) -> Cluster:
        """Divide what there is among the workers, or raise where that is too little."""
        return cls(request, assign(request, store))

    def run(self, tell: Tell | None, *, journal: bool = True) -> StoreCount:
        return count_on_cluster(self.request, self.assignment, tell, journal=journal)
