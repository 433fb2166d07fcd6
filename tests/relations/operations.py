"""Pure operations on small graphs whose effect on the number of triangles is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from helpers.graphs import SmallGraph, small_graph

K2 = SmallGraph(2, frozenset({(0, 1)}))


def disjoint_union(g: SmallGraph, h: SmallGraph) -> SmallGraph:
    """Both graphs side by side; T + T'."""
    return SmallGraph(g.n + h.n, g.edges | {(u + g.n, v + g.n) for u, v in h.edges})


def join(g: SmallGraph, h: SmallGraph) -> SmallGraph:
    """Both graphs and every edge between them; T + T' + m n' + m' n."""
    between = set(product(range(g.n), range(g.n, g.n + h.n)))
    union = disjoint_union(g, h)
    return SmallGraph(union.n, union.edges | between)


def apex(g: SmallGraph) -> SmallGraph:
    """A new vertex joined to all others; T + m."""
    return join(g, SmallGraph(1, frozenset()))


def delete_edge(g: SmallGraph, edge: tuple[int, int]) -> SmallGraph:
    """Without one edge; T − s(e)."""
    return SmallGraph(g.n, g.edges - {edge})


def subdivide_edge(g: SmallGraph, edge: tuple[int, int]) -> SmallGraph:
    """One edge replaced by a path through a new vertex; T − s(e)."""
    u, v = edge
    return SmallGraph(g.n + 1, (g.edges - {edge}) | {(u, g.n), (v, g.n)})


def delete_vertex(g: SmallGraph, vertex: int) -> SmallGraph:
    """Without one vertex; T − t(v)."""
    return induced(g, [v for v in range(g.n) if v != vertex])


def false_twin(g: SmallGraph, vertex: int) -> SmallGraph:
    """A new vertex with the neighbours of an old one; T + t(v)."""
    return SmallGraph(g.n + 1, g.edges | {(u, g.n) for u in neighbours(g, vertex)})


def true_twin(g: SmallGraph, vertex: int) -> SmallGraph:
    """A new vertex with the neighbours of an old one and joined to it; T + t(v) + d(v)."""
    twin = false_twin(g, vertex)
    return SmallGraph(twin.n, twin.edges | {(vertex, g.n)})


def add_leaf(g: SmallGraph, vertex: int) -> SmallGraph:
    """A new vertex of degree 1; T."""
    return SmallGraph(g.n + 1, g.edges | {(vertex, g.n)})


def complement(g: SmallGraph) -> SmallGraph:
    """The edges that are missing; T + T^c = C(n, 3) − Σ d (n − 1 − d) / 2 (Goodman)."""
    return SmallGraph(g.n, frozenset(combinations(range(g.n), 2)) - g.edges)


def tensor(g: SmallGraph, h: SmallGraph) -> SmallGraph:
    """(a, x) ~ (b, y) where a ~ b and x ~ y; 6 T T'."""
    edges = []
    for (a, b), (x, y) in product(g.edges, h.edges):
        edges += [(a * h.n + x, b * h.n + y), (a * h.n + y, b * h.n + x)]
    return small_graph(g.n * h.n, edges)


def double_cover(g: SmallGraph) -> SmallGraph:
    """The tensor product with one edge: bipartite, so no triangle."""
    return tensor(g, K2)


def cartesian(g: SmallGraph, h: SmallGraph) -> SmallGraph:
    """(a, x) ~ (b, x) where a ~ b, and (a, x) ~ (a, y) where x ~ y; n' T + n T'."""
    edges = [(a * h.n + x, b * h.n + x) for (a, b), x in product(g.edges, range(h.n))]
    edges += [(a * h.n + x, a * h.n + y) for a, (x, y) in product(range(g.n), h.edges)]
    return small_graph(g.n * h.n, edges)


def blow_up(g: SmallGraph, k: int) -> SmallGraph:
    """Every vertex replaced by k vertices that are not joined to each other; k³ T."""
    copies = product(g.edges, range(k), range(k))
    return small_graph(g.n * k, [(u * k + i, v * k + j) for (u, v), i, j in copies])


def line_graph(g: SmallGraph) -> SmallGraph:
    """A vertex for each edge, joined where two edges meet; T + Σ C(d, 3)."""
    edges = sorted(g.edges)
    meets = [(i, j) for (i, e), (j, f) in combinations(enumerate(edges), 2) if set(e) & set(f)]
    return SmallGraph(len(edges), frozenset(meets))


def induced(g: SmallGraph, kept: Sequence[int]) -> SmallGraph:
    """The edges among some vertices, which are renumbered in the order given."""
    number = {vertex: index for index, vertex in enumerate(kept)}
    edges = [(number[u], number[v]) for u, v in g.edges if u in number and v in number]
    return small_graph(len(kept), edges)


def relabel(g: SmallGraph, names: Sequence[int]) -> SmallGraph:
    """Vertex v becomes names[v]; T."""
    return small_graph(g.n, [(names[u], names[v]) for u, v in g.edges])


def neighbours(g: SmallGraph, vertex: int) -> list[int]:
    """The vertices joined to one vertex, ascending."""
    return sorted(sum(edge) - vertex for edge in g.edges if vertex in edge)


def triangles_at(g: SmallGraph, vertex: int) -> int:
    """t(v): the edges among a vertex's neighbours."""
    return sum(pair in g.edges for pair in combinations(neighbours(g, vertex), 2))


def support(g: SmallGraph, edge: tuple[int, int]) -> int:
    """s(e): the common neighbours of an edge's ends."""
    u, v = edge
    return len(set(neighbours(g, u)) & set(neighbours(g, v)))
