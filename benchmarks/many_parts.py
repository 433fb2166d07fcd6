"""What many parts cost: counts of one graph from stores that differ in their parts alone, all of them in turn.

    PYTHONPATH=src python benchmarks/many_parts.py --scale 18 --parts 2 16 32 64 --output benchmarks/results
    PYTHONPATH=src python benchmarks/many_parts.py --scale 10 --parts 2 8 --repeats 1     # to see that it works

A Kronecker graph (seed 1) is counted in memory, and cut into a store for each number of parts. A first round loads
kernels, --repeats rounds are timed; every count has to be the one in memory. Printed, and stored as a line of JSON: the
median seconds of counting, also over those of the first number of parts; and the microseconds per task in which threads
ran no kernel, the reading of blocks among them. Cutting is timed too, once, over the count in memory from the file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import wedgewise as ww
from wedgewise.generate import kronecker
from wedgewise.machine import files as storage
from wedgewise.machine import hardware
from wedgewise.run.outofcore import count_store, tasks_from_disk
from wedgewise.run.request import Request
from wedgewise.store.open import Store
from wedgewise.write.edges import write_edges
from wedgewise_bench.record import describe_setting

ROOT = Path(__file__).resolve().parent.parent


@dataclass(slots=True)
class Measured:
    """A store: what cutting it took, its tasks, and every timed count with the seconds of all its kernels."""

    parts: int
    cut_seconds: float
    tasks: int = 0
    counts: list[tuple[float, float]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(taken for taken, _ in self.counts)

    def beyond_kernels(self, threads: int) -> float:
        """Microseconds of a task in which threads ran no kernel."""
        return 1e6 * statistics.median(taken - kernels / threads for taken, kernels in self.counts) / self.tasks


def count(store: Store, threads: int, triangles: int, measured: Measured) -> None:
    """Count once more, and note how long that takes."""
    request = Request(threads=threads, resume=False)
    tasks = tasks_from_disk(request, store)
    begin = time.perf_counter()
    found = count_store(request, store, tasks)
    seconds = time.perf_counter() - begin
    if found.triangles != triangles:
        raise SystemExit(f"{measured.parts} parts: {found.triangles:,} triangles, and {triangles:,} in memory")
    measured.tasks = len(found.task_seconds)
    measured.counts.append((seconds, sum(found.task_seconds.values())))


def compare(options: argparse.Namespace, folder: Path) -> tuple[float, list[Measured]]:
    """The seconds of a count in memory from the file, and all stores."""
    file, threads = folder / "graph.bel", options.threads
    write_edges(kronecker(options.scale, seed=1).pairs(), file)
    triangles = ww.count(file, threads=threads)  # loads kernels
    begin = time.perf_counter()
    ww.count(file, threads=threads)
    in_memory = time.perf_counter() - begin
    stores, all_measured = list[Store](), list[Measured]()
    for parts in (options.parts[0], *options.parts):  # the first loads kernels
        begin = time.perf_counter()
        stores.append(ww.partition(file, folder / f"store{len(stores)}", parts=parts, threads=threads))
        all_measured.append(Measured(parts, time.perf_counter() - begin))
    del stores[0], all_measured[0]
    for _ in range(1 + options.repeats):
        for store, measured in zip(stores, all_measured, strict=True):
            count(store, threads, triangles, measured)
    for measured in all_measured:
        del measured.counts[0]
    return in_memory, all_measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 16, 32, 64])
    parser.add_argument("--threads", type=int, default=hardware.usable_threads())
    parser.add_argument("--repeats", type=int, default=7, help="timed rounds, after one that loads kernels")
    parser.add_argument("--output", type=Path, default=None, help="the folder to store the record in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        in_memory, all_measured = compare(options, Path(folder))
    print(f"kronecker-{options.scale}-seed1, {options.threads} threads; in memory, from the file: {in_memory:.3f} s")
    first = all_measured[0].seconds
    for one in all_measured:
        print(
            f"{one.parts:4} parts {one.tasks:7,} tasks   "
            f"cut in {one.cut_seconds:.3f} s, {one.cut_seconds / in_memory:.2f} counts   "
            f"counted in {one.seconds:.3f} s, {one.seconds / first:.2f} of the first   "
            f"{one.beyond_kernels(options.threads):.1f} us per task beyond kernels"
        )
    if options.output is not None:
        setting = describe_setting([], [Path(sys.argv[0]).name, *sys.argv[1:]], ROOT)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        graph = {"graph": f"kronecker-{options.scale}-seed1", "threads": options.threads, "in_memory": in_memory}
        line = {"date": now, **asdict(setting), **graph, "stores": [asdict(one) for one in all_measured]}
        storage.append_line(options.output / f"many_parts-{now[:10]}.jsonl", json.dumps(line))


if __name__ == "__main__":
    main()
