"""Compare the speed of this tree with an earlier revision, question by question, interleaved.

python benchmarks/before_after.py 817e184 --scales 16 18 --runs 9

Two processes hold the same generated graphs, one with the package of each tree, and answer in turn; a line has the
median seconds of both and the median of the ratios of neighbouring runs. The last lines are whole processes: the start
of the command and a count of a file. One thread, since a busy machine disturbs the time of a process less than a clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = ("count", "triangles", "edge_support", "clustering", "trussness", "clean and count", "count a file")

CHILD = """
import sys, time
import numpy as np
import wedgewise as ww
scale, file, device = int(sys.argv[1]), sys.argv[2], sys.argv[3]
pairs = np.fromfile(file, dtype=np.uint32).reshape(-1, 2)
graph = ww.Graph(pairs)
how = {"device": device, "threads": 1} if device == "cpu" else {"device": device}
actions = {
    "clean and count": lambda: ww.count(pairs, **how),
    "count a file": lambda: ww.count(file, **how),
}
print("ready", flush=True)
for line in sys.stdin:
    name = line.strip()
    action = actions.get(name) or (lambda: getattr(ww, name)(graph, **how))
    clock = time.process_time if device == "cpu" else time.perf_counter
    begin = clock()
    action()
    print(clock() - begin, flush=True)
"""


def start(tree: Path, scale: int, file: Path, device: str) -> subprocess.Popen[str]:
    """A process that answers with the package of a tree."""
    arguments = [sys.executable, "-c", CHILD, str(scale), str(file), device]
    child = subprocess.Popen(arguments, env=environment(tree), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def environment(tree: Path) -> dict[str, str]:
    """Where a process finds the package of a tree."""
    return {**os.environ, "PYTHONPATH": str(tree / "src")}


def ask(child: subprocess.Popen[str], name: str) -> float:
    """The seconds that one answer took."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{name}\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def run_command(tree: Path, *arguments: str) -> float:
    """The seconds of a whole command."""
    begin = time.perf_counter()
    program = "import sys; from _wedgewise_start import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *arguments]
    subprocess.run(command, env=environment(tree), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def compare(name: str, runs: int, before: Callable[[], float], after: Callable[[], float]) -> None:
    """Print the medians of both sides, and of their ratio; the first run of each is not counted."""
    before(), after()
    pairs = [(before(), after()) for _ in range(runs)]
    old, new = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(mine / theirs for theirs, mine in pairs)
    sys.stdout.write(f"{name:32} {old:9.4f} s {new:9.4f} s  {ratio:5.2f}\n")
    sys.stdout.flush()


def main() -> None:
    """Compare this tree with a revision, or with a folder that holds one."""
    parser = argparse.ArgumentParser(description="compare the speed of this tree with an earlier one")
    parser.add_argument("before", help="a revision of git, or a folder with a tree")
    parser.add_argument("--scales", type=int, nargs="+", default=[16, 18])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=QUESTIONS)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(chosen.before)
        if not earlier.is_dir():
            earlier = Path(folder) / "before"
            earlier.mkdir()
            archive = subprocess.run(
                ["git", "archive", chosen.before, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True
            )
            subprocess.run(["tar", "-x", "-C", str(earlier)], input=archive.stdout, check=True)
        sys.stdout.write(f"{'':32} {'before':>11} {'after':>11}  ratio\n")
        for scale in chosen.scales:
            file = Path(folder) / f"kronecker-{scale}.bel"
            run_command(ROOT, "generate", "kronecker", "--scale", str(scale), str(file))
            children = [start(tree, scale, file, chosen.device) for tree in (earlier, ROOT)]
            for name in chosen.questions:
                compare(f"Kronecker {scale}, {name}", chosen.runs, *(partial(ask, child, name) for child in children))
            for child in children:
                child.communicate()
        for name, arguments in {"wedgewise --version": ["--version"], "count a file": ["count", str(file)]}.items():
            compare(name, chosen.runs, *(partial(run_command, tree, *arguments) for tree in (earlier, ROOT)))


if __name__ == "__main__":
    main()
