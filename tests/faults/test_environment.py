"""Where there is no home, no room, a cache that is not ours or a broken CuPy: the same answers, or one line."""

from __future__ import annotations

import builtins
import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import COMMAND, KARATE, PATIENCE, invoke, run
from helpers.failing_calls import Fault, installed

import wedgewise as ww
from wedgewise.cli import console
from wedgewise.errors import DeviceError
from wedgewise.machine import gpu, jit

NOWHERE = "/dev/null/home"  # below it nothing can be made, whoever asks
LONGER = ("list", "triangles", "support", "algorithms", "info")


@pytest.mark.parametrize(
    "changed",
    [
        {"HOME": NOWHERE, "XDG_CACHE_HOME": "", "WEDGEWISE_CACHE": ""},
        pytest.param({"HOME": "", "XDG_CACHE_HOME": NOWHERE, "WEDGEWISE_CACHE": ""}, marks=pytest.mark.deep),
        pytest.param({"WEDGEWISE_CACHE": NOWHERE}, marks=pytest.mark.deep),
        pytest.param({"WEDGEWISE_CACHE": "/proc/self/cache"}, marks=pytest.mark.deep),
    ],
    ids=["no home", "no XDG folder", "a folder below a file", "a read-only file system"],
)
def test_counts_need_no_folder_of_their_own(changed: dict[str, str], tmp_path: Path) -> None:
    found = run("count", KARATE, cwd=tmp_path, env={**os.environ, **changed})
    assert (found.returncode, found.stdout) == (0, "45\n"), found.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
def test_an_environment_without_anything_is_enough() -> None:
    assert run("count", KARATE, env={"PYTHONPATH": os.pathsep.join(sys.path)}).stdout == "45\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path / "cache"))
    found = jit.cache_folder()
    assert found is not None
    return found


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777], ids=oct)
@pytest.mark.parametrize("level", [0, 1])
def test_machine_code_is_not_loaded_from_where_others_can_write(cache: Path, level: int, mode: int) -> None:
    folder = (cache, cache.parent)[level]
    folder.chmod(mode)
    is_safe = level == 1 and mode & stat.S_ISVTX  # nobody else can rename what lies there
    assert jit.cache_folder() == (cache if is_safe else None)
    folder.chmod(0o755)
    assert jit.cache_folder() == cache


def test_machine_code_is_not_loaded_from_another_user(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    assert jit.cache_folder() is None


def test_folders_are_made_for_their_user_alone(cache: Path) -> None:
    """Whatever the mask says: many systems let a group write to all that its users make."""
    before = os.umask(0o002)
    try:
        shutil.rmtree(cache.parent)
        assert jit.cache_folder() == cache
    finally:
        os.umask(before)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (cache, cache.parent)] == [0o700, 0o700]


@pytest.mark.deep
@pytest.mark.compiled
def test_a_full_disk_costs_compiling_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wedgewise.algorithms.cpu import forward

    monkeypatch.setattr(forward.merge_rows, "_loaded", {})
    with installed(Fault("storage.write", 0, always=True)) as passed:
        assert ww.count(KARATE, algorithm="forward", threads=1) == 45
    assert passed.failed
    assert list(cache.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
@pytest.mark.parametrize("command", ["count", *(pytest.param(name, marks=pytest.mark.deep) for name in LONGER)])
def test_a_full_standard_output_is_one_line(command: str) -> None:
    with open("/dev/full", "wb") as full:
        found = subprocess.run(
            [*COMMAND, command, *([] if command == "algorithms" else [KARATE])],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert found.returncode == 1
    assert found.stderr == (
        "error: standard output could not be written (No space left on device); free disk space and retry\n"
    )


def test_other_failures_of_the_system_are_not_taken_for_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[bool] = []
    monkeypatch.setattr(console, "_forget_output", lambda: forgotten.append(True))

    def print_to(error: OSError) -> Any:
        def fail(*_arguments: Any) -> None:
            raise error

        monkeypatch.setattr(console.Console, "show", fail)
        return invoke("count", KARATE)

    full = print_to(OSError(errno.ENOSPC, "No space left on device"))
    assert (full.exit_code, full.stdout, forgotten) == (1, "", [True])
    assert full.stderr.startswith("error: standard output could not be written (No space left on device)")
    for other in (OSError(errno.ENOENT, "no file"), OSError(errno.ENOSPC, "full", "a file")):
        assert print_to(other).exception is other
    assert forgotten == [True]


@pytest.fixture
def broken_cupy(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """An installation of CuPy whose import fails."""
    real = builtins.__import__

    def importer(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "cupy":
            raise request.param
        return real(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", importer)
    gpu.find_device.cache_clear()
    yield
    gpu.find_device.cache_clear()


BROKEN = [ImportError("libcuda.so.1"), AttributeError("no long"), RuntimeError("two versions"), OSError("libnvrtc")]


@pytest.mark.parametrize("broken_cupy", BROKEN, indirect=True, ids=lambda error: type(error).__name__)
def test_a_broken_cupy_is_named_or_done_without(broken_cupy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="CuPy is installed but cannot be imported"):
        ww.count(KARATE, device="cuda")
    monkeypatch.setattr(gpu, "is_likely", lambda: True)
    monkeypatch.setattr(gpu, "LOAD_SECONDS", 0.0)
    assert ww.run("count", KARATE).device == "cpu"
