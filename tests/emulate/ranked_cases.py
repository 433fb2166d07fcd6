"""Pairs of both widths that become rows at once: their arcs, and ids that change on the way."""

from __future__ import annotations

import numpy as np

from wedgewise.errors import InputError
from wedgewise.machine.gpu import Device
from wedgewise.prepare.clean import clean, most_slots
from wedgewise.prepare.ranked_arcs import EndCounts, rank_on_device
from wedgewise.stages import EdgeList, Origin

ORIGIN = Origin("<array>", "array")


def check_all(device: Device) -> None:
    """All of them on one device."""
    pairs = np.random.default_rng(1).zipf(1.5, (5000, 2)) % 300
    for dtype in (np.uint32, np.int64):
        _check(pairs.astype(dtype), device)


def _check(pairs: np.ndarray[tuple[int, ...], np.dtype[np.integer]], device: Device) -> None:
    edges = EdgeList(pairs, ORIGIN)
    expected = clean(edges, 1, compiled=False)
    for consume in (False, True):
        sent = device.upload(pairs)
        counts = EndCounts.of(sent, most_slots(edges, len(pairs)), device)
        ranked = rank_on_device(edges, sent, device, counts, consume=consume)
        assert (ranked.n, ranked.m, ranked.report) == (expected.n, expected.m, expected.report)
        out_degrees, degrees = np.zeros(ranked.n, np.int64), expected.degrees[ranked.oriented.vertex_of]
        out_degrees += np.diff(ranked.oriented.offsets.astype(np.int64))
        assert np.array_equal(out_degrees + np.bincount(ranked.oriented.out_neighbours, minlength=ranked.n), degrees)
    sent = device.upload(pairs)
    counts = EndCounts.of(sent, most_slots(edges, len(pairs)), device)
    sent[777] = 9999
    try:
        rank_on_device(edges, sent, device, counts)
    except InputError:
        return
    raise AssertionError("ids that have changed are ranked")
