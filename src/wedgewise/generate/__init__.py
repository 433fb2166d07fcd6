"""Graphs to test and measure with: random families that are the same on every platform, and closed forms.

from wedgewise.generate import kronecker, generate, GENERATORS

stream = kronecker(18, seed=1)          # nothing is computed yet
for block in stream.blocks(): ...       # (k, 2) arrays, any scale streams
pairs = stream.pairs(threads=2)         # or all of them
generate("book", pages=70_000)          # by name; GENERATORS describes every family and its parameters
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wedgewise.errors import UnknownNameError
from wedgewise.generate.closed_forms import (
    book,
    complete,
    complete_tripartite,
    cycle,
    grid8,
    hypercube,
    kronecker_of_stars,
    octahedron,
    path,
    petersen,
    star,
    torus3d,
    turan,
    wheel,
    windmill,
)
from wedgewise.generate.random_graphs import kronecker, rmat, small_world, uniform
from wedgewise.generate.stream import EdgeStream, Generator, Parameter, describe

__all__ = [
    "GENERATORS",
    "EdgeStream",
    "Generator",
    "Parameter",
    "book",
    "complete",
    "complete_tripartite",
    "cycle",
    "generate",
    "grid8",
    "hypercube",
    "kronecker",
    "kronecker_of_stars",
    "octahedron",
    "path",
    "petersen",
    "rmat",
    "small_world",
    "star",
    "torus3d",
    "turan",
    "uniform",
    "wheel",
    "windmill",
]

_SEED = "the same seed gives the same pairs everywhere, 0 … 2^64 − 1"
_SCALE = "n = 2^scale vertices"
_EDGEFACTOR = "pairs per vertex"

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        function.__name__: describe(function, helps)
        for function, helps in (
            (kronecker, {"scale": _SCALE, "edgefactor": _EDGEFACTOR, "seed": _SEED}),
            (
                rmat,
                {
                    "scale": _SCALE,
                    "edgefactor": _EDGEFACTOR,
                    "a": "probability of the upper left quadrant",
                    "b": "probability of the upper right quadrant",
                    "c": "probability of the lower left quadrant; a + b + c ≤ 1",
                    "seed": _SEED,
                },
            ),
            (uniform, {"n": "vertices", "m": "pairs", "seed": _SEED}),
            (torus3d, {"side": "n = side³ vertices, side ≥ 3"}),
            (
                small_world,
                {
                    "n": "vertices",
                    "k": "neighbours in the ring, even",
                    "p": "probability that an edge is rewired, 0 … 1",
                    "seed": _SEED,
                },
            ),
            (complete, {"n": "vertices"}),
            (complete_tripartite, {"a": "size of part 1", "b": "size of part 2", "c": "size of part 3"}),
            (turan, {"n": "vertices", "r": "parts"}),
            (octahedron, {"dimension": "pairs of opposite vertices"}),
            (star, {"leaves": "leaves around the centre"}),
            (wheel, {"rim": "vertices of the rim, at least 3"}),
            (windmill, {"blades": "cliques that share vertex 0", "clique": "vertices of a clique"}),
            (book, {"pages": "triangles that share the spine"}),
            (cycle, {"n": "vertices, at least 3"}),
            (path, {"n": "vertices, at least 1"}),
            (petersen, {}),
            (hypercube, {"dimension": "2^dimension vertices"}),
            (grid8, {"side": "n = side² vertices"}),
            (
                kronecker_of_stars,
                {
                    "leaves": "leaves of each star, such as 3,4,5",
                    "variant": "Bk (no loops), B1k (at centres) or B2k (at leaves)",
                },
            ),
        )
    }
)


def generate(name: str, **parameters: object) -> EdgeStream:
    """The graph of a family by name.

    Parameters
    ----------
    name : a key of `GENERATORS`
    **parameters : those of the family; `GENERATORS[name].parameters` lists them

    Raises
    ------
    UnknownNameError : no such family or parameter
    InputError : a parameter is missing or out of range

    Examples
    --------
    >>> generate("complete", n=5).expected_triangles
    10
    """
    if name not in GENERATORS:
        raise UnknownNameError(f"no generator named {name!r}; there are: {', '.join(GENERATORS)}")
    return GENERATORS[name](**parameters)
