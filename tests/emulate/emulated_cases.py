"""What the emulated device answers: every registered algorithm for CUDA that counts, on small graphs that are known."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, pairwise, product
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from helpers.graphs import CLOSED_FORMS, TRUTHS, count_by_product, fixture_pairs

import wedgewise as ww
from emulate.emulator import COMPILER, Defines, EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import MAX_ARCS, Algorithm, DeviceWork, Knob, Launch, Work
from wedgewise.errors import InputError
from wedgewise.generate import EdgeStream
from wedgewise.machine.gpu import Device
from wedgewise.stages import DeviceGraph

RECORDS: dict[str, Algorithm] = {
    record.name: record for record in ww.algorithms() if record.device == "cuda" and "count" in record.answers
}
ANSWERS: tuple[tuple[str, str], ...] = tuple(
    (name, question) for name, record in RECORDS.items() for question in record.answers
)
SUMS = {"triangles": 3, "edge_support": 3, "list_triangles": 1}  # of all that is filled in, in triangles
ATLAS, COMPLETE, EMPTY, SKEWED = "atlas_union", "complete-40", "no edges", "kronecker-6-seed1"
BLOCKS = (32, 64, 128)
MAX_PAIRS = 2500
SMALL_LAUNCH = 64
WIDE_OFFSETS_FROM = 1 << 31
UNWRITTEN = 2**32 - 1
SOME_GRAPHS = (EMPTY, ATLAS, SKEWED, COMPLETE, "star-300", "book-300", "path-65")

# Knobs at which a small graph has all that an algorithm otherwise meets on large ones alone.
LIKE_LARGE: dict[str, tuple[dict[str, int | str], ...]] = {
    "keystone": (
        {"near_hubs": 20, "hubs": 45, "least_far_loads": 1, "batches": 3},
        {"near_hubs": 9, "hubs": 41, "least_far_loads": 9, "long_item": 3},
    ),
}

STREAMS: dict[str, EdgeStream] = {
    stream.name: stream
    for stream in (
        *(form for form in CLOSED_FORMS if form.pairs_count <= MAX_PAIRS),
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


@dataclass(frozen=True, slots=True)
class Case:
    """An answer for a graph; an order and ids other than the first, offsets of 64 bits, launches of little work."""

    algorithm: str
    graph: str
    knobs: dict[str, int | str] = field(default_factory=dict)
    order: str = ""
    relabelling: str = ""
    wide_offsets: bool = False
    small_launches: bool = False
    question: str = "count"

    @property
    def orientation(self) -> tuple[str, str]:
        record = RECORDS[self.algorithm]
        return self.order or record.orders[0], self.relabelling or record.relabellings[0]

    def prepare(self, device: Device) -> DeviceWork:
        record, offset_type = RECORDS[self.algorithm], np.uint64 if self.wide_offsets else np.uint32
        form = on_device(known(self.graph).graph, *self.orientation, offset_type)
        return record.on_device(self.question).prepare(form, record.settings(self.knobs), device)


def check(case: Case, device: Device) -> tuple[int, int]:
    """Answer, and compare with what is known and with the CPU's answer by id or by arc; the launches and the tests."""
    with small_launches(RECORDS[case.algorithm], case.question) if case.small_launches else nullcontext():
        work = case.prepare(device)
        assert work.found.tolist() == [0, 0], case
        assert work.filled is None or not work.filled.any(), case
        launches = sum(map(_launch_all, work.batches))
        triangles, tests = work.found.tolist()
        assert triangles == known(case.graph).count, f"{triangles} triangles: {case}"
        if case.question in SUMS:
            _check_filled(case, work)
    return launches, tests


def _check_filled(case: Case, work: DeviceWork) -> None:
    expected = answered_on_cpu(case.question, case.graph, *case.orientation)
    assert expected.filled is not None
    assert work.filled is not None
    assert work.filled.dtype == expected.filled.dtype, case
    np.testing.assert_array_equal(work.filled, expected.filled, str(case))
    assert sum(work.filled.tolist()) == SUMS[case.question] * known(case.graph).count, case
    if case.question == "list_triangles":
        np.testing.assert_array_equal(_listed(work), _listed(expected), str(case))


@cache
def answered_on_cpu(question: str, graph: str, order: str, relabelling: str) -> Work:
    """The finished work of the obvious algorithm on the same oriented graph."""
    oriented = known(graph).graph.oriented(order, relabelling, threads=1)
    work = find("reference", "cpu").on_cpu(question).prepare(oriented, {}, 1)
    for each in work.passes:
        for begin, end in pairwise(each.bounds.tolist()):
            each.run(begin, end, None)
    return work


def _listed(work: DeviceWork | Work) -> Any:
    """The triangles of all arcs, written in two halves."""
    assert work.filled is not None
    arcs = len(work.filled)
    written = []
    for begin, end in pairwise((0, arcs // 2, arcs)):
        triples = np.full(3 * int(work.filled[begin:end].sum(dtype=np.int64)), UNWRITTEN, np.uint32)
        assert work.fill is not None
        work.fill(begin, end, triples, *(() if isinstance(work, DeviceWork) else (None,)))
        written.append(triples)
    return np.concatenate(written).reshape(-1, 3)


def all_launches(work: DeviceWork) -> Iterator[Launch]:
    """The launches of all batches; each batch is made when those before it were launched."""
    return (launch for batch in work.batches for launch in batch())


def counted(work: DeviceWork, before: int = 0) -> tuple[int, int]:
    """Triangles and tests of a run, added to so many."""
    work.found.fill(before)
    for batch in work.batches:
        _launch_all(batch)
    triangles, tests = work.found.tolist()
    return triangles, tests


def _launch_all(batch: Callable[[], tuple[Launch, ...]]) -> int:
    """How many launches a batch has; nothing keeps what they read when the next batch is made."""
    launches = batch()
    for launch in launches:
        launch()
    return len(launches)


@contextmanager
def small_launches(record: Algorithm, question: str) -> Iterator[None]:
    """Let little work fill a launch, where an algorithm says by constants ``LAUNCH_…`` how much it puts into one."""
    module, limits = launch_limits(record, question)
    with ExitStack() as patches:
        for name, limit in limits.items():
            small = dict.fromkeys(limit, SMALL_LAUNCH) if isinstance(limit, dict) else SMALL_LAUNCH
            patches.enter_context(patch.object(module, name, small))
        yield


def launch_limits(record: Algorithm, question: str) -> tuple[ModuleType, dict[str, Any]]:
    """What says how much is put into a launch."""
    module = sys.modules[record.on_device(question).prepare.__module__]
    return module, {name: value for name, value in vars(module).items() if name.startswith("LAUNCH_")}


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
    """One knob at a time at all values worth trying, two at a time where both have choices, and `LIKE_LARGE`."""
    for knob in record.knobs:
        for value in knob_values(knob):
            yield {knob.name: value}
    for one, other in combinations([knob for knob in record.knobs if knob.choices], 2):
        for first, second in product(one.choices, other.choices):
            yield {one.name: first, other.name: second}
    yield from LIKE_LARGE.get(record.name, ())


def takes_wide_offsets(algorithm: str) -> bool:
    """Whether it takes so many arcs that offsets have 64 bits."""
    return RECORDS[algorithm].most_arcs > WIDE_OFFSETS_FROM


def refuses_many_arcs(algorithm: str) -> bool:
    """Whether it takes fewer arcs than the graph types do."""
    return RECORDS[algorithm].most_arcs < MAX_ARCS


def cases_of(algorithm: str) -> list[Case]:
    """Every answer: some graphs; on a skewed one all orders, knobs, widths, two sizes of blocks and many launches."""
    record = RECORDS[algorithm]
    small, larger = (block_knob(record, block) for block in BLOCKS[:2])
    cases = [Case(algorithm, graph, small) for graph in SOME_GRAPHS]
    cases += [Case(algorithm, SKEWED, small, *form) for form in product(record.orders, record.relabellings)]
    cases += [Case(algorithm, SKEWED, small | setting) for setting in settings(record) if "block" not in setting]
    cases += [Case(algorithm, SKEWED, larger), Case(algorithm, SKEWED, small, small_launches=True)]
    if takes_wide_offsets(algorithm):
        cases.append(Case(algorithm, SKEWED, small, wide_offsets=True))
    return [replace(case, question=question) for question, case in product(record.answers, cases)]


@cache
def define_sets(algorithm: str) -> frozenset[tuple[str, Defines]]:
    """The stems and defines that an algorithm launches, over all answers, orders, widths of offsets and knobs."""
    record, device = RECORDS[algorithm], EmulatedDevice()
    widths = (False, True) if takes_wide_offsets(algorithm) else (False,)
    cases = [Case(algorithm, SKEWED, {}, *form) for form in product(record.orders, record.relabellings, widths)]
    cases += [Case(algorithm, SKEWED, knobs) for knobs in settings(record)]
    for case, question in product(cases, record.answers):
        with suppress(InputError):
            check(replace(case, question=question), device)
    return frozenset(device.launched)
