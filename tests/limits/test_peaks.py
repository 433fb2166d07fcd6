"""A limit on memory holds while a file is read, whatever the file says of itself."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.stores import run_measured
from numpy.typing import NDArray

from limits import hostile_files
from wedgewise import generate
from wedgewise.errors import InputError, LimitError, MemoryLimitError
from wedgewise.machine import hardware
from wedgewise.machine.budget import release_memory
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.read import read_edges
from wedgewise.stages.limits import Limits
from wedgewise.write.edges import write_edges

MEBIBYTE = 1 << 20
LIMIT = 256 * 10**6
REFUSED = "is binary, of no known format", "is no readable zip archive", "line bytes"  # at once, whatever the limit


def csr(path: Path, pairs: NDArray[Any]) -> None:
    rows = pairs[np.argsort(pairs[:, 0], kind="stable")]
    n = int(pairs.max()) + 1
    offsets = np.searchsorted(rows[:, 0], np.arange(n + 1))
    shape, kind = np.array([n, n]), np.array(b"csr")
    np.savez_compressed(
        path, indices=rows[:, 1], indptr=offsets, shape=shape, format=kind, data=np.ones(len(rows), "i1")
    )


def names(path: Path, pairs: NDArray[Any]) -> None:
    path.write_bytes(b"".join(b"n%d n%d\n" % (u, v) for u, v in pairs.tolist()))


def by_suffix(path: Path, pairs: NDArray[Any]) -> None:
    write_edges(pairs, path)


ORDINARY: dict[str, Callable[[Path, NDArray[Any]], None]] = {
    "g.txt": by_suffix,
    "g.txt.gz": by_suffix,
    "g.txt.xz": by_suffix,
    "g.bel": by_suffix,
    "g.npy": by_suffix,
    "g.npz": by_suffix,
    "csr.npz": csr,
    "names.txt": names,
}


def tight(mebibytes: int) -> Limits:
    """So much memory beside what this process holds."""
    release_memory()
    return Limits(memory_bytes=hardware.resident_bytes() + mebibytes * MEBIBYTE)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Loaded before anything is counted."""
    read_edges(io.BytesIO(b"1 2\n" * (1 if JIT_DISABLED else MEBIBYTE)))
    read_edges(io.BytesIO(b"a b\n" * (1 if JIT_DISABLED else MEBIBYTE)))


@pytest.mark.compiled
@pytest.mark.parametrize("name", hostile_files.FILES)
def test_reading_stops_at_the_limit(tmp_path: Path, name: str) -> None:
    hostile_files.FILES[name](tmp_path / name)
    with pytest.raises((MemoryLimitError, InputError, LimitError)) as caught:
        read_edges(tmp_path / name, limits=tight(64))
    expected = any(words in str(caught.value) for words in REFUSED) or isinstance(caught.value, MemoryLimitError)
    assert expected, caught.value
    assert str(caught.value).startswith(str(tmp_path / name))


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["text.xz", "bytes.npz", "holes.bel32", "names.xz"])
def test_without_a_limit_what_the_machine_has_left_counts(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile_files.FILES[name](tmp_path / name)
    before = hardware.resident_bytes()
    monkeypatch.setattr(hardware, "available_memory", lambda: before + 64 * MEBIBYTE - hardware.resident_bytes())
    with pytest.raises(MemoryLimitError, match=r"bytes more and -?[0-9,]+ are available; use a machine"):
        read_edges(tmp_path / name)


def test_a_limit_that_is_large_enough_changes_nothing(tmp_path: Path) -> None:
    pairs = generate.kronecker(scale=8, seed=3).pairs()
    for name, write in ORDINARY.items():
        write(tmp_path / name, pairs)
        found, free = read_edges(tmp_path / name, limits=tight(512)), read_edges(tmp_path / name)
        assert found.pairs.tobytes() == free.pairs.tobytes()
        assert found.pairs.dtype == free.pairs.dtype


@pytest.fixture(scope="module")
def many_pairs() -> NDArray[Any]:
    return generate.kronecker(scale=18, seed=3).pairs()


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.parametrize("name", ORDINARY)
def test_the_process_keeps_to_the_limit(tmp_path: Path, many_pairs: NDArray[Any], name: str) -> None:
    ORDINARY[name](tmp_path / name, many_pairs)
    peak, ran = run_measured("count", name, "--memory", "256MB", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert peak <= LIMIT


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.parametrize("name", hostile_files.FILES)
def test_the_process_keeps_to_the_limit_with_hostile_files(tmp_path: Path, name: str) -> None:
    hostile_files.FILES[name](tmp_path / name)
    peak, ran = run_measured("count", name, "--memory", "256MB", cwd=tmp_path)
    assert ran.returncode in (0, 1), ran.stderr
    assert "Traceback" not in ran.stderr
    assert peak <= LIMIT
