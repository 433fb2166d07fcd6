"""Damaged benchmark records: lines of the committed results with one place changed, by seeded chance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
NEIGHBOURS = 3  # records before and behind, which a page compares with the changed one
MAX_BYTES = 30_000  # of a line that is changed: pages of longer ones take long
DEEP = "a place for a hundred thousand brackets"
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.5, 1e308, 5e-324, 1e29, 1e-29),
    *(float("nan"), float("inf"), float("-inf"), 2**63, 2**64, -(2**63), 2**100, 10**4000),
    *("", "x", "1", "nan", "\x1b[31m", "\u202eabc", "\ud800", "a" * 100_000, DEEP),
    *([], {}, [[]], [None], ["x"], [1, 2, 3], {"x": None}, {"a": {"b": {}}}),
    *("k_truss", f"k_truss[k={'9' * 5000}]", "timeout", "wrong", "unavailable", "cuda", "file", "edges"),
)
EXTRA = ("extra", "k", "counters", "timeline", "cutting_seconds", "foresight", "makespans", "question", "stages")
PIECES = b'{}[],:"0123456789eE-.\\ntx\x00\xff'


@cache
def committed() -> tuple[tuple[bytes, ...], ...]:
    """The lines of every committed file of results."""
    return tuple(tuple(path.read_bytes().splitlines()) for path in sorted(RESULTS.glob("*.jsonl")))


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Small results files, each with one line that was changed in one place."""
    chance = Random(seed)
    for _ in range(count):
        lines = [line for line in chance.choice(committed()) if len(line) <= MAX_BYTES]
        place = chance.randrange(len(lines))
        before, behind = lines[max(0, place - NEIGHBOURS) : place], lines[place + 1 : place + 1 + NEIGHBOURS]
        yield b"\n".join([*before, _changed(lines[place], chance), *behind]) + b"\n"


def _changed(line: bytes, chance: Random) -> bytes:
    return _other_bytes(line, chance) if chance.random() < 0.15 else _other_value(line, chance)


def _other_bytes(line: bytes, chance: Random) -> bytes:
    """A few bytes taken out or put in."""
    place = chance.randrange(len(line))
    taken = chance.randrange(20)
    return line[:place] + bytes(chance.choices(PIECES, k=chance.randrange(4))) + line[place + taken :]


def _other_value(line: bytes, chance: Random) -> bytes:
    """A field less, a field more, or another value in one; every depth has the same chance."""
    record = json.loads(line)
    found = [place for place in _places(record) if place]
    depth = chance.choice(sorted({len(place) for place in found}))
    *way, last = chance.choice([place for place in found if len(place) == depth])
    holder = record
    for step in way:
        holder = holder[step]
    kind = chance.random()
    if kind < 0.15:
        del holder[last]
    elif kind < 0.25 and isinstance(holder, dict):
        holder[chance.choice(EXTRA)] = chance.choice(ODD)
    else:
        holder[last] = chance.choice(ODD)
    text = json.dumps(record).replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)
    return text.encode()


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _places(item, (*at, key))
