"""The graph operations themselves, looked at on graphs small enough to know by heart."""

from __future__ import annotations

from itertools import combinations

from helpers.graphs import SmallGraph, count_by_triples, small_graph

from relations import operations as op

PATH3 = small_graph(3, [(0, 1), (1, 2)])
TRIANGLE = small_graph(3, [(0, 1), (0, 2), (1, 2)])
PAW = small_graph(4, [(0, 1), (0, 2), (1, 2), (2, 3)])


def test_union_and_join() -> None:
    assert op.disjoint_union(PATH3, TRIANGLE).edges == PATH3.edges | {(3, 4), (3, 5), (4, 5)}
    assert op.join(op.K2, op.K2).edges == frozenset(combinations(range(4), 2))
    assert op.apex(PATH3).edges == PATH3.edges | {(0, 3), (1, 3), (2, 3)}


def test_deleting_and_subdividing() -> None:
    assert op.delete_edge(TRIANGLE, (0, 2)) == PATH3
    assert op.delete_vertex(PAW, 3) == TRIANGLE
    assert op.delete_vertex(PAW, 0) == small_graph(3, [(0, 1), (1, 2)])
    assert op.subdivide_edge(TRIANGLE, (0, 1)) == small_graph(4, [(0, 2), (1, 2), (0, 3), (1, 3)])


def test_twins_and_leaves() -> None:
    assert op.false_twin(PATH3, 1) == small_graph(4, [(0, 1), (1, 2), (0, 3), (2, 3)])
    assert op.true_twin(PATH3, 1).edges == op.false_twin(PATH3, 1).edges | {(1, 3)}
    assert op.add_leaf(TRIANGLE, 2) == PAW


def test_complement() -> None:
    assert op.complement(PAW) == small_graph(4, [(0, 3), (1, 3)])
    assert op.complement(TRIANGLE).m == 0


def test_products() -> None:
    assert op.tensor(TRIANGLE, op.K2).degrees == [2] * 6
    assert op.double_cover(PATH3) == small_graph(6, [(0, 3), (1, 2), (2, 5), (3, 4)])
    assert op.cartesian(op.K2, op.K2) == small_graph(4, [(0, 1), (2, 3), (0, 2), (1, 3)])
    assert op.blow_up(op.K2, 2) == small_graph(4, [(0, 2), (0, 3), (1, 2), (1, 3)])


def test_line_graph() -> None:
    star = small_graph(5, [(0, leaf) for leaf in range(1, 5)])
    assert op.line_graph(star).edges == frozenset(combinations(range(4), 2))
    assert op.line_graph(small_graph(4, [(0, 1), (1, 2), (2, 3)])) == PATH3


def test_inducing_and_relabelling() -> None:
    assert op.induced(PAW, [3, 2]) == op.K2
    assert op.relabel(PATH3, [2, 0, 1]) == small_graph(3, [(0, 2), (0, 1)])


def test_neighbours_triangles_and_supports() -> None:
    assert op.neighbours(PAW, 2) == [0, 1, 3]
    assert [op.triangles_at(PAW, v) for v in range(4)] == [1, 1, 1, 0]
    assert {edge: op.support(PAW, edge) for edge in PAW.edges} == {(0, 1): 1, (0, 2): 1, (1, 2): 1, (2, 3): 0}


def test_counting_by_triples() -> None:
    assert [count_by_triples(g) for g in (PATH3, TRIANGLE, PAW, SmallGraph(0, frozenset()))] == [0, 1, 1, 0]
    assert count_by_triples(SmallGraph(6, frozenset(combinations(range(6), 2)))) == 20
