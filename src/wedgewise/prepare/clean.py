"""EdgeList → SimpleGraph: drop loops, copies and directions, number the vertices, count what was dropped.

Peak memory beyond the pairs: 16 bytes per pair (two key buffers) and at most 13 + 4 per extra thread for every slot.
Pairs that may be overwritten, and 64-bit pairs, which are narrowed first, serve as one of the two buffers. On a device
it is `clean_device_bytes`.

Pairs are read more than once, and others may write to them in between: no pass trusts what an earlier one has found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine import jit
from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.jit import kernel, kernel_view
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.threads import run_chunks
from wedgewise.prepare.clean_arrays import (
    SORTED_KEY_BYTES,
    distinct_labels,
    number_pairs,
    occurring_slots,
    sort_pairs_by_arrays,
    temporary_bytes,
)
from wedgewise.prepare.radix import MAX_ID, SortedKeys, changed, counting_workers, run_step, sort_pairs
from wedgewise.stages import CleanReport, DeviceSimpleGraph, EdgeList, Ids, Keys, Labels, SimpleGraph
from wedgewise.stages.labels import pick_labels
from wedgewise.stages.limits import DEFAULT_LIMITS, MAX_LABEL, Limits

ARRAY_SECONDS_PER_PAIR = 5e-7  # of cleaning, and as much of orienting, without kernels
SLOTS_PER_PAIR = 2
CHUNK = 1 << 20


@memory_for("clean")
def clean(
    edge_list: EdgeList,
    threads: int,
    *,
    drop_leaves: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    compiled: bool | None = None,
    consume: bool = False,
) -> SimpleGraph:
    """Make a simple graph of raw pairs.

    `compiled` forces the kernels or the array operations; None takes the kernels where they pay. With `consume`, the
    memory of the pairs may be overwritten, where it is writable: 8 bytes per pair less.
    """
    compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * len(edge_list.pairs), run_step) if compiled is None else compiled
    pairs = unsigned(np.ascontiguousarray(edge_list.pairs))
    slot_count, labels = _slots(edge_list, edge_list.pairs, _largest(pairs, threads))
    if slot_count is None:
        labels, pairs = number_labels(pairs, threads, compiled=compiled)
        slot_count = len(labels)
    limits.check("vertices", slot_count, path=edge_list.origin.name)
    if compiled:
        narrow = _narrow(pairs, threads)
        ours = narrow.base is None or (consume and edge_list.pairs.flags.writeable)  # without a base: made here
        found = sort_pairs(narrow, slot_count, threads, consume=ours, name=edge_list.origin.name)
    else:
        found = sort_pairs_by_arrays(pairs, slot_count, name=edge_list.origin.name)
    slots, degrees, labels = _vertices(found, labels)
    labels = slots if labels is None else labels
    report = report_of(edge_list, len(pairs), len(found.keys), found.loops, found.duplicates)
    graph = SimpleGraph(len(degrees), found.keys, slots, slot_count, degrees, labels, report)
    return without_leaves(graph) if drop_leaves else graph


@memory_for("clean")
def clean_on_device(
    edge_list: EdgeList, pairs: Array, device: Device, *, limits: Limits = DEFAULT_LIMITS
) -> DeviceSimpleGraph:
    """Make a simple graph of raw pairs that lie on a device, with the bytes and the errors of `clean`.

    `pairs` has shape (k, 2) and is not changed; of `edge_list` everything but its pairs counts. Labels that had to be
    numbered are an array of the device too.
    """
    xp = device.xp
    largest = int(unsigned(pairs).max()) if len(pairs) else -1
    numbered = number_on_device(edge_list, pairs, largest, xp, limits)
    found = sort_pairs_by_arrays(numbered.pairs, numbered.slot_count, xp, name=edge_list.origin.name)
    slots, degrees, labels = _vertices(found, numbered.labels, xp)
    report = report_of(edge_list, len(pairs), len(found.keys), found.loops, found.duplicates)
    return DeviceSimpleGraph(len(degrees), found.keys, slots, numbered.slot_count, degrees, labels, report)


class NumberedPairs(NamedTuple):
    """Unsigned pairs of slots, how many slots there are, and the labels, None where they are the slots that occur.

    ``anew`` says that they are not the given pairs.
    """

    pairs: Array
    slot_count: int
    labels: Any
    anew: bool


def number_on_device(edge_list: EdgeList, pairs: Array, largest: int, xp: Any, limits: Limits) -> NumberedPairs:
    """Check pairs whose largest end is known, and number labels that are too far apart to serve as slots."""
    slot_count, labels = _slots(edge_list, pairs, largest, xp)
    pairs, anew = unsigned(pairs), slot_count is None
    if slot_count is None:
        labels = _checked_labels(pairs, xp)
        pairs, slot_count = number_pairs(pairs, labels, xp), len(labels)
    limits.check("vertices", slot_count, path=edge_list.origin.name)
    return NumberedPairs(pairs, slot_count, labels, anew)


def clean_bytes(pairs: int, vertices: int, threads: int) -> int:
    """Peak of `clean` beyond the pairs: two key buffers, and counts and marks of vertices."""
    return 16 * pairs + (13 + 4 * counting_workers(pairs, vertices, threads)) * vertices


def clean_device_bytes(pairs: int, itemsize: int, vertices: int) -> int:
    """At most what `clean_on_device` takes beyond the pairs, for ids of `itemsize` bytes among `vertices` slots.

    Per pair: a key and the sort's copy of it, and, where labels must be numbered, two numbers and two labels. Per slot:
    counts, marks, degrees and positions. Where no vertices are declared, there are at most two slots per pair.
    """
    return (SORTED_KEY_BYTES + 8 + 2 * itemsize) * pairs + 24 * vertices + temporary_bytes(max(pairs, vertices))


def _slots(edge_list: EdgeList, pairs: Array, largest: int, xp: Any = np) -> tuple[int | None, Labels | None]:
    """How many slots there are, None where labels must be numbered first; and the labels, None where they are slots."""
    _check_ids(edge_list, pairs, largest, xp)
    if edge_list.vertices is not None:
        names = edge_list.names
        return edge_list.vertices, range(edge_list.vertices) if names is None else names
    are_slots = largest + 1 <= most_slots(edge_list, len(pairs)) and largest <= MAX_ID
    return (largest + 1 if are_slots else None), None


def most_slots(edge_list: EdgeList, pairs: int) -> int:
    """How many slots there are at most; labels that would need more are numbered."""
    return max(1024, SLOTS_PER_PAIR * pairs) if edge_list.vertices is None else edge_list.vertices


def _vertices(found: SortedKeys, labels: Labels | None, xp: Any = np) -> tuple[Any, Array, Any]:
    """The slots that are vertices, None for all of them; the vertices' degrees; and labels, None for the slots."""
    slots = None if labels is not None else occurring_slots(found, xp)
    degrees = found.first_counts + found.second_counts
    if slots is not None:
        return slots, degrees[slots], None
    return None, degrees, range(len(degrees)) if labels is None else labels


def report_of(edge_list: EdgeList, pairs: int, edges: int, loops: int, duplicates: int) -> CleanReport:
    """What was read and dropped."""
    return CleanReport(
        pairs=pairs,
        edges=edges,
        loops=loops,
        duplicates=duplicates,
        reversed_copies=pairs - edges - loops - duplicates,
        dropped_columns=len(edge_list.ignored_columns),
        columns=edge_list.columns,
        ignored_columns=edge_list.ignored_columns,
        notes=edge_list.origin.notes if edge_list.columns else (),
    )


def without_leaves(graph: SimpleGraph) -> SimpleGraph:
    """Drop the vertices of degree one, in one pass: their neighbours stay, whatever degree is left to them."""
    stays = graph.degrees != 1
    slot_stays = graph.by_slot(stays.view(np.uint8).astype(np.uint32)).astype(np.bool_)
    pairs = graph.slot_pairs
    keys = graph.slot_keys[slot_stays[pairs[:, 0]] & slot_stays[pairs[:, 1]]]
    slots = np.flatnonzero(stays).astype(np.uint32) if graph.slots is None else graph.slots[stays]
    ends = keys.view(np.uint32).astype(np.int64)
    degrees = np.bincount(ends, minlength=graph.slot_count).astype(np.uint32)[slots]
    report = replace(graph.report, edges=len(keys), leaves_dropped=int(graph.n - len(slots)))
    labels = pick_labels(graph.labels, np.flatnonzero(stays))
    return SimpleGraph(len(slots), keys, slots, graph.slot_count, degrees, labels, report)


def number_labels(pairs: NDArray[Any], threads: int, *, compiled: bool) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Number sparse labels in ascending order: the distinct labels, and the pairs with numbers for labels.

    Peak: 8 bytes per pair for the numbers, and twice the pairs' own bytes while they are sorted.
    """
    labels = _checked_labels(pairs)
    if not compiled:
        return labels, number_pairs(pairs, labels)
    numbered = np.empty(pairs.shape, np.uint32)
    shift, first_of = _leading_digits(labels)

    def number(part: slice) -> None:
        look_up(kernel_view(pairs[part]), kernel_view(labels), shift, first_of, kernel_view(numbered[part]))

    run_chunks(number, len(pairs), CHUNK, threads)
    return labels, numbered


def _checked_labels(pairs: Array, xp: Any = np) -> Array:
    """The distinct labels, unless they are too many."""
    labels = distinct_labels(pairs, xp)
    if len(labels) > MAX_ID:
        raise InputError(f"{len(labels):,} distinct labels; at most {MAX_ID:,} vertices are supported")
    return labels


def _leading_digits(labels: NDArray[Any]) -> tuple[int, Ids]:
    """Where the labels of each leading digit begin, for about one label per digit when they are spread evenly."""
    spread = int(labels[-1] - labels[0])
    shift = max(0, spread.bit_length() - len(labels).bit_length())
    digits = (labels - labels[0]) >> labels.dtype.type(shift)
    first_of = np.zeros((spread >> shift) + 2, np.uint32)
    np.cumsum(np.bincount(digits.astype(np.int64), minlength=len(first_of) - 1), out=first_of[1:])
    return shift, first_of


@kernel
def look_up(wanted: Keys, labels: Keys, shift: int, first_of: Ids, numbers: Ids) -> None:
    """The position of every wanted label among the ascending labels: digit, then bisection.

    A label that is not among them, because it has changed since they were found, gets any position.
    """
    one = np.uint64(1)
    least, last_digit = labels[0], np.uint64(len(first_of)) - np.uint64(2)
    for i in range(np.uint64(len(wanted))):
        label = wanted[i]
        digit = min(np.uint64(max(label, least) - least) >> np.uint64(shift), last_digit)
        low, high = np.uint64(first_of[digit]), np.uint64(first_of[digit + one])
        while high - low > one:
            middle = (low + high) >> one
            if labels[middle] <= label:
                low = middle
            else:
                high = middle
        numbers[i] = low


def unsigned(pairs: Array) -> Array:
    """The same memory as unsigned numbers."""
    return pairs.view(np.dtype(f"u{pairs.dtype.itemsize}"))


def _largest(pairs: NDArray[Any], threads: int) -> int:
    """The largest id; −1 without pairs."""
    return max(run_chunks(lambda part: int(pairs[part].max()), len(pairs), CHUNK, threads), default=-1)


def _check_ids(edge_list: EdgeList, pairs: Array, largest: int, xp: Any) -> None:
    """Refuse negative ids (which look huge as unsigned numbers) and ids beyond the declared vertices."""
    name = edge_list.origin.name
    signed = pairs.dtype.kind == "i"
    if signed and largest > np.iinfo(pairs.dtype).max:
        found = _first_wrong(pairs, lambda some: some < 0, name, xp)
        raise InputError(f"{name}: {found}: vertex ids must not be negative")
    if largest > MAX_LABEL:
        raise InputError(f"{name}: label {largest} is beyond 2^63 − 1, the largest integer label")
    vertices = edge_list.vertices
    if vertices is not None and largest >= vertices:
        found = _first_wrong(pairs, lambda some: some >= vertices, name, xp)
        raise InputError(
            f"{name}: {found}, but there are only {vertices} vertices (0 … {vertices - 1}); "
            "pass a larger n or leave it out"
        )


def _first_wrong(pairs: Array, is_wrong: Callable[[Array], Array], name: str, xp: Any) -> str:
    """The first pair with a wrong end, in words: there was one when the pairs were last looked at."""
    rows = xp.flatnonzero(is_wrong(pairs).any(axis=1))[:1]
    pair = pairs[rows]
    if not is_wrong(pair).any():
        raise changed(name)
    return f"pair {int(rows[0])} is {tuple(pair[0].tolist())}"


def _narrow(pairs: NDArray[Any], threads: int) -> NDArray[np.uint32]:
    """Ids below 2^31 as 32-bit numbers."""
    if pairs.dtype == np.uint32:
        return pairs
    narrow = np.empty(pairs.shape, np.uint32)
    run_chunks(lambda part: np.copyto(narrow[part], pairs[part], casting="unsafe"), len(pairs), CHUNK, threads)
    return narrow
