"""Code of objects that were handed in: whatever it raises becomes an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, WedgewiseError


@contextmanager
def foreign(name: str, remedy: str) -> Iterator[None]:
    """Name the object whose own code fails, and say what to pass instead; memory that runs out is no fault of it."""
    try:
        yield
    except (WedgewiseError, MemoryError):
        raise
    except Exception as error:  # an iterator, or a method such as __array__, can raise anything
        reason = " ".join(str(error).split())
        raise InputError(f"{name}: {type(error).__name__}{f': {reason}' if reason else ''}; {remedy}") from error


def viewed(source: Any, name: str) -> NDArray[Any]:
    """What NumPy makes of an object, in the same memory where it can."""
    with foreign(name, "pass a NumPy array"):
        return np.asarray(source)
