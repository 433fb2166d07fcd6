"""A limit on memory holds while Parquet, Arrow, METIS and Matrix Market files are read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.stores import run_measured
from numpy.typing import NDArray

from limits import hostile_tables
from wedgewise import generate
from wedgewise.errors import FormatError, MemoryLimitError
from wedgewise.machine import hardware
from wedgewise.machine.budget import release_memory
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.read import read_edges
from wedgewise.stages.limits import Limits
from wedgewise.write.edges import write_edges

MEBIBYTE = 1 << 20
LIMIT = 256 * 10**6
ROOM = 64  # mebibytes
ORDINARY = ["g.parquet", "g.arrow", "g.mtx", "g.metis", "names.parquet"]
FORGETS_PEAKS, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Loaded before anything is counted."""
    read_edges(io.BytesIO(b"a b\n" * (1 if JIT_DISABLED else MEBIBYTE)))


@contextmanager
def at_most(mebibytes: int) -> Iterator[Limits]:
    """Limits of so much memory beside what this process holds; fail when it held more."""
    release_memory()
    try:
        FORGETS_PEAKS.write_text("5")
    except OSError:
        pytest.skip("peaks are known to Linux alone")
    held = hardware.resident_bytes()
    yield Limits(memory_bytes=held + mebibytes * MEBIBYTE)
    (peak,) = (int(line.split()[1]) << 10 for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    assert peak - held <= mebibytes * MEBIBYTE, f"{(peak - held) / MEBIBYTE:.1f} MiB at the peak"


@pytest.mark.compiled
@pytest.mark.parametrize("name", hostile_tables.REFUSED)
def test_reading_a_table_stops_at_the_limit(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    hostile_tables.REFUSED[name](path)
    refused = FormatError if name == "footer.parquet" else MemoryLimitError
    with at_most(ROOM) as limits, pytest.raises(refused) as caught:
        read_edges(path, limits=limits)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.compiled
@pytest.mark.parametrize("name", hostile_tables.READ)
def test_long_texts_are_read_a_few_at_a_time(tmp_path: Path, name: str) -> None:
    hostile_tables.READ[name](tmp_path / name)
    with at_most(ROOM) as limits:
        edges = read_edges(tmp_path / name, limits=limits)
    assert edges.names is not None
    is_mixed = name == "mixed_text.parquet"
    assert edges.names[0] == (hostile_tables.MIDDLING if is_mixed else hostile_tables.LONG)
    assert edges.pairs[0].tolist() == [0, 0]
    assert edges.pairs[-1].tolist() == ([1 << 17, 1 << 17] if is_mixed else [0, 0])


@pytest.mark.parametrize("name", ["runs.parquet", "buffers.arrow"])
def test_without_a_limit_what_the_machine_has_left_counts(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile_tables.REFUSED[name](tmp_path / name)
    before = hardware.resident_bytes()
    left = 64 * MEBIBYTE
    monkeypatch.setattr(hardware, "available_memory", lambda: before + left - hardware.resident_bytes())
    with pytest.raises(MemoryLimitError, match=r"bytes more and -?[0-9,]+ are available; use a machine"):
        read_edges(tmp_path / name)


CYCLE = 1 << 21


def cycle_in_metis(path: Path) -> None:
    rows = (f"{(at - 1) % CYCLE + 1} {(at + 1) % CYCLE + 1}" for at in range(CYCLE))
    path.write_text(f"{CYCLE} {CYCLE}\n" + "\n".join(rows) + "\n")


def cycle_in_matrix_market(path: Path) -> None:
    rows = (f"{at + 1} {(at + 1) % CYCLE + 1}" for at in range(CYCLE))
    banner = f"%%MatrixMarket matrix coordinate pattern general\n{CYCLE} {CYCLE} {CYCLE}\n"
    path.write_text(banner + "\n".join(rows) + "\n")


@pytest.mark.parametrize(("name", "write"), [("g.metis", cycle_in_metis), ("g.mtx", cycle_in_matrix_market)])
def test_eight_bytes_are_held_per_edge(tmp_path: Path, name: str, write: object) -> None:
    write(tmp_path / name)  # type: ignore[operator]
    with at_most(8 * CYCLE // MEBIBYTE + 24):
        edges = read_edges(tmp_path / name)
    assert edges.pairs.nbytes == 8 * CYCLE


def test_comments_of_metis_are_not_held(tmp_path: Path) -> None:
    path = tmp_path / "g.metis"
    path.write_text("2 1\n2\n" + "%\n" * (4 * MEBIBYTE) + "1\n")
    with at_most(32):
        assert read_edges(path).pairs.tolist() == [[0, 1]]


@pytest.fixture(scope="module")
def many_pairs() -> NDArray[Any]:
    return generate.kronecker(scale=18, seed=3).pairs()


def write_ordinary(path: Path, pairs: NDArray[Any]) -> None:
    if path.name == "names.parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        names = pyarrow.array([f"n{number}" for number in range(1 << 14)])
        columns = [names.take(pyarrow.array(pairs[:, end] >> 4)) for end in (0, 1)]
        parquet.write_table(pyarrow.table({"u": columns[0], "v": columns[1]}), path)
    elif path.name == "g.metis":
        simple = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        write_edges(simple, path, vertices=1 << 18)
    else:
        write_edges(pairs, path)


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.parametrize("name", ORDINARY)
def test_the_process_keeps_to_the_limit(tmp_path: Path, many_pairs: NDArray[Any], name: str) -> None:
    write_ordinary(tmp_path / name, many_pairs)
    peak, ran = run_measured("count", name, "--memory", "256MB", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert peak <= LIMIT


@pytest.mark.deep
@pytest.mark.compiled
@pytest.mark.parametrize("name", [*hostile_tables.REFUSED, *hostile_tables.READ])
def test_the_process_keeps_to_the_limit_with_hostile_tables(tmp_path: Path, name: str) -> None:
    {**hostile_tables.REFUSED, **hostile_tables.READ}[name](tmp_path / name)
    peak, ran = run_measured("count", name, "--memory", "256MB", cwd=tmp_path)
    assert ran.returncode in (0, 1), ran.stderr
    assert "Traceback" not in ran.stderr
    assert peak <= LIMIT
