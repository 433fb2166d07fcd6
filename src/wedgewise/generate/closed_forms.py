"""Families whose triangles a formula counts: a pair is a function of its position, none repeats or loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.generate.stream import EdgeStream, positions, require, require_integer, require_vertices

EndArrays = tuple[NDArray[Any], NDArray[Any]]

MAX_ROWS = 2**24
MAX_DIMENSION = 40
STAR_VARIANTS = ("Bk", "B1k", "B2k")


def complete(n: int) -> EdgeStream:
    """Complete graph K_n; T = C(n, 3)."""
    require_integer("complete", "n", n, 0, MAX_ROWS)
    return _complete_multipartite("complete", {"n": n}, np.ones(n, np.int64), comb(n, 3))


def complete_tripartite(a: int, b: int, c: int) -> EdgeStream:
    """Complete tripartite graph K_{a,b,c}; T = a·b·c."""
    sizes = (a, b, c)
    for name, size in zip("abc", sizes, strict=True):
        require_integer("complete_tripartite", name, size, 0, MAX_ROWS)
    parameters = {"a": a, "b": b, "c": c}
    return _complete_multipartite("complete_tripartite", parameters, np.array(sizes, np.int64), prod(sizes))


def turan(n: int, r: int) -> EdgeStream:
    """Turán graph: complete with r parts as equal as can be; T sums the products of three part sizes."""
    require_integer("turan", "n", n, 0, MAX_ROWS)
    require_integer("turan", "r", r, 1, MAX_ROWS)
    small, larger = divmod(n, r)
    sizes = np.full(r, small, np.int64)
    sizes[:larger] += 1
    triangles = sum(
        comb(larger, chosen) * (small + 1) ** chosen * comb(r - larger, 3 - chosen) * small ** (3 - chosen)
        for chosen in range(4)
    )
    return _complete_multipartite("turan", {"n": n, "r": r}, sizes, triangles)


def octahedron(dimension: int = 3) -> EdgeStream:
    """Octahedron of any dimension d, the cocktail-party graph K_{2,2,…,2}; T = 8·C(d, 3)."""
    require_integer("octahedron", "dimension", dimension, 0, MAX_ROWS // 2)
    sizes = np.full(dimension, 2, np.int64)
    return _complete_multipartite("octahedron", {"dimension": dimension}, sizes, 8 * comb(dimension, 3))


def star(leaves: int) -> EdgeStream:
    """Star: a centre 0 and its leaves; T = 0."""
    require_integer("star", "leaves", leaves, 0)

    def pairs_between(start: int, stop: int) -> EndArrays:
        return np.zeros(stop - start, np.int64), positions(start + 1, stop + 1)

    return _stream("star", {"leaves": leaves}, leaves + 1, leaves, pairs_between, 0)


def wheel(rim: int) -> EdgeStream:
    """Wheel: hub 0 joined to a cycle of `rim` vertices; T = rim, and 4 when the rim is a triangle."""
    require_integer("wheel", "rim", rim, 3)

    def pairs_between(start: int, stop: int) -> EndArrays:
        spoke, kind = np.divmod(positions(start, stop), 2)
        here = spoke + 1
        after = (spoke + 1) % rim + 1
        return np.where(kind == 0, 0, here), np.where(kind == 0, here, after)

    triangles = 4 if rim == 3 else rim
    return _stream("wheel", {"rim": rim}, rim + 1, 2 * rim, pairs_between, triangles)


def windmill(blades: int, clique: int = 3) -> EdgeStream:
    """Windmill: cliques K_c that share vertex 0 (c = 3 is the friendship graph); T = blades·C(c, 3)."""
    require_integer("windmill", "blades", blades, 0)
    require_integer("windmill", "clique", clique, 2, 2**13)
    higher, lower = np.tril_indices(clique, -1)
    per_blade = len(higher)

    def pairs_between(start: int, stop: int) -> EndArrays:
        blade, edge = np.divmod(positions(start, stop), per_blade)
        shift = blade * (clique - 1)
        return np.where(lower[edge] == 0, 0, lower[edge] + shift), higher[edge] + shift

    n = 1 + blades * (clique - 1)
    require_vertices("windmill", n)
    parameters = {"blades": blades, "clique": clique}
    return _stream("windmill", parameters, n, blades * per_blade, pairs_between, blades * comb(clique, 3))


def book(pages: int) -> EdgeStream:
    """Book: triangles that share one edge, the spine (0, 1); T = pages."""
    require_integer("book", "pages", pages, 0)

    def pairs_between(start: int, stop: int) -> EndArrays:
        position = positions(start, stop)
        page, end = np.divmod(position - 1, 2)
        return np.where(position == 0, 0, end), np.where(position == 0, 1, page + 2)

    return _stream("book", {"pages": pages}, pages + 2, 2 * pages + 1, pairs_between, pages)


def cycle(n: int) -> EdgeStream:
    """Cycle C_n; T = 1 for n = 3, else 0."""
    require_integer("cycle", "n", n, 3)

    def pairs_between(start: int, stop: int) -> EndArrays:
        position = positions(start, stop)
        return position, (position + 1) % n

    return _stream("cycle", {"n": n}, n, n, pairs_between, int(n == 3))


def path(n: int) -> EdgeStream:
    """Path through n vertices; T = 0."""
    require_integer("path", "n", n, 1)

    def pairs_between(start: int, stop: int) -> EndArrays:
        return positions(start, stop), positions(start + 1, stop + 1)

    return _stream("path", {"n": n}, n, n - 1, pairs_between, 0)


def petersen() -> EdgeStream:
    """Petersen graph: 10 vertices, 15 edges; T = 0."""
    corner = positions(0, 5)
    first = np.concatenate([corner, corner, corner + 5])
    second = np.concatenate([(corner + 1) % 5, corner + 5, (corner + 2) % 5 + 5])
    return _stream("petersen", {}, 10, 15, lambda start, stop: (first[start:stop], second[start:stop]), 0)


def hypercube(dimension: int) -> EdgeStream:
    """Hypercube: 2^d vertices, an edge where two ids differ in one bit; T = 0."""
    require_integer("hypercube", "dimension", dimension, 0, MAX_DIMENSION)
    half = 2**dimension // 2

    def pairs_between(start: int, stop: int) -> EndArrays:
        bit, rest = np.divmod(positions(start, stop), half)
        without_bit = (rest >> bit << (bit + 1)) | (rest & ((1 << bit) - 1))
        return without_bit, without_bit | (1 << bit)

    return _stream("hypercube", {"dimension": dimension}, 2**dimension, dimension * half, pairs_between, 0)


def grid8(side: int) -> EdgeStream:
    """Square grid with 8 neighbours (king's graph); T = 4·(side − 1)², four in every unit square."""
    require_integer("grid8", "side", side, 1, 2**30)
    # The pairs of four directions follow each other; each is a grid of starting corners, `width` to a row.
    straight, diagonal = side * (side - 1), (side - 1) ** 2
    ends = np.array(list(accumulate((straight, straight, diagonal, diagonal))), np.int64)
    begins = np.array([0, *ends[:-1]], np.int64)
    width = np.array([side - 1, side, side - 1, side - 1], np.int64)
    first_column = np.array([0, 0, 0, 1], np.int64)
    step = np.array([1, side, side + 1, side - 1], np.int64)

    def pairs_between(start: int, stop: int) -> EndArrays:
        position = positions(start, stop)
        direction = np.searchsorted(ends, position, side="right")
        row, column = np.divmod(position - begins[direction], width[direction])
        corner = row * side + column + first_column[direction]
        return corner, corner + step[direction]

    return _stream("grid8", {"side": side}, side * side, int(ends[-1]), pairs_between, 4 * diagonal)


def torus3d(side: int) -> EdgeStream:
    """Periodic 3D grid: side³ vertices, 3 edges per vertex; T = 0, and 27 for side 3."""
    require_integer("torus3d", "side", side, 3, 2**20)

    def pairs_between(start: int, stop: int) -> EndArrays:
        vertex, axis = np.divmod(positions(start, stop), 3)
        stride = np.array([1, side, side * side], np.int64)[axis]
        at_the_border = vertex // stride % side == side - 1
        return vertex, np.where(at_the_border, vertex - (side - 1) * stride, vertex + stride)

    triangles = 27 if side == 3 else 0
    return _stream("torus3d", {"side": side}, side**3, 3 * side**3, pairs_between, triangles)


def kronecker_of_stars(leaves: tuple[int, ...], variant: str = "Bk") -> EdgeStream:
    """Kronecker product of stars: no loops (Bk), one at each centre (B1k) or at one leaf of each (B2k).

    Parameters
    ----------
    leaves : the leaves of each star, for instance ``(3, 4, 5)``
    variant : "Bk", "B1k" or "B2k"; the one loop that the product then has is dropped

    Notes
    -----
    Kepner et al., "Design, generation, and validation of extreme scale power-law graphs", 2018,
    arXiv:1803.01281. The trace of a product's cube is the product of the factors' traces: 1 + 3a for a star
    of a leaves with a loop at its centre, 4 with one at a leaf, 0 without. Dropping the last loop takes
    away 1 + 3D closed walks, where D is the degree of its vertex; T is a sixth of what remains.

    The arcs of a star are listed so that arc i and the i-th from the end are each other's reverse, the loop
    in the middle. Then the same holds for the product, and its first half has every edge once.
    """
    family = "kronecker_of_stars"
    require(len(leaves) > 0, family, "leaves", leaves, "name at least one star, such as (3, 4, 5)")
    for count in leaves:
        require_integer(family, "leaves", count, 1, 2**31)
    require(variant in STAR_VARIANTS, family, "variant", variant, f"choose one of {', '.join(STAR_VARIANTS)}")
    n = prod(count + 1 for count in leaves)
    arcs = [2 * count + (variant != "Bk") for count in leaves]
    require_vertices(family, max(n, prod(arcs)))

    def pairs_between(start: int, stop: int) -> EndArrays:
        rest = positions(start, stop)
        tail, head, place_value = np.zeros_like(rest), np.zeros_like(rest), 1
        for count, star_arcs in zip(reversed(leaves), reversed(arcs), strict=True):
            rest, arc = np.divmod(rest, star_arcs)
            star_tail, star_head = _star_arc(arc, count, variant)
            tail += place_value * star_tail
            head += place_value * star_head
            place_value *= count + 1
        return tail, head

    return EdgeStream(
        name="-".join([family, *map(str, leaves), variant]),
        parameters={"leaves": tuple(leaves), "variant": variant},
        n=n,
        pairs_count=prod(arcs) // 2,
        pairs_between=pairs_between,
        expected_triangles=_star_product_triangles(leaves, variant),
    )


def _star_arc(arc: NDArray[Any], leaves: int, variant: str) -> EndArrays:
    """Tail and head of numbered arcs of one star: outward ones, the loop if any, inward ones in reverse."""
    mirrored = 2 * leaves + (variant != "Bk") - 1 - arc
    outward, inward = arc < leaves, mirrored < leaves
    loop_at = 1 if variant == "B2k" else 0
    leaf = np.where(outward, arc, mirrored) + 1
    tail = np.where(outward, 0, np.where(inward, leaf, loop_at))
    head = np.where(inward, 0, np.where(outward, leaf, loop_at))
    return tail, head


def _star_product_triangles(leaves: tuple[int, ...], variant: str) -> int:
    """A sixth of the closed 3-walks that avoid the dropped loop."""
    if variant == "Bk":
        return 0
    if variant == "B1k":
        walks, loop_row = prod(1 + 3 * count for count in leaves), prod(count + 1 for count in leaves)
    else:
        walks, loop_row = 4 ** len(leaves), 2 ** len(leaves)
    return (walks - 1 - 3 * (loop_row - 1)) // 6  # each triangle is 6 closed walks


def _stream(
    family: str,
    parameters: Mapping[str, object],
    n: int,
    pairs_count: int,
    pairs_between: Callable[[int, int], EndArrays],
    triangles: int,
) -> EdgeStream:
    """A graph that its family and its parameters name."""
    name = "-".join([family, *map(str, parameters.values())])
    return EdgeStream(name, parameters, n, pairs_count, pairs_between, triangles)


def _complete_multipartite(
    family: str, parameters: Mapping[str, object], sizes: NDArray[np.int64], triangles: int
) -> EdgeStream:
    """All pairs of vertices in different parts; vertex v is listed with the vertices before its part."""
    begins = np.cumsum(sizes) - sizes
    earlier = np.repeat(begins, sizes)
    ends = np.cumsum(earlier)

    def pairs_between(start: int, stop: int) -> EndArrays:
        position = positions(start, stop)
        later = np.searchsorted(ends, position, side="right")
        return position - (ends[later] - earlier[later]), later

    pairs_count = int(ends[-1]) if len(ends) else 0
    return _stream(family, parameters, len(earlier), pairs_count, pairs_between, triangles)
