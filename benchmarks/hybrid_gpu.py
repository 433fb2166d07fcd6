"""Count by block tasks on a GPU, on threads, and on both; check every count; print and store the table.

PYTHONPATH=src python benchmarks/hybrid_gpu.py --output results
PYTHONPATH=src python benchmarks/hybrid_gpu.py --scales 22 --parts 4 8 16 --ways gpu cpu guarded --cutoffs 0 25 75 100
PYTHONPATH=src python benchmarks/hybrid_gpu.py --emulate

gpu, cpu                  the same tasks on one side alone: what hybrid is compared with
guarded, cutoff, dynamic  both sides by each schedule
arcs, density, degree     both sides, guarded, tasks sorted by BBTC's other estimators

A run is what `Hybrid.run` does: threads started, blocks copied from pageable memory, all tasks counted; cutting the
graph is not in it. The median of --repeats after a run that warms up; fewer where a cell would take longer than
--cell-seconds. `best` is the time of a way divided by that of the faster single side on the same blocks: hybrid is to
stay below 1.10.
--emulate runs everything without a GPU, on a small graph, to see that it works; its times mean nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import wedgewise as ww
from wedgewise import storage
from wedgewise.bench.graphs import from_stream
from wedgewise.bench.table import markdown
from wedgewise.execute.hybrid import GraphBlocks, Hybrid, HybridRun, plan_graph
from wedgewise.generate import kronecker
from wedgewise.graph import OrientedGraph
from wedgewise.machine import gpu, hardware
from wedgewise.plan import Options
from wedgewise.reduce import reduce

SINGLE = ("gpu", "cpu")
SCHEDULES = ("guarded", "cutoff", "dynamic")
OTHER_ESTIMATORS = ("arcs", "density", "degree")
WAYS = (*SINGLE, *SCHEDULES, *OTHER_ESTIMATORS)
ALLOWED_RATIO = 1.10


@dataclass(frozen=True, slots=True)
class Measured:
    """One way on one graph; the median of the seconds, and of the run with that time what happened where."""

    graph: str
    edges: int
    way: str
    parts: int
    streams: int
    threads: int
    cutoff: int
    seconds: float
    repeats: int
    tasks: int
    device_tasks: int
    kernel_seconds: float
    copy_seconds: float
    overlap_seconds: float
    copied_bytes: int
    stream_share: float
    thread_share: float
    problem: str | None = None


def knobs_of(way: str, parts: int, streams: int, cutoff: int) -> dict[str, int | str]:
    """The knobs that a way stands for."""
    knobs: dict[str, int | str] = {"parts": parts, "streams": streams, "cutoff": cutoff}
    if way in SINGLE:
        return {**knobs, "places": way}
    return {**knobs, "schedule": way} if way in SCHEDULES else {**knobs, "estimator": way}


def timed(hybrid: Hybrid, repeats: int, cell_seconds: float) -> tuple[HybridRun, float, int]:
    """The run of median time, its seconds, and how many there were, after one that warms up."""
    hybrid.run()
    runs: list[tuple[float, HybridRun]] = []
    ends = time.perf_counter() + cell_seconds
    while len(runs) < repeats and (not runs or time.perf_counter() < ends):
        begin = time.perf_counter()
        run = hybrid.run()
        runs.append((time.perf_counter() - begin, run))
    seconds = statistics.median_low(taken for taken, _ in runs)
    return next(run for taken, run in runs if taken == seconds), seconds, len(runs)


def measured(name: str, graph: OrientedGraph, way: str, hybrid: Hybrid, triangles: int, how: Any) -> Measured:
    """Run one way and look at what it did."""
    run, seconds, repeats = timed(hybrid, how.repeats, how.cell_seconds)
    found, timeline, blocks = reduce(run.execution, run.plan).triangles, run.timeline, run.plan.blocks
    assert blocks is not None
    devices = timeline.device_uses
    return Measured(
        graph=name,
        edges=graph.m,
        way=way,
        parts=blocks.parts,
        streams=blocks.streams,
        threads=blocks.threads,
        cutoff=blocks.cutoff,
        seconds=seconds,
        repeats=repeats,
        tasks=blocks.tasks,
        device_tasks=sum(span.device != "cpu" for span in timeline.spans),
        kernel_seconds=sum(use.kernel_seconds for use in devices),
        copy_seconds=sum(use.copy_seconds for use in devices),
        overlap_seconds=sum(use.overlap_seconds for use in devices),
        copied_bytes=sum(use.copied_bytes for use in devices),
        stream_share=_mean(use.busy_share for use in timeline.uses if use.device != "cpu"),
        thread_share=_mean(use.busy_share for use in timeline.uses if use.device == "cpu"),
        problem=None if found == triangles else f"{found:,} triangles where there are {triangles:,}",
    )


def _mean(shares: Iterator[float]) -> float:
    listed = list(shares)
    return sum(listed) / len(listed) if listed else 0.0


def measure(options: argparse.Namespace) -> Iterator[Measured]:
    """Every way on every graph, as long as there is time."""
    ends = time.perf_counter() + options.limit_seconds
    for scale in options.scales:
        known = from_stream(kronecker(scale, seed=1), hardware.usable_threads())
        graph = ww.Graph(known.make_pairs())
        triangles = known.triangles if known.triangles is not None else ww.count(graph, device="cpu")
        oriented = graph.oriented()
        for parts in options.parts:
            source: GraphBlocks | None = None
            for way, cutoff in cells(options):
                if time.perf_counter() > ends:
                    print(f"{known.name}: no time left for {way} with {parts} parts", file=sys.stderr)
                    continue
                knobs = knobs_of(way, parts, options.streams, cutoff)
                asked = Options(device="hybrid", algorithm=options.algorithm, threads=options.threads, knobs=knobs)
                hybrid = plan_graph("count", oriented, asked, source)
                assert isinstance(hybrid.source, GraphBlocks)
                source = hybrid.source
                yield measured(known.name, oriented, way, hybrid, triangles, options)
        del graph, oriented


def cells(options: argparse.Namespace) -> list[tuple[str, int]]:
    """The ways with their cut-offs, in percent."""
    return [
        *((way, 50) for way in options.ways),
        *(("cutoff", cutoff) for cutoff in options.cutoffs if not (cutoff == 50 and "cutoff" in options.ways)),
    ]


def table_of(items: list[Measured]) -> str:
    """A row for each way; its time beside that of the faster single side on the same blocks."""
    rows = []
    for item in items:
        singles = [
            other.seconds
            for other in items
            if other.way in SINGLE and (other.graph, other.parts) == (item.graph, item.parts)
        ]
        ratio = item.seconds / min(singles) if singles else None
        is_slow = ratio is not None and item.way == SCHEDULES[0] and ratio > ALLOWED_RATIO
        rows.append(
            [
                *(item.graph, str(item.parts), item.way, f"{item.cutoff:,}", f"{item.seconds * 1e3:.2f}"),
                "–" if ratio is None else f"{ratio:.2f}{' (too slow)' if is_slow else ''}",
                *(f"{item.device_tasks:,}", f"{item.tasks - item.device_tasks:,}"),
                *(f"{taken * 1e3:.2f}" for taken in (item.kernel_seconds, item.copy_seconds, item.overlap_seconds)),
                *(f"{item.copied_bytes / 1e6:.1f}", f"{item.stream_share:.0%}", f"{item.thread_share:.0%}"),
            ]
        )
    header = ["graph", "parts", "way", "cut-off", "ms", "best", "on GPU", "on threads", "kernels, ms", "copies, ms"]
    return markdown([*header, "both, ms", "copied, MB", "streams busy", "threads busy"], rows)


def text_of(items: list[Measured], stamp: dict[str, str]) -> str:
    """The table, where it comes from, and what went wrong."""
    where = "\n".join(f"- {name}: {value}" for name, value in stamp.items())
    problems = [f"- {item.way} on {item.graph}, {item.parts} parts: {item.problem}" for item in items if item.problem]
    wrong = ["## What went wrong\n\n" + "\n".join(problems)] if problems else []
    return "\n\n".join(["# Block tasks on a GPU and threads together", where, table_of(items), *wrong]) + "\n"


def emulate(options: argparse.Namespace) -> None:
    """Let two emulated devices be found, and ask for little."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from emulate.streaming import StreamingEmulator

    devices = tuple(StreamingEmulator(f"Emulated GPU {number}") for number in range(2))
    gpu.find_devices = lambda: devices  # type: ignore[assignment, return-value]
    options.scales, options.parts, options.repeats, options.threads = [7], [3], 1, 3


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[22, 23, 24], help="of the Kronecker graphs")
    parser.add_argument("--parts", type=int, nargs="+", default=[8], help="parts that ids are cut into")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--cutoffs", type=int, nargs="*", default=[], help="also the schedule cutoff with these, in %%")
    parser.add_argument("--algorithm", default="auto", help="keystone, trust or bbtc")
    parser.add_argument("--streams", type=int, default=4, help="of each GPU")
    parser.add_argument("--threads", type=int, help="default: all that this process may use")
    parser.add_argument("--repeats", type=int, default=9, help="timed runs, after one that warms up")
    parser.add_argument("--cell-seconds", type=float, default=8.0, help="no further repeat after so long")
    parser.add_argument("--limit-seconds", type=float, default=420.0, help="nothing further is begun after so long")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line, and the table")
    parser.add_argument("--emulate", action="store_true", help="without a GPU, on a small graph")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store; the exit status is 1 when a count was wrong."""
    options = parse(arguments)
    if options.emulate:
        emulate(options)
    stamp = {
        "devices": ", ".join(device.name for device in gpu.find_devices()),
        "machine": hardware.look().description,
        "version": ww.__version__,
        "command": " ".join(["benchmarks/hybrid_gpu.py", *(sys.argv[1:] if arguments is None else arguments)]),
    }
    items = []
    for item in measure(options):
        items.append(item)
        text = item.problem or f"{item.seconds * 1e3:.2f} ms, {item.device_tasks} of {item.tasks} tasks on GPUs"
        print(f"{item.graph:20} {item.parts:3} parts {item.way:10} {text}", flush=True)
        if options.output is not None:
            line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **asdict(item)})
            storage.append_line(options.output / "hybrid_gpu.jsonl", line)
    text = text_of(items, stamp)
    print(f"\n{text}")
    if options.output is not None:
        with storage.atomic_write(options.output / "hybrid_gpu.md") as file:
            file.write(text.encode())
    return int(any(item.problem is not None for item in items))


if __name__ == "__main__":
    sys.exit(main())
