"""One graph → the facts of its page: triangles per vertex and a truss number per edge, from which the others follow.

Triangles per vertex give the total, transitivity and clustering; truss numbers give what each truss has. Both share the
oriented graph where they take the same order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, Unpack

import wedgewise
from wedgewise.answer import coefficients
from wedgewise.answer.source import graph_of
from wedgewise.answer_types import TrussLevel
from wedgewise.api import SCHEMA, Result
from wedgewise.errors import MemoryLimitError, PreconditionError
from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.report import graph_numbers
from wedgewise.report.graph_numbers import DegreeClass, Distribution, Summary, TopVertex, TrussPart
from wedgewise.report.objects import labels_kind
from wedgewise.run.choose import check_memory
from wedgewise.run.request import Request
from wedgewise.stages import CleanReport
from wedgewise.store.manifest import is_store

EDGE_BYTES, VERTEX_BYTES = 72, 128  # of the largest step here: an edge is two arcs, with a copy while they are sorted
READING = "read and clean"


class Way(TypedDict, total=False):
    """The keywords of `graph_facts` that `wedgewise.count` explains."""

    device: str
    memory_limit: int | None
    threads: int | None
    progress: Progress | bool | None
    verify: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One question that was asked, and how it was answered; ``bytes_planned`` is beyond the oriented graph."""

    question: str
    algorithm: str
    device: str
    threads: int
    order: str
    bytes_planned: int
    seconds: dict[str, float]
    reasons: tuple[str, ...]
    verified: str | None


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Everything that the page of a graph shows.

    Attributes
    ----------
    source, format, notes, label_kind : where the graph came from
    directed : whether the graph keeps directions, which every number here ignores
    cleaned : what cleaning dropped
    summary, degrees, triangles : the graph in numbers, and two of them by vertex
    clustering_by_degree : for ascending degrees
    levels : what each k-truss has, from 2 on
    last_truss : the largest components of the last one that has edges
    top_by_triangles, top_by_degree : the first vertices, in descending order
    seconds : wall-clock seconds by stage
    steps : the questions that were asked for it
    bytes_planned : the most that any step was planned to take beyond the graph
    peak_bytes, machine, version : what it took, where and by what
    """

    source: str
    format: str
    notes: tuple[str, ...]
    label_kind: str
    directed: bool
    cleaned: CleanReport
    summary: Summary
    degrees: Distribution
    triangles: Distribution
    clustering_by_degree: tuple[DegreeClass, ...]
    levels: tuple[TrussLevel, ...]
    last_truss: tuple[TrussPart, ...]
    top_by_triangles: tuple[TopVertex, ...]
    top_by_degree: tuple[TopVertex, ...]
    seconds: dict[str, float]
    steps: tuple[Step, ...]
    bytes_planned: int
    peak_bytes: int
    machine: str
    version: str

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object with the same keys, and ``schema``."""
        return {"schema": SCHEMA, **asdict(self)}


def graph_facts(source: Any, *, reading_seconds: float | None = None, **way: Unpack[Way]) -> GraphFacts:
    """Find everything that the page of a graph shows; memory is planned before anything is counted.

    Parameters
    ----------
    source : a Graph, or whatever `Graph` accepts
    reading_seconds : what making the Graph took, to be shown among the other stages
    **way : device, memory_limit, threads, progress and verify, as `wedgewise.count` has them

    Raises
    ------
    PreconditionError
        For a store, which has no page.
    MemoryLimitError
        Where a step would take more than there is or `memory_limit` allows.

    Examples
    --------
    >>> facts = graph_facts([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> facts.summary.triangles, facts.summary.transitivity, facts.summary.kmax
    (1, 0.6, 3)
    >>> facts.top_by_degree[0].label
    2
    """
    if is_store(source):
        raise PreconditionError(f"{source}: is a store; a page needs the file that the store was made of")
    with progress_bar(way.get("progress")) as progress:
        return _Finding(source, reading_seconds, way, progress).facts()


class _Finding:
    """The steps to the facts of one graph, and the seconds of each."""

    def __init__(self, source: Any, reading_seconds: float | None, way: Way, progress: Progress | None) -> None:
        self.progress = progress
        self.options = Request(
            device=way.get("device", "auto"), memory_limit=way.get("memory_limit"), threads=way.get("threads")
        )
        self.verify = way.get("verify", False)
        self.seconds = {} if reading_seconds is None else {READING: reading_seconds}
        if isinstance(source, Graph):
            self.graph = source
        else:
            with self.lap(READING):
                self.graph = graph_of(source, self.options)

    @contextmanager
    def lap(self, stage: str) -> Iterator[None]:
        """Time a stage, and say that it has begun."""
        if self.progress is not None:
            self.progress(stage, 0, 1)
        begin = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - begin

    def facts(self) -> GraphFacts:
        graph = self.graph
        with self.lap("plan and orient"):
            planned = self.planned_bytes()
        with self.lap("triangles"):
            of_vertices = self.ask("triangles")
        with self.lap("truss numbers"):
            of_edges = self.ask("trussness")
        with self.lap("degeneracy"):
            degeneracy = graph_numbers.degeneracy(graph, self.options.threads)
        with self.lap("components"):
            trusses = graph_numbers.trusses(graph, of_edges.answer)
        with self.lap("distributions"):
            triangles, degrees = of_vertices.answer, graph.degrees
            clustering = coefficients.undirected(triangles, degrees)
            summary = graph_numbers.summarise_graph(graph, triangles, clustering, degeneracy, trusses)
            classes = graph_numbers.clustering_by_degree(degrees, clustering)
            tops = graph_numbers.top_vertices(graph, triangles, clustering, of_edges.answer)
            distributions = graph_numbers.distribution(degrees), graph_numbers.distribution(triangles)
        return GraphFacts(
            source=graph.origin.name,
            format=graph.origin.format,
            notes=graph.origin.notes,
            label_kind=labels_kind(graph.labels),
            directed=graph.directed,
            cleaned=graph.cleaned,
            summary=summary,
            degrees=distributions[0],
            triangles=distributions[1],
            clustering_by_degree=classes,
            levels=trusses.levels,
            last_truss=trusses.last,
            top_by_triangles=tops[0],
            top_by_degree=tops[1],
            seconds=self.seconds,
            steps=(_step(of_vertices), _step(of_edges)),
            bytes_planned=planned,
            peak_bytes=hardware.peak_bytes(),
            machine=of_edges.machine,
            version=of_edges.version,
        )

    def planned_bytes(self) -> int:
        """What the largest step will take beyond the graph; an error where that much is not there."""
        graph, options = self.graph, self.options
        own = EDGE_BYTES * graph.m + VERTEX_BYTES * graph.n
        try:
            check_memory(own, options, "describing it", "use a machine with more memory")
            plans = [wedgewise.explain(question, graph, **self.how()) for question in ("triangles", "truss_summary")]
        except MemoryLimitError as error:
            raise MemoryLimitError(
                f"{graph.origin.name}: a page of {graph.n:,} vertices and {graph.m:,} edges, with every truss number, "
                f"does not fit: {error}; `triangles` and `clustering` alone take less"
            ) from error
        return max(own, *(plan.bytes_needed for plan in plans))

    def ask(self, question: str) -> Result:
        return wedgewise.run(question, self.graph, progress=self.progress, verify=self.verify, **self.how())

    def how(self) -> dict[str, Any]:
        """What the caller left open or fixed, for every question."""
        options = self.options
        return {"device": options.device, "memory_limit": options.memory_limit, "threads": options.threads}


def _step(result: Result) -> Step:
    plan = result.plan
    return Step(
        question=result.question,
        algorithm=result.algorithm,
        device=result.device,
        threads=plan.threads,
        order=plan.order,
        bytes_planned=plan.bytes_needed,
        seconds=result.seconds,
        reasons=plan.reasons,
        verified=result.verified,
    )
