"""Run all that is tested on a GPU, in rounds: tests in several processes at once; those that fill or measure its memory
alone; then the tools of compute-sanitizer side by side.

PYTHONPATH=src python benchmarks/gpu_tests.py --output results
PYTHONPATH=src python benchmarks/gpu_tests.py --processes 4 --tests tests/devices/test_peel_cuda.py --tools

Tests are dealt out one by one, so that the slow ones of a file do not meet in one process. What every process said is
in gpu_tests.txt; what failed is printed. The exit code is 1 where anything did, or where nothing ran.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sanitize import TOOLS

from wedgewise.machine import files as storage

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("tests/devices", "tests/bench/test_runner.py")
ALONE = ("test_limits_cuda.py", "test_hybrid_cuda.py", "test_copies_cuda.py", "ladder_of_memory", "lost_to_the_driver")
STUCK_SECONDS = 120
SANITIZE = ROOT / "benchmarks" / "sanitize.py"


@dataclass(frozen=True, slots=True)
class Job:
    """What a process runs, and what it is called."""

    name: str
    command: list[str]


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended: what it was called, its exit code, its seconds and what it said."""

    name: str
    returncode: int
    seconds: float
    text: str

    @property
    def passed(self) -> int:
        found = re.search(r"(\d+) passed", self.text)
        return int(found[1]) if found else 0

    @property
    def last_line(self) -> str:
        return self.text.strip().rpartition("\n")[2]


def pytest_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *arguments]


def collected(tests: Sequence[str]) -> list[str]:
    """The names of all tests that need a GPU."""
    done = subprocess.run(
        pytest_command("--collect-only", *tests), cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = [line for line in done.stdout.splitlines() if "::" in line]
    if done.returncode or not names:
        raise SystemExit(f"no tests were found:\n{done.stdout}{done.stderr}")
    return names


def test_jobs(groups: dict[str, list[str]], folder: Path) -> list[Job]:
    """A process for each group of tests, whose names are in a file."""
    jobs = []
    for name, tests in groups.items():
        (folder / name).write_text("\n".join(tests))
        command = pytest_command("-o", f"faulthandler_timeout={STUCK_SECONDS}", "-rfE", f"@{folder / name}")
        jobs.append(Job(name, command))
    return jobs


def in_processes(jobs: Sequence[Job], seconds: float) -> Iterator[Ended]:
    """Run jobs at once, each of which is ended after so long."""
    begin = time.perf_counter()
    with ExitStack() as held:
        started = []
        for job in jobs:
            said = held.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(job.command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
            started.append((job.name, said, process))
        for name, said, process in started:
            try:
                process.wait(max(0.0, seconds - (time.perf_counter() - begin)))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            said.seek(0)
            text = said.read().decode(errors="replace")
            yield Ended(name, process.returncode, time.perf_counter() - begin, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="files or folders")
    parser.add_argument("--tools", nargs="*", default=TOOLS, help="of compute-sanitizer; none without a name")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=240.0, help="that each round may take")
    parser.add_argument("--output", type=Path, help="folder of gpu_tests.txt")
    options = parser.parse_args()
    begin = time.perf_counter()
    names = collected(options.tests)
    alone = [name for name in names if any(part in name for part in ALONE)]
    shared = [name for name in names if name not in set(alone)]
    dealt = {f"process {at}": shared[at :: options.processes] for at in range(min(options.processes, len(shared)))}
    ended = []
    with tempfile.TemporaryDirectory() as folder:
        rounds = [
            test_jobs(dealt, Path(folder)),
            test_jobs({"alone": alone} if alone else {}, Path(folder)),
            [Job(tool, [sys.executable, str(SANITIZE), "--tools", tool]) for tool in options.tools],
        ]
        for jobs in rounds:
            for item in in_processes(jobs, options.seconds):
                ended.append(item)
                print(f"{item.name:12} {item.seconds:6.1f} s  exit {item.returncode}  {item.last_line}", flush=True)
                if item.returncode:
                    print(item.text[-6000:], flush=True)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        with storage.atomic_write(options.output / "gpu_tests.txt") as file:
            file.write("\n".join(f"== {item.name}\n{item.text}" for item in ended).encode())
    passed = sum(item.passed for item in ended)
    print(f"{passed} passed of {len(names)}, and {len(options.tools)} tools, in {time.perf_counter() - begin:.0f} s")
    return int(any(item.returncode for item in ended) or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
