"""Eager rounds through the emulator, against the reference; their launches and their memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import wedgewise as ww
from emulate.eager_cases import EagerCase, check, form_of, launches_of, small_cases
from emulate.emulated_cases import needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from emulate.intersections import noted_launches
from emulate.truss_cases import graph_of
from wedgewise import generate
from wedgewise.algorithms._contract import Shape, TrussJob
from wedgewise.algorithms._truss.rounds import peel
from wedgewise.algorithms.cpu.eager import GRANULARITY, EagerRows
from wedgewise.algorithms.gpu import eager
from wedgewise.algorithms.gpu.eager import EagerDeviceRows

pytestmark = needs_compiler
SLACK = 1 << 11  # Python's own objects

for_every_granularity = pytest.mark.parametrize("granularity", GRANULARITY.choices)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


@pytest.mark.parametrize("case", tuple(small_cases()), ids=str)
def test_trusses_are_those_of_the_reference(device: EmulatedDevice, case: EagerCase) -> None:
    check(case, device)


@for_every_granularity
def test_rounds_and_what_lives_behind_them_are_those_of_the_cpu(device: EmulatedDevice, granularity: str) -> None:
    form, oriented = form_of(EagerCase("random-40", 5)), graph_of("random-40").oriented("id")
    for k in (3, 5, 6):
        on_cpu = peel(EagerRows(oriented, granularity, 1), k, TrussJob(), form.m)
        assert peel(EagerDeviceRows(form, granularity, device), k, TrussJob(), form.m) == on_cpu


@pytest.mark.deep
def test_supports_do_not_wrap_at_16_bits(device: EmulatedDevice) -> None:
    """The spine of a book alone outlives a round; by arc 0 → 1 it stands at slot 0."""
    pages = 70_000
    form = on_device(ww.Graph(generate.book(pages).pairs(), n=pages + 2), "id", "rank")
    rows = EagerDeviceRows(form, "fine", device, block=1024)
    rows.run_round(1 << 16)
    assert rows.remaining == 1
    assert rows.survivors().nonzero()[0].tolist() == [0]


@for_every_granularity
def test_launches_cover_everything_once(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, granularity: str
) -> None:
    case = EagerCase("random-40", 4, granularity, small_launches=True)
    form, launches = form_of(case), noted_launches(monkeypatch, device)
    with launches_of(case):
        EagerDeviceRows(form, granularity, device).run_round(2)
    kernel = "credit_rows" if granularity == "coarse" else "credit_slots"
    ranges = [tuple(map(int, arguments[2:4])) for name, _, arguments in launches if name == kernel]
    assert len(ranges) > 2
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == (form.n if granularity == "coarse" else form.m + form.n)


def test_memory_is_as_predicted(device: EmulatedDevice) -> None:
    """What is held, what the search for the least support takes, and which arcs lived before: the peak."""
    form = form_of(EagerCase("random-300", 3))
    rows = EagerDeviceRows(form, "fine", device)
    peel(rows, 3, TrussJob(), form.m)
    held = sum(array.nbytes for array in vars(rows).values() if isinstance(array, np.ndarray) and len(array) > 2)
    tracemalloc.start()
    try:
        rows.least_support()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    predicted = eager.bytes_needed(Shape(form.n, form.m), {})
    assert 0.95 * predicted <= held + taken + form.m <= predicted + SLACK
