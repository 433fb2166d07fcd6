"""Emulated GPUs beside threads: a toy that counts on them, small graphs, and what every run has to leave behind."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wedgewise as ww
from emulate.streaming import TOY_BYTES, StreamingEmulator, toy
from wedgewise import generate
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import DEVICE_TASK_BYTES
from wedgewise.machine import gpu
from wedgewise.run import _hybrid_plan, _hybrid_queue
from wedgewise.run._hybrid_plan import WORK_ARRAYS, pair_up
from wedgewise.run.device_blocks import ARRAY_BYTES
from wedgewise.run.task_memory import TaskMemory
from wedgewise.run.timeline import Timeline
from wedgewise.stages.tasks import BlockCounts

KRONECKER = generate.kronecker(7, seed=3).pairs()
TOY_WORK = TOY_BYTES + WORK_ARRAYS * ARRAY_BYTES + DEVICE_TASK_BYTES
TOY_STREAM = TOY_WORK + 34 * DEVICE_TASK_BYTES  # with a batch of all tasks of five parts
Gpus = Callable[..., list[StreamingEmulator]]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpus]:
    """Make so many devices, which everybody finds, and an algorithm for them; small graphs get several batches."""
    made: list[StreamingEmulator] = []

    def make(count: int = 1, **options: Any) -> list[StreamingEmulator]:
        made.extend(StreamingEmulator(f"Emulated GPU {number}", **options) for number in range(count))
        monkeypatch.setattr(gpu, "find_devices", lambda: tuple(made))
        return made

    monkeypatch.setitem(registry(), ("toy", "cuda"), toy())
    monkeypatch.setattr(_hybrid_queue, "STARTING_SECONDS", 0.0)
    yield make
    for device in made:
        device.close()


@pytest.fixture(scope="module")
def graph() -> ww.Graph:
    return ww.Graph(KRONECKER)


@pytest.fixture(scope="module")
def truth(graph: ww.Graph) -> int:
    return ww.count(graph, device="cpu", algorithm="reference")


def hybrid(graph: Any, *, threads: int = 3, algorithm: str = "toy", **knobs: Any) -> ww.Result:
    return ww.run("count", graph, device="hybrid", algorithm=algorithm, threads=threads, knobs={"parts": 5, **knobs})


def spans_by_place(timeline: Timeline) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for span in timeline.spans:
        found.setdefault(span.place, []).append((span.begin, span.end))
    return found


def tasks_in(timeline: Timeline, *, on_cpu: bool | None = None) -> int:
    """How many tasks were begun, or begun on one side."""
    begun = [span for span in timeline.spans if not span.helps and on_cpu in (None, span.device == "cpu")]
    return sum(span.tasks for span in begun)


def check_timeline(result: ww.Result) -> Timeline:
    """Every task in one batch, places one thing at a time, copies before kernels."""
    timeline = result.timeline
    assert timeline is not None
    assert result.plan.blocks is not None
    begun = Counter(span.task for span in timeline.spans if not span.helps)
    assert set(begun.values()) <= {1}
    assert tasks_in(timeline) == result.plan.blocks.tasks
    assert {span.task for span in timeline.spans} == set(begun)
    for spans in spans_by_place(timeline).values():
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(sorted(spans)))
    for span in timeline.spans:
        assert 0 <= span.begin <= span.end <= timeline.seconds
        assert span.estimate > 0
        assert all(copy.begin <= copy.end for copy in span.copies)
        assert all(0 <= copy.filled[0] <= copy.filled[1] <= copy.end for copy in span.copies)
    assert {(span.device, span.place) for span in timeline.spans} <= set(timeline.places)
    return timeline


def planned_sizes(counts: BlockCounts) -> _hybrid_plan.TaskSizes:
    pairing = pair_up("keystone", None)
    memory = TaskMemory(counts, pairing.cpu.triples_on_cpu("count"), pairing.cpu_knobs, 1)
    return _hybrid_plan.TaskSizes(memory, pairing, blocks_are_there=True)


class BrokenError(Exception):
    pass


def break_down(number: int, at: int) -> None:
    if number == at:
        raise BrokenError(f"number {at}")
