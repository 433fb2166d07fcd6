"""Relations between the truss numbers of a graph and of what becomes of it, for every algorithm that finds trusses.

Dictionaries map edges (u, v), u < v, to their truss numbers; a changed graph keeps the numbers of the old vertices and
adds new ones behind them.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from conformance.engines import graph_of
from conformance.trusses import (
    Way,
    for_every_truss_algorithm,
    for_every_truss_way,
    truss_edges,
    truss_numbers,
    truss_numbers_by_product,
    truss_numbers_by_subsets,
)
from helpers.graphs import TRUTHS, SmallGraph, fixture_pairs, published_generated
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import wedgewise as ww
from relations import operations as op
from relations.random_graphs import (
    examples,
    few_vertices,
    graphs,
    graphs_with_a_vertex,
    graphs_with_an_edge,
    integers,
    random_graphs,
)
from wedgewise import generate
from wedgewise.generate import EdgeStream, words
from wedgewise.machine.jit import JIT_DISABLED

SUBSETS_VERTICES = 6  # 15 edges, 32,768 sets of them

# every edge of each of these has the same truss number
EVEN_FORMS: tuple[tuple[EdgeStream, int], ...] = (
    (generate.complete(3), 3),
    (generate.complete(4), 4),
    (generate.complete(30), 30),
    (generate.complete_tripartite(2, 3, 4), 4),  # without the edges between the larger parts no triangle is left
    (generate.complete_tripartite(1, 17, 40), 3),
    (generate.turan(12, 3), 6),
    (generate.turan(13, 4), 8),  # one part of 4; the other parts alone have too few triangles
    (generate.turan(20, 5), 14),
    (generate.turan(6, 6), 6),
    (generate.octahedron(3), 4),
    (generate.octahedron(20), 38),
    (generate.wheel(3), 4),
    (generate.wheel(4), 3),
    (generate.wheel(257), 3),
    (generate.windmill(60), 3),
    (generate.windmill(9, clique=6), 6),
    (generate.book(1), 3),
    (generate.book(300), 3),
    (generate.grid8(2), 4),
    (generate.grid8(17), 4),  # diagonals are in two triangles; without them there are none
    (generate.torus3d(3), 3),
    (generate.torus3d(5), 2),
    (generate.small_world(50, 8, 0), 5),  # the longest of the edges to 4 vertices ahead are in 3 triangles
    (generate.small_world(50, 14, 0), 8),
    (generate.cycle(3), 3),
    (generate.cycle(64), 2),
    (generate.path(65), 2),
    (generate.star(300), 2),
    (generate.petersen(), 2),
    (generate.hypercube(7), 2),
)
# T. Davis' published results for graphs of the GraphChallenge
PUBLISHED_KMAX = {
    "Theory-3-4-5-Bk": 2,
    "Theory-3-4-5-B1k": 6,
    "Theory-3-4-5-B2k": 4,
    "Theory-4-5-9-B1k": 7,
    "Theory-3-4-5-9-B2k": 5,
    "Theory-5-9-16-B1k": 8,
}

SCALE, DEGREE = (6, 6) if JIT_DISABLED else (8, 16)
LARGER = {
    "skewed": generate.kronecker(SCALE, DEGREE, seed=3),
    "uniform": generate.uniform(2**SCALE, DEGREE * 2**SCALE, seed=3),
    "small_world": generate.small_world(2**SCALE, DEGREE, 0.1, seed=3),
}
RUNS = (1, 2, 4, 4)  # threads of one run after the other

for_every_larger_graph = pytest.mark.parametrize("name", LARGER)


def ordered(u: int, v: int) -> tuple[int, int]:
    return min(u, v), max(u, v)


def in_networkx(g: SmallGraph) -> Any:
    """The same graph; vertices without edges stay."""
    theirs = nx.Graph()
    theirs.add_nodes_from(range(g.n))
    theirs.add_edges_from(g.edges)
    return theirs


@cache
def by_subsets(g: SmallGraph) -> dict[tuple[int, int], int]:
    return truss_numbers_by_subsets(g)


@cache
def larger(name: str) -> tuple[ww.Graph, NDArray[np.int64]]:
    """One of the larger graphs with its truss numbers."""
    stream = LARGER[name]
    return graph_of(stream.pairs(), stream.n), truss_numbers_by_product(stream.pairs(), stream.n)


@for_every_truss_algorithm
@examples
@given(g=random_graphs(most=SUBSETS_VERTICES))
def test_the_largest_of_all_sets_of_edges(algorithm: str, g: SmallGraph) -> None:
    """No set of edges with enough triangles in itself reaches beyond the k-truss: it is maximal, by definition."""
    assert truss_numbers(g, algorithm) == by_subsets(g)


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_trusses_are_the_edges_of_their_numbers_and_above(algorithm: str, g: SmallGraph) -> None:
    numbers = truss_numbers(g, algorithm)
    kmax = max(numbers.values(), default=2)
    trusses = [truss_edges(g, k, algorithm) for k in range(2, kmax + 3)]
    assert trusses == [{edge for edge, tau in numbers.items() if tau >= k} for k in range(2, kmax + 3)]
    assert trusses[0] == g.edges
    assert all(inner <= outer for outer, inner in pairwise(trusses))
    held = graph_of(g)
    last = ww.max_truss(held, algorithm=algorithm, device="cpu")
    assert (last.k, len(last)) == (kmax, len(last.edges))
    assert set(map(tuple, held.edges[last.edges].tolist())) == trusses[kmax - 2]


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_edges_of_a_truss_have_their_triangles_inside(algorithm: str, g: SmallGraph) -> None:
    kmax = max(truss_numbers(g, algorithm).values(), default=2)
    for k in range(2, kmax + 1):
        truss = SmallGraph(g.n, frozenset(truss_edges(g, k, algorithm)))
        assert all(op.support(truss, edge) >= k - 2 for edge in truss.edges)


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_bound_by_the_support(algorithm: str, g: SmallGraph) -> None:
    assert all(2 <= tau <= op.support(g, edge) + 2 for edge, tau in truss_numbers(g, algorithm).items())


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_the_3_truss_holds_the_edges_of_triangles(algorithm: str, g: SmallGraph) -> None:
    assert truss_edges(g, 3, algorithm) == {edge for edge in g.edges if op.support(g, edge)}


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_trusses_lie_in_cores_and_hold_cliques(algorithm: str, g: SmallGraph) -> None:
    numbers, theirs = truss_numbers(g, algorithm), in_networkx(g)
    cores = nx.core_number(theirs)
    assert all(min(cores[u], cores[v]) >= tau - 1 for (u, v), tau in numbers.items())
    cliques = [len(clique) for clique in nx.find_cliques(theirs) if len(clique) > 1]
    assert max(numbers.values(), default=0) >= max(cliques, default=0)


@for_every_truss_algorithm
@examples
@given(g=graphs, names=st.permutations(range(9)), data=st.data())
def test_relabelling_and_shuffling_permutes(
    algorithm: str, g: SmallGraph, names: list[int], data: st.DataObject
) -> None:
    renamed = np.array(names)[g.pairs]
    shuffled = renamed[data.draw(st.permutations(range(g.m)))] if g.m else renamed
    expected = {ordered(names[u], names[v]): tau for (u, v), tau in truss_numbers(g, algorithm).items()}
    assert truss_numbers(shuffled, algorithm, n=9) == expected


@for_every_truss_algorithm
@examples
@given(g=graphs_with_a_vertex, data=st.data())
def test_duplicates_reversed_copies_and_loops(algorithm: str, g: SmallGraph, data: st.DataObject) -> None:
    copies = data.draw(st.lists(st.integers(0, max(0, g.m - 1)), max_size=6)) if g.m else []
    loops = data.draw(st.lists(st.integers(0, g.n - 1), max_size=3))
    extra = [g.pairs[copies], g.pairs[copies][:, ::-1], np.array([(v, v) for v in loops], int).reshape(-1, 2)]
    assert truss_numbers(np.concatenate([g.pairs, *extra]), algorithm, n=g.n) == truss_numbers(g, algorithm)


@for_every_truss_algorithm
@examples
@given(g=graphs, h=graphs)
def test_disjoint_union(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    moved = {(u + g.n, v + g.n): tau for (u, v), tau in truss_numbers(h, algorithm).items()}
    assert truss_numbers(op.disjoint_union(g, h), algorithm) == truss_numbers(g, algorithm) | moved


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_apex(algorithm: str, g: SmallGraph) -> None:
    """Old edges rise by one, and a spoke is as good as the best edge that it meets."""
    numbers = truss_numbers(g, algorithm)
    best = {v: max((tau for edge, tau in numbers.items() if v in edge), default=1) for v in range(g.n)}
    old = {edge: tau + 1 for edge, tau in numbers.items()}
    assert truss_numbers(op.apex(g), algorithm) == old | {(v, g.n): best[v] + 1 for v in range(g.n)}


@for_every_truss_algorithm
@examples
@given(g=graphs_with_an_edge, which=integers)
def test_deleting_an_edge(algorithm: str, g: SmallGraph, which: int) -> None:
    """Others fall by one at most, and those of higher truss numbers stay: the edge was no part of their truss."""
    edge = sorted(g.edges)[which % g.m]
    before = truss_numbers(g, algorithm)
    after = truss_numbers(op.delete_edge(g, edge), algorithm)
    assert after.keys() == before.keys() - {edge}
    for other, tau in after.items():
        assert tau in ((before[other] - 1, before[other]) if before[other] <= before[edge] else (before[other],))


@for_every_truss_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_leaf(algorithm: str, g: SmallGraph, which: int) -> None:
    grown = truss_numbers(op.add_leaf(g, which % g.n), algorithm)
    assert grown == truss_numbers(g, algorithm) | {(which % g.n, g.n): 2}


@for_every_truss_algorithm
@examples
@given(g=graphs, k=st.integers(1, 4))
def test_blow_up(algorithm: str, g: SmallGraph, k: int) -> None:
    """Copies of a vertex are alike, so they stay or go together, and each triangle of an edge becomes k."""
    blown = truss_numbers(op.blow_up(g, k), algorithm)
    before = truss_numbers(g, algorithm)
    assert len(blown) == k * k * g.m
    assert all(tau == k * (before[u // k, v // k] - 2) + 2 for (u, v), tau in blown.items())


@for_every_truss_algorithm
@examples
@given(g=few_vertices, h=few_vertices)
def test_cartesian_product(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    """Every triangle lies in one copy of a factor."""
    first = {(u * h.n + x, v * h.n + x): t for (u, v), t in truss_numbers(g, algorithm).items() for x in range(h.n)}
    second = {(a * h.n + x, a * h.n + y): t for (x, y), t in truss_numbers(h, algorithm).items() for a in range(g.n)}
    assert truss_numbers(op.cartesian(g, h), algorithm) == first | second


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_double_cover(algorithm: str, g: SmallGraph) -> None:
    assert set(truss_numbers(op.double_cover(g), algorithm).values()) <= {2}


def hold_components_to_networkx(graph: ww.Graph, algorithm: str) -> None:
    """Look at the components of every truss, which are numbered by their least vertices."""
    numbers = ww.trussness(graph, algorithm=algorithm, device="cpu")
    levels = ww.truss_summary(graph, algorithm=algorithm, device="cpu")
    assert [level.k for level in levels] == list(range(2, int(numbers.max(initial=1)) + 1))
    for level in levels:
        truss = nx.Graph(graph.edges[numbers >= level.k].tolist())
        components = sorted(nx.connected_components(truss), key=min)
        assert (level.edges, level.vertices) == (truss.number_of_edges(), truss.number_of_nodes())
        assert level.components == len(components)
        number_of = {vertex: number for number, some in enumerate(components) for vertex in some}
        found = ww.truss_components(graph, level.k, algorithm=algorithm, device="cpu")
        assert found.dtype == np.int64
        assert found.tolist() == [number_of.get(vertex, -1) for vertex in range(graph.n)]


@for_every_truss_algorithm
@examples
@given(g=graphs)
def test_summaries_and_components_are_those_of_networkx(algorithm: str, g: SmallGraph) -> None:
    hold_components_to_networkx(graph_of(g), algorithm)


@for_every_truss_algorithm
@pytest.mark.parametrize("name", ["lesmis"] if JIT_DISABLED else ["lesmis", "atlas_union"])
def test_many_components_are_those_of_networkx(algorithm: str, name: str) -> None:
    hold_components_to_networkx(graph_of(fixture_pairs(name), TRUTHS[name]["n"]), algorithm)


@for_every_truss_algorithm
@pytest.mark.parametrize(("stream", "tau"), EVEN_FORMS, ids=lambda part: getattr(part, "name", part))
def test_closed_forms(algorithm: str, stream: EdgeStream, tau: int) -> None:
    graph = graph_of(stream.pairs(), stream.n)
    assert set(ww.trussness(graph, algorithm=algorithm, device="cpu").tolist()) == {tau}
    last = ww.max_truss(graph, algorithm=algorithm, device="cpu")
    assert (last.k, len(last)) == (tau, graph.m)
    assert len(ww.k_truss(graph, tau, algorithm=algorithm, device="cpu")) == graph.m
    assert len(ww.k_truss(graph, tau + 1, algorithm=algorithm, device="cpu")) == 0


@for_every_truss_algorithm
@pytest.mark.parametrize("name", PUBLISHED_KMAX)
def test_published_kmax(algorithm: str, name: str) -> None:
    stream = published_generated(name)
    graph = graph_of(stream.pairs(), stream.n)
    assert ww.max_truss(graph, algorithm=algorithm, device="cpu").k == PUBLISHED_KMAX[name]
    assert ww.trussness(graph, algorithm=algorithm, device="cpu").max() == PUBLISHED_KMAX[name]


@for_every_truss_way
@for_every_larger_graph
def test_masked_products_of_larger_graphs(way: Way, name: str) -> None:
    graph, numbers = larger(name)
    np.testing.assert_array_equal(ww.trussness(graph, **way.how), numbers)
    kmax = int(numbers.max())
    for k in sorted({3, (3 + kmax) // 2, kmax, kmax + 1}):
        np.testing.assert_array_equal(ww.k_truss(graph, k, **way.how).edges, np.flatnonzero(numbers >= k))
    np.testing.assert_array_equal(ww.max_truss(graph, **way.how).edges, np.flatnonzero(numbers == kmax))


@for_every_truss_algorithm
@for_every_larger_graph
def test_relations_of_larger_graphs(algorithm: str, name: str) -> None:
    """Renamed and shuffled, under an apex, and with an edge less."""
    graph, numbers = larger(name)
    n, edges = graph.n, graph.edges.astype(np.int64)
    names = np.argsort(words.words(2, 0, n), kind="stable")
    order = np.argsort(words.words(1, 0, len(edges)), kind="stable")
    renamed = truss_numbers(names[edges[order]], algorithm, n)
    assert [renamed[ordered(u, v)] for u, v in names[edges].tolist()] == numbers.tolist()

    spokes = np.column_stack([np.arange(n), np.full(n, n)])
    raised = truss_numbers(np.concatenate([edges, spokes]), algorithm, n + 1)
    assert [raised[u, v] for u, v in edges.tolist()] == (numbers + 1).tolist()

    best = int(numbers.argmax())
    fewer = truss_numbers(np.delete(edges, best, axis=0), algorithm, n)
    fallen = np.delete(numbers, best) - list(fewer.values())
    assert set(fallen.tolist()) <= {0, 1}


@for_every_truss_way
@for_every_larger_graph
def test_answers_do_not_depend_on_threads_and_runs(way: Way, name: str) -> None:
    graph, numbers = larger(name)
    found = [ww.trussness(graph, threads=threads, **way.how) for threads in RUNS]
    assert {some.tobytes() for some in found} == {numbers.tobytes()}
    k = int(numbers.max()) // 2 + 1
    trusses = [ww.k_truss(graph, k, threads=threads, **way.how) for threads in RUNS]
    last = [ww.max_truss(graph, threads=threads, **way.how) for threads in RUNS]
    assert {truss.edges.tobytes() for truss in trusses} == {np.flatnonzero(numbers >= k).tobytes()}
    assert len({(truss.k, truss.edges.tobytes()) for truss in last}) == 1
