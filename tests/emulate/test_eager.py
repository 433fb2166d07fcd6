"""Eager k-truss through the emulator, against the reference; its launches, its memory, and what it refuses."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from emulate.copying import EmulatedGpu
from emulate.eager_cases import EagerCase, check, form_of, graph_of, launches_of, referred, small_cases
from emulate.emulated_cases import needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from emulate.intersections import noted_launches
from emulate.sanitized import Job, run_apart
from wedgewise import generate
from wedgewise.algorithms.cpu._eager import EagerRows
from wedgewise.algorithms.gpu._eager import EagerDeviceRows, eager_device_bytes
from wedgewise.errors import InputError, PreconditionError
from wedgewise.truss.eager import (
    GRANULARITY,
    eager_k_truss,
    eager_k_truss_on_device,
    eager_max_truss,
    eager_max_truss_on_device,
    peel,
)

pytestmark = needs_compiler
CASES = tuple(small_cases())
SLACK = 1 << 11  # Python's own objects

for_every_granularity = pytest.mark.parametrize("granularity", GRANULARITY.choices)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_trusses_are_those_of_the_reference(device: EmulatedDevice, case: EagerCase) -> None:
    check(case, device)


@for_every_granularity
def test_every_k_up_to_behind_the_last(device: EmulatedDevice, granularity: str) -> None:
    for k in range(2, 8):
        check(EagerCase("random-25", k, granularity), device)
    assert not referred("random-25", 7).any()


@pytest.mark.deep
@for_every_granularity
def test_atlas_union(device: EmulatedDevice, granularity: str) -> None:
    graph = ww.Graph(fixture_pairs("atlas_union"), n=TRUTHS["atlas_union"]["n"])
    form = on_device(graph, "id", "rank")
    for k, edges in {3: 9_387, 4: 3_745, 5: 799, 6: 131, 7: 21, 8: 0}.items():
        found = eager_k_truss_on_device(form, k, granularity, device)
        assert found.sum() == edges
        np.testing.assert_array_equal(found, eager_k_truss(graph.simple, k))


@for_every_granularity
def test_rounds_and_what_lives_behind_them_are_those_of_the_cpu(device: EmulatedDevice, granularity: str) -> None:
    form, _ = form_of(EagerCase("random-40", 5))
    oriented = graph_of("random-40").oriented("id")
    for k in (3, 5, 6):
        on_cpu = peel(EagerRows(oriented, granularity, 1), k)
        assert peel(EagerDeviceRows(form, granularity, device), k) == on_cpu


def test_supports_do_not_wrap_at_16_bits(device: EmulatedDevice) -> None:
    """The spine of a book alone outlives a round; by arc 0 → 1 it stands at slot 0."""
    pages = 70_000
    form = on_device(ww.Graph(generate.book(pages).pairs(), n=pages + 2), "id", "rank")
    rows = EagerDeviceRows(form, "fine", device, block=1024)
    rows.run_round(1 << 16)
    assert rows.living == 1
    assert rows.survivors().nonzero()[0].tolist() == [0]


@for_every_granularity
def test_launches_cover_everything_once(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, granularity: str
) -> None:
    case = EagerCase("random-40", 4, granularity, small_launches=True)
    form, _ = form_of(case)
    launches, done = noted_launches(monkeypatch, device), list[tuple[int, int]]()
    with launches_of(case):
        EagerDeviceRows(form, granularity, device).run_round(2, lambda *of: done.append(of))
    kernel = "credit_rows" if granularity == "coarse" else "credit_slots"
    ranges = [tuple(map(int, arguments[2:4])) for name, _, arguments in launches if name == kernel]
    assert len(ranges) > 2
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == (form.n if granularity == "coarse" else form.m + form.n)
    assert done == [(number + 1, len(ranges)) for number in range(len(ranges))]


def test_arrays_stay_on_the_device() -> None:
    device = EmulatedGpu()
    graph = graph_of("random-40")
    with device.memory():
        form, _ = form_of(EagerCase("random-40", 4))
        uploaded = replace(
            form,
            offsets=device.upload(form.offsets),
            out_neighbours=device.upload(form.out_neighbours),
            vertex_of=device.upload(form.vertex_of),
        )
        found = device.download(eager_k_truss_on_device(uploaded, 4, "fine", device))
        kmax, lives = eager_max_truss_on_device(uploaded, "coarse", device)
        last = device.download(lives)
    assert found.dtype == last.dtype == np.bool_
    np.testing.assert_array_equal(found, eager_k_truss(graph.simple, 4))
    assert kmax == eager_max_truss(graph.simple)[0]
    np.testing.assert_array_equal(last, eager_max_truss(graph.simple)[1])


def test_what_cannot_be_asked_for(device: EmulatedDevice) -> None:
    form = on_device(graph_of("random-40"), "degree", "indegree")
    with pytest.raises(PreconditionError, match="relabelling='rank'"):
        eager_k_truss_on_device(form, 3, "fine", device)
    with pytest.raises(InputError, match="granularity"):
        eager_k_truss_on_device(form_of(CASES[0])[0], 3, "medium", device)


def test_memory_is_as_predicted(device: EmulatedDevice) -> None:
    """What is held, what the search for the least support takes, and which arcs lived before: the peak."""
    form, _ = form_of(EagerCase("random-300", 3))
    rows = EagerDeviceRows(form, "fine", device)
    peel(rows, 3)
    held = sum(array.nbytes for array in vars(rows).values() if isinstance(array, np.ndarray) and len(array) > 2)
    tracemalloc.start()
    try:
        rows.least_support()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    predicted = eager_device_bytes(form.n, form.m)
    assert 0.95 * predicted <= held + taken + form.m <= predicted + SLACK


@pytest.mark.deep
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_has_anything_to_report(sanitizer: str) -> None:
    if report := run_apart(Job(sanitizer, checks=("emulate.eager_cases:check_all",))):
        pytest.fail(report, pytrace=False)
