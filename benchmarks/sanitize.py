"""Run every GPU algorithm under NVIDIA's compute-sanitizer; print what each of its tools found; exit 1 on any error.

PYTHONPATH=src python benchmarks/sanitize.py
PYTHONPATH=src python benchmarks/sanitize.py --tools racecheck --algorithms keystone

Graphs are tiny: racecheck takes a hundred times as long as the kernels alone. Every array has memory of its own instead
of a place in a pool, so that a step beyond its end is seen. A run without a tool comes first and compiles the kernels.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import wedgewise as ww
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import Algorithm
from wedgewise.generate import book, complete, kronecker
from wedgewise.machine import gpu
from wedgewise.report.text import table_text

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
USUAL_PLACE = Path("/usr/local/cuda/bin/compute-sanitizer")
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error")
RACES_SUMMARY, RACE = "RACECHECK SUMMARY", re.compile(r"Race reported between \w+ access at (\w+)")
NOT_OURS = "cupy_"  # how the names of CuPy's own kernels begin
STREAMS = (kronecker(8, seed=1), book(50), complete(40))
LIMIT_SECONDS = 230
SHOWN_LINES = 40
ALL_ROADS: dict[str, list[dict[str, int | str]]] = {  # that graphs as small as these do not take by themselves
    "keystone": [{"near_hubs": 32, "least_far_loads": 1, "long_item": 2, "batches": 3}],
    "trust": [{"large": 2}],
}


@dataclass(frozen=True, slots=True)
class Found:
    """What a tool found: errors, or why there is no number of them."""

    tool: str
    errors: int | None
    seconds: float
    problem: str
    output: str

    @property
    def is_clean(self) -> bool:
        return self.errors == 0 and not self.problem


class MemoryOfItsOwn:
    """What stands for the device's pool: every array is allocated and freed by the driver."""

    def __init__(self, cupy: Any) -> None:
        self._cuda = cupy.cuda

    def malloc(self, size: int) -> Any:
        return self._cuda.MemoryPointer(self._cuda.Memory(size), 0)

    def free_all_blocks(self) -> None:
        """Nothing is kept."""

    def free_bytes(self) -> int:
        return 0


def settings(record: Algorithm) -> Iterator[Mapping[str, int | str]]:
    """The defaults, every choice of every knob, and what leads along all roads."""
    yield {}
    for knob in record.knobs:
        yield from ({knob.name: choice} for choice in knob.choices if choice != knob.default)
    yield from ALL_ROADS.get(record.name, [])


def check(graph: ww.Graph, record: Algorithm, knobs: Mapping[str, int | str]) -> None:
    """Every answer of an algorithm is the CPU's."""
    for computes in record.answers:
        details: dict[str, Any] = {"k": 4} if computes == "k_truss" else {}
        found = ww.run(computes, graph, device="cuda", algorithm=record.name, knobs=knobs, **details)
        expected = ww.run(computes, graph, device="cpu", algorithm="reference", **details)
        if found.device != "cuda" or found.to_dict()["answer"] != expected.to_dict()["answer"]:
            sys.exit(f"{record.name} {knobs}: {computes} is wrong, or was left to the host")


def answer_everything(names: list[str]) -> int:
    """What runs under a tool: all settings on the first graph, the defaults on the others, dirty pairs each."""
    device: Any = gpu.find_device()
    device._pool = MemoryOfItsOwn(device.xp)
    for number, stream in enumerate(STREAMS):
        pairs = stream.pairs()
        dirty = np.concatenate([pairs, pairs[: len(pairs) // 2, ::-1], pairs[:5], np.repeat(pairs[:3, :1], 2, axis=1)])
        graph = ww.Graph(dirty, device="cuda")
        for name in names:
            record = registry()[name, "cuda"]
            for knobs in settings(record) if number == 0 else ({},):
                check(graph, record, knobs)
    return 0


def run(tool: str | None, sanitizer: Path | None, names: list[str]) -> Found:
    """A process of its own under a tool, or under none."""
    under = [] if tool is None else [str(sanitizer), "--tool", tool, "--print-limit", "1000"]
    command = [*under, sys.executable, "-W", "ignore", __file__, "--answer", "--algorithms", *names]
    begin = time.perf_counter()
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return Found(tool or "none", None, LIMIT_SECONDS, f"not done after {LIMIT_SECONDS} s", "")
    seconds, output = time.perf_counter() - begin, ended.stdout + ended.stderr
    problem = f"exit status {ended.returncode}" if ended.returncode else ""
    if tool is None:
        return Found("none", 0, seconds, problem, output)
    errors = errors_of(output)
    if errors is None:
        return Found(tool, None, seconds, problem or "no summary", output)
    return Found(tool, errors, seconds, problem, output)


def errors_of(output: str) -> int | None:
    """How many errors a tool's output tells of, and races in kernels of our own; None without a summary."""
    summaries = SUMMARY.findall(output)
    if not summaries and RACES_SUMMARY not in output:
        return None
    return sum(map(int, summaries)) + sum(not kernel.startswith(NOT_OURS) for kernel in RACE.findall(output))


def text_of(found: list[Found]) -> str:
    rows = [["tool", "errors", "seconds", "problem"]]
    for item in found:
        rows.append([item.tool, "–" if item.errors is None else str(item.errors), f"{item.seconds:.1f}", item.problem])
    return table_text(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--algorithms", nargs="+", help="default: all")
    parser.add_argument("--sanitizer", type=Path, help="compute-sanitizer, where it is not found by itself")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.algorithms or [name for name, where in registry() if where == "cuda"]
    if options.answer:
        return answer_everything(names)
    sanitizer = options.sanitizer or Path(shutil.which("compute-sanitizer") or USUAL_PLACE)
    if not sanitizer.exists():
        parser.error(f"{sanitizer} is not there: install the CUDA toolkit, or say where by --sanitizer")
    found = [run(None, None, names)]
    if found[0].is_clean:
        found += [run(tool, sanitizer, names) for tool in options.tools]
    for item in found:
        if not item.is_clean:
            print(f"--- {item.tool}", *item.output.splitlines()[-SHOWN_LINES:], sep="\n")
    print(text_of(found))
    return int(not all(item.is_clean for item in found))


if __name__ == "__main__":
    sys.exit(main())
