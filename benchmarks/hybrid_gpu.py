"""Count by block tasks on a GPU, on threads, and on both; check every count; print and store the table.

PYTHONPATH=src python benchmarks/hybrid_gpu.py
PYTHONPATH=src python benchmarks/hybrid_gpu.py --cells 20:4 20:32 --algorithms keystone trust bbtc --output results
PYTHONPATH=src python benchmarks/hybrid_gpu.py --cells 22:4 --ways gpu cpu guarded cutoff dynamic --cutoffs 25 75
PYTHONPATH=src python benchmarks/hybrid_gpu.py --emulate

A cell is a Kronecker graph and the parts that it is cut into. Of each cell and way a run that warms up, then --repeats
rounds in which all take turns, so that whatever disturbs the machine disturbs all of them; fewer rounds where --budget
would not do. The median, and the run that took it:

gpu, cpu                  the tasks on one side alone
guarded, cutoff, dynamic  both sides by each schedule
time, density, degree     both sides by the schedule cutoff, tasks sorted by BBTC's other estimators
plan                      planning, once, after the graph was cut
run                       what `HybridTasks.run` takes: memory reserved, blocks copied from pageable memory, all counted
kernels, bus, both        the seconds in which a GPU counted, copied, and did both
busy                      the share of time in which streams are busy, of the run without getting ready
bringing                  seconds of the GPU's thread: for the memory of blocks, which another thread sends
launches                  to start kernels, and to wait for the blocks before
ending                    to wait until a batch ends, asleep, and to keep what it found

Beside the cells, the count of the whole graph by device="cuda" and device="cpu": all of `ww.run`, and its stage
"count" alone. The total of every run is compared with that of cuda. A record is on the disk as soon as there is one.
--emulate runs everything without a GPU, on small graphs, to see that it works; its times mean nothing.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import wedgewise as ww
from wedgewise.errors import DeviceError, VerificationError
from wedgewise.generate import kronecker
from wedgewise.machine import files as storage
from wedgewise.machine import gpu, hardware
from wedgewise.run._hybrid_streams import DeviceWorker
from wedgewise.run.hybrid import GraphBlocks, HybridTasks, plan_graph
from wedgewise.run.in_memory import TaskRun
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise_bench.graphs import from_stream
from wedgewise_bench.record import without_folders
from wedgewise_bench.table import markdown

SINGLE = ("gpu", "cpu")
SCHEDULES = ("guarded", "cutoff", "dynamic")
OTHER_ESTIMATORS = ("time", "density", "degree")
WAYS = (*SINGLE, *SCHEDULES, *OTHER_ESTIMATORS)
WHOLE = ("cuda", "cpu")
CELLS = ("20:4", "20:8", "20:16", "20:32", "22:4", "22:8")
STUCK_SECONDS = 100  # of one run, kernels compiled by the first included
SLOW_SECONDS = 0.5  # what takes longer is timed once
HEADER = ["graph", "parts", "algorithm", "way", "ms", "runs", "tasks", "batches", "on GPU", "plan, ms", "kernels, ms"]
MORE = ["bus, ms", "both, ms", "MB", "busy", "bringing, ms", "launches, ms", "ending, ms"]


class Watch:
    """Seconds that all calls of some methods took together, by name."""

    METHODS: ClassVar = {"_bring": "bringing", "_start": "launches", "_finish": "ending"}

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(self.METHODS.values(), 0.0)
        self._lock = threading.Lock()
        for method, name in self.METHODS.items():
            setattr(DeviceWorker, method, self._timed(getattr(DeviceWorker, method), name))

    def clear(self) -> None:
        """Begin again."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)

    def _timed(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*arguments)
            finally:
                with self._lock:
                    self.seconds[name] += time.perf_counter() - begin

        return timed


@dataclass(slots=True)
class Measured:
    """One way in one cell: all of its seconds, and what happened where in the run of the median."""

    graph: str
    edges: int
    parts: int
    algorithm: str
    way: str
    plan_seconds: float = 0.0
    repeats: list[float] = field(default_factory=list)
    seen: dict[float, dict[str, Any]] = field(default_factory=dict)
    problem: str | None = None

    @property
    def seconds(self) -> float:
        return statistics.median_low(self.repeats)

    @property
    def cells(self) -> list[str]:
        named = [self.graph, str(self.parts) if self.parts else "–", self.algorithm, self.way]
        if not self.repeats:
            return [*named, self.problem or "no time left", *[""] * (len(HEADER) + len(MORE) - 5)]
        seen = self.seen[self.seconds]
        counts = [f"{seen.get(name, 0):,}" for name in ("tasks", "batches", "device_tasks")]
        times = [self.plan_seconds, *(seen.get(name, 0.0) for name in ("kernels", "bus", "both"))]
        waits = [f"{1e3 * seen.get(name, 0.0):.2f}" for name in ("bringing", "launches", "ending")]
        busy = f"{seen['busy']:.0%}" if "busy" in seen else seen.get("stage", "–")
        size = f"{seen.get('copied_bytes', 0) / 1e6:.1f}"
        row = [f"{1e3 * self.seconds:.2f}", str(len(self.repeats)), *counts, *(f"{1e3 * taken:.2f}" for taken in times)]
        return [*named, *row, size, busy, *waits]


@dataclass(slots=True)
class Runnable:
    """What is measured, and how it is run: seconds, triangles, and what happened."""

    measured: Measured
    run: Callable[[], tuple[float, int, dict[str, Any]]]


def knobs_of(way: str, parts: int, streams: int, cutoff: int) -> dict[str, int | str]:
    """The knobs that a way stands for."""
    knobs: dict[str, int | str] = {"parts": parts, "streams": streams, "cutoff": cutoff}
    if way in SINGLE:
        return {**knobs, "places": way}
    return {**knobs, "schedule": way} if way in SCHEDULES else {**knobs, "schedule": "cutoff", "estimator": way}


def looked_at(ran: TaskRun, watch: Watch) -> dict[str, Any]:
    """What happened in a run."""
    timeline, blocks = ran.timeline, ran.plan.blocks
    assert timeline is not None
    assert blocks is not None
    devices = timeline.device_uses
    streams = [use.busy_share for use in timeline.uses if use.device != "cpu"]
    return {
        "tasks": blocks.tasks,
        "batches": sum(not span.helps for span in timeline.spans),
        "device_tasks": sum(span.tasks for span in timeline.spans if span.device != "cpu"),
        "kernels": sum(use.kernel_seconds for use in devices),
        "bus": sum(use.copy_seconds for use in devices),
        "both": sum(use.overlap_seconds for use in devices),
        "copied_bytes": sum(use.copied_bytes for use in devices),
        "busy": sum(streams) / len(streams) if streams else 0.0,
        **watch.seconds,
        "notes": ran.plan.reasons,
    }


def by_tasks(hybrid: HybridTasks, watch: Watch) -> tuple[float, int, dict[str, Any]]:
    """One run of all tasks."""
    watch.clear()
    begin = time.perf_counter()
    ran = hybrid.run()
    seconds = time.perf_counter() - begin
    return seconds, reduce(ran.execution, ran.plan).triangles, looked_at(ran, watch)


def as_a_whole(graph: ww.Graph, device: str, threads: int) -> tuple[float, int, dict[str, Any]]:
    """One count of the whole graph on one side; the stage that counts is said, too."""
    begin = time.perf_counter()
    result = ww.run("count", graph, device=device, threads=threads)
    seconds = time.perf_counter() - begin
    stages = ", ".join(f"{name} {1e3 * taken:.2f}" for name, taken in result.seconds.items())
    return seconds, int(result.answer), {"stage": stages}


def runnables(options: argparse.Namespace, watch: Watch) -> Iterator[tuple[int, list[Runnable]]]:
    """What is measured of every graph, and its triangles."""
    scales = list(dict.fromkeys(int(cell.partition(":")[0]) for cell in options.cells))
    for scale in scales:
        begin = time.perf_counter()
        known = from_stream(kronecker(scale, seed=1), options.threads)
        graph = ww.Graph(known.make_pairs())
        triangles = ww.count(graph, device="cpu" if options.emulate else "cuda")
        if known.triangles not in (None, triangles):
            raise VerificationError(f"{known.name}: cuda counts {triangles:,} where there are {known.triangles:,}")
        oriented = graph.oriented()
        say(f"{known.name}: {oriented.m:,} edges, {triangles:,} triangles; {time.perf_counter() - begin:.1f} s")
        found = []
        for device in WHOLE if not options.emulate else WHOLE[1:]:
            whole = Measured(known.name, oriented.m, 0, "auto", f"{device} alone")
            found.append(Runnable(whole, partial(as_a_whole, graph, device, options.threads)))
        for parts in [int(cell.partition(":")[2]) for cell in options.cells if cell.startswith(f"{scale}:")]:
            source = None
            for algorithm in options.algorithms:
                for way, cutoff in [
                    *((way, 50) for way in options.ways),
                    *(("cutoff", cut) for cut in options.cutoffs),
                ]:
                    knobs = knobs_of(way, parts, options.streams, cutoff)
                    asked = Request(device="hybrid", algorithm=algorithm, threads=options.threads, knobs=knobs)
                    if source is None:  # with all that threads need beside the blocks, too
                        source = plan_graph(replace(asked, knobs=knobs_of("guarded", parts, 4, 50)), oriented).source
                    assert isinstance(source, GraphBlocks)
                    begin = time.perf_counter()
                    hybrid = plan_graph(asked, oriented, source=source)
                    name = way if cutoff == 50 else f"{way} {cutoff} %"
                    item = Measured(known.name, oriented.m, parts, algorithm, name, time.perf_counter() - begin)
                    found.append(Runnable(item, partial(by_tasks, hybrid, watch)))
        yield triangles, found


def measure(options: argparse.Namespace) -> Iterator[Measured]:
    """Every way in every cell, in turn, as long as there is time."""
    ends, watch = time.perf_counter() + options.budget, Watch()
    for triangles, all_of_graph in runnables(options, watch):
        for round_number in range(1 + options.repeats):
            for one in all_of_graph:
                item = one.measured
                is_slow = len(item.repeats) > 0 and item.seconds > SLOW_SECONDS
                if item.problem is not None or is_slow or time.perf_counter() > ends:
                    continue
                try:
                    seconds, found, seen = checked(one)
                except Exception as error:
                    traceback.print_exc()
                    item.problem = f"{type(error).__name__}: {error}"
                    if isinstance(error, DeviceError) and not isinstance(error, MemoryError):
                        raise SystemExit(1) from error  # nothing runs on this device again
                    continue
                if found != triangles:
                    item.problem = f"{found:,} triangles where there are {triangles:,}"
                elif round_number > 0:
                    item.repeats.append(seconds)
                    item.seen[seconds] = seen
        yield from (one.measured for one in all_of_graph)


def checked(one: Runnable) -> tuple[float, int, dict[str, Any]]:
    """One run; one that never ends says where it is."""
    faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
    try:
        return one.run()
    finally:
        faulthandler.cancel_dump_traceback_later()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def text_of(items: list[Measured], stamp: dict[str, str]) -> str:
    """The table, where it comes from, and what went wrong."""
    where = "\n".join(f"- {name}: {value}" for name, value in stamp.items())
    problems = [f"- {item.way} on {item.graph}, {item.parts} parts: {item.problem}" for item in items if item.problem]
    wrong = ["## What went wrong\n\n" + "\n".join(problems)] if problems else []
    table = markdown([*HEADER, *MORE], [item.cells for item in items])
    return "\n\n".join(["# Block tasks on a GPU and threads together", where, table, *wrong]) + "\n"


def store(folder: Path, items: list[Measured], stamp: dict[str, str]) -> None:
    """A line for the last record, and the table so far."""
    line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **asdict(items[-1])}, default=str)
    storage.append_line(folder / "hybrid_gpu.jsonl", line)
    with storage.atomic_write(folder / "hybrid_gpu.md") as file:
        file.write(text_of(items, stamp).encode())


def emulate(options: argparse.Namespace) -> None:
    """Let two emulated devices be found, and ask for little."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from emulate.streaming import StreamingEmulator

    devices = tuple(StreamingEmulator(f"Emulated GPU {number}") for number in range(2))
    gpu.find_devices = lambda: devices  # type: ignore[assignment, return-value]
    options.cells, options.repeats, options.threads = ["6:3", "7:4"], 1, 3


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", metavar="SCALE:PARTS", default=list(CELLS))
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=["gpu", "guarded"])
    parser.add_argument("--cutoffs", type=int, nargs="*", default=[], help="also the schedule cutoff with these, in %%")
    parser.add_argument("--algorithms", nargs="+", default=["auto"], help="keystone, trust or bbtc")
    parser.add_argument("--streams", type=int, default=4, help="of each GPU")
    parser.add_argument("--threads", type=int, default=hardware.usable_threads())
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds, after one that warms up")
    parser.add_argument("--budget", type=float, default=110.0, help="seconds after which no further run begins")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line, and the table")
    parser.add_argument("--emulate", action="store_true", help="without a GPU, on small graphs")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store; the exit status is 1 when a count was wrong, or a way failed."""
    options = parse(arguments)
    if options.emulate:
        emulate(options)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    stamp = {
        "devices": ", ".join(device.name for device in gpu.find_devices()),
        "machine": hardware.look().description,
        "version": ww.__version__,
        "command": without_folders(" ".join(["benchmarks/hybrid_gpu.py", *(arguments or sys.argv[1:])])),
    }
    items: list[Measured] = []
    for item in measure(options):
        items.append(item)
        say("  ".join(filter(None, item.cells)))
        if options.output is not None:
            store(options.output, items, stamp)
    print(f"\n{text_of(items, stamp)}")
    return int(any(item.problem is not None for item in items))


if __name__ == "__main__":
    sys.exit(main())
