"""Every algorithm that the registry discovers for the CPU: no list to keep, none left out."""

from __future__ import annotations

from typing import Any

import pytest
from graphs import SmallGraph

import wedgewise as ww

CPU_ALGORITHMS: list[str] = [record.name for record in ww.algorithms() if record.device == "cpu"]

for_every_algorithm = pytest.mark.parametrize("algorithm", CPU_ALGORITHMS)


def count(source: Any, algorithm: str, n: int | None = None) -> int:
    """The library's answer for a SmallGraph or whatever else `ww.Graph` accepts."""
    if isinstance(source, SmallGraph):
        source, n = source.pairs, source.n
    return ww.count(ww.Graph(source, n=n), algorithm=algorithm, device="cpu")
