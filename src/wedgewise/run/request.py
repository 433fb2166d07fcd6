"""`Request`: what was asked, made once by the API or the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wedgewise.algorithms import ENGINE
from wedgewise.machine import hardware
from wedgewise.machine.parameters import as_integer
from wedgewise.machine.progress import Progress
from wedgewise.stages.tasks import check_shares

ARRAY, TABLE, OBJECT, LISTING = "array", "table", "object", "listing"
DEVICES = ("auto", "cpu", "cuda", "hybrid")


@dataclass(frozen=True, slots=True)
class Request:
    """A question about a source, and how it is to be answered.

    Attributes
    ----------
    question, details : its name, and its own parameters, checked
    source : a Graph, whatever `Graph` accepts, a `GraphFile`, or a store
    device, algorithm, order, relabel, knobs : what computes it, and on what form of the graph
    memory_limit, threads : what that may take; of threads, as many as this process gets, unless a cluster counts
    thread_count : how many threads this process uses
    cluster, workers : who counts instead of this process
    shares, share_count : how many tasks the rows of every three parts of a store are dealt to, where somebody decided
        that; and how many otherwise
    resume, work_folder : what becomes of work that was ended
    verify : check the answer by another method
    progress : as in `wedgewise.count`
    rows : what becomes of the answer: an array, a table whose rows are streamed, one object in memory, or a listing
    output : the file that a table is written to; None for text
    reasons : notes for the plan, such as that fewer threads are used than were asked for
    """

    question: str = "count"
    source: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)
    device: str = "auto"
    algorithm: str = "auto"
    order: str = "auto"
    relabel: str = "auto"
    memory_limit: int | None = None
    threads: int | None = None
    knobs: Mapping[str, int | str] | None = None
    cluster: str | None = None
    workers: int | None = None
    shares: int | None = None
    resume: bool = True
    work_folder: str | os.PathLike[str] | None = None
    verify: bool = False
    progress: Progress | bool | None = None
    rows: str = ARRAY
    output: str | None = None
    reasons: tuple[str, ...] = ()
    thread_count: int = field(init=False)
    share_count: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("memory_limit", "threads", "workers", "shares"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_integer(name, getattr(self, name)))
        if self.shares is not None:
            check_shares(self.shares)
        object.__setattr__(self, "share_count", self.shares or 1)
        object.__setattr__(self, "thread_count", hardware.granted_threads(self.threads))
        if self.threads is not None and self.cluster is None:
            object.__setattr__(self, "reasons", (*self.reasons, *hardware.note_on_threads(self.threads)))
            object.__setattr__(self, "threads", self.thread_count)

    @property
    def block_algorithm(self) -> str:
        """The algorithm for blocks: the one that was asked for, or the engine."""
        return ENGINE if self.algorithm == "auto" else self.algorithm

    @property
    def by_workers(self) -> bool:
        """Whether other processes are to count."""
        return self.cluster is not None or self.workers is not None
