"""Which kernels there are and what they are called with: a list that is compiled ahead, and shipped as machine code.

Each list has a line for each kernel with the kinds of its arguments: ``*u4`` is an array, ``u8`` a
number, ``module:Record`` a record before its fields. A kernel that is called with others is compiled when it is called;
the tests refuse that, so that the list stays whole (tests/conftest.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from wedgewise.machine.jit import CpuKernel, Kinds

LIST = Path(__file__).with_name("kernel_signatures.txt")
WIDE_LIST = LIST.with_name("wide_kernel_signatures.txt")  # of graphs whose offsets take 64 bits: 2^31 arcs or more
PACKAGE = __name__.partition(".")[0]


def listed(wide: bool = False) -> list[tuple[CpuKernel[Any, Any], Kinds]]:
    """Every kernel of the package with the kinds of its arguments, those that take longest to compile first."""
    lines = [line.split() for line in _lines(wide)]
    found = [(_named(name), kinds_of(spelled)) for name, *spelled in lines]
    return sorted(found, key=lambda item: -len(item[1]))


def unlisted() -> list[str]:
    """The lines that are missing in the list, for kernels of the package that this process has loaded."""
    lines = set(_lines(wide=True))
    loaded = {
        " ".join([f"{marked.function.__module__}.{marked.__name__}", *spelled_kinds(kinds)])
        for module in _modules_of_the_package()
        for marked in vars(module).values()
        if isinstance(marked, CpuKernel)
        for kinds in marked.signatures
    }
    return sorted(loaded - lines)


def spelled_kinds(kinds: Kinds) -> list[str]:
    """Kinds of arguments as text: a record by its module and name."""
    return [kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}" for kind in kinds]


def kinds_of(spelled: Iterable[str]) -> Kinds:
    """What `spelled_kinds` has spelled."""
    return tuple(_record(*text.split(":")) if ":" in text else text for text in spelled)


def _lines(wide: bool) -> list[str]:
    return [line for path in ((LIST, WIDE_LIST) if wide else (LIST,)) for line in path.read_text().splitlines()]


def _named(name: str) -> CpuKernel[Any, Any]:
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, CpuKernel)
    return found


def _record(module: str, name: str) -> type:
    found = getattr(import_module(module), name)
    assert isinstance(found, type)
    return found


def _modules_of_the_package() -> Iterator[Any]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            yield module
