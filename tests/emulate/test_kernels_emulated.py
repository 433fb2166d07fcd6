"""Every registered algorithm for CUDA, host code and kernels, without a GPU: the answers are right.

What varies does so on a skewed graph, and counts are compared on all graphs; the rest of the combinations is deep.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest

from emulate.emulated_cases import (
    ANSWERS,
    ATLAS,
    BLOCKS,
    COMPLETE,
    EMPTY,
    GRAPHS,
    RECORDS,
    SKEWED,
    SUMS,
    Case,
    block_knob,
    check,
    counted,
    launch_limits,
    needs_compiler,
    refuses_many_arcs,
    settings,
    takes_wide_offsets,
)
from emulate.emulator import EmulatedDevice
from wedgewise.errors import InputError, WedgewiseError
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
BOOK = "book-50"
VARIED = (EMPTY, ATLAS, SKEWED, COMPLETE, BOOK)
SMALLEST_BLOCK, LARGEST_BLOCK = BLOCKS[0], 1024


def on_graphs(*quick: str, deep: Iterable[str]) -> pytest.MarkDecorator:
    """Some graphs every time, others in the deep tests."""
    return pytest.mark.parametrize("graph", [*quick, *(pytest.param(graph, marks=pytest.mark.deep) for graph in deep)])


for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)
for_every_answer = pytest.mark.parametrize(("algorithm", "question"), ANSWERS)
on_varied_graphs = on_graphs(EMPTY, SKEWED, BOOK, deep=(ATLAS, COMPLETE))
ORIENTED = tuple(
    (name, question, *form)
    for name, question in ANSWERS
    for form in product(RECORDS[name].orders, RECORDS[name].relabellings)
)
SET = tuple(
    pytest.param(name, question, knobs, id=f"{name}-{question}-{knobs}")
    for name, question in ANSWERS
    for knobs in settings(RECORDS[name])
)


def in_small_blocks() -> list[Any]:
    """Counts on all graphs and arrays on varied ones in the smallest blocks, all in others on two graphs, are quick."""
    cases = []
    for (algorithm, question), graph, block in product(ANSWERS, GRAPHS, BLOCKS):
        quick = (SKEWED, COMPLETE) if block > SMALLEST_BLOCK else GRAPHS if question == "count" else VARIED
        marks = () if graph in quick else pytest.mark.deep
        cases.append(pytest.param(algorithm, question, graph, block, marks=marks))
    return cases


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


@for_every_algorithm
def test_every_answer_is_looked_at_here(algorithm: str) -> None:
    assert set(RECORDS[algorithm].answers) <= {"count", *SUMS}


@pytest.mark.compiled  # lines of the host that others run too
@pytest.mark.parametrize(("algorithm", "question", "graph", "block"), in_small_blocks())
def test_answers_at_small_blocks(algorithm: str, question: str, graph: str, block: int, device: EmulatedDevice) -> None:
    check(Case(algorithm, graph, block_knob(RECORDS[algorithm], block), question=question), device)


@for_every_answer
@on_graphs(SKEWED, deep=(COMPLETE,))
def test_answers_at_the_largest_block(algorithm: str, question: str, graph: str, device: EmulatedDevice) -> None:
    check(Case(algorithm, graph, block_knob(RECORDS[algorithm], LARGEST_BLOCK), question=question), device)


@for_every_answer
def test_a_second_run_gives_the_same(algorithm: str, question: str, device: EmulatedDevice) -> None:
    work = Case(algorithm, SKEWED, block_knob(RECORDS[algorithm], SMALLEST_BLOCK), question=question).prepare(device)
    first, filled = counted(work), None if work.filled is None else work.filled.tolist()
    assert counted(work) == first
    assert (None if work.filled is None else work.filled.tolist()) == filled


@for_every_algorithm
def test_sums_go_on_beyond_32_bits(algorithm: str, device: EmulatedDevice) -> None:
    work = Case(algorithm, SKEWED).prepare(device)
    found, tests = counted(work)
    assert counted(work, before=2**32 - 5) == (2**32 - 5 + found, 2**32 - 5 + tests)


@pytest.mark.compiled  # lines of the host that others run too
@on_varied_graphs
@pytest.mark.parametrize(("algorithm", "question", "order", "relabelling"), ORIENTED)
def test_answers_in_every_order(
    algorithm: str, question: str, order: str, relabelling: str, graph: str, device: EmulatedDevice
) -> None:
    check(Case(algorithm, graph, {}, order, relabelling, question=question), device)


@on_varied_graphs
@pytest.mark.parametrize(("algorithm", "question"), [answer for answer in ANSWERS if takes_wide_offsets(answer[0])])
def test_answers_with_offsets_of_64_bits(algorithm: str, question: str, graph: str, device: EmulatedDevice) -> None:
    check(Case(algorithm, graph, wide_offsets=True, question=question), device)


@pytest.mark.parametrize(("algorithm", "question"), [answer for answer in ANSWERS if refuses_many_arcs(answer[0])])
def test_too_many_arcs_are_refused_before_memory_is_taken(
    algorithm: str, question: str, device: EmulatedDevice
) -> None:
    record = RECORDS[algorithm]
    arcs = record.most_arcs
    limit = f"2^{arcs.bit_length() - 1}"
    assert limit in record.limits
    offsets, endless = np.array([0, arcs], np.uint64), np.broadcast_to(np.uint32(0), arcs)
    graph = DeviceGraph(1, offsets, endless, np.zeros(1, np.uint32), record.orders[0], record.relabellings[0], 2**61)
    with pytest.raises(WedgewiseError, match=f"fewer than {limit.replace('^', '.')} arcs"):
        record.on_device(question).prepare(graph, record.settings(None), device)


@for_every_answer
@on_graphs(EMPTY, SKEWED, BOOK, deep=(COMPLETE,))
def test_answers_over_many_launches(algorithm: str, question: str, graph: str, device: EmulatedDevice) -> None:
    record = RECORDS[algorithm]
    knobs = block_knob(record, SMALLEST_BLOCK)
    launches, _ = check(Case(algorithm, graph, knobs, small_launches=True, question=question), device)
    _, limits = launch_limits(record, question)
    assert launches > 1 or graph != SKEWED or not limits


def check_knobs(algorithm: str, question: str, knobs: dict[str, int | str], graph: str, device: EmulatedDevice) -> None:
    """The answer is the same, or knobs that are not the defaults are refused."""
    record = RECORDS[algorithm]
    small = block_knob(record, SMALLEST_BLOCK)
    try:
        check(Case(algorithm, graph, small | knobs, question=question), device)
    except InputError:
        assert knobs.items() - record.settings(None).items()


@pytest.mark.compiled  # lines of the host that others run too
@on_graphs(SKEWED, deep=(BOOK,))
@pytest.mark.parametrize(("algorithm", "question", "knobs"), SET)
def test_knobs_do_not_change_answers(
    algorithm: str, question: str, knobs: dict[str, int | str], graph: str, device: EmulatedDevice
) -> None:
    check_knobs(algorithm, question, knobs, graph, device)


@for_every_answer
def test_any_knobs_without_edges(algorithm: str, question: str, device: EmulatedDevice) -> None:
    for knobs in settings(RECORDS[algorithm]):
        check_knobs(algorithm, question, knobs, EMPTY, device)


@for_every_answer
def test_a_small_device_answers_the_same(algorithm: str, question: str) -> None:
    check(Case(algorithm, SKEWED, question=question), EmulatedDevice(sms=1, shared_bytes=48 << 10))
