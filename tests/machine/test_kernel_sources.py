"""What a stored kernel depends on: an edit of that is another kernel, an edit of anything else is not."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wedgewise
from wedgewise.machine.jit import CpuKernel, helper, kernel
from wedgewise.machine.kernel_sources import identity_of

KINDS = ("*u4", "i8")
FILES = {
    "k_entry": """
from k_steps import step
from k_limits import LIMIT, Row
from wedgewise.machine.jit import kernel
@kernel
def entry(values, first):
    row = Row(values, first)
    return step(row) + LIMIT
""",
    "k_steps": """
from k_deeper import deeper
from wedgewise.machine.jit import helper
@helper
def step(row):
    return deeper(row)
""",
    "k_deeper": """
from wedgewise.machine.jit import helper
@helper
def deeper(row):
    return row.first
""",
    "k_limits": """
from typing import NamedTuple
class Row(NamedTuple):
    values: object
    first: int
BASE = 4
LIMIT = BASE + 1
""",
    "k_beside": """
def beside():
    'Nothing that a kernel calls.'
""",
}


@pytest.fixture
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """The identity of `entry` after an edit of one file, as a new process would import it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    edits = iter(range(1, 100))

    def edited(name: str = "k_beside", before: str = "", after: str = "") -> str:
        for file, text in FILES.items():
            path = tmp_path / f"{file}.py"
            path.write_text(text.replace(before, after) if file == name and before else text)
            os.utime(path, (next(edits),) * 2)
            sys.modules.pop(file, None)
        found = identity_of(importlib.import_module("k_entry").entry, KINDS)
        assert found is not None
        return found

    yield edited
    for file in FILES:
        sys.modules.pop(file, None)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("k_entry", "step(row) + LIMIT", "step(row) - LIMIT"),
        ("k_steps", "deeper(row)", "deeper(row) + 1"),
        ("k_deeper", "row.first", "row.first + 1"),
        ("k_limits", "BASE = 4", "BASE = 6"),
        ("k_limits", "    values: object\n    first: int\n", "    first: int\n    values: object\n"),
    ],
    ids=["kernel", "helper", "helper of a helper", "constant made of another", "fields of a record"],
)
def test_an_edit_of_what_it_depends_on_makes_another_kernel(
    identity: Callable[..., str], name: str, before: str, after: str
) -> None:
    assert identity() != identity(name, before, after)


def test_an_edit_of_another_file_leaves_it(identity: Callable[..., str]) -> None:
    before = identity()
    assert before == identity("k_beside", "Nothing", "None of what")
    assert before == identity("k_limits", "BASE = 4\n", "BASE = 4  # and one more\n")


def test_a_file_edited_after_its_import_is_what_was_imported(identity: Callable[..., str], tmp_path: Path) -> None:
    before = identity()
    (tmp_path / "k_deeper.py").write_text("edited since")
    assert identity_of(sys.modules["k_entry"].entry, KINDS) == before


def test_every_signature_is_another_kernel(identity: Callable[..., str]) -> None:
    first = identity()
    entry = sys.modules["k_entry"].entry
    assert len({first, identity_of(entry, ("*u8", "i8")), identity_of(entry, ("*u4",))}) == 3
    assert identity_of(entry, (sys.modules["k_limits"].Row, *KINDS)) != first


def test_a_kernel_without_a_source_is_not_known_again() -> None:
    def marked(text: str) -> Any:
        names: dict[str, Any] = {"__name__": "nowhere", "kernel": kernel, "inner": add_one}
        exec(compile(text, "<nowhere>", "exec"), names)
        return names["f"]

    assert identity_of(marked("@kernel\ndef f(x): return inner(x)"), ("i8",)) is None


@helper
def add_one(x: Any) -> Any:
    """For the tests here."""
    return x + np.uint64(1)


LASTING: Any = object()


@kernel
def names_an_object(values: Any) -> Any:
    """A kernel that nothing could be said of."""
    return LASTING


def test_a_value_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot depend on a value of type object"):
        identity_of(names_an_object, ())


def test_every_kernel_of_the_package_is_known_by_its_sources() -> None:
    for found in pkgutil.walk_packages(wedgewise.__path__, "wedgewise."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            for value in list(vars(module).values()):
                if isinstance(value, CpuKernel):
                    assert identity_of(value, ()) == identity_of(value, ())
                    assert identity_of(value, ()) is not None
