"""Count by block tasks on a GPU, on threads, and on both; check every count; print and store the table.

PYTHONPATH=src python benchmarks/hybrid_gpu.py --budget 460 --output results
PYTHONPATH=src python benchmarks/hybrid_gpu.py --scales 22 --parts 4 8 16 --ways gpu cpu guarded --cutoffs 0 25 75 100
PYTHONPATH=src python benchmarks/hybrid_gpu.py --emulate

gpu, cpu                  the same tasks on one side alone: what hybrid is compared with
guarded, cutoff, dynamic  both sides by each schedule; tasks are sorted as hybrid does by itself
time, density, degree     both sides by the schedule cutoff, tasks sorted by BBTC's other estimators; first scale alone

A run is what `Hybrid.run` does: memory reserved, threads started, blocks copied from pageable memory, all tasks
counted; making and cutting the graph, which is done once, are not in it. The median of --repeats, and all of them in
the records, after a run that warms up; fewer where a cell would take longer than --cell-seconds, but three at least,
and fewer still, or none, where later graphs would be left without time: the whole is to end within --budget. A record
is on the disk as soon as there is one, and so are the table and, of each graph, the timeline of the default schedule.
`best` is the time of a way divided by that of the faster single side on the same blocks: hybrid is to stay below 1.10.
--emulate runs everything without a GPU, on a small graph, to see that it works; its times mean nothing.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import statistics
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import wedgewise as ww
from wedgewise.errors import DeviceError, VerificationError
from wedgewise.generate import kronecker
from wedgewise.machine import files as storage
from wedgewise.machine import gpu, hardware
from wedgewise.run.hybrid import GraphBlocks, Hybrid, plan_graph
from wedgewise.run.local import Ran
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise.stages import OrientedGraph
from wedgewise_bench.graphs import from_stream
from wedgewise_bench.record import without_folders
from wedgewise_bench.table import markdown

SINGLE = ("gpu", "cpu")
SCHEDULES = ("guarded", "cutoff", "dynamic")
OTHER_ESTIMATORS = ("time", "density", "degree")
WAYS = (*SINGLE, *SCHEDULES, *OTHER_ESTIMATORS)
FAST = ("gpu", "guarded")
ALLOWED_RATIO = 1.10
LEAST_REPEATS = 3
STUCK_SECONDS = 90  # of one run: the slowest takes about ten
PAIRS_PER_VERTEX = 16
MAKE_SECONDS_PER_PAIR = 2.4e-6  # of one thread: generate, clean, orient, cut, count
RUN_SECONDS_PER_PAIR = {"fast": 1e-9, "slow": 4.5e-7}  # of a GPU; of one thread


@dataclass(frozen=True, slots=True)
class Measured:
    """One way on one graph: the median and all of the seconds, and what happened where in the run of that median."""

    graph: str
    edges: int
    way: str
    parts: int
    cutoff_percent: int
    seconds: float = 0.0
    repeats: tuple[float, ...] = ()
    streams: int = 0
    threads: int = 0
    cutoff: int = 0
    tasks: int = 0
    device_tasks: int = 0
    kernel_seconds: float = 0.0
    copy_seconds: float = 0.0
    overlap_seconds: float = 0.0
    filling_seconds: float = 0.0
    copied_bytes: int = 0
    stream_share: float = 0.0
    thread_share: float = 0.0
    notes: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """When all is to have ended, and what is asked for."""

    ends: float
    options: argparse.Namespace

    def left(self, scale: int) -> float:
        """Seconds, without those that graphs after this one need."""
        later = self.options.scales[self.options.scales.index(scale) + 1 :]
        return self.ends - time.perf_counter() - sum(map(self.need, later))

    def need(self, scale: int) -> float:
        """What a graph takes that is made once, with a run that warms up and the least repeats of every way."""
        pairs, threads = PAIRS_PER_VERTEX << scale, self.options.threads
        slow = RUN_SECONDS_PER_PAIR["slow"] / threads
        ways = [RUN_SECONDS_PER_PAIR["fast"] if way in FAST else slow for way, _ in cells(self.options, scale)]
        runs = (1 + LEAST_REPEATS) * len(self.options.parts) * sum(ways)
        return float(pairs * (MAKE_SECONDS_PER_PAIR / threads + runs))

    def allows(self, scale: int, runs: Sequence[float]) -> bool:
        """Whether there is another run after runs of so many seconds, which begin behind the one that warms up."""
        another = runs[-1] if runs else 0.0
        is_wanted = len(runs) < LEAST_REPEATS or sum(runs) + another <= self.options.cell_seconds
        return len(runs) < self.options.repeats and is_wanted and self.left(scale) > another


def knobs_of(way: str, parts: int, streams: int, cutoff: int) -> dict[str, int | str]:
    """The knobs that a way stands for."""
    knobs: dict[str, int | str] = {"parts": parts, "streams": streams, "cutoff": cutoff}
    if way in SINGLE:
        return {**knobs, "places": way}
    return {**knobs, "schedule": way} if way in SCHEDULES else {**knobs, "schedule": "cutoff", "estimator": way}


def cells(options: argparse.Namespace, scale: int) -> list[tuple[str, int]]:
    """The ways with their cut-offs, in percent; other estimators on the first graph alone."""
    ways = [way for way in options.ways if way not in OTHER_ESTIMATORS or scale == options.scales[0]]
    return [
        *((way, 50) for way in ways),
        *(("cutoff", cutoff) for cutoff in options.cutoffs if not (cutoff == 50 and "cutoff" in ways)),
    ]


def timed(hybrid: Hybrid, scale: int, budget: Budget, triangles: int) -> tuple[Ran | None, float, tuple[float, ...]]:
    """The run of median time, its seconds, and those of all, after one that warms up; no run without time for it."""
    checked(hybrid, triangles)
    taken: list[float] = []
    runs: list[Ran] = []
    while budget.allows(scale, taken):
        run, seconds = checked(hybrid, triangles)
        runs.append(run)
        taken.append(seconds)
    if not runs:
        return None, 0.0, ()
    seconds = statistics.median_low(taken)
    return runs[taken.index(seconds)], seconds, tuple(taken)


def checked(hybrid: Hybrid, triangles: int) -> tuple[Ran, float]:
    """One run and its seconds; one that never ends says where it is, and one that counts wrongly is an error."""
    faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
    try:
        begin = time.perf_counter()
        run = hybrid.run()
        seconds = time.perf_counter() - begin
    finally:
        faulthandler.cancel_dump_traceback_later()
    found = reduce(run.execution, run.plan).triangles
    if found != triangles:
        raise VerificationError(f"{found:,} triangles where there are {triangles:,}")
    return run, seconds


def looked_at(run: Ran) -> dict[str, Any]:
    """What happened in a run."""
    timeline, blocks = run.timeline, run.plan.blocks
    assert timeline is not None
    assert blocks is not None
    devices = timeline.device_uses
    return {
        "streams": blocks.streams,
        "threads": blocks.threads,
        "cutoff": blocks.cutoff,
        "tasks": blocks.tasks,
        "device_tasks": sum(span.device != "cpu" for span in timeline.spans),
        "kernel_seconds": sum(use.kernel_seconds for use in devices),
        "copy_seconds": sum(use.copy_seconds for use in devices),
        "overlap_seconds": sum(use.overlap_seconds for use in devices),
        "filling_seconds": sum(use.filling_seconds for use in devices),
        "copied_bytes": sum(use.copied_bytes for use in devices),
        "stream_share": _mean(use.busy_share for use in timeline.uses if use.device != "cpu"),
        "thread_share": _mean(use.busy_share for use in timeline.uses if use.device == "cpu"),
        "notes": run.plan.reasons,
    }


def _mean(shares: Iterable[float]) -> float:
    listed = list(shares)
    return sum(listed) / len(listed) if listed else 0.0


def measure(options: argparse.Namespace) -> Iterator[Measured]:
    """Every way on every graph, as long as there is time."""
    budget = Budget(time.perf_counter() + options.budget, options)
    for scale in options.scales:
        if budget.left(scale) < budget.need(scale) / 2:
            say(f"Kronecker {scale}: left out, it would take about {budget.need(scale):.0f} s")
            continue
        begin = time.perf_counter()
        known = from_stream(kronecker(scale, seed=1), options.threads)
        graph = ww.Graph(known.make_pairs())
        triangles = known.triangles if known.triangles is not None else ww.count(graph, device="cpu")
        oriented = graph.oriented()
        say(f"{known.name}: {oriented.m:,} edges, {triangles:,} triangles; made in {time.perf_counter() - begin:.1f} s")
        for parts in options.parts:
            yield from measure_cells(known.name, scale, oriented, parts, triangles, budget)
        del graph, oriented


def measure_cells(
    name: str, scale: int, graph: OrientedGraph, parts: int, triangles: int, budget: Budget
) -> Iterator[Measured]:
    """Every way on the same blocks; one that fails is told of, and does not end the others."""
    options, source = budget.options, None
    for way, cutoff in cells(options, scale):
        about = name, graph.m, way, parts, cutoff
        if budget.left(scale) <= 0:
            say(f"{name}: no time left for {way} with {parts} parts")
            continue
        knobs = knobs_of(way, parts, options.streams, cutoff)
        asked = Request(device="hybrid", algorithm=options.algorithm, threads=options.threads, knobs=knobs)
        try:
            hybrid = plan_graph(asked, graph, source=source)
            source = hybrid.source if isinstance(hybrid.source, GraphBlocks) else None
            run, seconds, repeats = timed(hybrid, scale, budget, triangles)
        except Exception as error:
            traceback.print_exc()
            yield Measured(*about, problem=f"{type(error).__name__}: {error}")
            if isinstance(error, DeviceError) and not isinstance(error, MemoryError):
                raise SystemExit(1) from error  # nothing runs on this device again
            continue
        if run is None:
            say(f"{name}: no time left for {way} with {parts} parts, but to warm up")
            continue
        yield Measured(*about, seconds, repeats, **looked_at(run))
        if way == SCHEDULES[0] and options.output is not None and run.timeline is not None:
            run.timeline.write(options.output / f"hybrid_gpu-{scale}-{parts}.svg")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def best_ratio(item: Measured, items: list[Measured]) -> float | None:
    """The time of a way by that of the faster single side on the same blocks, where both sides were measured."""
    singles = {
        other.way: other.seconds
        for other in items
        if other.way in SINGLE and other.repeats and (other.graph, other.parts) == (item.graph, item.parts)
    }
    return item.seconds / min(singles.values()) if len(singles) == len(SINGLE) and item.repeats else None


def table_of(items: list[Measured]) -> str:
    """A row for each way; its time beside that of the faster single side on the same blocks."""
    rows = []
    for item in items:
        ratio = best_ratio(item, items)
        is_slow = ratio is not None and item.way == SCHEDULES[0] and ratio > ALLOWED_RATIO
        times = (item.kernel_seconds, item.filling_seconds, item.copy_seconds, item.overlap_seconds)
        rows.append(
            [
                *(item.graph, str(item.parts), item.way, f"{item.cutoff:,}", f"{item.seconds * 1e3:.2f}"),
                "–" if ratio is None else f"{ratio:.2f}{' (too slow)' if is_slow else ''}",
                *(str(len(item.repeats)), f"{item.device_tasks:,}", f"{item.tasks - item.device_tasks:,}"),
                *(f"{taken * 1e3:.2f}" for taken in times),
                *(f"{item.copied_bytes / 1e6:.1f}", f"{item.stream_share:.0%}", f"{item.thread_share:.0%}"),
            ]
        )
    header = ["graph", "parts", "way", "cut-off", "ms", "best", "of runs", "on GPU", "on threads", "kernels, ms"]
    return markdown(
        [*header, "filling, ms", "bus, ms", "bus and kernels, ms", "copied, MB", "streams busy", "threads busy"], rows
    )


def text_of(items: list[Measured], stamp: dict[str, str]) -> str:
    """The table, where it comes from, and what went wrong."""
    where = "\n".join(f"- {name}: {value}" for name, value in stamp.items())
    problems = [f"- {item.way} on {item.graph}, {item.parts} parts: {item.problem}" for item in items if item.problem]
    wrong = ["## What went wrong\n\n" + "\n".join(problems)] if problems else []
    return "\n\n".join(["# Block tasks on a GPU and threads together", where, table_of(items), *wrong]) + "\n"


def store(folder: Path, item: Measured, items: list[Measured], stamp: dict[str, str]) -> None:
    """A line for the last record, and the table so far."""
    line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **asdict(item)})
    storage.append_line(folder / "hybrid_gpu.jsonl", line)
    with storage.atomic_write(folder / "hybrid_gpu.md") as file:
        file.write(text_of(items, stamp).encode())


def emulate(options: argparse.Namespace) -> None:
    """Let two emulated devices be found, and ask for little."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from emulate.streaming import StreamingEmulator

    devices = tuple(StreamingEmulator(f"Emulated GPU {number}") for number in range(2))
    gpu.find_devices = lambda: devices  # type: ignore[assignment, return-value]
    options.scales, options.parts, options.repeats, options.threads = [6, 7], [3], 1, 3


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[22, 23, 24], help="of the Kronecker graphs")
    parser.add_argument("--parts", type=int, nargs="+", default=[8], help="parts that ids are cut into")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--cutoffs", type=int, nargs="*", default=[], help="also the schedule cutoff with these, in %%")
    parser.add_argument("--algorithm", default="auto", help="keystone, trust or bbtc")
    parser.add_argument("--streams", type=int, default=4, help="of each GPU")
    parser.add_argument("--threads", type=int, default=hardware.usable_threads())
    parser.add_argument("--repeats", type=int, default=9, help="timed runs, after one that warms up")
    parser.add_argument("--cell-seconds", type=float, default=8.0, help="repeats beyond three end after so long")
    parser.add_argument("--budget", type=float, default=460.0, help="seconds in which all is to end")
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
    say(f"about {sum(map(Budget(0.0, options).need, options.scales)):.0f} s")
    items: list[Measured] = []
    for item in measure(options):
        items.append(item)
        text = item.problem or f"{item.seconds * 1e3:.2f} ms, {item.device_tasks} of {item.tasks} tasks on GPUs"
        print(f"{item.graph:20} {item.parts:3} parts {item.way:10} {text}", flush=True)
        if options.output is not None:
            store(options.output, item, items, stamp)
    print(f"\n{text_of(items, stamp)}")
    return int(any(item.problem is not None for item in items))


if __name__ == "__main__":
    sys.exit(main())
