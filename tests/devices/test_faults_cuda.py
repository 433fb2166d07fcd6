"""Faults of a real device: any allocation fails, memory is a part of the need, nothing is lost to the driver; and every
answer of every algorithm has the same bits in blocks of any size, again and again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count, product
from typing import Any

import numpy as np
import pytest
from emulate.emulated_cases import block_knob
from helpers.graphs import random_pairs, truss_details
from helpers.same_answers import assert_same

import wedgewise as ww
from devices.real_device import held_bytes, needs_device
from devices.taken_memory import left
from wedgewise.algorithms._contract import Algorithm
from wedgewise.generate import kronecker
from wedgewise.machine import gpu

pytestmark = needs_device
BLOCKS = (32, 64, 128, 256, 512, 1024)
REPEATS = 20
PERCENT = (100, 50, 25, 10, 2)
QUESTIONS = ("count", "triangles", "edge_support", "list_triangles", "clustering", "trussness", "k_truss")
MIN_LEFT = 8 << 20  # about what a driver keeps to itself
MIN_ALLOCATIONS = 5  # of a question and the graph it is about
MAX_LOST = 16 << 20  # of the driver's own, which comes and goes
RECORDS = tuple(record for record in ww.algorithms() if record.device == "cuda")
TABLE = tuple(
    pytest.param(record, question, id=f"{record.name}-{question}")
    for record, question in product(RECORDS, QUESTIONS)
    if question in record.answers
)


@cache
def small() -> ww.Graph:
    """A skewed graph with hubs, beside one without, and vertices that have no edges."""
    skewed = kronecker(11, seed=1).pairs()
    return ww.Graph(np.concatenate([skewed, 2048 + random_pairs(400, 4000, seed=3)]), n=2500)


@cache
def large(question: str) -> ww.Graph:
    """Of a size whose answer fits a test."""
    return ww.Graph(kronecker(14 if question == "list_triangles" else 18, seed=1).pairs())


def asked(question: str, graph: ww.Graph, **how: Any) -> ww.Result:
    return ww.run(question, graph, **how, **truss_details(question, 4))


@cache
def expected(question: str, graph: ww.Graph) -> Any:
    return asked(question, graph, device="cpu").answer


@pytest.mark.parametrize(("record", "question"), TABLE)
def test_every_answer_has_the_same_bits_in_any_blocks_again_and_again(record: Algorithm, question: str) -> None:
    ways = [block_knob(record, block) for block in BLOCKS] + [{}] * REPEATS
    for knobs in ways:
        result = asked(question, small(), algorithm=record.name, device="cuda", knobs=knobs)
        assert (result.algorithm, result.device) == (record.name, "cuda")
        assert_same(result.answer, expected(question, small()))


class Refusing:
    """The device's pool, of which one request fails, or that one and all later ones."""

    def __init__(self, pool: Any, error: type[Exception], behind: int, always: bool) -> None:
        self._pool, self._error, self._behind, self._always = pool, error, behind, always
        self.asked = 0

    def malloc(self, size: int) -> Any:
        number = self.asked
        self.asked += 1
        if number == self._behind or (self._always and number > self._behind):
            raise self._error(size, 0)
        return self._pool.malloc(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


@contextmanager
def refusing(behind: int, always: bool) -> Iterator[Refusing]:
    """Let the device's pool refuse a request."""
    device: Any = gpu.find_device()
    pool = device._pool
    device._pool = Refusing(pool, device.xp.cuda.memory.OutOfMemoryError, behind, always)
    try:
        yield device._pool
    finally:
        device._pool = pool


@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_any_allocation_may_fail(question: str, always: bool) -> None:
    asked(question, small(), device="cuda")
    small().release_device()
    before = held_bytes()
    for behind in count():
        with refusing(behind, always) as pool:
            result = asked(question, small(), device="cuda")
            small().release_device()
        assert_same(result.answer, expected(question, small()))
        assert held_bytes() == before, behind
        if pool.asked <= behind:
            assert result.device == "cuda"
            break
        assert result.device == "cuda" or any("too little memory" in reason for reason in result.plan.reasons), behind
    assert behind >= MIN_ALLOCATIONS


@pytest.mark.parametrize("percent", PERCENT)
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_ladder_of_memory(question: str, percent: int) -> None:
    graph = large(question)
    asked(question, graph, device="cuda")
    oriented = graph.device_nbytes
    need = oriented + ww.explain(question, graph, device="cuda", **truss_details(question, 4)).bytes_needed
    graph.release_device()
    before, wanted = held_bytes(), max(need * percent // 100, MIN_LEFT)
    with left(wanted):
        result = asked(question, graph, device="cuda")
        graph.release_device()
    assert_same(result.answer, expected(question, graph))
    assert held_bytes() == before
    if wanted < oriented:
        assert result.device == "cpu"
    if result.device == "cpu":
        assert any(
            reason.startswith("on the CPU, because the GPU has too little memory") for reason in result.plan.reasons
        )
    assert asked(question, graph, device="cuda").device == "cuda"
    graph.release_device()


ASK_EVERYTHING = """
import gc, sys
import wedgewise as ww
from wedgewise.generate import kronecker
from wedgewise.machine import gpu

def ask_everything():
    graph = ww.Graph(pairs, device="cuda")
    for record in ww.algorithms():
        if record.device == "cuda":
            for question in record.answers:
                details = {"k": 4} if question == "k_truss" else {}
                if question in sys.argv[1:]:
                    ww.run(question, graph, device="cuda", algorithm=record.name, **details)
    del graph
    gc.collect()

pairs = kronecker(12, seed=1).pairs()
device = gpu.find_device()
for _ in range(2):
    ask_everything()
free = []
for _ in range(8):
    ask_everything()
    with device.memory():
        pass
    free.append(int(device.xp.cuda.runtime.memGetInfo()[0]))
print(free[0] - free[-1])
"""


def test_nothing_is_lost_to_the_driver() -> None:
    child = [sys.executable, "-W", "ignore", "-c", ASK_EVERYTHING, *QUESTIONS]
    finished = subprocess.run(child, capture_output=True, text=True, check=False, timeout=200)
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) <= MAX_LOST
