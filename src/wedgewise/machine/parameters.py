"""Parameters of another type than they can be: one error that names the parameter and what it takes."""

from __future__ import annotations

from operator import index
from reprlib import repr as shown
from typing import Any

from wedgewise.errors import InputError


def check_type(name: str, value: object, kinds: type | tuple[type, ...], takes: str) -> None:
    """Refuse a parameter that is none of these; None is for the caller to allow."""
    if not isinstance(value, kinds):
        raise InputError(f"{name} is {takes}, not {shown(value)}")


def as_integer(name: str, value: Any, takes: str = "an integer") -> int:
    """A parameter as an integer, whatever library it is of; a bool is none."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise InputError(f"{name} is {takes}, not {shown(value)}")


def stretch_of(start: int, stop: int | None, total: int, what: str) -> tuple[int, int]:
    """The numbers that a part covers: like a slice, but a start that is negative or beyond the end is an error."""
    start = as_integer("start", start)
    if not 0 <= start <= total:
        raise InputError(f"start is {start:,}, but there are {total:,} {what}; start at 0 … {total:,}")
    if stop is None:
        return start, total
    stop = as_integer("stop", stop)
    if stop < start:
        raise InputError(f"stop is {stop:,}, before start at {start:,}")
    return start, min(stop, total)
