"""How fast are workers in processes of their own, against as many threads of one process on the same blocks?

Both are warm: kernels are loaded, and blocks that were read stay in memory. Workers are timed from the first submit to
the last partial, threads from the first task to the last; both in turn, in one run. The figure is the median time of
the threads over that of the workers: 1 where workers cost nothing.

    python benchmarks/workers.py [--store FOLDER] [--scale 22] [--parts 8] [--workers 2] [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from wedgewise import generate
from wedgewise.machine import hardware
from wedgewise.run._count_worker import BatchRequest, CountState
from wedgewise.run._dispatch import Assignment
from wedgewise.run._process_workers import LocalWorkers
from wedgewise.run.cluster import ClusterWork, Driver, cluster_work
from wedgewise.run.outofcore import Finished
from wedgewise.run.request import Request
from wedgewise.stages.tasks import exact_sum
from wedgewise.store.build import write_store
from wedgewise.store.open import Store, open_store

WARMING = 2  # workers get other batches each time, until they hold all blocks


def by_workers(work: ClusterWork, processes: LocalWorkers) -> tuple[float, int]:
    """Seconds and triangles of one count by workers."""
    driver = Driver(work)
    begin = time.perf_counter()
    driver.run(processes)
    seconds = time.perf_counter() - begin
    return seconds, exact_sum(driver.finish().results.triangles)


def by_threads(work: ClusterWork, state: CountState) -> tuple[float, int]:
    """Seconds and triangles of one count in this process."""
    begin = time.perf_counter()
    found = [item for item in state.count(work.tasks.number.tolist()) if isinstance(item, Finished)]
    return time.perf_counter() - begin, sum(exact_sum(item.triangles) for item in found)


def compare(store: Store, workers: int, repeats: int) -> None:
    """Count in turn, and print every time and the ratio."""
    alone = cluster_work(Request(threads=workers), store)
    shared = cluster_work(Request(threads=1, workers=workers), store)
    state = CountState(BatchRequest.from_json(alone.message(Assignment(0, ()))), None, "here")
    seconds: dict[str, list[float]] = {"threads": [], "workers": []}
    with closing(LocalWorkers(workers)) as processes:
        processes.wait_for(workers)
        for repeat in range(WARMING + repeats):
            found = {"threads": by_threads(alone, state), "workers": by_workers(shared, processes)}
            if len({triangles for _, triangles in found.values()}) != 1:
                raise SystemExit(f"the counts differ: {found}")
            cells = "   ".join(f"{workers} {way} {taken:.3f} s" for way, (taken, _) in found.items())
            print(f"{'warming' if repeat < WARMING else 'timed':8} {cells}", flush=True)
            for way, (taken, _) in found.items() if repeat >= WARMING else ():
                seconds[way].append(taken)
    medians = {way: statistics.median(taken) for way, taken in seconds.items()}
    print(f"{found['workers'][1]:,} triangles; median of {repeats}: {medians}")
    print(f"workers reach {100 * medians['threads'] / medians['workers']:.1f} % of threads")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=None, help="a store that is there; else one is made")
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(hardware.look().description)
    with tempfile.TemporaryDirectory() as folder:
        if options.store is None:
            pairs = generate.kronecker(options.scale, seed=1).pairs(threads=hardware.usable_threads())
            store = write_store(pairs, Path(folder) / "store", parts=options.parts)
            del pairs
        else:
            store = open_store(options.store)
        compare(store, options.workers, options.repeats)


if __name__ == "__main__":
    main()
