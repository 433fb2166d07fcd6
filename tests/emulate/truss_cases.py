"""What a device finds of trusses: every registered algorithm for CUDA, compared with the reference arc by arc."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from helpers.graphs import TRUTHS, fixture_pairs, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from emulate.emulated_cases import BLOCKS, SMALL_LAUNCH, WIDE_OFFSETS_FROM, block_knob, on_device, settings
from emulate.emulator import Defines, EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import TRUSSES, Algorithm, FoundTruss, TrussJob
from wedgewise.machine.gpu import Device

RECORDS: dict[str, Algorithm] = {
    record.name: record for record in ww.algorithms() if record.device == "cuda" and set(TRUSSES) & set(record.answers)
}
PLAIN, EMPTY = "random-40", "empty-5"
GRAPHS = (EMPTY, "star-70", "path-40", "book-100", "complete-34", "random-25", "skewed-6")


@dataclass(frozen=True, slots=True)
class TrussCase:
    """What is found of a graph; an order other than the first, offsets of 64 bits, launches of little work."""

    algorithm: str
    graph: str
    computes: str = "trussness"
    k: int | None = None
    knobs: dict[str, int | str] = field(default_factory=dict)
    order: str = ""
    relabelling: str = ""
    wide_offsets: bool = False
    small_launches: bool = False

    @property
    def record(self) -> Algorithm:
        return RECORDS[self.algorithm]

    @property
    def orientation(self) -> tuple[str, str]:
        return self.order or self.record.orders[0], self.relabelling or self.record.relabellings[0]


@cache
def graph_of(name: str) -> ww.Graph:
    """A graph by a short name: a family of the generators, random pairs, or a published one."""
    if name in TRUTHS:
        return ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])
    family, _, size = name.partition("-")
    if family == "empty":
        return ww.Graph(np.empty((0, 2), np.int64), n=int(size))
    if family == "random":
        n = int(size)
        return ww.Graph(random_pairs(n, 8 * n, seed=n), n=n + 3)
    stream = generate.kronecker(int(size), seed=1) if family == "skewed" else getattr(generate, family)(int(size))
    return ww.Graph(stream.pairs(), n=stream.n)


@cache
def numbers_by_arc(graph: str, order: str, relabelling: str) -> NDArray[np.uint32]:
    """The truss numbers that the reference finds for the same oriented graph."""
    oriented = graph_of(graph).oriented(order, relabelling, threads=1)
    numbers: NDArray[np.uint32] = find("reference", "cpu").truss_on_cpu("trussness").find(oriented, TrussJob()).filled
    return numbers


def found_by(case: TrussCase, device: Device) -> FoundTruss:
    """What the device finds, with arrays of its own."""
    form = on_device(graph_of(case.graph), *case.orientation, np.uint64 if case.wide_offsets else np.uint32)
    arrays = {name: device.xp.asarray(getattr(form, name)) for name in ("offsets", "out_neighbours", "vertex_of")}
    job = TrussJob(case.k, case.record.settings(case.knobs))
    with little_work(case.record) if case.small_launches else nullcontext():
        return case.record.truss_on_device(case.computes).find(replace(form, **arrays), job, device)


def check(case: TrussCase, device: Device) -> None:
    """Find it, and compare."""
    found, numbers = found_by(case, device), numbers_by_arc(case.graph, *case.orientation)
    kmax = int(numbers.max(initial=2))
    filled, k = np.array(found.filled.tolist()), kmax if case.k is None else case.k
    assert (found.k, len(filled), type(found.rounds)) == (k, len(numbers), int), case
    assert str(found.filled.dtype) == ("uint32" if case.computes == "trussness" else "bool"), case
    np.testing.assert_array_equal(filled, numbers if case.computes == "trussness" else numbers >= k, str(case))


@contextmanager
def little_work(record: Algorithm) -> Iterator[None]:
    """Let little work fill a launch, by the constants ``LAUNCH_…`` of an algorithm's module and its helpers."""
    with ExitStack() as patches:
        for module in modules_of(record):
            for name in [name for name in vars(module) if name.startswith("LAUNCH_")]:
                patches.enter_context(patch.object(module, name, SMALL_LAUNCH))
        yield


def modules_of(record: Algorithm) -> set[ModuleType]:
    """The module that finds trusses, and those of its own that it takes classes and functions from."""
    home = sys.modules[record.truss_on_device(TRUSSES[0]).find.__module__]
    package = home.__name__.rpartition(".")[0]
    names = {getattr(item, "__module__", None) or "" for item in vars(home).values()}
    return {home, *(sys.modules[name] for name in names if name.startswith(f"{package}."))}


def cases_of(algorithm: str) -> Iterator[TrussCase]:
    """Every answer on rows of any length; on one graph every order, knob, width and many launches."""
    plain, record = TrussCase(algorithm, PLAIN), RECORDS[algorithm]
    asked: list[dict[str, Any]] = [{"computes": "trussness"}, {"computes": "max_truss"}]
    asked += [{"computes": "k_truss", "k": k} for k in (3, 5, 7)]
    small = block_knob(record, BLOCKS[0])
    varied = [replace(plain, order=order, relabelling=by) for order, by in product(record.orders, record.relabellings)]
    varied += [replace(plain, knobs=knobs) for knobs in (small, *settings(record))]
    varied += [replace(plain, wide_offsets=True)] if record.most_arcs > WIDE_OFFSETS_FROM else []
    varied += [replace(plain, knobs=small, small_launches=True)]
    varied += [replace(plain, graph=graph, knobs=small) for graph in GRAPHS]
    return (replace(case, **wanted) for case in varied for wanted in asked)


def check_all(device: Device) -> None:
    """All of them on one device."""
    for algorithm in RECORDS:
        for case in cases_of(algorithm):
            check(case, device)


@cache
def define_sets(algorithm: str) -> frozenset[tuple[str, Defines]]:
    """The stems and defines that an algorithm launches."""
    device = EmulatedDevice()
    for case in cases_of(algorithm):
        check(case, device)
    return frozenset(device.launched)
