"""A program of somebody else as a system under comparison: what `programs` declares, run in the child process.

The graph's files are written and the program's own preparations run before anything is timed. Each answer is a run of
the command, in the process group of the child, so that limits hold for it and its end ends the program. A program that
is not there is unavailable; another exit status than 0, or output without the number, is a crash of the cell.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from wedgewise_bench.programs import FILES, UNITS, Program, read_programs

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEARCHED_BYTES = 2**20
"""How much of a program's output is searched: its end."""


def class_of(source: str, name: str) -> type[External]:
    """The class of a program that a file declares, as a child process asks for it."""
    program = next(item for item in read_programs(Path(source)) if item.name == name)
    return type("Declared", (External,), {"name": name, "package": name, "program": program})


class External:
    """One program by its declaration; what is prepared is the value of each placeholder.

    Its own clock, where it has one, is that of its kernels, and is taken for counts of a loaded graph.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    program: ClassVar[Program]
    algorithms: ClassVar[tuple[str, ...]] = ("default",)
    warms_up: ClassVar[bool] = True

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.threads = threads
        self._folder: Path | None = None
        self._is_loaded = False
        self._edges: int | None = None
        self._own_seconds: float | None = None

    def load(self) -> None:
        """A program is loaded by each of its runs."""

    def why_unavailable(self) -> str | None:
        """Which of its programs is not there, if any."""
        for name, *_ in self.program.commands:
            if shutil.which(self.program.path_of(name)) is None:
                remedy = "build it there" if os.sep in name else "put its folder on PATH"
                return f"no program {name} that can be run; {remedy}"
        return None

    def prepare(self, pairs: NDArray[Any]) -> Mapping[str, str]:
        if self._folder is not None:
            shutil.rmtree(self._folder)
        self._folder = Path(tempfile.mkdtemp(prefix="wedgewise-program-"))  # deleted with the cell's temporary files
        values = self._written(pairs, self._folder)
        for command in self.program.prepare:
            self._output(command, values)
        return values

    def prepare_file(self, path: str) -> Mapping[str, str]:
        from wedgewise.read import read_edges

        return self.prepare(read_edges(path, threads=self.threads).pairs)

    def prepare_question(self, _question: str, _prepared: Mapping[str, str]) -> None:
        """From here on, runs of the program alone are timed."""
        self._is_loaded = True

    def count(self, prepared: Mapping[str, str]) -> int:
        text = self._output(self.program.command, prepared)
        if self.program.seconds:
            self._own_seconds = self._seconds(self._found("seconds", self.program.seconds, text))
        number = self._found("count", self.program.count, text)
        digits = re.sub(r"[,_']", "", number)
        if not digits.isdecimal():
            raise RuntimeError(f"{self.name} printed {number!r} for its count, no whole number; mend its regex")
        return int(digits)

    def measured(self) -> dict[str, Any]:
        """What its own clock said of the latest run, and the edges of a graph that we made simple."""
        stages = {} if self._own_seconds is None else {"kernel": self._own_seconds}
        taken = {"seconds": self._own_seconds} if stages and self._is_loaded else {}
        return {"stages": stages, "edges": self._edges, **taken}

    def facts(self, _prepared: Mapping[str, str]) -> dict[str, Any]:
        """How it was run, to be recorded beside its times."""
        from wedgewise_bench.record import without_folders

        return {
            "program": without_folders(" ".join(self.program.command)),
            "version": self.program.version,
            "pairs": self.program.pairs,
            "clock": "its own" if "seconds" in self.measured() else "ours",
        }

    def _written(self, pairs: NDArray[Any], folder: Path) -> dict[str, str]:
        """The value of every placeholder, with the files that are named written into a folder."""
        import numpy as np

        from wedgewise import Graph
        from wedgewise.write.edges import write_edges

        vertices = int(pairs.max()) + 1 if len(pairs) else 0
        if self.program.pairs != "raw":
            graph = Graph(pairs, threads=self.threads)
            pairs, vertices, self._edges = graph.edges, graph.n, graph.m
        if self.program.pairs == "both":
            pairs = np.concatenate([pairs, pairs[:, ::-1]])
        for name in self.program.files:
            write_edges(pairs, folder / FILES[name], vertices=vertices)
        scratch = folder / "scratch"
        scratch.mkdir()
        return {
            **{name: str(folder / FILES[name]) for name in self.program.files},
            "vertices": str(vertices),
            "edges": str(len(pairs)),
            "threads": str(self.threads),
            "scratch": str(scratch),
            "folder": str(self.program.folder),
        }

    def _output(self, command: Sequence[str], values: Mapping[str, str]) -> str:
        """Run a command to its end and return what it printed last, on either stream."""
        name, *arguments = (word.format_map(values) for word in command)
        with tempfile.TemporaryFile() as output:
            process = subprocess.run(
                [self.program.path_of(name), *arguments],
                cwd=values["scratch"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            text = _end_of(output)
        if process.returncode:
            code = process.returncode
            ending = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            raise RuntimeError(f"{name}: {ending}, {_last_words(text)}")
        return text

    def _found(self, key: str, pattern: str, text: str) -> str:
        found = re.findall(pattern, text)
        if not found:
            raise RuntimeError(f"{self.name}: nothing matches {key} = {pattern!r}, {_last_words(text)}")
        return str(found[-1])

    def _seconds(self, number: str) -> float:
        try:
            seconds = float(number) * UNITS[self.program.unit]
        except ValueError:
            seconds = math.nan
        if not 0.0 <= seconds < math.inf:
            raise RuntimeError(f"{self.name} printed {number!r} for its seconds, no time; mend its regex")
        return seconds


def _end_of(output: IO[bytes]) -> str:
    """The last part of what was printed, the first line of it whole only if everything fits."""
    length = output.seek(0, os.SEEK_END)
    output.seek(max(0, length - SEARCHED_BYTES))
    return output.read().decode(errors="replace")


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"its last words: {lines[-1][:200]}" if lines else "it printed nothing"
