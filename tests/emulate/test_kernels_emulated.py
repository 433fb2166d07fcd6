"""Every registered algorithm for CUDA, host code and kernels, without a GPU: the counts are right."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from emulate.emulated_cases import (
    ATLAS,
    BLOCKS,
    EMPTY,
    GRAPHS,
    RECORDS,
    SKEWED,
    all_launches,
    block_knob,
    counted,
    known,
    needs_compiler,
    on_device,
    prepared,
    settings,
    small_launches,
    takes_wide_offsets,
    usual_form,
)
from emulate.emulator import EmulatedDevice
from wedgewise.errors import InputError, WedgewiseError
from wedgewise.graph import DeviceGraph

pytestmark = needs_compiler
VARIED = (EMPTY, ATLAS, SKEWED, "complete-40", "book-50")
LARGEST_BLOCK = 1024

ORIENTATIONS = tuple(
    (name, order, relabelling)
    for name, record in RECORDS.items()
    for order, relabelling in product(record.orders, record.relabellings)
)
SETTINGS = tuple(
    pytest.param(name, knobs, id=f"{name}-{knobs}") for name in RECORDS for knobs in settings(RECORDS[name])
)

for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


@for_every_algorithm
def test_every_answer_is_looked_at_here(algorithm: str) -> None:
    assert set(RECORDS[algorithm].answers) == {"count"}


@for_every_algorithm
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_counts_at_small_blocks(algorithm: str, graph: str, block: int, device: EmulatedDevice) -> None:
    record = RECORDS[algorithm]
    work = prepared(record, usual_form(algorithm, graph), block_knob(record, block), device)
    assert work.found.tolist() == [0, 0]
    triangles, tests = counted(work)
    assert triangles == known(graph).count
    assert counted(work) == (triangles, tests)


@for_every_algorithm
@pytest.mark.parametrize("graph", [SKEWED, "complete-40"])
def test_counts_at_the_largest_block(algorithm: str, graph: str, device: EmulatedDevice) -> None:
    record = RECORDS[algorithm]
    work = prepared(record, usual_form(algorithm, graph), block_knob(record, LARGEST_BLOCK), device)
    assert counted(work)[0] == known(graph).count


@pytest.mark.parametrize("graph", VARIED)
@pytest.mark.parametrize(("algorithm", "order", "relabelling"), ORIENTATIONS)
def test_counts_in_every_order(
    algorithm: str, order: str, relabelling: str, graph: str, device: EmulatedDevice
) -> None:
    form = on_device(known(graph).graph, order, relabelling)
    assert counted(prepared(RECORDS[algorithm], form, {}, device))[0] == known(graph).count


@pytest.mark.parametrize("graph", VARIED)
@pytest.mark.parametrize("algorithm", [name for name in RECORDS if takes_wide_offsets(name)])
def test_counts_with_offsets_of_64_bits(algorithm: str, graph: str, device: EmulatedDevice) -> None:
    work = prepared(RECORDS[algorithm], usual_form(algorithm, graph, np.uint64), {}, device)
    assert counted(work)[0] == known(graph).count


@pytest.mark.parametrize("algorithm", [name for name in RECORDS if not takes_wide_offsets(name)])
def test_too_many_arcs_are_refused_before_memory_is_taken(algorithm: str, device: EmulatedDevice) -> None:
    record, endless = RECORDS[algorithm], np.broadcast_to(np.uint32(0), 2**31)
    offsets, vertices = np.array([0, 2**31], np.uint64), np.zeros(1, np.uint32)
    graph = DeviceGraph(1, offsets, endless, vertices, record.orders[0], record.relabellings[0], 2**61)
    with pytest.raises(WedgewiseError, match="2\\^31"):
        prepared(record, graph, {}, device)


@for_every_algorithm
@pytest.mark.parametrize("graph", VARIED)
def test_counts_over_many_launches(algorithm: str, graph: str, device: EmulatedDevice) -> None:
    record = RECORDS[algorithm]
    with small_launches(record) as several:
        work = prepared(record, usual_form(algorithm, graph), block_knob(record, 32), device)
        assert len(list(all_launches(work))) > 1 or graph != SKEWED or not several
        assert counted(work)[0] == known(graph).count


@pytest.mark.parametrize("graph", [EMPTY, SKEWED, "book-50", pytest.param(ATLAS, marks=pytest.mark.deep)])
@pytest.mark.parametrize(("algorithm", "knobs"), SETTINGS)
def test_knobs_do_not_change_counts(
    algorithm: str, knobs: dict[str, int | str], graph: str, device: EmulatedDevice
) -> None:
    record = RECORDS[algorithm]
    try:
        work = prepared(record, usual_form(algorithm, graph), block_knob(record, 32) | knobs, device)
    except InputError:
        assert knobs.items() - record.settings(None).items()
        return
    assert counted(work)[0] == known(graph).count


@for_every_algorithm
def test_a_small_device_counts_the_same(algorithm: str) -> None:
    small = EmulatedDevice(sms=1, shared_bytes=48 << 10)
    work = prepared(RECORDS[algorithm], usual_form(algorithm, SKEWED), {}, small)
    assert counted(work)[0] == known(SKEWED).count
