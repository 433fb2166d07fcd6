"""Relations between the counts of a random small graph and of what becomes of it, for every algorithm."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from conformance.engines import count, for_every_algorithm
from helpers.graphs import SmallGraph, count_by_triples
from hypothesis import given
from hypothesis import strategies as st

from relations import operations as op
from relations.random_graphs import (
    examples,
    few_vertices,
    graphs,
    graphs_with_a_vertex,
    graphs_with_an_edge,
    integers,
)


@for_every_algorithm
@examples
@given(g=graphs)
def test_every_triple_of_vertices(algorithm: str, g: SmallGraph) -> None:
    assert count(g, algorithm) == count_by_triples(g)


@for_every_algorithm
@examples
@given(g=graphs)
def test_trace_of_the_cube_is_six_times_the_count(algorithm: str, g: SmallGraph) -> None:
    adjacency = np.zeros((g.n, g.n), np.int64)
    adjacency[g.pairs[:, 0], g.pairs[:, 1]] = 1
    adjacency += adjacency.T
    assert 6 * count(g, algorithm) == np.trace(adjacency @ adjacency @ adjacency)


@for_every_algorithm
@examples
@given(g=graphs)
def test_sums_over_vertices_and_edges_are_three_times_the_count(algorithm: str, g: SmallGraph) -> None:
    triangles = count(g, algorithm)
    assert sum(op.triangles_at(g, v) for v in range(g.n)) == 3 * triangles
    assert sum(op.support(g, edge) for edge in g.edges) == 3 * triangles


@for_every_algorithm
@examples
@given(g=graphs)
def test_bound_by_the_number_of_edges(algorithm: str, g: SmallGraph) -> None:
    assert 9 * count(g, algorithm) ** 2 <= 2 * g.m**3  # T ≤ (√2/3) m^1.5, squared


@for_every_algorithm
@examples
@given(g=graphs, h=graphs)
def test_disjoint_union(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    assert count(op.disjoint_union(g, h), algorithm) == count(g, algorithm) + count(h, algorithm)


@for_every_algorithm
@examples
@given(g=graphs, h=graphs)
def test_join(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    separate = count(g, algorithm) + count(h, algorithm)
    assert count(op.join(g, h), algorithm) == separate + g.m * h.n + h.m * g.n


@for_every_algorithm
@examples
@given(g=graphs)
def test_apex(algorithm: str, g: SmallGraph) -> None:
    assert count(op.apex(g), algorithm) == count(g, algorithm) + g.m


@for_every_algorithm
@examples
@given(g=graphs_with_an_edge, which=integers)
def test_deleting_or_subdividing_an_edge(algorithm: str, g: SmallGraph, which: int) -> None:
    edge = sorted(g.edges)[which % g.m]
    rest = count(g, algorithm) - op.support(g, edge)
    assert count(op.delete_edge(g, edge), algorithm) == rest
    assert count(op.subdivide_edge(g, edge), algorithm) == rest


@for_every_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_deleting_a_vertex(algorithm: str, g: SmallGraph, which: int) -> None:
    vertex = which % g.n
    rest = count(g, algorithm) - op.triangles_at(g, vertex)
    assert count(op.delete_vertex(g, vertex), algorithm) == rest


@for_every_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_twins(algorithm: str, g: SmallGraph, which: int) -> None:
    vertex = which % g.n
    with_false_twin = count(g, algorithm) + op.triangles_at(g, vertex)
    assert count(op.false_twin(g, vertex), algorithm) == with_false_twin
    assert count(op.true_twin(g, vertex), algorithm) == with_false_twin + g.degrees[vertex]


@for_every_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_leaf(algorithm: str, g: SmallGraph, which: int) -> None:
    assert count(op.add_leaf(g, which % g.n), algorithm) == count(g, algorithm)


@for_every_algorithm
@examples
@given(g=graphs)
def test_complement(algorithm: str, g: SmallGraph) -> None:
    mixed_triples = sum(d * (g.n - 1 - d) for d in g.degrees) // 2  # each has two vertices with one edge of two
    assert count(g, algorithm) + count(op.complement(g), algorithm) == comb(g.n, 3) - mixed_triples


@for_every_algorithm
@examples
@given(g=graphs)
def test_double_cover(algorithm: str, g: SmallGraph) -> None:
    assert count(op.double_cover(g), algorithm) == 0


@for_every_algorithm
@examples
@given(g=few_vertices, h=few_vertices)
def test_tensor_product(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    assert count(op.tensor(g, h), algorithm) == 6 * count(g, algorithm) * count(h, algorithm)


@for_every_algorithm
@examples
@given(g=few_vertices, h=few_vertices)
def test_cartesian_product(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    expected = h.n * count(g, algorithm) + g.n * count(h, algorithm)
    assert count(op.cartesian(g, h), algorithm) == expected


@for_every_algorithm
@examples
@given(g=graphs, k=st.integers(1, 4))
def test_blow_up(algorithm: str, g: SmallGraph, k: int) -> None:
    assert count(op.blow_up(g, k), algorithm) == k**3 * count(g, algorithm)


@for_every_algorithm
@examples
@given(g=graphs)
def test_line_graph(algorithm: str, g: SmallGraph) -> None:
    expected = count(g, algorithm) + sum(comb(d, 3) for d in g.degrees)
    assert count(op.line_graph(g), algorithm) == expected


@for_every_algorithm
@examples
@given(g=graphs, seed=integers)
def test_sum_over_colour_triples(algorithm: str, g: SmallGraph, seed: int) -> None:
    colours = [seed >> 2 * v & 3 for v in range(g.n)]

    def of_colours(some: tuple[int, ...]) -> int:
        return count(op.induced(g, [v for v in range(g.n) if colours[v] in some]), algorithm)

    triples, pairs, singles = (sum(map(of_colours, combinations(range(4), size))) for size in (3, 2, 1))
    assert count(g, algorithm) == triples - pairs + singles  # inclusion and exclusion over four colours


@for_every_algorithm
@examples
@given(g=graphs, names=st.permutations(range(9)), data=st.data())
def test_relabelling_and_shuffling(algorithm: str, g: SmallGraph, names: list[int], data: st.DataObject) -> None:
    renamed = np.array(names)[g.pairs]
    shuffled = renamed[data.draw(st.permutations(range(g.m)))] if g.m else renamed
    assert count(shuffled, algorithm, n=9) == count(g, algorithm)


@for_every_algorithm
@examples
@given(g=graphs_with_a_vertex, data=st.data())
def test_duplicates_reversed_copies_and_loops(algorithm: str, g: SmallGraph, data: st.DataObject) -> None:
    copies = data.draw(st.lists(st.integers(0, max(0, g.m - 1)), max_size=6)) if g.m else []
    loops = data.draw(st.lists(st.integers(0, g.n - 1), max_size=3))
    extra = [g.pairs[copies], g.pairs[copies][:, ::-1], np.array([(v, v) for v in loops], int).reshape(-1, 2)]
    assert count(np.concatenate([g.pairs, *extra]), algorithm, n=g.n) == count(g, algorithm)
