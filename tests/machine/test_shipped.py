"""Machine code that comes with the package: found by what it was made of, opened only as it was shipped."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import kernels
import numpy as np
import pytest

from wedgewise.errors import MissingDependencyError
from wedgewise.machine import hardware, jit, own_files, shipped, signatures
from wedgewise.machine.shipped import LEVELS, V3_FLAGS, V4_FLAGS, KernelLibrary, library_path, open_library
from wedgewise.run.listing import name_triples
from wedgewise.store.ids import count_out

KINDS = ("*u4", "*u4")
V4, V3 = LEVELS


def named(kernel: jit.CpuKernel[..., None]) -> list[int]:
    triples = np.array([2, 0, 1], np.uint32)
    kernel(np.array([5, 7, 6], np.uint32), triples)
    return triples.tolist()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library of this processor: one kernel, with one kind of arguments."""
    if shutil.which("cc") is None or not V3.flags <= hardware.processor_flags():
        pytest.skip("needs a linker, and a processor that kernels are shipped for")
    folder = tmp_path_factory.mktemp("shipped")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):  # what `build` changes
            patch.setenv(name, "")
        patch.setattr(signatures, "listed", lambda **_: [(name_triples, KINDS)])
        patch.setattr(kernels, "ProcessPoolExecutor", Here)
        kernels.build(V3, folder)
    return folder


class Here:
    """Processes of their own, which would compile every listed kernel; here is this one, for one kernel."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    map = map


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it as that of the package, in a process that has called no kernel and whose cache is empty."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.setattr(hardware, "processor_flags", lambda: V3_FLAGS)
    monkeypatch.setattr(own_files, "_noticed", set())
    monkeypatch.setattr(name_triples, "_loaded", {})
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path / "cache"))
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    shipped.library.cache_clear()
    shipped.is_there.cache_clear()


@pytest.mark.compiled
def test_a_shipped_kernel_is_called_and_nothing_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_compile", lambda *_: pytest.fail("nothing is to be compiled"))
    assert named(name_triples) == [5, 6, 7]
    assert not (folder / "cache").exists()


@pytest.mark.compiled
def test_a_library_shows_its_kernels_alone_and_calls_nobody(folder: Path) -> None:
    code = shipped.library()
    assert code is not None
    assert list(code.results) == [shipped.symbol_of(name_triples, KINDS)]
    assert not hasattr(code.opened, "NRT_MemInfo_call_dtor")


@pytest.mark.compiled
def test_what_was_not_shipped_is_compiled_where_numba_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shipped.shipped_kernel(count_out, ("*u8", "*u4", "*u4")) is None
    monkeypatch.setattr(name_triples, "source", b"edited since it was shipped")
    assert shipped.shipped_kernel(name_triples, KINDS) is None
    assert named(name_triples) == [5, 6, 7]


@pytest.mark.compiled
def test_where_numba_is_not_the_remedy_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.machine.libraries.find_spec", lambda _: None)
    monkeypatch.setattr(jit, "is_installed", lambda _: False)
    jit._compiler_identity.cache_clear()
    assert named(name_triples) == [5, 6, 7]
    monkeypatch.setattr(name_triples, "_loaded", {})
    monkeypatch.setattr(name_triples, "source", b"edited since it was shipped")
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[compile\]"'):
        named(name_triples)
    jit._compiler_identity.cache_clear()


def others_write(path: Path) -> None:
    path.chmod(0o666)


def linked(path: Path) -> None:
    path.symlink_to(path.rename(path.with_suffix(".moved")))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def without_contents(path: Path) -> None:
    path.with_suffix(".json").unlink()


def strange_contents(path: Path) -> None:
    path.with_suffix(".json").write_text(json.dumps({}))


@pytest.mark.compiled
@pytest.mark.parametrize("spoil", [others_write, linked, cut_short, without_contents, strange_contents])
def test_what_is_not_as_it_was_shipped_is_not_opened(
    folder: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    spoil(library_path(V3, folder))
    with caplog.at_level("INFO", "wedgewise"):
        assert shipped.library() is None
    assert "shipped kernels are not used, because" in caplog.text
    assert named(name_triples) == [5, 6, 7]


@pytest.mark.compiled
def test_a_library_of_another_user_than_the_sources_is_not_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstat = os.lstat

    def of_another(path: Path) -> os.stat_result:
        fields = list(lstat(path))
        fields[4] += 1  # the owner
        return os.stat_result(fields)

    monkeypatch.setattr(os, "lstat", of_another)
    with pytest.raises(OSError, match="belongs to another user than the sources beside it"):
        open_library(V3, folder)


@pytest.mark.parametrize(
    ("flags", "level"),
    [(frozenset(), None), (V3_FLAGS - {"avx2"}, None), (V3_FLAGS, V3), (V4_FLAGS, V3), (V4.flags | {"sse"}, V4)],
)
def test_the_highest_level_of_the_processor_is_taken(
    flags: frozenset[str], level: shipped.Level | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "processor_flags", lambda: flags)
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    assert shipped.fitting_level() is None
    for each in LEVELS:
        library_path(each, tmp_path).touch()
    assert shipped.fitting_level() == level


def test_without_shipped_kernels_there_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    forget()
    assert shipped.library() is None
    assert not shipped.is_there()
    forget()


def test_shipped_kernels_are_worth_loading_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "JIT_DISABLED", False)
    monkeypatch.setattr(jit, "_array_seconds", 0.0)
    monkeypatch.setattr(jit, "is_loaded", lambda: False)
    monkeypatch.setattr(shipped, "is_there", lambda: True)
    assert jit.load_seconds(jit.kernel(lambda array: None)) == jit.SHIPPED_SECONDS


def test_a_kernel_that_a_library_lacks_is_not_in_it() -> None:
    code = KernelLibrary(replace(V3, name="none"), None, {})
    assert shipped.kernel_in(code, name_triples, KINDS) is None
