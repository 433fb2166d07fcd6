"""Where compiled kernels are kept, and what happens when they cannot be kept or read back."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from helpers.commands import PATIENCE

from wedgewise.errors import MemoryLimitError, StorageError
from wedgewise.machine import files as storage
from wedgewise.machine import hardware, jit, native, own_files
from wedgewise.machine.compilers import StoppedCompilingError
from wedgewise.machine.threads import run_tasks

VALUES = np.arange(5, dtype=np.uint32)


def sum_of(values: Any) -> Any:
    """The function that these tests compile."""
    total = np.uint64(0)
    for value in values:
        total += np.uint64(value)
    return total


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(own_files, "_noticed", set())
    return tmp_path


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is told about compiling."""
    lines: list[str] = []
    jit.on_compile(lines.append)
    yield lines
    jit.on_compile(None)


def test_the_first_folder_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(jit.CACHE_VARIABLE, raising=False)
    assert jit.cache_root() == tmp_path / "home" / ".cache" / "wedgewise"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jit.cache_root() == tmp_path / "xdg" / "wedgewise"
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path / "named"))
    assert jit.cache_root() == tmp_path / "named"
    found = jit.cache_folder()
    assert found is not None
    assert found.is_dir()
    assert found.parent == tmp_path / "named"


def test_there_is_no_folder_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(jit.CACHE_VARIABLE, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert jit.cache_folder() is None
    monkeypatch.setattr(jit, "_array_seconds", 0.0)
    assert jit.JIT_DISABLED or jit.load_seconds(jit.kernel(sum_of)) == jit.COMPILE_SECONDS


def test_there_is_no_folder_inside_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path / "file"))
    assert jit.cache_folder() is None


def test_views_for_kernels_are_contiguous_and_unsigned() -> None:
    signed = np.arange(6, dtype=np.int32).reshape(3, 2)
    view = jit.kernel_view(signed)
    assert view.dtype == np.uint32
    assert view.shape == (6,)
    assert np.shares_memory(view, signed)
    with pytest.raises(TypeError, match="C-contiguous"):
        jit.kernel_view(signed[:, 0])


@pytest.mark.compiled
def test_a_stored_kernel_is_loaded_again(folder: Path, said: list[str]) -> None:
    assert jit.kernel(sum_of)(VALUES) == 10
    assert said == ["compiling test_kernel_cache.sum_of for this machine (once)"]
    assert [path.suffix for path in folder.glob("kernels-*/*")] == [jit.OBJECT_SUFFIX]
    assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 1


@pytest.mark.compiled
def test_a_damaged_kernel_is_compiled_and_stored_again(folder: Path, said: list[str]) -> None:
    jit.kernel(sum_of)(VALUES)
    (stored,) = folder.glob("kernels-*/*")
    whole = stored.read_bytes()
    stored.write_bytes(whole[:-1])
    assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 2
    assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 2  # what was stored again is whole


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def replaced_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


UNBELIEVED: dict[str, Callable[[Path], object]] = {
    "a pipe": replaced_by_pipe,
    "a link": replaced_by_link,
    "writable by its group": lambda path: path.chmod(0o660),
    "one flipped bit in the name of the symbol": lambda path: path.write_bytes(
        path.read_bytes().replace(b"sum_of", b"sum_og", 2)
    ),
}


@pytest.mark.compiled
@pytest.mark.parametrize("spoil", UNBELIEVED.values(), ids=UNBELIEVED)
def test_a_kernel_that_is_not_believed_is_compiled_and_stored_again(
    folder: Path, said: list[str], spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    jit.kernel(sum_of)(VALUES)
    (stored,) = folder.glob("kernels-*/*")
    spoil(stored)
    with caplog.at_level("INFO", "wedgewise"):
        for _ in range(3):
            assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 2
    assert stat.S_ISREG(stored.lstat().st_mode)
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert caplog.text.count("stored kernels are not read_trusted, because") == 1


@pytest.mark.compiled
def test_kernels_of_another_user_are_not_loaded(
    folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jit.kernel(sum_of)(VALUES)
    (stored,) = folder.glob("kernels-*/*")
    monkeypatch.setattr(own_files, "why_not_own", lambda _folder: None)
    monkeypatch.setattr(jit, "why_not_own", lambda _folder: None)
    monkeypatch.setattr(os, "geteuid", lambda: stored.stat().st_uid + 1)
    with caplog.at_level("INFO", "wedgewise"):
        assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 2
    assert f"belongs to another user (uid {stored.stat().st_uid}): compiling again" in caplog.text


@pytest.mark.compiled
def test_a_kernel_that_cannot_be_read_is_compiled(
    folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(path: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    jit.kernel(sum_of)(VALUES)
    monkeypatch.setattr(own_files, "_opened", unreadable)
    assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 2


@pytest.mark.compiled
def test_a_folder_that_is_not_believed_is_told_once(
    folder: Path, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    folder.chmod(0o770)
    with caplog.at_level("INFO", "wedgewise"):
        for _ in range(2):
            assert jit.kernel(sum_of)(VALUES) == 10
    assert len(said) == 2
    assert caplog.text.count(f"is not used, because {folder} can be written by others") == 1


@pytest.mark.compiled
def test_a_kernel_that_cannot_be_stored_still_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(path: Path, **_mode: int) -> NoReturn:
        raise StorageError(f"{path}: could not be written (No space left on device)")

    monkeypatch.setattr(storage, "atomic_write", full_disk)
    assert jit.kernel(sum_of)(VALUES) == 10
    assert list(folder.glob("kernels-*/*")) == []


def test_a_kernel_and_what_it_calls_may_be_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = jit.kernel(sum_of)
    outer = jit.kernel(lambda values: 2 * inner(values))
    monkeypatch.setattr(jit, "_load_or_compile", lambda *_: pytest.fail("nothing is to be loaded"))
    assert outer.interpreted(VALUES) == 20


def test_kernels_are_not_loaded_where_that_would_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "available_memory", lambda: 5)
    with pytest.raises(MemoryLimitError, match="loading kernels takes 6 bytes and 5 are available; use a machine"):
        jit._check_memory(6)
    jit._check_memory(5)


def test_a_failing_kernel_is_no_answer() -> None:
    with pytest.raises(RuntimeError, match="count_range failed with status -1"):
        native._caller(lambda *_: -1, 0, "count_range")()


def test_compiling_ends_with_those_who_wait_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the calling thread ends what a worker compiles, and what another one waits for."""
    begun, ends = threading.Event(), list[BaseException]()

    def compile_for_long(_kernel: Any, _kinds: str) -> NoReturn:
        begun.set()
        deadline = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < deadline:
                pass
            raise TimeoutError("nobody stopped it")
        except BaseException as error:
            ends.append(error)
            raise

    def interrupt(_done: int) -> None:
        if begun.is_set():
            raise KeyboardInterrupt

    monkeypatch.setattr(native, "compile_object", compile_for_long)
    kernel = jit.kernel(lambda array: None)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(lambda _task, _worker: kernel.load(("*u4",)), 1 << 10, 2, interrupt)
    assert {type(error) for error in ends} == {StoppedCompilingError}
    assert jit._loading_thread is None
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("wedgewise")]


def test_compiling_for_others_goes_on() -> None:
    """Of no thread that was asked for: the calling one would be the first to notice."""
    with jit._compile_lock:
        jit.stop_compiling([threading.get_ident()])
    jit.stop_compiling([])
    assert sum(range(1000)) == 499_500
