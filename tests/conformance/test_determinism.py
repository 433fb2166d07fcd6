"""Every algorithm of every device gives the same integers in the same order, whoever does which part of the work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from emulate.copying import EmulatedGpu, install
from emulate.emulated_cases import block_knob, needs_compiler
from helpers.graphs import random_pairs, truss_details

import wedgewise as ww
from conformance.engines import RECORDS as CPU_RECORDS
from wedgewise import generate
from wedgewise.algorithms import _passes, _ranges
from wedgewise.algorithms._contract import Algorithm
from wedgewise.run import listing

pytestmark = [pytest.mark.deep, needs_compiler]
QUESTIONS = ("count", "triangles", "edge_support", "list_triangles", "trussness", "k_truss")
THREADS = (1, 2, 3)
BLOCKS = (32, 96, 256)
REPEATS = 2
TINY = ((_ranges, "TASK_ARCS", 32), (_passes, "MIN_TASKS_PER_THREAD", 1), (listing, "TASK_TRIANGLES", 50))
CUDA_RECORDS = tuple(record for record in ww.algorithms() if record.device == "cuda")
TABLE = tuple(
    pytest.param(record, question, id=f"{record.device}-{record.name}-{question}")
    for record, question in product((*CPU_RECORDS, *CUDA_RECORDS), QUESTIONS)
    if question in record.answers
)


@cache
def graph() -> ww.Graph:
    """A skewed graph with hubs, beside one without, and vertices that have no edges."""
    skewed = generate.kronecker(6, seed=1).pairs()
    return ww.Graph(np.concatenate([skewed, 64 + random_pairs(40, 200, seed=3)]), n=110)


@pytest.fixture(autouse=True)
def in_many_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a small graph have tasks for all threads, and let everybody find an emulated GPU."""
    for module, name, value in TINY:
        monkeypatch.setattr(module, name, value)
    install(EmulatedGpu(), monkeypatch)
    yield
    graph().release_device()


def ways(record: Algorithm) -> list[dict[str, Any]]:
    """Numbers of threads on the host, sizes of blocks on a device, each more than once."""
    varied: list[dict[str, Any]] = (
        [{"threads": threads} for threads in THREADS]
        if record.device == "cpu"
        else [{"knobs": block_knob(record, block)} for block in BLOCKS]
    )
    return varied * REPEATS


def answered(question: str, **how: Any) -> tuple[Any, ...]:
    """All bits of an answer, with its shape and type."""
    result = ww.run(question, graph(), **how, **truss_details(question, 4))
    assert (result.algorithm, result.device) == (how["algorithm"], how["device"])
    if question == "k_truss":
        return result.answer.k, result.answer.edges.dtype, result.answer.edges.tobytes()
    array = np.asarray(result.answer)
    return type(result.answer), array.dtype, array.shape, array.tobytes()


@cache
def expected(question: str) -> tuple[Any, ...]:
    return answered(question, algorithm="reference", device="cpu", threads=1)


@pytest.mark.parametrize(("record", "question"), TABLE)
def test_every_run_gives_the_same_bits(record: Algorithm, question: str) -> None:
    found = {answered(question, algorithm=record.name, device=record.device, **way) for way in ways(record)}
    assert found == {expected(question)}


def test_every_answer_has_a_second_way_on_either_device() -> None:
    for question, records in product(QUESTIONS, (CPU_RECORDS, CUDA_RECORDS)):
        assert any(question in record.answers for record in records), question
