"""One graph → the facts of its page: triangles per vertex and a truss number per edge, from which the others follow.

Triangles per vertex give the total, transitivity and clustering; truss numbers give what each truss has. Both share the
oriented graph where they take the same order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import wedgewise
from wedgewise.answer import coefficients
from wedgewise.answer.source import graph_of
from wedgewise.answer_types import TrussLevel
from wedgewise.api import SCHEMA, Result
from wedgewise.errors import MemoryLimitError
from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.machine.progress import Progress, progress_bar
from wedgewise.report import graph_numbers
from wedgewise.report.explorer import explorer_data
from wedgewise.report.graph_numbers import DegreeClass, Distribution, Summary, TopVertex, TrussCore, TrussPart
from wedgewise.report.objects import labels_kind
from wedgewise.run.choose import check_memory
from wedgewise.run.refusals import check_file
from wedgewise.run.request import Request
from wedgewise.stages import CleanReport
from wedgewise.store.manifest import is_store

EDGE_BYTES, VERTEX_BYTES = 72, 128  # of the largest step here: an edge is two arcs, with a copy while they are sorted
READING = "read and clean"


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
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
    truss_core : what is drawn of it
    top_by_triangles, top_by_degree : the first vertices, in descending order
    seconds : wall-clock seconds by stage
    steps : the questions that were asked for it
    bytes_planned : the most that any step was planned to take beyond the graph
    peak_bytes, machine, version : what it took, where and by what
    explorer : of a small graph, what its page knows of every vertex and edge
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
    truss_core: TrussCore | None
    top_by_triangles: tuple[TopVertex, ...]
    top_by_degree: tuple[TopVertex, ...]
    seconds: dict[str, float]
    steps: tuple[AnsweredQuestion, ...]
    bytes_planned: int
    peak_bytes: int
    machine: str
    version: str
    explorer: str = field(default="", repr=False)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object with the same keys but ``explorer``, and ``schema``."""
        found = {"schema": SCHEMA, **asdict(self)}
        del found["explorer"]
        return found


def graph_facts(
    source: Any,
    *,
    reading_seconds: float | None = None,
    device: str = "auto",
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    verify: bool = False,
) -> GraphFacts:
    """Find everything that the page of a graph shows; memory is planned before anything is counted.

    Parameters
    ----------
    source : a Graph, or whatever `Graph` accepts
    reading_seconds : what making the Graph took, to be shown among the other stages
    device, memory_limit, threads, progress, verify : as `wedgewise.count` has them

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
    check_file(source, is_store=is_store(source), instead="a page needs the file that the store was made of")
    options = Request(device=device, memory_limit=memory_limit, threads=threads)
    how: dict[str, Any] = {name: getattr(options, name) for name in ("device", "memory_limit", "threads")}
    seconds = {} if reading_seconds is None else {READING: reading_seconds}
    with progress_bar(progress) as progress:

        @contextmanager
        def lap(stage: str) -> Iterator[None]:
            """Time a stage, and say that it has begun."""
            if progress is not None:
                progress(stage, 0, 1)
            begin = time.perf_counter()
            yield
            seconds[stage] = time.perf_counter() - begin

        with nullcontext() if isinstance(source, Graph) else lap(READING):
            graph = graph_of(source, options)
        with lap("plan and orient"):
            planned = _planned_bytes(graph, options, how)
        how |= {"progress": progress, "verify": verify}
        with lap("triangles"):
            of_vertices = wedgewise.run("triangles", graph, **how)
        with lap("truss numbers"):
            of_edges = wedgewise.run("trussness", graph, **how)
        with lap("degeneracy"):
            degeneracy = wedgewise.degeneracy(graph, memory_limit=memory_limit, threads=threads)
        with lap("components"):
            trusses = graph_numbers.trusses(graph, of_edges.answer)
        with lap("distributions"):
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
        truss_core=trusses.core,
        top_by_triangles=tops[0],
        top_by_degree=tops[1],
        seconds=seconds,
        steps=(_step(of_vertices), _step(of_edges)),
        bytes_planned=planned,
        peak_bytes=hardware.peak_bytes(),
        machine=of_edges.machine,
        version=of_edges.version,
        explorer=explorer_data(graph, triangles, of_edges.answer),
    )


def _planned_bytes(graph: Graph, options: Request, how: dict[str, Any]) -> int:
    """What the largest step will take beyond the graph; an error where that much is not there."""
    own = EDGE_BYTES * graph.m + VERTEX_BYTES * graph.n
    try:
        check_memory(own, options, "describing it", "use a machine with more memory")
        plans = [wedgewise.explain(question, graph, **how) for question in ("triangles", "truss_summary")]
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"{graph.origin.name}: a page of {graph.n:,} vertices and {graph.m:,} edges, with every truss number, "
            f"does not fit: {error}; `triangles` and `clustering` alone take less"
        ) from error
    return max(own, *(plan.bytes_needed for plan in plans))


def _step(result: Result) -> AnsweredQuestion:
    plan = result.plan
    return AnsweredQuestion(
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
