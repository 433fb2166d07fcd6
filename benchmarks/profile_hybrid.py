"""What every thread of a count by block tasks on a GPU does, and when: calls, kernels and copies on one clock.

    PYTHONPATH=src python benchmarks/profile_hybrid.py --cells 20:4 20:16 22:4 --output results
    PYTHONPATH=src python benchmarks/profile_hybrid.py --cells 22:4 --streams 1 2 4 --switch-ms 5 0.1
    PYTHONPATH=src python benchmarks/profile_hybrid.py --emulate

A cell is a Kronecker graph and the parts that it is cut into; its tasks are counted on the GPU alone, by so many
streams, with so many milliseconds after which a thread has to hand the interpreter to another. Printed are the median
of --repeats runs and everything that the last one did: a line for each call that took --least-ms, with its time, and
how much of that its thread had a core for; else it slept, or waited for the interpreter. --emulate runs it without a
GPU on small graphs, to see that it works.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hybrid_gpu

import wedgewise as ww
from wedgewise.algorithms.gpu import _batches, _keystone_triples
from wedgewise.generate import kronecker
from wedgewise.machine import gpu, hardware, ring
from wedgewise.run import _hybrid_queue, _hybrid_streams, _hybrid_workers, block_caches, hybrid
from wedgewise.run.hybrid import HybridTasks, plan_graph
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise.run.timeline import Timeline
from wedgewise_bench.graphs import from_stream

WATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (hybrid.HybridTasks, ("run",)),
    (hybrid._Running, ("__init__", "_prepare_device", "_work")),
    (hybrid, ("allocate", "send")),
    (gpu.Cuda, ("get_ready", "stream", "reserve", "clock", "allocate", "send", "upload", "download", "launch")),
    (ring.Ring, ("_send_packed",)),
    (_hybrid_streams.DeviceWorker, ("_bring", "_start", "_launch", "_make", "_finish", "_copies")),
    (_hybrid_workers.WorkerPool, ("finish",)),
    (_hybrid_queue.TaskQueue, ("for_stream", "finish")),
    (block_caches.SharedBlocks, ("_reserve", "_wait_for", "release")),
    (_batches.GpuBatch, ("of", "launches")),
    (_keystone_triples.Near, ("choose",)),
    (_keystone_triples, ("_by_tables", "_by_rows", "shape_of")),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a thread: how deep it is nested, from when to when, and the seconds that it had a core."""

    thread: str
    depth: int
    name: str
    begin: float
    end: float
    core_seconds: float


class Watch:
    """All calls of `WATCHED`, as long as nobody clears them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._here = threading.local()
        for owner, names in WATCHED:
            for name in names:
                setattr(owner, name, self._watched(getattr(owner, name), f"{owner.__name__.split('.')[-1]}.{name}"))

    def _watched(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(call)
        def watched(*arguments: Any, **options: Any) -> Any:
            depth = getattr(self._here, "depth", 0)
            self._here.depth = depth + 1
            begin, core = time.perf_counter(), time.thread_time()
            try:
                return call(*arguments, **options)
            finally:
                self._here.depth = depth
                thread, core = threading.current_thread(), time.thread_time() - core
                self.calls.append(
                    Call(f"{thread.name}#{thread.native_id}", depth, name, begin, time.perf_counter(), core)
                )

        return watched


def lines_of(calls: list[Call], timeline: Timeline, least: float) -> Iterator[str]:
    """A line for each call, thread by thread, then the kernels and copies of every stream; all in milliseconds."""
    begin = min(call.begin for call in calls)
    for thread in dict.fromkeys(call.thread for call in sorted(calls, key=lambda call: call.begin)):
        yield f"  {thread}"
        for call in sorted(
            (call for call in calls if call.thread == thread), key=lambda call: (call.begin, call.depth)
        ):
            if call.end - call.begin >= least:
                at, taken = 1e3 * (call.begin - begin), 1e3 * (call.end - call.begin)
                yield f"    {at:8.2f} {'· ' * call.depth}{call.name} {taken:.2f} core {1e3 * call.core_seconds:.2f}"
    shift = 1e3 * (next(call.begin for call in calls if call.name == "_Running._work") - begin)
    for span in sorted(timeline.spans, key=lambda span: span.begin):
        yield (
            f"  {span.place}: {span.tasks} tasks from {span.task}, kernels "
            f"{shift + 1e3 * span.begin:.2f} … {shift + 1e3 * span.end:.2f}"
        )
        for copy in span.copies:
            yield (
                f"    filled {shift + 1e3 * copy.filled[0]:.2f} … {shift + 1e3 * copy.filled[1]:.2f}, copied "
                f"{shift + 1e3 * copy.begin:.2f} … {shift + 1e3 * copy.end:.2f}, {copy.nbytes / 1e6:.1f} MB"
            )


def profile(planned: HybridTasks, watch: Watch, repeats: int, triangles: int) -> tuple[list[float], Timeline]:
    """Seconds of all runs after one that warms up, and the timeline of the last one."""
    seconds, timeline = list[float](), Timeline((), ())
    for _ in range(1 + repeats):
        watch.calls.clear()
        begin = time.perf_counter()
        ran = planned.run()
        seconds.append(time.perf_counter() - begin)
        found = reduce(ran.execution, ran.plan).triangles
        if found != triangles:
            raise SystemExit(f"{found:,} triangles where there are {triangles:,}")
        timeline = ran.timeline or timeline
    return seconds[1:], timeline


def profiles(options: argparse.Namespace) -> Iterator[str]:
    """A text for every cell, number of streams and interval."""
    watch, graphs = Watch(), dict[int, Any]()
    for cell in options.cells:
        scale, parts = map(int, cell.split(":"))
        if scale not in graphs:
            graph = ww.Graph(from_stream(kronecker(scale, seed=1), options.threads).make_pairs())
            graphs[scale] = ww.count(graph, device="cpu" if options.emulate else "cuda"), graph.oriented()
        triangles, oriented = graphs[scale]
        source = None
        for streams in options.streams:
            knobs = {"parts": parts, "streams": streams, "places": "gpu"}
            request = Request(device="hybrid", threads=options.threads, knobs=knobs)
            source = plan_graph(request, oriented).source if source is None else source
            assert isinstance(source, hybrid.GraphBlocks)
            for milliseconds in options.switch_ms:
                sys.setswitchinterval(milliseconds / 1e3)
                begin = time.perf_counter()
                planned = plan_graph(request, oriented, source=source)
                planning = 1e3 * (time.perf_counter() - begin)
                seconds, timeline = profile(planned, watch, options.repeats, triangles)
                runs = ", ".join(f"{1e3 * taken:.1f}" for taken in seconds)
                yield (
                    f"kronecker-{scale}, {parts} parts, {streams} streams, threads change after {milliseconds} ms: "
                    f"median {1e3 * statistics.median(seconds):.1f} ms of {runs}; planned in {planning:.1f} ms"
                )
                if not options.short:
                    yield from lines_of(watch.calls, timeline, options.least_ms / 1e3)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", metavar="SCALE:PARTS", default=["20:4", "20:16", "22:4"])
    parser.add_argument("--streams", type=int, nargs="+", default=[4])
    parser.add_argument("--switch-ms", type=float, nargs="+", default=[1e3 * sys.getswitchinterval()])
    parser.add_argument("--threads", type=int, default=hardware.usable_threads())
    parser.add_argument("--repeats", type=int, default=5, help="timed runs, after one that warms up")
    parser.add_argument("--least-ms", type=float, default=0.2, help="shorter calls are left out")
    parser.add_argument("--short", action="store_true", help="the first line of every profile alone")
    parser.add_argument("--output", type=Path, help="a folder for the text")
    parser.add_argument("--emulate", action="store_true", help="without a GPU, on small graphs")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.emulate:
        hybrid_gpu.emulate(options)
    lines = list[str]()
    for line in profiles(options):
        print(line, flush=True)
        lines.append(line)
    if options.output is not None:
        (options.output / "profile_hybrid.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
