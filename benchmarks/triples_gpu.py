"""Count tasks of three blocks on the GPU by every algorithm; check every total; print and store how even tasks are.

PYTHONPATH=src python benchmarks/triples_gpu.py --scale 22 --output results
PYTHONPATH=src python benchmarks/triples_gpu.py --cuts hashed:1 --ids classes --algorithms trust --workers 1 8 64 1024
PYTHONPATH=src python benchmarks/triples_gpu.py --scale 24 --cuts hashed:8 --ids classes --workers 512 1024
PYTHONPATH=src python benchmarks/triples_gpu.py --emulate

The second is TRUST's figure 15, the third its table 6. A Kronecker graph is cut on the host, and all of its blocks lie
on the device. Tasks are dealt to as many shares as TRUST's rule makes of them for each number of workers. Every
algorithm then goes through all tasks on one stream, one after the other; CUDA events stand around everything that a
task takes, preparing included. Of every task the median of --repeats passes, after one that warms up, and of fewer
where --budget would not do. The report of balance is the library's: its speed-ups are over the kernels of the same
algorithm for the whole graph, its workers have nothing to wait for. A record is on the disk as soon as there is one.

--emulate runs the same on the CPU, without a GPU, on a small graph: it shows that the script works, and measures
nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import wedgewise as ww
from wedgewise.algorithms import find, registry
from wedgewise.algorithms._contract import Algorithm, DeviceBatch, DeviceBlock, DeviceTripleAnswer, Knobs
from wedgewise.errors import VerificationError
from wedgewise.generate import kronecker
from wedgewise.machine import files as storage
from wedgewise.machine import gpu, hardware
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.prepare.rectilinear import rectilinear
from wedgewise.report.balance import BalanceReport, balance_report, balance_text
from wedgewise.stages.blocks import Block, Blocks, Hashed
from wedgewise.stages.tasks import BlockCounts, Pair, TaskTable, busy_tasks, task_count
from wedgewise.stages.trust_cut import shares_for
from wedgewise_bench.kernels import DeviceCount
from wedgewise_bench.stopwatch import Stopwatch

TESTS_FOLDER = Path(__file__).resolve().parent.parent / "tests"
CUTS = {"rank": ("rectilinear:4", "rectilinear:8", "rectilinear:16", "hashed:8"), "classes": ("hashed:1", "hashed:8")}
EMULATED_CUTS = {"rank": ("rectilinear:3", "hashed:2"), "classes": ("hashed:1", "hashed:2")}
BUSY_BYTES = 1 << 32


@dataclass(slots=True)
class Measured:
    """One algorithm on all tasks of one cut; seconds, or what went wrong."""

    graph: str
    cut: str
    ids: str
    algorithm: str
    shares: int
    workers: Sequence[int]
    batch: float = 0.0
    tasks: dict[int, float] = field(default_factory=dict)
    report: BalanceReport | None = None
    problem: str | None = None

    @property
    def text(self) -> str:
        named = f"{self.graph}, {self.cut} by {self.ids}, m = {self.shares:,}: {self.algorithm}"
        if self.report is None:
            return f"{named}: {self.problem}\n"
        return f"{named}, {1e3 * self.batch:.3f} ms as one batch\n\n{balance_text(self.report)}\n"

    def to_dict(self) -> dict[str, Any]:
        """A record."""
        report = None if self.report is None else self.report.to_dict()
        return {**asdict(self), "report": report}


@cache
def count_whole(graph: ww.Graph, name: str, ids: str, repeats: int) -> tuple[int, float]:
    """The triangles of the whole graph, and the median seconds of an algorithm's kernels, by these ids or its own."""
    able = find(name, "cuda").relabellings
    count = DeviceCount(graph, name, None, "degree", ids if ids in able else able[0])
    triangles, seconds = count.launch(), list[float]()
    for _ in range(repeats):
        count.launch()
        seconds.append(count.seconds)
    graph.release_device()
    return triangles, statistics.median(seconds)


def cut(graph: ww.Graph, asked: str, ids: str, threads: int) -> Blocks:
    """The blocks of a graph, as asked for by scheme:parts."""
    scheme, _, parts = asked.partition(":")
    oriented = graph.oriented("degree", ids, threads=threads)
    if scheme == "hashed":
        return blocks_of(oriented, Hashed(graph.n, int(parts), ids), threads=threads)
    return blocks_of(oriented, rectilinear(oriented, int(parts), threads=threads), threads=threads)


def on_device(blocks: Blocks, answer: DeviceTripleAnswer, knobs: Knobs, device: Any) -> dict[Pair, DeviceBlock]:
    """All blocks on the device, with what an algorithm makes of them."""
    there = {}
    for pair, block in blocks.blocks.items():
        words = answer.made_words(block.m, block.columns, knobs)
        made = device.xp.empty(words, np.uint32) if words else None
        arrays = device.upload(block.offsets), device.upload(block.heads)
        there[pair] = DeviceBlock(Block(*arrays, block.columns), made)
    for launch in answer.make(list(there.values()), knobs, device) if there else ():
        launch()
    return there


def one_pass(
    answer: DeviceTripleAnswer, blocks: dict[Pair, DeviceBlock], tasks: TaskTable, knobs: Knobs, device: Any
) -> tuple[int, list[float]]:
    """The triangles of all tasks; the seconds of all as one batch, then of each as a batch of its own."""
    triangles, watches = 0, list[Stopwatch]()
    busy = device.xp.empty(BUSY_BYTES, np.uint8) if hasattr(device.xp, "cuda") else None
    for some in (tasks, *(tasks.take(slice(at, at + 1)) for at in range(len(tasks)))):
        if busy is not None:
            busy.fill(0)  # a batch is launched meanwhile, so that its kernels follow each other
        with Stopwatch(device) as watch:
            work = answer.prepare(DeviceBatch(blocks, some), knobs, device)
            work.found.fill(0)
            for batch in work.batches:
                for launch in batch():
                    launch()
        if some is tasks:
            triangles = int(device.download(work.found)[:, 0].sum())
        watches.append(watch)
    return triangles, [watch.seconds for watch in watches]


def passes(
    record: Algorithm, blocks: Blocks, tasks: TaskTable, triangles: int, repeats: int, ends: float
) -> list[float]:
    """The median seconds of all tasks as one batch, and of every task.

    Of as many passes as there is time for, after one that warms up, which is taken where there is no other.
    """
    device, taken = gpu.find_device(), list[list[float]]()
    answer, knobs = record.triples_on_device("count"), record.settings(None)
    with device.memory():
        there = on_device(blocks, answer, knobs, device)
        while len(taken) <= repeats and not (taken and time.perf_counter() > ends):
            found, seconds = one_pass(answer, there, tasks, knobs, device)
            if found != triangles:
                raise VerificationError(f"counts {found:,}, not {triangles:,}")
            taken.append(seconds)
    medians: list[float] = np.median(np.array(taken[1:] or taken), axis=0).tolist()
    return medians


def measure(graph: ww.Graph, triangles: int, item: Measured, blocks: Blocks, repeats: int, ends: float) -> None:
    """Measure one algorithm on the tasks of one cut; one that fails is told of, and does not end the others."""
    counts = BlockCounts.of(blocks)
    tasks = busy_tasks(blocks.partition, counts, item.shares).in_reuse_order()
    if time.perf_counter() > ends:
        item.problem = "left out: time is up"
        return
    try:
        found, whole = count_whole(graph, item.algorithm, item.ids, repeats)
        if found != triangles:
            raise VerificationError(f"counts {found:,} in the whole graph, not {triangles:,}")
        item.batch, *seconds = passes(find(item.algorithm, "cuda"), blocks, tasks, triangles, repeats, ends)
    except Exception as error:
        traceback.print_exc()
        item.problem = f"{type(error).__name__}: {error}"
        return
    item.tasks = dict(zip(tasks.number.tolist(), seconds, strict=True))
    item.report = balance_report(
        blocks.partition, counts, item.tasks, shares=item.shares, workers=item.workers, unpartitioned=whole
    )


def measure_all(options: argparse.Namespace) -> Iterator[Measured]:
    """Every cut, every number of shares and every algorithm, until the time is up."""
    ends, name = time.perf_counter() + options.budget, f"Kronecker {options.scale}"
    stream = kronecker(options.scale, seed=1)
    graph = ww.Graph(stream.pairs(threads=options.threads), n=stream.n, device="cpu", threads=options.threads)
    triangles, _ = count_whole(graph, "keystone", "rank", 1)
    print(f"{name}: {graph.m:,} edges, {triangles:,} triangles\n", flush=True)
    counting = [name for (name, where), item in registry().items() if where == "cuda" and "count" in item.triples]
    for asked in options.cuts:
        blocks = cut(graph, asked, options.ids, options.threads)
        tasks, workers_of = task_count(blocks.partition), dict[int, list[int]]()
        for workers in sorted(options.workers):
            workers_of.setdefault(shares_for(workers, tasks), []).append(workers)
        for shares, workers in workers_of.items():
            for algorithm in options.algorithms or counting:
                item = Measured(name, asked, options.ids, algorithm, shares, workers)
                measure(graph, triangles, item, blocks, options.repeats, ends)
                yield item


def emulate() -> None:
    """Let an emulated device be found."""
    sys.path.insert(0, str(TESTS_FOLDER))
    import pytest
    from emulate.copying import EmulatedGpu, install

    install(EmulatedGpu(), pytest.MonkeyPatch())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, help="default: 22, or 7 where it is emulated")
    parser.add_argument("--cuts", nargs="+", metavar="SCHEME:PARTS", help=f"default: {', '.join(CUTS['rank'])}")
    parser.add_argument(
        "--ids", choices=CUTS, default="rank", help="of hashed parts, as TRUST has them: classes (§5.1)"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[8], help="how many are imagined; tasks are dealt to them"
    )
    parser.add_argument("--algorithms", nargs="+", help="default: all that count three blocks")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=hardware.look().threads, help="that cut the graph on the host")
    parser.add_argument("--budget", type=float, default=180, help="seconds in which all is to end")
    parser.add_argument("--emulate", action="store_true", help="run the kernels on the CPU")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line")
    options = parser.parse_args(arguments)
    options.scale = options.scale or (7 if options.emulate else 22)
    options.cuts = options.cuts or (EMULATED_CUTS if options.emulate else CUTS)[options.ids]
    if options.ids != "rank" and any(not asked.startswith("hashed:") for asked in options.cuts):
        parser.error("ids by classes are for hashed parts: ask for --cuts hashed:PARTS")
    if options.emulate:
        emulate()
    stamp = {"device": gpu.find_device().name, "machine": hardware.look().description, "version": ww.__version__}
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    problems = 0
    for item in measure_all(options):
        print(item.text, flush=True)
        problems += item.problem is not None
        if options.output is not None:
            line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **item.to_dict()})
            storage.append_line(options.output / "triples_gpu.jsonl", line)
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
