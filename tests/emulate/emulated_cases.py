"""What the emulated device counts: every registered algorithm for CUDA, on graphs that are small and known."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from graphs import CLOSED_FORMS, TRUTHS, count_by_product, fixture_pairs

import wedgewise as ww
from emulate.emulator import COMPILER, Defines, EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, DeviceWork, Knob, Launch
from wedgewise.errors import InputError
from wedgewise.generate import EdgeStream
from wedgewise.graph import DeviceGraph
from wedgewise.machine.gpu import Device

RECORDS: dict[str, Algorithm] = {record.name: record for record in ww.algorithms() if record.device == "cuda"}
ATLAS, EMPTY, SKEWED = "atlas_union", "no edges", "kronecker-6-seed1"
BLOCKS = (32, 64, 128)
MOST_PAIRS = 2500
SMALL_LAUNCH = 64

STREAMS: dict[str, EdgeStream] = {
    stream.name: stream
    for stream in (
        *(form for form in CLOSED_FORMS if form.pairs_count <= MOST_PAIRS),
        generate.complete(40),
        generate.book(50),
        generate.star(60),
        generate.kronecker(6, seed=1),
    )
}
GRAPHS: tuple[str, ...] = (EMPTY, ATLAS, *STREAMS)

_missing = "g++ is not installed: kernels cannot be run without a GPU"
needs_compiler = pytest.mark.skipif(COMPILER is None and "CI" not in os.environ, reason=_missing)


@dataclass(frozen=True, slots=True)
class Known:
    graph: ww.Graph
    count: int


@cache
def known(name: str) -> Known:
    """A graph with the number of its triangles, by formula, by publication or by a matrix product."""
    if name == EMPTY:
        return Known(ww.Graph(np.empty((0, 2), np.int64), n=5), 0)
    if name in TRUTHS:
        return Known(ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"]), TRUTHS[name]["triangles"])
    stream = STREAMS[name]
    pairs, count = stream.pairs(), stream.expected_triangles
    return Known(ww.Graph(pairs, n=stream.n), count_by_product(pairs, stream.n) if count is None else count)


def on_device(graph: ww.Graph, order: str, relabelling: str, offset_type: Any = np.uint32) -> DeviceGraph:
    """An oriented form of a graph, in arrays of its own that end where the graph ends."""
    oriented = graph.oriented(order, relabelling, threads=1)
    return DeviceGraph(
        n=oriented.n,
        offsets=oriented.offsets.astype(offset_type),
        out_neighbours=oriented.out_neighbours.copy(),
        vertex_of=oriented.vertex_of.copy(),
        order=oriented.order,
        named_by=oriented.named_by,
        wedges=oriented.wedges,
    )


def usual_form(algorithm: str, graph: str, offset_type: Any = np.uint32) -> DeviceGraph:
    """A graph in the order and with the ids that an algorithm takes by default."""
    record = RECORDS[algorithm]
    return on_device(known(graph).graph, record.orders[0], record.relabellings[0], offset_type)


def prepared(record: Algorithm, graph: DeviceGraph, knobs: Mapping[str, int | str], device: Device) -> DeviceWork:
    answer = record.answers["count"]
    assert isinstance(answer, DeviceAnswer)
    return answer.prepare(graph, record.settings(knobs), device)


def all_launches(work: DeviceWork) -> Iterator[Launch]:
    """The launches of all batches; each batch is made when those before it were launched."""
    return (launch for batch in work.batches for launch in batch())


def counted(work: DeviceWork) -> tuple[int, int]:
    """Triangles and tests of a run."""
    work.found.fill(0)
    for launch in all_launches(work):
        launch()
    triangles, tests = work.found.tolist()
    return triangles, tests


@contextmanager
def small_launches(record: Algorithm) -> Iterator[bool]:
    """Let little work fill a launch; whether the algorithm says by constants ``LAUNCH_…`` how much it puts into one."""
    module = sys.modules[record.answers["count"].prepare.__module__]
    limits = {name: value for name, value in vars(module).items() if name.startswith("LAUNCH_")}
    with ExitStack() as patches:
        for name, limit in limits.items():
            small = dict.fromkeys(limit, SMALL_LAUNCH) if isinstance(limit, dict) else SMALL_LAUNCH
            patches.enter_context(patch.object(module, name, small))
        yield bool(limits)


def block_knob(record: Algorithm, block: int) -> dict[str, int | str]:
    """The block size, for algorithms that leave it open."""
    return {"block": block} if any(knob.name == "block" for knob in record.knobs) else {}


def knob_values(knob: Knob) -> tuple[int | str, ...]:
    """All choices, or the extremes and what is near the default; the default itself runs everywhere else."""
    if knob.choices:
        return knob.choices
    default = int(knob.default)
    tried = {knob.least, default // 2, default + 1, 2**31 - 1}
    return tuple(sorted(value for value in tried if value >= knob.least))


def settings(record: Algorithm) -> Iterator[dict[str, int | str]]:
    """One knob at a time at all values worth trying; two at a time where both have choices."""
    for knob in record.knobs:
        for value in knob_values(knob):
            yield {knob.name: value}
    for one, other in combinations([knob for knob in record.knobs if knob.choices], 2):
        for first, second in product(one.choices, other.choices):
            yield {one.name: first, other.name: second}


def takes_wide_offsets(algorithm: str) -> bool:
    """Whether it takes 2^31 arcs and more; those that do not say so in their limits."""
    return "2^31" not in RECORDS[algorithm].limits


@cache
def define_sets(algorithm: str) -> frozenset[tuple[str, Defines]]:
    """The stems and defines that an algorithm launches, over all orders and widths of offsets, and over all knobs."""
    record, device = RECORDS[algorithm], EmulatedDevice()
    widths = (np.uint32, np.uint64) if takes_wide_offsets(algorithm) else (np.uint32,)
    for order, relabelling, width in product(record.orders, record.relabellings, widths):
        counted(prepared(record, on_device(known(SKEWED).graph, order, relabelling, width), {}, device))
    for knobs in settings(record):
        with suppress(InputError):
            counted(prepared(record, usual_form(algorithm, SKEWED), knobs, device))
    return frozenset(device.launched)
