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
