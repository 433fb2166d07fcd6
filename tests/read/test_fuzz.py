"""Mutated files of every format are read or refused by our exceptions, quickly and in little memory."""

from __future__ import annotations

import io
import mmap
from pathlib import Path

import numpy as np
import pytest

from read import fuzz
from wedgewise.read import read_edges
from wedgewise.stages import EdgeList

CHUNK = 1 << 25

pytest.importorskip("pyarrow")
pytest.importorskip("zstandard")


@pytest.fixture(scope="module")
def all_seeds(tmp_path_factory: pytest.TempPathFactory) -> list[fuzz.Seed]:
    return fuzz.seeds(tmp_path_factory.mktemp("seeds"))


def test_every_seed_is_valid(all_seeds: list[fuzz.Seed], tmp_path: Path) -> None:
    for seed in all_seeds:
        path = tmp_path / seed.name
        path.write_bytes(seed.content)
        fuzz.check(read_edges(path, limits=fuzz.LIMITS))


def test_two_thousand_mutants(all_seeds: list[fuzz.Seed], tmp_path: Path) -> None:
    tally = fuzz.run_cases(all_seeds, range(2_000), tmp_path)
    assert tally.read >= 100, "the mutations are too coarse: hardly anything was read"
    assert tally.refused >= 1_000, "the mutations are too fine: hardly anything was refused"


def test_a_foreign_exception_is_noticed(
    all_seeds: list[fuzz.Seed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("from deep inside")

    monkeypatch.setattr(fuzz, "read_edges", fail)
    with pytest.raises(IndexError, match="from deep inside"):
        fuzz.run_case(all_seeds, 0, tmp_path)


def test_a_case_that_takes_much_memory_is_noticed(
    all_seeds: list[fuzz.Seed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_much(*_: object, **__: object) -> EdgeList:
        np.frombuffer(mmap.mmap(-1, CHUNK), np.uint8)[::512] = 1  # fresh pages, whatever was freed before
        return read_edges(io.BytesIO(b"0 1\n"))

    monkeypatch.setattr(fuzz, "CASE_BYTES", CHUNK // 2)
    monkeypatch.setattr(fuzz, "read_edges", take_much)
    with pytest.raises(AssertionError, match=r"case 0 .* took [\d,]+ bytes"):
        fuzz.run_case(all_seeds, 0, tmp_path)


@pytest.mark.deep
def test_twenty_thousand_mutants(tmp_path: Path) -> None:
    tally = fuzz.run_elsewhere(range(2_000, 22_000), tmp_path)
    assert tally.read + tally.refused == 20_000
    assert tally.seconds <= fuzz.CASE_SECONDS
    assert tally.taken <= fuzz.CASE_BYTES
