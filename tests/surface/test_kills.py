"""Commands that are killed go on where they were; interrupted ones say so and leave nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wedgewise as ww
from wedgewise import errors

from .journals import journal_line, lines_of
from .shell import ENVIRONMENT, PATIENCE, Ended, run, signal_when, start

pytestmark = pytest.mark.compiled
PARTS = 40  # about 11,000 tasks that have work; on one thread several batches, each written down before the next
KILLED = """
import os, signal, sys
import wedgewise as ww
batches = iter(range(1, int(sys.argv[2])))
def progress(*_done):
    if next(batches, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
ww.count(sys.argv[1], threads=1, progress=progress)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    np.save(folder / "graph.npy", ww.generate.kronecker(17, seed=3).pairs())
    assert run(f"partition graph.npy store --parts {PARTS}", folder).code == 0
    return folder / "store"


def kill_after(batches: int, store: Path) -> int:
    """Have a count kill itself when so many batches are done; its exit code."""
    command = [sys.executable, "-c", KILLED, str(store), str(batches)]
    return subprocess.run(command, env=ENVIRONMENT, timeout=PATIENCE, check=False).returncode


def check_two_results_are_refused(store: Path, journal: Path) -> None:
    """Have the journal contradict itself, for once."""
    content = journal.read_bytes()
    record = json.loads(lines_of(journal)[0])
    del record["check"]
    first, *others = record["triangles"]
    another = journal_line(**{**record, "triangles": [first + 1, *others]})
    journal.write_bytes(b"".join(lines_of(journal)) + another)
    with pytest.raises(errors.VerificationError, match="two results"):
        ww.count(store)
    journal.write_bytes(content)


def test_a_killed_count_goes_on(store: Path) -> None:
    expected = ww.count(store.parent / "graph.npy")
    journal, before = store / "count.journal", list[bytes]()
    for batches in (1, 3):
        assert kill_after(batches, store) == -signal.SIGKILL
        after = lines_of(journal)
        assert len(after) > len(before)
        assert after[: len(before)] == before
        before = after
    check_two_results_are_refused(store, journal)
    assert run("count store", store.parent) == Ended(0, f"{expected}\n", "")
    assert not journal.exists()


def test_an_interrupted_count_of_a_store_goes_on(store: Path) -> None:
    journal = store / "count.journal"
    ended = signal_when(
        start("count store --threads 1", store.parent), lambda: len(lines_of(journal)) >= 3, signal.SIGINT
    )
    assert (ended.code, ended.stdout, ended.stderr) == (130, "", "interrupted\n")
    assert lines_of(journal)
    assert run("count store --restart", store.parent).stdout == f"{ww.count(store.parent / 'graph.npy')}\n"
    assert not journal.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_writer_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A graph that takes minutes to write; as soon as something of it is on disk, it is interrupted."""
    process = start("generate kronecker --scale 26 graph.bel", tmp_path)
    ended = signal_when(process, lambda: any(path.stat().st_size for path in tmp_path.iterdir()), number)
    assert (ended.code, ended.stdout) == (code, "")
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_input_is_waited_for(tmp_path: Path) -> None:
    process = start("count - --verbose", tmp_path, stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == "read and clean …\n"
    ended = signal_when(process, lambda: True, signal.SIGINT)
    assert (ended.code, ended.stdout, ended.stderr) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []
