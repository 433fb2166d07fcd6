"""The lists of kernels: whole, without a kernel that is gone, and read back as they were written."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import NamedTuple

import pytest

import wedgewise
from wedgewise.machine import jit
from wedgewise.machine.signatures import LIST, WIDE_LIST, kinds_of, listed, spelled_kinds, unlisted
from wedgewise.run.listing import name_triples


class Pair(NamedTuple):
    """A record of these tests."""

    first: int
    second: int


def test_every_kernel_of_the_package_is_listed() -> None:
    names = [module.name for module in pkgutil.walk_packages(wedgewise.__path__, "wedgewise.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    found = {
        id(value)
        for module in modules
        for value in vars(module).values()
        if isinstance(value, jit.CpuKernel) and not value.inline
    }
    assert {id(marked) for marked, _ in listed()} == found


@pytest.mark.parametrize("path", [LIST, WIDE_LIST])
def test_each_is_listed_once_and_in_order(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines == sorted(set(lines))


def test_those_of_wide_offsets_are_listed_apart() -> None:
    assert set(listed()) < set(listed(wide=True))
    assert set(LIST.read_text().splitlines()).isdisjoint(WIDE_LIST.read_text().splitlines())


def test_kinds_are_read_as_they_were_written() -> None:
    kinds = ("*u4", Pair, "i8", "i8", jit.NONE)
    assert spelled_kinds(kinds) == ["*u4", f"{__name__}:Pair", "i8", "i8", "none"]
    assert kinds_of(spelled_kinds(kinds)) == kinds


def test_a_kernel_that_is_called_with_other_arguments_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_triples, "_loaded", {("*u4", "*u4"): print, ("*u2", Pair, "i8", "i8"): print})
    assert unlisted() == [f"wedgewise.run.listing.name_triples *u2 {__name__}:Pair i8 i8"]
