"""The answer to a request: its `Result`, its rows where they are streamed, and seconds by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wedgewise.machine import hardware
from wedgewise.result import Result
from wedgewise.run.plan import Plan
from wedgewise.stages import CleanReport, LabelledGraph
from wedgewise.version import __version__

if TYPE_CHECKING:
    from wedgewise.answer.store_results import StoreAnswer
    from wedgewise.run.timeline import Timeline
    from wedgewise.write.answers import Answers


@dataclass(frozen=True, slots=True)
class ResultWithRows:
    """The result of a request, and its rows where a table was asked for.

    Attributes
    ----------
    result : whole, but for the answer where its rows are streamed from a store
    table : its rows, where these were asked for
    stored : what of it is on disk
    """

    result: Result
    table: Callable[[], Answers] | None = None
    stored: StoreAnswer | None = None


def result_of(
    plan: Plan,
    cleaned: CleanReport,
    answer: Any,
    seconds: dict[str, float],
    *,
    tests: int = 0,
    verified: str | None = None,
    graph: LabelledGraph | None = None,
    task_seconds: Mapping[int, float] | None = None,
    timeline: Timeline | None = None,
) -> Result:
    """The result of a plan that was carried out."""
    return Result(
        answer=answer,
        question=plan.question,
        algorithm=plan.algorithm,
        device=plan.device,
        plan=plan,
        seconds=seconds,
        n=plan.n,
        m=plan.m,
        cleaned=cleaned,
        wedges_tested=tests,
        verified=verified,
        peak_bytes=hardware.peak_bytes(),
        machine=hardware.look().description,
        version=__version__,
        task_seconds=task_seconds or {},
        timeline=timeline,
        graph=graph,
    )


class Clock:
    """Wall-clock seconds between laps, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[stage] = now - self._last
        self._last = now

    def add(self, laps: Mapping[str, float]) -> None:
        """Take over what another clock measured since the last lap; the next lap has what it has not."""
        for stage, taken in laps.items():
            self.laps[stage] = self.laps.get(stage, 0.0) + taken
        self._last = min(time.perf_counter(), self._last + sum(laps.values()))
