"""Relations between t(v) and s(e) of a random small graph and of what becomes of it.

For every algorithm that answers for vertices and edges. Dictionaries map edges (u, v), u < v, to their supports; a
changed graph keeps the numbers of the old vertices and adds new ones behind them.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from conformance.engines import count, for_every_local_algorithm, supports, triangles
from helpers.graphs import SmallGraph, known_by_sets, local_by_product
from hypothesis import given
from hypothesis import strategies as st

from relations import operations as op
from relations.random_graphs import examples, graphs, graphs_with_a_vertex, graphs_with_an_edge, integers


def edge_of(g: SmallGraph, which: int) -> tuple[int, int]:
    """One of the edges."""
    return sorted(g.edges)[which % g.m]


def ordered(u: int, v: int) -> tuple[int, int]:
    return min(u, v), max(u, v)


def in_triangle_with(g: SmallGraph, edge: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two edges meet and a third one closes them."""
    ends = set(edge) ^ set(other)
    return len(ends) == 2 and ordered(*ends) in g.edges


@for_every_local_algorithm
@examples
@given(g=graphs)
def test_the_edges_among_neighbours_and_the_common_neighbours(algorithm: str, g: SmallGraph) -> None:
    assert triangles(g, algorithm).tolist() == [op.triangles_at(g, v) for v in range(g.n)]
    assert supports(g, algorithm) == {edge: op.support(g, edge) for edge in g.edges}


@for_every_local_algorithm
@examples
@given(g=graphs)
def test_sums_are_three_times_the_count(algorithm: str, g: SmallGraph) -> None:
    at_vertex, at_edge = triangles(g, algorithm), supports(g, algorithm)
    assert at_vertex.sum() == sum(at_edge.values()) == 3 * count(g, algorithm)
    for v in range(g.n):
        assert sum(support for edge, support in at_edge.items() if v in edge) == 2 * at_vertex[v]


@for_every_local_algorithm
@examples
@given(g=graphs)
def test_diagonal_of_the_cube_is_twice_the_triangles(algorithm: str, g: SmallGraph) -> None:
    adjacency = np.zeros((g.n, g.n), np.int64)
    adjacency[g.pairs[:, 0], g.pairs[:, 1]] = 1
    adjacency += adjacency.T
    np.testing.assert_array_equal(2 * triangles(g, algorithm), np.diag(adjacency @ adjacency @ adjacency))


@for_every_local_algorithm
@examples
@given(g=graphs, names=st.permutations(range(9)), data=st.data())
def test_relabelling_and_shuffling_permutes(
    algorithm: str, g: SmallGraph, names: list[int], data: st.DataObject
) -> None:
    renamed = np.array(names)[g.pairs]
    shuffled = renamed[data.draw(st.permutations(range(g.m)))] if g.m else renamed
    assert triangles(shuffled, algorithm, n=9)[names[: g.n]].tolist() == triangles(g, algorithm).tolist()
    expected = {ordered(names[u], names[v]): support for (u, v), support in supports(g, algorithm).items()}
    assert supports(shuffled, algorithm, n=9) == expected


@for_every_local_algorithm
@examples
@given(g=graphs_with_an_edge, which=integers)
def test_deleting_an_edge(algorithm: str, g: SmallGraph, which: int) -> None:
    edge = edge_of(g, which)
    before, after = triangles(g, algorithm), triangles(op.delete_edge(g, edge), algorithm)
    support = supports(g, algorithm)
    third = set(op.neighbours(g, edge[0])) & set(op.neighbours(g, edge[1]))
    lost = [support[edge] if v in edge else int(v in third) for v in range(g.n)]
    assert (before - after).tolist() == lost
    expected = {e: s - in_triangle_with(g, edge, e) for e, s in support.items() if e != edge}
    assert supports(op.delete_edge(g, edge), algorithm) == expected


@for_every_local_algorithm
@examples
@given(g=graphs_with_an_edge, which=integers)
def test_subdividing_an_edge_is_deleting_it(algorithm: str, g: SmallGraph, which: int) -> None:
    edge = edge_of(g, which)
    deleted, subdivided = op.delete_edge(g, edge), op.subdivide_edge(g, edge)
    assert triangles(subdivided, algorithm).tolist() == [*triangles(deleted, algorithm).tolist(), 0]
    halves = {(end, g.n): 0 for end in edge}
    assert supports(subdivided, algorithm) == supports(deleted, algorithm) | halves


@for_every_local_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_deleting_a_vertex(algorithm: str, g: SmallGraph, which: int) -> None:
    vertex = which % g.n
    rest = op.delete_vertex(g, vertex)
    at_edge = supports(g, algorithm)
    kept = [v for v in range(g.n) if v != vertex]
    expected = [t - at_edge.get(ordered(v, vertex), 0) for v, t in enumerate(triangles(g, algorithm).tolist())]
    assert triangles(rest, algorithm).tolist() == [expected[v] for v in kept]
    around = set(op.neighbours(g, vertex))
    assert supports(rest, algorithm) == {
        (kept.index(u), kept.index(v)): support - ({u, v} <= around)
        for (u, v), support in at_edge.items()
        if vertex not in (u, v)
    }


@for_every_local_algorithm
@examples
@given(g=graphs)
def test_apex(algorithm: str, g: SmallGraph) -> None:
    at_vertex = [t + d for t, d in zip(triangles(g, algorithm).tolist(), g.degrees, strict=True)]
    assert triangles(op.apex(g), algorithm).tolist() == [*at_vertex, g.m]
    at_edge = {edge: support + 1 for edge, support in supports(g, algorithm).items()}
    spokes = {(v, g.n): degree for v, degree in enumerate(g.degrees)}
    assert supports(op.apex(g), algorithm) == at_edge | spokes


@for_every_local_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_false_twin(algorithm: str, g: SmallGraph, which: int) -> None:
    vertex = which % g.n
    before, at_edge = triangles(g, algorithm).tolist(), supports(g, algorithm)
    expected = [t + at_edge.get(ordered(v, vertex), 0) for v, t in enumerate(before)]
    twin = op.false_twin(g, vertex)
    assert triangles(twin, algorithm).tolist() == [*expected, before[vertex]]
    around = set(op.neighbours(g, vertex))
    old = {edge: support + (set(edge) <= around) for edge, support in at_edge.items()}
    new = {(u, g.n): at_edge[ordered(u, vertex)] for u in around}
    assert supports(twin, algorithm) == old | new


@for_every_local_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_true_twin(algorithm: str, g: SmallGraph, which: int) -> None:
    vertex = which % g.n
    degree, around = g.degrees[vertex], set(op.neighbours(g, vertex))
    false, true = op.false_twin(g, vertex), op.true_twin(g, vertex)
    gained = [degree if v in (vertex, g.n) else int(v in around) for v in range(g.n + 1)]
    assert (triangles(true, algorithm) - triangles(false, algorithm)).tolist() == gained
    expected = {
        edge: support + (len({vertex, g.n} & set(edge)) == 1 and bool(around & set(edge)))
        for edge, support in supports(false, algorithm).items()
    }
    assert supports(true, algorithm) == expected | {(vertex, g.n): degree}


@for_every_local_algorithm
@examples
@given(g=graphs_with_a_vertex, which=integers)
def test_leaf(algorithm: str, g: SmallGraph, which: int) -> None:
    grown = op.add_leaf(g, which % g.n)
    assert triangles(grown, algorithm).tolist() == [*triangles(g, algorithm).tolist(), 0]
    assert supports(grown, algorithm) == supports(g, algorithm) | {(which % g.n, g.n): 0}


@for_every_local_algorithm
@examples
@given(g=graphs, h=graphs)
def test_disjoint_union(algorithm: str, g: SmallGraph, h: SmallGraph) -> None:
    union = op.disjoint_union(g, h)
    separate = np.concatenate([triangles(g, algorithm), triangles(h, algorithm)])
    np.testing.assert_array_equal(triangles(union, algorithm), separate)
    moved = {(u + g.n, v + g.n): support for (u, v), support in supports(h, algorithm).items()}
    assert supports(union, algorithm) == supports(g, algorithm) | moved


@for_every_local_algorithm
@examples
@given(g=graphs, k=st.integers(1, 4))
def test_blow_up(algorithm: str, g: SmallGraph, k: int) -> None:
    blown = op.blow_up(g, k)
    np.testing.assert_array_equal(triangles(blown, algorithm), np.repeat(k * k * triangles(g, algorithm), k))
    expected = {edge: k * s for edge, s in supports(g, algorithm).items()}
    assert {(u // k, v // k): s for (u, v), s in supports(blown, algorithm).items()} == expected
    assert len(supports(blown, algorithm)) == k * k * g.m


@for_every_local_algorithm
@examples
@given(g=graphs)
def test_complement(algorithm: str, g: SmallGraph) -> None:
    """At v, pairs of vertices are both neighbours, both not, or mixed; t and t^c count the joined and the parted."""
    neighbours = [set(op.neighbours(g, v)) for v in range(g.n)]
    expected = []
    for v in range(g.n):
        others = set(range(g.n)) - {v} - neighbours[v]
        joined = sum(pair in g.edges for pair in combinations(sorted(neighbours[v]), 2))
        parted = sum(pair not in g.edges for pair in combinations(sorted(others), 2))
        expected.append(joined + parted)
    both = triangles(g, algorithm) + triangles(op.complement(g), algorithm)
    assert both.tolist() == expected
    for (u, v), support in supports(op.complement(g), algorithm).items():
        assert support == g.n - 2 - len(neighbours[u] | neighbours[v])


@for_every_local_algorithm
@examples
@given(g=graphs)
def test_double_cover(algorithm: str, g: SmallGraph) -> None:
    assert not triangles(op.double_cover(g), algorithm).any()
    assert not any(supports(op.double_cover(g), algorithm).values())


@for_every_local_algorithm
@examples
@given(g=graphs_with_a_vertex, data=st.data())
def test_duplicates_reversed_copies_and_loops(algorithm: str, g: SmallGraph, data: st.DataObject) -> None:
    copies = data.draw(st.lists(st.integers(0, max(0, g.m - 1)), max_size=6)) if g.m else []
    loops = data.draw(st.lists(st.integers(0, g.n - 1), max_size=3))
    extra = [g.pairs[copies], g.pairs[copies][:, ::-1], np.array([(v, v) for v in loops], int).reshape(-1, 2)]
    given_twice = np.concatenate([g.pairs, *extra])
    np.testing.assert_array_equal(triangles(given_twice, algorithm, n=g.n), triangles(g, algorithm))
    assert supports(given_twice, algorithm, n=g.n) == supports(g, algorithm)


@examples
@given(g=graphs)
def test_both_oracles_agree(g: SmallGraph) -> None:
    known = known_by_sets(g.pairs, g.n)
    at_vertex, at_edge = local_by_product(g.pairs, g.n)
    np.testing.assert_array_equal(at_vertex, known.triangles)
    np.testing.assert_array_equal(at_edge, known.edge_support)
    assert known.count == len(known.list_triangles)
