"""Count tasks of three blocks on the GPU by every algorithm; check every total; print and store the table.

PYTHONPATH=src python benchmarks/triples_gpu.py --scale 22
PYTHONPATH=src python benchmarks/triples_gpu.py --scale 24 --cuts hashed:8 --algorithms keystone --output results
PYTHONPATH=src python benchmarks/triples_gpu.py --emulate

A Kronecker graph with ids by rank is cut on the host, and all of its blocks lie on the device. Every algorithm then
goes through all tasks on one stream, one after the other; CUDA events stand around everything that a task takes,
preparing included. Of every task the median of --repeats passes, after one that warms up, and of fewer where --budget
would not do; a record is on the disk as soon as there is one:

sum        milliseconds of all tasks, and by how much more than keystone's kernels take for the whole graph
longest    milliseconds of the longest task
>= 1 ms    tasks that take so long, and their time IR: the longest by the shortest of them
batch      milliseconds of all tasks as one batch; where there are many tasks, they are not timed one by one

--emulate runs the same on the CPU, without a GPU, on a small graph: it shows that the script works, and measures
nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
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
from wedgewise.report.text import table_text
from wedgewise.stages import DeviceGraph, OrientedGraph
from wedgewise.stages.blocks import Block, Blocks, Hashed
from wedgewise.stages.tasks import BlockCounts, Pair, TaskTable, busy_tasks
from wedgewise_bench.stopwatch import Stopwatch

TESTS_FOLDER = Path(__file__).resolve().parent.parent / "tests"
CUTS = ("rectilinear:4", "rectilinear:8", "rectilinear:16", "hashed:8")
EMULATED_CUTS = ("rectilinear:3", "hashed:2")
BUSY_BYTES = 1 << 32
MAX_ALONE = 1000  # tasks that are timed one by one
SHORT_SECONDS = 1e-3  # tasks below are left out of the time IR
HEADER = [
    "graph",
    "cut",
    "algorithm",
    "tasks",
    "sum, ms",
    "of whole",
    "longest, ms",
    ">= 1 ms",
    "time IR",
    "batch, ms",
    "",
]


@dataclass(frozen=True, slots=True)
class Measured:
    """One algorithm on all tasks of one cut; seconds, or what went wrong."""

    graph: str
    edges: int
    triangles: int
    cut: str
    algorithm: str
    tasks: tuple[float, ...] = ()
    whole: float = 0.0
    all: float = 0.0
    problem: str | None = None

    @property
    def cells(self) -> list[str]:
        if not self.all:
            return [self.graph, self.cut, self.algorithm, *[""] * 7, self.problem or ""]
        long = [seconds for seconds in self.tasks if seconds >= SHORT_SECONDS]
        total, imbalance = sum(self.tasks) or self.all, f"{max(long) / min(long):.2f}" if long else "–"
        figures = [
            str(len(self.tasks)),
            f"{total * 1e3:.2f}",
            f"{total / self.whole:.2f}",
            f"{max(self.tasks, default=0.0) * 1e3:.3f}",
        ]
        named = [self.graph, self.cut, self.algorithm]
        return [*named, *figures, str(len(long)), imbalance, f"{self.all * 1e3:.2f}", self.problem or ""]


@dataclass(frozen=True, slots=True)
class Subject:
    """An oriented graph, its triangles by keystone on the device, and the seconds that its kernels take."""

    name: str
    graph: OrientedGraph
    triangles: int
    whole: float


class EmulatedMemory:
    """What the script asks of a device beyond launches, where arrays are the host's."""

    name = "emulated"

    def __init__(self) -> None:
        sys.path.insert(0, str(TESTS_FOLDER))
        from emulate.emulator import EmulatedDevice

        self.device: Any = EmulatedDevice()

    def upload(self, array: Any) -> Any:
        return array


def subject_of(scale: int, threads: int, repeats: int, device: gpu.Device, upload: Any) -> Subject:
    """Generate and orient a graph; count it as a whole."""
    stream = kronecker(scale, seed=1)
    graph = ww.Graph(stream.pairs(threads=threads), n=stream.n).oriented("degree", "rank", threads=threads)
    offsets, heads, vertex_of = map(upload, (graph.offsets, graph.out_neighbours, graph.vertex_of))
    there = DeviceGraph(graph.n, offsets, heads, vertex_of, graph.order, graph.named_by, graph.wedges)
    record = find("keystone", "cuda")
    work = record.on_device("count").prepare(there, record.settings(None), device)
    launches = [launch for batch in work.batches for launch in batch()]
    taken = []
    for _ in range(1 + repeats):
        with Stopwatch(device) as watch:
            work.found.fill(0)
            for launch in launches:
                launch()
        taken.append(watch.seconds)
    return Subject(f"Kronecker {scale}", graph, int(work.found[0]), sorted(taken[1:])[repeats // 2])


def cut(graph: OrientedGraph, asked: str, threads: int) -> Blocks:
    """The blocks of a graph, as asked for by scheme:parts."""
    scheme, _, parts = asked.partition(":")
    partition = Hashed(graph.n, int(parts)) if scheme == "hashed" else rectilinear(graph, int(parts), threads=threads)
    return blocks_of(graph, partition, threads=threads)


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
) -> tuple[int, list[float], float]:
    """The triangles of all tasks, the seconds of each as a batch of its own, and of all as one batch."""
    total = device.xp.zeros(2, np.uint64)
    busy = None if device.xp is np else device.xp.empty(BUSY_BYTES, np.uint8)
    watches = []
    for some in [
        tasks,
        *(tasks.take(slice(at, at + 1)) for at in range(len(tasks) if len(tasks) <= MAX_ALONE else 0)),
    ]:
        if busy is not None:
            busy.fill(0)  # a batch is launched meanwhile, so that its kernels follow each other
        with Stopwatch(device) as watch:
            work = answer.prepare(DeviceBatch(blocks, some), knobs, device)
            work.found.fill(0)
            for batch in work.batches:
                for launch in batch():
                    launch()
        total += work.found.sum(axis=0)[:2] if some is tasks else 0 * total
        watches.append(watch)
    return int(total[0]), [watch.seconds for watch in watches[1:]], watches[0].seconds


def passes(
    record: Algorithm, blocks: Blocks, device: gpu.Device, triangles: int, repeats: int, ends: float
) -> tuple[tuple[float, ...], float]:
    """The median seconds of every task, and of all of them as one batch.

    Of as many passes as there is time for, after one that warms up, which is taken where there is no other.
    """
    answer, knobs = record.triples_on_device("count"), record.settings(None)
    tasks = busy_tasks(blocks.partition, BlockCounts.of(blocks)).in_reuse_order()
    there, taken, whole = on_device(blocks, answer, knobs, device), list[list[float]](), list[float]()
    for _ in range(1 + repeats):
        begin = time.perf_counter()
        if taken and begin > ends:
            break
        found, seconds, at_once = one_pass(answer, there, tasks, knobs, device)
        if found != triangles:
            raise VerificationError(f"counts {found:,}, not {triangles:,}")
        taken.append(seconds)
        whole.append(at_once)
    warm = np.array(taken[1:] or taken)
    return tuple(np.median(warm, axis=0).tolist()), float(np.median(whole[1:] or whole))


def measure(
    subject: Subject, asked: str, options: argparse.Namespace, device: gpu.Device, upload: Any, ends: float
) -> Iterator[Measured]:
    """Every algorithm on the tasks of one cut; one that fails is told of, and does not end the others."""
    blocks = cut(subject.graph, asked, options.threads)
    counting = [name for (name, where), item in registry().items() if where == "cuda" and "count" in item.triples]
    for name in options.algorithms or counting:
        fields = (subject.name, subject.graph.m, subject.triangles, asked, name)
        if time.perf_counter() > ends:
            yield Measured(*fields, problem="left out: time is up")
            continue
        try:
            of_tasks, of_pass = passes(find(name, "cuda"), blocks, device, subject.triangles, options.repeats, ends)
        except Exception as error:
            traceback.print_exc()
            yield Measured(*fields, problem=f"{type(error).__name__}: {error}")
            continue
        yield Measured(*fields, of_tasks, subject.whole, of_pass)


def measure_all(options: argparse.Namespace, device: gpu.Device, upload: Any) -> Iterator[Measured]:
    """Every cut, until the time is up."""
    begin = time.perf_counter()
    ends = begin + options.budget
    subject = subject_of(options.scale, options.threads, options.repeats, device, upload)
    taken = time.perf_counter() - begin
    print(f"{subject.name}: {subject.graph.m:,} edges, {subject.triangles:,} triangles; made in {taken:.1f} s; "
          f"keystone's kernels take {subject.whole * 1e3:.3f} ms\n", flush=True)  # fmt: skip
    for asked in options.cuts:
        if time.perf_counter() > ends:
            yield Measured(subject.name, subject.graph.m, subject.triangles, asked, "", problem="left out: time is up")
        else:
            yield from measure(subject, asked, options, device, upload, ends)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, help="default: 22, or 10 where it is emulated")
    parser.add_argument("--cuts", nargs="+", metavar="SCHEME:PARTS", help=f"default: {', '.join(CUTS)}")
    parser.add_argument("--algorithms", nargs="+", help="default: all that count three blocks")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=hardware.look().threads, help="that cut the graph on the host")
    parser.add_argument("--budget", type=float, default=180, help="seconds in which all is to end")
    parser.add_argument("--emulate", action="store_true", help="run the kernels on the CPU")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line")
    options = parser.parse_args()
    options.scale = options.scale or (10 if options.emulate else 22)
    options.cuts = options.cuts or (EMULATED_CUTS if options.emulate else CUTS)
    place: Any = EmulatedMemory() if options.emulate else gpu.find_device()
    device: gpu.Device = place.device if options.emulate else place
    stamp = {"device": place.name, "machine": hardware.look().description, "version": ww.__version__}
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    measured = []
    for item in measure_all(options, device, place.upload):
        measured.append(item)
        print("  ".join(filter(None, item.cells)), flush=True)
        if options.output is not None:
            line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **asdict(item)})
            storage.append_line(options.output / "triples_gpu.jsonl", line)
    print(f"\n{table_text([HEADER, *(item.cells for item in measured)])}")
    return int(any(item.problem is not None for item in measured))


if __name__ == "__main__":
    sys.exit(main())
