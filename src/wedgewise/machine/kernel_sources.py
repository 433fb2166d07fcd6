"""What the machine code of a kernel depends on: sources as they were imported, and the values that they name.

A kernel depends on its own file, on the files of the helpers that it calls, and of those that they call; on the values
of the constants and the fields of the records that they name; and on the three modules that make machine code of it. An
edit of any other file changes nothing.

Files are read when a kernel or helper is marked, which is when Python imports them: after a later edit, this process
still runs, and would compile, what it has imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

PLAIN = (int, float, str, bytes, tuple, type(None), np.generic)
COMPILING = ("jit.py", "native.py", "primitives.py")


def source_of(path: str) -> bytes | None:
    """The text of a source file as it is now; None where there is no such file."""
    try:
        status = os.stat(path)
        return _read(path, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return None


def identity_of(marked: Any, kinds: tuple[str | type, ...]) -> str | None:
    """A hash of all that the machine code of a kernel depends on but compiler and processor; None without sources."""
    from hashlib import sha256

    facts = _facts_of(marked)
    if facts is None:
        return None
    spelled = [fact for kind in kinds for fact in ([kind] if isinstance(kind, str) else _facts_of_value(kind, ()))]
    return sha256("\n".join([*facts, *spelled]).encode()).hexdigest()[:20]


def _facts_of(marked: Any) -> list[str] | None:
    """Each source and each value by one line, in an order that is always the same."""
    facts = {f"{name} {_digest(text)}" for name, text in _COMPILING_SOURCES.items()}
    ahead, seen = [marked], {id(marked)}
    while ahead:
        at = ahead.pop()
        if at.source is None:
            return None
        facts.add(f"{at.function.__module__} {_digest(at.source)}")
        visible, names = at.function.__globals__, frozenset(_names_in(at.function.__code__))
        for name in sorted(names & visible.keys()):
            value = visible[name]
            if not isinstance(value, type(marked)):
                facts.update(f"{at.function.__module__}.{name} {fact}" for fact in _facts_of_value(value, names))
            elif id(value) not in seen:
                seen.add(id(value))
                ahead.append(value)
    return sorted(facts)


def _facts_of_value(value: Any, names: frozenset[str] | tuple[()]) -> Iterator[str]:
    """What machine code takes from a value: constants themselves, records by their fields, the rest by name."""
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, ModuleType):
        for name in sorted(names & vars(value).keys()):
            yield from (f"{value.__name__}.{name} {fact}" for fact in _facts_of_value(vars(value)[name], ()))
    elif callable(value):
        fields = getattr(value, "_fields", ()), getattr(value, "_field_defaults", {})
        yield f"{value.__module__}.{getattr(value, '__qualname__', value.__class__.__qualname__)} {fields}"
    else:
        raise TypeError(f"kernels cannot depend on a value of type {type(value).__name__}, which may change")


def _names_in(code: CodeType) -> Iterator[str]:
    """All names in a function and in the functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


@cache
def _read(path: str, *_stamp: int) -> bytes:
    return Path(path).read_bytes()


@cache
def _digest(text: bytes) -> str:
    from hashlib import sha256

    return sha256(text).hexdigest()


_COMPILING_SOURCES = {name: source_of(str(Path(__file__).with_name(name))) or b"" for name in COMPILING}
