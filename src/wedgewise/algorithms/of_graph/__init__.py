"""What is found of a whole graph and is no count of its triangles: every module here that has a `METHOD`, by its name.

A method takes the `Graph` that users hold and prepares of it what it needs: rows of all neighbours, an oriented form,
or the edges alone. It has a slow check by definition beside it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wedgewise.algorithms._contract import Shape
    from wedgewise.graph import Graph

Details = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked of a method; ``on_done(done, total)`` is told how far it is, in the calling thread."""

    details: Details
    threads: int
    on_done: Callable[[int, int], None] | None = None

    def step(self, total: int) -> Callable[[int], None] | None:
        """Progress of work of so many tasks."""
        on_done = self.on_done
        return None if on_done is None else lambda done: on_done(done, total)


@dataclass(frozen=True, slots=True)
class GraphMethod:
    """How something is found of a graph, on the CPU.

    Attributes
    ----------
    summary : one sentence
    find : what is found
    bytes_needed : memory that this takes at its peak beyond the simple graph, what is found included
    seconds : an estimate for one thread
    check : holds some of what was found to the definition, or raises `VerificationError`; what it looked at
    resolved : the details with what depends on the graph checked and in numbers, before any work
    """

    summary: str
    find: Callable[[Graph, Job], Any]
    bytes_needed: Callable[[Shape, int, Details], int]
    seconds: Callable[[Graph, Details], float]
    check: Callable[[Graph, Details, Any], str]
    resolved: Callable[[Graph, Details], Details] = lambda _graph, details: details


def find_method(computes: str) -> GraphMethod:
    """The method that finds this."""
    method: GraphMethod = importlib.import_module(f"{__name__}.{computes}").METHOD
    return method
