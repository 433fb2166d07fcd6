"""A graph against what is published about it: sizes and counts, cleaned as each source cleaned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from wedgewise import api, api_trusses
from wedgewise.datasets.catalogue import Figure, PublishedGraph
from wedgewise.graph import Graph
from wedgewise.machine.progress import Progress
from wedgewise.prepare.clean import without_leaves

DECISIVE = ("m", "triangles", "kmax")  # which vertices count is a convention; these are not
Sizes = tuple[dict[str, tuple[int, ...]], int]
"""Numbers of vertices by the ways of counting them, several where a way leaves a choice; and edges."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A published figure, and what was found in its place."""

    source: str
    figure: str
    published: Figure
    found: int

    @property
    def agrees(self) -> bool:
        """Whether it is the same number, as far as it is published."""
        return self.published.agrees(self.found)


@dataclass(frozen=True, slots=True)
class Verification:
    """A graph that was counted and compared with everything that is published about it.

    Attributes
    ----------
    name : of the graph
    counted : n, m and triangles of the graph as it is, and kmax where that was asked for
    findings : every published figure next to what was found
    """

    name: str
    counted: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def decisive(self) -> tuple[Finding, ...]:
        """The findings that tell graphs apart: edges, triangles and kmax, exact ones where anybody published one."""
        telling = tuple(finding for finding in self.findings if finding.figure in DECISIVE)
        return tuple(finding for finding in telling if finding.published.is_exact) or telling

    @property
    def agrees(self) -> bool:
        """Whether this is the graph that was published."""
        return all(finding.agrees for finding in self.decisive)

    @property
    def differences(self) -> str:
        """The decisive figures that are others, in words."""
        return ", ".join(
            f"{finding.figure} is {finding.found:,} where {finding.source} has {finding.published}"
            for finding in self.decisive
            if not finding.agrees
        )


def compare(
    published: PublishedGraph, graph: Graph, *, trusses: bool = False, progress: Progress | None = None
) -> Verification:
    """Hold a graph against what is published: its sizes, then, if its edges agree, its counts.

    Parameters
    ----------
    published : what it should be
    graph : cleaned as usual, no leaves dropped
    trusses : also find the largest k whose k-truss has edges
    progress : the callable that gets the progress
    """
    sizes = Verification(published.name, {"n": graph.n, "m": graph.m}, tuple(_size_findings(published, graph)))
    if not sizes.agrees:
        return sizes
    counts = {"triangles": int(api.count(graph, progress=progress))}
    if trusses:
        counts["kmax"] = api_trusses.max_truss(graph, progress=progress).k
    findings = [
        Finding(key, name, figure, counts[name])
        for key, figures in published.figures.items()
        for name, figure in figures.published()
        if name in counts
    ]
    return Verification(published.name, {**sizes.counted, **counts}, (*sizes.findings, *findings))


def _size_findings(published: PublishedGraph, graph: Graph) -> Iterator[Finding]:
    """Vertices and edges as each source counts them."""
    whole, pruned = _sizes(graph), None
    for key, figures in published.figures.items():
        vertices, m = whole
        if figures.source.leaves_dropped:
            vertices, m = pruned = pruned or _sizes_without_leaves(graph)
        if figures.n is not None:
            ways = vertices[figures.source.vertices]
            yield Finding(key, "n", figures.n, next(filter(figures.n.agrees, ways), ways[0]))
        if figures.m is not None:
            yield Finding(key, "m", figures.m, m)


def _sizes(graph: Graph) -> Sizes:
    joined = int(np.count_nonzero(graph.degrees))
    numbered: tuple[int, ...] = (graph.n,)
    if isinstance(graph.labels, range | np.ndarray) and graph.n:
        largest = int(graph.labels[-1])
        numbered = (graph.n, largest, largest + 1)  # ids may begin at 1 or at 0
    return {"joined": (joined,), "numbered": numbered}, graph.m


def _sizes_without_leaves(graph: Graph) -> Sizes:
    pruned = without_leaves(graph.simple)
    isolated = int(np.count_nonzero(graph.simple.degrees == 0))
    return {"left": (pruned.n - isolated,)}, pruned.m
