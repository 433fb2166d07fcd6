"""Ctrl-C and SIGTERM at random moments of every command: the exit code says so, and no half of anything is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from helpers.commands import COMMAND, PATIENCE
from helpers.http_server import Loopback, Served, loopback

from wedgewise import generate
from wedgewise.store.open import open_store
from wedgewise.write.edges import write_edges

pytestmark = [pytest.mark.deep, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
MOMENTS = 2  # of each signal
NAME = "as20000102"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "trusses-2026-11-15.jsonl"
LONGEST_SECONDS, SETTLE_SECONDS = 2.0, 10.0
LASTING = ("bench", "datasets")  # these last longer


def is_page(path: Path) -> bool:
    return path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def has_whole_lines(path: Path) -> bool:
    return all(json.loads(line) for line in path.read_bytes().splitlines())


def is_store(path: Path) -> bool:
    open_store(path)
    return True


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what it writes, and how to see that this is whole: by itself, or as an undisturbed run has it."""

    arguments: tuple[str, ...]
    output: str | None = None
    is_whole: Callable[[Path], bool] | None = None

    def __str__(self) -> str:
        return " ".join(self.arguments[:3] if {"--workers", "convert"} & {*self.arguments} else self.arguments[:2])


COMMANDS = (
    Command(("count", "graph.txt", "--algorithm", "reference")),
    Command(("count", "store"), "store", is_store),
    Command(("count", "store", "--workers", "2"), "store", is_store),
    Command(("triangles", "graph.txt", "--output", "answer.csv.gz"), "answer.csv.gz"),
    Command(("support", "store", "--output", "answer.npz"), "answer.npz"),
    Command(("truss", "graph.txt", "--all", "--output", "answer.parquet"), "answer.parquet"),
    Command(("list", "graph.txt", "--output", "answer.tsv"), "answer.tsv"),
    Command(("partition", "graph.txt", "made"), "made", is_store),
    Command(("convert", "graph.txt", "answer.mtx"), "answer.mtx"),
    Command(("convert", "graph.txt", "answer.txt.xz"), "answer.txt.xz"),
    Command(("convert", "graph.txt", "answer.npz.bz2"), "answer.npz.bz2"),
    Command(("convert", "graph.txt", "answer.metis.xz", "--clean"), "answer.metis.xz"),
    Command(("generate", "kronecker", "--scale", "15", "answer.txt"), "answer.txt"),
    Command(("bench", "smoke", "--output", "answer.jsonl", "--work", "../kept"), "answer.jsonl", has_whole_lines),
    Command(("report", "results.jsonl", "--output", "answer.html"), "answer.html", is_page),
    Command(("report", "--graph", "graph.txt", "--output", "answer.html"), "answer.html", is_page),
    Command(("datasets", "get", NAME, "--from", "{server}/graph.txt")),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A folder with the inputs of all commands, and a server that serves a graph and then stands still."""

    inputs: Path
    server: Loopback
    whole: dict[str, bytes] = field(default_factory=dict)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    inputs = tmp_path_factory.mktemp("signals")
    write_edges(generate.kronecker(13, seed=3).pairs(), inputs / "graph.txt")
    subprocess.run(
        [*COMMAND, "partition", "graph.txt", "store", "--parts", "3"], cwd=inputs, check=True, timeout=PATIENCE
    )
    shutil.copy(RESULTS, inputs / "results.jsonl")
    with loopback() as server:
        server.files["graph.txt"] = Served(b"0 1\n" * 100_000, stops_at=200_000)
        yield Stage(inputs, server)


class Running:
    """A command as the leader of a session of its own, in a folder with a copy of the inputs."""

    def __init__(self, command: Command, stage: Stage, folder: Path) -> None:
        self.folder, self.temporary, self.cache = folder / "work", folder / "temporary", folder / "cache"
        subprocess.run(["cp", "-r", str(stage.inputs), str(self.folder)], check=True)
        self.temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(self.temporary), "NO_PROXY": "*"}
        if command.arguments[0] == "datasets":
            environment["WEDGEWISE_CACHE"] = str(self.cache)
        arguments = [part.format(server=stage.server.address) for part in command.arguments]
        ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child of a background job would ignore it
        try:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        finally:
            signal.signal(signal.SIGINT, ours)

    def end(self) -> tuple[int, bytes]:
        """Wait; the exit code, and what was said on standard error."""
        with self.process:
            try:
                _, said = self.process.communicate(timeout=PATIENCE)
            finally:
                self.process.kill()
        return self.process.returncode, said

    def others(self) -> list[int]:
        """The processes that are left of the command, in whatever session: they have its temporary folder."""
        mark = f"TMPDIR={self.temporary}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):  # which a zombie has no more
                        found.append(int(entry.name))
                except OSError:  # it has just ended, or is somebody else's
                    continue
        return found


def undisturbed_seconds(command: Command, stage: Stage, folder: Path) -> float:
    """How long a command takes that has not to compile, or as much of it as is looked at."""
    seconds = LONGEST_SECONDS
    for attempt in range(0 if command.arguments[0] in LASTING else 2):
        (folder / str(attempt)).mkdir()
        begin = time.perf_counter()
        running = Running(command, stage, folder / str(attempt))
        code, said = running.end()
        assert code == 0, said
        if command.output is not None and command.is_whole is None:
            stage.whole[command.output] = (running.folder / command.output).read_bytes()
        seconds = time.perf_counter() - begin
        if seconds < LONGEST_SECONDS:
            break
    return min(seconds, LONGEST_SECONDS)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_signals_at_random_moments(
    command: Command, stage: Stage, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seconds = undisturbed_seconds(command, stage, tmp_path)
    random = Random(str(command))
    for number, moment in ((number, moment) for moment in range(MOMENTS) for number in SIGNALS):
        folder = tmp_path / f"{number.name}-{moment}"
        folder.mkdir()
        running = Running(command, stage, folder)
        time.sleep(random.uniform(0.1, 0.9) * seconds)
        running.process.send_signal(number)
        begin = time.perf_counter()
        code, said = running.end()
        assert code in (0, 128 + number, -number), said  # the last before there is a handler, as a shell has it too
        ended = time.perf_counter() - begin
        record_property(f"seconds from {number.name} to the end", round(ended, 3))
        assert ended < SETTLE_SECONDS
        check_nothing_is_left(command, stage, running, said if code > 0 else b"")


def check_nothing_is_left(command: Command, stage: Stage, running: Running, said: bytes) -> None:
    assert b"Traceback" not in said, said.decode()
    end = time.monotonic() + SETTLE_SECONDS
    while running.others() and time.monotonic() < end:
        time.sleep(0.05)
    assert running.others() == [], "a process is left"
    assert list(running.temporary.iterdir()) == [], "temporary files are left"
    new: Any = {path.name for path in running.folder.iterdir()} - {path.name for path in stage.inputs.iterdir()}
    assert new <= {command.output}, f"{new} are left"
    assert not list(running.folder.rglob("*.tmp")), "temporary files are left"
    made = None if command.output is None else running.folder / command.output
    if made is not None and made.exists():
        assert made.read_bytes() == stage.whole[made.name] if command.is_whole is None else command.is_whole(made)
    kept = {path.suffix for path in running.cache.rglob("*") if path.is_file()}
    assert kept <= {".part", ".json"}, f"{kept} are left of a download"
