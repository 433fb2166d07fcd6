"""The same count on several devices, again and again: for emulated ones, and for two that are one real GPU.

Who takes which task is another every time. A count that never ends is a failure that shows where every thread is.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import wedgewise as ww

Result = TypeVar("Result")

ALGORITHMS = ("keystone", "trust", "bbtc")
CUTS = {"blocks": (3, 1), "shares": (3, 2), "whole graphs": (1, 2)}  # parts, and shares of their tasks
DEVICE_BYTES = 1 << 30  # for each: devices that are one see the same free memory; trust's tables take half of it
TIMES, SECONDS = 5, 120.0


def count_on_several(graph: ww.Graph, triangles: int, algorithm: str, cut: str, **knobs: Any) -> None:
    """Count on all devices that are found, and threads; half of the tasks are for the devices alone."""
    parts, shares = CUTS[cut]
    given = {"parts": parts, "schedule": "cutoff", "device_bytes": DEVICE_BYTES, **knobs}
    for _ in range(TIMES):
        result = within(
            SECONDS,
            lambda: ww.run("count", graph, device="hybrid", algorithm=algorithm, threads=4, shares=shares, knobs=given),
        )
        blocks, timeline = result.plan.blocks, result.timeline
        assert result.answer == triangles
        assert blocks is not None
        assert timeline is not None
        assert (blocks.parts, blocks.tasks, blocks.device_bytes) == (parts, _tasks(parts) * shares, DEVICE_BYTES)
        assert sum(span.tasks for span in timeline.spans if span.device != "cpu") >= blocks.cutoff > 0
        assert len({device for device, _ in timeline.places} - {"cpu"}) == len(blocks.devices) > 1


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` returns, if it does in time; it is left to itself otherwise."""
    ended: Future[Result] = Future()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return ended.result(seconds)
    except TimeoutError as error:
        stacks = ["".join(traceback.format_stack(frame)) for frame in sys._current_frames().values()]
        raise AssertionError(f"still at work after {seconds:g} s:\n" + "\n".join(stacks)) from error


def _tasks(parts: int) -> int:
    """Of parts in their order, all of which have arcs."""
    return parts * (parts + 1) * (parts + 2) // 6
