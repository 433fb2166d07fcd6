"""Sort 64-bit keys by distribution, in parallel: what `clean`, `orient` and every ordering are built on.

A key is ``u << 32 | v << 1 | flag`` with u, v < 2^31; the flag is carried along, not sorted by. Three steps:

    pairs ─pack→ keys + histogram of the leading digit ─scatter→ buckets ─sort_bucket→ sorted, without loops and copies

Buckets hold about `BUCKET_KEYS` keys, so that the digit passes of `sort_bucket` stay in a core's L2 cache. Memory
traffic per key: 8 B read and 8 B written by each of pack and scatter, the rest in cache. Peak: two buffers of 8 bytes
per key; pairs that may be overwritten serve as one of them. Every scattered store prefetches the next line of its
stream: without it a pass costs 8 ns per key, with it 3. The steps share one kernel, so that a fresh process loads one
function instead of three.

Only `pack` reads the pairs, each number once, and it checks the numbers that it takes: whoever else writes to that
memory meanwhile can change the answer, but leads nowhere outside of the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import prefetch
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, Keys

BUCKET_KEYS = 1 << 15
MAX_BUCKETS = 1 << 9
CHUNK_PAIRS = 1 << 20
DIGIT_BITS = 11
LINE_KEYS = 8
FEWEST_BY_DIGITS = 1 << 12
MAX_ID = 2**31 - 1

UNIQUE, LOOPS, DUPLICATES, REVERSED = range(4)  # of a bucket's statistics
PACK, SCATTER, SORT = range(3)


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Ascending distinct keys ``u << 32 | v``, and how often each id stands first and second in them.

    The arrays are NumPy's, or those of a device that sorted there.
    """

    keys: Keys
    first_counts: Ids
    second_counts: Ids
    looped: NDArray[np.bool_]
    loops: int
    duplicates: int


class Pairs(NamedTuple):
    """Pairs of ids one behind the other, and what each id is to be called, if there is anything."""

    ends: Ids
    rename: Ids
    directed: bool


class Buffers(NamedTuple):
    """Both buffers of keys, and one worker's counters of digits."""

    keys: Keys
    spare: Keys
    counters: Ids


class Tally(NamedTuple):
    """What is counted while copies are dropped: ids that stand first and second, ids with loops, statistics."""

    first_counts: Ids
    second_counts: Ids
    looped: NDArray[np.uint8]
    statistics: Keys


class Digits(NamedTuple):
    """Which bits are sorted by: buckets by ``key >> shift``, then `passes`, each the lowest bit of a digit."""

    shift: int
    buckets: int
    passes: Keys

    @classmethod
    def choose(cls, ids: int, keys: int) -> Digits:
        id_bits = max(1, (ids - 1).bit_length())
        bucket_bits = min(id_bits, min(MAX_BUCKETS, max(1, keys // BUCKET_KEYS)).bit_length() - 1)
        shift = 32 + id_bits - bucket_bits
        passes = [*range(1, 1 + id_bits, DIGIT_BITS), *range(32, shift, DIGIT_BITS)]
        return cls(shift, (max(ids - 1, 0) << 32 >> shift) + 1, np.array(passes, np.uint64))


def sort_pairs(
    pairs: NDArray[np.uint32],
    ids: int,
    threads: int,
    *,
    rename: Ids | None = None,
    directed: bool = False,
    consume: bool = False,
    name: str = "<pairs>",
) -> SortedKeys:
    """Sort (k, 2) pairs of ids below `ids` and drop copies.

    With `rename`, each id is replaced by ``rename[id]``, below `ids` too. Unless `directed`, each pair is turned so
    that u < v, and loops are dropped: `clean_arrays.sort_pairs_by_arrays` defines the result. With `consume`, the
    pairs' memory becomes one of the two key buffers. An id that is not below `ids` is refused: callers have looked at
    the pairs before, so that they have changed.
    """
    spare = pairs.reshape(-1).view(np.uint64) if consume else np.empty(len(pairs), np.uint64)
    return _Sorter(pairs, spare, ids, threads, rename, directed).run(name)


def changed(name: str, what: str = "pairs") -> InputError:
    """What is wrong with pairs that are not what they were when they were first looked at."""
    return InputError(f"{name}: the {what} changed while they were read; pass a copy that nobody writes to")


def counting_workers(keys: int, ids: int, threads: int) -> int:
    """How many threads sort with counts of their own, 4 bytes per id each: at most 16 bytes per key in all."""
    return min(threads, max(1, 4 * keys // max(1, ids)))


class _Sorter:
    """The buffers of one sort, and its three steps in parallel."""

    def __init__(
        self, pairs: NDArray[np.uint32], spare: Keys, ids: int, threads: int, rename: Ids | None, directed: bool
    ) -> None:
        count = len(pairs)
        self.digits = Digits.choose(ids, count)
        self.workers = min(self.digits.buckets, counting_workers(count, ids, threads))
        self.threads = threads
        renamed = np.empty(0, np.uint32) if rename is None else kernel_view(rename)
        self.pairs = Pairs(kernel_view(pairs), renamed, directed)
        self.keys, self.spare = np.empty(count, np.uint64), spare
        self.chunks = np.append(np.arange(0, count, CHUNK_PAIRS), count)
        self.positions = np.zeros((max(1, len(self.chunks) - 1), self.digits.buckets + 1), np.uint64)
        self.counters = np.empty((self.workers, len(self.digits.passes) << DIGIT_BITS), np.uint32)
        self.first_counts = np.zeros(ids, np.uint32)
        self.second_counts = np.zeros((self.workers, ids), np.uint32)
        self.looped = np.zeros(ids, np.uint8)
        self.statistics = np.zeros((self.digits.buckets, 4), np.uint64)

    def run(self, name: str) -> SortedKeys:
        self._each(PACK, self.chunks, self.threads)
        if self.positions[:, -1].any():
            raise changed(name)
        buckets = _scatter_positions(self.positions[:, :-1])
        self._each(SCATTER, self.chunks, self.threads)
        self._each(SORT, buckets, self.workers)
        unique, loops, duplicates, _ = (int(total) for total in self.statistics.sum(axis=0))
        keys = self.keys
        if unique < len(keys):
            keys = _close_gaps(keys, self.spare, buckets, self.statistics[:, UNIQUE].astype(np.int64), self.threads)
        seconds = self.second_counts[0] if self.workers == 1 else self.second_counts.sum(axis=0, dtype=np.uint32)
        looped = self.looped.view(np.bool_)
        return SortedKeys(keys, self.first_counts, seconds, looped, loops, duplicates)

    def _each(self, step: int, bounds: NDArray[np.int64], threads: int) -> None:
        """One step over all ranges: chunks of pairs, or buckets of keys."""
        cuts = bounds.tolist()

        def task(number: int, worker: int) -> None:
            own, statistics = worker % self.workers, self.statistics[number if step == SORT else 0]
            buffers = Buffers(self.keys, self.spare, self.counters[own])
            tally = Tally(self.first_counts, self.second_counts[own], self.looped, statistics)
            positions = self.positions[number if step != SORT else 0]
            run_step(step, cuts[number], cuts[number + 1], self.pairs, buffers, self.digits, positions, tally)

        run_tasks(task, len(cuts) - 1, threads)


def _scatter_positions(histogram: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Turn counts per (chunk, bucket) into the first position of each, in place; return the buckets' bounds."""
    totals = histogram.sum(axis=0)
    bounds = np.zeros(len(totals) + 1, np.int64)
    np.cumsum(totals, out=bounds[1:])
    before = np.cumsum(histogram, axis=0) - histogram
    histogram[...] = before + bounds[:-1].astype(np.uint64)
    return bounds


def _close_gaps(keys: Keys, spare: Keys, bounds: NDArray[np.int64], unique: NDArray[np.int64], threads: int) -> Keys:
    """Move what each bucket kept behind what the buckets before it kept."""
    ends = np.cumsum(unique)

    def move(bucket: int, _worker: int) -> None:
        end, size, begin = ends[bucket], unique[bucket], bounds[bucket]
        spare[end - size : end] = keys[begin : begin + size]

    run_tasks(move, len(unique), threads)
    return spare[: ends[-1]]


def sort_keys(keys: Keys, spare: Keys) -> Keys:
    """The keys in ascending order, in one of the two arrays; both are overwritten."""
    if len(keys) < FEWEST_BY_DIGITS:
        keys.sort()
        return keys
    varying = int(np.bitwise_or.reduce(keys)) ^ int(np.bitwise_and.reduce(keys))
    passes = []
    while varying:
        low_bit = (varying & -varying).bit_length() - 1
        passes.append(low_bit)
        varying = varying >> (low_bit + DIGIT_BITS) << (low_bit + DIGIT_BITS)
    counters = np.empty(len(passes) << DIGIT_BITS, np.uint32)
    sort_by_digits(keys, spare, np.array(passes, np.uint64), counters)
    return keys if len(passes) % 2 == 0 else spare


@kernel
def sort_by_digits(keys: Keys, spare: Keys, passes: Keys, counters: Ids) -> None:
    """Sort fewer than 2^32 keys by the digits at `passes`; an odd number of them leaves the keys in `spare`."""
    sort_bucket(keys, spare, np.uint64(0), np.uint64(len(keys)), passes, counters)


@kernel
def run_step(
    step: int, begin: int, end: int, pairs: Pairs, buffers: Buffers, digits: Digits, positions: Keys, tally: Tally
) -> None:
    """One step over [begin, end): pack pairs into `spare`, scatter them to `keys`, or sort a bucket of `keys`."""
    first, last, low_bit = np.uint64(begin), np.uint64(end), np.uint64(digits.shift)
    keys, spare, counters = buffers
    passes = digits.passes
    if step == PACK:
        bound = np.uint64(len(pairs.rename) if len(pairs.rename) else len(tally.first_counts))
        pack_pairs(pairs, bound, first, last, low_bit, spare, positions)
    elif step == SCATTER:
        scatter_keys(spare, first, last, low_bit, positions, keys)
    else:
        sort_bucket(keys, spare, first, last, passes, counters)
        source = keys if len(passes) % 2 == 0 else spare
        keep_distinct(source, keys, first, last, not pairs.directed, tally)


@helper
def pack_pairs(pairs, bound, begin, end, shift, keys, histogram):  # type: ignore[no-untyped-def]
    """Pack the pairs in [begin, end) into keys and count their leading digits, and last the pairs beyond `bound`."""
    one, half = np.uint64(1), np.uint64(32)
    ends, rename, directed = pairs
    renamed = len(rename) > 0
    for i in range(begin, end):
        u, v = np.uint64(ends[i * np.uint64(2)]), np.uint64(ends[i * np.uint64(2) + one])
        if max(u, v) >= bound:
            histogram[np.uint64(len(histogram)) - one] += one
            continue
        if renamed:
            u, v = np.uint64(rename[u]), np.uint64(rename[v])
        turned = np.uint64(u > v and not directed)
        low, high = (v, u) if turned else (u, v)
        key = low << half | high << one | turned
        keys[i] = key
        histogram[key >> shift] += one


@helper
def scatter_keys(keys, begin, end, shift, positions, out):  # type: ignore[no-untyped-def]
    """Move the keys in [begin, end) to their buckets; ``positions[bucket]`` is where the next one goes."""
    for i in range(begin, end):
        key = keys[i]
        bucket = key >> shift
        position = positions[bucket]
        prefetch(out, position + np.uint64(LINE_KEYS))
        out[position] = key
        positions[bucket] = position + np.uint64(1)


@helper
def count_digits(keys, begin, end, passes, counters):  # type: ignore[no-untyped-def]
    """Histogram every digit in one sweep, then turn each histogram into first positions."""
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    counters[:] = 0
    for i in range(begin, end):
        key = keys[i]
        for number in range(np.uint64(len(passes))):
            digit = (key >> passes[number]) & mask
            counters[(number << np.uint64(DIGIT_BITS)) + digit] += np.uint32(1)
    position = np.uint32(0)
    for slot in range(len(counters)):
        if slot & ((1 << DIGIT_BITS) - 1) == 0:
            position = np.uint32(0)
        count = counters[slot]
        counters[slot] = position
        position += count


@helper
def distribute(keys, out, begin, end, low_bit, counters):  # type: ignore[no-untyped-def]
    """One stable pass: move keys by the digit that starts at `low_bit`."""
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    for i in range(begin, end):
        key = keys[i]
        digit = (key >> low_bit) & mask
        position = begin + np.uint64(counters[digit])
        prefetch(out, position + np.uint64(LINE_KEYS))
        out[position] = key
        counters[digit] += np.uint32(1)


@helper
def sort_bucket(keys, spare, begin, end, passes, counters):  # type: ignore[no-untyped-def]
    """Sort ``keys[begin:end]`` by the digits of v, then by the rest of u; each pass moves them to the other buffer.

    A digit may stick out above v: it then reads zeros, or bits of u that a later pass sorts by anyway.
    """
    source, target = keys, spare
    count_digits(source, begin, end, passes, counters)
    for number in range(len(passes)):
        position = number << DIGIT_BITS
        distribute(source, target, begin, end, passes[number], counters[position : position + (1 << DIGIT_BITS)])
        source, target = target, source


@helper
def keep_distinct(source, out, begin, end, drop_loops, tally):  # type: ignore[no-untyped-def]
    """Copy the first key of every run of equal pairs to ``out[begin:]`` and say what was left out."""
    one, half = np.uint64(1), np.uint64(32)
    low_half = np.uint64(0xFFFFFFFF)
    first_counts, second_counts, looped, statistics = tally
    position = begin
    loops, duplicates, turned_copies = np.uint64(0), np.uint64(0), np.uint64(0)
    previous, seen = ~np.uint64(0), np.uint64(0)  # seen: bit 1 as given, bit 2 turned
    for i in range(begin, end):
        key = source[i]
        pair = key >> one
        direction = one << (key & one)
        if pair == previous:
            is_duplicate = (seen & direction) != 0
            duplicates += np.uint64(is_duplicate)
            turned_copies += np.uint64(not is_duplicate)
            seen |= direction
            continue
        u, v = key >> half, (key & low_half) >> one
        if u == v and drop_loops:
            loops += one
            looped[u] = 1
            continue
        previous, seen = pair, direction
        out[position] = u << half | v
        position += one
        first_counts[u] += np.uint32(1)
        second_counts[v] += np.uint32(1)
    statistics[UNIQUE] = position - begin
    statistics[LOOPS] = loops
    statistics[DUPLICATES] = duplicates
    statistics[REVERSED] = turned_copies
