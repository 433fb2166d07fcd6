"""Random families. Every pair is a function of the seed and its position, so any block can be made alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.generate.stream import MAX_SEED, EdgeStream, probability, require, require_integer
from wedgewise.generate.words import half_words, key_of, numbers_below, permuted, threshold, words

MAX_SCALE = 48
MAX_UNIFORM_VERTICES = 2**32
LEVELS, PERMUTATION, FIRST_ENDS, SECOND_ENDS, REWIRED = range(5)

GRAPH500 = (Fraction(57, 100), Fraction(19, 100), Fraction(19, 100))


def kronecker(scale: int, edgefactor: int = 16, seed: int = 1) -> EdgeStream:
    """Kronecker graph with the published Graph500 probabilities .57, .19, .19, .05 and permuted vertices.

    Parameters
    ----------
    scale : n = 2^scale vertices
    edgefactor : pairs per vertex
    seed : 0 … 2^64 − 1

    Notes
    -----
    At each of the `scale` levels a pair falls into one quarter of the adjacency matrix, which gives one bit
    of both ends. Ids then go through a bijection of 0 … 2^scale − 1 that is computed, not stored
    (`words.permuted`), so that an id says nothing about its degree. Pairs are drawn independently, hence
    their order carries no information and needs no shuffle. Loops and repeated pairs stay in, as the
    benchmark prescribes.

    Examples
    --------
    >>> from wedgewise.generate import kronecker
    >>> stream = kronecker(10, seed=1)
    >>> stream.name, stream.n, stream.pairs_count
    ('kronecker-10-seed1', 1024, 16384)
    """
    family = "kronecker"
    _require_size(family, scale, edgefactor, seed)
    suffix = "" if edgefactor == 16 else f"-ef{edgefactor}"
    return EdgeStream(
        name=f"kronecker-{scale}{suffix}-seed{seed}",
        parameters={"scale": scale, "edgefactor": edgefactor, "seed": seed},
        n=2**scale,
        pairs_count=edgefactor * 2**scale,
        pairs_between=_Quadrants(scale, seed, GRAPH500, permute=True).pairs_between,
    )


def rmat(
    scale: int, edgefactor: int = 16, a: float = 0.45, b: float = 0.15, c: float = 0.15, seed: int = 1
) -> EdgeStream:
    """R-MAT graph with any quadrant probabilities a, b, c (and d = 1 − a − b − c); vertices keep their ids.

    Parameters
    ----------
    scale : n = 2^scale vertices
    edgefactor : pairs per vertex
    a, b, c : probabilities of the upper left, upper right and lower left quadrant, read as exact decimals
    seed : 0 … 2^64 − 1

    Notes
    -----
    Chakrabarti, Zhan and Faloutsos, SDM 2004, doi:10.1137/1.9781611972740.43, without their smoothing
    noise. Low ids have high degrees. Loops and repeated pairs stay in.
    """
    family = "rmat"
    _require_size(family, scale, edgefactor, seed)
    quadrants = tuple(probability(family, name, value) for name, value in (("a", a), ("b", b), ("c", c)))
    require(sum(quadrants) <= 1, family, "a+b+c", float(sum(quadrants)), "their sum must not exceed 1")
    factor = "" if edgefactor == 16 else f"-ef{edgefactor}"
    return EdgeStream(
        name=f"rmat-{scale}{factor}-a{a}-b{b}-c{c}-seed{seed}",
        parameters={"scale": scale, "edgefactor": edgefactor, "a": a, "b": b, "c": c, "seed": seed},
        n=2**scale,
        pairs_count=edgefactor * 2**scale,
        pairs_between=_Quadrants(scale, seed, quadrants, permute=False).pairs_between,
    )


def uniform(n: int, m: int, seed: int = 1) -> EdgeStream:
    """Uniform random graph: m pairs whose ends are drawn independently from n vertices.

    Parameters
    ----------
    n : number of vertices, at most 2^32
    m : number of pairs; loops and repeated pairs, about m/n and m²/n² of them, stay in
    seed : 0 … 2^64 − 1
    """
    family = "uniform"
    require_integer(family, "n", n, 1, MAX_UNIFORM_VERTICES)
    require_integer(family, "m", m, 0)
    require_integer(family, "seed", seed, 0, MAX_SEED)
    first, second = key_of(seed, FIRST_ENDS), key_of(seed, SECOND_ENDS)

    def pairs_between(start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return numbers_below(n, first, start, stop), numbers_below(n, second, start, stop)

    parameters = {"n": n, "m": m, "seed": seed}
    return EdgeStream(f"uniform-{n}-{m}-seed{seed}", parameters, n, m, pairs_between)


def small_world(n: int, k: int, p: float, seed: int = 1) -> EdgeStream:
    """Watts–Strogatz small world: a ring of k nearest neighbours, each edge rewired with probability p.

    Parameters
    ----------
    n : number of vertices, at most 2^32
    k : neighbours of a vertex in the ring, even and below n
    p : probability that an edge's far end moves to a vertex drawn from all others, read as an exact decimal
    seed : 0 … 2^64 − 1

    Notes
    -----
    Watts and Strogatz, Nature 393, 1998, doi:10.1038/30918. Each edge is rewired without looking at the
    others, so that blocks are independent: there are no loops, and the few pairs that meet an existing one
    stay in.
    """
    family = "small_world"
    require_integer(family, "n", n, 3, MAX_UNIFORM_VERTICES)
    require_integer(family, "k", k, 2, n - 1)
    require(k % 2 == 0, family, "k", k, "give an even number: half of the neighbours are on each side")
    require_integer(family, "seed", seed, 0, MAX_SEED)
    limit = threshold(probability(family, "p", p), 64)
    rewired, targets = key_of(seed, REWIRED), key_of(seed, SECOND_ENDS)
    reach = k // 2

    def pairs_between(start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        position = np.arange(start, stop, dtype=np.uint64)
        vertex = position // np.uint64(reach)
        step = position - vertex * np.uint64(reach) + np.uint64(1)
        random_step = numbers_below(n - 1, targets, start, stop) + np.uint64(1)
        moves = words(rewired, start, stop) < limit
        return vertex, (vertex + np.where(moves, random_step, step)) % np.uint64(n)

    return EdgeStream(
        name=f"small_world-{n}-{k}-p{p}-seed{seed}",
        parameters={"n": n, "k": k, "p": p, "seed": seed},
        n=n,
        pairs_count=n * reach,
        pairs_between=pairs_between,
        expected_triangles=n * comb(reach, 2) if limit == 0 and n > 3 * reach else None,
    )


@dataclass(frozen=True, slots=True)
class _Quadrants:
    """Draws pairs by descending into quarters of the adjacency matrix, one half word per level."""

    scale: int
    seed: int
    probabilities: tuple[Fraction, ...]
    permute: bool

    def pairs_between(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        dtype: Any = np.uint32 if self.scale <= 32 else np.uint64
        row: NDArray[Any] = np.zeros(stop - start, dtype)
        column: NDArray[Any] = np.zeros(stop - start, dtype)
        a, a_and_b, a_to_c = (threshold(share, 32) for share in accumulate(self.probabilities))
        for level in range(self.scale):
            drawn = half_words(key_of(self.seed, LEVELS, level), start, stop)
            lower = drawn >= a_and_b
            row <<= dtype(1)
            row |= lower
            column <<= dtype(1)
            column |= (drawn >= a) ^ lower ^ (drawn >= a_to_c)
        if not self.permute:
            return row, column
        key = key_of(self.seed, PERMUTATION)
        return permuted(row, self.scale, key), permuted(column, self.scale, key)


def _require_size(family: str, scale: int, edgefactor: int, seed: int) -> None:
    require_integer(family, "scale", scale, 0, MAX_SCALE)
    require_integer(family, "edgefactor", edgefactor, 0, 2**14)
    require_integer(family, "seed", seed, 0, MAX_SEED)
