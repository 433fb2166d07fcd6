"""How long do Dask workers that share one GPU take for a store, and what does one cost that is killed in the middle?

Starts a scheduler and 2, then 4 workers, each a process, all on this machine's first GPU. Counts a store of a Kronecker
graph three times with each: with workers that have just started, again with blocks on the device, and with one worker
killed when half of the tasks are counted. Prints seconds, and the tasks and bytes of every worker; all totals have to
be equal, and equal to the known one. Dask may come from a folder:

    pip install --target DIR --python-version 3.12 --platform manylinux2014_x86_64 --only-binary=:all: distributed
    PYTHONPATH=src:DIR python benchmarks/gpu_cluster.py --scale 24 --folder /dev/shm
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
from pathlib import Path

from wedgewise import generate
from wedgewise.machine import hardware
from wedgewise.run import cluster
from wedgewise.run._dask_workers import DaskWorkers, connect
from wedgewise.run._device_counting import USABLE
from wedgewise.run.cluster import ClusterWork, Driver, assign
from wedgewise.run.request import Request
from wedgewise.stages.tasks import exact_sum
from wedgewise.store.build import write_store
from wedgewise.store.manifest import is_store
from wedgewise.store.open import Store, open_store

SEED = 1
KNOWN = {16: 15_678_782}  # by scale, of seed 1
PATIENCE = 60.0
SHORT = 20  # scales below this would be one batch


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


def count(work: ClusterWork, workers: DaskWorkers, what: str, victim: subprocess.Popen[bytes] | None = None) -> int:
    """The triangles of one count, which is printed; a victim is killed when half of the tasks are counted."""

    def progress(_stage: str, done: int, total: int) -> None:
        if victim is not None and 2 * done >= total and victim.poll() is None:
            victim.kill()

    begin = time.perf_counter()
    driver = Driver(work, progress=progress)
    driver.run(workers)
    seconds = time.perf_counter() - begin
    triangles = exact_sum(driver.finish().results.triangles)
    read = sum(share.read_bytes for share in driver.shares.values())
    print(f"  {what:14} {seconds:8.3f} s   {triangles:,} triangles   {read:,} bytes of blocks read", flush=True)
    for name, share in sorted(driver.shares.items()):
        print(f"      {name:24} {share.counts_on:24} {share.tasks:6,} tasks {share.read_bytes:16,} bytes")
    return triangles


def measure(store: Store, workers: int, device: str, device_bytes: int, folder: Path) -> set[int]:
    """The totals of all counts by so many workers."""
    threads = max(1, hardware.usable_threads() // workers)
    knobs = {"device_bytes": device_bytes // workers} if device == "cuda" else None
    with dask_cluster(folder, workers, device) as (address, processes):
        work = assign(Request(cluster=address, device=device, threads=threads, knobs=knobs), store)
        print(f"{workers} workers, {threads} threads each", flush=True)
        found = set()
        for what, victim in (("just started", None), ("again", None), ("one is killed", processes[0])):
            with closing(connect(address, on_gpus=device == "cuda")) as there:
                there.wait_for(workers)
                found.add(count(work, there, what, victim))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=24)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="for the store")
    options = parser.parse_args()
    if options.scale < SHORT:
        cluster.MIN_SECONDS = 0.0
    device_bytes, since = 0, time.perf_counter()
    if options.device == "cuda":
        from wedgewise.machine.gpu import find_device

        device = find_device()
        device_bytes = int(device.free_bytes() * USABLE)
        print(f"{device.name}, {device_bytes:,} bytes for all workers together")
    print(hardware.look().description)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        place = options.folder / f"kronecker-{options.scale}-{options.parts}"
        if is_store(place):
            store = open_store(place)
        else:
            pairs = generate.kronecker(options.scale, seed=SEED).pairs(threads=hardware.usable_threads())
            print(f"generated after {time.perf_counter() - since:.1f} s", flush=True)
            store = write_store(pairs, place, parts=options.parts)
            del pairs
        print(f"a store of {store.manifest.m:,} edges after {time.perf_counter() - since:.1f} s", flush=True)
        found = set[int]()
        for workers in options.workers:
            found |= measure(store, workers, options.device, device_bytes, Path(name))
    known = KNOWN.get(options.scale)
    if len(found) != 1 or (known is not None and found != {known}):
        raise SystemExit(f"the totals differ: {sorted(found)}, and {known} is known")
    print(f"all totals are equal; {time.perf_counter() - since:.1f} s in all")


if __name__ == "__main__":
    main()
