"""Systems that are not Linux, faked: what they lack is taken away from a process, and its answers are the same."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import PATIENCE
from helpers.graphs import fixture_pairs

from wedgewise.errors import StorageError
from wedgewise.machine import files

ASKING = """
import os, pathlib, sys, tempfile
import numpy as np, wedgewise as ww
from wedgewise.machine import budget, hardware

def refuse_system_files(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc", "/sys")):
        raise FileNotFoundError(arguments[0])

def open_files_alone(path, *arguments, opened=os.open, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "a folder is no file", path)
    return opened(path, *arguments, **named)

for name in ("sched_getaffinity", "preadv", "pread", "posix_fadvise", "geteuid", "register_at_fork", "fork"):
    delattr(os, name)
sys.modules["fcntl"] = sys.modules["resource"] = None
os.open = open_files_alone
budget.MAPPINGS = pathlib.Path("/nowhere")
sys.addaudithook(refuse_system_files)

graph, folder = sys.argv[1], pathlib.Path(sys.argv[2])
tempfile.tempdir = str(folder / "temporary")
os.mkdir(tempfile.tempdir)
assert hardware.processor_flags() == frozenset()
assert hardware.available_memory() == 2**62
print(ww.count(graph), ww.count(np.loadtxt(graph, np.int64)), int(max(ww.trussness(graph))))
store = ww.partition(graph, folder / "store", parts=2)
print(ww.count(store), ww.count(store, workers=2), int(np.sum(ww.triangles(store))) // 3)
print(ww.count(graph, memory_limit=10**9), list(os.listdir(tempfile.tempdir)))
"""


def test_what_other_systems_lack_changes_no_answer(tmp_path: Path) -> None:
    graph = tmp_path / "karate.txt"
    np.savetxt(graph, fixture_pairs("karate"), "%d")
    command = [sys.executable, "-c", ASKING, str(graph), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * 4, check=False)
    assert (found.returncode, found.stdout) == (0, "45 45 5\n45 45 45\n45 []\n"), found.stderr


@pytest.mark.parametrize("reason", [errno.EINVAL, errno.ENOTSUP, errno.EACCES])
def test_folders_that_cannot_be_synced_are_left_to_the_system(
    reason: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def files_alone(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(reason, os.strerror(reason))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", files_alone)
    with files.atomic_write(tmp_path / "file") as file:
        file.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_a_folder_that_fails_to_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match="the disk is broken"), files.atomic_write(tmp_path / "file") as file:
        file.write(b"whole")
