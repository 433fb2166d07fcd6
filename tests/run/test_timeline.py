"""Every number that a timeline says, on one that is small enough to add up by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from wedgewise.errors import InputError, StorageError
from wedgewise.run.timeline import COLOURS, BatchSpan, Copy, DeviceUse, PlaceUse, Timeline, common, length, union

TIMELINE = Timeline(
    (
        BatchSpan(
            0, "A", "A stream 0", 1.0, 4.0, 9.0, (Copy(0.5, 1.0, 100, (0.0, 0.25)), Copy(0.0, 1.5, 20, (0.0, 1.0)))
        ),
        BatchSpan(1, "A", "A stream 1", 2.0, 5.0, 8.0, (Copy(1.0, 2.5, 30, (0.5, 1.0)),)),
        BatchSpan(2, "A", "A stream 0", 4.0, 6.0, 7.0),
        BatchSpan(3, "cpu", "thread 0", 0.0, 8.0, 2.0),
        BatchSpan(3, "cpu", "thread 1", 3.0, 7.0, 2.0, helps=True),
        BatchSpan(4, "cpu", "thread 1", 0.0, 1.0, 1.0),
    ),
    (("A", "A stream 0"), ("A", "A stream 1"), ("A", "A stream 2"), ("cpu", "thread 0"), ("cpu", "thread 1")),
)


def test_places() -> None:
    assert TIMELINE.seconds == 8
    assert TIMELINE.uses == (
        PlaceUse("A stream 0", "A", 2, 5.0, 0.625, 2.0),
        PlaceUse("A stream 1", "A", 1, 3.0, 0.375, 3.0),
        PlaceUse("A stream 2", "A", 0, 0.0, 0.0, 8.0),
        PlaceUse("thread 0", "cpu", 1, 8.0, 1.0, 0.0),
        PlaceUse("thread 1", "cpu", 1, 5.0, 0.625, 1.0),
    )


def test_devices() -> None:
    """Kernels from 1 to 6, copies from 0 to 2.5: both from 1 to 2.5; buffers filled for 0.25, 1 and 0.5 seconds."""
    assert TIMELINE.device_uses == (DeviceUse("A", 5.0, 2.5, 1.5, 150, 1.75),)


def test_text() -> None:
    uses = "kernels 5,000.0 ms, copies 2,500.0 ms of 150 bytes, both at once 1,500.0 ms"
    assert str(TIMELINE).splitlines() == [
        "8,000.0 ms",
        f"A: {uses}; threads filled buffers for 1,750.0 ms",
        "A stream 0: 2 tasks, busy 62%, idle for the last 2,000.0 ms",
        "A stream 1: 1 tasks, busy 38%, idle for the last 3,000.0 ms",
        "A stream 2: 0 tasks, busy 0%, idle for the last 8,000.0 ms",
        "thread 0: 1 tasks, busy 100%, idle for the last 0.0 ms",
        "thread 1: 1 tasks, busy 62%, idle for the last 1,000.0 ms",
    ]


def test_json(tmp_path: Path) -> None:
    TIMELINE.write(tmp_path / "t.json")
    told = json.loads((tmp_path / "t.json").read_text())
    assert (told["seconds"], len(told["places"]), len(told["spans"])) == (8, 5, 6)
    assert told["devices"] == [
        {
            "device": "A",
            "kernel_seconds": 5,
            "copy_seconds": 2.5,
            "overlap_seconds": 1.5,
            "copied_bytes": 150,
            "filling_seconds": 1.75,
        }
    ]
    assert told["places"][4] == {
        "place": "thread 1",
        "device": "cpu",
        "tasks": 1,
        "busy_seconds": 5,
        "busy_share": 0.625,
        "idle_tail_seconds": 1,
    }
    assert [span["begin"] for span in told["spans"]] == [0, 0, 1, 2, 3, 4]
    assert told["spans"][2] == {
        "task": 0,
        "device": "A",
        "place": "A stream 0",
        "begin": 1,
        "end": 4,
        "estimate": 9,
        "copies": [
            {"begin": 0.5, "end": 1, "nbytes": 100, "filled": [0, 0.25]},
            {"begin": 0, "end": 1.5, "nbytes": 20, "filled": [0, 1]},
        ],
        "helps": False,
        "tasks": 1,
    }


def test_drawing(tmp_path: Path) -> None:
    TIMELINE.write(tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text()
    bars = [bar for bar in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect") if len(bar)]
    per_second = (960 - 150) / 8
    drawn = [
        *(("help" if span.helps else "count", span.begin, span.end) for span in TIMELINE.spans),
        *(("copy", copy.begin, copy.end) for span in TIMELINE.spans for copy in span.copies),
        *(("fill", *copy.filled) for span in TIMELINE.spans for copy in span.copies),
    ]
    assert sorted((bar.get("fill"), bar.get("x"), bar.get("width")) for bar in bars) == sorted(
        (COLOURS[kind], f"{150 + begin * per_second:.2f}", f"{(end - begin) * per_second:.2f}")
        for kind, begin, end in drawn
    )
    assert "task 3, help: 3000.000 … 7000.000 ms" in text
    assert "0 … 8,000.0 ms" in text
    assert re.findall(r">(A stream 0|thread 1)<", text) == ["A stream 0", "thread 1"]


def test_names_are_escaped() -> None:
    odd = Timeline((BatchSpan(0, "A<B", "A<B & C", 0.0, 1.0, 1.0),), (("A<B", "A<B & C"),))
    assert ElementTree.fromstring(odd.to_svg()) is not None


def test_nothing_ran() -> None:
    empty = Timeline((), (("A", "A stream 0"), ("cpu", "thread 0")))
    assert (empty.seconds, empty.uses[0].busy_share, empty.device_uses[0].overlap_seconds) == (0, 0, 0)
    assert ElementTree.fromstring(empty.to_svg()) is not None


def test_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.png: a timeline is written as \.json or \.svg"):
        TIMELINE.write(tmp_path / "t.png")
    with pytest.raises(StorageError):
        TIMELINE.write(tmp_path / "nowhere" / "t.svg")


def test_intervals() -> None:
    assert union([(3, 4), (0, 1), (1, 2), (3.5, 5), (3.6, 4)]) == [(0, 2), (3, 5)]
    assert length([(0, 2), (3, 5)]) == 4
    assert common([(0, 2), (3, 5)], [(1, 4), (4.5, 9)]) == 1 + 1 + 0.5
    assert common([(0, 2)], [(2, 3)]) == 0
