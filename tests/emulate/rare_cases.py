"""What only large graphs have: rows, items and wedges beyond the usual limits, or limits that small graphs exceed."""

from __future__ import annotations

from math import comb, isqrt
from unittest.mock import patch

import numpy as np

from emulate import triple_cases
from emulate.emulated_cases import BLOCKS, COMPLETE, RECORDS, SKEWED, Case, block_knob, check
from emulate.rows import fan
from wedgewise.algorithms.gpu import _keystone_answers, wetric
from wedgewise.machine.gpu import Device

SHORT_ROW, LONG_ROW = (1 << 16) - 1, 1 << 16  # wedges are numbered by 32 bits up to the first, by 64 from the second on


def check_all(device: Device) -> None:
    """All of them on one device."""
    small = block_knob(RECORDS["keystone"], BLOCKS[0])
    far = {**small, "near_hubs": 1, "least_far_loads": 1}
    check(Case("keystone", COMPLETE, far), device)
    check(Case("keystone", SKEWED, {**far, "hubs": 2}), device)
    with patch.object(_keystone_answers, "ROW_COUNTERS", 1):
        check(Case("keystone", COMPLETE, small, question="edge_support"), device)
    check(Case("wetric", SKEWED, {"combination": "mixed-edge", "matrix_length": 3}), device)
    for triple in triple_cases.TRIPLES:
        triple_cases.check(triple_cases.TripleCase("keystone", triple, {**small, "near_hubs": 8}), device)
    triple_cases.check(triple_cases.TripleCase("bbtc", "wide", block_knob(RECORDS["bbtc"], BLOCKS[0])), device)
    for rim in (SHORT_ROW, LONG_ROW):
        check_wedges_of_a_fan(rim, device)


def check_wedges_of_a_fan(rim: int, device: Device) -> None:
    """A row of so many ids, the wedges of which are closed where one follows the other; some of them are counted."""
    graph, wedges = fan(length=rim), comb(rim, 2)

    def closed_before(wedge: int) -> int:
        rows_behind = (isqrt(8 * (wedges - wedge) + 1) - 1) // 2  # each has its closed wedge first
        return rim - 1 - rows_behind

    knobs = wetric.ALGORITHM.settings({"matrix_length": 40, "block": BLOCKS[0]})
    numbered = wetric.NumberedWedges.of(graph, "outgoing", device.xp)
    for row in (1, 2, 77, rim // 2, rim - 3):
        at = row * rim - row * (row + 1) // 2
        begin, end = at - 40, min(wedges, at + 40)
        prepared = wetric.Prepared.of(graph, knobs, device)
        wetric.wedge_launch(prepared, numbered, begin, end)()
        assert np.array_equal(prepared.found, [closed_before(end) - closed_before(begin), end - begin]), (rim, row)
