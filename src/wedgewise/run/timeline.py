"""What ran where and when: the batches of a hybrid count on streams and threads, and the copies of their blocks.

    place         a stream of a device, or a thread
    busy          the seconds of a place's spans
    idle tail     from the end of a place's last span to the end of all
    overlap       the seconds in which a device copied and counted at the same time
    filling       the seconds in which threads filled buffers that the bus then copied from

Seconds are those since the beginning of the count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import PurePath
from typing import Any

from wedgewise.errors import InputError
from wedgewise.machine.files import atomic_write

Interval = tuple[float, float]

WIDTH, LANE, LABEL = 960, 22, 150  # of a drawing
COLOURS = {"count": "#3b6ea5", "help": "#9db9d6", "fill": "#efcb9f", "copy": "#d98324"}


@dataclass(frozen=True, slots=True)
class Copy:
    """A piece of blocks that came to a device for a batch: when it was on the bus, and when its buffer was filled."""

    begin: float
    end: float
    nbytes: int
    filled: Interval


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """What one place did for one batch of tasks.

    Attributes
    ----------
    task : the number of the first one
    device : the name of the GPU, or "cpu"
    place : a stream of it, or a thread
    begin, end : of the kernels, or of the ranges of rows that the thread counted
    estimate : how much work the tasks were thought to be
    copies : of their blocks that were not on the device yet
    helps : whether another thread has begun them
    tasks : how many they are
    """

    task: int
    device: str
    place: str
    begin: float
    end: float
    estimate: float
    copies: tuple[Copy, ...] = ()
    helps: bool = False
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class PlaceUse:
    """What one place did of all."""

    place: str
    device: str
    tasks: int
    busy_seconds: float
    busy_share: float
    idle_tail_seconds: float


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What one GPU did of all: seconds in which at least one of its streams counted, or copied, or both.

    ``filling_seconds`` are those of the host's threads together, before the bus had what they copied.
    """

    device: str
    kernel_seconds: float
    copy_seconds: float
    overlap_seconds: float
    copied_bytes: int
    filling_seconds: float


@dataclass(frozen=True)
class Timeline:
    """The spans of one count, and the places that there were, busy or not, by device.

    Examples
    --------
    >>> spans = (BatchSpan(0, "cpu", "thread 0", 0.0, 2.0, 1.0), BatchSpan(1, "cpu", "thread 1", 0.0, 1.0, 1.0))
    >>> Timeline(spans, (("cpu", "thread 0"), ("cpu", "thread 1"))).uses[1].idle_tail_seconds
    1.0
    """

    spans: tuple[BatchSpan, ...]
    places: tuple[tuple[str, str], ...]

    @cached_property
    def seconds(self) -> float:
        """When the last place ended."""
        return max((span.end for span in self.spans), default=0.0)

    @cached_property
    def uses(self) -> tuple[PlaceUse, ...]:
        """Every place, in order."""
        return tuple(self._use(device, place) for device, place in self.places)

    @cached_property
    def device_uses(self) -> tuple[DeviceUse, ...]:
        """Every GPU, in order."""
        names = dict.fromkeys(device for device, _ in self.places if device != "cpu")
        return tuple(self._device_use(name) for name in names)

    def _use(self, device: str, place: str) -> PlaceUse:
        spans = [span for span in self.spans if span.place == place]
        busy, total = sum(span.end - span.begin for span in spans), self.seconds
        tail = total - max((span.end for span in spans), default=0.0)
        tasks = sum(span.tasks for span in spans if not span.helps)
        return PlaceUse(place, device, tasks, busy, busy / total if total else 0.0, tail)

    def _device_use(self, device: str) -> DeviceUse:
        spans = [span for span in self.spans if span.device == device]
        copies = [copy for span in spans for copy in span.copies]
        kernels = union((span.begin, span.end) for span in spans)
        copying = union((copy.begin, copy.end) for copy in copies)
        return DeviceUse(
            device,
            length(kernels),
            length(copying),
            common(kernels, copying),
            sum(copy.nbytes for copy in copies),
            sum(copy.filled[1] - copy.filled[0] for copy in copies),
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it in numbers, strings, lists and dicts."""
        return {
            "seconds": self.seconds,
            "places": [asdict(use) for use in self.uses],
            "devices": [asdict(use) for use in self.device_uses],
            "spans": [asdict(span) for span in sorted(self.spans, key=lambda span: (span.begin, span.place))],
        }

    def __str__(self) -> str:
        lines = [f"{self.seconds * 1e3:,.1f} ms"]
        for use in self.device_uses:
            lines.append(
                f"{use.device}: kernels {use.kernel_seconds * 1e3:,.1f} ms, copies {use.copy_seconds * 1e3:,.1f} ms of "
                f"{use.copied_bytes:,} bytes, both at once {use.overlap_seconds * 1e3:,.1f} ms; "
                f"threads filled buffers for {use.filling_seconds * 1e3:,.1f} ms"
            )
        lines += [
            f"{use.place}: {use.tasks:,} tasks, busy {use.busy_share:.0%}, idle for the last "
            f"{use.idle_tail_seconds * 1e3:,.1f} ms"
            for use in self.uses
        ]
        return "\n".join(lines)

    def to_svg(self) -> str:
        """A drawing: a lane per place, kernels and ranges above, the copies of their blocks below."""
        scale = (WIDTH - LABEL) / self.seconds if self.seconds else 0.0
        lane_of = {place: number for number, (_, place) in enumerate(self.places)}
        height = LANE * (len(self.places) + 1)
        shapes = [f'<text x="0" y="{LANE * at + 15}">{escape(place)}</text>' for place, at in lane_of.items()]
        for span in self.spans:
            top = LANE * lane_of[span.place]
            shapes += [_bar(*copy.filled, top + 14, 5, scale, "fill", span.task) for copy in span.copies]
            shapes += [_bar(copy.begin, copy.end, top + 14, 5, scale, "copy", span.task) for copy in span.copies]
            kind = "help" if span.helps else "count"
            shapes.append(_bar(span.begin, span.end, top + 3, 10, scale, kind, span.task))
        shapes.append(f'<text x="{LABEL}" y="{height - 7}">0 … {self.seconds * 1e3:,.1f} ms</text>')
        shapes.append(_legend(height))
        body = "\n".join(shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write it as ``.json`` or as a drawing, ``.svg``."""
        check_suffix(path)
        is_drawing = PurePath(path).suffix.lower() == ".svg"
        text = self.to_svg() if is_drawing else json.dumps(self.to_dict()) + "\n"
        with atomic_write(path) as file:
            file.write(text.encode())


def check_suffix(path: str | PathLike[str]) -> None:
    """Refuse a file that no timeline is written to."""
    if PurePath(path).suffix.lower() not in (".json", ".svg"):
        raise InputError(f"{path}: a timeline is written as .json or .svg; give the file one of these suffixes")


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same seconds in disjoint intervals, ascending."""
    joined: list[Interval] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined


def length(intervals: Sequence[Interval]) -> float:
    """How long disjoint intervals are together."""
    return sum(end - begin for begin, end in intervals)


def common(first: Sequence[Interval], second: Sequence[Interval]) -> float:
    """How long both of two unions last at the same time."""
    return max(0.0, length(first) + length(second) - length(union([*first, *second])))


def _bar(begin: float, end: float, top: int, height: int, scale: float, kind: str, task: int) -> str:
    left, width = LABEL + begin * scale, max(0.5, (end - begin) * scale)
    title = f"task {task}, {kind}: {begin * 1e3:.3f} … {end * 1e3:.3f} ms"
    return (
        f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{height}" fill="{COLOURS[kind]}">'
        f"<title>{title}</title></rect>"
    )


def _legend(height: int) -> str:
    return "".join(
        f'<rect x="{LABEL + 300 + 90 * number}" y="{height - 16}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{LABEL + 315 + 90 * number}" y="{height - 7}">{kind}</text>'
        for number, (kind, colour) in enumerate(COLOURS.items())
    )
