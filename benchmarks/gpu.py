"""Count on the GPU by every algorithm, on generated and real graphs; check every count; print and store the table.

PYTHONPATH=src python benchmarks/gpu.py --scales 18 20 22 --output results
PYTHONPATH=src python benchmarks/gpu.py --data graphs --algorithms keystone wetric

Kernel times are CUDA events around all launches and the clearing of counters, warm, the median of 20. Preparation is
from the oriented graph on the device to the first launch; copies are timed apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import wedgewise as ww
from wedgewise import storage
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import DeviceAnswer
from wedgewise.errors import WedgewiseError
from wedgewise.execute.device import copy_graph
from wedgewise.generate import kronecker
from wedgewise.graph import DeviceGraph, OrientedGraph
from wedgewise.machine import gpu, hardware
from wedgewise.report.text import table_text

REPEATS, WARM_UPS = 20, 3
SETTINGS: dict[str, list[dict[str, int | str]]] = {
    "wetric": [{}, {"matrix_length": 65536}, {"combination": "outgoing-edge"}],
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One algorithm on one graph; seconds, or what went wrong."""

    graph: str
    edges: int
    triangles: int
    algorithm: str
    knobs: dict[str, int | str]
    kernel: float | None
    preparation: float | None
    copy: float
    problem: str | None = None


def graphs(options: argparse.Namespace) -> Iterator[tuple[str, ww.Graph]]:
    """The Kronecker graphs of the asked scales, then the files of the data folder, largest last."""
    for scale in options.scales:
        stream = kronecker(scale, seed=1)
        yield f"Kronecker {scale}", ww.Graph(stream.pairs(), n=stream.n)
    if options.data is not None:
        for path in sorted(options.data.glob("*.el.xz"), key=lambda path: path.stat().st_size):
            yield path.name.removesuffix(".el.xz"), ww.read(path)


def on_device(oriented: OrientedGraph, device: gpu.Cuda) -> tuple[DeviceGraph, float]:
    """The graph on the device, and the seconds of copying it there."""
    begin = time.perf_counter()
    graph = copy_graph(oriented, device)
    device.synchronize()
    return graph, time.perf_counter() - begin


@dataclass
class Stopwatch:
    """Seconds on the device between two events of a stream."""

    device: gpu.Cuda

    def __enter__(self) -> Stopwatch:
        self._begin, self._end = self.device.xp.cuda.Event(), self.device.xp.cuda.Event()
        self._begin.record()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.record()

    @property
    def seconds(self) -> float:
        self._end.synchronize()
        return float(self.device.xp.cuda.get_elapsed_time(self._begin, self._end)) / 1e3


def measure(answer: DeviceAnswer, graph: DeviceGraph, knobs: Any, device: gpu.Cuda) -> tuple[int, float, float]:
    """The count, and the seconds of the kernels and of the preparation, both warm."""
    answer.prepare(graph, knobs, device)
    device.synchronize()
    begin = time.perf_counter()
    work = answer.prepare(graph, knobs, device)
    device.synchronize()
    prepared = time.perf_counter() - begin
    launches = [launch for batch in work.batches for launch in batch()]
    taken = []
    for _ in range(WARM_UPS + REPEATS):
        with Stopwatch(device) as watch:
            work.found.fill(0)
            for launch in launches:
                launch()
        taken.append(watch.seconds)
    return int(work.found[0]), statistics.median(taken[WARM_UPS:]), prepared


def run_graph(name: str, graph: ww.Graph, wanted: list[str], device: gpu.Cuda) -> Iterator[Measured]:
    """Every algorithm with every setting on one graph."""
    expected = ww.count(graph, device="cpu")
    for algorithm in wanted:
        record = registry()[algorithm, "cuda"]
        answer = record.on_device("count")
        held, copied = on_device(graph.oriented(record.orders[0], record.relabellings[0]), device)
        for given in SETTINGS.get(algorithm, [{}]):
            fields = (name, graph.m, expected, algorithm, given)
            try:
                found, kernel, prepared = measure(answer, held, record.settings(given), device)
            except WedgewiseError as error:
                yield Measured(*fields, None, None, copied, str(error))
                continue
            problem = None if found == expected else f"counts {found:,}"
            yield Measured(*fields, kernel, prepared, copied, problem)


def text_of(measured: list[Measured]) -> str:
    """A row for each algorithm and setting, kernel milliseconds for each graph."""
    names = list(dict.fromkeys(item.graph for item in measured))
    rows = [["kernel, ms", *names]]
    for key in dict.fromkeys((item.algorithm, json.dumps(item.knobs)) for item in measured):
        found = {item.graph: item for item in measured if (item.algorithm, json.dumps(item.knobs)) == key}
        title = key[0] if key[1] == "{}" else f"{key[0]} {key[1]}"
        rows.append([title, *(_cell(found.get(name)) for name in names)])
    return table_text(rows)


def _cell(item: Measured | None) -> str:
    if item is None:
        return "–"
    if item.problem is not None or item.kernel is None:
        return item.problem or "–"
    return f"{item.kernel * 1e3:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="*", default=[18, 20])
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz")
    parser.add_argument("--algorithms", nargs="+", help="default: all")
    parser.add_argument("--output", type=Path, help="folder for the records, one JSON object a line")
    options = parser.parse_args()
    device = gpu.find_device()
    wanted = options.algorithms or [name for name, where in registry() if where == "cuda"]
    measured: list[Measured] = []
    for name, graph in graphs(options):
        for item in run_graph(name, graph, wanted, device):
            measured.append(item)
            print(f"{name:24} {item.algorithm:10} {json.dumps(item.knobs):32} {_cell(item)}", flush=True)
            if options.output is not None:
                stamp = {"date": datetime.now(UTC).isoformat(), "device": device.name, "version": ww.__version__}
                machine = hardware.look().description
                line = json.dumps({**stamp, "machine": machine, **asdict(item)})
                storage.append_line(options.output / "gpu.jsonl", line)
    print(f"\n{device.name}\n{text_of(measured)}")
    return int(any(item.problem is not None for item in measured))


if __name__ == "__main__":
    sys.exit(main())
