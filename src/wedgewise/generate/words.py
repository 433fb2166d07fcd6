"""Random words by counter: word i of a stream is a function of (seed, purpose, i) and of nothing else.

The function is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195) evaluated at
position i instead of step by step: ``mix(key + (i + 1)·GOLDEN) mod 2^64``. It is written out in 64-bit
integer arithmetic, and choices compare integers, so that the words are the same on every platform, in any
order and for any block size.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB
MASK = 2**64 - 1
HALF_BITS = 32
SHARED_STEPS = 2**16


def key_of(seed: int, *purpose: int) -> int:
    """The key of the stream that `seed` uses for one purpose, such as one level of a Kronecker graph."""
    key = _mix(seed + GOLDEN)
    for part in purpose:
        key = _mix((key ^ part) + GOLDEN)
    return key


def words(key: int, start: int, stop: int) -> Words:
    """Words start … stop − 1 of a stream, uniform on 0 … 2^64 − 1."""
    state = _steps(stop - start) + np.uint64((key + (start + 1) * GOLDEN) & MASK)
    shifted = np.empty_like(state)
    for shift, factor in ((30, FIRST_FACTOR), (27, SECOND_FACTOR)):
        np.right_shift(state, np.uint64(shift), out=shifted)
        state ^= shifted
        state *= np.uint64(factor)
    np.right_shift(state, np.uint64(31), out=shifted)
    state ^= shifted
    return state


def half_words(key: int, start: int, stop: int) -> NDArray[np.uint32]:
    """Half words start … stop − 1 of 32 bits: numbers 2i and 2i + 1 are the low and high half of word i."""
    first_word = start // 2
    whole = words(key, first_word, (stop + 1) // 2).astype("<u8", copy=False)
    halves = whole.view("<u4").astype(np.uint32, copy=False)
    return halves[start - 2 * first_word : stop - 2 * first_word]


def numbers_below(bound: int, key: int, start: int, stop: int) -> Words:
    """Integers 0 … bound − 1 for words start … stop − 1: ⌊word · bound / 2^64⌋, with bound at most 2^32."""
    drawn = words(key, start, stop)
    low = drawn & np.uint64(2**HALF_BITS - 1)
    low *= np.uint64(bound)
    low >>= np.uint64(HALF_BITS)
    drawn >>= np.uint64(HALF_BITS)
    drawn *= np.uint64(bound)
    drawn += low
    drawn >>= np.uint64(HALF_BITS)
    return drawn


def threshold(probability: Fraction, bits: int) -> int:
    """The number of `bits`-bit words that count as "yes" at this probability, rounded down."""
    return int(probability * 2**bits)


def permuted(ids: NDArray[Any], bits: int, key: int) -> NDArray[Any]:
    """The images of `ids` under a bijection of 0 … 2^bits − 1 that is drawn by `key`; nothing is stored.

    Four rounds of ``x ← x·odd + addend mod 2^bits`` and ``x ← x xor (x >> half)``: each step can be undone,
    so no two ids share an image. Works in the (unsigned) type of `ids`, which must hold `bits` bits.
    """
    kind = ids.dtype.type
    mask = kind(2**bits - 1)
    half = kind(max(1, bits // 2))
    image = ids.copy()
    for round_number in range(4):
        image *= kind((key_of(key, round_number, 0) | 1) & int(mask))
        image += kind(key_of(key, round_number, 1) & int(mask))
        image &= mask
        image ^= image >> half
    return image


def _steps(count: int) -> Words:
    """0, GOLDEN, 2·GOLDEN, … modulo 2^64."""
    if count <= SHARED_STEPS:
        return _shared_steps()[:count]
    return np.arange(count, dtype=np.uint64) * np.uint64(GOLDEN)


@cache
def _shared_steps() -> Words:
    """The steps that blocks of usual size have in common."""
    steps = np.arange(SHARED_STEPS, dtype=np.uint64) * np.uint64(GOLDEN)
    steps.flags.writeable = False
    return steps


def _mix(value: int) -> int:
    """SplitMix64's finalizer on one Python integer."""
    value &= MASK
    value = ((value ^ (value >> 30)) * FIRST_FACTOR) & MASK
    value = ((value ^ (value >> 27)) * SECOND_FACTOR) & MASK
    return value ^ (value >> 31)
