"""Cleaning in array operations over `xp`: its definition, which small graphs and GPUs are cleaned by.

`xp` is NumPy or CuPy; only what both have with one meaning is used. Long arrays are taken in parts of `PART`, so that
temporaries stay small beside them and no count that CuPy keeps in 32 bits overflows. While pairs are sorted, each is

    loop (1 bit) | lower end (31 bits) | higher end (31 bits) | turned (1 bit)

from the highest bit to the lowest: loops come last, the copies of an edge lie together, those as given before those
turned. Peak beyond the pairs: 16 bytes per pair, the key and its copy while sorting, and at most 24 per slot.

Pairs are the caller's memory, which somebody may write to meanwhile: a part is copied before it is checked and used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.machine.gpu import Array
from wedgewise.prepare.radix import MAX_ID, SortedKeys, changed

PART = 1 << 23
LOOP = 1 << 63
HIGH_HALF = np.uint64(0xFFFFFFFF << 32)
SORTED_KEY_BYTES = 17  # on a GPU: the key's 8, as many for its copy, and what the sort counts
PART_BYTES = 48  # per element of a part: a handful of temporaries


def parts(count: int) -> list[slice]:
    """The ranges that an array of `count` elements is taken in."""
    return [slice(begin, min(begin + PART, count)) for begin in range(0, count, PART)]


def temporary_bytes(count: int) -> int:
    """At most what the temporaries take while arrays of `count` elements are gone through."""
    return PART_BYTES * min(PART, count)


def sort_pairs_by_arrays(pairs: Array, ids: int, xp: Any = np, *, name: str = "<pairs>") -> SortedKeys:
    """Sort (k, 2) unsigned pairs of ids below `ids`, each turned so that u < v; drop loops and copies."""
    keys = xp.empty(len(pairs), xp.uint64)
    for part in parts(len(pairs)):
        taken = pairs[part].copy()
        if int(taken.max()) >= ids:
            raise changed(name)
        _mark(taken, keys[part], xp)
    keys.sort()
    proper = int(xp.searchsorted(keys, xp.asarray([LOOP], xp.uint64))[0])
    looped = xp.zeros(ids, xp.bool_)
    for part in parts(len(pairs) - proper):
        looped[(keys[proper:][part] >> 32) & MAX_ID] = True
    keys, duplicates = distinct(keys[:proper], 1, xp)
    for part in parts(len(keys)):
        _unmark(keys[part])
    heads = keys.astype(xp.uint32)
    heads.sort()
    return SortedKeys(
        keys,
        run_lengths(keys, ids, 32, xp),
        run_lengths(heads, ids, 0, xp),
        looped,
        loops=len(pairs) - proper,
        duplicates=duplicates,
    )


def _mark(pairs: Array, keys: Array, xp: Any) -> None:
    u, v = pairs[:, 0], pairs[:, 1]
    keys[...] = u == v
    keys <<= 31
    keys |= xp.minimum(u, v)
    keys <<= 31
    keys |= xp.maximum(u, v)
    keys <<= 1
    keys |= u > v


def _unmark(keys: Array) -> None:
    """Turn ``u << 32 | v << 1 | turned`` into ``u << 32 | v``."""
    keys += keys & HIGH_HALF
    keys >>= 1


def distinct(ascending: Array, marks: int, xp: Any) -> tuple[Array, int]:
    """The first of every run of values that differ by at most the bits `marks`, and how many repeat their predecessor.

    `ascending` is overwritten: what is kept moves to the front before it is copied.
    """
    kept = repeats = 0
    before = ~ascending[:1]
    for part in parts(len(ascending)):
        here = ascending[part]
        change = xp.empty_like(here)
        xp.bitwise_xor(here[:1], before, out=change[:1])
        xp.bitwise_xor(here[1:], here[:-1], out=change[1:])
        before = here[-1:].copy()
        repeats += int(xp.count_nonzero(change == 0))
        firsts = here[change > marks]
        ascending[kept : kept + len(firsts)] = firsts
        kept += len(firsts)
    return ascending[:kept].copy(), repeats


def row_starts(ascending: Array, rows: int, shift: int, xp: Any) -> Array:
    """Where the values of each row begin, and the end; ``value >> shift`` is a row. 64-bit only from 2^31 values."""
    starts = xp.empty(rows + 1, xp.uint32 if len(ascending) < 2**31 else xp.uint64)
    for part in parts(rows + 1):
        wanted = xp.arange(part.start, part.stop, dtype=ascending.dtype)
        wanted <<= shift
        starts[part] = xp.searchsorted(ascending, wanted)
    return starts


def run_lengths(ascending: Array, rows: int, shift: int, xp: Any) -> Array:
    """How many values each row has."""
    return xp.diff(row_starts(ascending, rows, shift, xp)).astype(xp.uint32, copy=False)


def distinct_labels(pairs: Array, xp: Any = np) -> Array:
    """The labels that occur in the pairs, ascending. Peak: twice the pairs' own bytes while they are sorted."""
    return distinct(xp.sort(pairs, axis=None), 0, xp)[0]


def number_pairs(pairs: Array, labels: Array, xp: Any = np) -> Array:
    """The pairs with the position of each label among the ascending labels, all of which occur, in its place."""
    numbered = xp.empty(pairs.shape, xp.uint32)
    for part in parts(len(pairs)):
        numbered[part] = xp.searchsorted(labels, pairs[part])
    return numbered


def occurring_slots(found: SortedKeys, xp: Any = np) -> Array | None:
    """The slots that stand in some pair; None where all do."""
    occurs = found.looped | (found.first_counts > 0) | (found.second_counts > 0)
    return None if bool(occurs.all()) else xp.flatnonzero(occurs).astype(xp.uint32)
