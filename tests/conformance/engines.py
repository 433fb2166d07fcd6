"""Every algorithm that the registry discovers for the CPU: no list to keep, none left out."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from graphs import SmallGraph

import wedgewise as ww
from wedgewise.algorithms._contract import Algorithm, Knob

RECORDS: tuple[Algorithm, ...] = tuple(record for record in ww.algorithms() if record.device == "cpu")
CPU_ALGORITHMS: tuple[str, ...] = tuple(record.name for record in RECORDS)

ORIENTATIONS: tuple[tuple[str, str, str], ...] = tuple(
    (record.name, order, relabel)
    for record in RECORDS
    for order, relabel in product(record.orders, record.relabellings)
)


def knob_values(knob: Knob) -> tuple[int | str, ...]:
    """The values of a knob that are worth trying: all choices, or the extremes and those near the default."""
    if knob.choices:
        return knob.choices
    default = int(knob.default)
    tried = {knob.least, knob.least + 1, default // 2, default, default + 1, 2 * default, 2**31 - 1}
    return tuple(sorted(value for value in tried if value >= knob.least))


KNOB_SETTINGS: tuple[tuple[str, str, int | str], ...] = tuple(
    (record.name, knob.name, value) for record in RECORDS for knob in record.knobs for value in knob_values(knob)
)

for_every_algorithm = pytest.mark.parametrize("algorithm", CPU_ALGORITHMS)


def count(source: Any, algorithm: str, n: int | None = None) -> int:
    """The library's answer for a SmallGraph or whatever else `ww.Graph` accepts."""
    if isinstance(source, SmallGraph):
        source, n = source.pairs, source.n
    return ww.count(ww.Graph(source, n=n, threads=1), algorithm=algorithm, device="cpu", threads=1)
