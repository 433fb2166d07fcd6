"""The source of a question: a store, a file that can be read again, or a graph that is held."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.machine.budget import MIN_LIMIT
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice
from wedgewise.run.choose import choose_cleaning_device, may_be_ranked
from wedgewise.run.refusals import check_file, check_no_store, check_store_options
from wedgewise.run.request import Request
from wedgewise.stages.limits import DEFAULT_LIMITS, Limits
from wedgewise.store.manifest import is_store

if TYPE_CHECKING:
    from wedgewise.read import ReadOptions
    from wedgewise.store.open import Store


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file or a store, and how a graph is made of the file; the fields are parameters of `Graph`."""

    path: str | os.PathLike[str]
    labels: str = "auto"
    format: str | None = None
    limits: Limits = DEFAULT_LIMITS
    drop_leaves: bool = False
    threads: int | None = None
    directed: bool = False
    columns: ColumnChoice = ANY_COLUMNS
    combine: str = "last"

    def graph(self, device: str, make: type[Graph] = Graph) -> Graph:
        """The graph, cleaned there."""
        check_file(self.path, is_store=is_store(self.path))
        return make(
            self.path,
            labels=self.labels,
            format=self.format,
            limits=self.limits,
            drop_leaves=self.drop_leaves,
            threads=self.threads,
            directed=self.directed,
            device=device,
            combine=self.combine,
            **asdict(self.columns),
        )

    def check_as_store(self) -> None:
        """Raise where a store is named with parameters for reading a file."""
        plain = GraphFile(self.path, threads=self.threads)
        given = [
            item.name
            for mine, default in ((self, plain), (self.columns, ANY_COLUMNS))
            for item in fields(mine)
            if item.name != "columns" and getattr(mine, item.name) != getattr(default, item.name)
        ]
        check_store_options(self.path, given)

    @property
    def can_be_read_again(self) -> bool:
        """Whether blocks can be cut of it as the graph is made of it."""
        keeps_more = self.drop_leaves or self.directed or self.columns.weight is not None
        return os.path.isfile(self.path) and not keeps_more

    def read_options(self, threads: int) -> ReadOptions:
        """The options for reading its pairs in pieces."""
        from wedgewise.read import ReadOptions

        return ReadOptions(self.labels, self.columns, self.limits, threads)


class GraphToCount(Graph):
    """A graph for one count: on a GPU, pairs become oriented rows at once, and a simple graph only if asked for."""

    _is_counted = True


GraphSource = GraphFile | Graph


def open_source(request: Request) -> GraphSource | Store:
    """The store; a file that can be read again; or the graph itself, or one made of whatever `Graph` accepts."""
    source = request.source
    named = source.path if isinstance(source, GraphFile) else source
    if not isinstance(source, Graph) and is_store(named):
        from wedgewise.answer.disk import open_for

        if isinstance(source, GraphFile):
            source.check_as_store()
        return open_for(request, named)
    if request.by_workers or request.share_count > 1:
        check_no_store(request, named)
    if isinstance(source, Graph):
        return source
    if isinstance(source, (str, os.PathLike)):
        source = GraphFile(source, threads=request.threads)
    if isinstance(source, GraphFile):
        source = replace(source, limits=_limits_within(source.limits, source, request))
        if source.can_be_read_again:
            return source
    return graph_of(source, request)


def graph_of(source: Any, request: Request) -> Graph:
    """The graph itself, or one made of what was given within the limit, cleaned where the question is answered."""
    if isinstance(source, Graph):
        return source
    device = choose_cleaning_device(request)
    make = GraphToCount if device == "cuda" and may_be_ranked(request) else Graph
    if isinstance(source, GraphFile):
        return source.graph(device, make)
    limits = _limits_within(DEFAULT_LIMITS, source, request)
    return make(source, device=device, limits=limits, threads=request.threads)


def _limits_within(limits: Limits, source: Any, request: Request) -> Limits:
    """The limits, with one on memory where there is none yet.

    Limits below `MIN_LIMIT` bound what the stages take, and not the process.
    """
    if request.memory_limit is None or request.memory_limit < MIN_LIMIT or limits.memory_bytes is not None:
        return limits
    return limits.with_values({"memory_bytes": process_limit(source, request)})


def name_of(source: GraphSource) -> str:
    """What messages call a source."""
    return source.origin.name if isinstance(source, Graph) else os.fspath(source.path)


def process_limit(source: Any, request: Request) -> int:
    """The limit for the whole process.

    What it already holds is added for a graph, and for a file where it holds more than an interpreter and its kernels.
    """
    limit = request.memory_limit
    assert limit is not None
    if isinstance(source, GraphFile) and source.limits.memory_bytes is not None:
        return source.limits.memory_bytes
    from wedgewise.store.orient import COUNTING_BYTES

    held = hardware.resident_bytes()
    return limit if isinstance(source, GraphFile) and held <= COUNTING_BYTES else held + limit
