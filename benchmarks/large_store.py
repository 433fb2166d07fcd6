"""One large graph from a file to its count, within little memory, killed on the way: the run for the record.

    PYTHONPATH=src python benchmarks/large_store.py --scale 26 --memory 4GB --output benchmarks/results
    PYTHONPATH=src python benchmarks/large_store.py --scale 18 --parts 32 --memory 512MB      # about a minute

A Kronecker graph (seed 1, 16 pairs per vertex) is written as raw pairs, cut into a store and counted, each by the
command in a process of its own. The count is killed by SIGKILL --kills times, at random moments behind the first task
that it has written down, and given again. The edges and triangles have to be those that are known; those of small
scales are counted in memory to compare with.

Printed, and stored as a line of JSON: the seconds of every process and the most memory that it held (VmHWM), beside the
machine, the versions, the date and the command. Disk: 8 bytes per pair for the file, and about 20 while it is cut.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wedgewise.machine import files as storage
from wedgewise.run.checkpoint import JOURNAL
from wedgewise_bench.record import describe_setting

ROOT = Path(__file__).resolve().parent.parent
KNOWN = {25: (523_603_820, 22_531_014_208), 26: (1_051_919_557, 49_187_357_546)}  # edges and triangles
MAX_IN_MEMORY = 22  # scales that are counted again to compare with
LOOK_SECONDS = 0.01
KILLED_AT = (0.05, 0.25)  # of the estimated seconds, behind the first task that is written down


@dataclass(frozen=True, slots=True)
class Step:
    """One process: what it did, its seconds, its peak of resident memory, and whether it was killed."""

    name: str
    seconds: float
    peak_bytes: int
    killed: bool
    record: Any


class TooSoonError(Exception):
    """A count ended before it could be killed."""


def peak_of(pid: int) -> int:
    """The peak of resident memory of a process so far; 0 where it is gone."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0
    return 0


def run(name: str, *arguments: str, is_due: Callable[[], bool] | None = None) -> Step:
    """Run a command of ours; kill it when that is due."""
    begin, peak, killed = time.perf_counter(), 0, False
    command = [sys.executable, "-m", "wedgewise", *arguments, "--json"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output)
        while process.poll() is None:
            peak = max(peak, peak_of(process.pid))
            if not killed and is_due is not None and is_due():
                process.send_signal(signal.SIGKILL)
                killed = True
            time.sleep(LOOK_SECONDS)
        output.seek(0)
        text = output.read()
    seconds = time.perf_counter() - begin
    if process.returncode == -signal.SIGKILL and killed:
        step = Step(name, seconds, peak, True, None)
    elif process.returncode != 0:
        raise SystemExit(f"{shlex.join(command)} ended with {process.returncode}")
    elif is_due is not None:
        raise TooSoonError
    else:
        step = Step(name, seconds, peak, False, json.loads(text))
    print(f"{name:14} {seconds:8.1f} s {peak / 1e6:8.0f} MB{'   killed' if killed else ''}", flush=True)
    return step


def moment(journal: Path, seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed since there are more finished tasks than now."""
    before, since = _size(journal), None

    def is_due() -> bool:
        nonlocal since
        if since is None and _size(journal) > before:
            since = time.perf_counter()
        return since is not None and time.perf_counter() - since >= seconds

    return is_due


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def steps_of(options: argparse.Namespace, folder: Path) -> list[Step]:
    """Generate, cut, count with kills, and check the count."""
    file, store = folder / "graph.bel", folder / "store"
    generated = run("generate", "generate", "kronecker", "--scale", str(options.scale), "--seed", "1", str(file))
    parts = () if options.parts is None else ("--parts", str(options.parts))
    cut = run("partition", "partition", str(file), str(store), "--memory", options.memory, *parts)
    steps, asked = [generated, cut], ("count", str(store), "--memory", options.memory)
    estimated = run("explain", "explain", *asked[1:]).record["estimated_seconds"]
    draw = random.Random(options.seed)
    for number in range(options.kills):
        due = moment(store / JOURNAL, draw.uniform(*KILLED_AT) * estimated)
        steps.append(run(f"count {number + 1}", *asked, is_due=due))
        if not _size(store / JOURNAL):
            raise SystemExit("a count that was killed has left nothing to go on with")
    steps.append(run("count", *asked))
    known = KNOWN.get(options.scale)
    if known is None and options.scale <= MAX_IN_MEMORY:
        again = run("in memory", "count", str(file)).record
        known = again["m"], again["answer"]
    found = cut.record["m"], steps[-1].record["answer"]
    if known is not None and found != known:
        raise SystemExit(f"{found} edges and triangles were found, and {known} are right")
    print(f"{found[0]:,} edges and {found[1]:,} triangles, {'not known before' if known is None else 'as known'}")
    return steps


def line_of(options: argparse.Namespace, steps: list[Step]) -> dict[str, Any]:
    """The record."""
    partition, count = (
        next(step.record for step in reversed(steps) if step.name == name) for name in ("partition", "count")
    )
    setting = describe_setting([], [Path(sys.argv[0]).name, *sys.argv[1:]], ROOT)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **asdict(setting),
        "graph": f"kronecker-{options.scale}-seed1",
        "memory": options.memory,
        "pairs": partition["cleaned"]["pairs"],
        "edges": partition["m"],
        "triangles": count["answer"],
        "parts": partition["parts"],
        "threads": count["plan"]["threads"],
        "is_known": options.scale in KNOWN or options.scale <= MAX_IN_MEMORY,
        "steps": [{name: value for name, value in asdict(step).items() if name != "record"} for step in steps],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, required=True)
    parser.add_argument("--memory", default="4GB", help="for every process that cuts or counts")
    parser.add_argument("--parts", type=int, default=None, help="by default as few as the memory allows")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--folder", type=Path, default=None, help="where the file and the store are for the time of it")
    parser.add_argument("--output", type=Path, default=None, help="the folder to store the record in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="large-store-") as folder:
        try:
            steps = steps_of(options, Path(folder))
        except TooSoonError:
            raise SystemExit(
                "a count ended before it could be killed; take a larger scale, more parts or --kills 0"
            ) from None
    line = line_of(options, steps)
    print(json.dumps(line))
    if options.output is not None:
        storage.append_line(options.output / f"large_store-{line['date'][:10]}.jsonl", json.dumps(line))


if __name__ == "__main__":
    main()
