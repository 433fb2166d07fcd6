"""Look labels up in a hash table of slots: the compiled kernels of `LabelTable`.

What    Labels are spans of bytes: ``text[begins[i] : begins[i] + lengths[i]]``. Those that have a number lie one behind
        the other in ``arena``, number k at ``offsets[k] : offsets[k + 1]``. `number_spans` numbers labels and appends
        new ones to the arena, `enter_spans` enters labels that have numbers already, `find_spans` only looks.
Table   ``slots`` has a power of two entries, at most half of them used. An entry is ``hash << 32 | number + 1``, 0
        where there is none. A label is at the first free position from ``hash >> shift`` on. Most labels that
        differ are told apart by the hash in the slot; equal hashes are decided by the bytes.
Hash    Eight bytes at a time are mixed into a 64-bit state, whose halves are multiplied: 32 × 32 bits, so that nothing
        wraps around. The seed is secret, so that nobody can prepare labels that collide.
Idea    A look-up misses the cache up to three times: slot, offset, text. Labels go in batches, all of a batch through
        one step before the next, and each step prefetches what the following one reads.
Reads   No byte beyond a span is read: the last word of a label overlaps the one before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import prefetch

Bytes = NDArray[np.uint8]
Keys = NDArray[np.uint64]
Ids = NDArray[np.uint32]


class Spans(NamedTuple):
    """Labels in a text: label i is ``text[begins[i] : begins[i] + lengths[i]]``."""

    text: Bytes
    begins: Keys
    lengths: Ids


class HashTable(NamedTuple):
    """Labels that have numbers, and their slots; `shift` is the bits of a hash that do not say which slot."""

    arena: Bytes
    offsets: Keys
    slots: Keys
    shift: np.uint64
    seed: np.uint64


BATCH = 64
NOT_FOUND = np.uint64(2**64 - 1)  # −1, where the array is read as signed

_ZERO, _ONE, _HALF_WORD, _WORD = np.uint64(0), np.uint64(1), np.uint64(4), np.uint64(8)
_HALF_BITS, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_STIR = np.uint64(0x9E3779B97F4A7C15)
_BATCH = np.uint64(BATCH)


@helper
def _half_at(text: Bytes, at: Any) -> Any:
    """Four bytes, the first one lowest."""
    return (
        np.uint64(text[at])
        | np.uint64(text[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(text[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(text[at + np.uint64(3)]) << np.uint64(24)
    )


@helper
def _word_at(text: Bytes, at: Any) -> Any:
    """Eight bytes, the first one lowest; the compiler makes one unaligned load of it."""
    return _half_at(text, at) | _half_at(text, at + _HALF_WORD) << _HALF_BITS


@helper
def _few_at(text: Bytes, at: Any, length: Any) -> Any:
    """Up to three bytes as the first, the middle and the last one."""
    if length == _ZERO:
        return _ZERO
    return (
        np.uint64(text[at])
        | np.uint64(text[at + (length >> _ONE)]) << np.uint64(8)
        | np.uint64(text[at + length - _ONE]) << np.uint64(16)
    )


@helper
def _mix(state: Any) -> Any:
    """The product of both halves."""
    return (state & _LOW_HALF) * (state >> _HALF_BITS)


@helper
def _hash(text: Bytes, begin: Any, length: Any, seed: Any) -> Any:
    """32 bits of a label."""
    end = begin + length
    state = seed ^ length
    if length >= _WORD:
        at = begin
        while at + _WORD < end:
            state = _mix(state ^ _word_at(text, at))
            at += _WORD
        last = _word_at(text, end - _WORD)
    elif length >= _HALF_WORD:
        last = _half_at(text, begin) | _half_at(text, end - _HALF_WORD) << _HALF_BITS
    else:
        last = _few_at(text, begin, length)
    state = _mix(_mix(state ^ last) ^ _STIR)
    return (state ^ state >> _HALF_BITS) & _LOW_HALF


@helper
def _same(text: Bytes, a: Any, arena: Bytes, b: Any, length: Any) -> Any:
    """Whether two spans of one length hold the same bytes."""
    if length >= _WORD:
        at, last = _ZERO, length - _WORD
        while at < last:
            if _word_at(text, a + at) != _word_at(arena, b + at):
                return False
            at += _WORD
        return _word_at(text, a + last) == _word_at(arena, b + last)
    if length >= _HALF_WORD:
        last = length - _HALF_WORD
        if _half_at(text, a) != _half_at(arena, b):
            return False
        return _half_at(text, a + last) == _half_at(arena, b + last)
    return _few_at(text, a, length) == _few_at(arena, b, length)


@helper
def _approach(spans: Spans, first: Any, last: Any, table: HashTable, scratch: Keys) -> None:
    """Hashes of a batch of labels, and the positions from which to seek them; memory for that is on its way."""
    text, begins, lengths = spans
    arena, offsets, slots, shift, seed = table
    mask = np.uint64(len(slots)) - _ONE
    for i in range(last - first):
        found = _hash(text, begins[first + i], np.uint64(lengths[first + i]), seed)
        scratch[i] = found
        prefetch(slots, found >> shift)
    for i in range(last - first):
        position = scratch[i] >> shift
        slot = slots[position]
        while slot != _ZERO and slot >> _HALF_BITS != scratch[i]:
            position = (position + _ONE) & mask
            slot = slots[position]
        scratch[_BATCH + i] = position
        if slot != _ZERO:
            prefetch(offsets, (slot & _LOW_HALF) - _ONE)
    for i in range(last - first):
        slot = slots[scratch[_BATCH + i]]
        if slot != _ZERO:
            prefetch(arena, offsets[(slot & _LOW_HALF) - _ONE])


@helper
def _seek(spans: Spans, label: Any, wanted: Any, position: Any, table: HashTable) -> Any:
    """The position of a label, from the given one on; that of the free slot where it would be, if it is not there."""
    text, begins, lengths = spans
    arena, offsets, slots, _shift, _seed = table
    begin, length = begins[label], np.uint64(lengths[label])
    mask = np.uint64(len(slots)) - _ONE
    slot = slots[position]
    while slot != _ZERO:
        if slot >> _HALF_BITS == wanted:
            number = (slot & _LOW_HALF) - _ONE
            at = offsets[number]
            if offsets[number + _ONE] - at == length and _same(text, begin, arena, at, length):
                break
        position = (position + _ONE) & mask
        slot = slots[position]
    return position


@kernel
def number_spans(spans: Spans, numbers: Ids, table: HashTable, count: Any, scratch: Keys) -> Any:
    """Number labels, of which `count` have numbers; new ones get the next, in order. How many there are afterwards."""
    text, begins, lengths = spans
    arena, offsets, slots, _shift, _seed = table
    for first in range(_ZERO, np.uint64(len(spans.begins)), _BATCH):
        last = min(first + _BATCH, np.uint64(len(spans.begins)))
        _approach(spans, first, last, table, scratch)
        for i in range(last - first):
            position = _seek(spans, first + i, scratch[i], scratch[_BATCH + i], table)
            slot = slots[position]
            if slot == _ZERO:
                at, begin, length = offsets[count], begins[first + i], np.uint64(lengths[first + i])
                for byte in range(length):
                    arena[at + byte] = text[begin + byte]
                count += _ONE
                offsets[count] = at + length
                slot = scratch[i] << _HALF_BITS | count
                slots[position] = slot
            numbers[first + i] = (slot & _LOW_HALF) - _ONE
    return count


@kernel
def enter_spans(spans: Spans, number: Any, table: HashTable, scratch: Keys) -> None:
    """Enter labels that are in the arena under their numbers, from `number` on; of equal ones the first stays."""
    for first in range(_ZERO, np.uint64(len(spans.begins)), _BATCH):
        last = min(first + _BATCH, np.uint64(len(spans.begins)))
        _approach(spans, first, last, table, scratch)
        for i in range(last - first):
            position = _seek(spans, first + i, scratch[i], scratch[_BATCH + i], table)
            if table.slots[position] == _ZERO:
                table.slots[position] = scratch[i] << _HALF_BITS | (number + first + i + _ONE)


@kernel
def find_spans(spans: Spans, numbers: Keys, table: HashTable, scratch: Keys) -> None:
    """The numbers of labels, `NOT_FOUND` for those that have none."""
    for first in range(_ZERO, np.uint64(len(spans.begins)), _BATCH):
        last = min(first + _BATCH, np.uint64(len(spans.begins)))
        _approach(spans, first, last, table, scratch)
        for i in range(last - first):
            position = _seek(spans, first + i, scratch[i], scratch[_BATCH + i], table)
            slot = table.slots[position]
            numbers[first + i] = NOT_FOUND if slot == _ZERO else (slot & _LOW_HALF) - _ONE
