"""The facts of a graph: every number against published truths, closed forms and oracles in sets."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from helpers.commands import KARATE
from helpers.graphs import TRUTHS, Known, distinct_edges, fixture_pairs, fixture_path, known_by_sets
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import MemoryLimitError, PreconditionError
from wedgewise.generate import EdgeStream
from wedgewise.report.graph_facts import GraphFacts, graph_facts
from wedgewise.report.graph_numbers import (
    MAX_MEMBERS,
    MAX_PARTS,
    MAX_POINTS,
    DegreeClass,
    ValueClass,
    clustering_by_degree,
    distribution,
)
from wedgewise.report.objects import to_json
from wedgewise.store.manifest import MANIFEST

SEVERAL = [
    *((u, v) for v in range(5) for u in range(v)),  # a clique of five
    *((u + 10, v + 10) for v in range(5) for u in range(v)),  # another
    (4, 20),
    (20, 21),
    *((u + 30, v + 30) for v in range(3) for u in range(v)),
]


@cache
def facts_of(name: str) -> GraphFacts:
    """The facts of a fixture, found once."""
    return graph_facts(fixture_path(name))


for_fixtures = pytest.mark.parametrize("name", ["karate", "jazz"])


def neighbours_of(pairs: NDArray[Any], n: int) -> list[set[int]]:
    """Sets of neighbours, as the oracles go by them."""
    adjacent: list[set[int]] = [set() for _ in range(n)]
    for u, v in distinct_edges(pairs).tolist():
        adjacent[u].add(v)
        adjacent[v].add(u)
    return adjacent


def degeneracy_by_removal(adjacent: list[set[int]]) -> int:
    """The largest degree of a vertex of least degree, while these are removed."""
    left = {vertex: set(around) for vertex, around in enumerate(adjacent)}
    most = 0
    while left:
        vertex = min(left, key=lambda candidate: len(left[candidate]))
        most = max(most, len(left[vertex]))
        for other in left.pop(vertex):
            left[other].discard(vertex)
    return most


def shares(known: Known, adjacent: list[set[int]]) -> list[Fraction]:
    """Clustering coefficients, 0 where they are undefined."""
    degrees = [len(around) for around in adjacent]
    return [
        Fraction(2 * t, d * (d - 1)) if d > 1 else Fraction(0)
        for t, d in zip(known.triangles.tolist(), degrees, strict=True)
    ]


@for_fixtures
def test_summary_of_published_graphs(name: str) -> None:
    truth, pairs = TRUTHS[name], fixture_pairs(name)
    adjacent, known = neighbours_of(pairs, truth["n"]), known_by_sets(pairs, truth["n"])
    degrees = [len(around) for around in adjacent]
    coefficients = shares(known, adjacent)
    found = facts_of(name).summary
    assert (found.vertices, found.edges, found.triangles) == (truth["n"], truth["m"], truth["triangles"])
    assert found.kmax == truth["kmax"]
    assert found.paths == sum(d * (d - 1) // 2 for d in degrees)
    assert found.transitivity == float(Fraction(3 * truth["triangles"], found.paths))
    assert found.average_clustering == pytest.approx(float(sum(coefficients) / truth["n"]), rel=1e-12)
    assert found.defined_at == sum(d > 1 for d in degrees)
    assert found.defined_clustering == pytest.approx(float(sum(coefficients) / found.defined_at), rel=1e-12)
    assert found.degeneracy == degeneracy_by_removal(adjacent)
    assert (found.isolated, found.components, found.largest_component) == (0, 1, truth["n"])


@for_fixtures
def test_distributions_of_published_graphs(name: str) -> None:
    truth, pairs = TRUTHS[name], fixture_pairs(name)
    degrees = [len(around) for around in neighbours_of(pairs, truth["n"])]
    facts = facts_of(name)
    for found, numbers in [
        (facts.degrees, degrees),
        (facts.triangles, known_by_sets(pairs, truth["n"]).triangles.tolist()),
    ]:
        assert found.values == tuple(sorted(set(numbers)))
        assert found.at_least == tuple(sum(number >= value for number in numbers) for value in found.values)
        assert found.mean == pytest.approx(sum(numbers) / len(numbers))
        assert found.median == median(numbers)
        assert found.largest == max(numbers)
        assert [item.vertices for item in found.classes] == [
            sum(item.least <= number <= item.most for number in numbers) for item in found.classes
        ]
        assert sum(item.vertices for item in found.classes) == truth["n"]


@for_fixtures
def test_trusses_of_published_graphs(name: str) -> None:
    facts = facts_of(name)
    assert {str(level.k): level.edges for level in facts.levels} == TRUTHS[name]["truss_edges_by_k"]
    last = facts.levels[-1]
    assert sum(part.vertices for part in facts.last_truss) == last.vertices
    assert sum(part.edges for part in facts.last_truss) == last.edges
    assert len(facts.last_truss) == last.components
    for part in facts.last_truss:
        assert part.density == pytest.approx(part.edges / (part.vertices * (part.vertices - 1) / 2))
        assert part.vertices >= last.k


@for_fixtures
def test_classes_and_first_vertices_of_published_graphs(name: str) -> None:
    truth, pairs = TRUTHS[name], fixture_pairs(name)
    adjacent, known = neighbours_of(pairs, truth["n"]), known_by_sets(pairs, truth["n"])
    coefficients = shares(known, adjacent)
    facts = facts_of(name)
    for item in facts.clustering_by_degree:
        inside = [
            share
            for share, around in zip(coefficients, adjacent, strict=True)
            if item.least <= len(around) <= item.most
        ]
        assert item.vertices == len(inside)
        assert item.clustering == pytest.approx(float(sum(inside) / len(inside)))
    assert sum(item.vertices for item in facts.clustering_by_degree) == facts.summary.defined_at
    by_triangles = sorted(range(truth["n"]), key=lambda vertex: (-known.triangles[vertex], vertex))
    by_degree = sorted(range(truth["n"]), key=lambda vertex: (-len(adjacent[vertex]), vertex))
    for top, expected in [(facts.top_by_triangles, by_triangles), (facts.top_by_degree, by_degree)]:
        assert [vertex.label for vertex in top] == expected[: len(top)]
        for vertex in top:
            at = int(vertex.label)
            assert vertex.degree == len(adjacent[at])
            assert vertex.triangles == known.triangles[at]
            assert vertex.clustering == pytest.approx(float(coefficients[at]))


def test_truss_numbers_of_first_vertices() -> None:
    graph = ww.read(KARATE)
    numbers = list(zip(graph.edges.tolist(), ww.trussness(graph).tolist(), strict=True))
    for vertex in (*facts_of("karate").top_by_triangles, *facts_of("karate").top_by_degree):
        assert vertex.truss == max(k for edge, k in numbers if vertex.label in edge)


@pytest.mark.parametrize(
    ("stream", "degeneracy", "kmax", "density"),
    [
        (generate.complete(9), 8, 9, 1.0),
        (generate.octahedron(3), 4, 4, 12 / 15),
        (generate.windmill(9, clique=6), 5, 6, 135 / (46 * 45 / 2)),
        (generate.wheel(12), 3, 3, 24 / (13 * 12 / 2)),
        (generate.torus3d(3), 6, 3, 81 / (27 * 26 / 2)),
        (generate.hypercube(4), 4, 2, 32 / (16 * 15 / 2)),
        (generate.cycle(12), 2, 2, 12 / 66),
        (generate.star(12), 1, 2, 12 / 78),
    ],
    ids=lambda value: value.name if isinstance(value, EdgeStream) else None,
)
def test_closed_forms(stream: EdgeStream, degeneracy: int, kmax: int, density: float) -> None:
    facts = graph_facts(ww.Graph(stream.pairs(), n=stream.n))
    assert facts.summary.triangles == stream.expected_triangles
    assert (facts.summary.degeneracy, facts.summary.kmax) == (degeneracy, kmax)
    (part,) = facts.last_truss
    assert part.density == pytest.approx(density)


def test_components_and_the_parts_of_the_last_truss() -> None:
    facts = graph_facts(ww.Graph(SEVERAL, n=35))
    found = facts.summary
    assert found.isolated == 35 - 5 - 5 - 2 - 3
    assert found.components == 3 + found.isolated
    assert found.largest_component == 7
    assert (found.kmax, found.triangles) == (5, 21)
    assert [part.labels for part in facts.last_truss] == [(0, 1, 2, 3, 4), (10, 11, 12, 13, 14)]
    assert {(part.vertices, part.edges, part.density) for part in facts.last_truss} == {(5, 10, 1.0)}


def test_of_many_parts_and_members_the_first_are_named() -> None:
    triangles = [(3 * at + u, 3 * at + v) for at in range(MAX_PARTS + 2) for u, v in [(0, 1), (1, 2), (0, 2)]]
    facts = graph_facts(triangles)
    assert facts.levels[-1].components == MAX_PARTS + 2
    assert [part.labels for part in facts.last_truss] == [(3 * at, 3 * at + 1, 3 * at + 2) for at in range(MAX_PARTS)]
    ring = [(1000 + at, 1000 + (at + step) % 60) for at in range(60) for step in (1, 2)]
    (whole,) = graph_facts(ring).last_truss
    assert whole.vertices == 60
    assert whole.labels == tuple(range(1000, 1000 + MAX_MEMBERS))


def test_parts_come_by_size() -> None:
    ring = [(at, (at + step) % 9) for at in range(9) for step in (1, 2)]
    facts = graph_facts([*((u - 3, v - 3) for u, v in [(3, 4), (4, 5), (3, 5)]), *((u + 50, v + 50) for u, v in ring)])
    assert [(part.vertices, part.edges) for part in facts.last_truss] == [(9, 18), (3, 3)]


@pytest.mark.parametrize(
    ("pairs", "vertices", "edges", "kmax", "components"),
    [([], 0, 0, 0, 0), ([(7, 7)], 1, 0, 0, 1), ([("a", "b")], 2, 1, 2, 1), ([(0, 1), (1, 2)], 3, 2, 2, 1)],
    ids=["empty", "one vertex", "one edge", "a path"],
)
def test_next_to_nothing(pairs: list[Any], vertices: int, edges: int, kmax: int, components: int) -> None:
    facts = graph_facts(pairs)
    found = facts.summary
    assert (found.vertices, found.edges, found.triangles, found.kmax) == (vertices, edges, 0, kmax)
    assert (found.components, found.transitivity, found.average_clustering) == (components, 0.0, 0.0)
    assert facts.top_by_triangles == ()
    assert sum(item.vertices for item in facts.degrees.classes) == vertices


def test_distribution_is_thinned_to_exact_points() -> None:
    numbers = np.repeat(np.arange(50_000), 2)
    found = distribution(numbers)
    assert len(found.values) <= MAX_POINTS
    assert (found.values[0], found.values[-1]) == (0, 49_999)
    assert list(found.at_least) == [2 * (50_000 - value) for value in found.values]
    assert (found.mean, found.median, found.largest) == (24_999.5, 24_999.5, 49_999)
    assert found.classes[:3] == (ValueClass(0, 0, 2), ValueClass(1, 1, 2), ValueClass(2, 3, 4))
    assert sum(item.vertices for item in found.classes) == 100_000


def test_large_values_are_exact() -> None:
    found = distribution(np.array([2**62, 2**62 + 1, 0]))
    assert found.values == (0, 2**62, 2**62 + 1)
    assert found.classes[-1] == ValueClass(2**62, 2**63 - 1, 2)


def test_degree_classes_have_no_gaps() -> None:
    degrees = np.arange(40, dtype=np.uint32)
    found = clustering_by_degree(degrees, np.full(40, 0.25))
    assert found[0] == DegreeClass(2, 2, 1, 0.25)
    assert [item.least for item in found[1:]] == [item.most + 1 for item in found[:-1]]
    assert {item.clustering for item in found} == {0.25}


def test_labels_and_json() -> None:
    facts = graph_facts([("ada", "bob"), ("bob", "Größe"), ("Größe", "ada"), ("bob", "bob"), ("bob", "ada")])
    record = json.loads(to_json(facts.to_dict()))
    assert record["schema"] == 1
    assert record["cleaned"] == {
        "pairs": 5,
        "edges": 3,
        "loops": 1,
        "duplicates": 0,
        "reversed_copies": 1,
        "dropped_columns": 0,
        "leaves_dropped": 0,
        "columns": [],
        "ignored_columns": [],
        "notes": [],
    }
    assert [vertex["label"] for vertex in record["top_by_degree"]] == ["ada", "bob", "Größe"]
    assert record["last_truss"][0]["labels"] == ["ada", "bob", "Größe"]
    assert set(record) == {"schema", *GraphFacts.__slots__} - {"explorer"}


def test_directions_are_ignored() -> None:
    pairs = np.array([(0, 1), (1, 0), (1, 2), (2, 0), (2, 3)])
    directed, plain = graph_facts(ww.Graph(pairs, directed=True)), graph_facts(pairs)
    assert (directed.directed, plain.directed) == (True, False)
    assert directed.summary == plain.summary
    assert directed.clustering_by_degree == plain.clustering_by_degree
    assert plain.cleaned.reversed_copies == 1


def test_cost_is_told() -> None:
    facts = graph_facts(ww.read(KARATE), reading_seconds=2.5, threads=1)
    assert list(facts.seconds)[:2] == ["read and clean", "plan and orient"]
    assert facts.seconds["read and clean"] == 2.5
    assert [step.question for step in facts.steps] == ["triangles", "trussness"]
    assert all(step.threads == 1 and step.reasons and step.algorithm for step in facts.steps)
    assert facts.bytes_planned >= max(step.bytes_planned for step in facts.steps)
    assert facts.peak_bytes > 0
    assert facts.version == ww.__version__
    assert "read and clean" not in graph_facts(ww.read(KARATE)).seconds


def test_memory_is_refused_before_anything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr(ww, "run", never)
    with pytest.raises(MemoryLimitError, match=r"34 vertices and 78 edges.*raise memory_limit.*alone take less"):
        graph_facts(KARATE, memory_limit=1000)


def test_all_is_planned_before_anything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    for name in ("explain", "run"):
        function = getattr(ww, name)

        def watched(question: str, graph: Any, *, name: str = name, function: Any = function, **how: Any) -> Any:
            asked.append((name, question))
            return function(question, graph, **how)

        monkeypatch.setattr(ww, name, watched)
    graph_facts(KARATE)
    assert asked == [("explain", "triangles"), ("explain", "truss_summary"), ("run", "triangles"), ("run", "trussness")]


def test_verification_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    answered = ww.run

    def watched(question: str, graph: Any, *, verify: bool, **how: Any) -> Any:
        seen.append(verify)
        return answered(question, graph, **how)

    monkeypatch.setattr(ww, "run", watched)
    graph_facts(KARATE, verify=True)
    assert seen == [True, True]


def test_progress_names_the_stages_and_can_interrupt() -> None:
    stages: list[str] = []

    def progress(stage: str, _done: int, _total: int) -> None:
        if stage not in stages:
            stages.append(stage)

    facts = graph_facts(KARATE, progress=progress)
    assert [stage for stage in stages if stage in facts.seconds] == list(facts.seconds)

    def interrupt(stage: str, _done: int, _total: int) -> None:
        if stage == "degeneracy":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        graph_facts(KARATE, progress=interrupt)


def test_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).touch()
    with pytest.raises(PreconditionError, match="is a store; a page needs the file"):
        graph_facts(tmp_path)
