"""How long do Dask workers that share one GPU take for a store, and what does one cost that is killed in the middle?

Starts a scheduler and 2, then 4 workers, each a process, all on this machine's first GPU. Counts a store of a Kronecker
graph three times with each: with workers that have just started, again with kernels that are loaded, and with one
worker killed when half of the tasks are counted. Prints and stores seconds, and the tasks and bytes of every worker.
All totals have to be what a count of the whole graph in one process finds. Dask may come from a folder:

    pip install --target DIR --python-version 3.12 --platform manylinux2014_x86_64 --only-binary=:all: distributed
    PYTHONPATH=src:DIR python benchmarks/gpu_cluster.py --scale 24 --folder /dev/shm --output results
    PYTHONPATH=src python benchmarks/gpu_cluster.py --scale 14 --device cpu        # a rehearsal without a GPU
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import wedgewise as ww
from wedgewise import generate
from wedgewise.machine import files as storage
from wedgewise.machine import hardware
from wedgewise.run import cluster
from wedgewise.run._dask_workers import DaskWorkers, connect
from wedgewise.run._device_counting import USABLE
from wedgewise.run.cluster import ClusterWork, Driver, cluster_work
from wedgewise.run.request import Request
from wedgewise.stages.tasks import exact_sum
from wedgewise.store.build import write_store
from wedgewise.store.open import Store
from wedgewise_bench.record import describe_setting

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
PATIENCE = 60.0
SHORT = 20  # scales below this would be one batch


@dataclass(frozen=True, slots=True)
class Counted:
    """One count: by how many workers, after what, its seconds, its total, and the tasks and bytes of every worker."""

    workers: int
    what: str
    seconds: float
    triangles: int
    read_bytes: int
    shares: dict[str, tuple[str, int, int]]

    @property
    def text(self) -> str:
        total = f"{self.triangles:,} triangles   {self.read_bytes:,} bytes of blocks read"
        lines = (
            f"      {name:24} {counts_on:24} {tasks:6,} tasks {read_bytes:16,} bytes"
            for name, (counts_on, tasks, read_bytes) in self.shares.items()
        )
        return "\n".join((f"{self.workers} workers, {self.what:14} {self.seconds:8.3f} s   {total}", *lines))


@contextmanager
def dask_cluster(folder: Path, workers: int, device: str) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler of this machine, and its workers, which nobody starts again."""
    file, log = folder / "scheduler.json", folder / "log"
    here = ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    options = ["--scheduler-file", str(file), *here]
    resources = "wedgewise=1 GPU=1" if device == "cuda" else "wedgewise=1"
    work = ["--no-nanny", "--nthreads", "1", "--resources", resources, "--local-directory", str(folder)]
    environment = {
        "CUDA_VISIBLE_DEVICES": "0",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "DASK_TEMPORARY_DIRECTORY": str(folder),
    }
    commands = [["dask_scheduler", *options, "--port", "0"], *[["dask_worker", *options, *work]] * workers]
    processes = list[subprocess.Popen[bytes]]()
    with log.open("wb") as output:
        try:
            for module, *given in commands:
                command = [sys.executable, "-m", f"distributed.cli.{module}", *given]
                processes.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output))
            yield _address(file, log), processes[1:]
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()
            file.unlink(missing_ok=True)


def _address(file: Path, log: Path) -> str:
    """What the scheduler writes when it listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return str(json.loads(file.read_text())["address"])
        except (OSError, ValueError):  # not there, or not yet whole
            time.sleep(0.05)
    raise SystemExit(f"no scheduler within {PATIENCE} s: {log.read_text()}")


def count(work: ClusterWork, there: DaskWorkers, workers: int, victim: subprocess.Popen[bytes] | None) -> Counted:
    """One count; a victim is killed when half of the tasks are counted."""

    def progress(_stage: str, done: int, total: int) -> None:
        if victim is not None and 2 * done >= total and victim.poll() is None:
            victim.kill()

    begin = time.perf_counter()
    driver = Driver(work, progress=progress)
    driver.run(there)
    seconds = time.perf_counter() - begin
    shares = {name: (share.counts_on, share.tasks, share.read_bytes) for name, share in sorted(driver.shares.items())}
    triangles = exact_sum(driver.finish().results.triangles)
    return Counted(workers, "", seconds, triangles, sum(share[2] for share in shares.values()), shares)


def measure(store: Store, workers: int, device: str, device_bytes: int, folder: Path) -> Iterator[Counted]:
    """All counts by so many workers."""
    threads = max(1, hardware.usable_threads() // workers)
    knobs = {"device_bytes": device_bytes // workers} if device == "cuda" else None
    with dask_cluster(folder, workers, device) as (address, processes):
        work = cluster_work(Request(cluster=address, device=device, threads=threads, knobs=knobs), store)
        for what, victim in (("just started", None), ("again", None), ("one is killed", processes[0])):
            with closing(connect(address, on_gpus=device == "cuda")) as there:
                there.wait_for(workers)
                yield replace(count(work, there, workers, victim), what=what)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=24)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="for the store")
    parser.add_argument("--output", type=Path, help="folder for the record, one JSON object a line")
    options = parser.parse_args()
    if options.scale < SHORT:
        cluster.MIN_SECONDS = 0.0
    device_bytes, name = 0, None
    if options.device == "cuda":
        from wedgewise.machine.gpu import find_device

        device = find_device()
        device_bytes, name = int(device.free_bytes() * USABLE), device.name
        print(f"{name}, {device_bytes:,} bytes for all workers together")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        pairs = generate.kronecker(options.scale, seed=SEED).pairs(threads=hardware.usable_threads())
        known = ww.count(pairs, device=options.device)
        begin = time.perf_counter()
        store = write_store(pairs, Path(folder) / "store", parts=options.parts)
        cut_seconds = time.perf_counter() - begin
        del pairs
        print(f"{store.manifest.m:,} edges, {known:,} triangles; a store of them after {cut_seconds:.1f} s", flush=True)
        found = list[Counted]()
        for workers in options.workers:
            for counted in measure(store, workers, options.device, device_bytes, Path(folder)):
                print(counted.text, flush=True)
                found.append(counted)
    if {counted.triangles for counted in found} != {known}:
        raise SystemExit(f"the totals are {[counted.triangles for counted in found]}, and {known} is right")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        record = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            **asdict(describe_setting(["distributed", "cupy"], sys.argv, ROOT)),
            "device": name,
            "graph": f"kronecker-{options.scale}-seed{SEED}",
            "edges": store.manifest.m,
            "parts": options.parts,
            "cut_seconds": cut_seconds,
            "counts": [asdict(counted) for counted in found],
        }
        storage.append_line(options.output / f"gpu_cluster-{record['date'][:10]}.jsonl", json.dumps(record))


if __name__ == "__main__":
    main()
