"""Count on the GPU by every algorithm, on generated and real graphs; check every count; print and store the tables.

PYTHONPATH=src python benchmarks/gpu.py --scales 18 20 22 23 --data graphs --output results
PYTHONPATH=src python benchmarks/gpu.py --what answers whole --scales 18 20 --output results
PYTHONPATH=src python benchmarks/gpu.py --what --records results/gpu.jsonl

kernels   every algorithm and setting: CUDA events around all launches and the clearing of counters, warm, the median of
          20, or of 5 at least where they take more than a second together; preparation from the oriented graph on the
          device to the first launch; the whole way from pairs in pageable host memory, once; and the regret of `auto`:
          how much longer what it chooses takes to prepare and count than what is done first
answers   every question by `auto` on a graph that lies on the device: seconds by stage
whole     counts from pairs in pageable host memory and from files, warm: seconds by stage, their sum, those by the wall
          clock, and those of the first count of this size, beside the limits and aims of the stages

Records add up: those of earlier runs, given by --records, are printed with the new ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import DeviceAnswer, Shape
from wedgewise.errors import WedgewiseError
from wedgewise.generate import kronecker
from wedgewise.machine import files as storage
from wedgewise.machine import gpu, hardware
from wedgewise.report.text import table_text
from wedgewise.run.choose import make_device_plan
from wedgewise.run.plan import OrientedShape
from wedgewise.run.request import Request
from wedgewise.stages import DeviceGraph
from wedgewise_bench.stopwatch import Stopwatch

REPEATS, MIN_REPEATS, WARM_UPS = 20, 5, 1
REPEATED_SECONDS = 1.0
WHOLE_REPEATS = 5
QUESTIONS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("count", "triangles", "edge_support", "clustering", "transitivity", "trussness")},
    "k_truss": {"k": 10},
    "list_triangles": {"stop": 1 << 24},
}
KNOWN_COUNTS = {  # of Kronecker graphs by scale, seed 1, found by several algorithms and orders
    16: 15_678_782,
    18: 82_845_405,
    20: 424_620_647,
    22: 2_111_670_863,
    23: 4_672_453_940,
    24: 10_285_898_894,
    25: 22_531_014_208,
    26: 49_187_357_546,
}
PREPARING_LIMITS = {  # ms on an H200: copying into pinned memory by 8 threads; keys, radix sort and unique of CUB
    "Kronecker 18": (1.1, 0.37),
    "Kronecker 20": (4.2, 1.08),
    "Kronecker 22": (15.0, 4.4),
    "Kronecker 23": (32.0, 9.4),
}
WHOLE_AIMS = dict(zip((16, 18, 20, 22, 23, 24, 25, 26), (3.5, 5, 10, 30, 60, 125, 270, 620), strict=True))
ANSWER_AIMS = {"edge_support": 220, "triangles": 160, "trussness": 1300, "k_truss": 350}  # of Kronecker 23
SETTINGS: dict[str, list[dict[str, int | str]]] = {
    "wetric": [{}, {"matrix_length": 65536}, {"combination": "outgoing-edge"}],
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One algorithm or question on one graph; seconds by stage, or what went wrong."""

    what: str
    graph: str
    edges: int
    triangles: int
    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    chosen: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph on the device, its pairs in host memory, and its count by the host."""

    name: str
    pairs: NDArray[Any]
    graph: ww.Graph
    triangles: int


def subjects(options: argparse.Namespace) -> Iterator[Subject]:
    """The Kronecker graphs of the asked scales, then the files of the data folder, largest last."""
    for scale in options.scales:
        pairs = kronecker(scale, seed=1).pairs()
        graph = ww.Graph(pairs, device="cuda")
        yield Subject(f"Kronecker {scale}", pairs, graph, ww.count(graph, device="cpu"))
    if options.data is not None:
        for path in sorted(options.data.glob("*.el.xz"), key=lambda path: path.stat().st_size):
            graph = ww.read(path)
            if graph.m >= options.least_edges:
                pairs = graph.edges.astype(np.int32)
                yield Subject(path.name.removesuffix(".el.xz"), pairs, graph, ww.count(graph, device="cpu"))


def time_kernels(
    answer: DeviceAnswer, graph: DeviceGraph, knobs: Any, device: gpu.Cuda
) -> tuple[int, dict[str, float]]:
    """The count, and the seconds of the kernels and of the preparation, both warm."""

    def prepare() -> tuple[Any, list[Callable[[], None]]]:
        work = answer.prepare(graph, knobs, device)
        return work, [launch for batch in work.batches for launch in batch()]

    prepare()
    device.synchronize()
    begin = time.perf_counter()
    work, launches = prepare()
    device.synchronize()
    prepared = time.perf_counter() - begin
    taken: list[float] = []
    while len(taken) < WARM_UPS + MIN_REPEATS or (len(taken) < WARM_UPS + REPEATS and sum(taken) < REPEATED_SECONDS):
        with Stopwatch(device) as watch:
            work.found.fill(0)
            for launch in launches:
                launch()
        taken.append(watch.seconds)
    return int(work.found[0]), {"prepare": prepared, "kernel": statistics.median(taken[WARM_UPS:])}


def kernels(subject: Subject, wanted: list[str], device: gpu.Cuda) -> Iterator[Measured]:
    """Every algorithm with every setting on one graph; the one that `auto` chooses is marked."""
    for algorithm in wanted:
        record = registry()[algorithm, "cuda"]
        form = subject.graph.on_device(record.orders[0], record.relabellings[0])
        planned = OrientedShape(Shape(form.n, form.m, form.wedges))
        plan = make_device_plan(Request(), "count", planned, device)
        for given in SETTINGS.get(algorithm, [{}]):
            name = algorithm if not given else f"{algorithm} {json.dumps(given)}"
            fields = ("kernels", subject.name, subject.graph.m, subject.triangles, name)
            try:
                with device.memory():
                    found, seconds = time_kernels(record.on_device("count"), form, record.settings(given), device)
            except WedgewiseError as error:
                yield Measured(*fields, problem=str(error))
                continue
            whole = ww.run("count", subject.pairs, device="cuda", algorithm=algorithm, knobs=given)
            seconds["end to end"] = sum(whole.seconds.values())
            right = found == whole.answer == subject.triangles
            problem = None if right else f"counts {found:,} and {whole.answer:,}"
            yield Measured(*fields, seconds, chosen=plan.algorithm == algorithm and not given, problem=problem)


def answers(subject: Subject) -> Iterator[Measured]:
    """Every question on one graph, warm."""
    for question, details in QUESTIONS.items():
        _, seconds = _median(partial(ww.run, question, subject.graph, device="cuda", **details))
        if subject.name == "Kronecker 23" and question in ANSWER_AIMS:
            seconds["aim"] = ANSWER_AIMS[question] / 1e3
        yield Measured("answers", subject.name, subject.graph.m, subject.triangles, question, seconds)


def whole(options: argparse.Namespace) -> Iterator[Measured]:
    """Counts from pairs in pageable memory and from files."""
    for scale in options.scales:
        pairs, name = kronecker(scale, seed=1).pairs(), f"Kronecker {scale}"
        sources: list[tuple[str, Any]] = [(f"{pairs.dtype} pairs", pairs)]
        if name in PREPARING_LIMITS:
            limits = dict(zip(("copy", "clean and orient"), (ms / 1e3 for ms in PREPARING_LIMITS[name]), strict=True))
            yield Measured("whole", name, 0, 0, "limits", limits)
        with tempfile.TemporaryDirectory() as folder:
            if scale <= options.largest_file:
                np.save(Path(folder) / "pairs.npy", pairs)
                sources += [("int64 pairs", pairs.astype(np.int64)), (".npy file", Path(folder) / "pairs.npy")]
            if scale <= options.largest_text:
                np.savetxt(Path(folder) / "pairs.txt", pairs, fmt="%d")
                sources.append(("text file", Path(folder) / "pairs.txt"))
            for title, source in sources:
                result, seconds = _median(partial(ww.run, "count", source, device="cuda"))
                if source is pairs:
                    seconds["aim"] = WHOLE_AIMS.get(scale, np.nan) / 1e3
                    expected = KNOWN_COUNTS.get(scale) or ww.count(pairs, device="cpu")
                problem = None if result.answer == expected else f"counts {result.answer:,}, not {expected:,}"
                yield Measured("whole", name, result.m, expected, title, seconds, problem=problem)


def _median(run: Callable[[], ww.Result]) -> tuple[ww.Result, dict[str, float]]:
    """The run of median time, after a first one; the seconds of both by the wall clock, and by stage."""
    timed = []
    for _ in range(1 + WHOLE_REPEATS):
        begin = time.perf_counter()
        result = run()
        timed.append((time.perf_counter() - begin, result))
    wall, result = sorted(timed[1:], key=lambda one: one[0])[WHOLE_REPEATS // 2]
    stages = result.seconds
    return result, {"wall": wall, "first": timed[0][0], "stages": sum(stages.values()), **stages}


def kernel_table(measured: list[Measured], stage: str) -> str:
    """A row for each algorithm and setting, milliseconds for each graph."""
    names = list(dict.fromkeys(item.graph for item in measured))
    rows = [[f"{stage}, ms", *names]]
    for title in dict.fromkeys(item.name for item in measured):
        found = {item.graph: item for item in measured if item.name == title}
        rows.append([title, *(_cell(found.get(name), stage) for name in names)])
    return table_text(rows)


def _cell(item: Measured | None, stage: str) -> str:
    if item is None:
        return "–"
    return item.problem or f"{item.seconds[stage] * 1e3:.3f}"


def regret_table(measured: list[Measured]) -> str:
    """For each graph what is prepared and has counted first, and what `auto` chose."""
    rows = [["graph", "chosen", "prepare + kernel, ms", "first", "prepare + kernel, ms", "regret, µs", "%"]]
    for name in dict.fromkeys(item.graph for item in measured):
        right = [item for item in measured if item.graph == name and item.problem is None]
        chosen = [item for item in right if item.chosen]
        if not chosen:
            continue
        fastest = min(right, key=_prepared_and_counted)
        taken, least = _prepared_and_counted(chosen[-1]), _prepared_and_counted(fastest)
        figures = f"{taken * 1e3:.3f}", fastest.name, f"{least * 1e3:.3f}", f"{(taken - least) * 1e6:.1f}"
        rows.append([name, chosen[-1].name, *figures, f"{100 * (taken / least - 1):.0f}"])
    return table_text(rows)


def _prepared_and_counted(item: Measured) -> float:
    return item.seconds["prepare"] + item.seconds["kernel"]


def stage_table(measured: list[Measured]) -> str:
    """A row for each measurement, milliseconds by stage."""
    stages = list(dict.fromkeys(stage for item in measured for stage in item.seconds))
    rows = [["graph", "", *(f"{stage}, ms" for stage in stages)]]
    for item in measured:
        cells = (f"{item.seconds[stage] * 1e3:.2f}" if stage in item.seconds else "–" for stage in stages)
        rows.append([item.graph, item.problem or item.name, *cells])
    return table_text(rows)


def text_of(measured: list[Measured]) -> str:
    """All tables; of repeated measurements the last one counts."""
    latest = list({(item.what, item.graph, item.name): item for item in measured}.values())
    kernel, answered, from_source = ([item for item in latest if item.what == what] for what in WHAT)
    parts = []
    if kernel:
        parts += [kernel_table(kernel, stage) for stage in ("kernel", "prepare", "end to end")]
        parts.append(regret_table(kernel))
    parts += [stage_table(items) for items in (answered, from_source) if items]
    return "\n\n".join(parts)


WHAT = ("kernels", "answers", "whole")


def measure(options: argparse.Namespace, device: gpu.Cuda) -> Iterator[Measured]:
    """Everything that is asked for."""
    counting = [name for (name, where), item in registry().items() if where == "cuda" and "count" in item.answers]
    wanted = options.algorithms or counting
    if {"kernels", "answers"} & set(options.what):
        for subject in subjects(options):
            if "kernels" in options.what:
                yield from kernels(subject, wanted, device)
            if "answers" in options.what:
                yield from answers(subject)
            subject.graph.release()
    if "whole" in options.what:
        yield from whole(options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="*", choices=WHAT, default=["kernels"])
    parser.add_argument("--scales", type=int, nargs="*", default=[18, 20])
    parser.add_argument(
        "--largest-text", type=int, default=18, help="scale up to which a text file is written and read"
    )
    parser.add_argument(
        "--largest-file", type=int, default=23, help="scale up to which 64-bit pairs and a binary file are counted"
    )
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz")
    parser.add_argument("--least-edges", type=int, default=0, help="leave out smaller graphs of the folder")
    parser.add_argument("--algorithms", nargs="+", help="default: all")
    parser.add_argument("--records", type=Path, nargs="*", default=[], help="records of earlier runs to print too")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line")
    options = parser.parse_args()
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    names = Measured.__dataclass_fields__
    lines = [json.loads(line) for path in options.records for line in path.read_text().splitlines()]
    measured = [Measured(**{name: line[name] for name in names}) for line in lines]
    if options.what:
        device = gpu.find_device()
        stamp = {"device": device.name, "machine": hardware.look().description, "version": ww.__version__}
        for item in measure(options, device):
            measured.append(item)
            stages = " ".join(f"{stage} {taken * 1e3:.3f}" for stage, taken in item.seconds.items())
            print(f"{item.graph:20} {item.name:32} {item.problem or stages}", flush=True)
            if options.output is not None:
                line = json.dumps({"date": datetime.now(UTC).isoformat(), **stamp, **asdict(item)})
                storage.append_line(options.output / "gpu.jsonl", line)
    print(f"\n{text_of(measured)}")
    return int(any(item.problem is not None for item in measured))


if __name__ == "__main__":
    sys.exit(main())
