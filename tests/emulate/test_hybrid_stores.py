"""Stores on emulated GPUs and threads together, and timelines that the command writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import invoke
from helpers.graphs import fixture_path

import wedgewise as ww
from emulate.hybrid_cases import KRONECKER, BrokenError, Gpus, break_down, check_timeline, gpus, graph, tasks_in, truth
from wedgewise.errors import PreconditionError
from wedgewise.run import hybrid
from wedgewise.run.checkpoint import JOURNAL
from wedgewise.run.request import Request
from wedgewise.run.task_memory import PAGE_BYTES
from wedgewise.stages.blocks import Block
from wedgewise.stages.tasks import Pair
from wedgewise.store.build import write_store

__all__ = ["gpus", "graph", "truth"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    np.save(tmp_path / "pairs.npy", KRONECKER)
    write_store(tmp_path / "pairs.npy", folder, parts=5)
    return folder


def test_stores_are_counted_too(gpus: Gpus, store: Path, truth: int) -> None:
    devices = gpus(2)
    result = ww.run("count", str(store), device="hybrid", algorithm="toy", threads=3)
    assert (result.answer, result.device) == (truth, "hybrid")
    plan = ww.explain("count", str(store), device="hybrid", algorithm="toy", threads=3)
    assert plan.blocks is not None
    assert (plan.device, plan.blocks.tasks, plan.blocks.devices) == (
        "hybrid",
        35,
        tuple(there.name for there in devices),
    )
    check_timeline(result)
    assert sum(device.sends for device in devices) > 0
    assert not list(store.glob("*.journal"))


@pytest.mark.parametrize(
    "how", [{"device": "hybrid"}, {"algorithm": "bbtc"}, {"device": "hybrid", "workers": 2}], ids=str
)
def test_a_store_has_its_parts(gpus: Gpus, store: Path, truth: int, how: dict[str, Any]) -> None:
    gpus()
    for source in (str(store), ww.open_store(store)):
        refused = rf"{re.escape(str(store))}: a store is cut into parts already; leave the knob parts out"
        with pytest.raises(PreconditionError, match=refused):
            ww.count(source, knobs={"parts": 4}, **how)


@pytest.mark.parametrize("parts", [1, 2])
def test_every_gpu_takes_shares(gpus: Gpus, tmp_path: Path, truth: int, parts: int) -> None:
    """With one part, each GPU has the whole graph, and vertex u is counted by task u mod m."""
    devices = gpus(2)
    ww.partition(KRONECKER, tmp_path / "store", parts=parts, scheme="hashed")
    how: dict[str, Any] = {"device": "hybrid", "algorithm": "toy", "knobs": {"places": "gpu", "streams": 1}}
    result = ww.run("count", tmp_path / "store", shares=8, **how)
    assert result.answer == truth
    timeline = check_timeline(result)
    assert tasks_in(timeline) == 8 * parts**3
    assert {span.device for span in timeline.spans} == {f"{there.name} {at}" for at, there in enumerate(devices)}


@pytest.mark.parametrize("at", [1, 5, 15])
def test_a_store_goes_on_where_it_was(gpus: Gpus, store: Path, truth: int, at: int) -> None:
    """On fewer streams and within less memory, as a person does who was told so."""
    (device,) = gpus()
    how: dict[str, Any] = {"device": "hybrid", "algorithm": "toy"}
    device.on_kernel = lambda number: break_down(number, at)
    with pytest.raises(BrokenError):
        ww.run("count", str(store), knobs={"places": "gpu", "streams": 2}, **how)
    lines = (store / JOURNAL).read_text().splitlines() if (store / JOURNAL).exists() else []
    finished = sum(len(json.loads(line)["tasks"]) for line in lines)
    assert at - 2 <= finished < 35
    begun = device.kernels
    device.on_kernel = lambda number: None
    result = ww.run("count", str(store), knobs={"places": "gpu", "streams": 1, "device_bytes": 10**6}, **how)
    assert result.answer == truth
    assert result.timeline is not None
    assert len(result.timeline.spans) == device.kernels - begun
    assert tasks_in(result.timeline) == 35 - finished


@pytest.mark.parametrize("places", ["cpu", "both", "gpu"])
@pytest.mark.parametrize("is_stored", [False, True])
def test_blocks_list_rows_where_threads_count(
    gpus: Gpus,
    graph: ww.Graph,
    store: Path,
    truth: int,
    monkeypatch: pytest.MonkeyPatch,
    places: str,
    is_stored: bool,
) -> None:
    """And take what is stated: where GPUs count alone, nothing is stated for such lists."""
    gpus()
    read = dict[Pair, Block]()
    really = hybrid._Running._read

    def noted(running: Any, pairs: list[Pair]) -> list[Block]:
        found = really(running, pairs)
        read.update(zip(pairs, found, strict=True))
        return found

    monkeypatch.setattr(hybrid._Running, "_read", noted)
    asked = Request(device="hybrid", algorithm="toy", threads=3, knobs={"places": places, "parts": 5})
    opened = ww.open_store(store)
    planned = hybrid.plan_store(asked, opened) if is_stored else hybrid.plan_graph(asked, graph.oriented())
    assert sum(planned.run().execution.results.triangles.tolist()) == truth
    assert read
    for pair, block in read.items():
        assert (block.busy_rows is not None) == (places != "gpu")
        arrays = (block.offsets, block.heads, *(() if block.busy_rows is None else (block.busy_rows,)))
        stated = sum(-(-array.nbytes // PAGE_BYTES) * PAGE_BYTES for array in arrays)
        assert planned.sizes.host_block(pair) == (stated if is_stored else 0)
    if not is_stored:
        assert isinstance(planned.source, hybrid.GraphBlocks)
        assert planned.source.blocks.blocks.items() >= read.items()


def test_the_command_writes_timelines(gpus: Gpus, tmp_path: Path, store: Path) -> None:
    gpus()
    karate = str(fixture_path("karate"))
    how = "--device", "hybrid", "--algorithm", "toy", "--threads", "2"
    for source in (karate, str(store)):
        for suffix in ("json", "svg"):
            path = tmp_path / f"timeline.{suffix}"
            done = invoke("count", source, *how, "--timeline", str(path))
            assert done.exit_code == 0, done.output
        numbers = json.loads((tmp_path / "timeline.json").read_text())
        assert set(numbers) == {"seconds", "places", "devices", "spans"}
        assert numbers["spans"]
        assert (tmp_path / "timeline.svg").read_text().startswith("<svg ")
    wrong = invoke("count", karate, *how, "--timeline", str(tmp_path / "timeline.png"))
    assert wrong.exit_code == 1
    needless = invoke("count", karate, "--device", "cpu", "--timeline", str(tmp_path / "other.svg"))
    assert needless.exit_code == 1
    assert not (tmp_path / "other.svg").exists()
