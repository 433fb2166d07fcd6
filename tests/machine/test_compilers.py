"""Processes that compile: several at once, and ended with those who wait for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import PATIENCE

from wedgewise.machine import compilers, hardware, jit, own_files
from wedgewise.machine.jit import kernel
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.orient import find_arcs
from wedgewise.run.listing import name_triples

KINDS = ("*u4", "*u4")
pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and no process that waits from an earlier test."""
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(own_files, "_noticed", set())
    compilers.end_compilers()
    yield tmp_path
    compilers.end_compilers()


def test_kernels_are_compiled_elsewhere_and_stored_here(folder: Path) -> None:
    program = (
        "import sys, numpy as np; from wedgewise.run.listing import name_triples\n"
        "triples = np.array([2, 0, 1], np.uint32); name_triples(np.array([5, 7, 6], np.uint32), triples)\n"
        "print(triples.tolist(), 'numba' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[5, 6, 7] False\n"
    assert [path.name.rpartition("-")[0] for path in folder.glob("kernels-*/*")] == [
        "wedgewise.run.listing.name_triples"
    ]


def test_two_threads_compile_two_kernels_at_once() -> None:
    kernels: list[tuple[Any, tuple[str, ...]]] = [
        (name_triples, KINDS),
        (find_arcs, ("*u8", "*u4", "*u4", "*u4", "*u4")),
    ]
    most = 0

    def compiled(task: int, _worker: int) -> bytes | None:
        return compilers.compile_elsewhere(*kernels[task], "title")

    def look(_done: int) -> None:
        nonlocal most
        most = max(most, len(compilers._asked))

    assert all(run_tasks(compiled, 2, 2, look))
    assert most == min(2, hardware.usable_threads())
    assert compilers._asked == {}
    waiting = len(compilers._idle)
    assert all(run_tasks(compiled, 2, 1))  # by one that waits
    assert len(compilers._idle) == waiting


def test_one_kernel_is_compiled_once_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    compile_elsewhere = compilers.compile_elsewhere

    def noted(*request: Any) -> bytes | None:
        asked.append(request)
        return compile_elsewhere(*request)

    monkeypatch.setattr(compilers, "compile_elsewhere", noted)
    monkeypatch.setattr(name_triples, "_loaded", {})
    run_tasks(lambda _task, _worker: name_triples.load(KINDS), 8, 4)
    assert len(asked) == 1


def test_who_nobody_waits_for_any_more_is_ended() -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def interrupt(_done: int) -> None:
        processes.extend(compiler.process for compiler in compilers._asked.values())
        if processes:
            raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_tasks(lambda _task, _worker: compilers.compile_elsewhere(name_triples, KINDS, "title"), 8, 2, interrupt)
    assert all(process.poll() is not None for process in processes)
    assert time.monotonic() - begin < PATIENCE
    assert compilers._asked == {}
    assert compilers._idle == []


ASKING = """
import os
from wedgewise.machine import compilers
from wedgewise.run.listing import name_triples
made = compilers._Compiler.__init__
def report(self):
    made(self)
    os.write(1, f"{self.process.pid}\\n".encode())
compilers._Compiler.__init__ = report
compilers.compile_elsewhere(name_triples, ("*u4", "*u4"), "title")
"""


def test_who_is_killed_leaves_no_compiler() -> None:
    with subprocess.Popen([sys.executable, "-c", ASKING], stdout=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        compiler = int(asking.stdout.readline())
        asking.kill()
    ends = time.monotonic() + PATIENCE
    while Path(f"/proc/{compiler}/stat").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert not Path(f"/proc/{compiler}/stat").exists()


def test_one_that_has_ended_is_replaced() -> None:
    assert compilers.compile_elsewhere(name_triples, KINDS, "title")
    compilers._idle[0].process.kill()
    compilers._idle[0].process.wait()
    assert compilers.compile_elsewhere(name_triples, KINDS, "title")


@kernel
def not_of_the_package(values: Any) -> None:
    """A kernel that another process would not find."""
    for i in range(len(values)):
        values[i] = 1


def test_what_another_process_would_not_find_is_compiled_here() -> None:
    assert compilers.compile_elsewhere(not_of_the_package, ("*u4",), "title") is None
    values = np.zeros(3, np.uint32)
    not_of_the_package(values)
    assert values.tolist() == [1, 1, 1]


def test_where_no_process_can_be_started_this_one_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refused)
    assert compilers.compile_elsewhere(name_triples, KINDS, "title") is None


def test_sources_that_differ_from_ours_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_triples, "source", b"edited since this process began")
    assert compilers.compile_elsewhere(name_triples, KINDS, "title") is None


def test_a_forked_process_asks_others_than_its_parent() -> None:
    assert compilers.compile_elsewhere(name_triples, KINDS, "title")
    (ours,) = compilers._idle
    child = os.fork()
    if child == 0:
        os._exit(0 if compilers._idle == [] and compilers._inherited == [ours] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ours.is_alive


def test_those_that_wait_end_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compilers, "PROGRAM", "from wedgewise.machine import compilers as c; c.IDLE_SECONDS = 0.1; c.serve()"
    )
    compiler = compilers._Compiler()
    assert compiler.process.wait(PATIENCE) == 0
    compiler.end()


class Stream:
    """Standard error, a terminal or not."""

    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self.written = ""

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> None:
        self.written += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("where", ["terminal", "notebook", "file"])
def test_who_waits_in_python_is_told_once(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(where == "terminal")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(jit, "_is_announced", False)
    if where == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", threading)
    for _ in range(2):
        jit._announce_compiling("compiling f")
    assert stream.written == ("" if where == "file" else f"wedgewise: {jit.NOTICE}\n")
