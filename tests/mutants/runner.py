"""Runs the suite over copies of the tree with one bug each: every bug has to make a test fail.

A copy has a bug for one run of pytest at a time, with a folder of compiled kernels of its own that is empty before.
What does not import, does not compile, crashes the interpreter or never ends has proved nothing, and is as bad as a bug
that no test notices. Before that, all of these tests have to pass without a bug, in as few runs as there can be.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree

from mutants.edits import Edit, seeded
from mutants.mutant import Mutant, Selection, merged

CAUGHT, SURVIVED, BROKEN = "caught", "survived", "broken"
COPIED = ("src", "tests", "pyproject.toml")
WASTE = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache")
PROCESSES = 2
PATIENCE_SECONDS, CHECK_SECONDS = 400, 1200
LONGEST_NAME = 120
NO_PROOF = re.compile(
    r"^(?:[\w.]+\.)?(?:ImportError|ModuleNotFoundError|SyntaxError|IndentationError|NameError|UnboundLocalError"
    r"|TypingError|LoweringError|UnsupportedError|NumbaError|FailedHealthCheck|DeadlineExceeded)\b|does not compile"
)
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run of pytest over one mutant ended.

    Attributes
    ----------
    mutant : its name, or what was run without one
    kind : CAUGHT where a test failed, SURVIVED where all passed, BROKEN where the run proves nothing
    by : the test that failed, or why there is none
    seconds : how long it took
    """

    mutant: str
    kind: str
    by: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Tree:
    """A copy of sources and tests, with a folder for whatever runs leave."""

    root: Path
    left: Path

    @classmethod
    def copy_of(cls, root: Path, folder: Path) -> Tree:
        copy = folder / "tree"
        copy.mkdir(parents=True)
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=WASTE)
            elif source.exists():
                shutil.copy(source, copy / name)
        left = folder / "left"
        left.mkdir()
        return cls(copy, left)

    @property
    def package(self) -> Path:
        return self.root / "src" / "wedgewise"

    def run(self, name: str, selection: Selection, edits: Sequence[Edit] = ()) -> Verdict:
        """Run tests over the copy with these edits in it; without any, kernels of earlier such runs are there."""
        with seeded(self.package, edits), tempfile.TemporaryDirectory(dir=self.left) as folder:
            kernels = Path(folder) / "kernels" if edits else self.left / "kernels"
            report = Path(folder) / "report.xml"
            options = ("-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}")
            command = (sys.executable, "-m", "pytest", *options, *selection.arguments)
            patience = PATIENCE_SECONDS if edits else CHECK_SECONDS
            begin = time.perf_counter()
            try:
                finished = subprocess.run(
                    command,
                    cwd=self.root,
                    env=self._environment(kernels, selection),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=patience,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return Verdict(name, BROKEN, f"no end within {patience} s", patience)
            kind, by = judge(finished.returncode, report, finished.stdout)
            return Verdict(name, kind, by, time.perf_counter() - begin)

    def _environment(self, kernels: Path, selection: Selection) -> dict[str, str]:
        """The copy comes before whatever is installed; kernels of a GPU that are compiled here stay with the copy."""
        return os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (self.root / "src", self.root / "tests"))),
            "PYTHONDONTWRITEBYTECODE": "",  # `seeded` removes bytecode of the files that it changes
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
            "WEDGEWISE_CACHE": str(kernels),
            "NUMBA_DISABLE_JIT": str(int(selection.interpreted)),
            "TMPDIR": str(self.left),
        }


def judge(status: int, report: Path, output: str) -> tuple[str, str]:
    """What pytest's exit code and report say: a verdict, and the test or the reason for it."""
    if status == 0:
        return SURVIVED, "every test passes"
    if status == 1 and report.exists():
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            failure = case.find("failure")
            if failure is not None:
                message = failure.get("message", "")
                if NO_PROOF.search(message):
                    return BROKEN, message.partition("\n")[0]
                test = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
                return CAUGHT, shortened(test)
    said = [line for line in output.splitlines() if line.strip()]
    return BROKEN, f"pytest ended with {status}: {said[-1] if said else 'it said nothing'}"


@contextmanager
def trees(root: Path, count: int) -> Iterator[SimpleQueue[Tree]]:
    """So many copies of a tree, to be taken in turn and put back."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free: SimpleQueue[Tree] = SimpleQueue()
        for number in range(count):
            free.put(Tree.copy_of(root, Path(folder) / str(number)))
        yield free


def run_all(root: Path, mutants: Sequence[Mutant], progress: Progress, processes: int = PROCESSES) -> list[Verdict]:
    """Check that the tests pass as they are, then seed every mutant; nothing is seeded where they do not."""
    with trees(root, processes) as free, ThreadPoolExecutor(processes) as executor:

        def run(name: str, selection: Selection, edits: Sequence[Edit] = ()) -> Verdict:
            tree = free.get()
            try:
                return tree.run(name, selection, edits)
            finally:
                free.put(tree)

        def check(selection: Selection) -> Verdict:
            verdict = run(str(selection), selection)
            passes = verdict.kind == SURVIVED
            by = shortened(verdict.mutant) if passes else verdict.by
            progress(row("nothing", "passes" if passes else BROKEN, f"{verdict.seconds:.0f} s", by))
            return verdict if passes else replace(verdict, kind=BROKEN)

        def seed(mutant: Mutant) -> Verdict:
            verdict = run(mutant.name, mutant.caught_by, mutant.edits)
            progress(row(verdict.mutant, verdict.kind, f"{verdict.seconds:.0f} s", verdict.by))
            return verdict

        selections = merged(tuple(dict.fromkeys(mutant.caught_by for mutant in mutants)), processes)
        failed = [verdict for verdict in executor.map(check, selections) if verdict.kind == BROKEN]
        return failed or list(executor.map(seed, mutants))


def shortened(text: str) -> str:
    """What a line of the table has room for."""
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def row(name: str, kind: str, seconds: str, by: str) -> str:
    """A line of the table."""
    return f"{name:<40}{kind:<10}{seconds:>6}  {by}"


def summary(verdicts: Sequence[Verdict], seconds: float) -> str:
    """The last line: how many were caught, and what became of the others."""
    left = [verdict for verdict in verdicts if verdict.kind != CAUGHT]
    lines = [f"{verdict.mutant}: {verdict.kind}: {verdict.by}" for verdict in left]
    return "\n".join([*lines, f"{len(verdicts) - len(left)} of {len(verdicts)} caught in {seconds:.0f} s"])
